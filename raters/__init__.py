"""Bayesian models of human judgement: who can be trusted, what people prefer, and what to ask
next."""

import sys

import lazy_loader

__version__ = "0.1.0"

# Names and modules are those of `__init__.pyi`, imported at their first use.
_imported, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """Load NumPyro whole where ArviZ left it as a lazy module, of which submodules that are
    imported first are lost; then import the name."""
    vars(sys.modules.get("numpyro", sys))
    return _imported(name)

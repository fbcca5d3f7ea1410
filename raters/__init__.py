"""Bayesian models of human judgement: who can be trusted, what people prefer, and what to ask
next."""

import sys

import lazy_loader

__version__ = "0.1.0"

# Loads NumPyro whole where ArviZ left it as a lazy module, of which submodules that are imported
# first are lost.
vars(sys.modules.get("numpyro", sys))

# Names and modules are those of `__init__.pyi`, imported at their first use.
_imported, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """Import a name, with NumPyro as above where ArviZ was imported since."""
    vars(sys.modules.get("numpyro", sys))
    return _imported(name)

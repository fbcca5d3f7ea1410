"""Bayesian models of human judgement: who can be trusted, what people prefer, and what to ask
next."""

import lazy_loader

__version__ = "0.1.0"

# Names and modules are those of `__init__.pyi`, imported at their first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Bayesian models of human judgement: who can be trusted, what people prefer, and what to ask
next."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from raters._public import *  # noqa: F403

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Import the package at its first use: JAX, NumPyro and ArviZ take seconds, which `raters
    --help` and a command that is interrupted at once need not wait for."""
    if "__all__" not in globals():
        if "numpyro" in sys.modules:
            # ArviZ, imported before or after this package, puts NumPyro there as a lazy module, and
            # submodules that are imported before the package itself has run are not found in it
            # afterwards.
            vars(sys.modules["numpyro"])
        public = import_module("raters._public")
        names = public.__all__  # Not there yet while it is being imported.
        globals().update({each: getattr(public, each) for each in names}, __all__=names)
    if name not in globals():
        raise AttributeError(f"module 'raters' has no attribute {name!r}")
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *import_module("raters._public").__all__})

"""Bayesian models of human judgement: who can be trusted, what people prefer, and what to ask
next."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from raters._public import *  # noqa: F403

__version__ = "0.1.0"


def _load_numpyro() -> None:
    """Run NumPyro where ArviZ, which may be imported before this package or after it, has put it as
    a lazy module: submodules that are imported before the package itself has run are not found in
    it afterwards."""
    if "numpyro" in sys.modules:
        vars(sys.modules["numpyro"])


_load_numpyro()


def __getattr__(name: str) -> object:
    """Import the package at its first use: JAX, NumPyro and ArviZ take seconds, which `raters
    --help` and a command that is interrupted at once need not wait for."""
    if "__all__" not in globals():
        _load_numpyro()
        public = import_module("raters._public")
        names = public.__all__  # Not there yet while it is being imported.
        globals().update({each: getattr(public, each) for each in names}, __all__=names)
    if name not in globals():
        raise AttributeError(f"module 'raters' has no attribute {name!r}")
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *import_module("raters._public").__all__})

"""What to cite."""

from __future__ import annotations

from raters.inference.base import Backend
from raters.model import Model


def cite(*used: Model | Backend) -> str:
    """References for the models and back-ends used, one in a paragraph.

    Examples
    --------
    >>> import raters as rt
    >>> print(rt.cite(rt.BTL()))   # doctest: +ELLIPSIS
    BTL: Bradley, R. A. and Terry, M. E. (1952)...
    """
    return "\n\n".join(f"{type(thing).__name__}: {thing.reference}" for thing in used)

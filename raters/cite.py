"""What to cite."""

from __future__ import annotations

from typing import Any

from raters.errors import SettingError
from raters.inference.base import Backend
from raters.model import Model


def cite(*used: Model | Backend | type) -> str:
    """References for the models and back-ends used, one in a paragraph.

    Parameters
    ----------
    *used : models and back-ends, or their classes

    Returns
    -------
    str

    Raises
    ------
    SettingError
        When something else is given.

    Examples
    --------
    >>> import raters as rt
    >>> print(rt.cite(rt.BTL()))   # doctest: +ELLIPSIS
    BTL: Bradley, R. A. and Terry, M. E. (1952)...
    """
    return "\n\n".join(_reference(thing) for thing in used)


def _reference(thing: Any) -> str:
    cls = thing if isinstance(thing, type) else type(thing)
    if not issubclass(cls, (Model, Backend)):
        raise SettingError(f"cannot cite {thing!r}; give models and back-ends, such as rt.cite(rt.BTL(), rt.NUTS())")
    return f"{cls.__name__}: {cls.reference}"

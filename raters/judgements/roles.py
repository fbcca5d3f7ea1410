"""Fields and numbers that a container declares."""

from __future__ import annotations

import dataclasses
from operator import attrgetter
from typing import Any


def of_axes(*axes: str, default: Any = dataclasses.MISSING) -> Any:
    """Field of an array that has other axes than the rows alone."""
    return dataclasses.field(default=default, metadata={"axes": axes})


def static(default: Any = dataclasses.MISSING, *, derived: bool = False) -> Any:
    """Field that is no array: names, or a flag."""
    return dataclasses.field(default=default, metadata={"static": True, "derived": derived})


def number_of(field: str, doc: str) -> property:
    """Property with the number of names in a field."""
    return property(lambda data: len(getattr(data, field)), doc=doc)


def same_as(number: str, doc: str) -> property:
    """Property that is another number, under the name that the judgements have."""
    return property(attrgetter(number), doc=doc)

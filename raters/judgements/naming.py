"""Judgements under other names of an axis: more of them, or in another order."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Int

from raters.judgements.base import Judgements
from raters.judgements.grouped import Grouped
from raters.judgements.names import match_names
from raters.judgements.ordered import Ordered


def takes_names(data: Judgements, axis: str, names: tuple[Any, ...]) -> bool:
    """True unless new names along an axis would need numbers that nobody knows, such as features of
    new items."""
    if not (isinstance(data, Grouped) and axis == data.unit):
        return True
    of_units = [name for name, axes in data.arrays().items() if axes[0] == "unit"]
    known = ("unit_code", data.known)
    numbers = [name for name in of_units if name not in known and getattr(data, name) is not None]
    return len(names) == len(data.coords[axis]) or not numbers


def with_names(data: Any, axis: str, names: tuple[Any, ...]) -> Any:
    """The same judgements in the codes of other names."""
    own = tuple(data.coords[axis])
    if own == tuple(names):
        return data
    place = match_names(np.arange(len(own)), own, names, axis)
    changes: dict[str, Any] = {data.names[axis]: tuple(names)}
    grouped = isinstance(data, Grouped) and axis == data.unit
    for name, axes in data.arrays().items():
        column = getattr(data, name)
        if column is None:
            continue
        values = np.asarray(column)
        if grouped and axes[0] == "unit":
            values = _moved(values, place[np.asarray(data.unit_code)], len(names), name, data)
        if data.axes.get(name) == axis:
            values = np.where(values >= 0, place[values], values).astype(values.dtype)
        for dim in (dim for dim, of in enumerate(axes) if of == axis):
            spread = _moved(np.moveaxis(values, dim, 0), place, len(names), name, data)
            values = np.moveaxis(spread, 0, dim)
        changes[name] = values
    if grouped:
        changes["unit_code"] = np.arange(len(names), dtype=np.int32)
        group = place[np.asarray(data.unit_code)][np.asarray(data.group)].astype(np.int32)
        order = np.argsort(group, kind="stable")
        changes["group"] = group
        rows = [name for name, axes in data.arrays().items() if axes[0] == data.row]
        changes |= {name: changes[name][order] for name in rows if name in changes}
    renamed = dataclasses.replace(data, **changes)
    # The items of a ranking ascend by their codes.
    return renamed.canonical() if isinstance(renamed, Ordered) else renamed


def _moved(
    values: np.ndarray, place: Int[np.ndarray, " name"], size: int, name: str, data: Judgements
) -> np.ndarray:
    """Entries at their new places along the first axis; elsewhere none: code −1, or 0."""
    filled: np.ndarray = np.full(
        (size, *values.shape[1:]), -1 if name in data.axes else 0, values.dtype
    )
    filled[place] = values
    return filled

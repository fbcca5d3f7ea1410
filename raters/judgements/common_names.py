"""Names that several containers have in common, and refusals of those that have none."""

from __future__ import annotations

import dataclasses
import itertools
import keyword
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Int

from raters.errors import refuse, refuse_data
from raters.judgements.base import Judgements
from raters.judgements.grouped import Grouped
from raters.judgements.names import alike, match_names, name_text, plural, shorten, warn_of_near
from raters.judgements.rankings import Rankings


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
    present = tuple(data.coords[axis])
    if present == tuple(names):
        return data
    place = match_names(np.arange(len(present)), present, names, axis)
    along = (axis, f"next_{axis}")  # next states are states
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
        for dim in (dim for dim, of in enumerate(axes) if of in along):
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
    return renamed.canonical() if isinstance(renamed, Rankings) else renamed


def _moved(
    values: np.ndarray, place: Int[np.ndarray, " name"], size: int, name: str, data: Judgements
) -> np.ndarray:
    """Entries at their new places along the first axis; elsewhere none: code −1, or 0."""
    filled: np.ndarray = np.full(
        (size, *values.shape[1:]), -1 if name in data.axes else 0, values.dtype
    )
    filled[place] = values
    return filled


def _named(part: Judgements) -> tuple[str, ...]:
    """Axes of a part that have names of their own; true classes are labels."""
    return tuple({field: axis for axis, field in part.names.items()}.values())


def _is_open(axis: str, parts: Sequence[Judgements]) -> bool:
    """True for an axis that may have names in one part that others lack: those who judge, and
    items."""
    return axis == "item" or axis in {part.judge for part in parts}


def aligned(parts: Sequence[Any]) -> list[Any]:
    """Parts with the same names along an axis, in the same order, where they can have them."""
    changed = list(parts)
    for axis in dict.fromkeys(axis for part in parts for axis in _named(part)):
        changed = _aligned_along(axis, changed)
    return changed


def _aligned_along(axis: str, parts: list[Any]) -> list[Any]:
    """Parts with the same names along one axis."""
    having = [part for part in parts if len(part.coords.get(axis, ()))]
    if len(having) < 2:
        return parts
    lists = alike([tuple(part.coords[axis]) for part in having])
    names = tuple(dict.fromkeys(itertools.chain(*lists)))
    if _is_open(axis, parts):
        warn_of_near(names, plural(axis))
        possible = all(takes_names(part, axis, names) for part in having)
    else:
        possible = all(set(one) == set(names) for one in lists)
    if not possible:
        return parts
    return [
        with_names(part, axis, names) if len(part.coords.get(axis, ())) else part for part in parts
    ]


# ---------------------------------------------------------------------- refusals


def check_containers(parts: Any, but: tuple[type, ...]) -> None:
    """Raise unless these are two or more containers, each with judgements, by name."""
    if not isinstance(parts, Mapping) or len(parts) < 2:
        refuse(
            "parts",
            parts,
            "is no mapping of two parts or more",
            "give each kind of judgement a name",
            instead="rt.judgements.Together.of({'votes': votes, 'shown': demonstrations})",
        )
    for name, part in parts.items():
        check_part_name("parts", name)
        single = isinstance(part, Judgements) and not isinstance(part, but)
        if not single or not part.num_judgements:
            refuse(
                name,
                part,
                "is no container of one kind of judgement, or has no judgements",
                "read a table first",
                instead="rt.Comparisons.from_frame(table, ...)",
            )


def check_part_name(parameter: str, name: Any) -> None:
    """Raise unless this can be the name of a part, which sites and axes have before a dot."""
    if not (isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)):
        refuse(
            parameter,
            name,
            "is no name of a part",
            "a name of a part must be letters, digits and _, such as 'votes'",
        )


def check_twice(parts: Mapping[str, Any]) -> None:
    """Raise where two parts are the same judgements, which would count twice."""
    for (one, left), (other, right) in itertools.combinations(parts.items(), 2):
        same = type(left) is type(right) and left.flags() == right.flags()
        arrays = jax.tree.leaves(left), jax.tree.leaves(right)
        if same and len(arrays[0]) == len(arrays[1]) and all(map(np.array_equal, *arrays)):
            problem = f"holds the same judgements as {one!r}"
            refuse_data(other, problem=problem, expected="give each judgement once")


def check_common(names: Sequence[str], parts: Sequence[Any]) -> None:
    """Raise where a part has no annotator, item or feature in common with any other."""
    known = [_texts(part, parts) for part in parts]
    for place, name in enumerate(names):
        others = set().union(*(texts for other, texts in enumerate(known) if other != place))
        if not known[place] & others:
            refuse_data(
                name,
                problem="shares no annotator, item or feature with the other parts: it has"
                f" {shorten(sorted(text for _, text in known[place]))}, and they have"
                f" {shorten(sorted(text for _, text in others))}",
                expected="spell the names alike in all parts, or fit it by itself",
            )


def _texts(part: Any, parts: Sequence[Any]) -> set[tuple[str, str]]:
    """Axes and names, as text, of those who judge, of items, and of features."""
    return {
        (axis, name_text(name))
        for axis in _named(part)
        if axis == "feature" or _is_open(axis, parts)
        for name in part.coords[axis]
        if name != "intercept"
    }

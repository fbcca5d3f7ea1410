"""Judgements as the contract varies them: under other names, twice, with other outcomes."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from raters.judgements.base import Judgements
from raters.judgements.together import Together, with_names

# Where each new code of an axis comes from: the code of old entry i is `new[axis][i]`.
NewCodes = dict[str, np.ndarray]


def outcomes(data: Judgements) -> np.ndarray:
    """Outcome of each row."""
    return np.asarray(getattr(data, data.answer))


def highest(data: Judgements) -> np.ndarray:
    """Highest outcome that each row can have."""
    most = np.full(data.num_rows, float(data.answers().max()))
    return most * np.asarray(data.weight) if data.summed else most


def renamed(data: Any, new: NewCodes) -> Any:
    """The same judgements with other codes along some axes, and the names at their new codes."""
    if isinstance(data, Together):
        moved = []
        for part_name, part in data.by_name():
            called = data.own_axes(part_name).items()
            moved.append(renamed(part, {axis: new[name] for axis, name in called if name in new}))
        return dataclasses.replace(data, parts=tuple(moved))
    for axis, order in new.items():
        names = data.coords[axis]
        data = with_names(data, axis, tuple(names[place] for place in np.argsort(order)))
    return data


def with_names_of(data: Any, like: Any) -> Any:
    """Judgements with the names of others in place of theirs."""
    if isinstance(data, Together):
        parts = tuple(map(with_names_of, data.parts, like.parts))
        return dataclasses.replace(data, parts=parts)
    fields = data.names.values()
    return dataclasses.replace(data, **{field: getattr(like, field) for field in fields})


def question_axes(data: Any) -> list[str]:
    """Axes of what is asked, and whom."""
    if isinstance(data, Together):
        called = [
            data.axis_name(name, axis)
            for name, part in data.by_name()
            for axis in question_axes(part)
        ]
        return list(dict.fromkeys(called))
    return [axis for axis in data.question_axes() if axis != data.axes.get(data.known)]


def doubled(data: Any) -> tuple[Any, Any]:
    """The same judgements in two tables of as many rows as the data have, which compile once."""
    if isinstance(data, Together):
        both = [doubled(part) for part in data.parts]
        one, other = (
            dataclasses.replace(data, parts=tuple(pair[place] for pair in both)) for place in (0, 1)
        )
        return one, other
    number = data.num_units if data.together else data.num_rows
    place = np.arange(number) % 3
    # The rows after the last whole three stay as they are.
    place[number // 3 * 3 :] = 3
    return _doubled(data, place, 0), _doubled(data, place, 1)


def _doubled(data: Any, place: np.ndarray, repeated: int) -> Any:
    """Rows of this place twice, of the other place with a double count."""
    times = np.select([place == repeated, place == 2], [2, 0], 1)
    index = np.repeat(np.arange(len(place)), times)
    factor = np.where(place[index] == 1 - repeated, 2, 1)
    if data.together:
        table = data.take(index)
        factor = factor[np.asarray(table.group)]
    else:
        table = data.rows(index)
    changes = {name: getattr(data, name) for name in data.statics(derived=True)}
    weight = np.asarray(table.weight)
    changes["count"] = (factor * weight).astype(weight.dtype)
    if data.summed:
        changes[data.answer] = (factor * outcomes(table)).astype(np.float32)
    return dataclasses.replace(table, **changes)


def answered_otherwise(data: Any) -> Any:
    """Data of equal shape with other outcomes."""
    if data.together:  # Those of the rows of a unit change places.
        group, order = np.asarray(data.group), np.arange(data.num_rows)
        last = np.append(group[1:] != group[:-1], True)
        first = np.searchsorted(group, group)
        return data.answered(outcomes(data)[np.where(last, first, order + 1)])
    if data.summed:
        column = (highest(data) - outcomes(data)).astype(np.float32)
        return dataclasses.replace(data, **{data.answer: column})
    if outcomes(data).ndim > 1:  # Places, of which the last becomes the first.
        place = outcomes(data)
        return data.answered(np.where(place > 0, place.max(1, keepdims=True) + 1 - place, place))
    possible = data.answers().tolist()
    others = []
    for row, outcome in enumerate(outcomes(data).tolist()):
        own = [value for value in possible if value in set(data.answer_words(row).values())]
        others.append(own[(own.index(outcome) + 1) % len(own)])
    return data.answered(np.asarray(others))

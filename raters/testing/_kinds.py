"""Judgements as the contract varies them: under other names, twice, with other outcomes."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from raters.judgements.base import Judgements
from raters.judgements.sets import OfferedSets
from raters.judgements.together import axis_name, parts_of, with_parts

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
    moved = {}
    for part_name, part in parts_of(data).items():
        for axis, names in part.coords.items():
            if (order := new.get(axis_name(data, part_name, axis))) is not None:
                of_new = tuple(names[place] for place in np.argsort(order))
                part = part.with_names(axis, of_new)
        moved[part_name] = part
    return with_parts(data, moved)


def with_names_of(data: Any, like: Any) -> Any:
    """Judgements with the names of others in place of theirs."""
    named = {}
    for (name, part), own in zip(parts_of(data).items(), parts_of(like).values(), strict=True):
        fields = {field: getattr(own, field) for field in part.names.values()}
        named[name] = dataclasses.replace(part, **fields)
    return with_parts(data, named)


def question_axes(data: Any) -> list[str]:
    """Axes of what is asked, and whom."""
    called = dict[str, None]()
    for name, part in parts_of(data).items():
        axes = [axis for axis in part.question_axes() if axis != part.axes.get(part.known)]
        called |= dict.fromkeys(axis_name(data, name, axis) for axis in axes)
    return list(called)


def doubled(data: Any) -> tuple[Any, Any]:
    """The same judgements in two tables of as many rows as the data have, which compile once."""
    both: tuple[dict[str, Any], dict[str, Any]] = {}, {}
    for name, part in parts_of(data).items():
        place = np.arange(part.num_rows) % 3
        # The rows after the last whole three stay as they are.
        place[len(place) // 3 * 3 :] = 3
        for which, table in enumerate(both):
            table[name] = _doubled(part, place, which)
    return with_parts(data, both[0]), with_parts(data, both[1])


def _doubled(data: Any, place: np.ndarray, repeated: int) -> Any:
    """Rows of this place twice, of the other place with a double count."""
    times = np.select([place == repeated, place == 2], [2, 0], 1)
    index = np.repeat(np.arange(len(place)), times)
    factor = np.where(place[index] == 1 - repeated, 2, 1)
    table = data.rows(index)
    changes = {name: getattr(data, name) for name in data.statics(derived=True)}
    weight = np.asarray(table.weight)
    changes["count"] = (factor * weight).astype(weight.dtype)
    if data.summed:
        changes[data.answer] = (factor * outcomes(table).T).T.astype(np.float32)
    return dataclasses.replace(table, **changes)


def answered_otherwise(data: Any) -> Any:
    """Data of equal shape with other outcomes."""
    if isinstance(data, OfferedSets):  # What is true of one thing is true of the next.
        position, size = np.arange(outcomes(data).shape[1]), data.there.sum(1, keepdims=True)
        order = np.where(position < size, (position + 1) % size, position)
        return data.answered(np.take_along_axis(outcomes(data), order, 1))
    if data.summed:
        column = (highest(data) - outcomes(data)).astype(np.float32)
        return dataclasses.replace(data, **{data.answer: column})
    possible = data.answers().tolist()
    others = []
    for row, outcome in enumerate(outcomes(data).tolist()):
        own = [value for value in possible if value in set(data.answer_words(row).values())]
        others.append(own[(own.index(outcome) + 1) % len(own)])
    return data.answered(np.asarray(others))

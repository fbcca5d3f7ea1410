"""What the contract asks of each kind of data: their outcomes, the same under other names, the same twice."""

from __future__ import annotations

import dataclasses
from functools import singledispatch
from typing import Any

import numpy as np

from raters._judgements import Judgements
from raters.data import Comparisons
from raters.labels import Labels

# Where each new code of an axis comes from: the code of old entry i is `new[axis][i]`.
NewCodes = dict[str, np.ndarray]


@singledispatch
def outcomes(data: Judgements) -> np.ndarray:
    """The outcome of each row."""
    raise AssertionError(f"the contract knows Comparisons and Labels; these data are {type(data).__name__}")


@outcomes.register
def _(data: Comparisons) -> np.ndarray:
    return np.asarray(data.wins)


@outcomes.register
def _(data: Labels) -> np.ndarray:
    return np.asarray(data.label)


@singledispatch
def highest(data: Judgements) -> np.ndarray:
    """The highest outcome that each row can have; the lowest is 0."""
    raise NotImplementedError


@highest.register
def _(data: Comparisons) -> np.ndarray:
    return np.ones(data.num_comparisons) if data.count is None else np.asarray(data.count)


@highest.register
def _(data: Labels) -> np.ndarray:
    return np.full(data.num_rows, data.num_classes - 1)


@singledispatch
def renamed(data: Judgements, new: NewCodes) -> Any:
    """The same judgements with other codes of items and annotators."""
    raise NotImplementedError


@renamed.register
def _(data: Comparisons, new: NewCodes) -> Comparisons:
    first, second = (new["item"][np.asarray(side)] for side in (data.first, data.second))
    return dataclasses.replace(data, first=first, second=second, annotator=new["annotator"][np.asarray(data.annotator)])


@renamed.register
def _(data: Labels, new: NewCodes) -> Labels:
    moved = data.take(np.argsort(new["item"][np.asarray(data.unit)]))
    return dataclasses.replace(
        moved,
        unit=new["item"][np.asarray(moved.unit)],
        annotator=new["annotator"][np.asarray(moved.annotator)],
        record=None if data.record is None else np.take(data.record, np.argsort(new["annotator"]), axis=0),
    )


@singledispatch
def doubled(data: Judgements) -> tuple[Any, Any]:
    """Every judgement twice: as a further row, and as twice the count."""
    raise NotImplementedError


@doubled.register
def _(data: Comparisons) -> tuple[Comparisons, Comparisons]:
    twice = data.take(np.repeat(np.arange(data.num_comparisons), 2))
    count = np.ones(data.num_comparisons) if data.count is None else np.asarray(data.count)
    return twice, dataclasses.replace(data, wins=2 * np.asarray(data.wins), count=2 * count)


@doubled.register
def _(data: Labels) -> tuple[Labels, Labels]:
    count = np.ones(data.num_rows) if data.count is None else np.asarray(data.count)
    group, annotator, label = (np.repeat(np.asarray(column), 2) for column in (data.group, data.annotator, data.label))
    twice = dataclasses.replace(
        data, group=group, annotator=annotator, label=label, count=np.repeat(count, 2), most=2 * data.most
    )
    return twice, dataclasses.replace(data, count=2 * count)


@singledispatch
def answered_otherwise(data: Judgements) -> Any:
    """Data of equal shape with other outcomes."""
    raise NotImplementedError


@answered_otherwise.register
def _(data: Comparisons) -> Comparisons:
    return dataclasses.replace(data, wins=(highest(data) - outcomes(data)).astype(np.float32))


@answered_otherwise.register
def _(data: Labels) -> Labels:
    return dataclasses.replace(data, label=np.roll(outcomes(data), 1))

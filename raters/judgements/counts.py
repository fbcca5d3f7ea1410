"""Counts of judgements, numbers for equal rows, and numbers of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, Num

from raters.errors import refuse, refuse_data
from raters.errors.validation import whole

# Judge, subject or question, answer, and how often the judge gave it.
Tallies = tuple[
    Int[np.ndarray, " tally"],
    Int[np.ndarray, " tally"],
    Int[np.ndarray, " tally"],
    Float[np.ndarray, " tally"],
]
# Up to here floats of single precision hold every half.
_FEW = 2**23
# Whole numbers are put in order without sorting if their range is at most so many times as large as
# their number.
_DENSE = 4


def ranks(columns: Sequence[Num[np.ndarray, "row ..."]]) -> Int[np.ndarray, " row"]:
    """Number of each distinct row of some columns, shape (row,), in their order."""
    flat = [column.reshape(len(column), -1) for column in columns]
    rank, number = np.zeros(len(flat[0]), np.int64), 1
    for column in (part for wide in flat for part in wide.T):
        own = _places(column)
        size = int(own.max(initial=0)) + 1
        if number * size > np.iinfo(np.int64).max:
            rank = _places(rank)
            number = int(rank.max(initial=0)) + 1
        rank, number = rank * size + own, number * size
    return _places(rank)


def _places(column: Num[np.ndarray, " row"]) -> Int[np.ndarray, " row"]:
    """Place of each value of a column among its distinct values in ascending order."""
    if column.dtype.kind in "iu" and column.size:
        low, high = int(column.min()), int(column.max())
        if high - low <= _DENSE * column.size:  # Without sorting.
            offset = column.astype(np.int64) - low
            present = np.zeros(high - low + 1, bool)
            present[offset] = True
            return np.asarray((np.cumsum(present) - 1)[offset])
    return np.unique(column, return_inverse=True)[1].ravel()


def exact(counts: Num[np.ndarray, " row"]) -> Float[np.ndarray, " row"]:
    """Numbers of judgements in the smallest type of floats that holds them as they are."""
    most = float(counts.max(initial=0))
    if most > 2**53:
        refuse_data(
            "count",
            most,
            "is a number of judgements that cannot be held exactly",
            "it must be at most 2**53 (about 9e15), also the sum over equal rows",
        )
    return counts.astype(np.float32 if most <= _FEW else np.float64)


def check_padding(rows: Any, present: int) -> None:
    """Raise unless there are at most so many rows."""
    whole("rows", rows)
    if rows < present:
        refuse(
            "rows",
            rows,
            expected=f"there are {present} rows already, so give at least as many",
            instead=f"rows={pad_to(present)}",
        )


def pad_to(rows: int, least: int = 64) -> int:
    """The power of two that holds so many rows: compiled functions see few shapes while data
    grow."""
    return max(least, 1 << (rows - 1).bit_length()) if rows > 1 else least


def standing(place: Int[np.ndarray, "row position"]) -> Int[np.ndarray, "row position"]:
    """Numbers by which things are in order: places, then one number for all things without a place,
    and the next one for the worst."""
    open_place = place.shape[1] + 1
    return np.select([place > 0, place < 0], [place, open_place + 1], open_place)


def mean_ranks(
    place: Int[np.ndarray, "ranking position"], there: Bool[np.ndarray, "ranking position"]
) -> Float[np.ndarray, "ranking position"]:
    """Ranks, of which items without a place share the mean of those that are left."""
    size, placed = there.sum(1, keepdims=True), (place > 0).sum(1, keepdims=True)
    left = size - placed - (place < 0).sum(1, keepdims=True)
    return np.select([place > 0, place < 0], [place, size], placed + (left + 1) / 2)


def ordered_pairs(
    judge: Int[np.ndarray, " row"],
    offered: Int[np.ndarray, "row position"],
    place: Int[np.ndarray, "row position"],
    count: Float[np.ndarray, " row"],
    num_items: int,
) -> Tallies:
    """Count how often each judge ranked each pair of things in each order."""
    ahead = standing(place)
    keys, counts = [], []
    for first, second in zip(*np.triu_indices(offered.shape[1], 1), strict=True):
        told = (offered[:, second] >= 0) & (ahead[:, first] != ahead[:, second])
        pair = offered[:, first] * num_items + offered[:, second]
        answer = ahead[:, first] < ahead[:, second]
        keys.append(np.stack([judge, pair, answer], axis=1)[told])
        counts.append(count[told])
    every = np.concatenate([*keys, np.zeros((0, 3), np.int64)])
    each, place_of = np.unique(every, axis=0, return_inverse=True)
    total = np.bincount(place_of.ravel(), np.concatenate([*counts, np.zeros(0)]), len(each))
    return each[:, 0], each[:, 1], each[:, 2], total

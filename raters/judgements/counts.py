"""Counts of judgements, numbers for equal rows, and numbers of rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int, Num

from raters.errors import refuse_data

# Of each row: a code, a number, and whether it is one of some.
Codes = Int[np.ndarray, " row"]
Numbers = Float[np.ndarray, " row"]
Mask = Bool[np.ndarray, " row"]
# Features of rows or items.
Features = Num[np.ndarray, "row feature"]
# Things of rows, −1 or 0 for none.
Sets = Int[np.ndarray, "row position"]
# Judge, subject or question, answer, and how often the judge gave it.
Tallies = tuple[
    Int[np.ndarray, " tally"],
    Int[np.ndarray, " tally"],
    Int[np.ndarray, " tally"],
    Float[np.ndarray, " tally"],
]
# Up to here floats of single precision hold every half.
_FEW = 2**23


def ranks(columns: Sequence[Num[np.ndarray, "row ..."]]) -> Codes:
    """Number of each distinct row of some columns, shape (row,), in their order."""
    flat = [part for column in columns for part in column.reshape(len(column), -1).T]
    if not flat:
        return np.zeros(len(columns[0]), np.int64)
    table = pd.DataFrame(dict(enumerate(flat)))
    return np.asarray(table.groupby(list(table), dropna=False).ngroup())


def place_within(codes: Codes) -> Codes:
    """Number of earlier rows that have the code of each row."""
    return np.asarray(pd.Series(codes).groupby(codes).cumcount())


def pairs_within(
    group: Codes, most: int
) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
    """Places of the members of pairs of one group, of sorted groups; some where too many."""
    size = np.bincount(group)
    begin = np.cumsum(size) - size
    ends = np.cumsum(size * (size - 1) // 2)
    total = int(ends[-1]) if len(ends) else 0
    chosen = np.arange(total)
    if total > most:
        chosen = np.sort(np.random.default_rng(0).choice(total, most, replace=False))
    of = np.searchsorted(ends, chosen, side="right")
    within = chosen - (ends[of] - size[of] * (size[of] - 1) // 2)
    # The larger of the two is the row of a lower triangle.
    larger = ((1 + np.sqrt(1 + 8.0 * within)) / 2).astype(np.int64)
    larger -= larger * (larger - 1) // 2 > within
    larger += larger * (larger + 1) // 2 <= within
    return begin[of] + within - larger * (larger - 1) // 2, begin[of] + larger


def exact(counts: Num[np.ndarray, " row"]) -> Numbers:
    """Numbers of judgements in the smallest type of floats that holds them as they are."""
    most = float(counts.max(initial=0))
    if most > 2**53:
        expected = "it must be at most 2**53 (about 9e15), also the sum over equal rows"
        refuse_data("count", most, "is a number that cannot be held exactly", expected)
    return counts.astype(np.float32 if most <= _FEW else np.float64)


def pad_to(rows: int, least: int = 64) -> int:
    """Power of two that holds so many rows, so that functions are compiled for few shapes."""
    return max(least, 1 << (rows - 1).bit_length()) if rows > 1 else least


def standing(place: Sets) -> Sets:
    """Numbers that order things: places, one number for all without a place, next for the worst."""
    open_place = place.shape[1] + 1
    return np.select([place > 0, place < 0], [place, open_place + 1], open_place)


def numbers_tied(place: Sets) -> Sets:
    """Number of things in the place of each, and 1 of those without a place."""
    number = np.maximum(place, 0).astype(np.int64)
    cell = np.arange(len(place))[:, None] * (number.max(initial=0) + 1) + number
    return np.where(place > 0, np.bincount(cell.ravel())[cell], 1)


def mean_ranks(place: Sets, there: Bool[np.ndarray, "row position"]) -> Features:
    """Ranks, of which those that tie, or have no place, share the mean of theirs."""
    ahead = np.where(there, standing(place), np.inf)
    return np.asarray(pd.DataFrame(ahead).rank(axis=1))


def ordered_pairs(
    judge: Codes, offered: Sets, place: Sets, count: Numbers, num_items: int
) -> Tallies:
    """Count how often each judge ranked each pair of things in each order."""
    ahead = standing(place)
    keys, counts = [], []
    for first, second in zip(*np.triu_indices(offered.shape[1], 1), strict=True):
        decided = (offered[:, second] >= 0) & (ahead[:, first] != ahead[:, second])
        pair = offered[:, first] * num_items + offered[:, second]
        answer = ahead[:, first] < ahead[:, second]
        keys.append(np.stack([judge, pair, answer], axis=1)[decided])
        counts.append(count[decided])
    every = np.concatenate([*keys, np.zeros((0, 3), np.int64)])
    each, place_of = np.unique(every, axis=0, return_inverse=True)
    total = np.bincount(place_of.ravel(), np.concatenate([*counts, np.zeros(0)]), len(each))
    return each[:, 0], each[:, 1], each[:, 2], total

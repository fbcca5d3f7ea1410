"""Discrepancies between comparisons and a model, and the models that mend them."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Int

from raters.checking import discrepancies as common
from raters.checking.discrepancies import Draw, Layout, Measure, discrepancy
from raters.judgements.counts import pairs_within

# Triads that are looked at; of more, so many are drawn at random.
_MOST_TRIADS = 50_000
_TRIES = 20

# ---------------------------------------------------------------- annotator × item


@discrepancy
def judge_items(layout: Layout) -> Measure | str:
    """Mean product of residuals of an annotator's votes on an item: excess of agreeing pairs."""
    data = layout.data
    num_items = len(data.items)
    base = layout.judge * num_items
    cells = [np.unique(base + np.asarray(side, np.int64)) for side in (data.first, data.second)]
    known = np.union1d(*cells)
    one, other = (
        np.searchsorted(known, base + np.asarray(side)) for side in (data.first, data.second)
    )
    both, answers = np.concatenate([one, other]), np.asarray(data.answers())[:, None]
    votes = np.bincount(both, np.tile(layout.number, 2), len(known))
    num_pairs = (votes * (votes - 1)).sum()
    if num_pairs <= 0:
        return "no annotator voted twice on an item"

    def measure(draw: Draw) -> float:
        each = answers - (answers * draw.probs).sum(0)  # of a vote with each answer
        residual, squares = (draw.counts * each).sum(0), (draw.counts * each**2).sum(0)
        total = np.bincount(both, np.concatenate([residual, -residual]), len(known))
        return float(2 * ((total**2).sum() - 2 * squares.sum()) / num_pairs)

    return measure


# ---------------------------------------------------------------- intransitivity


def _triads(data: Any) -> tuple[Int[np.ndarray, " row"], Int[np.ndarray, "3 triad"]]:
    """Pair of each row, and the pairs of all triads, or of many drawn at random."""
    first, second = np.asarray(data.first, np.int64), np.asarray(data.second, np.int64)
    low, high, size = np.minimum(first, second), np.maximum(first, second), len(data.items)
    key, place = np.unique(low * size + high, return_inverse=True)
    low, high = key // size, key % size
    # Two pairs (a, b) and (a, c) with the smallest item in common, whose (b, c) may be there too.
    one, other = pairs_within(low, _TRIES * _MOST_TRIADS)
    third = high[one] * size + high[other]
    found = np.searchsorted(key, third)
    closed = key[np.minimum(found, len(key) - 1)] == third
    pairs = np.unique(np.stack([one, found, other])[:, closed], axis=1)
    if pairs.shape[1] > _MOST_TRIADS:
        chosen = np.random.default_rng(0).choice(pairs.shape[1], _MOST_TRIADS, replace=False)
        pairs = pairs[:, np.sort(chosen)]
    return place, pairs


@discrepancy
def intransitivity(layout: Layout) -> Measure | str:
    """Share of cycles among the triads of items that majorities of votes decide."""
    place, pairs = _triads(layout.data)
    if pairs.shape[1] == 0:
        return "no three items were compared with one another"

    def measure(draw: Draw) -> float:
        lead = np.where(layout.turned, -1, 1) * (draw.counts[0] - draw.counts[-1])
        one, two, across = np.sign(np.bincount(place, lead))[pairs]
        decided = (one != 0) & (two != 0) & (across != 0)
        return float(((one == two) & (one == -across) & decided).sum() / max(decided.sum(), 1))

    return measure


# ---------------------------------------------------------------- position


@discrepancy
def position(layout: Layout) -> Measure | str:
    """Share of votes for what was shown first, of a tie half, less its expectation."""
    if not layout.data.ordered:
        return "it is not known which item was shown first"
    total, answers = layout.number.sum(), np.asarray(layout.data.answers())

    def measure(draw: Draw) -> float:
        return float((answers @ (draw.counts - layout.number * draw.probs)).sum() / total)

    return measure


# ---------------------------------------------------------------- ties


@discrepancy
def ties(layout: Layout) -> Measure | str:
    data, total = layout.data, layout.number.sum()
    if not data.tied and bool(np.all(np.asarray(data.wins) % 1 == 0)):
        return "no vote is a tie"
    place = data.answers().tolist().index(0.5) if data.tied else None

    def measure(draw: Draw) -> float:
        ties = 2 * (draw.counts[0] % 1) if place is None else draw.counts[place]
        return float(ties.sum() / total)

    return measure


DISCREPANCIES = common.of_kind(
    "comparisons",
    *(common.agreement, common.competence, judge_items, intransitivity, position, ties),
    common.drift,
)

r"""Orders of pairs of items that annotators stated by votes, rankings and ratings.

The pairs of one ranking are not independent answers: whoever puts one item wrongly has several
pairs wrong. Where a random order of the items has m pairs of which it is asked whether they are
right, their number has the variance

.. math::

    \frac{m}{4} + \frac16 \sum_i \left[\binom{o_i}{2} + \binom{w_i}{2} - o_i w_i\right]

with :math:`o_i` and :math:`w_i` the pairs in which item i is the better and the worse (two pairs
that share an end are right together with probability 1/3, and with 1/6 where the better item of
one is the worse of the other). Each pair counts as the :math:`m / 4` that independent ones would
have, over this; all pairs of n items count as :math:`9 / (2n + 5)` each. This is the variance of
Kendall's τ under the hypothesis of independence (Kendall and Gibbons 1990, Rank Correlation
Methods).

An annotator's own scores of items are :math:`(L + I)^{-1} d`, where d has how often the annotator
put each item above others less how often below, and L is the Laplacian of the graph of these pairs:
least squares with a ridge. Those of all annotators have one scale, under which two items differ in
:math:`\sum_a \beta_a S_{ia}`, with :math:`\beta_a \sim \mathrm{Normal}(0, 1)`, by a variance of 2
on average.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import cg

from raters.judgements.comparisons import Comparisons
from raters.judgements.counts import standing
from raters.judgements.rankings import Rankings
from raters.judgements.ratings import Ratings

# Pairs that are made of ratings at most.
_MOST_PAIRS = 2_000_000


class StatedOrders(NamedTuple):
    """Pairs of items that annotators put in order."""

    annotator: Int[np.ndarray, " stated"]
    better: Int[np.ndarray, " stated"]
    worse: Int[np.ndarray, " stated"]
    number: Float[np.ndarray, " stated"]
    block: Int[np.ndarray, " stated"]
    share: Float[np.ndarray, " block"]

    def scores(self, trusted: Int[np.ndarray, " trusted"], num_items: int) -> csr_array:
        """Scores of items by each annotator who is not trusted, shape (item, annotator)."""
        rows = np.flatnonzero(~np.isin(self.annotator, trusted))
        if not len(rows):
            return csr_array((num_items, 1))
        number, who = (self.number * self.share[self.block])[rows], self.annotator[rows]
        keys = [who * num_items + end[rows] for end in (self.better, self.worse)]
        cells, place = np.unique(np.concatenate(keys), return_inverse=True)
        pairs = csr_array((number, np.split(place.ravel(), 2)), (len(cells), len(cells)))
        over, under = pairs.sum(1), pairs.sum(0)
        degree = 1 + over + under
        laplacian = diags_array(degree) - pairs - pairs.T
        found, _ = cg(laplacian, over - under, rtol=1e-6, M=diags_array(1 / degree))
        scores = csr_array((found, np.divmod(cells, num_items)[::-1]), (num_items, who.max() + 1))
        square = (found**2).sum() - (scores.sum(0) ** 2).sum() / num_items
        return scores / (np.sqrt(square / (num_items - 1)) or 1.0)

    def known_share(
        self, sign: Int[np.ndarray, " stated"], num_items: int
    ) -> Float[np.ndarray, " stated"]:
        """Number of independent pairs that each pair of known order counts as."""
        rows = np.flatnonzero(sign)
        ends = (
            np.where(sign > 0, self.better, self.worse),
            np.where(sign > 0, self.worse, self.better),
        )
        keys = [self.block[rows] * num_items + end[rows] for end in ends]
        cells, place = np.unique(np.concatenate(keys), return_inverse=True)
        over, under = (
            np.bincount(half, minlength=len(cells)).astype(float)
            for half in np.split(place.ravel(), 2)
        )
        shared = (over * (over - 1) + under * (under - 1)) / 2 - over * under
        size = len(self.share)
        pairs = np.bincount(self.block[rows], minlength=size)
        variance = pairs / 4 + np.bincount(cells // num_items, shared, size) / 6
        share = np.minimum(pairs / 4 / np.maximum(variance, 1e-9), 1.0)
        return np.where(sign != 0, share[self.block], 0.0)


def of_comparisons(data: Comparisons) -> StatedOrders:
    """Orders stated by votes, each an independent one; a tie is half of either."""
    data = data.halved()
    first, second, who = (
        np.asarray(code, np.int64) for code in (data.first, data.second, data.annotator)
    )
    wins, count = np.asarray(data.wins, float), np.asarray(data.weight, float)
    number = np.concatenate([wins, count - wins])
    rows = np.flatnonzero(number > 0)
    better, worse = np.concatenate([first, second])[rows], np.concatenate([second, first])[rows]
    block, share = np.arange(len(rows)), np.ones(len(rows))
    return StatedOrders(np.tile(who, 2)[rows], better, worse, number[rows], block, share)


def of_rankings(data: Rankings) -> StatedOrders:
    """Orders stated by rankings: of each item above all later ones, and above the worst."""
    offered, place = np.asarray(data.offered, np.int64), np.asarray(data.place)
    ahead = standing(place)
    ends, blocks = [], []
    for one, other in zip(*np.triu_indices(offered.shape[1], 1), strict=True):
        stated = (offered[:, other] >= 0) & (ahead[:, one] != ahead[:, other])
        is_first = ahead[stated, one] < ahead[stated, other]
        sides = offered[stated, one], offered[stated, other]
        ends.append(np.stack([np.where(is_first, *sides), np.where(is_first, *sides[::-1])]))
        blocks.append(np.flatnonzero(stated))
    block = np.concatenate([*blocks, np.zeros(0, np.int64)])
    better, worse = np.concatenate([*ends, np.zeros((2, 0), np.int64)], axis=1)
    # Naming the worst of the items that are left is as choosing the best of them.
    stages = np.asarray(data.depth) + (0 if data.lowest is None else np.asarray(data.lowest))
    share = _share((offered >= 0).sum(1), stages)
    who, count = np.asarray(data.annotator, np.int64), np.asarray(data.weight, float)
    return StatedOrders(who[block], better, worse, count[block], block, share)


def _share(
    size: Int[np.ndarray, " ranking"], depth: Int[np.ndarray, " ranking"]
) -> Float[np.ndarray, " ranking"]:
    """Independent pairs that each pair counts as, of rankings of so many places and items."""
    left = size[:, None] - np.arange(int(depth.max(initial=0)))
    left = np.where(np.arange(left.shape[1]) < depth[:, None], np.maximum(left, 1), 1)
    pairs, variance = (left - 1).sum(1), (left**2 - 1).sum(1) / 12
    return np.where(pairs > 0, pairs / 4 / np.maximum(variance, 1e-9), 1.0)


def of_ratings(data: Ratings, first: Bool[np.ndarray, " item"]) -> StatedOrders:
    """Orders stated by ratings: of two items that an annotator put on different levels."""
    rng = np.random.default_rng(0)
    who, item = np.asarray(data.annotator, np.int64), np.asarray(data.item, np.int64)
    level = np.asarray(data.rating)
    most = max(2, int(np.sqrt(2 * _MOST_PAIRS / max(data.num_annotators, 1))))
    order = np.lexsort((rng.random(len(who)), ~first[item], who))
    start = np.searchsorted(who[order], np.arange(data.num_annotators + 1))
    parts = [np.zeros((3, 0), np.int64)]
    size = np.zeros(data.num_annotators, np.int64)
    for code, (begin, end) in enumerate(pairwise(start.tolist())):
        rows = order[begin : min(end, begin + most)]
        size[code] = len(rows)
        one, other = (rows[side] for side in np.triu_indices(len(rows), 1))
        apart = (level[one] != level[other]) & (item[one] != item[other])
        one, other = one[apart], other[apart]
        above, below = np.where(level[one] > level[other], (one, other), (other, one))
        parts.append(np.stack([np.full(len(above), code), item[above], item[below]]))
    annotator, better, worse = np.concatenate(parts, axis=1)
    number = np.ones(len(annotator))
    return StatedOrders(annotator, better, worse, number, annotator, _share(size, size))

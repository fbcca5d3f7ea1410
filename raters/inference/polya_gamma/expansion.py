r"""Log-likelihoods of draws near a mode, by its expansion to the fourth order.

With logits that are sums of at most two entries of a block, :math:`x_m = o_m + \sum_s w_{ms}
b_{e_{ms}}`, the terms of third and fourth order in the deviations δ from the mode,

.. math:: \sum_m \left[\tfrac{1}{6} f'''_m (w_{m1} \delta_a + w_{m2} \delta_b)^3
    + \tfrac{1}{24} f''''_m (w_{m1} \delta_a + w_{m2} \delta_b)^4\right],

are products of matrices with an entry for each pair of entries, so that a draw costs as much as a
few products with the precision, whatever the number of rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import expit

from raters.inference.arrays import Entries, EntryDraws, Matrix, PerDraw
from raters.inference.polya_gamma import sweep
from raters.inference.polya_gamma.conditionals import Dense
from raters.inference.polya_gamma.rows import Rows, rows_of
from raters.model import Values
from raters.program import placing

_SLOTS = 2


class Expansion(NamedTuple):
    """Expansion of a log-likelihood around a point, but for its constant."""

    slope: Entries
    precision: Matrix
    cube: Entries
    fourth: Entries
    two_one: Float[np.ndarray, "entry other"]
    three_one: Float[np.ndarray, "entry other"]
    two_two: Float[np.ndarray, "entry other"]

    @classmethod
    def of(cls, plan: sweep.Plan, data: Any, mode: Values, normal: Dense) -> Expansion | None:
        """Return the expansion at the mode; None where the logits are not sums of two entries of
        one block."""
        if len(plan.blocks) > 1 or plan.of_sets or plan.reaching or plan.blocks[0].kind != "rows":
            return None
        if normal.prior.across is not None:
            return None
        size, block = normal.size, plan.blocks[0]
        single = np.zeros((2, size))
        double = np.zeros((3, size, size), np.float32)
        for piece in placing.pieces(data):
            rows = rows_of(plan.model, piece, mode, block)
            if rows.entry is None or len(rows.entry) > _SLOTS or rows.shift is not None:
                return None
            _add(rows, single, double)
        current, prior = block.current(mode), normal.prior
        precision = normal.precision()
        slope = normal.shift - precision @ current - prior.precision * (prior.mean - current)
        precision[np.diag_indices(size)] -= prior.precision
        return cls(slope, precision.astype(np.float32), *single, *double)

    def at(self, apart: EntryDraws) -> PerDraw:
        """Return the log-likelihood at deviations from the point, less that at the point."""
        narrow = np.ascontiguousarray(apart.T, np.float32)
        square = narrow * narrow
        pairs = narrow * (self.three_one @ narrow)
        pairs += self.two_one @ narrow
        pairs += self.two_two @ square
        pairs += self.cube.astype(np.float32)[:, None] * narrow
        pairs += self.fourth.astype(np.float32)[:, None] * square
        third_on = np.einsum("ed,ed->d", pairs, square, dtype=np.float64)
        second = np.einsum("ed,ed->d", self.precision @ narrow, narrow, dtype=np.float64)
        return np.asarray(apart @ self.slope - second / 2 + third_on)


def _add(rows: Rows, single: np.ndarray, double: np.ndarray) -> None:
    """Add the derivatives of third and fourth order of some rows."""
    assert rows.entry is not None
    entry, weight = np.asarray(rows.entry), np.asarray(rows.weight)
    prob = expit(np.asarray(rows.logits))
    variance = prob * (1 - prob)
    third = -np.asarray(rows.votes) * variance
    third, fourth = third * (1 - 2 * prob) / 6, third * (1 - 6 * variance) / 24
    size = single.shape[1]
    for place, own in zip(entry, weight, strict=True):
        single[0] += np.bincount(place, third * own**3, size)
        single[1] += np.bincount(place, fourth * own**4, size)
    if len(entry) < _SLOTS:
        return
    cell = entry[0].astype(np.int64) * size + entry[1]
    one, other = weight

    def summed(value: np.ndarray) -> np.ndarray:
        return np.bincount(cell, value, size**2).reshape(size, size)

    double[0] += summed(3 * third * one**2 * other) + summed(3 * third * one * other**2).T
    double[1] += summed(4 * fourth * one**3 * other) + summed(4 * fourth * one * other**3).T
    double[2] += summed(6 * fourth * one**2 * other**2)

"""Gaussian full conditional of a block whose entries fall into parts that share no logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
from jaxtyping import Float, Int

from raters.inference.arrays import Places, Rng
from raters.inference.polya_gamma import conditionals

# Components with more entries than this are solved by conjugate gradients: at 60 of 200 entries a
# sweep takes 32 ms so, and 103 ms with dense precisions; at 20 entries dense ones are faster.
LIMIT = 48

Precisions = Float[np.ndarray, "part entry entry"]
Vectors = Float[np.ndarray, "part entry"]
Solve = Callable[[Precisions, Vectors], Vectors]


class Division(NamedTuple):
    """Part of each entry, its place in the part, and the number of entries of each part."""

    part: Places
    place: Places
    size: Int[np.ndarray, " part"]


class ByComponent(conditionals.Conditional):
    """Conditional of a block that falls into parts, such as the tastes of different annotators."""

    def __init__(self, prior: conditionals.Gaussian) -> None:
        super().__init__(prior)
        if np.isfinite(prior.low).any() or np.isfinite(prior.high).any():
            raise NotImplementedError(conditionals.BOUNDED)
        self.rows: list[conditionals.Weighted] = []

    def add(self, rows: conditionals.Weighted) -> None:
        super().add(rows)
        self.rows.append(rows)

    def product(self, entries: np.ndarray) -> np.ndarray:
        whole = conditionals.Sparse(self.prior, keep_rows=False)
        for rows in self.rows:
            whole.add(rows)
        return whole.product(entries)

    def mode(self, current: np.ndarray) -> np.ndarray:
        return self._by_part(current, _solved, lambda whole: whole.mode(current))

    def draw(self, rng: Rng, current: np.ndarray) -> np.ndarray:
        def draws(precision: Precisions, shift: Vectors) -> Vectors:
            # P⁻¹(shift + L z) has the mean P⁻¹ shift and the covariance P⁻¹, where L Lᵀ = P.
            factor, noise = np.linalg.cholesky(precision), rng.standard_normal(shift.shape)
            return _solved(precision, shift + _times(factor, noise))

        return self._by_part(current, draws, lambda whole: whole.draw(rng, current))

    def _by_part(
        self,
        current: np.ndarray,
        solve: Solve,
        solve_whole: Callable[[conditionals.Sparse], np.ndarray],
    ) -> np.ndarray:
        """Update the entries of each part."""
        division = self._division()
        entries, size = np.array(current), division.size
        large = (size > LIMIT)[division.part]
        if large.any():
            whole = conditionals.Sparse(self.prior, keep_rows=True)
            for rows in self.rows:
                whole.add(rows.part(large[rows.entry[0]]))
            entries[large] = solve_whole(whole)[large]
        filled = np.array([_filled(each) for each in range(LIMIT + 1)])
        width = np.where(size <= LIMIT, filled[np.minimum(size, LIMIT)], 0)
        for each in np.unique(width[width > 0]):
            # ByComponent are filled up to this width, with entries that have a precision of 1.
            number = np.where(width == each, np.cumsum(width == each) - 1, -1)[division.part]
            own = np.flatnonzero(number >= 0)
            where = number[own], division.place[own]
            shape = (int((width == each).sum()), int(each))
            diagonal, shift = np.ones(shape), np.zeros(shape)
            diagonal[where], shift[where] = self.diagonal[own], self.shift[own]
            precision = self._across(number, division.place, shape)
            # Under a nearly flat prior the rows leave the shift of a part open, beyond rounding.
            precision[:, np.arange(each), np.arange(each)] += diagonal * (1 + 1e-12)
            entries[own] = solve(precision, shift)[where]
        return entries

    def _division(self) -> Division:
        """Return the parts that the rows connect."""
        others = [other for rows in self.rows for other in rows.entry[1:]]
        firsts = [rows.entry[0] for rows in self.rows for _ in rows.entry[1:]]
        first, other = np.concatenate(firsts), np.concatenate(others)
        shape = (self.size, self.size)
        graph = scipy.sparse.coo_array((np.ones(len(first), bool), (first, other)), shape=shape)
        _, part = scipy.sparse.csgraph.connected_components(graph, directed=False)
        size = np.bincount(part)
        order = np.argsort(part, kind="stable")
        place = np.empty(self.size, int)
        place[order] = np.arange(self.size) - np.repeat(np.cumsum(size) - size, size)
        return Division(part, place, size)

    def _across(self, number: Places, place: Places, shape: tuple[int, int]) -> Precisions:
        """Return the precisions off the diagonal of some parts."""
        parts, width = shape
        precision = np.zeros((parts, width, width))
        for every in self.rows:
            rows = every.part(number[every.entry[0]] >= 0)
            for first in range(1, len(rows.entry)):
                for second in range(first):
                    one, other = rows.entry[first], rows.entry[second]
                    cell = (number[one] * width + place[one]) * width + place[other]
                    value = rows.weight[first] * rows.weight[second] * rows.omega
                    half = np.bincount(cell, value, precision.size).reshape(precision.shape)
                    precision += half + half.transpose(0, 2, 1)
        return precision


def _solved(precision: Precisions, right: Vectors) -> Vectors:
    """Return the solution of each linear system."""
    if precision.shape[-1] == 1:
        return np.asarray(right / precision[..., 0])
    return np.asarray(np.linalg.solve(precision, right[..., None])[..., 0])


def _times(matrix: Precisions, vector: Vectors) -> Vectors:
    """Return the product of each matrix and vector."""
    return np.asarray((matrix @ vector[..., None])[..., 0])


def _filled(size: int) -> int:
    """Return the size to which parts of this size are filled up: a power of 2, or ¾ of one."""
    power = 1 << max(size - 1, 0).bit_length()
    return power * 3 // 4 if power >= 4 and size <= power * 3 // 4 else power

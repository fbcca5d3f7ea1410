"""Proposals of utilities at a mode of their conditional, which depend on no draw."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
from jaxtyping import Float

from raters.inference.arrays import Entries, Matrix, Points, Rng
from raters.inference.polya_gamma.set_likelihood import BestWorst, Likelihood, Plain, Separate

# Degrees of freedom: of few coefficients the tails matter more than the centre (measured with 9
# coefficients, 10 items and 87 items).
_FEW, _HEAVY, _LIGHT = 10, 8, 30
# Proposals of a draw: more where they cost little beside the rest of a sweep, as on equal sets put
# together, and of many entries, of which fewer are taken (28 % for 87 items, 90 % for 10).
_MANY, _TRIES, _CHEAP_TRIES, _MORE_TRIES = 20, 2, 4, 16
# Proposals are made for one sweep, then for twice as many each time: for so many at most, and with
# so many utilities.
_MOST_SWEEPS, _MOST_UTILITIES = 64, 1_000_000


class Tries(NamedTuple):
    """Proposals of one draw."""

    points: Float[np.ndarray, "entry try"]
    log_ratio: Float[np.ndarray, "*entry try"]
    level: Float[np.ndarray, "*entry try"]


class Proposals:
    """A t distribution at the mode of a conditional, and draws of it that no sweep has used."""

    def __init__(self, mode: Entries, factor: Matrix, likelihood: Likelihood) -> None:
        self.mode, self.factor, self.likelihood = mode, factor, likelihood
        self._freedom = _HEAVY if len(mode) < _FEW else _LIGHT
        few = _CHEAP_TRIES if isinstance(likelihood, (Plain, BestWorst)) else _TRIES
        self._tries = few if len(mode) < _MANY else _MORE_TRIES
        self._sweeps = 0
        self._ahead: list[Tries] = []

    def take(self, rng: Rng) -> Tries:
        """Return the proposals of a sweep."""
        if not self._ahead:
            utilities = self._tries * (len(self.mode) + self.likelihood.num_cells)
            most = min(2 * self._sweeps, _MOST_SWEEPS, _MOST_UTILITIES // utilities)
            self._sweeps = max(1, most)
            points, level = self._drawn(rng, self._sweeps * self._tries)
            log_ratio = self._log_likelihood(points) - self.log_density(points)
            firsts = range(0, points.shape[1], self._tries)
            parts = (np.s_[..., first : first + self._tries] for first in firsts)
            self._ahead = [Tries(points[at], log_ratio[at], level[at]) for at in parts]
        return self._ahead.pop()

    def log_density(self, points: Points) -> np.ndarray:
        """Return the log density at some points, but for a constant."""
        from_mode = self.factor.T @ (points - self.mode[:, None])
        return _log_t((from_mode**2).sum(0), self._freedom, len(self.mode))

    def _drawn(self, rng: Rng, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return points, and the levels of each."""
        normal = rng.standard_normal((len(self.mode), number))
        wide = np.sqrt(rng.chisquare(self._freedom, number) / self._freedom)
        apart = scipy.linalg.solve_triangular(
            self.factor, normal / wide, lower=True, trans="T", check_finite=False
        )
        return self.mode[:, None] + apart, np.log(rng.uniform(size=number))

    def _log_likelihood(self, points: Points) -> np.ndarray:
        return self.likelihood.at(points)


class SeparateProposals(Proposals):
    """Proposals of entries that share no set: each is drawn by itself."""

    likelihood: Separate

    def __init__(self, mode: Entries, factor: Entries, likelihood: Separate) -> None:
        super().__init__(mode, factor, likelihood)
        self._freedom, self._tries = _HEAVY, _TRIES

    def log_density(self, points: Points) -> np.ndarray:
        from_mode = (points - self.mode[:, None]) * self.factor[:, None]
        return _log_t(from_mode**2, self._freedom, 1)

    def _drawn(self, rng: Rng, number: int) -> tuple[np.ndarray, np.ndarray]:
        shape = len(self.mode), number
        wide = np.sqrt(rng.chisquare(self._freedom, shape) / self._freedom)
        apart = rng.standard_normal(shape) / wide / self.factor[:, None]
        return self.mode[:, None] + apart, np.log(rng.uniform(size=shape))

    def _log_likelihood(self, points: Points) -> np.ndarray:
        return self.likelihood.of_each(points)


def _log_t(square: np.ndarray, freedom: int, size: int) -> np.ndarray:
    """Return the log density of a t distribution, but for a constant, at the square of a distance
    from its centre."""
    return np.asarray(-(freedom + size) / 2 * np.log1p(square / freedom))

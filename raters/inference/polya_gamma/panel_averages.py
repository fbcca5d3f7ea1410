r"""Likelihood of choices with everybody's own vectors integrated out, by importance sampling.

.. math::

    p(y_k \mid \theta) \approx \frac1R \sum_r
        \frac{p(y_k \mid b_{kr}, \theta) \, N(b_{kr}; 0, \Sigma)}{q_k(b_{kr})}

The mixture :math:`q_k` is of a t distribution at each judge's own posterior and of the prior
(Hesterberg 1995); the points are of randomly shifted Sobol sequences, whose differences tell the
error.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.special
from jaxtyping import Float, Int

from raters.inference.arrays import Rng
from raters.inference.polya_gamma.panel_gibbs import Reference, at_modes, log_t, normals, referred
from raters.inference.polya_gamma.panels import Panel, panel_of
from raters.model import Values
from raters.program import Program

# Shifts, and degrees of freedom of the t distribution, which has half of the points. Judges who
# always choose alike have a prior cut off on one side, which it does not reach: with a ninth of
# the points from the prior, the sum over 752 people was off by 30 nats, and its error said 2.
SHIFTS, _FREEDOM = 4, 20
# Error of the sum over judges, in nats, above which there are more points, and most of them.
_WANTED, _LARGEST = 0.35, 1024
# Utility of what is not offered, in single precision.
_LOWEST = -1e30
# Bits of the points, which shifts flip.
_BITS = 30
_CELLS = float(2**_BITS)
FEW, SOME, POINTS, MANY = 8, 32, 64, 128


class Points(NamedTuple):
    """Points from which those of each judge are made."""

    apart: Float[np.ndarray, "judge shift point entry"]
    white: Float[np.ndarray, "judge shift point entry"]


def points_of(judges: int, size: int, seed: int, per_shift: int = POINTS) -> Points:
    """Return the points of each judge."""
    from scipy.stats import qmc

    rng = np.random.default_rng(seed)

    def shifted(number: int, axes: int) -> np.ndarray:
        nets = [qmc.Sobol(axes, scramble=True, rng=rng).random(number) for _ in range(SHIFTS)]
        base = (np.stack(nets) * _CELLS).astype(np.uint32)
        shift = rng.integers(2**_BITS, size=(judges, SHIFTS, 1, axes), dtype=np.uint32)
        return np.asarray(((base ^ shift) + 0.5) / _CELLS)

    unit = shifted(per_shift, size + 1)
    wide = np.sqrt(2 * scipy.special.gammaincinv(_FREEDOM / 2, unit[..., size:]) / _FREEDOM)
    white = scipy.special.ndtri(shifted(per_shift, size))
    return Points(scipy.special.ndtri(unit[..., :size]) / wide, white)


class Drawn(NamedTuple):
    """Vectors at which the likelihood is averaged."""

    vectors: Float[np.ndarray, "judge point entry"]
    utility: Float[np.ndarray, "place set point"]
    log_density: Float[np.ndarray, "judge point"]


def drawn(
    panel: Panel, reference: Reference, of_all: np.ndarray, factor: np.ndarray, points: Points
) -> Drawn:
    """Return vectors from the proposals of each judge."""
    own = normals(panel, reference, of_all, factor)
    near = own.mean[:, None, None] + np.matmul(points.apart, own.root.transpose(0, 2, 1)[:, None])
    vectors = np.concatenate([near, points.white @ factor.T], axis=2)
    vectors = vectors.reshape(len(vectors), -1, panel.num_own)
    of_sets = vectors.astype(np.float32)[panel.judge].transpose(0, 2, 1)
    utility = np.matmul(panel.own.astype(np.float32)[:, :, None], of_sets)[:, :, 0]
    square = (np.matmul(vectors - own.mean[:, None], own.factor) ** 2).sum(2)
    density = np.logaddexp(
        _log_t_density(square, panel.num_own) + own.log_volume[:, None], _log_prior(vectors, factor)
    )
    return Drawn(vectors, utility, density - np.log(2))


def _log_t_density(square: np.ndarray, size: int) -> np.ndarray:
    """Return the log density of a t distribution at the square of a distance from its centre."""
    half = (_FREEDOM + size) / 2
    constant = scipy.special.gammaln(half) - scipy.special.gammaln(_FREEDOM / 2)
    constant -= size / 2 * np.log(_FREEDOM * np.pi)
    return np.asarray(constant + log_t(square, size, _FREEDOM))


def _log_prior(vectors: Float[np.ndarray, "judge point entry"], factor: np.ndarray) -> np.ndarray:
    """Return the log density of the vectors under their prior."""
    square = ((vectors @ np.linalg.inv(factor).T) ** 2).sum(2)
    constant = len(factor) / 2 * np.log(2 * np.pi) + np.log(np.abs(factor.diagonal())).sum()
    return np.asarray(-square / 2 - constant)


class Averages(NamedTuple):
    """Integrated likelihoods."""

    log_mean: Float[np.ndarray, " judge"]
    error: Float[np.ndarray, " judge"]
    weight: Float[np.ndarray, "judge point"]

    @property
    def log_likelihood(self) -> Float[np.ndarray, " judge"]:
        """Logarithms of the likelihoods without their bias."""
        return np.asarray(self.log_mean + self.error**2 / 2)

    @property
    def total_error(self) -> float:
        """Standard error of the sum over judges."""
        return float(np.sqrt((self.error**2).sum()))


def averaged(panel: Panel, at: Drawn, of_all: np.ndarray, factor: np.ndarray) -> Averages:
    """Return the likelihood of each judge's choices with their vector integrated out."""
    return _averaged(panel, at, factor, _likelihoods(panel, at, of_all)[0])


def averaged_choices(
    panel: Panel, at: Drawn, of_all: np.ndarray, factor: np.ndarray
) -> tuple[Averages, Float[np.ndarray, "place set"]]:
    """Return the same, and the number of choices of each place that are expected, averaged over
    the judge's own posterior."""
    log_likelihood, exps, total = _likelihoods(panel, at, of_all)
    own = _averaged(panel, at, factor, log_likelihood)
    share = own.weight[panel.judge] * panel.number[:, None] / total
    expected = np.matmul(exps.transpose(1, 0, 2), share.astype(np.float32)[:, :, None])
    return own, np.asarray(expected[:, :, 0].T, np.float64)


def _likelihoods(
    panel: Panel, at: Drawn, of_all: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the log-likelihoods of each judge's choices at the points, e to the utilities, and its
    sums over each set, in single precision: the first are off by a thousandth of a nat."""
    exps = np.maximum(of_all, _LOWEST).astype(np.float32)[:, :, None] + at.utility
    exps -= exps.max(0)
    taken = np.matmul(panel.chosen.T.astype(np.float32)[:, None], exps.transpose(1, 0, 2))[:, 0]
    np.exp(exps, out=exps)
    total = exps.sum(0)
    number = panel.number.astype(np.float32)[:, None]
    return panel.by_judge(taken - number * np.log(total)), exps, total


def _averaged(
    panel: Panel, at: Drawn, factor: np.ndarray, log_likelihood: Float[np.ndarray, "judge point"]
) -> Averages:
    log_weight = log_likelihood - at.log_density + _log_prior(at.vectors, factor)
    top = log_weight.max(1, keepdims=True)
    weight = np.exp(log_weight - top)
    mean = weight.mean(1)
    of_shifts = weight.reshape(len(weight), SHIFTS, -1).mean(2)
    error = of_shifts.std(1, ddof=1) / np.sqrt(SHIFTS) / mean
    return Averages(np.log(mean) + top[:, 0], error, weight / weight.sum(1, keepdims=True))


def log_likelihoods(
    program: Program[Any], draws: Values
) -> tuple[Float[np.ndarray, "draw judge"], float]:
    """Log-likelihood of each judge's choices under draws of the sites, their own vectors integrated
    out."""
    with jax.enable_x64(True):
        number = len(next(iter(draws.values())))
        at = [{name: value[place] for name, value in draws.items()} for place in range(number)]
        panel = panel_of(program, at[0])
        mean = {name: value.mean(0) for name, value in draws.items()}
        reference, points = _suited(program, panel, mean)
        rows, errors = [], []
        for values in at:
            found = _averaged_at(program, panel, reference, values, points)
            rows.append(found.log_likelihood)
            errors.append(found.total_error)
    return np.stack(rows), float(np.median(errors))


def _averaged_at(
    program: Program[Any], panel: Panel, reference: Reference, values: Values, points: Points
) -> Averages:
    factor = panel.factor_of(program, program.data.first_unit(), values)
    of_all = panel.shared_utilities(panel.shared_of(values))
    return averaged(panel, drawn(panel, reference, of_all, factor, points), of_all, factor)


def _suited(program: Program[Any], panel: Panel, values: Values) -> tuple[Reference, Points]:
    """Return the expansion of the likelihood that suits some values, and as many points as the
    error asks for."""
    reference = at_modes(program, panel, values)
    factor = panel.factor_of(program, program.data.first_unit(), values)
    of_all = panel.shared_utilities(panel.shared_of(values))
    pilot = drawn(panel, reference, of_all, factor, points_of(panel.num_judges, panel.num_own, 1))
    weight = averaged(panel, pilot, of_all, factor).weight
    own = np.einsum("kr,krp->kp", weight, pilot.vectors)
    reference, number = referred(panel, own, reference.both), POINTS
    while True:
        points = points_of(panel.num_judges, panel.num_own, 0, number)
        found = _averaged_at(program, panel, reference, values, points)
        if found.total_error < _WANTED or number >= _LARGEST:
            return reference, points
        number *= 2


def places_drawn(weight: Float[np.ndarray, "judge point"], rng: Rng) -> Int[np.ndarray, " judge"]:
    """Return a point of each judge, drawn in proportion to the weights."""
    level = rng.uniform(size=(len(weight), 1))
    places: np.ndarray = (weight.cumsum(1) < level).sum(1)
    return np.asarray(np.minimum(places, weight.shape[1] - 1))

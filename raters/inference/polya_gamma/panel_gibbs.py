"""Gibbs sampling of choices in which each judge has a vector of their own.

Vectors are drawn by independence Metropolis steps; shared sites and scales given the vectors in
units of their scales, and given the vectors: both forms are interwoven (Yu and Meng 2011).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from raters.inference.arrays import Entries, Matrix, Rng, Sites, Vectors
from raters.inference.polya_gamma import augmentation, line
from raters.inference.polya_gamma.panels import Panel, log_t
from raters.inference.polya_gamma.rows import block_prior
from raters.model import Values
from raters.program import log_prior

# Proposals of each judge's vector in a sweep, of the shared sites, and the degrees of freedom.
_TRIES, _SHARED_TRIES, _FREEDOM = 2, 2, 8
# Sweeps of warm-up after which points of reference are found anew.
_ANEW = (10, 25, 60, 140, 300, 700, 1500)
# Steps of EM from the start to the first points.
_CLIMBS = 12
# Longest step of Newton's method, in standard deviations under the prior, the length of the last
# one, and the largest number of them.
_LONGEST, _NEAR, _STEPS = 3.0, 1e-2, 30
# Of the trace of a precision, what its rounded entries are off by at most.
_ROUNDING = 1e-13


class Reference(NamedTuple):
    """Points at which the likelihood is expanded."""

    own: Vectors
    curvature: Float[np.ndarray, "judge entry entry"]
    both: Entries


class Normals(NamedTuple):
    """Normal distributions of the vectors."""

    mean: Vectors
    root: Float[np.ndarray, "judge entry entry"]
    factor: Float[np.ndarray, "judge entry entry"]
    log_volume: Float[np.ndarray, " judge"]


def normals(panel: Panel, reference: Reference, of_all: np.ndarray, factor: Matrix) -> Normals:
    """Return normal approximations of the vectors given all else."""
    expected = panel.expected(of_all + panel.own_utilities(reference.own))
    shift = panel.slope(expected) + np.matmul(
        reference.curvature, reference.own[:, :, None]
    ).squeeze(2)
    # In units of the prior: with correlations near 1, its precision is too large for the sum of
    # both to be a positive one in rounded numbers.
    half = np.tensordot(reference.curvature, factor, 1)
    precision = np.tensordot(half.transpose(0, 2, 1), factor, 1)
    least = 1 + _ROUNDING * precision.trace(axis1=1, axis2=2)
    white = np.linalg.cholesky(precision + least[:, None, None] * np.eye(panel.num_own))
    root = np.tensordot(np.linalg.inv(white), factor.T, 1).transpose(0, 2, 1)
    along = np.matmul(root.transpose(0, 2, 1), shift[:, :, None])
    log_volume = np.log(white.diagonal(axis1=1, axis2=2)).sum(1)
    log_volume -= np.log(np.abs(factor.diagonal())).sum()
    whitening = np.tensordot(white.transpose(0, 2, 1), np.linalg.inv(factor), 1).transpose(0, 2, 1)
    return Normals(np.matmul(root, along)[:, :, 0], root, whitening, log_volume)


def draw_own(
    panel: Panel, at: Reference, of_all: np.ndarray, factor: Matrix, current: Vectors, rng: Rng
) -> Vectors:
    """Draw the vectors of all judges, given all else."""
    approximate, size = normals(panel, at, of_all, factor), panel.num_own
    inverse = np.linalg.inv(factor)
    shape = (len(current), _TRIES)
    wide = np.sqrt(rng.chisquare(_FREEDOM, shape) / _FREEDOM)
    apart = rng.standard_normal((*shape, size)) / wide[:, :, None]
    points = approximate.mean[:, None] + np.matmul(apart, approximate.root.transpose(0, 2, 1))
    points = np.concatenate([current[:, None], points], axis=1)
    from_mean = points - approximate.mean[:, None]
    square = (np.matmul(from_mean, approximate.factor) ** 2).sum(2)
    own = np.matmul(panel.own[:, :, None], points[panel.judge].transpose(0, 2, 1))[:, :, 0]
    log_ratio = panel.log_likelihood(of_all[:, :, None] + own)
    log_ratio -= ((points @ inverse.T) ** 2).sum(2) / 2 + log_t(square, size, _FREEDOM)
    place, here = np.zeros(len(current), int), log_ratio[:, 0]
    for number in range(1, _TRIES + 1):
        there = log_ratio[:, number]
        taken = np.log(rng.uniform(size=len(current))) < there - here
        place, here = np.where(taken, number, place), np.where(taken, there, here)
    return np.asarray(points[np.arange(len(current)), place])


def _of_both(
    panel: Panel, design: np.ndarray, prior: Any, at: np.ndarray
) -> tuple[Entries, Matrix]:
    """Return the mean of a normal approximation at a point of reference, and its factor."""
    expected = panel.expected(panel.offset + design @ at)
    slope = np.tensordot(panel.chosen - expected, design, 2)
    precision = panel.curvature_of(design, expected) + prior.matrix()
    slope = slope - prior.times(at - prior.mean)
    mean = at + np.linalg.solve(precision, slope)
    return mean, np.linalg.cholesky(precision)


def draw_both(panel: Panel, reference: Reference, prior: Any, values: Values, rng: Rng) -> Values:
    """Draw the shared sites and the scales, with the vectors in units of their scales fixed."""
    units = panel.own_of(values) / panel.scales_of(values)
    of_units = panel.own * units[panel.judge]
    design = np.concatenate([panel.shared, of_units], axis=2)
    mean, factor = _of_both(panel, design, prior, reference.both)
    number, size = panel.shared.shape[2], len(mean)
    shape = size, _SHARED_TRIES
    wide = np.sqrt(rng.chisquare(_FREEDOM, shape[1]) / _FREEDOM)
    apart = np.linalg.solve(factor.T, rng.standard_normal(shape) / wide)
    points = np.concatenate([panel.both_of(values)[:, None], mean[:, None] + apart], axis=1)
    square = ((factor.T @ (points - mean[:, None])) ** 2).sum(0)
    utility = panel.offset[:, :, None] + design @ points
    log_ratio = panel.log_likelihood(utility).sum(0) - log_t(square, size, _FREEDOM)
    log_ratio -= prior.square(points - prior.mean[:, None]) / 2
    log_ratio = np.where((points[number:] > 0).all(0), log_ratio, -np.inf)
    place = 0
    for other in range(1, _SHARED_TRIES + 1):
        if np.log(rng.uniform()) < log_ratio[other] - log_ratio[place]:
            place = other
    shared, scales = np.split(points[:, place], [number])
    return panel.put(values, shared=shared, scales=scales, own=units * scales)


def transfer(panel: Panel, factor: np.ndarray, values: Values, rng: Rng) -> Values:
    """Draw what is added to everybody's vector from its conditional, with the sums fixed."""
    entries = np.flatnonzero(panel.common.any(0))
    if not len(entries):
        return values
    shared, own, prior = panel.shared_of(values), panel.own_of(values), panel.prior
    common, inverse = panel.common[:, entries], np.linalg.inv(factor)
    precision = inverse.T @ inverse
    joint = common.T @ prior.matrix() @ common + len(own) * precision[np.ix_(entries, entries)]
    shift = (own @ precision).sum(0)[entries] - common.T @ prior.times(shared - prior.mean)
    root = np.linalg.cholesky(joint)
    moved = np.linalg.solve(root.T, rng.standard_normal(len(entries)))
    moved += np.linalg.solve(joint, shift)
    own = own.copy()
    own[:, entries] -= moved
    return panel.put(values, shared=shared + common @ moved, own=own)


def hyper(panel: Panel, values: Values, rng: Rng) -> Values:
    """Draw the scales and the correlations by slices, with the vectors fixed."""
    names, program = (*panel.names.scales, *panel.names.hyper), panel.program
    given = panel.first, values, augmentation.key_of(rng)
    drawn = _hyper(program.model, program.supports, names, *given)
    return values | {name: np.asarray(value) for name, value in drawn.items()}


@partial(jax.jit, static_argnums=(0, 1, 2))
def _hyper(model: Any, supports: Any, names: Sites, row: Any, values: Values, key: Any) -> Values:
    values = {name: jax.numpy.asarray(value) for name, value in values.items()}
    values = line.visit(partial(log_prior, model, row), supports, (), names, values, key)
    return {name: values[name] for name in names}


class Sampler:
    """A chain."""

    def __init__(self, panel: Panel, values: Values) -> None:
        self.panel, both = panel, (*panel.names.shared, *panel.names.scales)
        prior = block_prior(panel.program.model, panel.first, values, both)
        self.prior = jax.tree.map(np.asarray, prior)
        self.values, self.reference = climbed(panel, values)
        self._sum: dict[str, np.ndarray] = {}
        self._number = self._done = 0

    def compile(self) -> None:
        """Compile what sweeps run."""
        hyper(self.panel, self.values, np.random.default_rng(0))

    def sweep(self, rng: Rng) -> Values:
        """Run one sweep, and return the values."""
        panel, values = self.panel, self.values
        own = draw_own(panel, self.reference, *panel.given(values), panel.own_of(values), rng)
        values = panel.put(values, own=own)
        values = draw_both(panel, self.reference, self.prior, values, rng)
        values = transfer(panel, panel.given(values)[1], values, rng)
        self.values = hyper(panel, values, rng)
        return self.values

    def run(self, rng: Rng, warmup: int, number: int) -> tuple[Values, Values]:
        """Run so many sweeps, of which the first may be of warm-up; return the values of each."""
        kept = []
        for _ in range(number):
            kept.append(self.sweep(rng))
            if self._done < warmup:
                self.warm(self._done)
            self._done += 1
        return {name: np.stack([values[name] for values in kept]) for name in kept[0]}, {}

    def warm(self, sweep: int) -> None:
        """Note a sweep of warm-up, and find the points of reference anew from time to time."""
        panel = self.panel
        state = {"own": panel.own_of(self.values), "both": panel.both_of(self.values)}
        self._sum = {name: self._sum.get(name, 0.0) + value for name, value in state.items()}
        self._number += 1
        if sweep in _ANEW:
            own, both = (self._sum[name] / self._number for name in ("own", "both"))
            self.reference = referred(panel, own, both)
            self._sum, self._number = {}, 0


def referred(panel: Panel, own: np.ndarray, both: np.ndarray) -> Reference:
    """Return the expansion of the likelihood at a point."""
    of_all = panel.shared_utilities(both[: panel.shared.shape[2]])
    expected = panel.expected(of_all + panel.own_utilities(own))
    return Reference(own, panel.curvature(expected), both)


def _stepped(own: np.ndarray, mean: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Return vectors moved to the means, but no farther than a few standard deviations."""
    step = np.linalg.solve(factor, (mean - own).T)
    length = np.sqrt((step**2).sum(0))
    return own + (factor @ (step * np.minimum(1, _LONGEST / np.maximum(length, 1e-12)))).T


def at_modes(panel: Panel, values: Values) -> Reference:
    """Return the expansion of the likelihood at the mode of each judge's vector."""
    own, both = panel.own_of(values), panel.both_of(values)
    of_all, factor = panel.given(values)
    for _ in range(_STEPS):
        mean = normals(panel, referred(panel, own, both), of_all, factor).mean
        before, own = own, _stepped(own, mean, factor)
        if np.max(np.abs(np.linalg.solve(factor, (own - before).T)), initial=0.0) < _NEAR:
            break
    return referred(panel, own, both)


def climbed(panel: Panel, values: Values) -> tuple[Values, Reference]:
    """Go from a start to a point with high density by steps of EM in Laplace's approximation."""
    shared, own = panel.shared_of(values), panel.own_of(values)
    for _ in range(_CLIMBS):
        at, (of_all, factor) = referred(panel, own, panel.both_of(values)), panel.given(values)
        approximate = normals(panel, at, of_all, factor)
        own = _stepped(own, approximate.mean, factor)
        offset = panel.own_utilities(own)
        expected = panel.expected(panel.shared_utilities(shared) + offset)
        slope = np.tensordot(panel.chosen - expected, panel.shared, 2)
        slope = slope - panel.prior.times(shared - panel.prior.mean)
        precision = panel.curvature_of(panel.shared, expected) + panel.prior.matrix()
        if len(shared):
            shared = shared + np.clip(np.linalg.solve(precision, slope), -_LONGEST, _LONGEST)
        mean = own.mean(0) * panel.common.any(0)
        shared, own = shared + panel.common @ mean, own - mean
        covariance = np.matmul(approximate.root, approximate.root.transpose(0, 2, 1))
        scales = np.sqrt((own**2 + covariance.diagonal(axis1=1, axis2=2)).mean(0))
        values = panel.put(values, shared=shared, own=own, scales=scales)
    return values, referred(panel, own, panel.both_of(values))

r"""Draws around a mean-field approximation, with spreads corrected by linear response.

With the bound F as a function of the means m of all entries, their covariances C held fixed, the
means answer a small change of the log density by :math:`(-\nabla^2_m F)^{-1}`, which would be the
covariance if the approximation were exact (Giordano, Broderick and Jordan 2018). Entries of
different blocks are correlated in it, and it has no part of the uncertainty of ω taken off.
"""

from __future__ import annotations

from functools import partial

import jax
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float
from numpyro.distributions.transforms import biject_to
from scipy.special import log_ndtr, logsumexp, ndtri_exp

from raters.inference.arrays import EntryDraws, Matrix, PerDraw, Rng
from raters.inference.polya_gamma import averages, bilinear
from raters.inference.polya_gamma.bilinear import Covariances, Forms, Owners
from raters.inference.polya_gamma.laplace import log_crossing, tangent_of
from raters.inference.polya_gamma.mean_field import MeanField, State, bound_of_rows
from raters.model import Values
from raters.program import likelihood_of, placing, prior_of

# Newton steps to the place of a truncated normal of a given mean, and how far away it may be.
_STEPS, _FAR = 40, 30.0
# Least weight of a component, relative to the largest.
_LEAST = 0.1


def precision(field: MeanField, state: State) -> Matrix:
    """Return the precision of the means of all entries by linear response."""
    owners = field.setting.owners
    values = field.values(state)
    sizes = [len(normal.mean) for normal in state.normals]
    begins = np.concatenate([[0], np.cumsum(sizes)])
    full = np.zeros((begins[-1], begins[-1]))
    votes = field.votes_at(state)
    curvatures = _curvatures(
        owners,
        field.forms,
        tuple(normal.mean for normal in state.normals),
        tuple(normal.spread for normal in state.normals),
        votes,
    )
    for (one, other), value in curvatures.items():
        first, second = owners.of_slot[one], owners.of_slot[other]
        shape = (sizes[first], sizes[second])
        cell = field.entry[one].astype(np.int64) * shape[1] + field.entry[other]
        half = np.bincount(cell, np.asarray(value), shape[0] * shape[1]).reshape(shape)
        row, column = (slice(begins[block], begins[block + 1]) for block in (first, second))
        full[row, column] -= half
        if one != other:
            full[column, row] -= half.T
    for number, prior in enumerate(field.priors(values)):
        own = np.arange(begins[number], begins[number + 1])
        full[own, own] += prior.precision
        if prior.across is not None:
            full[np.ix_(own, own)] += prior.across
    return full


@partial(jax.jit, static_argnums=0)
def _curvatures(
    owners: Owners,
    forms: Forms,
    means: tuple[Array, ...],
    spreads: tuple[Array, ...],
    votes: tuple[Array, Array],
) -> Covariances:
    """Return the second derivatives of the bound of each row in each pair of its slots."""
    slots = bilinear.gathered(forms, owners, means)
    covariances = bilinear.covariances_of(forms, owners, spreads)

    def bound(slots: bilinear.Slots) -> Array:
        return bound_of_rows(owners, forms, slots, covariances, votes).sum()

    found: Covariances = {}
    for one in range(len(slots)):
        tangent = tuple(jax.numpy.ones_like(slot) * (at == one) for at, slot in enumerate(slots))
        second = jax.jvp(jax.grad(bound), (slots,), (tangent,))[1]
        for other in range(one, len(slots)):
            found[one, other] = second[other]
    return found


class Component:
    """Normal of all entries on the section across the orbits of scale symmetries."""

    def __init__(self, field: MeanField, state: State) -> None:
        self.setting, self.values = field.setting, field.values(state)
        self.mean = np.concatenate([normal.mean for normal in state.normals])
        full = precision(field, state)
        scales = self.setting.plan.scales
        self.tangents = [tangent_of(scale, self.setting.sites, self.values) for scale in scales]
        # A high precision along the orbit keeps draws on the section.
        self.along = 1e4 * np.abs(np.diag(full)).mean() * len(full)
        for tangent in self.tangents:
            full += self.along * np.outer(tangent, tangent)
        self.factor = scipy.linalg.cholesky(full, lower=True)
        priors = field.priors(self.values)
        low, high = (np.concatenate([getattr(one, at) for one in priors]) for at in ("low", "high"))
        self.bounded = np.flatnonzero(np.isfinite(low) | np.isfinite(high))
        self.low, self.high = low[self.bounded], high[self.bounded]
        self.deviation, self.centre = np.zeros(0), np.zeros(0)
        if len(self.bounded):
            inverse = scipy.linalg.solve_triangular(self.factor, np.eye(len(full)), lower=True)
            self.deviation = np.sqrt((inverse[:, self.bounded] ** 2).sum(0))
            self.centre = centre_of(self.mean[self.bounded], self.deviation, self.low, self.high)

    def log_evidence(self, field: MeanField, state: State) -> float:
        """Return the logarithm of the probability of the data and of the hyper-parameters, by
        Laplace's approximation at the means."""
        plan, total = self.setting.plan, 0.0
        for piece in placing.pieces(field.data):
            total += float(likelihood_of(plan.model, piece, self.values))
        for name, value in state.hyper.items():
            transform = biject_to(plan.supports[name])
            coordinate = transform.inv(value)
            total += float(transform.log_abs_det_jacobian(coordinate, value).sum())
        prior = float(prior_of(plan.model, field.row, self.values))
        return total + prior - float(np.log(np.diag(self.factor)).sum())

    def draw(self, number: int, rng: Rng) -> tuple[EntryDraws, EntryDraws]:
        """Draw entries; return them, and the normal ones less their mean."""
        standard = rng.standard_normal((len(self.mean), number))
        apart = scipy.linalg.solve_triangular(self.factor, standard, lower=True, trans="T").T
        entries = self.mean + apart
        if len(self.bounded):
            entries[:, self.bounded] = self._inside(apart[:, self.bounded] / self.deviation)
        return entries, apart

    def log_density(self, entries: EntryDraws, apart: np.ndarray | None = None) -> PerDraw:
        """Return the log density on the section at some entries, drawn as `apart` if that is
        known."""
        from scipy.stats import norm

        slope = np.ones_like(entries)
        if apart is None:
            apart = entries - self.mean
            if len(self.bounded):
                score = self._score(entries[:, self.bounded])
                apart[:, self.bounded] = score * self.deviation
        log_q = np.log(np.diag(self.factor)).sum() + norm.logpdf(apart @ self.factor).sum(1)
        for tangent in self.tangents:
            log_q += self.along * (apart @ tangent) ** 2 / 2
        if len(self.bounded):
            score = apart[:, self.bounded] / self.deviation
            inside = (entries[:, self.bounded] - self.centre) / self.deviation
            log_slope = norm.logpdf(score) + self._log_mass() - norm.logpdf(inside)
            slope[:, self.bounded] = np.exp(log_slope)
            log_q -= log_slope.sum(1)
        scales, sites = self.setting.plan.scales, self.setting.sites
        return np.asarray(log_q - log_crossing(scales, sites, self.values, entries, slope))

    def _ends(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the bounds in deviations, turned round where the mass is in the upper tail."""
        lower, upper = ((end - self.centre) / self.deviation for end in (self.low, self.high))
        flip = lower + upper > 0
        return np.where(flip, -upper, lower), np.where(flip, -lower, upper), flip

    def _log_mass(self) -> Float[np.ndarray, " entry"]:
        lower, upper, _ = self._ends()
        log_low, log_high = log_ndtr(lower), log_ndtr(upper)
        difference = np.minimum(log_low - log_high, -1e-15)
        return np.asarray(log_high + np.log1p(-np.exp(difference)))

    def _inside(self, score: EntryDraws) -> EntryDraws:
        """Map standard normals to the truncated normals."""
        lower, upper, flip = self._ends()
        below = self._log_mass() + log_ndtr(np.where(flip, -score, score))
        level = np.minimum(np.logaddexp(log_ndtr(lower), below), log_ndtr(upper))
        standard = np.clip(ndtri_exp(level), lower, upper)
        standard = np.where(flip, -standard, standard)
        inside = self.centre + self.deviation * standard
        return np.asarray(np.clip(inside, self.low, self.high))

    def _score(self, entries: EntryDraws) -> EntryDraws:
        """Map truncated normals to standard ones."""
        lower, _, flip = self._ends()
        inside = (entries - self.centre) / self.deviation
        inside = np.where(flip, -inside, inside)
        less = np.minimum(log_ndtr(lower) - log_ndtr(inside), -1e-15)
        share = log_ndtr(inside) + np.log1p(-np.exp(less)) - self._log_mass()
        score = ndtri_exp(np.minimum(share, -1e-15))
        return np.asarray(np.where(flip, -score, score))


def drawn(field: MeanField, states: list[State], number: int, rng: Rng) -> tuple[Values, PerDraw]:
    """Draw the entries of all blocks from a mixture of the normals of some states."""
    components = [Component(field, state) for state in states]
    weights = np.ones(1)
    if len(states) > 1:
        scores = [
            component.log_evidence(field, state)
            for component, state in zip(components, states, strict=True)
        ]
        weights = np.maximum(np.exp(np.array(scores) - max(scores)), _LEAST)
        weights /= weights.sum()
    source = np.searchsorted(np.cumsum(weights), (np.arange(number) + rng.random()) / number)
    source = rng.permutation(np.minimum(source, len(states) - 1))
    entries = np.zeros((number, len(components[0].mean)))
    apart = np.zeros_like(entries)
    for which, component in enumerate(components):
        own = np.flatnonzero(source == which)
        entries[own], apart[own] = component.draw(len(own), rng)
    if len(components) == 1:
        log_q = components[0].log_density(entries, apart)
    else:
        each = np.stack([component.log_density(entries) for component in components])
        log_q = logsumexp(each + np.log(weights)[:, None], axis=0)
    draws, begin = {}, 0
    for name in field.setting.sites:
        shape = np.shape(components[0].values[name])
        size = int(np.prod(shape))
        draws[name] = entries[:, begin : begin + size].reshape(number, *shape)
        begin += size
    return draws, np.asarray(log_q)


def centre_of(
    mean: Float[np.ndarray, " entry"],
    deviation: Float[np.ndarray, " entry"],
    low: Float[np.ndarray, " entry"],
    high: Float[np.ndarray, " entry"],
) -> Float[np.ndarray, " entry"]:
    """Return where normals lie that have these means once they are truncated."""
    centre = np.array(mean)
    for _ in range(_STEPS):
        at, variance, _ = averages.truncated_moments(centre, deviation, low, high)
        step = (mean - at) * deviation**2 / np.maximum(variance, 1e-12 * deviation**2)
        step = np.clip(step, -3 * deviation, 3 * deviation)
        centre = np.clip(centre + step, mean - _FAR * deviation, mean + _FAR * deviation)
    return centre

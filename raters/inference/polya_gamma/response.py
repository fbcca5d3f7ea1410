r"""Draws around a mean-field approximation, with spreads corrected by linear response.

With the bound F as a function of the means m of all entries, their covariances C held fixed, the
means answer a small change of the log density by :math:`(-\nabla^2_m F)^{-1}`, which would be the
covariance if the approximation were exact (Giordano, Broderick and Jordan 2018). Entries of
different blocks are correlated in it, and it has no part of the uncertainty of ω taken off.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float
from scipy.special import log_ndtr, ndtri_exp
from scipy.stats import norm

from raters.inference.polya_gamma import averages, bilinear
from raters.inference.polya_gamma.averages import Normal
from raters.inference.polya_gamma.bilinear import Covariances, Forms, Owners
from raters.inference.polya_gamma.laplace import _log_crossing, _tangent
from raters.inference.polya_gamma.mean_field import MeanField, State, bound_of_rows
from raters.model import Values

# Newton steps to the place of a truncated normal of a given mean, and how far away it may be.
_STEPS, _FAR = 40, 30.0


def precision(field: MeanField, state: State) -> Float[np.ndarray, "entry entry"]:
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
        total: Array = bound_of_rows(owners, forms, slots, covariances, votes).sum()
        return total

    found: Covariances = {}
    for one in range(len(slots)):
        tangent = tuple(
            jax.numpy.ones_like(slot) * (at == one) for at, slot in enumerate(slots)
        )
        second = jax.jvp(jax.grad(bound), (slots,), (tangent,))[1]
        for other in range(one, len(slots)):
            found[one, other] = second[other]
    return found


def drawn(
    field: MeanField, state: State, number: int, rng: np.random.Generator
) -> tuple[Values, Float[np.ndarray, " draw"]]:
    """Draw the entries of all blocks, on the section across the orbits of scale symmetries.

    Bounded entries are mapped to truncated normals of the same means.

    Returns
    -------
    tuple
        Draws of the sites of the blocks, shape (draw, ...), and their log-densities.
    """
    setting, values = field.setting, field.values(state)
    sites, scales = setting.sites, setting.plan.scales
    mean = np.concatenate([normal.mean for normal in state.normals])
    full = precision(field, state)
    tangents = [_tangent(scale, sites, values) for scale in scales]
    # A high precision along the orbit keeps draws on the section.
    along = 1e4 * np.abs(np.diag(full)).mean() * len(full)
    for tangent in tangents:
        full += along * np.outer(tangent, tangent)
    factor = scipy.linalg.cholesky(full, lower=True)
    standard = rng.standard_normal((len(full), number))
    apart = scipy.linalg.solve_triangular(factor, standard, lower=True, trans="T").T
    log_q = np.log(np.diag(factor)).sum() + norm.logpdf(standard).sum(0)
    for tangent in tangents:
        log_q += along * (apart @ tangent) ** 2 / 2
    entries, slope = mean + apart, np.ones_like(apart)
    priors = field.priors(values)
    low, high = (np.concatenate([getattr(one, end) for one in priors]) for end in ("low", "high"))
    bounded = np.flatnonzero(np.isfinite(low) | np.isfinite(high))
    if len(bounded):
        inverse = scipy.linalg.solve_triangular(factor, np.eye(len(full)), lower=True)
        deviation = np.sqrt((inverse[:, bounded] ** 2).sum(0))
        score = apart[:, bounded] / deviation
        inside, log_slope = truncated(
            score, mean[bounded], deviation, low[bounded], high[bounded]
        )
        entries[:, bounded], slope[:, bounded] = inside, np.exp(log_slope)
        log_q -= log_slope.sum(1)
    log_q -= _log_crossing(scales, sites, values, entries, slope)
    draws, begin = {}, 0
    for name in sites:
        shape = np.shape(values[name])
        size = int(np.prod(shape))
        draws[name] = entries[:, begin : begin + size].reshape(number, *shape)
        begin += size
    return draws, log_q


def truncated(
    score: Float[np.ndarray, "draw entry"],
    mean: Float[np.ndarray, " entry"],
    deviation: Float[np.ndarray, " entry"],
    low: Float[np.ndarray, " entry"],
    high: Float[np.ndarray, " entry"],
) -> tuple[Float[np.ndarray, "draw entry"], Float[np.ndarray, "draw entry"]]:
    """Map standard normals to truncated normals of given means; return them, and the logarithm of
    their slope in deviations."""
    centre = np.array(mean)
    for _ in range(_STEPS):
        at, variance, _ = averages.truncated_moments(centre, deviation, low, high)
        step = (mean - at) * deviation**2 / np.maximum(variance, 1e-12 * deviation**2)
        step = np.clip(step, -3 * deviation, 3 * deviation)
        centre = np.clip(centre + step, mean - _FAR * deviation, mean + _FAR * deviation)
    lower, upper = (low - centre) / deviation, (high - centre) / deviation
    flip = lower + upper > 0
    lower, upper = np.where(flip, -upper, lower), np.where(flip, -lower, upper)
    turned = np.where(flip, -score, score)
    log_low, log_high = log_ndtr(lower), log_ndtr(upper)
    log_mass = log_high + np.log1p(-np.exp(np.minimum(log_low - log_high, -1e-300)))
    level = np.logaddexp(log_low, log_mass + log_ndtr(turned))
    standard = np.clip(ndtri_exp(np.minimum(level, log_high)), lower, upper)
    log_slope = norm.logpdf(score) + log_mass - norm.logpdf(standard)
    standard = np.where(flip, -standard, standard)
    return np.clip(centre + deviation * standard, low, high), log_slope

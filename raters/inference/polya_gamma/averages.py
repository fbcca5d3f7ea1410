"""Factors of a variational distribution: normals, truncated normals, and probabilities of classes.

Gibbs draws a block from its conditional, and EM takes the mode; these hold its averages.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np
import scipy.linalg
from jax.scipy.special import digamma, gammaln
from jaxtyping import Array, Float

from raters.inference.arrays import Entries, EntryDraws, Matrix, Rng, Scalar
from raters.inference.polya_gamma.conditionals import Gaussian, truncated_normal

# Nodes on which moments of truncated normals are integrated, and how far from the highest point of
# the density, in standard deviations and, in a tail, in its lengths.
_NODES, _FAR, _TAIL = 64, 9.0, 40.0
_WIDEST = 1e6


class Normal(NamedTuple):
    """Independent entries, normal or truncated to bounds, or entries that are normal together."""

    mean: Entries
    spread: Entries | Matrix
    entropy: float
    centre: Entries
    deviation: Entries

    @property
    def variance(self) -> Entries:
        """Variance of each entry."""
        return self.spread if self.spread.ndim == 1 else np.diag(self.spread)

    def stretched(self, factor: Entries) -> Normal:
        """Return the distribution of the entries times some positive factors."""
        square = factor**2 if self.spread.ndim == 1 else np.outer(factor, factor)
        return Normal(
            self.mean * factor,
            self.spread * square,
            self.entropy + float(np.log(factor).sum()),
            self.centre * factor,
            self.deviation * factor,
        )


def point(mean: Entries, joint: bool) -> Normal:
    """Return a start: entries without spread."""
    size = len(mean)
    spread = np.zeros((size, size) if joint else size)
    return Normal(mean, spread, -np.inf, mean, np.zeros(size))


def together(precision: Matrix, shift: Entries) -> Normal:
    """Return the normal with this precision, and with the mean that solves for the shift."""
    factor = scipy.linalg.cholesky(precision, lower=True, check_finite=False)
    mean = scipy.linalg.cho_solve((factor, True), shift, check_finite=False)
    lower, _ = scipy.linalg.lapack.dpotri(factor, lower=1)
    covariance = np.tril(lower) + np.tril(lower, -1).T
    entropy = len(mean) * (1 + np.log(2 * np.pi)) / 2 - np.log(np.diag(factor)).sum()
    return Normal(mean, covariance, float(entropy), mean, np.sqrt(np.diag(covariance)))


def apart(precision: Entries, shift: Entries, prior: Gaussian) -> Normal:
    """Return independent entries with these precisions and shifts, truncated as the prior is."""
    flat = (1 / (_WIDEST * (prior.high - prior.low))) ** 2
    precision = np.maximum(np.maximum(precision, flat), 1e-300)
    centre, deviation = shift / precision, 1 / np.sqrt(precision)
    mean, variance, entropy = truncated_moments(centre, deviation, prior.low, prior.high)
    return Normal(mean, variance, float(entropy.sum()), centre, deviation)


def truncated_moments(
    centre: Entries, deviation: Entries, low: Entries, high: Entries
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean, variance and entropy of truncated normals."""
    mean, variance = np.array(centre, np.float64), np.array(deviation, np.float64) ** 2
    entropy = (1 + np.log(2 * np.pi)) / 2 + np.log(deviation)
    bounded = np.flatnonzero(np.isfinite(low) | np.isfinite(high))
    if len(bounded) == 0:
        return mean, variance, entropy
    centre, deviation, low, high = (
        np.broadcast_to(part, mean.shape)[bounded, None] for part in (centre, deviation, low, high)
    )
    top = np.clip(centre, low, high)
    beyond = np.maximum(np.abs(centre - top), _TAIL / _FAR * deviation)
    reach = _TAIL * (deviation / beyond) * deviation
    begin, end = np.maximum(low, top - reach), np.minimum(high, top + reach)
    node, weight = np.polynomial.legendre.leggauss(_NODES)
    place = begin + (end - begin) * (node + 1) / 2
    log_density = -(((place - centre) / deviation) ** 2) / 2
    log_density -= log_density.max(1, keepdims=True)
    mass = np.exp(log_density) * weight
    total = mass.sum(1, keepdims=True)
    share = mass / total
    mean[bounded] = (share * place).sum(1)
    variance[bounded] = (share * (place - mean[bounded, None]) ** 2).sum(1)
    log_total = np.log(total * (end - begin) / 2)[:, 0]
    entropy[bounded] = log_total - (share * log_density).sum(1)
    return mean, variance, entropy


def drawn(normal: Normal, prior: Gaussian, number: int, rng: Rng) -> EntryDraws:
    """Draw the entries of a block."""
    if normal.spread.ndim == 1:
        shape = (number, len(normal.mean))
        ends = (np.broadcast_to(end, shape) for end in (prior.low, prior.high))
        return truncated_normal(rng, np.broadcast_to(normal.centre, shape), normal.deviation, *ends)
    factor = scipy.linalg.cholesky(normal.spread, lower=True)
    return np.asarray(normal.mean + rng.standard_normal((number, len(normal.mean))) @ factor.T)


# ---------------------------------------------------------------- probabilities of classes


def means(parameters: tuple[Float[np.ndarray, ...], ...]) -> Float[np.ndarray, "... class"]:
    """Return the means of probabilities."""
    return np.asarray(parameters[0] / parameters[0].sum(-1, keepdims=True))


def drawn_probs(
    parameters: tuple[Float[np.ndarray, ...], ...], number: int, rng: Rng
) -> Float[np.ndarray, "draw ... class"]:
    """Draw probabilities."""
    gamma = rng.standard_gamma(parameters[0], size=(number, *np.shape(parameters[0])))
    gamma = np.maximum(gamma, 1e-300)
    return np.asarray(gamma / gamma.sum(-1, keepdims=True))


def log_means(parameters: tuple[Array, ...]) -> Float[Array, "... class"]:
    """Return the mean logarithms of the probabilities of a Dirichlet distribution."""
    (concentration,) = parameters
    return digamma(concentration) - digamma(concentration.sum(-1, keepdims=True))


def less_prior(parameters: tuple[Array, ...], prior: tuple[Array, ...]) -> Scalar:
    """Return the mean log prior density less the mean log density: a negative divergence."""
    (own,), (given,) = parameters, prior
    means = log_means(parameters)
    gain = _log_constant(given) - _log_constant(own) + ((given - own) * means).sum(-1)
    return gain.sum()


def _log_constant(concentration: Float[Array, "... class"]) -> Float[Array, ...]:
    return gammaln(concentration.sum(-1)) - gammaln(concentration).sum(-1)


log_means_of = jax.jit(log_means)

"""Conditionals of Pólya-Gamma augmentation: the logits and counts of an observed distribution, the
priors that are Gaussian, and draws of entries with bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import singledispatch
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.scipy.special import ndtr, ndtri
from jaxtyping import Array, Float
from numpyro.distributions import truncated

from raters.distributions import GroupedMixture
from raters.distributions.labels import RightOrWrongLabel
from raters.distributions.ties import RaoKupper
from raters.inference.arrays import EntryArray, PerRow

# Above this many entries a coupled block is solved by preconditioned conjugate gradients, without a
# dense array.
DENSE_LIMIT = 2500
# For modes, which need one solution each from a warm start, they are faster from here on.
MODE_LIMIT = 1500
MOST_STEPS = 1000
# Standard deviations beyond which probabilities are too small for double precision.
_FAR = 35.0
BOUNDED = "its prior is bounded and its entries meet in the same logits"


class Observation(NamedTuple):
    """Rows of an observed distribution as logistic likelihoods."""

    logits: PerRow
    votes: PerRow | Float[Array, "term row"]
    kappa: PerRow | Float[Array, "term row"]
    shift: Float[Array, "term row"] | None = None


# ------------------------------------------------- reading the observed distribution and the priors


@singledispatch
def observation(fn: dist.Distribution, value: Any, classes: Any = None) -> Observation:
    """Return the rows of an observed distribution: their logits, votes and κ = wins − votes/2."""
    raise NotImplementedError(
        f"the observed distribution is {type(fn).__name__}; Pólya-Gamma needs Bernoulli, Binomial"
        " or Categorical with logits=, ties, choices from sets, or a GroupedMixture of such"
    )


@observation.register
def _(fn: dist.BernoulliLogits, value: Any, classes: Any = None) -> Observation:
    logits = jnp.asarray(fn.logits)  # float64, or in a pass in float32 that
    return Observation(logits, jnp.ones_like(logits), jnp.asarray(value, logits.dtype) - 0.5)


@observation.register
def _(fn: dist.BinomialLogits, value: Any, classes: Any = None) -> Observation:
    logits = jnp.asarray(fn.logits)
    count = jnp.broadcast_to(jnp.asarray(fn.total_count, logits.dtype), logits.shape)
    return Observation(logits, count, jnp.asarray(value, logits.dtype) - count / 2)


@observation.register
def _(fn: RaoKupper, value: Any, classes: Any = None) -> Observation:
    value = jnp.asarray(value)
    count = jnp.broadcast_to(1.0 if fn.count is None else fn.count, fn.logits.shape)
    # σ(x − t) of each vote but those for the second side, 1 − σ(x + t) of all but those for the
    # first: a tie is in both.
    votes = jnp.stack([count * (value > 0), count * (value < 1)])
    shift = jnp.stack([-fn.threshold, fn.threshold])
    return Observation(fn.logits, votes, votes * jnp.array([[0.5], [-0.5]]), shift)


@observation.register
def _(fn: GroupedMixture, value: Any, classes: Any = None) -> Observation:
    weight = classes[fn.group]
    weight = weight if fn.count is None else weight * fn.count[:, None]
    return component(fn.component_distribution, value, weight)


@singledispatch
def component(fn: dist.Distribution, value: Any, weight: Float[Array, "row class"]) -> Observation:
    """Return the same as `observation` for the components of a mixture."""
    rows = observation(fn, value[:, None])
    if rows.shift is not None:
        raise NotImplementedError(f"the observed distribution is a mixture of {type(fn).__name__}")
    votes, kappa = (weight * part for part in (rows.votes, rows.kappa))
    return Observation(rows.logits.ravel(), votes.ravel(), kappa.ravel())


@component.register
def _(fn: RightOrWrongLabel, value: Any, weight: Float[Array, "row class"]) -> Observation:
    right = value[:, None] == jnp.arange(fn.num_classes)
    # One row for all classes where the log-odds do not depend on the class.
    if fn.logits.shape[-1] == 1:
        votes = weight.sum(-1)
        return Observation(fn.logits[:, 0], votes, (weight * right).sum(-1) - votes / 2)
    return Observation(fn.logits.ravel(), weight.ravel(), (weight * (right - 0.5)).ravel())


class Gaussian(NamedTuple):
    """Normal priors of a block's entries: independent and perhaps truncated, or correlated."""

    mean: Any
    precision: Any
    low: Any
    high: Any
    across: Any = None


def joined(priors: Sequence[Gaussian]) -> Gaussian:
    """Return the prior of the entries of several sites."""
    *vectors, across = zip(*priors, strict=True)
    own = Gaussian(*map(jnp.concatenate, vectors))
    if all(part is None for part in across):
        return own
    size = len(own.mean)
    _check_correlated(size)
    full, begin = jnp.zeros((size, size)), 0
    for prior, part in zip(priors, across, strict=True):
        end = begin + len(prior.mean)
        full = full if part is None else full.at[begin:end, begin:end].set(part)
        begin = end
    return own._replace(across=full)


def _check_correlated(size: int) -> None:
    """Raise for more correlated entries than a dense precision matrix is for."""
    if size > DENSE_LIMIT:
        most = f"{size:,} entries (at most {DENSE_LIMIT:,})"
        raise NotImplementedError(f"a multivariate normal prior is in a block of {most}")


@singledispatch
def prior(fn: dist.Distribution, shape: tuple[int, ...]) -> Gaussian:
    """Return a site's prior as `Gaussian`."""
    raise NotImplementedError(
        f"its prior {type(fn).__name__} is not normal (multivariate or truncated too) or uniform"
    )


def _raveled(shape: tuple[int, ...], *parts: Any) -> Gaussian:
    """Broadcast the parameters to the site's shape, and ravel them."""
    return Gaussian(*(jnp.broadcast_to(jnp.asarray(part, float), shape).ravel() for part in parts))


@prior.register
def _(fn: dist.Normal, shape: tuple[int, ...]) -> Gaussian:
    return _raveled(shape, fn.loc, 1 / fn.scale**2, -jnp.inf, jnp.inf)


@prior.register
def _(fn: dist.MultivariateNormal, shape: tuple[int, ...]) -> Gaussian:
    size, length = math.prod(shape), shape[-1]
    _check_correlated(size)
    number = size // length
    each = jnp.broadcast_to(fn.precision_matrix, (*shape, length)).reshape(number, length, length)
    full = jnp.zeros((number, length, number, length))
    full = full.at[jnp.arange(number), :, jnp.arange(number), :].set(each).reshape(size, size)
    diagonal = jnp.diagonal(full)
    own = _raveled(shape, fn.loc, diagonal.reshape(shape), -jnp.inf, jnp.inf)
    return own._replace(across=full - jnp.diag(diagonal))


@prior.register(truncated.TwoSidedTruncatedDistribution)
@prior.register(truncated.LeftTruncatedDistribution)
@prior.register(truncated.RightTruncatedDistribution)
def _(fn: Any, shape: tuple[int, ...]) -> Gaussian:
    base, low, high = fn.base_dist, getattr(fn, "low", -jnp.inf), getattr(fn, "high", jnp.inf)
    if not isinstance(base, dist.Normal):
        name = type(base).__name__
        raise NotImplementedError(f"its prior is a truncated {name}, not a truncated normal")
    return _raveled(shape, base.loc, 1 / base.scale**2, low, high)


@prior.register
def _(fn: dist.HalfNormal, shape: tuple[int, ...]) -> Gaussian:
    return _raveled(shape, 0.0, 1 / fn.scale**2, 0.0, jnp.inf)


@prior.register
def _(fn: dist.Uniform, shape: tuple[int, ...]) -> Gaussian:
    return _raveled(shape, 0.0, 0.0, fn.low, fn.high)


@prior.register(dist.ExpandedDistribution)
@prior.register(dist.Independent)
def _(fn: dist.Distribution, shape: tuple[int, ...]) -> Gaussian:
    return prior(fn.base_dist, shape)


# ------------------------------------------------------------------------- entries with bounds


@jax.jit
def drawn_entries(
    key: Array, shift: EntryArray, diagonal: EntryArray, low: EntryArray, high: EntryArray
) -> EntryArray:
    """Draw independent entries with bounds."""
    # Under a flat prior an entry without votes has precision 0. A normal a million times wider
    # than the interval is uniform on it; a wider one would lose its digits.
    flat = (1e-6 / (high - low)) ** 2
    precision = jnp.maximum(jnp.maximum(diagonal, flat), 1e-300)
    return truncated_normal(key, shift / precision, 1 / jnp.sqrt(precision), low, high)


def truncated_normal(
    key: Array, mean: EntryArray, deviation: EntryArray, low: EntryArray, high: EntryArray
) -> EntryArray:
    """Draw from normals truncated to [low, high], by inversion."""
    lower, upper = (low - mean) / deviation, (high - mean) / deviation
    flip = lower > 0
    lower, upper = jnp.where(flip, -upper, lower), jnp.where(flip, -lower, upper)
    # Never 0, whose quantile is infinite under a prior without a bound.
    uniform = jax.random.uniform(key, mean.shape, minval=jnp.finfo(float).eps / 2)
    from_low, to_high = ndtr(lower), ndtr(upper)
    standard = ndtri(from_low + uniform * (to_high - from_low))
    # So far out that Φ is 0, x² is exponential between the bounds, but for one part in x².
    square = (lower**2 - upper**2) / 2
    rest = jnp.log1p(uniform * jnp.expm1(-jnp.minimum(square, 700.0)))
    tail = -jnp.sqrt(jnp.minimum(upper, 0.0) ** 2 - 2 * rest)
    standard = jnp.clip(jnp.where(upper < -_FAR, tail, standard), lower, upper)
    return jnp.clip(mean + deviation * jnp.where(flip, -standard, standard), low, high)

"""Latent classes in a sweep, and the Dirichlet and Beta conditionals: counts are derivatives of the
complete log-likelihood in the logarithms of the probabilities (Fisher's identity)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, singledispatch
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.distributions import RowMixture
from raters.distributions.correlated import unwrapped
from raters.distributions.labels import TypeMixture, log_beta
from raters.distributions.rows import computed_once
from raters.inference.arrays import Classes, PerDraw, PerRow, Rng, Scalar, Sites
from raters.inference.polya_gamma import augmentation
from raters.model import Model, Values
from raters.program import Program, trace

LogLikelihood = Callable[[Array], Array]
# Of a Dirichlet its concentration, of a Beta both concentrations; of a mixture over types the
# log-weight and the concentrations of each component, and the counts.
Parameters = tuple[Any, ...]
OF_MIXTURE = 3
# Priors of probabilities that are counted: given the classes, they are conjugate.
COUNTED = dist.Dirichlet, dist.Beta, TypeMixture
# Smallest probability of a mode, so that its logarithm is finite.
LEAST = 1e-12
# Least Gamma variable, and largest probability that is drawn, so that log-odds are finite.
_LEAST_GAMMA, _LARGEST = 1e-300, 1 - 1e-16


@partial(jax.jit, static_argnums=0)
def expected(model: Model[Any], data: Any, values: Values) -> tuple[Classes, Scalar]:
    """Return the expected number of units of each class, and the log-likelihood of all units."""
    site = trace(model, data, values)[model.observed]
    return site["fn"].expected_classes(site["value"]), site["fn"].log_prob(site["value"]).sum()


def expected_in(program: Program[Any], data: Any, values: Values) -> Classes | None:
    """Return the expected number of units of each class, or None of a program without classes."""
    return expected(program.model, data, values)[0] if program.counts_classes else None


@partial(jax.jit, static_argnums=0)
def drawn(model: Model[Any], data: Any, values: Values, key: Array) -> Classes:
    """Draw the classes given the labels, as one-hot rows."""
    site = trace(model, data, values)[model.observed]
    joint = site["fn"].log_joint(site["value"])
    if isinstance(site["fn"], RowMixture) and site["fn"].repeats is not None:
        return _number_of_each(key, site["fn"].repeats, jax.nn.softmax(joint))
    if site["fn"].repeats is not None:
        raise NotImplementedError(
            "GroupedMixture(repeats=...) has groups that stand for several, each with a class of"
            " its own; write them out to draw classes"
        )
    return jax.nn.one_hot(categorical(key, joint), joint.shape[-1], dtype=joint.dtype)


def categorical(key: Array, logits: Array) -> Array:
    """Draw a place along the last axis by one uniform number; JAX draws one for each place."""
    shares = jnp.cumsum(computed_once(jax.nn.softmax(logits)), axis=-1)
    level = jax.random.uniform(key, (*logits.shape[:-1], 1), logits.dtype) * shares[..., -1:]
    return (shares <= level).sum(-1)


def _number_of_each(
    key: Array, total: PerRow, probs: Float[Array, "row class"]
) -> Float[Array, "row class"]:
    """Draw how many of the judgements of each row are of each class."""
    left, rest, counts = total.astype(probs.dtype), jnp.ones_like(total, probs.dtype), []
    for place, own in enumerate(jax.random.split(key, probs.shape[-1] - 1)):
        share = jnp.clip(probs[:, place] / jnp.maximum(rest, 1e-300), 0.0, 1.0)
        # Of none, none; the sampler needs one at least.
        drawn = jax.random.binomial(own, jnp.maximum(left, 1.0), share, dtype=probs.dtype)
        counts.append(jnp.where(left > 0, drawn, 0.0))
        left, rest = left - counts[-1], rest - probs[:, place]
    return jnp.stack([*counts, left], -1)


# ---------------------------------------------------------------------- Dirichlet and Beta blocks


@singledispatch
def conjugate(fn: dist.Distribution, log_likelihood: LogLikelihood, at: float) -> Parameters:
    """Return the parameters of a site's full conditional."""
    raise NotImplementedError(
        f"its prior {type(fn).__name__} is neither Dirichlet, Beta nor TypeMixture"
    )


def _counts(fn: dist.Distribution, log_likelihood: LogLikelihood, at: float) -> Array:
    """Return the expected counts of a site of probabilities."""
    # They are the same at every point; logarithms are finite in the middle of the simplex.
    size = fn.event_shape[-1]
    tilt = 1 + at * jnp.arange(size) / size
    point = jnp.broadcast_to(tilt / tilt.sum(), fn.shape())
    return point * jax.grad(log_likelihood)(point)


@conjugate.register
def _(fn: dist.Dirichlet, log_likelihood: LogLikelihood, at: float) -> Parameters:
    return (fn.concentration + _counts(fn, log_likelihood, at),)


def _right_and_wrong(
    fn: dist.Distribution, log_likelihood: LogLikelihood, at: float
) -> tuple[Array, Array]:
    """Return the expected numbers of right and wrong answers of a site of accuracies."""

    # With a right and b wrong the derivative along the logit is a − (a + b)p: two points give both.
    def slope(p: float) -> Any:
        # Not weakly typed, so that float32 counts do not reduce the precision.
        point = jnp.full(fn.batch_shape, p, float)
        return p * (1 - p) * jax.grad(log_likelihood)(point)

    low, high = (1 - at / 2) / 3, (2 + at / 2) / 3
    total = (slope(low) - slope(high)) / (high - low)
    right = slope(low) + total * low
    return right, total - right


@conjugate.register
def _(fn: dist.Beta, log_likelihood: LogLikelihood, at: float) -> Parameters:
    right, wrong = _right_and_wrong(fn, log_likelihood, at)
    return fn.concentration1 + right, fn.concentration0 + wrong


@conjugate.register
def _(fn: TypeMixture, log_likelihood: LogLikelihood, at: float) -> Parameters:
    if fn.event_shape:
        count = _counts(fn, log_likelihood, at)
    else:
        count = jnp.stack(_right_and_wrong(fn, log_likelihood, at), -1)
    return fn.log_weight, fn.concentration, count


def component_log_probs(parameters: Parameters) -> Float[Array, "judge component"]:
    """Return the log-probability of each component of a mixture together with the counts."""
    log_weight, concentration, count = parameters
    ndim = count.ndim - 1
    gain = log_beta(concentration + count[:, None], ndim) - log_beta(concentration, ndim)
    return log_weight + gain


def _given(parameters: Parameters, component: Any) -> Any:
    """Return the concentrations, given the counts, of one component for each judge."""
    _, concentration, count = parameters
    shared = concentration.ndim == count.ndim
    which = component if shared else (jnp.arange(len(component)), component)
    return concentration[which] + count


def site_prior(model: Model[Any], data: Any, values: Values, site: str) -> dist.Distribution:
    """Return a site's prior, with its parameters in the site's shape."""
    fn = trace(model, data, values)[site]["fn"]
    base: Any = unwrapped(fn)
    if isinstance(base, dist.Dirichlet):
        return dist.Dirichlet(jnp.broadcast_to(base.concentration, fn.shape()))
    if isinstance(base, dist.Beta):
        both = base.concentration1, base.concentration0
        return dist.Beta(*(jnp.broadcast_to(part, fn.shape()) for part in both))
    return base


def type_of_prior(model: Model[Any], data: Any, values: Values, site: str) -> type:
    """Return the class of a site's prior; nothing is computed, which would be compiled."""
    seen: list[type] = []
    row = data.take(slice(0, 1))
    jax.eval_shape(lambda values: seen.append(type(site_prior(model, row, values, site))), values)
    return seen[0]


def is_unbounded(model: Model[Any], data: Any, values: Values, site: str) -> bool:
    """Return whether the density of a site of probabilities may be unbounded at an edge."""
    fn = site_prior(model, data.take(slice(0, 1)), values, site)
    if isinstance(fn, TypeMixture):
        return True
    parts = concentrations(model, data.take(slice(0, 1)), values, site)
    return any(bool(jnp.min(part) < 1) for part in parts)


@partial(jax.jit, static_argnums=(0, 4))
def parameters(
    model: Model[Any], data: Any, values: Values, classes: Array, site: str, at: float = 0.0
) -> Parameters:
    """Return the parameters of a site's full conditional, given the classes and the other sites."""

    def log_likelihood(value: Array) -> Scalar:
        observed = trace(model, data, values | {site: value})[model.observed]
        return observed["fn"].expected_log_prob(observed["value"], classes)

    return conjugate(site_prior(model, data, values, site), log_likelihood, at)


def concentrations(model: Model[Any], data: Any, values: Values, site: str) -> Parameters:
    """Return the parameters of the prior of a site, in its shape; may be compiled."""
    fn = site_prior(model, data, values, site)
    if isinstance(fn, TypeMixture):
        return fn.log_weight, fn.concentration, jnp.zeros_like(fn.rows(values[site]))
    single = isinstance(fn, dist.Dirichlet)
    parts = (fn.concentration,) if single else (fn.concentration1, fn.concentration0)
    return tuple(jnp.broadcast_to(part, jnp.shape(values[site])) for part in parts)


def sampled(fn: Any, parameters: Parameters, key: Array) -> Array:
    """Draw from a site's full conditional, whose prior is `fn`; may be compiled."""
    if isinstance(fn, TypeMixture):
        component_key, key = jax.random.split(key)
        component = jax.random.categorical(component_key, component_log_probs(parameters))
        given = _given(parameters, component)
        parameters = (given,) if fn.event_shape else (given[..., 0], given[..., 1])
    whole = len(parameters) == 1
    drawn = augmentation.gamma(key, parameters[0] if whole else jnp.stack(parameters, -1))
    drawn = drawn.clip(_LEAST_GAMMA)
    probs = drawn / drawn.sum(-1, keepdims=True)
    return probs if whole else probs[..., 0].clip(max=_LARGEST)


def sampled_on_host(parameters: Parameters, number: int, rng: Rng) -> PerDraw:
    """Draw so many times from a Dirichlet or Beta conditional by NumPy, which is faster."""
    whole = len(parameters) == 1
    shape = np.asarray(parameters[0]) if whole else np.stack(parameters, -1)
    drawn = rng.standard_gamma(shape, (number, *shape.shape))
    # In place, since they may be many.
    np.maximum(drawn, _LEAST_GAMMA, out=drawn)
    drawn /= np.einsum("...i->...", drawn)[..., None]
    return drawn if whole else drawn[..., 0].clip(max=_LARGEST)


def moved(model: Model[Any], data: Any, values: Values, sites: Sites, key: Array) -> Values:
    """Draw the classes and then each of the counted `sites` by Gibbs sampling; may be compiled."""
    class_key, *keys = jax.random.split(key, len(sites) + 1)
    classes = drawn(model, data, values, class_key)
    for site, site_key in zip(sites, keys, strict=True):
        prior = site_prior(model, data, values, site)
        given = parameters(model, data, values, classes, site)
        values = values | {site: sampled(prior, given, site_key)}
    return values


def mode(parameters: Parameters, current: Array, in_logs: bool) -> Array:
    """Return the mode of a site's full conditional, in logarithms if asked, bounded away from 0;
    `current` where there are no counts. Of a mixture it is the mode given the components there."""
    if len(parameters) == OF_MIXTURE:
        parameters = averaged(parameters, current)
    whole = len(parameters) == 1
    count = parameters[0] if whole else jnp.stack(parameters, -1)
    count = jnp.maximum(count - (0.0 if in_logs else 1.0), 0.0)
    total = count.sum(-1, keepdims=True)
    probs = jnp.maximum(count / jnp.where(total > 0, total, 1.0), LEAST)
    probs = jnp.where(total > 0, probs / probs.sum(-1, keepdims=True), jnp.nan)
    flat = jnp.ravel(probs if whole else probs[..., 0])
    return jnp.where(jnp.isnan(flat), current, flat)


def averaged(parameters: Parameters, current: Array) -> Parameters:
    """Return the Dirichlet or Beta conditional that has the slope of that of a mixture."""
    log_weight, concentration, count = parameters
    ndim = count.ndim - 1
    probs = current.reshape(count.shape) if ndim > 1 else jnp.stack([current, 1 - current], -1)
    logs = jnp.log(jnp.maximum(probs, 1e-300)).reshape(len(count), -1)
    size = (len(count), log_weight.shape[-1], logs.shape[-1])
    flat = jnp.broadcast_to(concentration.reshape(*concentration.shape[:-ndim], -1), size)
    density = jnp.einsum("je,jce->jc", logs, flat - 1)
    share = jax.nn.softmax(log_weight + density - log_beta(concentration, ndim), axis=-1)
    total = jnp.einsum("jc,jce->je", share, flat).reshape(count.shape) + count
    return (total,) if ndim > 1 else (total[..., 0], total[..., 1])


def log_density(parameters: Parameters, entries: Array) -> Array:
    """Return the log density of each entry of a Beta conditional, but for a constant."""
    first, second = parameters
    return (first - 1) * jnp.log(entries) + (second - 1) * jnp.log1p(-entries)

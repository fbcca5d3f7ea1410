"""Hyper-parameters: their integral given the rest, and draws."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from raters.inference.arrays import PerDraw, Rng
from raters.inference.base import jax_keys
from raters.inference.polya_gamma.plans import Plan
from raters.inference.polya_gamma.unconstrained import coordinates, placed
from raters.model import Values
from raters.program import log_prior

# Newton steps to the mode of each conditional, each of at most this length, and halvings of one.
_STEPS, _LONGEST, _HALVINGS = 10, 2.0, 6
# Points of importance sampling around that mode (a power of two), from t distributions with so many
# degrees of freedom: the logarithm of a spread has a longer tail than a normal.
_POINTS, _DEGREES = 64, 4.0
_FLATTEST = 1e-2


def integrated(plan: Plan, row: Any, draws: Values, rng: Rng) -> tuple[PerDraw, Values]:
    """Log prior density of draws, integrated over what the likelihood does not depend on."""
    from scipy.stats import qmc
    from scipy.stats import t as student

    number = len(next(iter(draws.values())))
    first = {name: value[0] for name, value in draws.items()}
    size = sum(one.size for one in coordinates(plan.supports, first, plan.hyper).values())
    points = np.zeros((1, 0))
    if size:
        points = student(_DEGREES).ppf(qmc.Sobol(size, rng=rng).random(_POINTS))
    given = {name: jnp.asarray(value) for name, value in draws.items()}
    keys = jax_keys(rng, number)
    log_priors, redrawn = _each(plan, row, given, jnp.asarray(points), keys)
    return np.asarray(log_priors), {name: np.asarray(value) for name, value in redrawn.items()}


@partial(jax.jit, static_argnums=0)
def _each(plan: Plan, row: Any, draws: Values, points: Array, keys: Array) -> tuple[Array, Values]:
    return jax.lax.map(lambda entry: _one(plan, row, entry[0], points, entry[1]), (draws, keys))


def _one(plan: Plan, row: Any, values: Values, points: Array, key: Array) -> tuple[Array, Values]:
    """The integral for one draw, and the draw with one of the points."""
    start, unravel = ravel_pytree(coordinates(plan.supports, values, plan.hyper))

    def place(point: Array) -> tuple[Values, Array]:
        """The draw at a point, and the log volume element of the map to it."""
        hyper, volume = placed(plan.supports, unravel(point))
        return values | hyper, volume

    def density(point: Array) -> Array:
        there, volume = place(point)
        return log_prior(plan.model, row, there) + volume

    mode, factor = _mode(density, start)
    tried = mode + points @ factor.T
    log_q = jax.scipy.stats.t.logpdf(points, _DEGREES).sum(1) - jnp.linalg.slogdet(factor)[1]
    log_weight = jax.lax.map(density, tried) - log_q
    total = jax.scipy.special.logsumexp(log_weight) - jnp.log(len(points))
    chosen = tried[jax.random.categorical(key, log_weight)]
    return total, place(chosen)[0]


def _mode(density: Any, start: Array) -> tuple[Array, Array]:
    """Mode of a density in few dimensions, and a factor of the covariance for points around it."""
    if start.size == 0:
        return start, jnp.zeros((0, 0))

    def curvature(point: Array) -> tuple[Array, Array]:
        eigenvalues, vectors = jnp.linalg.eigh(-jax.hessian(density)(point))
        return jnp.maximum(jnp.abs(eigenvalues), _FLATTEST), vectors

    def step(_: int, point: Array) -> Array:
        eigenvalues, vectors = curvature(point)
        move = vectors @ ((vectors.T @ jax.grad(density)(point)) / eigenvalues)
        move *= jnp.minimum(1.0, _LONGEST / jnp.maximum(jnp.linalg.norm(move), 1e-12))
        tried = point + move * jnp.append(0.0, 0.5 ** jnp.arange(_HALVINGS))[:, None]
        heights = jax.lax.map(density, tried)
        return tried[jnp.argmax(jnp.where(jnp.isnan(heights), -jnp.inf, heights))]

    mode = jax.lax.fori_loop(0, _STEPS, step, start)
    eigenvalues, vectors = curvature(mode)
    return mode, vectors / jnp.sqrt(eigenvalues)

"""Vectors that single judges have for themselves: their prior, and likelihoods without them."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.linalg import block_diag, solve_triangular
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float
from scipy.special import ndtri

from raters.distributions.correlated import unwrapped
from raters.model import Model, Values, own_sites
from raters.program.densities import pointwise_log_likelihood
from raters.program.program import Program
from raters.program.traces import trace

Sites = tuple[str, ...]

# Shifted copies of the points of a vector, whose means tell the error, and the points of each: half
# are around the draws of the vector, half from its prior, which bounds the weights.
_SHIFTS, _POINTS = 4, 128
# Points at a time.
_AT_ONCE = 16


def factors(model: Model[Any], own: Sites, row: Any, values: Values) -> Float[Array, "entry entry"]:
    """Return the Cholesky factor of the covariance of the vectors, block by block."""
    traced = trace(model, row, values)
    return block_diag(*(_factor(traced[name]["fn"]) for name in own))


def _factor(fn: dist.Distribution) -> Array:
    fn = unwrapped(fn)
    if isinstance(fn, dist.MultivariateNormal):
        return jnp.asarray(fn.scale_tril).reshape(-1, *jnp.shape(fn.scale_tril)[-2:])[0]
    return jnp.diag(jnp.atleast_2d(fn.scale)[0])


def log_likelihoods(
    program: Program[Any], draws: Values
) -> tuple[Float[np.ndarray, "draw judge"], float]:
    """Return the log-likelihood of each judge's answers under each draw, their vectors integrated
    out by importance sampling, and the standard error of the sum over judges."""
    from scipy.stats import qmc

    own, rng = own_sites(program.model), np.random.default_rng(0)
    with jax.enable_x64(True):
        draws = {name: jnp.asarray(value, float) for name, value in draws.items()}
        vectors = np.concatenate([draws[name] for name in own], axis=-1)
        judges, size = vectors.shape[1:]
        nets = [qmc.Sobol(2 * size, rng=rng).random(_POINTS // 2) for _ in range(_SHIFTS)]
        unit = np.stack(nets) + rng.random((judges, _SHIFTS, 1, 2 * size))
        white = ndtri(np.clip(unit % 1.0, 1e-9, 1 - 1e-9))
        given = program.data.first_unit(), jax.tree.map(jnp.asarray, program.data), draws
        table, variance = _log_means(program.model, own, *given, vectors, white)
    return np.asarray(table), float(np.median(np.sqrt(np.asarray(variance).sum(1))))


@partial(jax.jit, static_argnums=(0, 1))
def _log_means(
    model: Model[Any],
    own: Sites,
    row: Any,
    data: Any,
    draws: Values,
    vectors: Float[Array, "draw judge entry"],
    white: Float[Array, "judge shift point entry"],
) -> tuple[Float[Array, "draw judge"], Float[Array, "draw judge"]]:
    """Return logarithms of mean likelihoods, and their variances."""
    widths = np.cumsum([draws[name].shape[-1] for name in own])[:-1]
    number, judges, size = vectors.shape
    code = jnp.asarray(data.codes(data.judge))
    of_prior = jax.lax.map(lambda values: factors(model, own, row, values), draws)
    # A few draws tell little of the spread of a vector.
    covariance = jnp.einsum("dpr,dqr->pq", of_prior, of_prior) / number
    centre = vectors.mean(0)
    apart = vectors - centre
    covariance = (jnp.einsum("dkp,dkq->kpq", apart, apart) + covariance) / number
    root = jnp.linalg.cholesky(covariance)
    near = centre[:, None, None] + jnp.einsum("kpq,ksrq->ksrp", root, white[..., :size])

    def likelihood(values: Values, point: Float[Array, "judge entry"]) -> Float[Array, " judge"]:
        sites = dict(zip(own, jnp.split(point, widths, axis=1), strict=True))
        each = pointwise_log_likelihood(model, data, values | sites)
        return jax.ops.segment_sum(each, code, judges)

    def one(entry: tuple[Values, Array]) -> tuple[Array, Array]:
        values, factor = entry
        points = jnp.concatenate([near, white[..., size:] @ factor.T], axis=2)
        prior = _log_normal(points, jnp.broadcast_to(factor, root.shape))
        proposal = jnp.logaddexp(_log_normal(points - centre[:, None, None], root), prior)
        flat = jnp.moveaxis(points.reshape(judges, -1, size), 1, 0)
        each = jax.lax.map(partial(likelihood, values), flat, batch_size=_AT_ONCE)
        each = each.T.reshape(prior.shape)
        log_mean = logsumexp(each + prior - proposal + np.log(2), axis=2) - np.log(_POINTS)
        total = logsumexp(log_mean, axis=1) - np.log(_SHIFTS)
        variance = jnp.exp(log_mean - total[:, None]).var(1, ddof=1) / _SHIFTS
        return total + variance / 2, variance

    return jax.lax.map(one, (draws, of_prior))


def _log_normal(
    points: Float[Array, "judge shift point entry"], root: Float[Array, "judge entry entry"]
) -> Float[Array, "judge shift point"]:
    """Return normal log densities about 0, but for a constant."""
    flat = points.reshape(len(points), -1, points.shape[-1]).mT
    square = (solve_triangular(root, flat, lower=True) ** 2).sum(1)
    log_volume = jnp.log(jnp.abs(jnp.diagonal(root, axis1=1, axis2=2))).sum(1)
    return (-square / 2 - log_volume[:, None]).reshape(points.shape[:3])

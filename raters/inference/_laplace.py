"""Draws around a posterior mode: normal across the orbits of scale symmetries, exact along them."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from scipy.special import ndtr, ndtri
from scipy.stats import norm

from raters.inference import _polyagamma, _sweep
from raters.inference._conditionals import Conditional, Dense
from raters.inference._laplace_classes import around_classes
from raters.inference._rows import Block
from raters.inference._trace import log_prior, pointwise_log_likelihood
from raters.model import Model, Scale, Values


def laplace(plan: _sweep.Plan, data: Any, mode: Values, number: int, rng: np.random.Generator):
    """Draws of shape (1, number, ...) around the mode, with ``log_p`` and ``log_q`` where the precision is dense."""
    if number == 0:
        return {name: np.asarray(value)[None, None] for name, value in mode.items()}, {}
    if plan.classes:
        draws, stats = around_classes(plan, data, mode, number, rng)
        draws = _redraw_hyper(plan, data, draws, rng)
        return {name: value[None] for name, value in draws.items()}, stats
    draws, log_q = _around(plan, data, mode, number, rng)
    stats = {}
    if log_q is not None:
        stats = {"log_p": _log_density_of_orbits(plan, data, draws)[None], "log_q": log_q[None]}
    draws = _redraw_hyper(plan, data, draws, rng)
    return {name: value[None] for name, value in draws.items()}, stats


def _around(plan: _sweep.Plan, data: Any, mode: Values, number: int, rng: np.random.Generator):
    """Draws of the conjugate sites from the normal at the mode, across the orbits; and its log density where that is dense.

    All conjugate sites are taken as one block with Newton's weights: the conditional that EM maximises and Gibbs draws
    from then has the Fisher information as its precision. It is flat along a scale orbit, which a straight line follows
    badly, so draws stay on the section through the mode; the place on the orbit is drawn from its exact conditional later.
    """
    sites = tuple(name for block in plan.blocks for name in block.sites)
    current = Block(sites).current(mode)

    def weights(_, logits, count, kappa):
        omega, kappa, _ = _polyagamma.curvature(logits, count, kappa)
        return np.asarray(omega), np.asarray(kappa)

    given = _sweep.block_conditional(plan, data, mode, Block(sites), weights, draws=True, joint=True)
    assert isinstance(given, Conditional)
    tangents = [_tangent(scale, sites, mode) for scale in plan.scales]
    log_q = None
    if isinstance(given, Dense):
        for tangent in tangents:
            stiff = 1e4 * np.mean(given.diagonal) * given.size
            given.across += stiff * np.outer(tangent, tangent)
        entries, log_q = _gaussian_draws(given, current, number, rng)
    else:
        entries = np.stack([given.draw(rng, current) for _ in range(number)])
        for tangent in tangents:
            entries -= np.outer((entries - current) @ tangent, tangent)
        entries = np.clip(entries, given.prior.low, given.prior.high)
    draws = {name: np.repeat(np.asarray(value)[None], number, 0) for name, value in mode.items()}
    begin = 0
    for name in sites:
        size = np.size(mode[name])
        draws[name] = entries[:, begin : begin + size].reshape(number, *np.shape(mode[name]))
        begin += size
    return draws, log_q


def _tangent(scale: Scale, sites: tuple[str, ...], mode: Values) -> np.ndarray:
    """The unit direction of a scale orbit at the mode, among the conjugate sites."""
    sign = dict.fromkeys(scale.up, 1.0) | dict.fromkeys(scale.down, -1.0)
    direction = np.concatenate([sign.get(name, 0.0) * np.ravel(mode[name]) for name in sites])
    return direction / np.linalg.norm(direction)


def _gaussian_draws(given: Dense, mode: np.ndarray, number: int, rng: np.random.Generator):
    """Draws of the joint normal at the mode, bounded entries mapped to truncated normals with the same parameters."""
    factor = given.factor()
    standard = rng.standard_normal((given.size, number))
    entries = mode + scipy.linalg.solve_triangular(factor, standard, lower=True, trans="T").T
    log_q = np.log(np.diag(factor)).sum() + norm.logpdf(standard).sum(0)
    bounded = np.flatnonzero(np.isfinite(given.prior.low) | np.isfinite(given.prior.high))
    if len(bounded):
        variance = np.diag(scipy.linalg.cho_solve((factor, True), np.eye(given.size)))
        deviation = np.sqrt(variance[bounded])
        low = (given.prior.low[bounded] - mode[bounded]) / deviation
        high = (given.prior.high[bounded] - mode[bounded]) / deviation
        score = (entries[:, bounded] - mode[bounded]) / deviation
        # The mode is within the bounds, so low ≤ 0 ≤ high and the mass between them is at least about a half or representable.
        log_mass = np.log(ndtr(high) - ndtr(low))
        inside = np.clip(ndtri(ndtr(low) + (ndtr(high) - ndtr(low)) * ndtr(score)), low, high)
        # dv/dx of the map from the normal to the truncated normal.
        log_q -= (norm.logpdf(score) + log_mass - norm.logpdf(inside)).sum(1)
        entries[:, bounded] = mode[bounded] + deviation * inside
    return entries, log_q


def _log_density_of_orbits(plan: _sweep.Plan, data: Any, draws: Values) -> np.ndarray:
    """Log joint density of each draw, summed along its scale orbits, on which the likelihood is constant."""
    draws = {name: jnp.asarray(value) for name, value in draws.items()}
    total = np.asarray(_log_prior_of_orbits(plan, data.take(slice(0, 1)), draws))
    return total + sum(np.asarray(_log_likelihoods(plan.model, piece, draws)) for piece in data.chunks(_sweep.CHUNK))


@partial(jax.jit, static_argnums=0)
def _log_likelihoods(model: Model, data: Any, draws: Values) -> jax.Array:
    return jax.lax.map(lambda values: pointwise_log_likelihood(model, data, values).sum(), draws)


@partial(jax.jit, static_argnums=0)
def _log_prior_of_orbits(plan: _sweep.Plan, row: Any, draws: Values) -> jax.Array:
    """Log prior density, summed along the scale orbits by quadrature."""

    def one(values):
        density = log_prior(plan.model, row, values)
        for scale in plan.scales:
            line = _sweep.orbit_density(plan.model, row, values, scale, True)
            density = jax.scipy.special.logsumexp(jax.lax.map(line, jnp.linspace(-4.0, 4.0, 161)))
        return density

    return jax.lax.map(one, draws)


def _redraw_hyper(plan: _sweep.Plan, data: Any, draws: Values, rng: np.random.Generator) -> Values:
    """Hyper-parameters and places on the orbits, redrawn from their exact conditionals."""
    if not (plan.hyper or plan.scales):
        return draws
    number = len(next(iter(draws.values())))
    keys = jax.random.split(jax.random.key(rng.integers(2**32, dtype=np.uint64)), number)
    draws = {name: jnp.asarray(value) for name, value in draws.items()}
    redrawn = _redrawn(plan, data.take(slice(0, 1)), data, draws, keys)
    return {name: np.asarray(value) for name, value in redrawn.items()}


@partial(jax.jit, static_argnums=0)
def _redrawn(plan: _sweep.Plan, row: Any, data: Any, draws: Values, keys: jax.Array) -> Values:
    return jax.lax.map(lambda entry: _sweep.visit_free(plan, row, data, entry[0], entry[1], True), (draws, keys))

"""Draws around a posterior mode: normal across the orbits of scale symmetries, exact along them."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Float
from scipy.special import ndtr, ndtri
from scipy.stats import norm

from raters.inference.polya_gamma import augmentation, sweep
from raters.inference.polya_gamma.conditionals import Conditional, Dense
from raters.inference.polya_gamma.laplace_classes import around_classes
from raters.inference.polya_gamma.rows import Block
from raters.model import Scale, Values
from raters.program import log_likelihoods, log_prior


def laplace(
    plan: sweep.Plan, data: Any, mode: Values, num_draws: int, rng: np.random.Generator
) -> tuple[Values, Values]:
    """Draw around the mode.

    Returns
    -------
    tuple of dict
        Draws of each site, shape (1, draw, ...), and ``log_p`` and ``log_q``, shape (1, draw),
        where the precision is dense.
    """
    if num_draws == 0:
        return {name: np.asarray(value)[None, None] for name, value in mode.items()}, {}
    if plan.classes:
        draws, stats = around_classes(plan, data, mode, num_draws, rng)
        draws = _redraw_hyper(plan, data, draws, rng)
        return {name: value[None] for name, value in draws.items()}, stats
    draws, log_q = _around(plan, data, mode, num_draws, rng)
    stats = {}
    if log_q is not None:
        stats = {"log_p": _log_density_of_orbits(plan, data, draws)[None], "log_q": log_q[None]}
    draws = _redraw_hyper(plan, data, draws, rng)
    return {name: value[None] for name, value in draws.items()}, stats


def _around(
    plan: sweep.Plan, data: Any, mode: Values, num_draws: int, rng: np.random.Generator
) -> tuple[Values, Float[np.ndarray, " draw"] | None]:
    """Draw the conjugate sites from the normal at the mode; return also its log-density if dense.

    All conjugate sites are one block with Newton's weights, whose conditional has the Fisher
    information as its precision. That is flat along a scale orbit, which is curved, so draws stay
    on the section through the mode. The position on the orbit is drawn later, from its exact
    conditional.
    """
    sites = tuple(name for block in plan.blocks for name in block.sites)
    current = Block(sites).current(mode)

    def weights(
        _: Any, logits: np.ndarray, count: np.ndarray, kappa: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        omega, kappa, _ = augmentation.curvature(logits, count, kappa)
        return np.asarray(omega), np.asarray(kappa)

    conditional = sweep.block_conditional(
        plan, data, mode, Block(sites), weights, draws=True, joint=True
    )
    assert isinstance(conditional, Conditional)
    tangents = [_tangent(scale, sites, mode) for scale in plan.scales]
    log_q = None
    if isinstance(conditional, Dense):
        for tangent in tangents:
            # A high precision along the orbit keeps draws on the section.
            precision = 1e4 * np.mean(conditional.diagonal) * conditional.size
            conditional.across += precision * np.outer(tangent, tangent)
        entries, log_q = _gaussian_draws(conditional, current, num_draws, rng)
    else:
        entries = np.stack([conditional.draw(rng, current) for _ in range(num_draws)])
        for tangent in tangents:
            entries -= np.outer((entries - current) @ tangent, tangent)
        entries = np.clip(entries, conditional.prior.low, conditional.prior.high)
    draws = {name: np.repeat(np.asarray(value)[None], num_draws, 0) for name, value in mode.items()}
    begin = 0
    for name in sites:
        size = np.size(mode[name])
        draws[name] = entries[:, begin : begin + size].reshape(num_draws, *np.shape(mode[name]))
        begin += size
    return draws, log_q


def _tangent(scale: Scale, sites: tuple[str, ...], mode: Values) -> Float[np.ndarray, " entry"]:
    """Return the unit direction of a scale orbit at the mode, in the conjugate sites."""
    sign = dict.fromkeys(scale.up, 1.0) | dict.fromkeys(scale.down, -1.0)
    direction = np.concatenate([sign.get(name, 0.0) * np.ravel(mode[name]) for name in sites])
    return np.asarray(direction / np.linalg.norm(direction))


def _gaussian_draws(
    conditional: Dense, mode: np.ndarray, num_draws: int, rng: np.random.Generator
) -> tuple[Float[np.ndarray, "draw entry"], Float[np.ndarray, " draw"]]:
    """Draw from the joint normal at the mode, and return the draws with their log-densities.

    Bounded entries are mapped to truncated normals with the same parameters.
    """
    factor = conditional.factor()
    standard = rng.standard_normal((conditional.size, num_draws))
    entries = mode + scipy.linalg.solve_triangular(factor, standard, lower=True, trans="T").T
    log_q = np.log(np.diag(factor)).sum() + norm.logpdf(standard).sum(0)
    bounded = np.flatnonzero(
        np.isfinite(conditional.prior.low) | np.isfinite(conditional.prior.high)
    )
    if len(bounded):
        variance = np.diag(scipy.linalg.cho_solve((factor, True), np.eye(conditional.size)))
        deviation = np.sqrt(variance[bounded])
        low = (conditional.prior.low[bounded] - mode[bounded]) / deviation
        high = (conditional.prior.high[bounded] - mode[bounded]) / deviation
        score = (entries[:, bounded] - mode[bounded]) / deviation
        # The mode is within the bounds, so low ≤ 0 ≤ high, and the difference does not underflow.
        log_mass = np.log(ndtr(high) - ndtr(low))
        inside = np.clip(ndtri(ndtr(low) + (ndtr(high) - ndtr(low)) * ndtr(score)), low, high)
        # dv/dx of the map from the normal to the truncated normal.
        log_q -= (norm.logpdf(score) + log_mass - norm.logpdf(inside)).sum(1)
        entries[:, bounded] = mode[bounded] + deviation * inside
    return entries, log_q


def _log_density_of_orbits(
    plan: sweep.Plan, data: Any, draws: Values
) -> Float[np.ndarray, " draw"]:
    """Return the log joint density of each draw, integrated along its scale orbits.

    The likelihood is constant along them.
    """
    draws = {name: jnp.asarray(value) for name, value in draws.items()}
    total = np.asarray(_log_prior_of_orbits(plan, data.take(slice(0, 1)), draws))
    return total + sum(
        np.asarray(log_likelihoods(plan.model, piece, draws)) for piece in data.chunks(sweep.CHUNK)
    )


@partial(jax.jit, static_argnums=0)
def _log_prior_of_orbits(plan: sweep.Plan, row: Any, draws: Values) -> jax.Array:
    """Return the log prior density, integrated along the scale orbits by quadrature."""

    def of_draw(values: Values) -> jax.Array:
        density = log_prior(plan.model, row, values)
        for scale in plan.scales:
            line = sweep.orbit_density(plan.model, row, values, scale, True)
            density = jax.scipy.special.logsumexp(jax.lax.map(line, jnp.linspace(-4.0, 4.0, 161)))
        return density

    log_priors: jax.Array = jax.lax.map(of_draw, draws)
    return log_priors


def _redraw_hyper(plan: sweep.Plan, data: Any, draws: Values, rng: np.random.Generator) -> Values:
    """Redraw hyper-parameters and positions on the orbits from their exact conditionals."""
    if not (plan.hyper or plan.scales):
        return draws
    num_draws = len(next(iter(draws.values())))
    keys = jax.random.split(jax.random.key(rng.integers(2**32, dtype=np.uint64)), num_draws)
    draws = {name: jnp.asarray(value) for name, value in draws.items()}
    redrawn = _redrawn(plan, data.take(slice(0, 1)), data, draws, keys)
    return {name: np.asarray(value) for name, value in redrawn.items()}


@partial(jax.jit, static_argnums=0)
def _redrawn(plan: sweep.Plan, row: Any, data: Any, draws: Values, keys: jax.Array) -> Values:
    redrawn: Values = jax.lax.map(
        lambda entry: sweep.visit_free(plan, row, data, entry[0], entry[1], True), (draws, keys)
    )
    return redrawn

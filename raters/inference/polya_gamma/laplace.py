"""Draws around a posterior mode: normal across the orbits of scale symmetries, exact along them."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jax.sharding import Mesh
from jaxtyping import Array, Float
from numpyro.distributions import constraints
from scipy.special import log_ndtr, ndtri_exp

from raters.inference.arrays import Entries, EntryArray, EntryDraws, Matrix, PerDraw, Rng, Sites
from raters.inference.base import jax_keys
from raters.inference.polya_gamma import sweep
from raters.inference.polya_gamma.conditionals import Dense, Gaussian, joined
from raters.inference.polya_gamma.integrated import integrated
from raters.inference.polya_gamma.laplace_classes import around_classes
from raters.inference.polya_gamma.plans import Plan
from raters.inference.polya_gamma.rows import Block, block_prior, record, split
from raters.inference.polya_gamma.sums import Conditional, Reading
from raters.inference.polya_gamma.sweep import RunCache
from raters.model import Model, Scale, Values, local_sites
from raters.program import log_likelihoods, placing, pointwise_log_likelihood

# From so many rows on, draws are around the mean of a block, not around its mode.
MANY_ROWS = 20_000
# Rows times draws from which on log-likelihoods are computed in float32.
MUCH_WORK = 2e7
# Rows of which float32 keeps the sum.
_NARROW_ROWS = 2**14


def laplace(
    plan: Plan, data: Any, mode: Values, number: int, rng: Rng, cache: RunCache | None = None
) -> tuple[Values, Values]:
    """Draw around the mode; `cache` is what EM has read of the data."""
    if number == 0:
        return {name: np.asarray(value)[None, None] for name, value in mode.items()}, {}
    if plan.classes:
        draws, stats = around_classes(plan, data, mode, number, rng, cache)
        return {name: value[None] for name, value in draws.items()}, stats
    drawn, log_q, sites = _around(plan, data, mode, number, rng)
    return weighed(plan, data, drawn, log_q, sites, rng)


def weighed(
    plan: Plan, data: Any, drawn: Values, log_q: PerDraw | None, sites: Sites, rng: Rng
) -> tuple[Values, Values]:
    """Draw what is left given draws of some sites; return all draws, and their log densities."""
    log_prior, draws = integrated(plan, placing.first_unit(data), drawn, rng)
    if apart := not plan.reaching <= set(sites):
        draws = _redraw_reaching(plan, data, draws, rng)
    stats = {}
    if log_q is not None and not apart and not plan.steep:
        log_p = log_prior + pass_over_rows(plan, data, draws)
        stats = {"log_p": log_p[None], "log_q": log_q[None]}
    return {name: value[None] for name, value in draws.items()}, stats


def pass_over_rows(plan: Plan, data: Any, draws: Values) -> PerDraw:
    """Return the log-likelihood of each draw; of many rows and draws in float32."""
    summed_out = plan.classes or local_sites(plan.model) or placing.stays_on_devices(data)
    number = len(next(iter(draws.values())))
    narrow = data.num_rows * number >= MUCH_WORK and not summed_out
    with jax.enable_x64(not narrow):
        on_device = {name: jnp.asarray(value) for name, value in draws.items()}
        pieces = placing.pieces(data)
        if narrow:  # float64 on the device would stay it
            pieces = jax.tree.map(np.asarray, data).chunks(_NARROW_ROWS)
        each = [np.asarray(log_likelihoods(plan.model, one, on_device)) for one in pieces]
    return np.asarray(np.sum(each, axis=0, dtype=np.float64))


def _around(
    plan: Plan, data: Any, mode: Values, number: int, rng: Rng
) -> tuple[Values, PerDraw | None, Sites]:
    """Draw the conjugate sites from the normal at the mode."""
    sites, conditional = information(plan, data, mode)
    current = Block(sites).current(mode)
    prior = along_orbits(conditional.prior, plan.scales, sites, mode)
    log_q = None
    if isinstance(conditional, Dense):
        conditional.prior, bounded = prior, np.isfinite([prior.low, prior.high]).any()
        if data.num_rows >= MANY_ROWS and not plan.scales and not bounded:
            mean = mode | shifted(plan, data, mode, conditional.covariance())
            current = Block(sites).current(mean)
        entries, log_q = section_draws(plan, conditional, sites, mode, current, number, rng)
    else:
        conditional.sums[0] = conditional.sums[0]._replace(prior=prior)
        entries = conditional.draws(jax_keys(rng, number), current)
        for scale in plan.scales:
            tangent = tangent_of(scale, sites, mode)
            entries -= np.outer((entries - current) @ tangent, tangent)
        entries = np.clip(entries, prior.low, prior.high)
    draws = {name: np.repeat(np.asarray(value)[None], number, 0) for name, value in mode.items()}
    return draws | split(entries, mode, sites), log_q, sites


def information(plan: Plan, data: Any, mode: Values) -> tuple[Sites, Dense | Conditional]:
    """Return the conjugate sites as one normal at the mode, with Newton's weights."""
    sites = tuple(name for block in plan.blocks for name in block.sites)
    joint = Block(sites)
    if any(block.colours for block in plan.blocks):
        joint = Block(sites, colours=tuple(range(len(joint.current(mode)))))
    conditional = Conditional([Reading(plan.parts[0].model, joint, data, mode)], "curvature")
    normal = conditional.dense()
    if normal is not None and (wider := _with_reaching(plan, data, mode, normal)):
        return (*sites, *sorted(plan.reaching)), wider
    return sites, normal or conditional


def shifted(plan: Plan, data: Any, values: Values, covariance: Matrix) -> Values:
    """Return the means of the sites of a block of log-odds, to the order of the variances."""
    if len(plan.blocks) > 1:
        return {}
    block, slope = plan.blocks[0], np.zeros(len(covariance))
    for piece in placing.pieces(data):
        found = _skewness(plan.model, piece, values, block, covariance, placing.mesh_of(piece))
        if found is None:
            return {}
        slope += np.asarray(found)
    current = block.current(values)
    return block.put(values, current + (covariance @ slope)[: len(current)])


@partial(jax.jit, static_argnums=(0, 3, 5))
def _skewness(
    model: Model[Any], data: Any, values: Values, block: Block, across: Array, mesh: Mesh | None
) -> EntryArray | None:
    """Return what third derivatives add to the slope; None of rows that are not log-odds."""
    rows = record(model, data, values, block)
    if rows.entry is None or rows.shift is not None:
        return None
    pairs = list(zip(rows.entry, rows.weight, strict=True))
    spread = sum(
        one * other * across[place, there] for place, one in pairs for there, other in pairs
    )
    prob = jax.nn.sigmoid(rows.logits)
    half = -rows.votes * prob * (1 - prob) * (1 - 2 * prob) * spread / 2
    slope = jnp.zeros(len(across), half.dtype)
    for place, one in pairs:
        slope = slope.at[place].add(one * half)
    return placing.everywhere(slope, mesh)


def _with_reaching(plan: Plan, data: Any, mode: Values, normal: Dense) -> Dense | None:
    """Return the normal with the free sites that reach the likelihood, where it has a density."""
    names = tuple(sorted(plan.reaching))
    if not names or any(plan.supports[name] is not constraints.real for name in names):
        return None
    sites = tuple(name for block in plan.blocks for name in block.sites)
    prior = block_prior(plan.model, placing.first_unit(data), mode, names)
    wider = Dense(jax.tree.map(np.asarray, joined([normal.prior, prior])))
    size, values = normal.size, {name: jnp.asarray(value) for name, value in mode.items()}
    wider.diagonal[:size], wider.across[:size, :size] = normal.diagonal, normal.across
    for piece in placing.pieces(data):
        across, own = _curvatures(plan.model, piece, values, sites, names)
        wider.across[:size, size:] -= np.asarray(across)
        wider.across[size:, :size] -= np.asarray(across).T
        wider.across[size:, size:] -= np.asarray(own)
    try:
        wider.factor()
    except np.linalg.LinAlgError:
        return None
    return wider


@partial(jax.jit, static_argnums=(0, 3, 4))
def _curvatures(
    model: Model[Any], data: Any, values: Values, sites: Sites, names: Sites
) -> tuple[Float[Array, "entry other"], Float[Array, "other other"]]:
    """Differentiate the log-likelihood twice: in both groups of sites, and in the second."""

    def likelihood(entries: Array, others: Array) -> Array:
        moved = split(entries, values, sites) | split(others, values, names)
        return pointwise_log_likelihood(model, data, values | moved).sum()

    at = (jnp.concatenate([values[name].ravel() for name in group]) for group in (sites, names))
    return jax.jacfwd(jax.grad(likelihood, (0, 1)), 1)(*at)


def along_orbits(
    prior: Gaussian, scales: tuple[Scale, ...], sites: Sites, mode: Values
) -> Gaussian:
    """Return a prior without the bounds that may be crossed along a scale orbit."""
    scaled = np.any([signs_of(scale, sites, mode) != 0 for scale in scales], axis=0)
    low = np.where(scaled & (prior.low != 0), -np.inf, prior.low)
    high = np.where(scaled & (prior.high != 0), np.inf, prior.high)
    return prior._replace(low=low, high=high)


def tangent_of(scale: Scale, sites: Sites, mode: Values) -> Entries:
    """Return the unit direction of a scale orbit at the mode, in the conjugate sites."""
    entries = np.concatenate([np.ravel(mode[name]) for name in sites])
    direction = signs_of(scale, sites, mode) * entries
    return np.asarray(direction / np.linalg.norm(direction))


def log_crossing(
    scales: tuple[Scale, ...], sites: Sites, mode: Values, entries: EntryDraws, slope: EntryDraws
) -> PerDraw:
    """Return the log volume of the orbits' directions across the section, at each draw."""
    if not scales:
        return np.zeros(len(entries))
    normals = np.stack([tangent_of(scale, sites, mode) for scale in scales])
    directions = np.stack([signs_of(scale, sites, mode) for scale in scales])
    moved = directions[None] * (entries / slope)[:, None]
    return np.asarray(np.linalg.slogdet(np.einsum("se,dre->dsr", normals, moved))[1])


def signs_of(scale: Scale, sites: Sites, mode: Values) -> Entries:
    """Return how the logarithm of each entry moves along a scale orbit: 1, -1 or 0."""
    signs = [float(name in scale.up) - float(name in scale.down) for name in sites]
    return np.repeat(signs, [np.size(mode[name]) for name in sites])


def section_draws(
    plan: Plan, normal: Dense, sites: Sites, values: Values, centre: Entries, number: int, rng: Rng
) -> tuple[EntryDraws, PerDraw]:
    """Draw from a normal around a centre, truncated to the bounds of its prior, on the section
    across the orbits of scale symmetries at some values; return draws and log densities."""
    from scipy.stats import norm

    tangents = [tangent_of(scale, sites, values) for scale in plan.scales]
    # A high precision along the orbit keeps draws on the section.
    along = 1e4 * np.mean(normal.diagonal) * normal.size
    for tangent in tangents:
        normal.across += along * np.outer(tangent, tangent)
    factor = normal.factor()
    standard = rng.standard_normal((normal.size, number))
    apart = scipy.linalg.solve_triangular(factor, standard, lower=True, trans="T").T
    entries, slope = centre + apart, np.ones_like(apart)
    log_q = np.log(np.diag(factor)).sum() + norm.logpdf(standard).sum(0)
    # The density is that on the section, so what is left across it does not count.
    for tangent in tangents:
        log_q += along * (apart @ tangent) ** 2 / 2
    bounded = np.flatnonzero(np.isfinite(normal.prior.low) | np.isfinite(normal.prior.high))
    if len(bounded):
        deviation = np.sqrt(np.diag(normal.covariance())[bounded])
        low, high = (
            (end[bounded] - centre[bounded]) / deviation
            for end in (normal.prior.low, normal.prior.high)
        )
        score = apart[:, bounded] / deviation
        inside, log_slope = _truncated(score, low, high)
        log_q -= log_slope.sum(1)
        entries[:, bounded] = centre[bounded] + deviation * inside
        slope[:, bounded] = np.exp(log_slope)
    return entries, log_q - log_crossing(plan.scales, sites, values, entries, slope)


def _truncated(score: EntryDraws, low: Entries, high: Entries) -> tuple[EntryDraws, EntryDraws]:
    """Map standard normals to truncated ones; return these, and the log slopes of the map."""
    from scipy.stats import norm

    # Turned round where the mass is in the upper tail, whose probabilities would be rounded to 1.
    sign = np.where(low + high > 0, -1.0, 1.0)
    low, high = np.minimum(sign * low, sign * high), np.maximum(sign * low, sign * high)
    log_low, log_high = log_ndtr(low), log_ndtr(high)
    log_mass = log_high + np.log1p(-np.exp(np.minimum(log_low - log_high, -1e-15)))
    level = np.logaddexp(log_low, log_mass + log_ndtr(sign * score))
    inside = np.clip(ndtri_exp(np.minimum(level, log_high)), low, high)
    return sign * inside, norm.logpdf(score) + log_mass - norm.logpdf(inside)


def _redraw_reaching(plan: Plan, data: Any, draws: Values, rng: Rng) -> Values:
    """Redraw the sites of no block on which the likelihood depends, each given the others."""
    keys = jax_keys(rng, len(next(iter(draws.values()))))
    draws = {name: jnp.asarray(value) for name, value in draws.items()}
    redrawn = _redrawn(plan, placing.first_unit(data), data, draws, keys)
    return {name: np.asarray(value) for name, value in redrawn.items()}


@partial(jax.jit, static_argnums=0)
def _redrawn(plan: Plan, row: Any, data: Any, draws: Values, keys: Array) -> Values:
    return jax.lax.map(
        lambda entry: sweep.visit_free(plan, row, data, entry[0], entry[1], True), (draws, keys)
    )

"""Draws around a posterior mode."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array

from raters.inference.arrays import PerDraw, Rng, Sites
from raters.inference.base import jax_keys
from raters.inference.polya_gamma import latent_classes, sweep, unconstrained
from raters.inference.polya_gamma.conditionals import DENSE_LIMIT, MODE_LIMIT
from raters.inference.polya_gamma.integrated import integrated
from raters.inference.polya_gamma.metric import Metric, curvatures, near_sites, numbers_of
from raters.inference.polya_gamma.plans import Plan
from raters.inference.polya_gamma.rows import Block, split
from raters.inference.polya_gamma.sums import Conditional, How, Reading, drawn_by_each, sums_of
from raters.inference.polya_gamma.tables import inverse_factor
from raters.model import Values
from raters.program import Supports, log_likelihoods, placing
from raters.program.values import inside

# Largest number of parameters, and of rows times parameters, for which the negative Hessian is
# computed: each of its columns needs a pass over the rows.
_MOST_PARAMETERS, _MOST_WORK = 1500, 2e8
# Steps to the mode in unconstrained coordinates.
_MOST_STEPS = 2000
# Least curvature along a coordinate that units are made of.
_LEAST = 1e-6
# Steps of Gibbs sampling after the normal draw, and the largest number of rows times classes in all
# of them.
_MOVES, _MOVE_LIMIT = 3, 5e8


def laplace(plan: Plan, data: Any, mode: Values, number: int, rng: Rng) -> tuple[Values, Values]:
    """Draw around the mode."""
    if number == 0:
        return {name: np.asarray(value)[None, None] for name, value in mode.items()}, {}
    row = placing.first_unit(data)
    size = sum(np.size(value) for name, value in mode.items() if name not in plan.hyper)
    if plan.is_joint or plan.chooses:
        draws, stats = _around(plan, row, data, mode, number, rng)
    elif not _is_normal(plan) and is_small(size, data.num_rows):
        draws, stats = _around(plan, row, data, mode, number, rng)
        if counted := tuple(block.sites[0] for block in plan.blocks if block.kind == "counts"):
            draws = _moved(plan, data, draws, counted, rng)
    elif plan.classes:
        draws, stats = _by_block(plan, data, mode, number, rng), {}
        if plan.hyper:
            draws = integrated(plan, row, draws, rng)[1]
    else:
        drawn, log_q = _of_rows(plan, data, mode, number, rng)
        of_prior, draws = integrated(plan, row, drawn, rng)
        stats = {}
        if log_q is not None:
            on_device = {name: jnp.asarray(value) for name, value in draws.items()}
            each = [log_likelihoods(plan.model, one, on_device) for one in placing.pieces(data)]
            stats = {"log_p": of_prior + np.sum(each, axis=0), "log_q": log_q}
        elif plan.reaching:
            draws = _redrawn(plan, row, data, draws, rng)
    if plan.scales:  # Of which a normal says little.
        draws = _redrawn(replace(plan, free=plan.hyper), row, data, draws, rng)
    draws, stats = ({n: np.asarray(v)[None] for n, v in each.items()} for each in (draws, stats))
    return draws, stats


def _is_normal(plan: Plan) -> bool:
    """Return whether all sites but the hyper-parameters are normal given the rows."""
    others = plan.classes or plan.reaching or plan.steep or plan.scales
    is_unbounded = partial(unconstrained.is_unbounded, plan.supports)
    return not others and all(map(is_unbounded, block_sites(plan)))


def is_small(size: int, rows: int) -> bool:
    """Return whether the negative Hessian of so many parameters and rows is computed."""
    return size <= _MOST_PARAMETERS and size * rows <= _MOST_WORK


# ----------------------------------------------------------------- in unconstrained coordinates


def _around(
    plan: Plan, row: Any, data: Any, mode: Values, number: int, rng: Rng
) -> tuple[Values, Values]:
    """Draw around the mode in unconstrained coordinates."""
    own = Supports({name: one for name, one in plan.supports.items() if name not in plan.hyper})
    own = unconstrained.by_scores(own)
    given = {name: np.asarray(value, np.float64) for name, value in mode.items()}
    given |= inside({name: given[name] for name in own}, own)
    like = {name: jnp.asarray(value) for name, value in given.items()}
    climb = partial(unconstrained.slope, plan.model, own, data, like)
    options = {"maxiter": _MOST_STEPS, "maxfun": 10 * _MOST_STEPS, "ftol": 1e-13, "gtol": 1e-6}
    start = np.asarray(unconstrained.flat_of(own, like))
    centre = jnp.asarray(unconstrained.maximised(climb, start, options=options).x)
    noise = rng.standard_normal((number, len(start)))
    log_q = -(noise**2).sum(1) / 2
    is_large, near = len(start) > DENSE_LIMIT, jnp.arange(len(start))
    if is_large:
        few = near_sites(plan.model, {name: like[name] for name in own})
        near = numbers_of(own, like, few)
    found = _curvatures(plan.model, own, data, like, near, centre)
    second, diagonal = map(np.asarray, found)
    if is_large:
        # The inverse of the metric of `HMC` is the covariance.
        metric = Metric.of(centre, near, second, diagonal)
        assert metric is not None  # The density is finite at its mode.
        points = jax.vmap(metric.unconstrained)(jnp.asarray(noise))
    else:
        unit = 1 / np.sqrt(np.maximum(np.abs(np.diagonal(second)), _LEAST))
        factor = unit[:, None] * inverse_factor((unit[:, None] * second * unit)[None])[0]
        points = centre + noise @ factor.T
        log_q -= np.linalg.slogdet(factor)[1] + len(start) * np.log(2 * np.pi) / 2
    sites, volume = unconstrained.sites_at_each(own, like, points)
    drawn = {name: np.repeat(value[None], number, 0) for name, value in given.items()} | sites
    of_prior, drawn = integrated(plan, row, drawn, rng)
    # Draws around no maximum may have infinite densities of both signs: `importance` says so.
    with np.errstate(invalid="ignore"):
        log_p = of_prior + np.asarray(log_likelihoods(plan.model, data, drawn))
    stats = {"log_p": log_p, "log_q": log_q - np.asarray(volume)}
    return {name: drawn[name] for name in plan.supports}, stats


@partial(jax.jit, static_argnums=(0, 1))
def _curvatures(
    model: Any, supports: Supports, data: Any, like: Values, near: Array, centre: Array
) -> tuple[Any, Array]:
    density = partial(unconstrained.log_density, model, supports, data, like)
    return curvatures(density, near, centre)


# ------------------------------------------------------------------------ of models with classes


def _moved(plan: Plan, data: Any, draws: Values, counted: Sites, rng: Rng) -> Values:
    """Move each draw by steps of Gibbs sampling, unless that is too much work."""
    number = len(next(iter(draws.values())))
    first = {name: value[0] for name, value in draws.items()}
    expected = jax.eval_shape(partial(latent_classes.expected, plan.model), data, first)[0]
    if number * _MOVES * data.num_rows * expected.shape[-1] > _MOVE_LIMIT:
        return draws
    moved = _steps(plan, data, draws, jax_keys(rng, number), counted)
    return {name: np.asarray(value) for name, value in moved.items()}


@partial(jax.jit, static_argnums=(0, 4))
def _steps(plan: Plan, data: Any, draws: Values, keys: Array, counted: Sites) -> Values:
    """Take the steps of each draw."""

    def move(entry: tuple[Values, Array]) -> Values:
        values, key = entry

        def step(index: int, values: Values) -> Values:
            use = jax.random.fold_in(key, index)
            return latent_classes.moved(plan.model, data, values, counted, use)

        return jax.lax.fori_loop(0, _MOVES, step, values)

    return jax.lax.map(move, (draws, keys))


def _by_block(plan: Plan, data: Any, mode: Values, number: int, rng: Rng) -> Values:
    """Draw each block from its conditional at the mode, given the expected classes."""
    classes = latent_classes.expected(plan.model, data, mode)[0]
    how = How.of("curvature", data, MODE_LIMIT)
    drawn, counts = _block_draws(plan, how, data, mode, {"": classes}, jax_keys(rng, number))
    on_host = {
        site: latent_classes.sampled_on_host(one, number, rng) for site, one in counts.items()
    }
    return {name: on_host[name] if name in on_host else np.array(drawn[name]) for name in mode}


@partial(jax.jit, static_argnums=(0, 1))
def _block_draws(
    plan: Plan, how: How, data: Any, mode: Values, classes: Any, keys: Array
) -> tuple[Values, dict[str, latent_classes.Parameters]]:
    """Return draws of all sites, those of each block by each key, and parameters of Dirichlet and
    Beta conditionals, of which there are none yet."""
    counted = {}
    draws = {name: jnp.repeat(value[None], len(keys), 0) for name, value in mode.items()}
    for place, block in enumerate(plan.blocks):
        (reading,) = readings = sweep.readings_of(plan, place, data, mode, classes)
        keys = jax.vmap(partial(jax.random.fold_in, data=place))(keys)
        if block.kind == "counts":
            prior = latent_classes.site_prior(reading.model, data, mode, block.sites[0])
            counts = sweep.counts_of(readings)
            if len(counts) < latent_classes.OF_MIXTURE:
                counted[block.sites[0]] = counts
                continue
            drawn = jax.lax.map(partial(latent_classes.sampled, prior, counts), keys)
        else:
            sums = [sums_of(reading, None, how)]
            drawn = drawn_by_each(readings, sums, block.flat(mode), keys, how)
        draws = jax.vmap(block.placed)(draws, drawn.reshape(len(keys), -1))
    return {name: draws[name] for name in draws if name not in counted}, counted


# -------------------------------------------------------------------------------- of log-odds


def _of_rows(
    plan: Plan, data: Any, mode: Values, number: int, rng: Rng
) -> tuple[Values, PerDraw | None]:
    """Draw the conjugate sites from the normal at the mode, within their bounds."""
    from scipy.stats import norm

    sites, normal = block_sites(plan), information(plan, data, mode)
    current, log_q = np.asarray(Block(sites).flat(mode)), None
    if (precision := normal.precision) is None:
        entries = normal.draws(jax_keys(rng, number), current)
    else:
        factor = scipy.linalg.cholesky(precision, lower=True)
        standard = rng.standard_normal((len(current), number))
        entries = current + scipy.linalg.solve_triangular(factor, standard, lower=True, trans="T").T
        if _is_normal(plan):
            log_q = np.log(np.diag(factor)).sum() + norm.logpdf(standard).sum(0)
    entries = np.clip(entries, normal.prior.low, normal.prior.high)
    draws = {name: np.repeat(np.asarray(value)[None], number, 0) for name, value in mode.items()}
    return draws | split(entries, mode, sites), log_q


def block_sites(plan: Plan) -> Sites:
    """Return the sites of all blocks."""
    return tuple(name for block in plan.blocks for name in block.sites)


def information(plan: Plan, data: Any, mode: Values) -> Conditional:
    """Return the conjugate sites as one normal at the mode, with Newton's weights."""
    joint = Block(block_sites(plan))
    if any(block.colours for block in plan.blocks):
        joint = joint._replace(colours=tuple(range(len(joint.flat(mode)))))
    return Conditional([Reading(plan.parts[0].model, joint, data, mode)], "curvature")


def _redrawn(plan: Plan, row: Any, data: Any, draws: Values, rng: Rng) -> Values:
    """Redraw places on orbits of scales and free sites, each given the others."""
    keys = jax_keys(rng, len(next(iter(draws.values()))))
    redrawn: Values = _visited(plan, row, data, jax.tree.map(jnp.asarray, draws), keys)
    return redrawn


@partial(jax.jit, static_argnums=0)
def _visited(plan: Plan, row: Any, data: Any, draws: Values, keys: Array) -> Values:
    visit = partial(sweep.visit_free, plan, row, data, draws=True)
    return jax.lax.map(lambda entry: visit(*entry), (draws, keys))

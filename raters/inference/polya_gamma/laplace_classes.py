"""Draws around the mode of a model whose likelihood sums latent classes out."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpyro.distributions import constraints
from numpyro.distributions.transforms import biject_to
from scipy.special import betaincinv, betaln, expit, log_expit, ndtr

from raters.inference.arrays import Entries, EntryDraws, FlatPoint, PerDraw, Rng, Sites
from raters.inference.base import jax_keys, warn
from raters.inference.polya_gamma import latent_classes, sweep, unconstrained
from raters.inference.polya_gamma.conditionals import MODE_LIMIT
from raters.inference.polya_gamma.integrated import integrated
from raters.inference.polya_gamma.plans import Plan
from raters.inference.polya_gamma.sums import How, drawn_by_each, sums_of
from raters.inference.polya_gamma.sweep import RunCache
from raters.model import Values
from raters.program import Supports, log_likelihoods, placing

# Largest number of parameters, and of rows times parameters, for which the information matrix is
# computed: each of its columns needs a pass over the rows.
_DENSE_LIMIT = 1500
_WORK_LIMIT = 2e8
# Steps of Gibbs sampling after the normal draw, and the largest number of rows times classes in all
# of them.
_MOVES = 3
_MOVE_LIMIT = 5e8
# Coordinates of bounded sites are clipped to this, since rounding puts larger ones on the bound.
_FARTHEST = 30.0
# A wider normal in unconstrained coordinates does not describe a bounded site.
_WIDEST = 2.0
# Smaller probabilities are taken for this one.
_LEAST = 1e-300


def is_small(size: int, rows: int) -> bool:
    """Return whether the information matrix of so many parameters and rows is computed."""
    return size <= _DENSE_LIMIT and size * rows <= _WORK_LIMIT


def around_classes(
    plan: Plan, data: Any, mode: Values, number: int, rng: Rng, cache: RunCache | None = None
) -> tuple[Values, Values]:
    """Draw around the mode given the hyper-parameters, and draw these given the rest."""
    own = Supports({name: one for name, one in plan.supports.items() if name not in plan.hyper})
    like = {name: jnp.asarray(value) for name, value in mode.items()}
    start = np.asarray(unconstrained.flat_of(own, like))
    # The normal is not on a section across the orbits, so that it covers them.
    free = dataclasses.replace(plan, scales=())
    row = placing.first_unit(data)
    if not is_small(start.size, data.num_rows):
        drawn = _by_block(plan, data, mode, number, rng, cache)
        return (integrated(free, row, drawn, rng)[1] if plan.hyper else drawn), {}
    counted = tuple(block.sites[0] for block in plan.blocks if block.kind == "counts")
    points, log_q = _unconstrained(plan, own, data, like, counted, number, rng)
    sites, volume = unconstrained.sites_at_each(own, like, points)
    fixed = {name: np.repeat(like[name][None], number, 0) for name in plan.hyper}
    draws = fixed | sites
    log_p = np.asarray(log_likelihoods(plan.model, data, draws) + volume)
    log_prior, draws = integrated(
        free, row, {name: np.asarray(value) for name, value in draws.items()}, rng
    )
    if counted:
        draws = _moved(plan, data, draws, counted, rng)
    # Draws around no maximum may have infinite densities of both signs: `importance` says so.
    with np.errstate(invalid="ignore"):
        log_p = log_p + log_prior
    return draws, {"log_p": log_p[None], "log_q": log_q[None]}


def _unconstrained(
    plan: Plan, own: Supports, data: Any, like: Values, counted: Sites, number: int, rng: Rng
) -> tuple[EntryDraws, PerDraw]:
    """Draw the unconstrained coordinates of the `own` sites around their mode, given the others."""

    from scipy.stats import norm

    objective = partial(unconstrained.slope, plan.model, own, data, like)
    start = np.asarray(unconstrained.flat_of(own, like))
    best = unconstrained.maximised(objective, start, options={"maxiter": 500}).x
    eigenvalues, eigenvectors = np.linalg.eigh(
        np.asarray(unconstrained.curvature(plan.model, own, data, like, best))
    )
    deviation = 1 / np.sqrt(np.maximum(eigenvalues, 1e-4))
    standard = rng.standard_normal((number, start.size))
    points = best + (standard * deviation) @ eigenvectors.T
    log_q = norm.logpdf(standard).sum(1) - np.log(deviation).sum()
    spread = np.sqrt(((eigenvectors * deviation) ** 2).sum(1))
    shapes = {name: biject_to(one).inverse_shape(np.shape(like[name])) for name, one in own.items()}
    offset = _flat(
        {n: _offset(own[n], shape) if n in counted else np.nan for n, shape in shapes.items()},
        shapes,
    )
    points, log_ratio = _as_betas(points, best, spread, offset)
    intervals = {name for name, one in own.items() if isinstance(one, constraints.interval)}
    bounded = intervals - set(counted)
    _warn_of_wide(bounded, unconstrained.coordinates_of(own, like, spread))
    end = _flat({name: _FARTHEST if name in bounded else np.inf for name in shapes}, shapes)
    return np.clip(points, -end, end), log_q + log_ratio


def _flat(values: dict[str, Any], shapes: dict[str, tuple[int, ...]]) -> FlatPoint:
    """Return values of the coordinates of sites as one row, in the order of `flat_of`."""
    each = {name: np.broadcast_to(values[name], shape) for name, shape in shapes.items()}
    return np.concatenate([np.ravel(one) for one in jax.tree.leaves(each)])


def _offset(support: Any, shape: tuple[int, ...]) -> Any:
    """Return what to take from coordinates of a counted site to have log odds, or NaN."""
    if support is constraints.simplex:  # Breaks of a stick.
        return np.log(np.arange(shape[-1], 0, -1.0))
    return 0.0 if isinstance(support, constraints.interval) else np.nan


def _as_betas(
    points: EntryDraws, mode: Entries, spread: Entries, offset: Entries
) -> tuple[EntryDraws, PerDraw]:
    """Map normal draws of log odds to those of betas of the same mode and curvature."""
    from scipy.stats import norm

    which = np.isfinite(offset)
    centre, deviation = (mode - offset)[which], spread[which]
    total = 1 / (deviation**2 * expit(centre) * expit(-centre))
    first, second = total * expit(centre), total * expit(-centre)
    score = (points[:, which] - mode[which]) / deviation
    # Each end by its own tail, which rounding would lose in the other.
    low, high = (
        np.log(np.maximum(betaincinv(one, other, ndtr(sign * score)), _LEAST))
        for one, other, sign in ((first, second, 1), (second, first, -1))
    )
    odds = low - high
    log_density = first * log_expit(odds) + second * log_expit(-odds) - betaln(first, second)
    change = log_density - norm.logpdf(score) + np.log(deviation)
    mapped = points.copy()
    mapped[:, which] = odds + offset[which]
    return mapped, change.sum(1)


def _warn_of_wide(bounded: set[str], deviations: Values) -> None:
    """Warn of bounded sites whose posterior is not approximately normal around the mode."""
    for name in sorted(bounded):
        if wide := int(np.sum(np.asarray(deviations[name]) > _WIDEST)):
            warn(
                f"{wide} of {np.size(deviations[name])} entries of {name!r} may lie nearly anywhere"
                " within their bounds, which draws around the mode show badly; use Gibbs sampling"
                " for their intervals and for LOO",
                6,
            )


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


def _by_block(
    plan: Plan, data: Any, mode: Values, number: int, rng: Rng, cache: RunCache | None
) -> Values:
    """Draw each block from its conditional at the mode, given the expected classes."""
    data, classes, _ = latent_classes.expected_by(
        None if cache is None else cache.pooled, plan.model, data, mode
    )
    how = How.of("curvature", data, MODE_LIMIT)
    drawn = _block_draws(plan, how, data, mode, {"": classes}, jax_keys(rng, number))
    return {name: np.array(drawn[name]) for name in mode}


@partial(jax.jit, static_argnums=(0, 1))
def _block_draws(
    plan: Plan, how: How, data: Any, mode: Values, classes: Any, keys: Array
) -> Values:
    """Return draws of all sites, those of each block by each key."""
    draws = {name: jnp.repeat(value[None], len(keys), 0) for name, value in mode.items()}
    for place, block in enumerate(plan.blocks):
        (reading,) = readings = sweep.readings_of(plan, place, data, mode, classes)
        keys = jax.vmap(partial(jax.random.fold_in, data=place))(keys)
        if block.kind == "counts":
            prior = latent_classes.site_prior(reading.model, data, mode, block.sites[0])
            counts = sweep.counts_of(readings)
            drawn = jax.lax.map(partial(latent_classes.sampled, prior, counts), keys)
        else:
            sums = [sums_of(reading, None, how)]
            drawn = drawn_by_each(readings, sums, block.flat(mode), keys, how)
        draws = jax.vmap(block.placed)(draws, drawn.reshape(len(keys), -1))
    return draws

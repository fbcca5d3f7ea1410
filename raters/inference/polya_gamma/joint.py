"""Modes of several kinds of judgement and of choices from sets, and draws around them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from raters.inference.arrays import Entries, EntryDraws, Matrix, PerDraw, Rng, Scalar
from raters.inference.polya_gamma import (
    conditionals,
    detection,
    hmc,
    line,
    plans,
    ties,
    unconstrained,
)
from raters.inference.polya_gamma.integrated import integrated
from raters.inference.polya_gamma.plans import Plan
from raters.inference.polya_gamma.sums import How
from raters.inference.polya_gamma.tables import inverse_factor
from raters.model import Model, Scale, Values, marginal_of
from raters.program import Program, Supports, log_joint, log_likelihoods, log_prior, start_of
from raters.program.values import inside


@partial(jax.jit, static_argnums=0)
def objective(plan: Plan, data: Any, values: Values) -> Scalar:
    """Return the log joint density, with tied sites in normal scores."""
    total = log_joint(plan.model, data, values)
    row = data.first_unit()
    for block, tie in zip(plan.blocks, plan.ties, strict=True):
        if tie is not None:
            total += ties.to_scores(plan, tie, row, values, values[block.sites[0]]).sum()
    return total


# Steps to the mode in unconstrained coordinates, and columns of the curvature computed at a time.
_MOST_STEPS, _COLUMNS = 2000, 16
# Least curvature along a coordinate that units are made of.
_LEAST = 1e-6


def why_not(program: Program[Any], draws: int) -> str | None:
    """Explain why `PGEM` has no mode of several kinds or of choices, or no draws around it."""
    if not program.is_joint and not detection.chooses(program):
        return None
    for name, part in program.parts.items():
        marginal = marginal_of(part.model, part.data)
        if isinstance(marginal, str):
            return f"part {name!r}: {marginal}"
        if marginal is not None:
            which = f"PGEM integrates {marginal.site!r} of {part.model.title} out"
            return f"part {name!r}: {which}, in one kind of judgement only; use PGGibbs or NUTS"
    with jax.enable_x64(True):
        plan = plans.plan(program, start_of(program.model, program.data))
    if not (plan.blocks or plan.chooses):
        return f"{program.model.title} has no site that EM updates by a block; use NUTS or SVI"
    moved = {*plan.steep, *(name for block in plan.blocks for name in block.sites)}
    model: Any = program.model
    tied = [model.site_name(*one) for group in model.tied for one in group] if plan.is_joint else []
    if loose := [name for name in tied if name not in moved]:
        return f"{loose[0]!r} is tied, and its entries are not independent; use PGGibbs or NUTS"
    size = sum(
        int(np.prod(site.shape)) for name, site in program.sites.items() if name not in plan.hyper
    )
    if draws and size > conditionals.DENSE_LIMIT and not plan.chooses:
        what = f"draws around a mode of {size:,} numbers (at most {conditionals.DENSE_LIMIT:,})"
        return f"PGEM has no {what}; PGEM(draws=0) gives the mode, and PGGibbs draws"
    return None


@partial(jax.jit, static_argnums=0)
def _on_orbits(plan: Plan, row: Any, values: Values) -> Values:
    """Move to the highest density on the orbit of each scale symmetry."""
    moved = values
    for scale in plan.holding_hyper().scales:
        along = line.orbit_density(partial(log_prior, plan.model, row), moved, scale)
        moved = line.orbit(moved, scale, line.golden_step(along))
    return moved


@partial(jax.jit, static_argnums=(0, 1))
def _directions(
    scales: tuple[Scale, ...],
    supports: Supports,
    values: Values,
    points: Float[Array, "draw entry"],
) -> Float[Array, "draw orbit entry"]:
    """Return the directions of the scale orbits at some points."""

    def along(point: Array) -> Array:
        there = values | unconstrained.sites_at(supports, values, point)[0]

        def moved(scale: Scale, log_factor: Array) -> Array:
            return unconstrained.flat_of(supports, line.orbit(there, scale, log_factor))

        return jnp.stack([jax.jacfwd(partial(moved, one))(jnp.zeros(())) for one in scales])

    return jax.vmap(along)(points)


def draws(plan: Plan, data: Any, mode: Values, number: int, rng: Rng) -> tuple[Values, Values]:
    """Draw around the mode in unconstrained coordinates."""
    given = {name: np.asarray(value, np.float64) for name, value in mode.items()}
    if number == 0:
        return {name: value[None, None] for name, value in given.items()}, {}
    row = data.first_unit()
    own = Supports({name: one for name, one in plan.supports.items() if name not in plan.hyper})
    given = {name: np.asarray(value) for name, value in _on_orbits(plan, row, given).items()}
    given |= inside({name: given[name] for name in own}, own)
    like = {name: jnp.asarray(value) for name, value in given.items()}
    start = np.asarray(unconstrained.flat_of(own, like))
    normals = np.zeros((0, len(start)))
    if many := len(start) > conditionals.DENSE_LIMIT:
        plan = replace(plan, scales=())
    if plan.scales:
        normals = np.asarray(_directions(plan.scales, own, like, start[None]))[0]
        normals = np.linalg.qr(normals.T)[0].T
    centre = _highest(plan.model, own, data, like, start, normals)
    if many:
        apart, log_q = _by_metric(replace(plan, supports=own), data, like, centre, number, rng)
    else:
        second = unconstrained.curvature(
            plan.model, own, data, like, jnp.asarray(centre), batch_size=_COLUMNS
        )
        apart, log_q = _on_section(np.asarray(second), normals, number, rng)
    sites, volume = unconstrained.sites_at_each(own, like, centre + apart)
    log_q -= np.asarray(volume)
    if plan.scales:
        crossing = np.asarray(_directions(plan.scales, own, like, centre + apart)) @ normals.T
        log_q -= np.linalg.slogdet(crossing)[1]
    drawn = {name: np.repeat(value[None], number, 0) for name, value in given.items()} | sites
    log_prior, drawn = integrated(plan, row, drawn, rng)
    log_p = log_prior + np.asarray(log_likelihoods(plan.model, data, drawn))
    values = {name: np.asarray(drawn[name])[None] for name in plan.supports}
    return values, {"log_p": log_p[None], "log_q": log_q[None]}


def _by_metric(
    plan: Plan, data: Any, like: Values, centre: Entries, number: int, rng: Rng
) -> tuple[EntryDraws, PerDraw]:
    """Return draws about 0 with the inverse of the metric of `HMC` as their covariance."""
    metric = hmc.metric_at(plan, How.of("curvature", data), data, like, jnp.asarray(centre))
    assert metric is not None  # The density is finite at its mode.
    white = rng.standard_normal((number, len(centre)))
    points = jax.vmap(metric.unconstrained)(jnp.asarray(white))
    return np.asarray(points) - centre, -(white**2).sum(1) / 2


def _on_section(
    second: Matrix, normals: Float[np.ndarray, "orbit entry"], number: int, rng: Rng
) -> tuple[EntryDraws, PerDraw]:
    """Return draws about 0 on the section across some directions."""
    size, orbits = len(second), len(normals)
    unit = 1 / np.sqrt(np.maximum(np.abs(np.diagonal(second)), _LEAST))
    # The section in those units, and its place in its own coordinates.
    basis = np.linalg.qr((normals * unit).T, mode="complete")[0][:, orbits:] * unit[:, None]
    plane = np.linalg.qr(normals.T, mode="complete")[0][:, orbits:]
    factor = basis @ inverse_factor((basis.T @ second @ basis)[None])[0]
    normal = rng.standard_normal((number, size - orbits))
    constant = np.linalg.slogdet(plane.T @ factor)[1] + (size - orbits) * np.log(2 * np.pi) / 2
    return normal @ factor.T, -(normal**2).sum(1) / 2 - constant


def _highest(
    model: Model[Any],
    supports: Supports,
    data: Any,
    values: Values,
    start: np.ndarray,
    normals: Float[np.ndarray, "orbit entry"],
) -> np.ndarray:
    """Climb from a point to the highest density on the section through it, by L-BFGS."""

    def across(step: np.ndarray) -> np.ndarray:
        return step - normals.T @ (normals @ step)

    def objective(point: np.ndarray) -> tuple[Any, Any]:
        at = start + across(point - start)
        value, gradient = unconstrained.slope(model, supports, data, values, at)
        return value, across(np.asarray(gradient))

    options = {"maxiter": _MOST_STEPS, "maxfun": 10 * _MOST_STEPS, "ftol": 1e-13, "gtol": 1e-6}
    found = unconstrained.maximised(objective, start, options=options)
    return np.asarray(start + across(found.x - start))

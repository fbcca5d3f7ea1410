"""Sweep over several kinds of judgement, which share some of their sites."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from raters.inference.arrays import EntryDraws, Matrix, PerDraw, Rng, Scalar
from raters.inference.polya_gamma import (
    augmentation,
    collapsed,
    conditionals,
    joint_plan,
    latent_classes,
    line,
    sets,
    sweep,
    unconstrained,
)
from raters.inference.polya_gamma.integrated import integrated
from raters.inference.polya_gamma.joint_plan import Member, Part, Plan
from raters.inference.polya_gamma.rows import Block
from raters.inference.polya_gamma.set_likelihood import Likelihood, Summed
from raters.inference.polya_gamma.tables import inverse_factor
from raters.model import Model, Scale, Values, local_sites, marginal_of
from raters.program import Program, Supports, log_joint, log_likelihoods, placing, start_of
from raters.program.values import inside

# ------------------------------------------------------------------------------------- classes


def drawn_classes(plan: sweep.Plan, data: Any, values: Values, rng: Rng) -> tuple[Values, Any]:
    """Draw the latent classes, and with them the sites that are local to their units."""
    if not isinstance(plan, Plan):
        return _drawn(plan, data, values, rng)
    classes = {}
    for part in plan.parts:
        own, classes[part.name] = _drawn(part.plan, data.part(part.name), part.values(values), rng)
        values = values | {part.names[site]: own[site] for site in local_sites(part.plan.model)}
    return values, classes


def _drawn(plan: sweep.Plan, data: Any, values: Values, rng: Rng) -> tuple[Values, Any]:
    """Draw the classes of one kind of judgement."""
    model, classes = plan.model, None
    if plan.classes and not local_sites(model):
        classes = latent_classes.drawn(model, data, values, augmentation.key_of(rng))
    for site in local_sites(model):
        entries, classes = collapsed.drawn(model, data, values, site, augmentation.key_of(rng))
        values = values | {site: np.asarray(entries)}
    return values, classes


def expected_classes(plan: sweep.Plan, data: Any, values: Values) -> Any:
    """Return the expected number of units of each class, array (unit, class), or by part."""
    if isinstance(plan, Plan):
        return {
            part.name: expected_classes(part.plan, data.part(part.name), part.values(values))
            for part in plan.parts
        }
    return latent_classes.expected(plan.model, data, values)[0] if plan.classes else None


@partial(jax.jit, static_argnums=0)
def objective(plan: Plan, data: Any, values: Values) -> Scalar:
    """Return the log joint density, with tied sites in normal scores."""
    total = log_joint(plan.model, data, values)
    row = data.first_unit()
    for block, tie in zip(plan.blocks, plan.ties, strict=True):
        if tie is not None:
            total += joint_plan.to_scores(plan, tie, row, values, values[block.sites[0]]).sum()
    return total


# -------------------------------------------------------------------------------- conditionals


class _Reading(NamedTuple):
    """A block of one kind of judgement, with what its conditional is read from."""

    part: Part
    data: Any
    values: Values
    block: Block
    weights: sweep.Weights
    classes: Any
    cache: sets.RunCache


def conditional(
    plan: sweep.Plan,
    data: Any,
    values: Values,
    block: Block,
    weights: sweep.Weights,
    classes: Any = None,
    *,
    draws: bool,
    cache: sets.RunCache | None = None,
) -> conditionals.Conditional | latent_classes.Counts | joint_plan.Tied:
    """Assemble the full conditional of a block, given the rows of all parts that it is in."""
    if not isinstance(plan, Plan):
        return sweep.block_conditional(
            plan, data, values, block, weights, classes, draws=draws, cache=cache
        )
    place = plan.blocks.index(block)
    readings = [
        _reading(plan, data, values, member, weights, classes, cache)
        for member in plan.members[place]
    ]
    own: conditionals.Conditional | latent_classes.Counts
    if len(readings) == 1:
        one = readings[0]
        own = sweep.block_conditional(one.part.plan, *one[1:6], draws=draws, cache=one.cache)
    elif block.kind == "counts":
        own = _counted(readings)
    else:
        own = _together(readings, draws)
    tie = plan.ties[place]
    if tie is None:
        return own
    row = data.first_unit() if cache is None else cache.row(data)
    return joint_plan.Tied(own, (plan, tie, row, values), plan.supports[block.sites[0]])


def _reading(
    plan: Plan,
    data: Any,
    values: Values,
    member: Member,
    weights: sweep.Weights,
    classes: Any,
    cache: sets.RunCache | None,
) -> _Reading:
    part = plan.parts[member.part]

    def own_weights(which: Any, *rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return weights((part.name, which), *rows)

    own = None if classes is None else classes[part.name]
    kept = sets.RunCache(part.plan.steady)
    if cache is not None:
        kept = cache.of_part(part.name, part.plan.steady)
    given = part.values({name: np.asarray(value) for name, value in values.items()})
    return _Reading(part, data.part(part.name), given, member.block, own_weights, own, kept)


def _counted(readings: list[_Reading]) -> latent_classes.Counts:
    """Return the conditional of shared probabilities: counts of all parts."""
    first, *others = readings
    site = first.block.sites[0]
    total = latent_classes.parameters(
        first.part.plan.model, first.data, first.values, first.classes, site
    )
    for one in others:
        model, own = one.part.plan.model, one.block.sites[0]
        given = latent_classes.parameters(model, one.data, one.values, one.classes, own)
        row = placing.first_unit(one.data)
        prior = latent_classes.concentrations(model, row, one.values, own)
        total = tuple(
            part + (here - less) for part, here, less in zip(total, given, prior, strict=True)
        )
    return latent_classes.conditional(total, site in first.part.plan.in_logs)


def _together(readings: list[_Reading], draws: bool) -> conditionals.Conditional:
    """Return the conditional of a shared block of log-odds and utilities."""
    prior: conditionals.Gaussian | None = None
    pieces: list[conditionals.Weighted] = []
    likelihoods: list[Likelihood] = []
    for one in readings:
        plan = one.part.plan
        if plan.of_sets:
            likelihood, own = sets.read(
                plan.model, one.data, one.values, one.block, one.classes, one.cache
            )
            likelihoods.append(likelihood)
        else:
            recorded = list(sweep.weighted_rows(plan.model, *one[1:6]))
            own = jax.tree.map(np.asarray, recorded[0][0].prior)
            pieces += [weighted for _, weighted in recorded]
        prior = own if prior is None else prior
    assert prior is not None
    if pieces:
        normal = _normal(prior, pieces, draws, dense=bool(likelihoods))
        for piece in pieces:
            normal.add(piece)
        if not likelihoods:
            return normal
        prior = _as_prior(normal)
    chosen = next(one for one in readings if one.part.plan.of_sets)
    likelihood = likelihoods[0] if len(likelihoods) == 1 else Summed(*likelihoods)
    return sets.under(prior, likelihood, chosen.cache, chosen.block)


def _normal(
    prior: conditionals.Gaussian, pieces: list[conditionals.Weighted], draws: bool, dense: bool
) -> conditionals.Conditional:
    """Return the solver for the rows with the most entries."""
    entries = [piece.entry for piece in pieces]
    widest = None
    if all(entry is not None for entry in entries):
        widest = max((entry for entry in entries if entry is not None), key=len)
    if dense and (widest is None or len(widest) > 1):
        return conditionals.Dense(prior)
    return conditionals.conditional(widest, prior, joint=False, draws=draws)


def _as_prior(normal: conditionals.Conditional) -> conditionals.Gaussian:
    """Return a normal conditional as the prior of further judgements."""
    prior = normal.prior
    if isinstance(normal, conditionals.Diagonal):
        known = normal.diagonal > 0
        mean = np.where(known, normal.shift / np.where(known, normal.diagonal, 1.0), 0.0)
        return prior._replace(mean=mean, precision=normal.diagonal)
    assert isinstance(normal, conditionals.Dense)
    precision = normal.precision()
    diagonal = np.diag(precision).copy()
    return prior._replace(
        mean=normal.mode(prior.mean), precision=diagonal, across=precision - np.diag(diagonal)
    )


# Steps to the mode in unconstrained coordinates, and columns of the curvature computed at a time.
_MOST_STEPS, _COLUMNS = 2000, 16
# Least curvature along a coordinate that units are made of.
_LEAST = 1e-6


def why_not(program: Program[Any], draws: int) -> str | None:
    """Explain why `PGEM` has no mode of several kinds of judgement, or no draws around it."""
    if not program.is_joint:
        return None
    for name, part in program.parts.items():
        marginal = marginal_of(part.model, part.data)
        if isinstance(marginal, str):
            return f"part {name!r}: {marginal}"
        if marginal is not None:
            which = f"PGEM integrates {marginal.site!r} of {part.model.title} out"
            return f"part {name!r}: {which}, in one kind of judgement only; use PGGibbs or NUTS"
    with jax.enable_x64(True):
        plan = joint_plan.plan(program, start_of(program.model, program.data))
    if not plan.blocks:
        return f"{program.model.title} has no site that EM updates by a block; use NUTS or SVI"
    in_blocks = {name for block in plan.blocks for name in block.sites}
    model: Any = program.model
    tied = [model.site_name(*member) for group in model.tied for member in group]
    if loose := [name for name in tied if name not in in_blocks]:
        return f"{loose[0]!r} is tied, and its entries are not independent; use PGGibbs or NUTS"
    size = sum(
        int(np.prod(site.shape)) for name, site in program.sites.items() if name not in plan.hyper
    )
    if draws and size > conditionals.DENSE_LIMIT:
        what = f"draws around a mode of {size:,} numbers (at most {conditionals.DENSE_LIMIT:,})"
        return f"PGEM has no {what}; PGEM(draws=0) gives the mode, and PGGibbs draws"
    return None


@partial(jax.jit, static_argnums=0)
def _on_orbits(plan: Plan, row: Any, values: Values) -> Values:
    """Move to the highest density on the orbit of each scale symmetry."""
    moved = values
    for scale in plan.holding_hyper().scales:
        along = sweep.orbit_density(plan.model, row, moved, scale, True)
        moved = sweep.orbit(moved, scale, line.golden_step(along))
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
            return unconstrained.flat_of(supports, sweep.orbit(there, scale, log_factor))

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
    if plan.scales:
        normals = np.asarray(_directions(plan.scales, own, like, start[None]))[0]
        normals = np.linalg.qr(normals.T)[0].T
    centre = _highest(plan.model, own, data, like, start, normals)
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
    rest = np.eye(len(start)) - normals.T @ normals

    def objective(point: np.ndarray) -> tuple[Any, Any]:
        at = start + rest @ (point - start)
        value, gradient = unconstrained.slope(model, supports, data, values, at)
        return value, rest @ np.asarray(gradient)

    options = {"maxiter": _MOST_STEPS, "maxfun": 10 * _MOST_STEPS, "ftol": 1e-13, "gtol": 1e-6}
    found = unconstrained.maximised(objective, start, options=options)
    return np.asarray(start + rest @ (found.x - start))

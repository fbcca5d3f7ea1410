"""Conditionals of the blocks of EM, orbits of scales, and free sites."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from raters.distributions.correlated import unwrapped
from raters.inference.arrays import Scalar
from raters.inference.polya_gamma import latent_classes, line, ties
from raters.inference.polya_gamma.conditionals import DENSE_LIMIT, MODE_LIMIT
from raters.inference.polya_gamma.plans import Plan
from raters.inference.polya_gamma.sums import (
    Division,
    How,
    Reading,
    entry_densities,
    solved,
    sums_of,
)
from raters.inference.polya_gamma.unconstrained import coordinates, is_unbounded, maximised, placed
from raters.model import Values
from raters.program import Program, densities, placing, trace
from raters.program.whitening import coloured, volume_of, white

# Largest numbers of visits of orbits and free sites in a Gibbs sweep, and of steps along a line in
# all. At 20,000 votes ten visits cost a fifth of the Pólya-Gamma draws, and doubled to quadrupled
# the smallest effective sample size of Extended-BTL.
_VISITS, _LINES = 10, 60
# With more rows for each entry of the blocks, hyper-parameters move about as far given these.
_MOST_ROWS = 50


class Ascent(NamedTuple):
    """Steps of L-BFGS."""

    values: Values
    objective: np.ndarray
    converged: bool


def climb_steep(
    plan: Plan, data: Any, values: Values, steps: int = 10, tolerance: float = 1e-8
) -> Ascent:
    """Increase the log joint density by steps of L-BFGS in the steep sites."""
    supports = plan.supports
    start, unravel = ravel_pytree(coordinates(supports, values, plan.steep))
    fixed = {name: value for name, value in values.items() if name not in plan.steep}

    def objective(flat: np.ndarray) -> tuple[Any, Any]:
        value, gradient = _steep_gradient(plan, data, fixed, unravel(jnp.asarray(flat)))
        return value, ravel_pytree(gradient)[0]

    trace = [float(objective(np.asarray(start))[0])]
    limits = {"maxiter": steps, "maxfun": 20 * steps, "ftol": tolerance / (1 + abs(trace[0]))}
    found = maximised(
        objective,
        np.asarray(start),
        callback=lambda intermediate_result: trace.append(-intermediate_result.fun),
        options=limits | {"gtol": 1e-7},
    )
    point = placed(supports, unravel(jnp.asarray(found.x)))[0]
    climbed = values | {name: np.asarray(point[name]) for name in plan.steep}
    return Ascent(climbed, np.array(trace), bool(found.success))


@partial(jax.jit, static_argnums=0)
def _steep_gradient(plan: Plan, data: Any, fixed: Values, point: Values) -> tuple[Scalar, Values]:
    """Return the log joint density and its gradient in the unconstrained steep sites."""

    def density(point: Values) -> Array:
        return densities.log_joint(plan.model, data, fixed | placed(plan.supports, point)[0])

    return jax.value_and_grad(density)(point)


def on_devices(program: Program[Any]) -> Any:
    """Return the data where a sweep reads them."""
    data: Any = program.data
    on_cpu = jax.default_backend() == "cpu"
    if program.is_joint and not on_cpu:  # Compiled functions copy what they need.
        return data
    alone = program.mesh is None and on_cpu and not program.is_joint
    if alone and next(iter(data.chunks(placing.CHUNK))) is not data:
        return data
    return placing.of_few_sizes(program)


# ------------------------------------------------------------------------------------- classes


def expected_classes(plan: Plan, data: Any, values: Values) -> dict[str, Any]:
    """Return the expected number of units of each class, array (unit, class), by part."""
    return {
        part.name: latent_classes.expected(part.model, part.data(data), part.values(values))[0]
        for part in plan.parts
        if part.classes
    }


# -------------------------------------------------------------------------------- conditionals


def readings_of(
    plan: Plan,
    place: int,
    data: Any,
    values: Values,
    classes: Mapping[str, Any],
    division: Division | None = None,
) -> list[Reading]:
    """Return the rows of a block in each part that it is in."""
    readings = []
    for member in plan.members[place]:
        part = plan.parts[member.part]
        own, at = part.data(data), part.values(values)
        readings.append(
            Reading(part.model, member.block, own, at, classes.get(part.name), division)
        )
    return readings


@partial(jax.jit, static_argnums=(0, 1))
def climbed(
    plan: Plan, how: How, data: Any, row: Any, values: Values, classes: Mapping[str, Any]
) -> tuple[Values, Scalar]:
    """Set each block to the mode of its conditional given ω at its mean, or by Newton's weights;
    return the log-likelihood of the rows of the first block, too."""
    first = jnp.zeros(())
    for place, block in enumerate(plan.blocks):
        readings, tie = readings_of(plan, place, data, values, classes), plan.ties[place]
        current = block.flat(values)
        if block.kind == "counts":
            part = plan.parts[plan.members[place][0].part]
            in_logs = readings[0].block.sites[0] in part.in_logs
            counts = counts_of(readings)
            entries = latent_classes.mode(counts, current, in_logs)
            log_density = partial(latent_classes.log_density, counts)
        else:
            own = how._replace(limit=MODE_LIMIT if tie is None else DENSE_LIMIT)
            sums = [sums_of(reading, None, own) for reading in readings]
            first += sum(one.log_likelihood for one in sums) if place == 0 else 0.0
            entries = solved(readings, sums, current, None, own)
            log_density = partial(entry_densities, sums)
        if tie is not None:
            given, support = (plan, tie, row, values), plan.supports[block.sites[0]]
            entries = ties.mode(log_density, given, support, current)
        values = block.placed(values, entries)
    return values, first


@partial(jax.jit, static_argnums=0)
def objective(plan: Plan, data: Any, values: Values) -> Scalar:
    """Return the log joint density, with tied sites in normal scores."""
    total = densities.log_joint(plan.model, data, values)
    row = data.first_unit()
    for block, tie in zip(plan.blocks, plan.ties, strict=True):
        if tie is not None:
            total += ties.to_scores(plan, tie, row, values, values[block.sites[0]]).sum()
    return total


def counts_of(readings: list[Reading]) -> latent_classes.Parameters:
    """Return the parameters of the conditional of probabilities: the counts of all parts."""
    first, *others = readings
    given, site = (first.model, first.data, first.values), first.block.sites[0]
    total = latent_classes.parameters(*given, first.classes, site)
    for one in others:
        own, given = one.block.sites[0], (one.model, one.data, one.values)
        more = latent_classes.parameters(*given, one.classes, own)
        prior = latent_classes.concentrations(one.model, one.data.first_unit(), one.values, own)
        total = tuple(
            part + (here - less) for part, here, less in zip(total, more, prior, strict=True)
        )
    return total


@partial(jax.jit, static_argnums=(0, 5))
def visit_free(plan: Plan, row: Any, data: Any, values: Values, key: Array, draws: bool) -> Values:
    """Update scale orbits and free sites, by slice sampling or by golden-section search."""
    values = {name: jnp.asarray(value) for name, value in values.items()}
    orbits = plan.orbits if draws else plan.scales
    lines = len(orbits) + sum(jnp.size(values[name]) for name in plan.free)
    visits = min(_VISITS, max(1, _LINES // lines)) if draws else 1
    step = line.slice_step if draws else line.golden_step
    visit = partial(line.visit, supports=plan.supports, step=step, visits=visits)
    first_key, key = jax.random.split(key)
    joint = partial(densities.log_prior, plan.model, row)
    values = visit(joint, orbits=orbits, names=plan.hyper, values=values, key=first_key)
    if reaching := tuple(name for name in plan.free if name in plan.reaching):
        joint = partial(densities.log_joint, plan.model, data)
        values = visit(joint, orbits=(), names=reaching, values=values, key=key)
    return values


def interwoven(plan: Plan, row: Any, data: Any, values: Values, key: Array) -> Values:
    """Draw hyper-parameters by slices together with the entries of blocks that they govern, which
    stay the same in units or quantiles of their priors, where the rows tell little of them. What
    these scale moves in inverse proportion to them, so that orbits go on where entries meet a bound
    (interweaving of Yu and Meng 2011)."""
    step, names, sites = line.slice_step, plan.hyper, plan.governed
    entries = sum(jnp.size(values[name]) for name in sites)
    lines = sum(jnp.size(values[name]) for name in plan.hyper)
    if data.num_rows * lines > _MOST_ROWS * entries:
        # Of more rows only orbits that end at bounds are worth it.
        sites = tuple(filter(plan.moved_with, sites))
        step, names = line.jump_step, plan.governors
    if not names or not sites:
        return values

    def priors(at: Values) -> dict[str, Any]:
        traced = trace(plan.model, row, at)
        return {name: unwrapped(traced[name]["fn"]) for name in sites}

    scores, whole = {}, {}
    for name, fn in priors(values).items():
        scores[name] = white(fn, values[name])
        # Far in a tail quantiles are 0 or 1, from which entries do not come back.
        whole[name] = jnp.allclose(coloured(fn, scores[name]), values[name], 1e-6, 1e-9)

    def moved(at: Values) -> tuple[Values, Scalar]:
        own, there, total = dict(scores), dict(at), jnp.zeros(())
        fns = priors(at)
        for name in sorted(sites, key=partial(is_unbounded, plan.supports)):
            entries = coloured(fns[name], own[name])
            there[name] = jnp.where(whole[name], entries, values[name])
            total += jnp.where(whole[name], volume_of(fns[name], own[name], entries), 0.0)
            log_factor = jnp.log((values[name] ** 2).sum() / (there[name] ** 2).sum()) / 2
            for up in plan.moved_with(name):  # Around the mean of its prior, for the way back.
                moving = own if up in own else there
                moving[up] = moving[up] * jnp.exp(log_factor)
                total += log_factor * jnp.size(moving[up])
        return there, total

    def density(at: Values) -> Array:
        there, volume = moved(at)
        return densities.log_joint(plan.model, data, there) + volume

    there = moved(line.visit(density, plan.supports, (), names, values, key, step=step))[0]
    is_inside = jnp.isfinite(ravel_pytree(coordinates(plan.supports, there, sites))[0]).all()
    return jax.tree.map(partial(jnp.where, is_inside), there, values)

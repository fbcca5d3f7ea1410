"""Conditionals of the blocks of EM, orbits of scales, and free sites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from raters.inference.arrays import Rng, Scalar
from raters.inference.polya_gamma import augmentation, latent_classes, line
from raters.inference.polya_gamma.conditionals import DENSE_LIMIT, MODE_LIMIT, Conditional
from raters.inference.polya_gamma.plans import Part, Plan
from raters.inference.polya_gamma.rows import Block
from raters.inference.polya_gamma.sums import Division, How, Reading, Sums, on_host, sums_of
from raters.inference.polya_gamma.ties import Tied
from raters.inference.polya_gamma.unconstrained import coordinates, maximised, placed
from raters.model import Values
from raters.program import PooledRows, Program, densities, placing

# Largest numbers of visits of orbits and free sites in a Gibbs sweep, and of steps along a line in
# all. At 20,000 votes ten visits cost a fifth of the Pólya-Gamma draws, and doubled to quadrupled
# the smallest effective sample size of Extended-BTL.
_VISITS, _LINES = 10, 60


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
    if program.is_joint:
        if jax.default_backend() != "cpu":  # Compiled functions copy what they need.
            return data
        parts = tuple(on_devices(program.parts[name]) for name in data.part_names)
        return replace(data, parts=parts)
    if program.mesh is None and jax.default_backend() == "cpu":
        return jax.device_put(data) if next(iter(data.chunks(placing.CHUNK))) is data else data
    return program.placed()


# ------------------------------------------------------------------------------------- classes


def expected_classes(plan: Plan, data: Any, values: Values) -> dict[str, Any]:
    """Return the expected number of units of each class, array (unit, class), by part."""
    return {
        part.name: latent_classes.expected(part.model, part.data(data), part.values(values))[0]
        for part in plan.parts
        if part.classes
    }


# -------------------------------------------------------------------------------- conditionals


@dataclass
class RunCache:
    """Facts of the data that stay as they are during a run."""

    first: Any = None
    constant: float | None = None
    pooled: PooledRows | None = None

    def row(self, data: Any) -> Any:
        """Return the first row of the data, which is sliced once."""
        if self.first is None:
            self.first = placing.first_unit(data)
        return self.first


@dataclass
class Weights:
    """Weights ω of the rows of a sweep: their means, Newton's weights, or draws, which blocks with
    the same rows share. The log-likelihood is of all rows that were weighed so far."""

    kind: Literal["mean", "curvature", "draw"]
    rng: Rng | None = None
    log_likelihood: float = 0.0
    drawn: dict[Any, Any] = field(default_factory=dict)

    def sums(self, name: str, reading: Reading, how: How) -> Sums:
        """Return the sums over the rows of a block in a part."""
        which = name, reading.block.kind, reading.block.column
        given = self.drawn.get(which)
        if given is not None:
            how = how._replace(weights="given")
        elif self.rng is not None:
            given = jax.random.wrap_key_data(augmentation.key_of(self.rng))
        sums = sums_of(reading, given, how)
        if self.rng is not None:
            self.drawn[which] = sums.omega
        else:
            self.log_likelihood += float(sums.log_likelihood)
        return sums


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


def conditional(
    plan: Plan,
    data: Any,
    values: Values,
    block: Block,
    weights: Weights,
    classes: Mapping[str, Any] = MappingProxyType({}),
    cache: RunCache | None = None,
) -> Conditional | latent_classes.Counts | Tied:
    """Assemble the full conditional of a block, given the rows of all parts that it is in."""
    place = plan.blocks.index(block)
    parts = [plan.parts[member.part] for member in plan.members[place]]
    readings = readings_of(plan, place, data, values, classes)
    own: Conditional | latent_classes.Counts
    if block.kind == "counts":
        in_logs = readings[0].block.sites[0] in parts[0].in_logs
        own = latent_classes.conditional(counts_of(readings), in_logs)
    else:
        own = _of_rows(parts, readings, weights, as_arrays=plan.ties[place] is not None)
    tie = plan.ties[place]
    if tie is None:
        return own
    row = data.first_unit() if cache is None else cache.row(data)
    return Tied(own, (plan, tie, row, values), plan.supports[block.sites[0]])


def _of_rows(
    parts: list[Part], readings: list[Reading], weights: Weights, *, as_arrays: bool
) -> Conditional:
    """Return the conditional of a block from rows with Pólya-Gamma weights."""
    limit = DENSE_LIMIT if as_arrays or weights.kind == "draw" else MODE_LIMIT
    how = How.of(weights.kind, readings[0].data, limit)
    pairs = zip(parts, readings, strict=True)
    sums = [weights.sums(part.name, reading, how) for part, reading in pairs]
    return on_host(readings, sums, how, as_arrays=as_arrays)


def joint_conditional(
    plan: Plan, data: Any, values: Values, block: Block, classes: Any = None
) -> Conditional:
    """Return the normal with the slope and the curvature of the log joint density in a block of
    all conjugate sites."""
    (part,) = plan.parts
    reading = Reading(part.model, block, data, values, classes)
    return _of_rows([part], [reading], Weights("curvature"), as_arrays=True)


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
    lines = len(plan.scales) + sum(jnp.size(values[name]) for name in plan.free)
    visits = min(_VISITS, max(1, _LINES // lines)) if draws else 1
    visit = partial(line.visit, supports=plan.supports, draws=draws, visits=visits)
    first_key, key = jax.random.split(key)
    joint = partial(densities.log_prior, plan.model, row)
    values = visit(joint, scales=plan.scales, names=plan.hyper, values=values, key=first_key)
    if reaching := tuple(name for name in plan.free if name in plan.reaching):
        joint = partial(densities.log_joint, plan.model, data)
        values = visit(joint, scales=(), names=reaching, values=values, key=key)
    return values

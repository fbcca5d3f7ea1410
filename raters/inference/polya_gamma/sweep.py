"""Sweep of EM and Gibbs: latent classes, conjugate blocks, orbits of scales, and free sites."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array
from numpyro.distributions import constraints
from numpyro.distributions.transforms import biject_to

from raters.errors import NotConjugateError
from raters.inference.arrays import Scalar, Sites
from raters.inference.polya_gamma import (
    augmentation,
    collapsed,
    detection,
    devices,
    latent_classes,
    line,
    sets,
)
from raters.inference.polya_gamma.colours import coloured
from raters.inference.polya_gamma.components import ByComponent
from raters.inference.polya_gamma.conditionals import Conditional, Weighted, conditional
from raters.inference.polya_gamma.moves import Move, column_of, moves_of
from raters.inference.polya_gamma.rows import Block, Rows, check_conjugate, rows_of
from raters.inference.polya_gamma.unconstrained import coordinates, maximised, placed
from raters.model import Model, Scale, Spread, Values, exact_symmetries, facts_of
from raters.program import Program, Supports, densities, placing, start_of
from raters.program.program import once

# Largest numbers of visits of orbits and free sites in a Gibbs sweep, and of steps along a line in
# all. At 20,000 votes ten visits cost a fifth of the Pólya-Gamma draws, and doubled to quadrupled
# the smallest effective sample size of Extended-BTL.
_VISITS, _LINES = 10, 60
# EM updates a free site with more entries than this by its gradient.
STEEP = 500

# From an identifier of the rows, their logits, votes and κ to ω and κ.
Weights = Callable[[Any, np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
Step = Callable[[line.Line, Array], Array]


@dataclass(frozen=True)
class Plan:
    """Updates of a sweep."""

    model: Model[Any]
    supports: Supports
    classes: bool
    blocks: tuple[Block, ...]
    scales: tuple[Scale, ...]
    free: Sites
    reaching: frozenset[str]
    in_logs: frozenset[str]
    moves: tuple[Move, ...] = ()
    spreads: tuple[tuple[Spread, str | None], ...] = ()
    steep: Sites = ()
    of_sets: bool = False
    steady: frozenset[Block] = frozenset()
    integrated: Block | None = None
    collapsed: Sites = ()

    @property
    def hyper(self) -> Sites:
        """Hyper-parameters: free sites that enter the likelihood only through other sites."""
        return tuple(name for name in self.free if name not in self.reaching)

    def after_collapsed(self) -> Plan:
        """Return the plan without the sites that were drawn with a block integrated out."""
        if not self.collapsed:
            return self
        free = tuple(name for name in self.free if name not in self.collapsed)
        return replace(self, free=free)

    def holding_hyper(self) -> Plan:
        """Return the plan of the same sweep with fixed hyper-parameters."""

        def moving(names: Sites) -> Sites:
            return tuple(name for name in names if name not in self.hyper)

        scales = tuple(Scale(moving(one.up), moving(one.down)) for one in self.scales)
        return replace(self, scales=scales, free=moving(self.free))


def why_not(program: Program[Any]) -> str | None:
    """Explain why Pólya-Gamma back-ends cannot run a program of one kind of judgement."""
    if program.is_joint:
        return (
            f"{program.model.title} has {len(program.parts)} kinds of judgement"
            f" ({', '.join(program.parts)}); use PGGibbs, PGEM, NUTS or SVI"
        )
    model, sample = program.model, program.sample(2)
    start = start_of(model, sample)
    named = {name for block in model.blocks or () for name in block}
    if missing := named - set(start):
        names = f"{sorted(missing)}, which it does not start or sample; it has {sorted(start)}"
        return f"blocks of {model.title} name {names}"

    def read(values: Values) -> None:
        classes = latent_classes.expected_in(program, sample, values)
        for block in (one for one in blocks if one.kind != "counts"):
            correlated = rows_of(model, sample, values, block, classes).prior.across is not None
            bounded = [
                name for name in block.sites if not sets.is_unbounded(program.supports, name)
            ]
            if correlated and bounded:
                raise NotImplementedError(
                    f"{bounded[0]!r} has bounds, in a block with a multivariate normal"
                    " prior; give it a block of its own"
                )

    try:
        # In the precision of a run.
        with jax.enable_x64(True):
            if reason := detection.why_none(program):
                return reason
            blocks = blocks_of(program, sample, start)
            blocks = tuple(coloured(program, start, block) for block in blocks)
            jax.eval_shape(read, start)  # runs the program without compiling anything
            if sets.chooses(program) and (reason := sets.why_not(program, start, blocks)):
                raise NotImplementedError(reason)
    except NotImplementedError as error:
        return f"{model.title} cannot be augmented by Pólya-Gamma: {error}; use NUTS or SVI"
    return None


def blocks_of(program: Program[Any], data: Any, values: Values) -> tuple[Block, ...]:
    """Return the blocks of a program, each with the kind of its conditional."""
    return detection.kinds_of(program, data, values, detection.names_of(program))


@once
def plan(program: Program[Any], values: Values) -> Plan:
    """Plan a model's sweep, and check its blocks and symmetries."""
    model, data = program.model, program.data
    in_blocks = {name for block in detection.names_of(program) for name in block}
    if missing := in_blocks - set(program.sites):
        raise NotConjugateError(
            f"blocks of {model.title} name {sorted(missing)}, which it does not sample"
        )
    blocks = blocks_of(program, data.take(slice(0, 1)), values)
    blocks = tuple(coloured(program, values, block) for block in blocks)
    for block in blocks:
        check_conjugate(program, values, block)
    collapsed.check(program, values)
    steep = steep_sites(program)
    free = tuple(name for name in program.sites if name not in in_blocks and name not in steep)
    sample = program.sample()
    given = densities.pointwise_log_likelihood, model, sample, values
    reaching = frozenset(name for name in free if detection.depends(*given, (name,)))
    counted = {block.sites[0] for block in blocks if block.kind == "counts"}
    in_logs = frozenset(
        site for site in counted if latent_classes.is_unbounded(model, data, values, site)
    )
    of_sets = sets.chooses(program)
    integrated, collapsed_sites = collapsed.collapsed_of(program, values, blocks, free)
    return Plan(
        model=model,
        supports=program.supports,
        classes=program.counts_classes,
        blocks=blocks,
        scales=tuple(one for one in model.symmetries if isinstance(one, Scale)),
        free=free,
        reaching=reaching,
        in_logs=in_logs,
        moves=moves_of(exact_symmetries(model)),
        spreads=tuple(
            (spread, column_of(program, spread))
            for spread in facts_of(model, Spread)
            if not {spread.site, spread.scale} & set(model.prior)
        ),
        steep=steep,
        of_sets=of_sets,
        steady=sets.steady_blocks(program, values, blocks) if of_sets else frozenset(),
        integrated=integrated,
        collapsed=collapsed_sites,
    )


def steep_sites(program: Program[Any]) -> Sites:
    """Return the sites of no block with too many entries to update one by one."""
    if not (blocks := detection.names_of(program)):
        return tuple(program.sites)
    in_blocks = {name for block in blocks for name in block}
    loose = {name: site for name, site in program.sites.items() if name not in in_blocks}
    return tuple(name for name, site in loose.items() if np.prod(site.shape) > STEEP)


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
    data = program.data
    if program.is_joint:
        if jax.default_backend() != "cpu":  # Compiled functions copy what they need.
            return data
        parts = tuple(on_devices(program.parts[name]) for name in data.part_names)
        return replace(data, parts=parts)
    if program.mesh is None and jax.default_backend() == "cpu":
        return jax.device_put(data) if next(iter(data.chunks(placing.CHUNK))) is data else data
    return program.placed()


def is_single(plan: Plan, data: Any, values: Values) -> bool:
    """Return whether no row has more than one vote, of data that stay on devices."""
    if plan.of_sets or not placing.stays_on_devices(data):
        return False
    classes = None
    if plan.classes:
        classes = jnp.ones_like(latent_classes.expected(plan.model, data, values)[0])
    return devices.is_single(plan.model, data, values, plan.blocks, classes)


def block_conditional(
    plan: Plan,
    data: Any,
    values: Values,
    block: Block,
    weights: Weights,
    classes: Any = None,
    *,
    draws: bool,
    joint: bool = False,
    cache: sets.RunCache | None = None,
) -> Conditional | latent_classes.Counts:
    """Assemble the full conditional of `block`, in one pass over the rows."""
    if block.kind == "counts":
        site = block.sites[0]
        given = latent_classes.parameters(plan.model, data, values, classes, site)
        return latent_classes.conditional(given, site in plan.in_logs)
    if plan.of_sets and block.kind != "class":
        return sets.conditional_of(plan.model, data, values, block, classes, cache, joint=joint)
    full: Conditional | None = None
    if placing.stays_on_devices(data):
        assert isinstance(weights, augmentation.Expected | augmentation.Drawn)
        return devices.conditional_on_devices(
            plan.model, data, values, block, weights, classes, joint=joint
        )
    for rows, weighted in weighted_rows(plan.model, data, values, block, weights, classes):
        if full is None:
            prior = jax.tree.map(np.asarray, rows.prior)
            # The rows of a site with two axes may connect its entries along one of them only.
            planar = any(np.ndim(values[name]) > 1 for name in block.sites)
            if (
                planar
                and prior.across is None
                and block.kind == "rows"
                and not joint
                and weighted.entry is not None
                and len(weighted.entry) > 1
            ):
                full = ByComponent(prior)
            else:
                full = conditional(weighted.entry, prior, joint=joint, draws=draws)
        full.add(weighted)
    assert full is not None
    return full


def weighted_rows(
    model: Model[Any], data: Any, values: Values, block: Block, weights: Weights, classes: Any
) -> Iterator[tuple[Rows, Weighted]]:
    """Record the rows of a block in pieces, each as it is and with its weights."""
    for index, piece in enumerate(data.chunks(placing.CHUNK)):
        rows = rows_of(model, piece, values, block, classes)
        entry = None if rows.entry is None else np.asarray(rows.entry)
        weight, offset = np.asarray(rows.weight), np.asarray(rows.offset)
        votes = np.asarray(rows.votes)
        omega, kappa = _weighted(rows, (block.kind, block.column, index), weights)
        weighted = Weighted(entry, weight, omega, kappa, offset)
        # With drawn classes, most rows have votes under one of them only.
        yield (
            rows,
            weighted if votes.all() else weighted.part(votes.any(tuple(range(votes.ndim - 1)))),
        )


def _weighted(rows: Rows, which: Any, weights: Weights) -> tuple[np.ndarray, np.ndarray]:
    """Return ω and κ of the rows."""
    logits, votes, kappa = (np.asarray(part) for part in (rows.logits, rows.votes, rows.kappa))
    if rows.shift is None:
        return weights(which, logits, votes, kappa)
    shift = np.asarray(rows.shift)
    omega, kappa = weights(which, (logits + shift).ravel(), votes.ravel(), kappa.ravel())
    omega, kappa = omega.reshape(shift.shape), kappa.reshape(shift.shape)
    return omega.sum(0), (kappa - omega * shift).sum(0)


def orbit(values: Values, scale: Scale, log_factor: Any) -> Values:
    """Return the point of the scale orbit through `values` at the factor exp(log_factor)."""
    factor = jnp.exp(log_factor)
    up = {name: values[name] * factor for name in scale.up}
    return values | up | {name: values[name] / factor for name in scale.down}


def orbit_power(values: Values, scale: Scale) -> int:
    """Return the power of the factor in the volume element along a scale orbit."""
    up, down = (sum(jnp.size(values[name]) for name in names) for names in (scale.up, scale.down))
    return up - down


def orbit_density(
    model: Model[Any], data: Any, values: Values, scale: Scale, draws: bool
) -> line.Line:
    """Return the log prior density along a scale orbit, as a function of the log factor."""
    power = orbit_power(values, scale)

    def density(log_factor: Array) -> Array:
        volume = power * log_factor if draws else 0.0
        return densities.log_prior(model, data, orbit(values, scale, log_factor)) + volume

    return density


@partial(jax.jit, static_argnums=(0, 5))
def visit_free(plan: Plan, row: Any, data: Any, values: Values, key: Array, draws: bool) -> Values:
    """Update scale orbits and free sites, by slice sampling or by golden-section search."""
    values = {name: jnp.asarray(value) for name, value in values.items()}
    once = partial(_visit_once, plan, row, data, draws)
    lines = len(plan.scales) + sum(jnp.size(values[name]) for name in plan.free)
    visits = min(_VISITS, max(1, _LINES // lines)) if draws else 1
    return jax.lax.fori_loop(0, visits, lambda _, state: once(*state), (values, key))[0]


def visit_orbits(
    model: Model[Any], scales: tuple[Scale, ...], row: Any, values: Values, key: Array, draws: bool
) -> tuple[Values, Array]:
    """Move along the orbit of each scale symmetry once; return the values and the next key."""
    step: Step = line.slice_step if draws else line.golden_step
    for scale in scales:
        key, use = jax.random.split(key)
        along = orbit_density(model, row, values, scale, draws)
        values = orbit(values, scale, step(along, use))
    return values, key


def _visit_once(
    plan: Plan, row: Any, data: Any, draws: bool, values: Values, key: Array
) -> tuple[Values, Array]:
    values, key = visit_orbits(plan.model, plan.scales, row, values, key, draws)
    for name in plan.free:
        key, use = jax.random.split(key)
        joint = partial(densities.log_prior, plan.model, row)
        if name in plan.reaching:
            joint = partial(densities.log_joint, plan.model, data)
        values = values | {
            name: visit_site(joint, plan.supports[name], values, name, use, draws=draws)
        }
    return values, key


def visit_site(
    joint: Callable[[Values], Array],
    support: constraints.Constraint,
    values: Values,
    name: str,
    key: Array,
    *,
    draws: bool = True,
) -> Array:
    """Update the entries of a site one by one, each along its unconstrained coordinate."""
    step: Step = line.slice_step if draws else line.golden_step
    transform = biject_to(support)
    start = transform.inv(values[name])
    shape = jnp.shape(start)

    def density(flat: Array) -> Array:
        value = transform(flat.reshape(shape))
        volume = transform.log_abs_det_jacobian(flat.reshape(shape), value).sum() if draws else 0.0
        return joint(values | {name: value}) + volume

    def visit(entry: int, state: tuple[Array, Array]) -> tuple[Array, Array]:
        flat, key = state
        key, use = jax.random.split(key)
        return flat.at[entry].add(step(lambda move: density(flat.at[entry].add(move)), use)), key

    flat, _ = jax.lax.fori_loop(0, start.size, visit, (jnp.ravel(start), key))
    return transform(flat.reshape(shape))

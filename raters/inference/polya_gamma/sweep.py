"""Sweep of EM and Gibbs: latent classes, conjugate blocks, orbits of scales, and free sites."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array
from numpyro.distributions import constraints
from numpyro.distributions.transforms import biject_to

from raters.inference.arrays import Rng, Scalar
from raters.inference.polya_gamma import (
    augmentation,
    collapsed,
    devices,
    latent_classes,
    line,
    sets,
)
from raters.inference.polya_gamma.components import ByComponent
from raters.inference.polya_gamma.conditionals import (
    Conditional,
    Dense,
    Diagonal,
    Gaussian,
    Weighted,
)
from raters.inference.polya_gamma.conditionals import conditional as conditional_of
from raters.inference.polya_gamma.plans import Part, Plan
from raters.inference.polya_gamma.rows import Block, Rows, rows_of
from raters.inference.polya_gamma.set_likelihood import Likelihood, Summed
from raters.inference.polya_gamma.ties import Tied
from raters.inference.polya_gamma.unconstrained import coordinates, maximised, placed
from raters.model import Model, Scale, Values, local_sites
from raters.program import Program, densities, placing

# Largest numbers of visits of orbits and free sites in a Gibbs sweep, and of steps along a line in
# all. At 20,000 votes ten visits cost a fifth of the Pólya-Gamma draws, and doubled to quadrupled
# the smallest effective sample size of Extended-BTL.
_VISITS, _LINES = 10, 60

# From an identifier of the rows, their logits, votes and κ to ω and κ.
Weights = Callable[[Any, np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
Step = Callable[[line.Line, Array], Array]


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


def is_single(plan: Plan, data: Any, values: Values) -> bool:
    """Return whether no row has more than one vote, of data that stay on devices."""
    if plan.of_sets or not placing.stays_on_devices(data):
        return False
    classes = None
    if plan.classes:
        classes = jnp.ones_like(latent_classes.expected(plan.model, data, values)[0])
    return devices.is_single(plan.model, data, values, plan.blocks, classes)


# ------------------------------------------------------------------------------------- classes


def drawn_classes(plan: Plan, data: Any, values: Values, rng: Rng) -> tuple[Values, Any]:
    """Draw the classes of each part, and with them the sites that are local to their units."""
    classes: dict[str, Any] = {}
    for part in plan.parts:
        model, own, at = part.model, part.data(data), part.values(values)
        if part.classes and not local_sites(model):
            classes[part.name] = latent_classes.drawn(model, own, at, augmentation.key_of(rng))
        for site in local_sites(model):
            key = augmentation.key_of(rng)
            entries, classes[part.name] = collapsed.drawn(model, own, at, site, key)
            at = at | {site: np.asarray(entries)}
            values = values | {part.names[site]: at[site]}
    return values, classes


def expected_classes(plan: Plan, data: Any, values: Values) -> dict[str, Any]:
    """Return the expected number of units of each class, array (unit, class), by part."""
    return {
        part.name: latent_classes.expected(part.model, part.data(data), part.values(values))[0]
        for part in plan.parts
        if part.classes
    }


# -------------------------------------------------------------------------------- conditionals


class _Reading(NamedTuple):
    """A block of one kind of judgement, with what its conditional is read from."""

    part: Part
    data: Any
    values: Values
    block: Block
    weights: Weights
    classes: Any
    cache: sets.RunCache | None


def conditional(
    plan: Plan,
    data: Any,
    values: Values,
    block: Block,
    weights: Weights,
    classes: Mapping[str, Any] = MappingProxyType({}),
    *,
    draws: bool,
    cache: sets.RunCache | None = None,
) -> Conditional | latent_classes.Counts | Tied:
    """Assemble the full conditional of a block, given the rows of all parts that it is in."""
    place = plan.blocks.index(block)
    readings = [
        _reading(plan.parts[member.part], member.block, data, values, weights, classes, cache)
        for member in plan.members[place]
    ]
    own: Conditional | latent_classes.Counts
    if len(readings) == 1:
        own = block_conditional(*readings[0][:6], draws=draws, cache=readings[0].cache)
    elif block.kind == "counts":
        own = _counted(readings)
    else:
        own = _together(readings, draws)
    tie = plan.ties[place]
    if tie is None:
        return own
    row = data.first_unit() if cache is None else cache.row(data)
    return Tied(own, (plan, tie, row, values), plan.supports[block.sites[0]])


def _reading(
    part: Part,
    block: Block,
    data: Any,
    values: Values,
    weights: Weights,
    classes: Mapping[str, Any],
    cache: sets.RunCache | None,
) -> _Reading:
    if not part.name:
        return _Reading(part, data, values, block, weights, classes.get(""), cache)

    def own_weights(which: Any, *rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return weights((part.name, which), *rows)

    kept = sets.RunCache(part.steady)
    if cache is not None:
        kept = cache.of_part(part.name, part.steady)
    given = part.values({name: np.asarray(value) for name, value in values.items()})
    own = part.data(data), given, block, own_weights, classes.get(part.name), kept
    return _Reading(part, *own)


def _counted(readings: list[_Reading]) -> latent_classes.Counts:
    """Return the conditional of shared probabilities: counts of all parts."""
    first, *others = readings
    site = first.block.sites[0]
    total = latent_classes.parameters(
        first.part.model, first.data, first.values, first.classes, site
    )
    for one in others:
        model, own = one.part.model, one.block.sites[0]
        given = latent_classes.parameters(model, one.data, one.values, one.classes, own)
        row = placing.first_unit(one.data)
        prior = latent_classes.concentrations(model, row, one.values, own)
        total = tuple(
            part + (here - less) for part, here, less in zip(total, given, prior, strict=True)
        )
    return latent_classes.conditional(total, site in first.part.in_logs)


def _together(readings: list[_Reading], draws: bool) -> Conditional:
    """Return the conditional of a shared block of log-odds and utilities."""
    prior: Gaussian | None = None
    pieces: list[Weighted] = []
    likelihoods: list[Likelihood] = []
    for one in readings:
        model = one.part.model
        if one.part.of_sets:
            likelihood, own = sets.read(
                model, one.data, one.values, one.block, one.classes, one.cache
            )
            likelihoods.append(likelihood)
        else:
            recorded = list(weighted_rows(model, *one[1:6]))
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
    chosen = next(one for one in readings if one.part.of_sets)
    likelihood = likelihoods[0] if len(likelihoods) == 1 else Summed(*likelihoods)
    return sets.under(prior, likelihood, chosen.cache, chosen.block)


def _normal(prior: Gaussian, pieces: list[Weighted], draws: bool, dense: bool) -> Conditional:
    """Return the solver for the rows with the most entries."""
    entries = [piece.entry for piece in pieces]
    widest = None
    if all(entry is not None for entry in entries):
        widest = max((entry for entry in entries if entry is not None), key=len)
    if dense and (widest is None or len(widest) > 1):
        return Dense(prior)
    return conditional_of(widest, prior, joint=False, draws=draws)


def _as_prior(normal: Conditional) -> Gaussian:
    """Return a normal conditional as the prior of further judgements."""
    prior = normal.prior
    if isinstance(normal, Diagonal):
        known = normal.diagonal > 0
        mean = np.where(known, normal.shift / np.where(known, normal.diagonal, 1.0), 0.0)
        return prior._replace(mean=mean, precision=normal.diagonal)
    assert isinstance(normal, Dense)
    precision = normal.precision()
    diagonal = np.diag(precision).copy()
    return prior._replace(
        mean=normal.mode(prior.mean), precision=diagonal, across=precision - np.diag(diagonal)
    )


def block_conditional(
    plan: Plan | Part,
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
                full = conditional_of(weighted.entry, prior, joint=joint, draws=draws)
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
        logits, kappa = np.asarray(rows.logits), np.asarray(rows.kappa)
        which = block.kind, block.column, index
        if rows.shift is None:
            omega, kappa = weights(which, logits, votes, kappa)
        else:  # Each row has several ω, of shifted logits.
            shift = np.asarray(rows.shift)
            each = (logits + shift).ravel(), votes.ravel(), kappa.ravel()
            omega, kappa = (part.reshape(shift.shape) for part in weights(which, *each))
            omega, kappa = omega.sum(0), (kappa - omega * shift).sum(0)
        weighted = Weighted(entry, weight, omega, kappa, offset)
        # With drawn classes, most rows have votes under one of them only.
        yield (
            rows,
            weighted if votes.all() else weighted.part(votes.any(tuple(range(votes.ndim - 1)))),
        )


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

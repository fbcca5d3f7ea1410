"""The sweep that EM and Gibbs share: latent classes, conjugate blocks, the orbits of scale symmetries, free sites.

EM takes expected classes and Pólya-Gamma weights and the mode of each conditional; Gibbs draws all of them. Nothing here knows
a model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jax.flatten_util import ravel_pytree
from numpyro.distributions.transforms import biject_to

from raters.errors import NotConjugateError
from raters.inference import _classes, _line
from raters.inference._conditionals import Conditional, Gaussian, Weighted, conditional
from raters.inference._rows import Block, check_conjugate, rows_of
from raters.inference._trace import latent_sites, log_joint, log_prior, pointwise_log_likelihood, trace
from raters.model import Model, Permute, Scale, Values

# Rows read at a time: bounds the memory of a sweep, whatever the number of votes.
CHUNK = 1 << 18

# Orbits and free sites are visited up to ten times in a Gibbs sweep, and take up to so many steps along a line in all: at
# 20,000 votes ten visits cost a fifth of the Pólya-Gamma draws, and doubled to quadrupled the smallest effective sample size of
# Extended-BTL.
_VISITS, _LINES = 10, 60
# A site with more entries than this is climbed by its gradient.
_STEEP = 500

# (which rows, logits, votes per row, κ) → (ω, κ)
Weights = Callable[[Any, np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Plan:
    """What a sweep visits: latent classes where there are some, blocks in order, scale orbits, and free sites with those
    that reach the likelihood marked. Modes of sites `in_logs` are taken in logarithmic coordinates. Sites that are `broken` are
    shares of a stick. Sites that are `steep` have too many entries to visit one by one: EM climbs them by their gradient, Gibbs
    refuses them."""

    model: Model
    classes: bool
    blocks: tuple[Block, ...]
    scales: tuple[Scale, ...]
    free: tuple[str, ...]
    reaching: frozenset[str]
    in_logs: frozenset[str]
    broken: frozenset[str]
    steep: tuple[str, ...] = ()

    @property
    def hyper(self) -> tuple[str, ...]:
        """Free sites that reach the likelihood through other sites only: scales and means of priors."""
        return tuple(name for name in self.free if name not in self.reaching)

    def holding_hyper(self) -> Plan:
        """The same sweep with the hyper-parameters held."""
        scales = tuple(
            Scale(*(tuple(name for name in side if name not in self.hyper) for side in (scale.up, scale.down)))
            for scale in self.scales
        )
        return replace(self, scales=scales, free=tuple(name for name in self.free if name in self.reaching))


def why_not(model: Model, data: Any) -> str | None:
    """Why the Pólya-Gamma back-ends cannot run this model, or None."""
    if not model.blocks:
        return f"{type(model).__name__} declares no conjugate blocks for Pólya-Gamma to update; use NUTS() or SVI()"
    sample = data.take(slice(0, 2))
    start = {name: np.asarray(value, np.float64) for name, value in model.start(sample).items()}
    if missing := {name for block in model.blocks for name in block} - set(start):
        names = f"{sorted(missing)}, which it does not start or sample; it has {sorted(start)}"
        return f"blocks of {type(model).__name__} name {names}"
    try:
        classes = _classes.expected(model, sample, start)[0] if _classes.has_classes(model, sample, start) else None
        for block in blocks_of(model, sample, start):
            if block.kind != "counts":
                rows_of(model, sample, start, block, classes)
    except NotImplementedError as error:
        return f"{type(model).__name__} cannot be augmented by Pólya-Gamma: {error}; use NUTS() or SVI()"
    return None


def blocks_of(model: Model, data: Any, values: Values) -> tuple[Block, ...]:
    """The model's blocks, each as what its conditional is; a classifier's coefficients as one block for each class, and what
    each type of a mixture has to itself as one for each type."""
    by_type = {site for symmetry in model.symmetries if isinstance(symmetry, Permute) for site in symmetry.sites}
    classes = _classes.has_classes(model, data, values)
    found: list[Block] = []
    for sites in model.blocks:
        if classes and len(sites) == 1 and _classes.is_counted(model, data, values, sites[0]):
            found.append(Block(sites, "counts"))
        elif classes and _moves(_log_weights, model, data, values, sites):
            found += [Block(sites, "class", column) for column in range(np.shape(values[sites[0]])[-1])]
        elif len(sites) == 1 and sites[0] in by_type:
            found += [Block(sites, "type", column) for column in range(np.shape(values[sites[0]])[-1])]
        else:
            found.append(Block(sites))
    return tuple(found)


def plan(model: Model, data: Any, values: Values) -> Plan:
    """The plan of a model's sweep, its claims checked.

    Raises
    ------
    NotConjugateError
        When a declared block is not conjugate.
    """
    latent = latent_sites(model, data)
    in_blocks = {name for block in model.blocks for name in block}
    if missing := in_blocks - set(latent):
        raise NotConjugateError(f"blocks of {type(model).__name__} name {sorted(missing)}, which it does not sample")
    blocks = blocks_of(model, data.take(slice(0, 1)), values)
    for block in blocks:
        check_conjugate(model, data, values, block)
    steep = steep_sites(model, data)
    free = tuple(name for name in latent if name not in in_blocks and name not in steep)
    scales = tuple(symmetry for symmetry in model.symmetries if isinstance(symmetry, Scale))
    sample = data.take(slice(0, 1000))
    reaching = frozenset(name for name in free if _moves(pointwise_log_likelihood, model, sample, values, (name,)))
    counted = {block.sites[0] for block in blocks if block.kind == "counts"}
    in_logs = frozenset(site for site in counted if _classes.is_unbounded(model, data, values, site))
    broken = frozenset(site for site in counted if _classes.is_broken(model, data, values, site))
    return Plan(model, _classes.has_classes(model, sample, values), blocks, scales, free, reaching, in_logs, broken, steep)


def steep_sites(model: Model, data: Any) -> tuple[str, ...]:
    """Sites of no block with too many entries to visit one by one."""
    in_blocks = {name for block in model.blocks for name in block}
    latent = latent_sites(model, data)
    return tuple(name for name, site in latent.items() if name not in in_blocks and np.prod(site.shape) > _STEEP)


def climb_steep(plan: Plan, data: Any, values: Values) -> Values:
    """The steep sites moved up the log joint density by some steps of L-BFGS, in unconstrained coordinates."""
    supports = {name: site.support for name, site in latent_sites(plan.model, data).items()}
    start, unravel = ravel_pytree({name: biject_to(supports[name]).inv(jnp.asarray(values[name])) for name in plan.steep})
    held = {name: value for name, value in values.items() if name not in plan.steep}

    def down(flat):
        value, slope = _steep_slope(plan, data, held, unravel(jnp.asarray(flat)))
        return -float(value), -np.asarray(ravel_pytree(slope)[0])

    best = scipy.optimize.minimize(down, np.asarray(start), jac=True, method="L-BFGS-B", options={"maxiter": 10}).x
    place = unravel(jnp.asarray(best))
    return values | {name: np.asarray(biject_to(supports[name])(place[name])) for name in plan.steep}


@partial(jax.jit, static_argnums=0)
def _steep_slope(plan: Plan, data: Any, held: Values, place: Values):
    supports = {name: site.support for name, site in latent_sites(plan.model, data).items()}

    def density(place):
        return log_joint(plan.model, data, held | {name: biject_to(supports[name])(place[name]) for name in plan.steep})

    return jax.value_and_grad(density)(place)


def _moves(function, model, data, values, sites) -> bool:
    """Whether a function of the model varies with any of these sites; those in which the likelihood does not are updated from
    the prior's density alone."""
    slope = _slope(function, model, data, {name: np.asarray(value, float) for name, value in values.items()}, tuple(sites))
    return any(np.any(np.asarray(part) != 0) for part in slope.values())


@partial(jax.jit, static_argnums=(0, 1, 4))
def _slope(function, model, data, values, sites) -> Values:
    """Derivatives of a sum over the function's entries; the sine keeps those of different entries from cancelling."""
    own = {name: values[name] for name in sites}
    return jax.grad(lambda part: jnp.sin(function(model, data, values | part)).sum())(own)


def _log_weights(model, data, values):
    """Log-probabilities of the classes before the labels are seen."""
    return trace(model, data, values)[model.observed]["fn"].log_weights()


def on_device(data: Any) -> Any:
    """The data where JAX computes, unless they are read in pieces."""
    return jax.device_put(data) if next(iter(data.chunks(CHUNK))) is data else data


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
) -> Conditional | _classes.Counts:
    """The full conditional of `block`, assembled in one pass over the rows, given the classes where there are some.

    With `joint`, bounds are left to the caller; `draws` keeps what a large block needs to be drawn.
    """
    if block.kind == "counts":
        site = block.sites[0]
        kind = _classes.Breaks if site in plan.broken else _classes.Counts
        return kind(_classes.parameters(plan.model, data, values, classes, site), site in plan.in_logs)
    given: Conditional | None = None
    for number, piece in enumerate(data.chunks(CHUNK)):
        rows = rows_of(plan.model, piece, values, block, classes)
        entry = None if rows.entry is None else np.asarray(rows.entry)
        weight, offset = np.asarray(rows.weight), np.asarray(rows.offset)
        which = (block.kind, block.column, number)
        votes = np.asarray(rows.votes)
        omega, kappa = weights(which, np.asarray(rows.logits), votes, np.asarray(rows.kappa))
        if given is None:
            given = conditional(entry, Gaussian(*map(np.asarray, rows.prior)), joint=joint, draws=draws)
        whole = Weighted(entry, weight, omega, kappa, offset)
        # Once classes are drawn, most rows count under one of them only.
        given.add(whole if votes.all() else whole.part(votes > 0))
    assert given is not None
    return given


def orbit(values: Values, scale: Scale, log_factor) -> Values:
    """The point of the scale orbit through `values` at factor exp(log_factor)."""
    factor = jnp.exp(log_factor)
    up = {name: values[name] * factor for name in scale.up}
    return values | up | {name: values[name] / factor for name in scale.down}


def orbit_density(model, data, values, scale, draws: bool):
    """Log density along a scale orbit: the prior's, and for draws the volume element too (Liu and Sabatti 2000)."""
    power = sum(jnp.size(values[name]) for name in scale.up) - sum(jnp.size(values[name]) for name in scale.down)

    def density(log_factor):
        volume = power * log_factor if draws else 0.0
        return log_prior(model, data, orbit(values, scale, log_factor)) + volume

    return density


@partial(jax.jit, static_argnums=(0, 5))
def visit_free(plan: Plan, row: Any, data: Any, values: Values, key: jax.Array, draws: bool) -> Values:
    """Visit scale orbits and free sites once: slice steps when `draws`, golden-section steps otherwise.

    `row` is a one-row piece of the data, all that the prior needs; `data` is read only for sites that reach the likelihood.
    """
    values = {name: jnp.asarray(value) for name, value in values.items()}
    once = partial(_visit_once, plan, row, data, draws)
    lines = len(plan.scales) + sum(jnp.size(values[name]) for name in plan.free)
    visits = min(_VISITS, max(1, _LINES // lines)) if draws else 1
    return jax.lax.fori_loop(0, visits, lambda _, state: once(*state), (values, key))[0]


def _visit_once(plan, row, data, draws, values, key):
    step = _line.slice_step if draws else _line.golden_step
    for scale in plan.scales:
        key, use = jax.random.split(key)
        values = orbit(values, scale, step(orbit_density(plan.model, row, values, scale, draws), use))
    for name in plan.free:
        key, use = jax.random.split(key)
        joint = partial(log_joint, plan.model, data) if name in plan.reaching else partial(log_prior, plan.model, row)
        values = values | {name: _visit_site(joint, plan.model, row, values, name, step, use, draws)}
    return values, key


def _visit_site(joint, model, row, values, name, step, key, draws):
    """One pass over the entries of a free site, each along its unconstrained coordinate."""
    transform = biject_to(latent_sites(model, row)[name].support)
    start = transform.inv(values[name])
    shape = jnp.shape(start)

    def density(flat):
        value = transform(flat.reshape(shape))
        volume = transform.log_abs_det_jacobian(flat.reshape(shape), value).sum() if draws else 0.0
        return joint(values | {name: value}) + volume

    def visit(entry, state):
        flat, key = state
        key, use = jax.random.split(key)
        return flat.at[entry].add(step(lambda move: density(flat.at[entry].add(move)), use)), key

    flat, _ = jax.lax.fori_loop(0, start.size, visit, (jnp.ravel(start), key))
    return transform(flat.reshape(shape))

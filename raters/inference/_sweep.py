"""The sweep that EM and Gibbs share: conjugate blocks, then the orbits of scale symmetries, then free sites.

EM takes expected Pólya-Gamma weights and the mode of each conditional; Gibbs draws both. Nothing here knows a model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions.transforms import biject_to

from raters.errors import NotConjugateError
from raters.inference import _line
from raters.inference._conditionals import Conditional, Gaussian, Weighted, conditional
from raters.inference._rows import check_conjugate, rows_of, split
from raters.inference._trace import latent_sites, log_joint, log_prior, trace
from raters.model import Model, Scale, Values

# Rows read at a time: bounds the memory of a sweep, whatever the number of votes.
CHUNK = 1 << 18

# Orbits and free sites are visited this often in a Gibbs sweep: the visits cost a fifth of the Pólya-Gamma draws at 20,000
# votes, and doubled to quadrupled the smallest effective sample size of Extended-BTL.
_VISITS = 10

# (chunk number, logits, votes per row, κ) → (ω, κ)
Weights = Callable[[int, np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Plan:
    """What a sweep visits: blocks in order, scale orbits, and free sites with those that reach the likelihood marked."""

    model: Model
    blocks: tuple[tuple[str, ...], ...]
    scales: tuple[Scale, ...]
    free: tuple[str, ...]
    reaching: frozenset[str]

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
    start = {name: np.asarray(value, np.float64) for name, value in model.start(data.take(slice(0, 1))).items()}
    if missing := {name for block in model.blocks for name in block} - set(start):
        names = f"{sorted(missing)}, which it does not start or sample; it has {sorted(start)}"
        return f"blocks of {type(model).__name__} name {names}"
    try:
        for block in model.blocks:
            rows_of(model, data.take(slice(0, 2)), start, block)
    except NotImplementedError as error:
        return f"{type(model).__name__} cannot be augmented by Pólya-Gamma: {error}; use NUTS() or SVI()"
    return None


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
    for block in model.blocks:
        check_conjugate(model, data, values, block)
    free = tuple(name for name in latent if name not in in_blocks)
    scales = tuple(symmetry for symmetry in model.symmetries if isinstance(symmetry, Scale))
    return Plan(model, model.blocks, scales, free, _reaching(model, data.take(slice(0, 1000)), values, free))


def _reaching(model, data, values, free) -> frozenset[str]:
    """Free sites in which the logits vary; the others are updated from the prior's density alone."""
    if not free:
        return frozenset()
    sensitivity = jax.grad(lambda part: jnp.sin(trace(model, data, values | part)[model.observed]["fn"].logits).sum())(
        {name: jnp.asarray(values[name], float) for name in free}
    )
    return frozenset(name for name in free if np.any(np.asarray(sensitivity[name]) != 0))


def block_conditional(
    plan: Plan, data: Any, values: Values, block: tuple[str, ...], weights: Weights, *, draws: bool, joint: bool = False
) -> Conditional:
    """The Gaussian full conditional of `block`, assembled in one pass over the rows.

    With `joint`, bounds are left to the caller; `draws` keeps what a large block needs to be drawn.
    """
    given: Conditional | None = None
    for number, piece in enumerate(data.chunks(CHUNK)):
        rows = rows_of(plan.model, piece, values, block)
        entry = None if rows.entry is None else np.asarray(rows.entry)
        weight, offset = np.asarray(rows.weight), np.asarray(rows.offset)
        omega, kappa = weights(number, np.asarray(rows.logits), np.asarray(rows.votes), np.asarray(rows.kappa))
        if given is None:
            given = conditional(entry, Gaussian(*map(np.asarray, rows.prior)), joint=joint, draws=draws)
        given.add(Weighted(entry, weight, omega, kappa, offset))
    assert given is not None
    return given


def set_block(values: Values, block: tuple[str, ...], entries: np.ndarray) -> Values:
    """`values` with a block's vector written into its sites."""
    return values | split(entries, values, block)


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
    return jax.lax.fori_loop(0, _VISITS if draws else 1, lambda _, state: once(*state), (values, key))[0]


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
    flat = jnp.ravel(transform.inv(values[name]))
    shape = jnp.shape(values[name])

    def density(flat):
        value = transform(flat.reshape(shape))
        volume = transform.log_abs_det_jacobian(flat.reshape(shape), value).sum() if draws else 0.0
        return joint(values | {name: value}) + volume

    def visit(entry, state):
        flat, key = state
        key, use = jax.random.split(key)
        return flat.at[entry].add(step(lambda move: density(flat.at[entry].add(move)), use)), key

    flat, _ = jax.lax.fori_loop(0, flat.size, visit, (flat, key))
    return transform(flat.reshape(shape))

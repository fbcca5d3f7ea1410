r"""Sites of no normal block, drawn with a normal block integrated out.

Given the Pólya-Gamma variables ω of a block b with design A, offset o, prior mean μ and precision
Λ, all of which may depend on the other sites θ, the block can be integrated out:

.. math::

    \log p(\theta \mid \omega, y) = \log p(\theta) + \kappa^\top o - \tfrac12 o^\top \Omega o
        + \tfrac12 s^\top P^{-1} s - \tfrac12 \log |P| + \tfrac12 \log |\Lambda|
        - \tfrac12 \mu^\top \Lambda \mu ,
    \qquad P = A^\top \Omega A + \Lambda, \quad s = A^\top (\kappa - \Omega o) + \Lambda \mu .

A slice step on it and then a draw of the block, under the same ω, is a partially collapsed Gibbs
sampler (van Dyk and Park 2008). A learned scale and the effects that it governs would otherwise
hold each other, whether the program centres the effects or not.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array
from numpyro.distributions.transforms import biject_to

from raters.inference.arrays import PerRow, Scalar
from raters.inference.polya_gamma import line, sets
from raters.inference.polya_gamma.rows import Block, Rows, record, rows_of
from raters.model import Values
from raters.program import Program, log_prior, placing

if TYPE_CHECKING:
    from raters.inference.polya_gamma.sweep import Plan

# Multiplications of a density times the number of coordinates: beyond, a step would take longer
# than the rest of a sweep. Of the coordinates themselves there are few.
_MOST_WORK, _MOST_COORDINATES = 2e7, 30


def collapsed_of(
    program: Program[Any], values: Values, blocks: tuple[Block, ...], free: tuple[str, ...]
) -> tuple[Block | None, tuple[str, ...]]:
    """Return the block that is integrated out and the sites that are then drawn."""
    model = program.model
    declared = model.blocks is not None or model.symmetries or model.spreads
    normal = [
        block
        for block in blocks
        if block.kind == "rows"
        and all(sets.is_unbounded(program.supports, name) for name in block.sites)
    ]
    # The draw of ω is shared with the block, which reads the rows in one piece then.
    many = next(iter(program.data.chunks(placing.CHUNK))) is not program.data
    if declared or many or program.counts_classes or sets.chooses(program) or not normal:
        return None, ()
    block = max(normal, key=lambda one: len(one.current(values)))
    bounded = tuple(one.sites[0] for one in blocks if one not in normal)
    sites = tuple(name for name in program.sites if name in (*free, *bounded))
    transforms = {name: biject_to(program.supports[name]) for name in sites}
    coordinates = sum(
        int(np.prod(transform.inverse_shape(np.shape(values[name]))))
        for name, transform in transforms.items()
    )
    if not sites or coordinates > _MOST_COORDINATES:
        return None, ()
    rows = jax.eval_shape(lambda values: rows_of(model, program.data, values, block), values)
    size, number = len(block.current(values)), rows.offset.shape[0]
    slots = size if rows.entry is None else rows.entry.shape[0]
    work = coordinates * (number * slots**2 + size**3 / 3)
    return (None, ()) if rows.shift is not None or work > _MOST_WORK else (block, sites)


@partial(jax.jit, static_argnums=0)
def visit(
    plan: Plan, data: Any, values: Values, omega: PerRow, kappa: PerRow, key: jax.Array
) -> Values:
    """Draw the collapsed sites once, coordinate by coordinate, by slice sampling."""
    assert plan.integrated is not None
    block = plan.integrated
    values = {name: jnp.asarray(value, float) for name, value in values.items()}
    transforms = {name: biject_to(plan.supports[name]) for name in plan.collapsed}
    start, unravel = ravel_pytree(
        {name: transform.inv(values[name]) for name, transform in transforms.items()}
    )

    def at(flat: Array) -> tuple[Values, Array]:
        own, volume = {}, jnp.zeros(())
        for name, coordinates in unravel(flat).items():
            own[name] = transforms[name](coordinates)
            volume += transforms[name].log_abs_det_jacobian(coordinates, own[name]).sum()
        return values | own, volume

    def density(flat: Array) -> Array:
        moved, volume = at(flat)
        rows = record(plan.model, data, moved, block).stacked()
        others = log_prior(plan.model, data.take(slice(0, 1)), moved, without=block.sites)
        return marginal(rows, omega, kappa) + others + volume

    def step(entry: int, state: tuple[Array, Array]) -> tuple[Array, Array]:
        flat, key = state
        key, use = jax.random.split(key)
        return flat.at[entry].add(
            line.slice_step(lambda move: density(flat.at[entry].add(move)), use)
        ), key

    flat, _ = jax.lax.fori_loop(0, start.size, step, (start, key))
    return at(flat)[0]


def marginal(rows: Rows, omega: PerRow, kappa: PerRow) -> Scalar:
    """Return the log density of ω-weighted rows with their block integrated out, but for a
    constant."""
    prior, offset = rows.prior, rows.offset
    size, target = len(prior.mean), kappa - omega * offset
    if rows.entry is None:
        precision = (rows.weight.T * omega) @ rows.weight
        shift = rows.weight.T @ target
    else:
        products = rows.weight[:, None] * rows.weight[None] * omega
        cell = rows.entry[:, None] * size + rows.entry[None]
        flat = jnp.zeros(size * size).at[cell.ravel()].add(products.ravel())
        precision = flat.reshape(size, size)
        shift = jnp.zeros(size).at[rows.entry].add(rows.weight * target)
    own = jnp.diag(prior.precision) + (0.0 if prior.across is None else prior.across)
    shift += own @ prior.mean
    lower = jnp.linalg.cholesky(precision + own)
    half = jax.scipy.linalg.solve_triangular(lower, shift, lower=True)
    log_scale = (
        jnp.log(prior.precision).sum() / 2
        if prior.across is None
        else jnp.log(jnp.diag(jnp.linalg.cholesky(own))).sum()
    )
    integral = half @ half / 2 - jnp.log(jnp.diag(lower)).sum()
    of_prior = log_scale - prior.mean @ (own @ prior.mean) / 2
    of_offset = kappa @ offset - (omega * offset) @ offset / 2
    return integral + of_prior + of_offset

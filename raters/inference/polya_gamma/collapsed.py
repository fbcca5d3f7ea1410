r"""Sites of no normal block, drawn with one integrated out, and effects drawn with classes.

With :math:`P = A^\top \Omega A + \Lambda` and :math:`s = A^\top (\kappa - \Omega o) + \Lambda \mu`
for a block of design A, offset o, prior mean μ and precision Λ, given the Pólya-Gamma variables ω,

.. math::

    \log p(\theta \mid \omega, y) = \log p(\theta) + \kappa^\top o - \tfrac12 o^\top \Omega o
        + \tfrac12 s^\top P^{-1} s - \tfrac12 \log |P| + \tfrac12 \log |\Lambda|
        - \tfrac12 \mu^\top \Lambda \mu .
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
from jaxtyping import Array

from raters.inference.arrays import PerRow, Scalar, Sites
from raters.inference.polya_gamma import line, sets
from raters.inference.polya_gamma.rows import Block, Rows, record, rows_of
from raters.inference.polya_gamma.unconstrained import coordinates
from raters.model import Values, local_sites
from raters.program import Program, log_prior, placing

if TYPE_CHECKING:
    from raters.inference.polya_gamma.plans import Plan
from jaxtyping import Float, Int

from raters.errors import NotConjugateError
from raters.inference.arrays import Classes
from raters.inference.polya_gamma.rows import indices
from raters.model import Model
from raters.program import trace

# Multiplications of a density times the number of coordinates: beyond, a step would take longer
# than the rest of a sweep. Of the coordinates themselves there are few.
_MOST_WORK, _MOST_COORDINATES = 2e7, 30


def collapsed_of(
    program: Program[Any], values: Values, blocks: tuple[Block, ...], free: Sites
) -> tuple[Block | None, Sites]:
    """Return the block that is integrated out and the sites that are then drawn."""
    model = program.model
    if model.blocks is not None or model.symmetries or model.facts:
        return None, ()
    unbounded = partial(sets.is_unbounded, program.supports)
    normal = [one for one in blocks if one.kind == "rows" and all(map(unbounded, one.sites))]
    # The draw of ω is shared with the block, which reads the rows in one piece then.
    many = next(iter(program.data.chunks(placing.CHUNK))) is not program.data
    if many or program.counts_classes or sets.chooses(program) or not normal:
        return None, ()
    block = max(normal, key=lambda one: len(one.current(values)))
    bounded = tuple(one.sites[0] for one in blocks if one not in normal)
    sites = tuple(name for name in program.sites if name in (*free, *bounded))
    free_values = jax.eval_shape(lambda: coordinates(program.supports, values, sites))
    number_free = sum(one.size for one in free_values.values())
    if not sites or number_free > _MOST_COORDINATES:
        return None, ()
    rows = jax.eval_shape(lambda values: rows_of(model, program.data, values, block), values)
    size, number = len(block.current(values)), rows.offset.shape[0]
    slots = size if rows.entry is None else rows.entry.shape[0]
    work = number_free * (number * slots**2 + size**3 / 3)
    return (None, ()) if rows.shift is not None or work > _MOST_WORK else (block, sites)


@partial(jax.jit, static_argnums=0)
def visit(
    plan: Plan, data: Any, values: Values, omega: PerRow, kappa: PerRow, key: Array
) -> Values:
    """Draw the collapsed sites once, coordinate by coordinate, by slice sampling."""
    assert plan.integrated is not None
    block = plan.integrated
    values = {name: jnp.asarray(value, float) for name, value in values.items()}

    def density(moved: Values) -> Array:
        rows = record(plan.model, data, moved, block).stacked()
        others = log_prior(plan.model, data.take(slice(0, 1)), moved, without=block.sites)
        return marginal(rows, omega, kappa) + others

    return line.visit(density, plan.supports, (), plan.collapsed, values, key)


def marginal(rows: Rows, omega: PerRow, kappa: PerRow) -> Scalar:
    """Return the log density of weighted rows, their block integrated out, up to a constant."""
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
    log_scale = jnp.log(prior.precision).sum() / 2
    if prior.across is not None:
        log_scale = jnp.log(jnp.diag(jnp.linalg.cholesky(own))).sum()
    integral = half @ half / 2 - jnp.log(jnp.diag(lower)).sum()
    of_prior = log_scale - prior.mean @ (own @ prior.mean) / 2
    of_offset = kappa @ offset - (omega * offset) @ offset / 2
    return integral + of_prior + of_offset


# Values of each entry to choose among, the current one among them.
_POOL = 16


@partial(jax.jit, static_argnums=(0, 3))
def drawn(
    model: Model[Any], data: Any, values: Values, site: str, key: Array
) -> tuple[Array, Classes]:
    """Draw the entries of a local site and the classes of the units together."""
    pool_key, class_key, place_key = jax.random.split(key, 3)
    traced = trace(model, data, values)
    current, mixture = jnp.asarray(values[site]), traced[model.observed]["fn"]
    fresh = traced[site]["fn"].sample(pool_key, (_POOL - 1,))
    pool = jnp.concatenate([current[None], fresh.astype(current.dtype)])

    def rows_at(value: Array) -> Float[Array, "row class"]:
        observed = trace(model, data, values | {site: value})[model.observed]
        return observed["fn"].log_rows(observed["value"])

    log_rows = jax.lax.map(rows_at, pool)
    entry = _entries(model, data, values, site, log_rows.shape[1:])
    each = jnp.zeros((_POOL, current.size, log_rows.shape[-1]), log_rows.dtype)
    each = each.at[:, entry, jnp.arange(log_rows.shape[-1])].add(log_rows)
    # An entry that no row reaches has a mean likelihood of 1, wherever it is counted.
    unit = jnp.zeros(current.size, int).at[entry].set(mixture.group[:, None])
    mean = jax.nn.logsumexp(each, axis=0) - jnp.log(_POOL)
    joint = mixture.weighed(jax.ops.segment_sum(mean, unit, mixture.num_groups))
    classes = jax.random.categorical(class_key, joint)
    of_class = jnp.take_along_axis(each, classes[unit][None, :, None], axis=2)[..., 0]
    place = jax.random.categorical(place_key, of_class, axis=0)
    entries = jnp.take_along_axis(pool.reshape(_POOL, -1), place[None], axis=0)
    one_hot = jax.nn.one_hot(classes, joint.shape[-1], dtype=joint.dtype)
    return entries.reshape(current.shape), one_hot


def _entries(
    model: Model[Any], data: Any, values: Values, site: str, shape: tuple[int, ...]
) -> Int[Array, "row class"]:
    """Return the entry of the site that each row reaches under each class."""
    (entry,) = indices(model, data, values, site)
    return jnp.broadcast_to(entry.reshape(len(entry), -1), shape)


def check(program: Program[Any], values: Values) -> None:
    """Check that each entry of a local site reaches the rows of one unit only, by one index."""
    model, data = program.model, program.data
    for site in local_sites(model):
        name = f"{site!r} of {model.title} is declared local"
        found = indices(model, data, values, site)
        if len(found) != 1:
            raise NotConjugateError(f"{name}, and enters the logits by {len(found)} indices, not 1")
        entry = np.asarray(found[0]).reshape(data.num_rows, -1)
        unit = np.broadcast_to(np.asarray(data.group)[:, None], entry.shape)
        low, high = (
            np.full(np.size(values[site]), data.num_units),
            np.full(np.size(values[site]), -1),
        )
        np.minimum.at(low, entry, unit)
        np.maximum.at(high, entry, unit)
        if (wrong := np.flatnonzero(high > low)).size:
            raise NotConjugateError(
                f"{name}, and entry {int(wrong[0])} reaches the rows of several units"
                f" ({wrong.size} such entries)"
            )

"""Effects of single units, drawn together with the classes of the units."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from raters.errors import NotConjugateError
from raters.inference.arrays import Classes
from raters.inference.polya_gamma.latent_classes import categorical
from raters.inference.polya_gamma.rows import indices
from raters.model import Model, Values, local_sites
from raters.program import Program, trace

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
    classes = categorical(class_key, joint)
    of_class = jnp.take_along_axis(each, classes[unit][None, :, None], axis=2)[..., 0]
    place = categorical(place_key, of_class.T)
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
        size = np.size(values[site])
        low, high = np.full(size, data.num_units), np.full(size, -1)
        np.minimum.at(low, entry, unit)
        np.maximum.at(high, entry, unit)
        if (wrong := np.flatnonzero(high > low)).size:
            raise NotConjugateError(
                f"{name}, and entry {int(wrong[0])} reaches the rows of several units"
                f" ({wrong.size} such entries)"
            )

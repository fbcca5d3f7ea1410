"""Colours of the entries of a block that a program does not only index.

Rows of ``(mean + scale * effect)[group]`` are read from derivatives of the logits, one for all
entries that no row touches together (Curtis, Powell and Reid 1974).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from raters.inference.polya_gamma import latent_classes
from raters.inference.polya_gamma.conditionals import DENSE_LIMIT
from raters.inference.polya_gamma.rows import Block, NotIndexed, indexed_rows, read, split
from raters.model import Model, Values
from raters.program import Program

# Numbers of a dense design.
_MOST_NUMBERS = 40_000_000
# With more colours the rows are a dense design.
_MOST_COLOURS = 40


def coloured(program: Program[Any], values: Values, block: Block) -> Block:
    """Return the block, with colours where its rows cannot be recorded."""
    if block.kind == "counts":
        return block
    model, data = program.model, program.data
    sample = program.sample(2)

    def recorded(values: Values) -> None:
        values = {name: jnp.asarray(value, float) for name, value in values.items()}
        classes = latent_classes.expected_in(program, sample, values)
        indexed_rows(model, sample, values, block, classes)

    try:
        jax.eval_shape(recorded, values)
        return block
    except NotIndexed:
        classes = latent_classes.expected_in(program, data, values)
        return block._replace(colours=_colours(model, data, values, block, classes))


def _colours(
    model: Model[Any], data: Any, values: Values, block: Block, classes: Any
) -> tuple[int, ...]:
    """Return the colour of each entry of a block: one for a site, for each column of it, or for
    each entry."""
    along = partial(_along, model, data, values, block, classes)
    size = len(block.flat(values))
    places = {"": np.arange(size)}
    if not block.is_column:
        places = split(places[""], values, block.sites)
    colours, number = np.zeros(size, int), 0
    for some in map(np.atleast_2d, places.values()):
        groups = [some.ravel()], some.reshape(-1, some.shape[-1]).T, some.reshape(-1, 1)
        own = next(one for one in groups if all(_is_single(along, size, each) for each in one))
        for each in own:
            colours[each] = number
            number += 1
    if number <= min(_MOST_COLOURS, size - 1):
        return tuple(colours.tolist())
    rows = np.asarray(along(np.zeros((1, size)))).size
    if size > DENSE_LIMIT or size * rows > _MOST_NUMBERS:
        raise NotImplementedError(
            f"each row touches up to {number} of the {size:,} entries of block"
            f" {block.sites}, and a dense design of {rows:,} rows is too large (at most"
            f" {DENSE_LIMIT:,} entries, and {_MOST_NUMBERS:,} numbers)"
        )
    return tuple(range(size))


def _is_single(along: Callable[[Any], Array], size: int, places: np.ndarray) -> bool:
    """Return whether each row touches one of these entries at most."""
    if len(places) == 1:
        return True
    number = np.arange(len(places))
    directions = np.zeros((3, size))
    directions[0, places], directions[1, places] = 1.0, number + 1.0
    directions[2, places] = np.random.default_rng(0).normal(size=len(places))
    weight, numbered, drawn = np.asarray(along(directions))
    touched = weight != 0
    place = np.where(touched, numbered / np.where(touched, weight, 1.0), 1.0) - 1
    inside = (place > -0.5) & (place < len(places) - 0.5)
    entry = np.where(inside, np.round(place), 0).astype(int)
    expected = weight * directions[2, places[entry]]
    right = np.abs(drawn - expected) <= 1e-9 * (np.abs(weight) + np.abs(drawn))
    return bool((inside & (np.abs(place - entry) < 1e-6) & right).all())


@partial(jax.jit, static_argnums=(0, 3))
def _along(
    model: Model[Any], data: Any, values: Values, block: Block, classes: Any, along: Any
) -> Float[Array, "direction row"]:
    """Differentiate the logits along some directions."""
    values = {name: jnp.asarray(value, float) for name, value in values.items()}

    def logits(entries: Array) -> Array:
        return read(model, data, block.placed(values, entries), block, classes).logits

    return jax.vmap(jax.linearize(logits, block.flat(values))[1])(along)

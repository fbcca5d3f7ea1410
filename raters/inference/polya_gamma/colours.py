"""Colours of the entries of a block that a program does not only index.

Rows of ``(mean + scale * effect)[group]`` are read from derivatives of the logits, one for all
entries that no row touches together (Curtis, Powell and Reid 1974).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from raters.inference.polya_gamma import latent_classes
from raters.inference.polya_gamma.conditionals import DENSE_LIMIT, observation
from raters.inference.polya_gamma.rows import Block, NotIndexed, indexed_rows, split
from raters.model import Model, Values
from raters.program import Program, trace

# Numbers of a dense design, and columns of it that are computed at a time.
_MOST_NUMBERS, _PIECE = 40_000_000, 16
# With more colours the rows are a dense design.
_MOST_COLOURS = 40


def coloured(program: Program[Any], values: Values, block: Block) -> Block:
    """Return the block, with colours where its rows cannot be recorded."""
    if block.kind != "rows":
        return block
    model, data = program.model, program.data
    sample = program.sample(2)

    def recorded(values: Values) -> None:
        values = {name: jnp.asarray(value, float) for name, value in values.items()}
        classes = latent_classes.expected_in(program, sample, values)
        indexed_rows(model, sample, values, block.sites, classes)

    try:
        jax.eval_shape(recorded, values)
        return block
    except NotIndexed:
        classes = latent_classes.expected_in(program, data, values)
        return block._replace(colours=_colours(model, data, values, block, classes))


def _colours(
    model: Model[Any], data: Any, values: Values, block: Block, classes: Any
) -> tuple[int, ...]:
    """Return the colour of each entry of a block."""
    size = len(block.flat(values))
    ends = np.cumsum([np.size(values[name]) for name in block.sites])
    colours = np.full(size, -1)
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        if end - begin > 1 and _is_single(model, data, values, block, classes, begin, end):
            colours[begin:end] = colours.max() + 1
            continue
        more = _greedy(model, data, values, block, classes, begin, end)
        colours[begin:end] = colours.max() + 1 + more
    if colours.max() + 1 <= min(_MOST_COLOURS, size - 1):
        return tuple(colours.tolist())
    number = len(np.asarray(_along(model, data, values, block, np.zeros((1, size)), classes))[0])
    if size > DENSE_LIMIT or size * number > _MOST_NUMBERS:
        raise NotImplementedError(
            f"each row touches up to {colours.max() + 1} of the {size:,} entries of block"
            f" {block.sites}, and a dense design of {number:,} rows is too large (at most"
            f" {DENSE_LIMIT:,} entries, and {_MOST_NUMBERS:,} numbers)"
        )
    return tuple(range(size))


def _is_single(
    model: Model[Any], data: Any, values: Values, block: Block, classes: Any, begin: int, end: int
) -> bool:
    """Return whether each row touches one of these entries at most."""
    size = len(block.flat(values))
    number = np.arange(end - begin)
    along = np.zeros((3, size))
    along[0, begin:end], along[1, begin:end] = 1.0, number + 1.0
    along[2, begin:end] = np.random.default_rng(0).normal(size=end - begin)
    weight, numbered, drawn = np.asarray(_along(model, data, values, block, along, classes))
    touched = weight != 0
    place = np.where(touched, numbered / np.where(touched, weight, 1.0), 1.0) - 1
    inside = (place > -0.5) & (place < end - begin - 0.5)
    entry = np.where(inside, np.round(place), 0).astype(int)
    expected = weight * along[2, begin + entry]
    right = np.abs(drawn - expected) <= 1e-9 * (np.abs(weight) + np.abs(drawn))
    return bool((inside & (np.abs(place - entry) < 1e-6) & right).all())


def _greedy(
    model: Model[Any], data: Any, values: Values, block: Block, classes: Any, begin: int, end: int
) -> np.ndarray:
    """Return colours of some entries, each the first that no row shares."""
    size = len(block.flat(values))
    used: list[Bool[np.ndarray, " row"]] = []
    colours = np.zeros(end - begin, int)
    for first in range(begin, end, _PIECE):
        piece = np.arange(first, min(first + _PIECE, end))
        along = np.zeros((_PIECE, size))
        along[np.arange(len(piece)), piece] = 1.0
        touched = np.asarray(_along(model, data, values, block, along, classes)) != 0
        for place, rows in zip(piece, touched[: len(piece)], strict=True):
            free = (colour for colour, taken in enumerate(used) if not (taken & rows).any())
            colour = next(free, len(used))
            if colour == len(used):
                if len(used) >= min(_MOST_COLOURS, end - begin):
                    return np.arange(end - begin)
                used.append(rows.copy())
            else:
                used[colour] |= rows
            colours[place - begin] = colour
    return colours


@partial(jax.jit, static_argnums=(0, 3))
def _along(
    model: Model[Any], data: Any, values: Values, block: Block, along: Any, classes: Any
) -> Float[Array, "direction row"]:
    """Differentiate the logits along some directions."""
    values = {name: jnp.asarray(value, float) for name, value in values.items()}

    def logits(entries: Array) -> Array:
        site = trace(model, data, values | split(entries, values, block.sites))[model.observed]
        read: Array = observation(site["fn"], site["value"], classes).logits
        return read.ravel()

    current = jnp.concatenate([values[name].ravel() for name in block.sites])
    return jax.vmap(jax.linearize(logits, current)[1])(along)

"""Moves of a learned scale together with the site that it governs."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from raters.inference.arrays import Rng
from raters.model import Model, Spread, Values
from raters.program import Program, placing, pointwise_log_likelihood, trace

# Widths of the steps of a scale's logarithm.
_WIDTHS = (0.02, 0.1, 0.5)


def stretch(
    model: Model[Any],
    row: Any,
    data: Any,
    values: Values,
    spread: Spread,
    column: str | None,
    rng: Rng,
) -> Values:
    """Take Metropolis steps that multiply a scale and its site by the same factor."""
    values = {name: np.asarray(value) for name, value in values.items()}
    scale = values[spread.scale]
    density = _density(model, row, data, values, spread, column)
    for width in _WIDTHS:
        ratio = np.exp(width * rng.standard_normal(scale.shape))
        by_entry = spread.factors(ratio, values[spread.site])
        tried = values | {
            spread.scale: values[spread.scale] * ratio,
            spread.site: values[spread.site] * by_entry,
        }
        of_tried = _density(model, row, data, tried, spread, column)
        gain = of_tried - density + np.log(ratio)
        moves = np.log(rng.uniform(size=scale.shape)) < gain
        moved = moves.reshape(*scale.shape, *(1,) * (values[spread.site].ndim - scale.ndim))
        values = values | {
            spread.scale: np.where(moves, tried[spread.scale], values[spread.scale]),
            spread.site: np.where(moved, tried[spread.site], values[spread.site]),
        }
        density = np.where(moves, of_tried, density)
    return values


def column_of(program: Program[Any], spread: Spread) -> str | None:
    """Return the column of the data with the place of each row's scale; None for one scale."""
    dims = program.sites[spread.scale].dims
    if not dims:
        return None
    axes: dict[str, str] = dict(program.data.axes)
    return next(column for column, axis in axes.items() if (axis,) == dims)


def _density(
    model: Model[Any], row: Any, data: Any, values: Values, spread: Spread, column: str | None
) -> Float[np.ndarray, ...]:
    """Return the log-likelihood of the rows of each scale, and the log density of the scale."""
    total = np.asarray(_of_scale(model, row, values, spread))
    for piece in placing.pieces(data):
        total = total + np.asarray(_of_rows(model, piece, values, column, total.shape))
    return np.asarray(total)


@partial(jax.jit, static_argnums=(0, 3))
def _of_scale(model: Model[Any], row: Any, values: Values, spread: Spread) -> Array:
    site = trace(model, row, values)[spread.scale]
    return site["fn"].log_prob(values[spread.scale])


@partial(jax.jit, static_argnums=(0, 3, 4))
def _of_rows(
    model: Model[Any], piece: Any, values: Values, column: str | None, shape: tuple[int, ...]
) -> Array:
    rows = pointwise_log_likelihood(model, piece, values)
    if column is None:
        return rows.sum()
    return jnp.zeros(shape, rows.dtype).at[getattr(piece, column)].add(rows)

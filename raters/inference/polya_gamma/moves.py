"""Moves along declared symmetries, and of learned scales with the sites that they govern."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from raters.errors import NotConjugateError
from raters.inference.arrays import Rng, Sites
from raters.inference.polya_gamma.conditionals import Gaussian, prior
from raters.model import Affine, CommonShift, Model, Spread, Symmetry, Transfer, Values
from raters.program import Program, placing, pointwise_log_likelihood, trace

Move = Transfer | CommonShift | Affine
# Widths of the steps of a factor's logarithm.
_WIDTHS = (0.05, 0.2, 0.8)


def moves_of(symmetries: Iterable[Symmetry]) -> tuple[Move, ...]:
    """Return the symmetries of `move`, in the order of a sweep."""
    kinds = get_args(Move)
    return tuple(one for kind in kinds for one in symmetries if isinstance(one, kind))


def move(
    model: Model[Any], row: Any, values: Values, symmetry: Move, rng: Rng | None = None
) -> Values:
    """Draw a point that the symmetry leads to, or go to the most probable one without `rng`."""
    if isinstance(symmetry, CommonShift):
        return shift(model, row, values, symmetry, rng)
    if isinstance(symmetry, Affine):
        return affine(model, row, values, symmetry, rng)
    values = divide(model, row, values, symmetry, rng)
    return values if symmetry.factor is None else refactor(model, row, values, symmetry, rng)


def shift(
    model: Model[Any], row: Any, values: Values, symmetry: CommonShift, rng: Rng | None = None
) -> Values:
    """Add one number to every entry of all sites of the symmetry."""
    given = {name: np.asarray(value) for name, value in values.items()}
    total, away = 0.0, 0.0
    for name, each in zip(
        symmetry.sites, _priors_of(model, row, given, symmetry.sites), strict=True
    ):
        precision, mean = np.asarray(each.precision), np.asarray(each.mean)
        total += precision.sum()
        away += (precision * (np.ravel(given[name]) - mean)).sum()
    number = -away / total
    if rng is not None:
        number += rng.standard_normal() / np.sqrt(total)
    return values | {name: given[name] + number for name in symmetry.sites}


def affine(
    model: Model[Any], row: Any, values: Values, symmetry: Affine, rng: Rng | None = None
) -> Values:
    """Shift and stretch points, and move slopes and intercepts against it."""
    names = (symmetry.point, symmetry.slope, symmetry.intercept)
    given = {name: np.asarray(value, np.float64) for name, value in values.items()}
    point, slope, intercept = (given[name] for name in names)
    priors = _priors_of(model, row, given, names)
    of_point, of_slope = map(_of_equals, names, priors[:2])
    of_intercept, mean = (
        np.reshape(part, intercept.shape) for part in (priors[2].precision, priors[2].mean)
    )
    precision = np.eye(point.shape[1]) * of_point * len(point) + (slope.T * of_intercept) @ slope
    away = slope.T @ (of_intercept * (intercept - mean)) - of_point * point.sum(0)
    step = np.linalg.solve(precision, away)
    if rng is not None:
        noise = rng.standard_normal(len(step))
        step = step + np.linalg.solve(np.linalg.cholesky(precision).T, noise)
    point, intercept = point + step, intercept - slope @ step
    turn = np.eye(len(step))
    if rng is not None and len(step) > 1:
        turn = np.linalg.qr(rng.standard_normal(turn.shape))[0]
    up, down = of_point * (point @ turn) ** 2, of_slope * (slope @ turn) ** 2
    factor = _stretches(up.sum(0), down.sum(0), len(point) - len(slope), rng)
    stretch = (turn * factor) @ turn.T
    squeeze = (turn / factor) @ turn.T
    return values | dict(zip(names, (point @ stretch, slope @ squeeze, intercept), strict=True))


def _of_equals(name: str, of_site: Gaussian) -> float:
    """Precision of a site whose entries are all normal about 0 with the same one."""
    precision, mean = np.asarray(of_site.precision), np.asarray(of_site.mean)
    if np.any(mean != 0) or np.any(precision != precision.flat[0]):
        raise NotConjugateError(
            f"the declared Affine symmetry needs equal normal priors about 0 of all entries of"
            f" {name!r}, and they differ; leave the symmetry out, or give {name!r} one scale"
        )
    return float(precision.flat[0])


def _stretches(up: np.ndarray, down: np.ndarray, more: int, rng: Rng | None) -> np.ndarray:
    """Factor of each direction, from the sums of squares that it multiplies and divides."""
    from scipy.stats import geninvgauss

    if rng is None:
        return np.asarray((down / up) ** 0.25)
    size, scale = np.sqrt(up * down), np.sqrt(down / up)
    square = geninvgauss.rvs(more / 2, size, scale=scale, random_state=rng)
    return np.asarray(np.sqrt(square))


def divide(
    model: Model[Any], row: Any, values: Values, transfer: Transfer, rng: Rng | None = None
) -> Values:
    """Move a number from each entry of the one site to the entries of the other."""
    common, own = (np.asarray(values[name]) for name in (transfer.common, transfer.own))
    given = {name: np.asarray(value) for name, value in values.items()}
    names = transfer.common, transfer.own
    of_common, of_own = jax.tree.map(np.asarray, _priors_of(model, row, given, names))
    of_each = np.reshape(of_own.precision, own.shape)
    away = of_each * (own - np.reshape(of_own.mean, own.shape))
    to_common = of_common.precision * (common - of_common.mean)
    if transfer.groups is None:
        axes = tuple(range(own.ndim - 1))
        precision, shift = of_common.precision + of_each.sum(axes), away.sum(axes) - to_common
    else:
        members = transfer.members(row, len(own))
        precision = of_common.precision @ members + of_each.sum(1)
        shift = away.sum(1) - to_common @ members
    number = shift / precision
    if rng is not None:
        number = number + rng.standard_normal(number.shape) / np.sqrt(precision)
    if transfer.groups is None:
        return values | {transfer.common: common + number, transfer.own: own - number}
    change = {transfer.common: common + members @ number, transfer.own: own - number[:, None]}
    return values | change


def refactor(
    model: Model[Any], row: Any, values: Values, transfer: Transfer, rng: Rng | None = None
) -> Values:
    """Change the factor of each product :math:`f_k (c_i + o_{ki})`."""
    assert transfer.factor is not None
    given = {name: np.asarray(value) for name, value in values.items()}
    common = given[transfer.common]
    own, factor = given[transfer.own], given[transfer.factor]
    names = transfer.own, transfer.factor
    of_own, of_factor = jax.tree.map(np.asarray, _priors_of(model, row, given, names))
    of_own = jax.tree.map(lambda part: part.reshape(own.shape), of_own)
    for ratio in _ratios(factor.shape, rng):
        tried = (common + own) / ratio[:, None] - common
        gain = _log_density(of_factor, factor * ratio) - _log_density(of_factor, factor)
        gain += (_log_density(of_own, tried) - _log_density(of_own, own)).sum(1)
        if rng is not None:
            gain += (1 - own.shape[1]) * np.log(np.abs(ratio))
        least = 0.0 if rng is None else np.log(rng.uniform(size=factor.shape))
        moves = gain > least
        factor = np.where(moves, factor * ratio, factor)
        own = np.where(moves[:, None], tried, own)
    return values | {transfer.factor: factor, transfer.own: own}


def _ratios(shape: tuple[int, ...], rng: Rng | None) -> Iterator[Float[np.ndarray, " judge"]]:
    """Yield the ratios of the new factors to the old ones that are tried."""
    yield np.full(shape, -1.0)
    for width in _WIDTHS:
        if rng is not None:
            yield np.exp(width * rng.standard_normal(shape))
        else:
            yield np.full(shape, np.exp(width))
            yield np.full(shape, np.exp(-width))


def _log_density(prior: Gaussian, value: np.ndarray) -> np.ndarray:
    """Return the log density of (truncated) normal entries, less a constant."""
    inside = (value >= prior.low) & (value <= prior.high)
    return np.where(inside, -prior.precision * (value - prior.mean) ** 2 / 2, -np.inf)


@partial(jax.jit, static_argnums=(0, 3))
def _priors_of(model: Model[Any], row: Any, values: Values, names: Sites) -> tuple[Gaussian, ...]:
    """Return the priors of these sites."""
    traced = trace(model, row, values)
    priors = tuple(prior(traced[name]["fn"], np.shape(values[name])) for name in names)
    if any(one.across is not None for one in priors):
        raise NotImplementedError(
            f"{', '.join(names)} are moved together, and one has a multivariate normal prior"
        )
    return priors


# Widths of the steps of a scale's logarithm.
_SPREAD_WIDTHS = (0.02, 0.1, 0.5)


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
    for width in _SPREAD_WIDTHS:
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

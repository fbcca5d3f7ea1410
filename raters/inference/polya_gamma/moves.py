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
from raters.inference.arrays import Sites
from raters.inference.polya_gamma import line
from raters.inference.polya_gamma.conditionals import Gaussian, prior
from raters.model import Affine, CommonShift, Model, Spread, Symmetry, Transfer, Values
from raters.program import Program, pointwise_log_likelihood, trace

Move = Transfer | CommonShift | Affine
# Widths of the steps of a factor's logarithm.
_WIDTHS = (0.05, 0.2, 0.8)


def moves_of(symmetries: Iterable[Symmetry]) -> tuple[Move, ...]:
    """Return the symmetries of `move`, in the order of a sweep."""
    kinds = get_args(Move)
    return tuple(one for kind in kinds for one in symmetries if isinstance(one, kind))


def move(
    model: Model[Any], row: Any, values: Values, symmetry: Move, key: Array | None = None
) -> Values:
    """Draw a point that the symmetry leads to, or go to the most probable one without a key."""
    if isinstance(symmetry, CommonShift):
        return shift(model, row, values, symmetry, key)
    if isinstance(symmetry, Affine):
        return affine(model, row, values, symmetry, key)
    return transfer(model, row, values, symmetry, key)


# Compiled.
moved = partial(jax.jit, static_argnums=(0, 3))(move)


def _noise(key: Array | None, shape: tuple[int, ...]) -> Array:
    """Return standard normal numbers, or zeros without a key."""
    return jnp.zeros(shape) if key is None else jax.random.normal(key, shape)


def shift(
    model: Model[Any], row: Any, values: Values, symmetry: CommonShift, key: Array | None = None
) -> Values:
    """Add one number to every entry of all sites of the symmetry."""
    total, away = jnp.zeros(()), jnp.zeros(())
    priors = _priors_of(model, row, values, symmetry.sites)
    for name, each in zip(symmetry.sites, priors, strict=True):
        total += each.precision.sum()
        away += (each.precision * (values[name].ravel() - each.mean)).sum()
    number = _noise(key, ()) / jnp.sqrt(total) - away / total
    return values | {name: values[name] + number for name in symmetry.sites}


def affine(
    model: Model[Any], row: Any, values: Values, symmetry: Affine, key: Array | None = None
) -> Values:
    """Shift and stretch points, and move slopes and intercepts against it."""
    names = (symmetry.point, symmetry.slope, symmetry.intercept)
    point, slope, intercept = (values[name] for name in names)
    of_points, of_slopes, of_intercepts = _priors_of(model, row, values, names)
    of_point, of_slope = of_points.precision[0], of_slopes.precision[0]
    of_each, mean = (
        part.reshape(intercept.shape) for part in (of_intercepts.precision, of_intercepts.mean)
    )
    size = point.shape[1]
    step_key, turn_key, key = (None,) * 3 if key is None else jax.random.split(key, 3)
    precision = jnp.eye(size) * of_point * len(point) + (slope.T * of_each) @ slope
    away = slope.T @ (of_each * (intercept - mean)) - of_point * point.sum(0)
    step = jnp.linalg.solve(precision, away)
    noise = _noise(step_key, (size,))
    step += jax.scipy.linalg.solve_triangular(jnp.linalg.cholesky(precision).T, noise)
    point, intercept = point + step, intercept - slope @ step
    turn = jnp.eye(size)
    if turn_key is not None and size > 1:
        turn = jnp.linalg.qr(jax.random.normal(turn_key, turn.shape))[0]
    up = (of_point * (point @ turn) ** 2).sum(0)
    down = (of_slope * (slope @ turn) ** 2).sum(0)
    factor = _stretches(up, down, len(point) - len(slope), key)
    stretch, squeeze = (turn * factor) @ turn.T, (turn / factor) @ turn.T
    return values | dict(zip(names, (point @ stretch, slope @ squeeze, intercept), strict=True))


def check_moves(model: Model[Any], row: Any, values: Values, moves: tuple[Move, ...]) -> None:
    """Check that the points and the slopes of affine symmetries have equal priors about 0."""
    for symmetry in moves:
        if not isinstance(symmetry, Affine):
            continue
        names = (symmetry.point, symmetry.slope)
        for name, each in zip(names, _priors_of(model, row, values, names), strict=True):
            if np.any(each.mean != 0) or np.any(each.precision != each.precision[0]):
                raise NotConjugateError(
                    "the declared Affine symmetry needs equal normal priors about 0 of all entries"
                    f" of {name!r}, and they differ; leave the symmetry out, or give {name!r} one"
                    " scale"
                )


def _stretches(up: Array, down: Array, more: int, key: Array | None) -> Array:
    """Factor of each direction, from the sums of squares that it multiplies and divides."""
    best = (down / up) ** 0.25
    if key is None:
        return best

    def stepped(up: Array, down: Array, key: Array) -> Array:
        def density(t: Array) -> Array:
            return more * t - (up * jnp.exp(2 * t) + down * jnp.exp(-2 * t)) / 2

        return line.slice_step(density, key)

    return jnp.exp(jax.vmap(stepped)(up, down, jax.random.split(key, len(up))))


def transfer(
    model: Model[Any], row: Any, values: Values, symmetry: Transfer, key: Array | None = None
) -> Values:
    """Divide a sum anew, and then the product with its factor, if there is one."""
    first, second = (None, None) if key is None else jax.random.split(key)
    values = divide(model, row, values, symmetry, first)
    return values if symmetry.factor is None else refactor(model, row, values, symmetry, second)


def divide(
    model: Model[Any], row: Any, values: Values, transfer: Transfer, key: Array | None = None
) -> Values:
    """Move a number from each entry of the one site to the entries of the other."""
    names = transfer.common, transfer.own
    common, own = (values[name] for name in names)
    of_common, of_own = _priors_of(model, row, values, names)
    of_each = of_own.precision.reshape(own.shape)
    away = of_each * (own - of_own.mean.reshape(own.shape))
    to_common = of_common.precision * (common - of_common.mean)
    if transfer.groups is None:
        axes = tuple(range(own.ndim - 1))
        precision, shift = of_common.precision + of_each.sum(axes), away.sum(axes) - to_common
    else:
        members = transfer.members(row, len(own))
        precision = of_common.precision @ members + of_each.sum(1)
        shift = away.sum(1) - to_common @ members
    number = shift / precision + _noise(key, shift.shape) / jnp.sqrt(precision)
    if transfer.groups is None:
        return values | {transfer.common: common + number, transfer.own: own - number}
    change = {transfer.common: common + members @ number, transfer.own: own - number[:, None]}
    return values | change


def refactor(
    model: Model[Any], row: Any, values: Values, transfer: Transfer, key: Array | None = None
) -> Values:
    """Change the factor of each product :math:`f_k (c_i + o_{ki})`."""
    assert transfer.factor is not None
    common, own, factor = (
        values[name] for name in (transfer.common, transfer.own, transfer.factor)
    )
    of_own, of_factor = _priors_of(model, row, values, (transfer.own, transfer.factor))
    of_own = jax.tree.map(lambda part: part.reshape(own.shape), of_own)
    for place, ratio in enumerate(_ratios(factor.shape, key)):
        tried = (common + own) / ratio[:, None] - common
        gain = _log_density(of_factor, factor * ratio) - _log_density(of_factor, factor)
        gain += (_log_density(of_own, tried) - _log_density(of_own, own)).sum(1)
        least = jnp.zeros(factor.shape)
        if key is not None:
            gain += (1 - own.shape[1]) * jnp.log(jnp.abs(ratio))
            least = jnp.log(jax.random.uniform(jax.random.fold_in(key, place), factor.shape))
        taken = gain > least
        factor = jnp.where(taken, factor * ratio, factor)
        own = jnp.where(taken[:, None], tried, own)
    return values | {transfer.factor: factor, transfer.own: own}


def _ratios(shape: tuple[int, ...], key: Array | None) -> Iterator[Float[Array, " judge"]]:
    """Yield the ratios of the new factors to the old ones that are tried."""
    yield jnp.full(shape, -1.0)
    for width in _WIDTHS:
        if key is not None:
            key, use = jax.random.split(key)
            yield jnp.exp(width * jax.random.normal(use, shape))
        else:
            yield jnp.full(shape, jnp.exp(width))
            yield jnp.full(shape, jnp.exp(-width))


def _log_density(prior: Gaussian, value: Array) -> Array:
    """Return the log density of (truncated) normal entries, less a constant."""
    inside = (value >= prior.low) & (value <= prior.high)
    return jnp.where(inside, -prior.precision * (value - prior.mean) ** 2 / 2, -jnp.inf)


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
    key: Array,
) -> Values:
    """Take Metropolis steps that multiply a scale and its site by the same factor."""

    def density(values: Values) -> Array:
        """Log-likelihood of the rows of each scale, and its log density."""
        rows = pointwise_log_likelihood(model, data, values)
        scale = values[spread.scale]
        own = trace(model, row, values)[spread.scale]["fn"].log_prob(scale)
        if column is None:
            return own + rows.sum()
        return own + jnp.zeros(scale.shape, rows.dtype).at[getattr(data, column)].add(rows)

    scale, site = values[spread.scale], values[spread.site]
    here = density(values)
    for width in _SPREAD_WIDTHS:
        key, ratio_key, accept_key = jax.random.split(key, 3)
        ratio = jnp.exp(width * jax.random.normal(ratio_key, scale.shape))
        tried = {spread.scale: scale * ratio, spread.site: site * spread.factors(ratio, site)}
        there = density(values | tried)
        gain = there - here + jnp.log(ratio)
        taken = jnp.log(jax.random.uniform(accept_key, scale.shape)) < gain
        of_entries = taken.reshape(*scale.shape, *(1,) * (site.ndim - scale.ndim))
        scale = jnp.where(taken, tried[spread.scale], scale)
        site = jnp.where(of_entries, tried[spread.site], site)
        values = values | {spread.scale: scale, spread.site: site}
        here = jnp.where(taken, there, here)
    return values


def column_of(program: Program[Any], spread: Spread) -> str | None:
    """Return the column of the data with the place of each row's scale; None for one scale."""
    dims = program.sites[spread.scale].dims
    if not dims:
        return None
    axes: dict[str, str] = dict(program.data.axes)
    return next(column for column, axis in axes.items() if (axis,) == dims)

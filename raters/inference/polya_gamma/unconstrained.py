"""Unconstrained coordinates of a model's sites, in one row, and the log density in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jax.flatten_util import ravel_pytree
from jax.scipy.special import ndtr, ndtri
from jax.scipy.stats import norm
from jaxtyping import Array, Float
from numpyro.distributions import biject_to, constraints
from numpyro.distributions.transforms import (
    AffineTransform,
    ComposeTransform,
    ParameterFreeTransform,
    Transform,
)

from raters.distributions.normals import ScaledReal
from raters.distributions.rows import computed_once
from raters.inference.arrays import Flat, Scalar, Sites
from raters.inference.polya_gamma.rows import split
from raters.model import Model, Values
from raters.program import Supports, log_joint


class NormalCdf(ParameterFreeTransform[Any]):
    """Distribution function of a standard normal."""

    domain, codomain = constraints.real, constraints.unit_interval

    def __call__(self, x: Any) -> Array:
        """Return probabilities, never 0 or 1."""
        share = ndtr(x)
        limits = jnp.finfo(share.dtype)
        return jnp.clip(share, limits.tiny, 1 - limits.eps)

    def _inverse(self, y: Any) -> Array:
        return ndtri(y)

    def log_abs_det_jacobian(
        self, x: Any, y: Any, intermediates: Sequence[Any] | None = None
    ) -> Array:
        """Return the log density of a standard normal."""
        return norm.logpdf(x)


class Scored(constraints.interval):
    """An interval with normal scores as unconstrained coordinates: near a bound, the tail of a
    density in them is that of a normal, and in log odds exponential."""


@biject_to.register(Scored)
def _from_scores(support: Scored) -> Transform[Any]:
    width = support.upper_bound - support.lower_bound
    unit = AffineTransform(support.lower_bound, width, domain=constraints.unit_interval)
    return ComposeTransform([NormalCdf(), unit])


def by_scores(supports: Supports) -> Supports:
    """Return supports of which intervals have normal scores as coordinates."""
    scored = {
        name: Scored(one.lower_bound, one.upper_bound)
        for name, one in supports.items()
        if isinstance(one, constraints.interval)
    }
    return Supports({**supports, **scored})


def is_unbounded(supports: Supports, site: str) -> bool:
    """Return whether a site is on the whole real line."""
    return isinstance(supports[site], (type(constraints.real), ScaledReal))


@partial(jax.jit, static_argnums=0)
def flat_of(supports: Supports, values: Values) -> Flat:
    """Return the unconstrained coordinates of the sites that have a support here."""
    return ravel_pytree(coordinates(supports, values, tuple(supports)))[0]


@partial(jax.jit, static_argnums=0)
def coordinates_of(supports: Supports, like: Values, flat: Flat) -> Values:
    """Return the unconstrained coordinates of each site, of which `like` has the shapes."""
    shapes = jax.eval_shape(lambda: coordinates(supports, like, tuple(supports)))
    return split(flat, shapes, tuple(sorted(supports)))


def coordinates(supports: Supports, values: Values, names: Sites) -> Values:
    """Return the unconstrained coordinates of some sites."""
    return {name: biject_to(supports[name]).inv(jnp.asarray(values[name])) for name in names}


def placed(supports: Supports, coordinates: Values) -> tuple[Values, Scalar]:
    """Return sites at their unconstrained coordinates, and the log volume element there."""
    values, volume = {}, jnp.zeros(())
    for name, coordinate in coordinates.items():
        transform = biject_to(supports[name])
        values[name] = transform(coordinate).astype(coordinate.dtype)
        volume += transform.log_abs_det_jacobian(coordinate, values[name]).sum()
    return values, volume


def sites_at(supports: Supports, like: Values, flat: Flat) -> tuple[Values, Scalar]:
    """Return the sites at unconstrained coordinates, and the log volume element there."""
    each = coordinates_of(supports, like, flat)
    values, volume = placed(supports, {name: each[name] for name in supports})
    return computed_once(values), volume


@partial(jax.jit, static_argnums=0)
def sites_at_each(
    supports: Supports, like: Values, points: Float[Array, "draw coordinate"]
) -> tuple[Values, Float[Array, " draw"]]:
    """Return the sites at several points, and the log volume elements."""
    return jax.vmap(partial(sites_at, supports, like))(points)


def log_density(
    model: Model[Any], supports: Supports, data: Any, like: Values, flat: Flat
) -> Scalar:
    """Return the log density in unconstrained coordinates; other sites are as in `like`."""
    values, volume = sites_at(supports, like, flat)
    return log_joint(model, data, like | values) + volume


@partial(jax.jit, static_argnums=(0, 1))
def slope(
    model: Model[Any], supports: Supports, data: Any, like: Values, flat: Flat
) -> tuple[Scalar, Flat]:
    """Return the `log_density` and its gradient."""
    return jax.value_and_grad(partial(log_density, model, supports, data, like))(flat)


def maximised(
    objective: Callable[[np.ndarray], tuple[Any, Any]], start: np.ndarray, **settings: Any
) -> scipy.optimize.OptimizeResult:
    """Climb by L-BFGS on an objective that gives its value and its slope."""

    def loss(point: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = objective(point)
        return -float(value), -np.asarray(slope)

    return scipy.optimize.minimize(loss, start, jac=True, **{"method": "L-BFGS-B"} | settings)

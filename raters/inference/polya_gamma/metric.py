r"""Coordinates in which the posterior of a model of log-odds is nearly a standard normal.

The log-odds of the rows have the Fisher information

.. math:: F = \sum_m n_m \, \sigma(\psi_m) \, \sigma(-\psi_m) \, a_m a_m^\top

with their gradients a in unconstrained coordinates. With the diagonal of the negative Hessian of
the log prior it is the measure M of all directions. The precision is the negative Hessian of the
log joint density at a point, with eigenvalues relative to M that are kept within bounds: along the
orbit of a scale symmetry the Hessian is indefinite.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float

from raters.inference.arrays import Flat, Scalar
from raters.inference.polya_gamma import sweep
from raters.inference.polya_gamma.conditionals import Dense, Diagonal
from raters.inference.polya_gamma.laplace import information
from raters.inference.polya_gamma.unconstrained import (
    coordinates_of,
    curvature,
    log_density,
    sites_at,
)
from raters.model import Values
from raters.program import log_prior, placing

# Least precision of a coordinate, which the prior may not have at a point, and the largest ratio of
# the precision in any direction to that of the rows and the diagonal of the prior.
_LEAST, _APART = 0.1, 10.0


class Metric(NamedTuple):
    """Coordinates in which a normal of a given precision is standard."""

    centre: Flat
    root: Float[Array, "coordinate coordinate"]
    inverse: Float[Array, "coordinate coordinate"]

    def unconstrained(self, place: Flat) -> Flat:
        """Return the unconstrained coordinates of a place."""
        return self.centre + self.inverse @ place

    def place(self, flat: Flat) -> Flat:
        """Return the place at unconstrained coordinates."""
        return self.root @ (flat - self.centre)


def metric_at(plan: sweep.Plan, data: Any, centre: Flat, like: Values) -> Metric:
    """Return the metric at a point of unconstrained coordinates."""
    values, slopes, own = _at(plan, placing.first_unit(data), like, centre)
    sites, normal = information(plan, data, jax.tree.map(np.asarray, values), draws=False)
    assert isinstance(normal, (Dense, Diagonal))  # Of so few parameters.
    rows = normal.precision() if isinstance(normal, Dense) else np.diag(normal.diagonal)
    rows -= np.diag(normal.prior.precision)
    rows -= 0.0 if normal.prior.across is None else normal.prior.across
    # Places of the sites of the blocks among the coordinates, and their slopes along these.
    places = coordinates_of(plan.supports, like, jnp.arange(centre.size, dtype=float))
    where = np.concatenate([np.ravel(places[name]) for name in sites]).astype(int)
    slope = np.concatenate([np.ravel(slopes[name]) for name in sites])
    mass = np.diag(np.maximum(np.asarray(own), _LEAST))
    mass[np.ix_(where, where)] += slope[:, None] * rows * slope
    full = np.asarray(curvature(plan.model, plan.supports, data, like, centre))
    ratio, directions = scipy.linalg.eigh(full, mass)
    across = mass @ directions
    mass = (across * np.clip(ratio, 1 / _APART, _APART)) @ across.T
    lower = scipy.linalg.cholesky(mass, lower=True)
    inverse = scipy.linalg.solve_triangular(lower, np.eye(len(mass)), lower=True, trans="T")
    return Metric(centre, jnp.asarray(lower.T), jnp.asarray(inverse))


@partial(jax.jit, static_argnums=0)
def _at(plan: sweep.Plan, row: Any, like: Values, flat: Flat) -> tuple[Values, Values, Flat]:
    """Return the values at a point, their slopes, each along its own coordinate, and the negative
    curvature of the log prior along each coordinate."""
    values, slopes = jax.jvp(
        lambda flat: sites_at(plan.supports, like, flat)[0], (flat,), (jnp.ones_like(flat),)
    )

    def density(flat: Array) -> Array:
        values, volume = sites_at(plan.supports, like, flat)
        return log_prior(plan.model, row, values) + volume

    def along(place: Array) -> Array:
        direction = jnp.zeros_like(flat).at[place].set(1.0)
        return -jax.jvp(jax.grad(density), (flat,), (direction,))[1][place]

    own: Array = jax.lax.map(along, jnp.arange(flat.size))
    return values, slopes, own


@partial(jax.jit, static_argnums=0)
def density_at(plan: sweep.Plan, data: Any, like: Values, metric: Metric, place: Flat) -> Scalar:
    """Return the log density at a place in the coordinates of a metric, but for a constant."""
    flat = metric.unconstrained(place)
    return log_density(plan.model, plan.supports, data, like, flat)

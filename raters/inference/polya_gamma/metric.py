"""Metric of Hamiltonian Monte Carlo: coordinates in which a posterior is about standard normal."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from raters.inference.arrays import Flat, Matrix, Scalar, Sites
from raters.inference.polya_gamma import unconstrained
from raters.inference.polya_gamma.conditionals import DENSE_LIMIT
from raters.model import Model, Values, own_sites
from raters.program import Supports

# Least precision in any direction of the coordinates that are near: that of a standard normal prior
# is 1; and least precision of the others.
_LEAST, _LEAST_FAR = 0.5, 0.1
# Columns of a Hessian at a time: twice as fast as one, and a few copies of the rows in memory.
_COLUMNS = 8
# Largest number of entries of the rows of the near coordinates.
_MOST_ENTRIES = 50_000_000
# Products that give the diagonal of a Hessian.
_PROBES = 16


class Metric(NamedTuple):
    """Coordinates in which a normal of a given precision is standard; of many coordinates, those
    of the largest sites, which are not `near`, are independent in it given the near ones, from
    which they have a `slope`."""

    centre: Flat
    root: Float[Array, "near near"]
    inverse: Float[Array, "near near"]
    near: Int[Array, " near"]
    spread: Flat
    slope: Float[Array, "near coordinate"]

    @classmethod
    def of(cls, centre: Flat, near: Any, across: Matrix, diagonal: Any) -> Metric | None:
        """Return the metric of a negative Hessian, kept positive: its rows of the near coordinates,
        and the diagonal of the others; None where it is not finite."""
        if not np.isfinite(across).all():
            return None
        diagonal, full = np.maximum(diagonal, _LEAST_FAR), across[:, near]
        slope = across / diagonal
        slope[:, near] = 0.0
        precision, directions = np.linalg.eigh(full - slope @ across.T)
        size = np.sqrt(np.maximum(precision, _LEAST))
        root, inverse = size[:, None] * directions.T, directions / size
        # On the host: each operation outside of a compiled function is compiled by itself.
        given: Any = np.asarray(centre), root, inverse, near, 1 / np.sqrt(diagonal), slope
        return cls(*given)

    def axes(self, numbers: Int[Array, " number"]) -> Float[np.ndarray, "near number"]:
        """Return orthonormal directions along which some of the near coordinates move, and all that
        depends on them."""
        return np.linalg.qr(self.inverse[np.searchsorted(self.near, numbers)].T)[0]

    def stretched(self, axes: Float[np.ndarray, "near number"], spread: Any) -> Metric:
        """Return the metric of places that are so many times as wide along some directions."""
        inverse = self.inverse + (self.inverse @ axes * (spread - 1)) @ axes.T
        root = self.root + (axes * (1 / spread - 1)) @ (axes.T @ self.root)
        return self._replace(inverse=inverse, root=root)

    def unconstrained(self, place: Flat) -> Flat:
        """Return the unconstrained coordinates of a place."""
        if len(self.near) == len(place):
            return self.centre + self.inverse @ place
        near = self.inverse @ place[self.near]
        flat = self.centre + self.spread * place - near @ self.slope
        return flat.at[self.near].set(self.centre[self.near] + near)

    def place(self, flat: Flat) -> Flat:
        """Return the place at unconstrained coordinates."""
        apart = flat - self.centre
        if len(self.near) == len(flat):
            return self.root @ apart
        near = apart[self.near]
        far = (apart + near @ self.slope) / self.spread
        return far.at[self.near].set(self.root @ near)


def near_sites(model: Model[Any], like: Values) -> Sites:
    """Return the sites that together have few coordinates: all but the largest, and vectors of
    single judges."""
    size = {name: jnp.size(value) for name, value in like.items()}
    kept = sorted((name for name in like if name not in own_sites(model)), key=size.__getitem__)
    while sum(map(size.__getitem__, kept)) > min(DENSE_LIMIT, _MOST_ENTRIES // sum(size.values())):
        kept.pop()
    return tuple(kept)


@partial(jax.jit, static_argnums=(0, 2))
def numbers_of(supports: Supports, like: Values, names: Sites) -> Int[Array, " part"]:
    """Return the places of the coordinates of some sites, in their order."""
    numbers = jnp.arange(float(unconstrained.flat_of(supports, like).size))
    places = unconstrained.coordinates_of(supports, like, numbers)
    each = [jnp.ravel(places[name]) for name in names]
    return jnp.sort(jnp.concatenate([jnp.zeros(0), *each]).astype(int))


def curvatures(
    density: Callable[[Flat], Scalar], near: Int[Array, " near"], flat: Flat
) -> tuple[Matrix, Flat]:
    """Return the rows of the near coordinates in the negative Hessian of a density, and the
    diagonal of the others, by products with random signs, which are exact where these are
    independent of each other given the near ones (Bekas, Kokiopoulou and Saad 2007)."""

    def along(vector: Flat) -> Flat:
        return -jax.jvp(jax.grad(density), (flat,), (vector,))[1]

    across = jax.lax.map(along, jnp.eye(flat.size, dtype=flat.dtype)[near], batch_size=_COLUMNS)
    if near.size == flat.size:
        return across, jnp.ones_like(flat)
    signs = jax.random.rademacher(jax.random.key(0), (_PROBES, flat.size), flat.dtype)
    signs = signs.at[:, near].set(0.0)
    return across, (signs * jax.lax.map(along, signs)).mean(0)

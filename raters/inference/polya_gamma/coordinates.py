"""Coordinates of parameters of many distributions and of what they share, and a metric with a block
for each distribution."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float
from numpyro.distributions.transforms import biject_to

from raters.model import Values
from raters.program import Supports

# Least eigenvalue of a block of the metric, relative to its largest.
_FLATTEST = 1e-6


class Metric(NamedTuple):
    """Information matrix with a block for each distribution, and a border for what they share."""

    block: np.ndarray
    border: np.ndarray
    shared: np.ndarray


class Factor(NamedTuple):
    """A map of independent coordinates to steps whose covariance is the inverse of a metric."""

    inverse: np.ndarray
    slope: np.ndarray
    shared: np.ndarray

    def step(self, own: np.ndarray, shared: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Steps of the own and of the shared coordinates."""
        moved = self.shared @ shared
        return np.einsum("cij,cj->ci", self.inverse, own) - self.slope @ moved, moved

    def pull(self, own: np.ndarray, shared: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient in the independent coordinates, from that in the others."""
        left = shared - np.einsum("cis,ci->s", self.slope, own)
        return np.einsum("cij,ci->cj", self.inverse, own), self.shared.T @ left


def factor(metric: Metric) -> Factor:
    """Factor of a metric, whose flat and falling directions are bounded from below."""
    inverse = inverse_factor(metric.block)
    solved = inverse @ (inverse.transpose(0, 2, 1) @ metric.border)
    left = metric.shared - np.einsum("cis,cit->st", metric.border, solved)
    return Factor(inverse, solved, inverse_factor(left[None])[0])


def inverse_factor(matrix: Float[np.ndarray, "cell own own"]) -> np.ndarray:
    """Matrices F with F Fᵀ the inverse of each."""
    if matrix.shape[-1] == 0:
        return matrix
    eigenvalues, vectors = np.linalg.eigh((matrix + matrix.transpose(0, 2, 1)) / 2)
    least = _FLATTEST * np.maximum(np.abs(eigenvalues).max(1, keepdims=True), 1e-3)
    scale = 1 / np.sqrt(np.maximum(np.abs(eigenvalues), least))
    return np.asarray(vectors * scale[:, None, :])


class Split:
    """Unconstrained coordinates of the sites of distributions, side by side, and of the others."""

    def __init__(
        self, supports: Supports, cells: tuple[str, ...], values: Values, volume: bool
    ) -> None:
        self.supports, self.cells, self.volume = supports, cells, volume
        self.others = tuple(name for name in values if name not in cells)
        flat = {name: self._free(name, values[name]) for name in values}
        self.number = len(flat[cells[0]])
        self.shapes = {name: flat[name].shape[1:] for name in cells}
        self.widths = [int(np.prod(self.shapes[name])) for name in cells]
        self.unravel = ravel_pytree({name: flat[name] for name in self.others})[1]

    def _free(self, name: str, value: Any) -> Array:
        """A site in its unconstrained coordinates."""
        return biject_to(self.supports[name]).inv(jnp.asarray(value, float))

    def start(self, values: Values) -> tuple[np.ndarray, np.ndarray]:
        """Own coordinates, shape (cell, own), and those that are shared."""
        own = [np.asarray(self._free(name, values[name])) for name in self.cells]
        others = {name: self._free(name, values[name]) for name in self.others}
        return (
            np.concatenate([part.reshape(self.number, -1) for part in own], axis=1),
            np.asarray(ravel_pytree(others)[0], np.float64),
        )

    def parted(self, flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One vector as own and shared coordinates."""
        size = self.number * sum(self.widths)
        return flat[:size].reshape(self.number, -1), flat[size:]

    def joined(self, own: np.ndarray, shared: np.ndarray) -> np.ndarray:
        """Own and shared coordinates as one vector."""
        return np.concatenate([own.ravel(), shared])

    def point(self, own: Array, shared: Array) -> Values:
        """Values at some coordinates, for traced arrays too."""
        free = self.free(own, shared)
        return {name: biject_to(self.supports[name])(value) for name, value in free.items()}

    def free(self, own: Array, shared: Array) -> Values:
        """Unconstrained coordinates of each site."""
        parts = jnp.split(own, np.cumsum(self.widths)[:-1], axis=1)
        others: Values = self.unravel(shared)
        return others | {
            name: part.reshape(self.number, *self.shapes[name])
            for name, part in zip(self.cells, parts, strict=True)
        }

    def log_volume(self, own: Array, shared: Array) -> Array:
        """Log volume element of the coordinates; 0 where the density is that of the sites."""
        total = jnp.zeros(())
        for name, free in self.free(own, shared).items() if self.volume else ():
            transform = biject_to(self.supports[name])
            total += transform.log_abs_det_jacobian(free, transform(free)).sum()
        return total

    def values(self, own: np.ndarray, shared: np.ndarray) -> Values:
        """Values at some coordinates."""
        return {
            name: np.asarray(value)
            for name, value in self.point(jnp.asarray(own), jnp.asarray(shared)).items()
        }

    def __hash__(self) -> int:
        return hash((self.cells, self.others, self.number, self.volume))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Split)
            and (self.cells, self.others, self.number, self.shapes, self.volume)
            == (other.cells, other.others, other.number, other.shapes, other.volume)
            and {name: str(fn) for name, fn in self.supports.items()}
            == {name: str(fn) for name, fn in other.supports.items()}
        )

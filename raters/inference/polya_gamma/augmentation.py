"""Pólya-Gamma variables: exact draws, means, and the weights that make logits Gaussian.

σ(x) = ½ e^{x/2} E exp(−ω x²/2) with ω ~ PG(1, 0) (Polson, Scott and Windle 2013).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from polyagamma import random_polyagamma

from raters.inference.arrays import HostRows, PerRow, Rng, Scalar

# The cost of Devroye's sampler is proportional to the shape; above this one the series is cheaper.
DEVROYE_LIMIT = 15
_TERMS = 8


def draw(rng: Rng, count: HostRows, logits: HostRows) -> HostRows:
    """Draw ω ~ PG(count, logits), for whole counts."""
    logits = np.ascontiguousarray(logits, dtype=np.float64)
    if (count == 0).any():  # PG(0, z) is 0, for which Devroye's sampler would not return.
        omega = np.zeros_like(logits)
        positive = count > 0
        omega[positive] = draw(rng, count[positive], logits[positive])
        return omega
    few = count <= DEVROYE_LIMIT
    if few.all():
        shape = 1 if np.all(count == 1) else count
        return _devroye(rng, shape, logits)
    omega = np.empty_like(logits)
    if few.any():
        omega[few] = _devroye(rng, np.ascontiguousarray(count[few]), logits[few])
    omega[~few] = _series(rng, count[~few], logits[~few])
    return omega


def _devroye(rng: Rng, shape: Any, logits: np.ndarray) -> np.ndarray:
    exact = {"method": "devroye", "random_state": rng, "disable_checks": True}
    return np.asarray(random_polyagamma(shape, logits, **exact))


def _series(rng: Rng, count: HostRows, logits: HostRows) -> HostRows:
    """Draw the first terms of PG's Gamma series, and a Gamma with the tail's mean and variance."""
    size = np.abs(logits)
    level = (np.arange(1, _TERMS + 1)[:, None] - 0.5) ** 2 + (size / (2 * np.pi)) ** 2
    rate = 2 * np.pi**2 * level
    head = (rng.standard_gamma(np.broadcast_to(count, level.shape)) / rate).sum(0)
    tail_mean = count * mean_of_one(size) - count * (1 / rate).sum(0)
    tail_variance = count * variance_of_one(size) - count * (1 / rate**2).sum(0)
    tail = rng.standard_gamma(tail_mean**2 / tail_variance) * (tail_variance / tail_mean)
    return np.asarray(head + tail)


def mean_of_one(x: Any, xp: Any = np) -> Any:
    """Return E ω for PG(1, x): tanh(x/2) / (2x), and ¼ at 0; `xp` is NumPy or JAX's."""
    safe = xp.where(xp.abs(x) < 1e-4, 1.0, x)
    return xp.where(xp.abs(x) < 1e-4, 0.25 - x**2 / 48, xp.tanh(safe / 2) / (2 * safe))


def variance_of_one(x: Any, xp: Any = np) -> Any:
    """Return Var ω for PG(1, x): (sinh x − x) / (4 x³ cosh²(x/2)), and 1/24 at 0."""
    # sinh(x)/cosh²(x/2) = 2 tanh(x/2), which does not overflow. Near 0 the difference cancels, and
    # the series is accurate.
    safe = xp.where(xp.abs(x) < 0.05, 1.0, xp.abs(x))
    exact = (2 * xp.tanh(safe / 2) - safe / xp.cosh(xp.minimum(safe, 700) / 2) ** 2) / (4 * safe**3)
    return xp.where(xp.abs(x) < 0.05, 1 / 24 - x**2 / 120, exact)


@jax.jit
def expectation(logits: PerRow, count: PerRow, kappa: PerRow) -> tuple[PerRow, PerRow, Scalar]:
    """Return EM's weights: E ω, κ unchanged, and the log-likelihood at these logits."""
    return count * mean_of_one(logits, jnp), kappa, log_likelihood(logits, count, kappa)


@jax.jit
def curvature(logits: PerRow, count: PerRow, kappa: PerRow) -> tuple[PerRow, PerRow, Scalar]:
    """Return Newton's weights: nσ(1 − σ), the κ with which EM's linear system is Newton's."""
    omega = count / (4 * jnp.cosh(jnp.clip(logits, -700, 700) / 2) ** 2)
    newton_kappa = kappa - count * jnp.tanh(logits / 2) / 2 + omega * logits
    return omega, newton_kappa, log_likelihood(logits, count, kappa)


def log_likelihood(logits: PerRow, count: PerRow, kappa: PerRow) -> Scalar:
    """Return Σ κ x − n log(2 cosh(x/2)), the log-likelihood of wins = κ + n/2 out of n."""
    half = jnp.abs(logits) / 2
    each = kappa * logits - count * (half + jnp.log1p(jnp.exp(-2 * half)))
    return each.sum(dtype=float)


# --------------------------------------------------------------- weights of all blocks of a sweep

Weighing = Callable[[Any, Any, Any], tuple[Array, Array, Array]]


@dataclass
class Expected:
    """Weights of EM, and of Newton's method."""

    weighing: Weighing
    log_likelihood: float = 0.0

    def __call__(
        self, _: Any, logits: np.ndarray, votes: np.ndarray, kappa: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return ω and κ of some rows."""
        omega, offset, log_likelihood = self.weighing(logits, votes, kappa)
        self.log_likelihood += float(log_likelihood)
        return np.asarray(omega), np.asarray(offset)


@dataclass
class Drawn:
    """Weights of a Gibbs sweep."""

    rng: Rng
    omega: dict[Any, Any] = field(default_factory=dict)
    single: bool = False

    def __call__(
        self, which: Any, logits: np.ndarray, votes: np.ndarray, kappa: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return ω and κ of some rows."""
        if which not in self.omega:
            self.omega[which] = draw(self.rng, votes, logits)
        return self.omega[which], kappa


def key_of(rng: Rng) -> Any:
    """Return the data of ``jax.random.key``, which itself would take longer than a small sweep."""
    return np.array([0, rng.integers(2**32)], np.uint32)


# Terms of the series that are drawn. At x = 0 the rest has 3 % of the mean and .01 % of the
# variance.
_DEVICE_TERMS = 6
# Proposals of a Gamma variable, of which the last is taken in any case: at n = 1 one of them is
# refused with probability .05, all with probability 6e-6.
_TRIES = 4


def draw_on_device(key: Array, count: PerRow, logits: PerRow, *, single: bool = False) -> PerRow:
    """Draw ω ~ PG(count, logits) of whole counts, in compiled functions."""
    size = jnp.abs(logits).astype(float)
    key, tail_key = jax.random.split(key)
    term = _exponential if single else _gamma

    def add(index: int, sums: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        head, mean, variance = sums
        rate = 2 * jnp.pi**2 * ((index + 0.5) ** 2 + (size / (2 * jnp.pi)) ** 2)
        drawn = term(jax.random.fold_in(key, index), count)
        return head + drawn / rate.astype(drawn.dtype), mean + 1 / rate, variance + 1 / rate**2

    zero = jnp.zeros_like(size)
    start = (zero.astype(logits.dtype), zero, zero)
    head, mean, variance = jax.lax.fori_loop(0, _DEVICE_TERMS, add, start)
    positive = jnp.maximum(count, 1.0)
    mean = positive * (mean_of_one(size, jnp) - mean)
    variance = positive * (variance_of_one(size, jnp) - variance)
    # Wilson and Hilferty (1931): the cube root of a Gamma variable is nearly normal.
    ninth = variance / (9 * mean**2)
    normal = jax.random.normal(tail_key, size.shape, logits.dtype)
    root = 1 - ninth + jnp.sqrt(ninth) * normal
    rest = (mean * jnp.maximum(root, 0.0) ** 3).astype(logits.dtype)
    return jnp.where(count > 0, head + rest, 0.0)


def _exponential(key: Array, count: PerRow) -> PerRow:
    """Draw Gamma(1, 1)."""
    return jax.random.exponential(key, count.shape, count.dtype)


def _gamma(key: Array, count: PerRow) -> PerRow:
    """Draw Gamma(count, 1) for counts of 1 and above (Marsaglia and Tsang 2000)."""
    # A loop of few steps for all rows at once: `jax.random.gamma` loops over each row by itself,
    # which takes minutes to compile here.
    shape = jnp.maximum(count, 1.0) - 1 / 3
    width = 1 / jnp.sqrt(9 * shape)

    def propose(index: int, state: tuple[Array, Array]) -> tuple[Array, Array]:
        drawn, done = state
        normal_key, uniform_key = jax.random.split(jax.random.fold_in(key, index))
        normal = jax.random.normal(normal_key, count.shape, count.dtype)
        uniform = jax.random.uniform(uniform_key, count.shape, count.dtype)
        cube = jnp.maximum(1 + width * normal, 1e-3) ** 3
        level = normal**2 / 2 + shape * (1 - cube + jnp.log(cube))
        taken = (1 + width * normal > 0) & (jnp.log1p(-uniform) < level)
        return jnp.where(done, drawn, shape * cube), done | taken

    begin = (jnp.ones_like(count), jnp.zeros(count.shape, bool))
    return jax.lax.fori_loop(0, _TRIES, propose, begin)[0]

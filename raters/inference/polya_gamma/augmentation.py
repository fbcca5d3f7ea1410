"""Pólya-Gamma variables: exact draws, means, and the weights that make logits Gaussian.

σ(x) = ½ e^{x/2} E exp(−ω x²/2) with ω ~ PG(1, 0) (Polson, Scott and Windle 2013). The appendix of
the Extended-BTL paper drops the factor e^{x/2}.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from polyagamma import random_polyagamma

from raters.inference.arrays import PerRow, Rng, Scalar

# The cost of Devroye's sampler is proportional to the shape; above this one the series is cheaper.
DEVROYE_LIMIT = 15
_TERMS = 8


def draw(
    rng: Rng, count: Float[np.ndarray, " row"], logits: Float[np.ndarray, " row"]
) -> Float[np.ndarray, " row"]:
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
        return np.asarray(
            random_polyagamma(
                shape, logits, method="devroye", random_state=rng, disable_checks=True
            )
        )
    omega = np.empty_like(logits)
    if few.any():
        omega[few] = random_polyagamma(
            np.ascontiguousarray(count[few]),
            logits[few],
            method="devroye",
            random_state=rng,
            disable_checks=True,
        )
    omega[~few] = _series(rng, count[~few], logits[~few])
    return omega


def _series(
    rng: Rng, count: Float[np.ndarray, " row"], logits: Float[np.ndarray, " row"]
) -> Float[np.ndarray, " row"]:
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
    small = jnp.abs(logits) < 1e-4
    safe = jnp.where(small, 1.0, logits)
    omega = count * jnp.where(small, 0.25 - logits**2 / 48, jnp.tanh(safe / 2) / (2 * safe))
    return omega, kappa, log_likelihood(logits, count, kappa)


@jax.jit
def curvature(logits: PerRow, count: PerRow, kappa: PerRow) -> tuple[PerRow, PerRow, Scalar]:
    """Return Newton's weights: nσ(1 − σ), the κ with which EM's linear system is Newton's, and the
    log-likelihood as `expectation` does."""
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

"""Pólya-Gamma variables: draws, means, and the weights that make logits Gaussian.

σ(x) = ½ e^{x/2} E exp(−ω x²/2) with ω ~ PG(1, 0) (Polson, Scott and Windle 2013).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from polyagamma import random_polyagamma

from raters.inference.arrays import HostRows, PerRow, Rng, Scalar


def mean_of_one(x: PerRow) -> PerRow:
    """Return E ω for PG(1, x): tanh(x/2) / (2x), and ¼ at 0."""
    safe = jnp.where(jnp.abs(x) < 1e-4, 1.0, x)
    return jnp.where(jnp.abs(x) < 1e-4, 0.25 - x**2 / 48, jnp.tanh(safe / 2) / (2 * safe))


def variance_of_one(x: PerRow) -> PerRow:
    """Return Var ω for PG(1, x): (sinh x − x) / (4 x³ cosh²(x/2)), and 1/24 at 0."""
    # sinh(x)/cosh²(x/2) = 2 tanh(x/2), which does not overflow. Near 0 the difference cancels, and
    # the series is accurate.
    safe = jnp.where(jnp.abs(x) < 0.05, 1.0, jnp.abs(x))
    exact = (2 * jnp.tanh(safe / 2) - safe / jnp.cosh(jnp.minimum(safe, 700) / 2) ** 2) / (
        4 * safe**3
    )
    return jnp.where(jnp.abs(x) < 0.05, 1 / 24 - x**2 / 120, exact)


@jax.jit
def expectation(logits: PerRow, count: PerRow, kappa: PerRow) -> tuple[PerRow, PerRow, Scalar]:
    """Return EM's weights: E ω, κ unchanged, and the log-likelihood at these logits."""
    return count * mean_of_one(logits), kappa, log_likelihood(logits, count, kappa)


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


def key_of(rng: Rng) -> Any:
    """Return the data of ``jax.random.key``, which itself would take longer than a small sweep."""
    return np.array([0, rng.integers(2**32)], np.uint32)


# Terms of the series that are drawn. At x = 0 the rest has 3 % of the mean and .01 % of the
# variance.
_SERIES_TERMS = 6


def draw_devroye(key: Array, count: PerRow, logits: PerRow) -> PerRow:
    """Draw ω ~ PG(count, logits) of whole counts by Devroye's sampler, on the host."""
    # The threads of callbacks have no float64.
    like = jax.ShapeDtypeStruct(logits.shape, jnp.float32)
    drawn = jax.pure_callback(_devroye, like, jax.random.key_data(key), count, logits)
    return drawn.astype(logits.dtype)


def _devroye(key: Any, count: Any, logits: Any) -> HostRows:
    omega, some = np.zeros(logits.shape, np.float32), np.asarray(count) > 0
    given = (np.asarray(one, np.float64)[some] for one in (count, logits))
    rng = np.random.default_rng(np.asarray(key).tolist())
    # Other methods are biased, and of a count of 0 this one does not return.
    omega[some] = random_polyagamma(*given, method="devroye", random_state=rng, disable_checks=True)
    return omega


def draw_series(key: Array, count: PerRow, logits: PerRow, *, single: bool = False) -> PerRow:
    """Draw ω ~ PG(count, logits) of whole counts, by some terms of its series of Gamma variables
    and a last one with the mean and the variance of all others."""
    size, narrow = jnp.abs(logits).astype(float), count.astype(jnp.float32)
    key, tail_key = jax.random.split(key)

    def add(index: int, sums: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        head, mean, variance = sums
        rate = 2 * jnp.pi**2 * ((index + 0.5) ** 2 + (size / (2 * jnp.pi)) ** 2)
        own = jax.random.fold_in(key, index)
        if single:
            drawn = jax.random.exponential(own, size.shape, narrow.dtype)
        else:
            drawn = large_gamma(own, jnp.maximum(narrow, 1.0))
        return head + drawn / rate.astype(drawn.dtype), mean + 1 / rate, variance + 1 / rate**2

    zero = jnp.zeros_like(size)
    start = (jnp.zeros_like(size, narrow.dtype), zero, zero)
    head, mean, variance = jax.lax.fori_loop(0, _SERIES_TERMS, add, start)
    positive = jnp.maximum(count, 1.0)
    mean = positive * (mean_of_one(size) - mean)
    variance = positive * (variance_of_one(size) - variance)
    # Wilson and Hilferty (1931): the cube root of a Gamma variable is nearly normal.
    ninth = variance / (9 * mean**2)
    root = 1 - ninth + jnp.sqrt(ninth) * jax.random.normal(tail_key, size.shape, narrow.dtype)
    rest = mean * jnp.maximum(root, 0.0) ** 3
    return jnp.where(count > 0, head + rest, 0.0).astype(logits.dtype)


def gamma(key: Array, shape: Array) -> Array:
    """Draw Gamma(shape, 1)."""
    key, use = jax.random.split(key)
    less = shape < 1
    drawn = large_gamma(key, jnp.where(less, shape + 1, shape))
    power = jax.random.exponential(use, shape.shape, shape.dtype)
    return jnp.where(less, drawn * jnp.exp(-power / jnp.where(less, shape, 1.0)), drawn)


def large_gamma(key: Array, shape: Array) -> Array:
    """Draw Gamma(shape, 1) for shapes of 1 and above (Marsaglia and Tsang 2000)."""
    # `jax.random.gamma` loops over each entry by itself, and takes three times as long to compile.
    level = shape - 1 / 3
    width = 1 / jnp.sqrt(9 * level)

    def propose(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        drawn, done, key = state
        key, normal_key, uniform_key = jax.random.split(key, 3)
        # In single precision, whose steps are far below what draws tell, in a third of the time.
        normal = jax.random.normal(normal_key, shape.shape, jnp.float32).astype(shape.dtype)
        uniform = jax.random.uniform(uniform_key, shape.shape, jnp.float32).astype(shape.dtype)
        cube = jnp.maximum(1 + width * normal, 1e-3) ** 3
        log_ratio = normal**2 / 2 + level * (1 - cube + jnp.log(cube))
        taken = (1 + width * normal > 0) & (jnp.log1p(-uniform) < log_ratio)
        return jnp.where(done, drawn, level * cube), done | taken, key

    start = (level, jnp.zeros(shape.shape, bool), key)
    return jax.lax.while_loop(lambda state: ~state[1].all(), propose, start)[0]

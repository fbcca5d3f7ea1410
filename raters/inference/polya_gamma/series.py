r"""Pólya-Gamma variables drawn on a device.

With :math:`g_k \sim \mathrm{Gamma}(n, 1)` a PG(n, x) variable is

.. math:: \omega = \frac{1}{2\pi^2} \sum_{k=1}^{\infty}
    \frac{g_k}{(k - \frac12)^2 + x^2 / 4\pi^2}

(Polson, Scott and Windle 2013, equation 2). The first terms are drawn, and the rest is one variable
of its exact mean and variance. `augmentation.draw` is exact, and draws on the CPU.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array

from raters.inference.arrays import PerRow
from raters.inference.polya_gamma.augmentation import mean_of_one, variance_of_one

# Terms of the series that are drawn. At x = 0 the rest has 3 % of the mean and .01 % of the
# variance.
_TERMS = 6
# Proposals of a Gamma variable, of which the last is taken in any case: at n = 1 one of them is
# refused with probability .05, all with probability 6e-6.
_TRIES = 4


def draw(key: Array, count: PerRow, logits: PerRow, *, single: bool = False) -> PerRow:
    """Draw ω ~ PG(count, logits) of whole counts; may be compiled."""
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
    head, mean, variance = jax.lax.fori_loop(0, _TERMS, add, start)
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

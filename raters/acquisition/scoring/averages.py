"""Averages over weighted draws, and entropies in bits."""

from __future__ import annotations

import jax.numpy as jnp
from jax.scipy.special import xlogy
from jaxtyping import Array, Float

# Weights of the draws, or for each question its own; they sum to 1.
Weight = Float[Array, "chain draw"] | Float[Array, "chain draw question"]
# Bound of probabilities from below in divisions and in logarithms.
TINY = 1e-12


def mean(
    values: Float[Array, "chain draw ... question"], weight: Weight | None
) -> Float[Array, "... question"]:
    """Average over the draws."""
    if weight is None:
        return values.mean((0, 1))
    if weight.ndim == 2:
        return jnp.tensordot(weight, values, 2)
    return (jnp.expand_dims(weight, tuple(range(2, values.ndim - 1))) * values).sum((0, 1))


def bits(probs: Float[Array, " ..."], axis: int = -2) -> Float[Array, " ..."]:
    """Entropy over the answers, in bits; rounding does not take it below 0."""
    return jnp.maximum(-xlogy(probs, probs).sum(axis) / jnp.log(2.0), 0.0)

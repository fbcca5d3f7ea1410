"""Scores of questions about the order of two items."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from raters.acquisition.scoring.averages import TINY, Weight, bits, mean
from raters.errors.validation import checked


@checked
@jax.jit
def order_entropy(
    difference: Float[Array, "chain draw question"], weight: Weight | None = None
) -> Float[Array, " question"]:
    """Entropy of the order of two items, which each draw gives by the sign of their
    `difference`."""
    # Weights that sum to a little more than 1 would make a share of draws whose complement has no
    # logarithm.
    above = jnp.clip(mean((difference > 0) + 0.5 * (difference == 0), weight), 0.0, 1.0)
    return bits(jnp.stack([above, 1 - above]), 0)


@checked
@jax.jit
def order_variance_reduction(
    probs: Float[Array, "chain draw answer question"],
    difference: Float[Array, "chain draw question"],
    weight: Float[Array, "chain draw"] | None = None,
) -> Float[Array, " question"]:
    """Expected reduction of the variance of the order of the two items by an answer about them."""
    above = (difference > 0).astype(probs.dtype)
    p_answer, p_above = mean(probs, weight), mean(above, weight)
    covariance = mean(probs * above[:, :, None], weight) - p_answer * p_above
    return (covariance**2 / jnp.maximum(p_answer, TINY)).sum(0)


@checked
@jax.jit
def expected_improvement(
    first: Float[Array, "chain draw question"],
    second: Float[Array, "chain draw question"],
    best: Float[Array, "chain draw"],
    weight: Float[Array, "chain draw"] | None = None,
) -> Float[Array, " question"]:
    """Expected excess of the better of two items over the item that has the highest mean now."""
    return mean(jnp.maximum(jnp.maximum(first, second) - best[..., None], 0.0), weight)

"""Averages over weighted draws, and entropies in bits."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jax.scipy.special import xlogy

# Bound of probabilities from below in divisions and in logarithms.
TINY = 1e-12


def mean(values: Array, weight: Array | None) -> Array:
    """Average over the draws.

    Parameters
    ----------
    values : array, shape (chain, draw, ..., question)
    weight : array, shape (chain, draw) or (chain, draw, question), or None

    Returns
    -------
    array, shape (..., question)
    """
    if weight is None:
        return values.mean((0, 1))
    if weight.ndim == 2:
        return jnp.tensordot(weight, values, 2)
    return (jnp.expand_dims(weight, tuple(range(2, values.ndim - 1))) * values).sum((0, 1))


def bits(probs: Array, axis: int = -2) -> Array:
    """Entropy over the answers, in bits; rounding does not take it below 0."""
    return jnp.maximum(-xlogy(probs, probs).sum(axis) / jnp.log(2.0), 0.0)

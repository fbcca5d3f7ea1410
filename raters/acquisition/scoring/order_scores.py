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
    """Entropy of the order of two items, which each draw gives by the sign of their `difference`.

    Unlike `entropy` it leaves out the noise of the answer: a pair of nearly equal items whose order
    is known scores low. With few draws, such as ten, its random differences make batches diverse.

    Parameters
    ----------
    difference : array, shape (chain, draw, question)
        Reward of the first item less that of the second.
    weight : array, shape (chain, draw) or (chain, draw, question), optional

    Returns
    -------
    array, shape (question,)
        In bits.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from raters.acquisition import scores
    >>> float(scores.order_entropy(jnp.array([[[0.1], [-2.0], [0.3], [-0.4]]]))[0])
    1.0
    """
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
    r"""Expected reduction of the variance of the order of the two items by an answer about them.

    .. math:: \sum_y \frac{\mathrm{Cov}(p(y \mid \theta), 1[r_i > r_j])^2}{p(y)}

    It lies between 0 and the variance of that order, at most ¼. It is large where `order_entropy`
    is large and the annotator's answer follows the order, and 0 for a guesser. ``target="ranking"``
    maximises it.

    Parameters
    ----------
    probs : array, shape (chain, draw, answer, question)
    difference : array, shape (chain, draw, question)
        Reward of the first item less that of the second.
    weight : array, shape (chain, draw), optional

    Returns
    -------
    array, shape (question,)

    Examples
    --------
    A certain answer to an open question, and a guesser's answer to the same:

    >>> import jax.numpy as jnp
    >>> from raters.acquisition import scores
    >>> probs = jnp.array([[[[1.0, 0.5], [0.0, 0.5]], [[0.0, 0.5], [1.0, 0.5]]]])
    >>> scores.order_variance_reduction(probs, jnp.array([[[2.0, 2.0], [-2.0, -2.0]]])).tolist()
    [0.25, 0.0]
    """
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
    r"""Expected excess of the better of two items over the item that has the highest mean now.

    .. math:: \mathbb{E}_\theta \max(r_i - r^*, r_j - r^*, 0)

    Parameters
    ----------
    first, second : array, shape (chain, draw, question)
        Rewards of the two items.
    best : array, shape (chain, draw)
        Reward of the item of highest posterior mean.
    weight : array, shape (chain, draw), optional

    Returns
    -------
    array, shape (question,)
        On the scale of the rewards.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from raters.acquisition import scores
    >>> float(scores.expected_improvement(jnp.array([[[3.0], [0.0]]]), jnp.zeros((1, 2, 1)),
    ...                                   jnp.ones((1, 2)))[0])
    1.0
    """
    return mean(jnp.maximum(jnp.maximum(first, second) - best[..., None], 0.0), weight)

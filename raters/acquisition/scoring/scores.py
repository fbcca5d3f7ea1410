r"""Scores of questions: pure functions of the probabilities of their answers under posterior draws.

`probs` has axes (chain, draw, answer, question): the probability of each answer under each draw.
`weight`, of axes (chain, draw) or (chain, draw, question), sums to 1 over the draws; None weighs
them equally. All information is in bits. Every function runs under ``jax.jit``, and returns one
number for each question.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax.scipy.special import xlogy
from jaxtyping import Array, Float

from raters.acquisition.scoring.averages import TINY, Weight, bits, mean
from raters.acquisition.scoring.order_scores import (
    expected_improvement,
    order_entropy,
    order_variance_reduction,
)
from raters.acquisition.scoring.predictive_scores import (
    epig,
    error_reduction,
    event_information,
    joint,
)
from raters.errors.validation import checked

__all__ = [
    "bald",
    "bald_about",
    "bald_divergence",
    "class_variance_reduction",
    "committee_divergence",
    "entropy",
    "epig",
    "error_reduction",
    "event_information",
    "expected_improvement",
    "joint",
    "least_confidence",
    "margin",
    "mean",
    "order_entropy",
    "order_variance_reduction",
    "variance_reduction",
    "vote_entropy",
]


@checked
@jax.jit
def bald(
    probs: Float[Array, "chain draw answer question"], weight: Weight | None = None
) -> Float[Array, " question"]:
    r"""Mutual information of the answer and all parameters, as a difference of entropies.

    .. math:: I(y; \theta) = H(\mathbb{E}_\theta\, p(y \mid \theta))
              - \mathbb{E}_\theta\, H(p(y \mid \theta))

    Between 0 and the smaller of :math:`\log_2 C` and the entropy of the answer.

    Parameters
    ----------
    probs : array, shape (chain, draw, answer, question)
    weight : array, shape (chain, draw) or (chain, draw, question), optional

    Returns
    -------
    array, shape (question,)
        In bits.

    References
    ----------
    Houlsby, Huszár, Ghahramani and Lengyel (2011), arXiv:1112.5745.

    Examples
    --------
    Two draws that are certain, and disagree: the answer tells which is right, one bit.

    >>> import jax.numpy as jnp
    >>> from raters.acquisition import scores
    >>> sure = jnp.array([[[[1.0], [0.0]], [[0.0], [1.0]]]])
    >>> float(scores.bald(sure)[0])
    1.0
    """
    return jnp.maximum(bits(mean(probs, weight)) - mean(bits(probs), weight), 0.0)


@checked
@jax.jit
def bald_divergence(
    probs: Float[Array, "chain draw answer question"], weight: Weight | None = None
) -> Float[Array, " question"]:
    """`bald` in its other form: the mean divergence of the draws' predictions from their
    consensus."""
    consensus = mean(probs, weight)
    each = (xlogy(probs, probs) - xlogy(probs, jnp.maximum(consensus, TINY))).sum(-2)
    return jnp.maximum(mean(each, weight), 0.0) / jnp.log(2.0)


@checked
@jax.jit
def bald_about(
    probs: Float[Array, "phi_draw psi_draw answer question"],
) -> Float[Array, " question"]:
    """Mutual information of the answer and some of the parameters φ, with the others ψ integrated
    out."""
    given = probs.mean(1)
    return jnp.maximum(bits(given.mean(0)) - bits(given).mean(0), 0.0)


@checked
@jax.jit
def entropy(
    probs: Float[Array, "chain draw answer question"], weight: Weight | None = None
) -> Float[Array, " question"]:
    r"""Entropy of the predicted answer, :math:`H(\mathbb{E}_\theta\, p(y \mid \theta))`:
    uncertainty sampling.

    Among questions put to different annotators it prefers the *worst*: a guesser's answer is the
    most uncertain of all.

    Parameters
    ----------
    probs : array, shape (chain, draw, answer, question)
    weight : array, shape (chain, draw) or (chain, draw, question), optional

    Returns
    -------
    array, shape (question,)
        In bits.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from raters.acquisition import scores
    >>> float(scores.entropy(jnp.array([[[[0.5], [0.5]]]]))[0])
    1.0
    """
    return bits(mean(probs, weight))


@checked
@jax.jit
def least_confidence(
    probs: Float[Array, "chain draw answer question"], weight: Weight | None = None
) -> Float[Array, " question"]:
    """One minus the probability of the most probable answer. With two answers it orders questions
    as `entropy` does.

    Parameters
    ----------
    probs : array, shape (chain, draw, answer, question)
    weight : array, shape (chain, draw) or (chain, draw, question), optional

    Returns
    -------
    array, shape (question,)

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from raters.acquisition import scores
    >>> float(scores.least_confidence(jnp.array([[[[0.75], [0.25]]]]))[0])
    0.25
    """
    return jnp.maximum(1.0 - mean(probs, weight).max(-2), 0.0)


@checked
@jax.jit
def margin(
    probs: Float[Array, "chain draw answer question"], weight: Weight | None = None
) -> Float[Array, " question"]:
    """One minus the lead of the most probable answer over the second.

    Parameters
    ----------
    probs : array, shape (chain, draw, answer, question)
    weight : array, shape (chain, draw) or (chain, draw, question), optional

    Returns
    -------
    array, shape (question,)

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from raters.acquisition import scores
    >>> float(scores.margin(jnp.array([[[[0.75], [0.25]]]]))[0])
    0.5
    """
    best, second = jax.lax.top_k(jnp.moveaxis(mean(probs, weight), -2, -1), 2)[0].T
    return jnp.maximum(1.0 - (best - second), 0.0)


@checked
@jax.jit
def vote_entropy(
    probs: Float[Array, "chain draw answer question"], weight: Weight | None = None
) -> Float[Array, " question"]:
    """Query by committee: entropy of the votes when each draw votes for its most probable answer
    (Dagan and Engelson 1995).

    Parameters
    ----------
    probs : array, shape (chain, draw, answer, question)
    weight : array, shape (chain, draw) or (chain, draw, question), optional

    Returns
    -------
    array, shape (question,)
        In bits.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from raters.acquisition import scores
    >>> committee = jnp.array([[[[0.6], [0.4]], [[0.1], [0.9]]]])
    >>> float(scores.vote_entropy(committee)[0])
    1.0
    """
    votes = jax.nn.one_hot(probs.argmax(-2), probs.shape[-2], axis=-2)
    return bits(mean(votes, weight))


@checked
@jax.jit
def committee_divergence(
    probs: Float[Array, "chain draw answer question"], weight: Weight | None = None
) -> Float[Array, " question"]:
    r"""Query by committee: mean divergence between the members, over ordered pairs with
    replacement.

    .. math:: \mathbb{E}_{\theta, \theta'}\, \mathrm{KL}(p(y \mid \theta) \,\|\, p(y \mid \theta'))

    A sum over pairs in both orders, as usually printed, counts each pair twice; a mean does not. It
    is 0 when all agree, and large where one member is certain and wrong; `bald_divergence`, from
    the consensus, is bounded.

    Parameters
    ----------
    probs : array, shape (chain, draw, answer, question)
    weight : array, shape (chain, draw) or (chain, draw, question), optional

    Returns
    -------
    array, shape (question,)
        In bits.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from raters.acquisition import scores
    >>> agreed = jnp.full((1, 5, 2, 1), 0.5)
    >>> float(scores.committee_divergence(agreed)[0])
    0.0
    """
    log = jnp.log(jnp.maximum(probs, TINY))
    consensus = mean(probs, weight)
    return jnp.maximum(
        mean((probs * log).sum(-2), weight) - (consensus * mean(log, weight)).sum(-2), 0.0
    ) / jnp.log(2.0)


@checked
@jax.jit
def variance_reduction(
    probs: Float[Array, "chain draw answer question"],
    quantity: Float[Array, "chain draw quantity"],
    weight: Float[Array, "chain draw"] | None = None,
) -> Float[Array, " question"]:
    """Expected reduction of the posterior variance of some quantities by an answer, summed over
    them."""
    draws = probs.shape[0] * probs.shape[1]
    flat = jnp.full(draws, 1 / draws) if weight is None else weight.reshape(-1)
    values = quantity.reshape(draws, -1)
    centred = (values - flat @ values) * flat[:, None]
    answer = mean(probs, weight)
    covariance = jnp.tensordot(probs.reshape(draws, *probs.shape[2:]), centred, ((0,), (0,)))
    return ((covariance**2).sum(-1) / jnp.maximum(answer, TINY)).sum(0)


@checked
@partial(jax.jit, static_argnums=2)
def class_variance_reduction(
    probs: Float[Array, "chain draw_class label question"],
    weight: Float[Array, "chain draw_class question"],
    classes: int,
) -> Float[Array, " question"]:
    """Expected reduction of the variance of the indicators of an item's true class by a label,
    summed over classes."""
    labels, questions = probs.shape[2:]
    weighted = (weight[:, :, None, :] * probs).reshape(-1, classes, labels, questions)
    joint = weighted.sum(0)
    truth, label = joint.sum(1, keepdims=True), joint.sum(0, keepdims=True)
    return ((joint - truth * label) ** 2 / jnp.maximum(label, TINY)).sum((0, 1))

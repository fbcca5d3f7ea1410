"""Scores of questions by the information of their answers about other answers and events."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Shaped

from raters.acquisition.scoring.averages import TINY, Weight, bits, mean
from raters.errors.validation import checked


@checked
@jax.jit
def joint(
    probs: Float[Array, "chain draw answer question"],
    targets: Float[Array, "chain draw target_answer target"],
    weight: Weight | None = None,
) -> Float[Array, "answer question target_answer target"]:
    """Probability of each answer to each question together with each answer to each target."""
    draws = probs.shape[0] * probs.shape[1]
    share = jnp.full((1, draws), 1 / draws) if weight is None else weight
    left = probs.reshape(draws, *probs.shape[2:]) * share.reshape(draws, 1, -1)
    return (left.reshape(draws, -1).T @ targets.reshape(draws, -1)).reshape(
        *probs.shape[2:], *targets.shape[2:]
    )


@checked
@jax.jit
def epig(
    probs: Float[Array, "chain draw answer question"],
    targets: Float[Array, "chain draw target_answer target"],
    weight: Float[Array, "chain draw"] | None = None,
    together: Float[Array, "answer question target_answer target"] | None = None,
) -> Float[Array, " question"]:
    r"""Expected predictive information gain: mean mutual information of the answer and the answers
    to `targets`.

    .. math:: \frac1M \sum_m I(y; y_m)
              = \frac1M \sum_m \bigl[H(y_m) - \mathbb{E}_y\, H(y_m \mid y)\bigr]

    Parameters
    ----------
    probs : array, shape (chain, draw, answer, question)
    targets : array, shape (chain, draw, answer, target)
    weight : array, shape (chain, draw), optional
    together : array, shape (answer, question, answer, target), optional
        Joint probability of the answers; by default that of `joint`, which assumes independence
        given a draw.

    Returns
    -------
    array, shape (question,)
        In bits; never above the entropy of the answer.

    References
    ----------
    Bickford Smith, Kirsch, Farquhar, Gal, Foster and Rainforth (2023), AISTATS, arXiv:2304.08151.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from raters.acquisition import scores
    >>> sure = jnp.array([[[[1.0], [0.0]], [[0.0], [1.0]]]])
    >>> float(scores.epig(sure, sure)[0])
    1.0
    """
    pairs = joint(probs, targets, weight) if together is None else together
    both = bits(pairs.transpose(0, 2, 1, 3).reshape(-1, pairs.shape[1], pairs.shape[3]), 0)
    gain = bits(mean(probs, weight))[:, None] + bits(mean(targets, weight))[None, :] - both
    return jnp.maximum(gain.mean(-1), 0.0)


@checked
@partial(jax.jit, static_argnames="printed")
def error_reduction(
    probs: Float[Array, "chain draw answer question"],
    targets: Float[Array, "chain draw target_answer target"],
    weight: Float[Array, "chain draw"] | None = None,
    together: Float[Array, "answer question target_answer target"] | None = None,
    *,
    printed: bool = False,
) -> Float[Array, " question"]:
    r"""Expected error reduction of Roy and McCallum (2001): the negative expected log-loss on
    `targets` once the answer is known.

    .. math:: -\frac1M \sum_m \mathbb{E}_y\, H(p(y_m \mid y))
              = \mathrm{EPIG} - \frac1M \sum_m H(y_m)

    Often (for example in the notes that this project follows, their equation 46) the inner
    expectation is printed under the *old* model,

    .. math:: \frac1M \sum_m \mathbb{E}_y\, \mathbb{E}_{p(y_m)} \log p(y_m \mid y)
              = \text{const}
              - \frac1M \sum_m \mathbb{E}_y\, \mathrm{KL}(p(y_m) \,\|\, p(y_m \mid y)),

    which is largest for a question that changes *nothing*. ``printed=True`` computes it for
    comparison; do not choose questions by it.

    Parameters
    ----------
    probs : array, shape (chain, draw, answer, question)
    targets : array, shape (chain, draw, answer, target)
    weight : array, shape (chain, draw), optional
    together : array, shape (answer, question, answer, target), optional
        As in `epig`.
    printed : bool
        Whether to take the inner expectation under the old model.

    Returns
    -------
    array, shape (question,)
        In bits, at most 0.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from raters.acquisition import scores
    >>> # Nothing follows from an answer to the second question, which the printed form prefers.
    >>> sure = jnp.array([[[[1.0, 0.5], [0.0, 0.5]], [[0.0, 0.5], [1.0, 0.5]]]])
    >>> scores.error_reduction(sure, sure[..., :1]).tolist()
    [0.0, -1.0]
    >>> int(scores.error_reduction(sure, sure[..., :1], printed=True).argmax())
    1
    """
    pairs = joint(probs, targets, weight) if together is None else together
    answer = jnp.maximum(mean(probs, weight), TINY)[:, :, None, None]
    under = answer * mean(targets, weight) if printed else pairs
    return (under * jnp.log2(jnp.maximum(pairs / answer, TINY))).sum((0, 2)).mean(-1)


@checked
@jax.jit
def event_information(
    probs: Float[Array, "chain draw answer question"],
    events: Shaped[Array, "chain draw event"],
    weight: Float[Array, "chain draw"] | None = None,
) -> Float[Array, " question"]:
    r"""Sum over events of their mutual information with the answer, :math:`\sum_e I(y; e)`."""
    happens = jnp.asarray(events, probs.dtype)
    mean_gain: Array = epig(probs, jnp.stack([happens, 1 - happens], -2), weight)
    return mean_gain * events.shape[-1]

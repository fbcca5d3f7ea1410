r"""How much a question is worth asking: pure functions of what posterior draws say about its answer.

Everywhere `chances` has axes (chain, draw, answer, question): the probability of each answer under each draw. `weight`, of axes
(chain, draw) or (chain, draw, question), sums to 1 over the draws; None weighs them alike. All information is in bits.
Every function runs under ``jax.jit``, and returns one number for each question.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import xlogy

# Probabilities are kept so far from 0 where they are divided by, or a logarithm alone is taken of them.
_TINY = 1e-12


def mean(values: Array, weight: Array | None) -> Array:
    """Average over the draws: the two leading axes of `values`, whose last axis is the question."""
    if weight is None:
        return values.mean((0, 1))
    if weight.ndim == 2:
        return jnp.tensordot(weight, values, 2)
    return (jnp.expand_dims(weight, tuple(range(2, values.ndim - 1))) * values).sum((0, 1))


def _bits(chances: Array, axis: int = -2) -> Array:
    """Entropy over the answers; rounding does not take it below 0."""
    return jnp.maximum(-xlogy(chances, chances).sum(axis) / jnp.log(2.0), 0.0)


@jax.jit
def bald(chances: Array, weight: Array | None = None) -> Array:
    r"""Mutual information of the answer and all that the draws are of, in the form of entropies.

    .. math:: I(y; \theta) = H(\mathbb{E}_\theta\, p(y \mid \theta)) - \mathbb{E}_\theta\, H(p(y \mid \theta))

    Between 0 and the smaller of :math:`\log_2 C` and the entropy of the answer.

    Parameters
    ----------
    chances : array, shape (chain, draw, answer, question)
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
    Two draws that are sure, and disagree: the answer tells which is right, one bit.

    >>> import jax.numpy as jnp
    >>> from raters.acquisition import scores
    >>> sure = jnp.array([[[[1.0], [0.0]], [[0.0], [1.0]]]])
    >>> float(scores.bald(sure)[0])
    1.0
    """
    return jnp.maximum(_bits(mean(chances, weight)) - mean(_bits(chances), weight), 0.0)


@jax.jit
def bald_divergence(chances: Array, weight: Array | None = None) -> Array:
    r"""`bald` in its other form: the mean divergence of the draws' predictions from their consensus.

    .. math:: I(y; \theta) = \mathbb{E}_\theta\, \mathrm{KL}(p(y \mid \theta) \,\|\, \mathbb{E}_\theta\, p(y \mid \theta))

    It is also query by committee with posterior draws as the committee (McCallum and Nigam 1998).

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from raters.acquisition import scores
    >>> sure = jnp.array([[[[1.0], [0.0]], [[0.0], [1.0]]]])
    >>> float(scores.bald_divergence(sure)[0])
    1.0
    """
    consensus = mean(chances, weight)
    each = (xlogy(chances, chances) - xlogy(chances, jnp.maximum(consensus, _TINY))).sum(-2)
    return jnp.maximum(mean(each, weight), 0.0) / jnp.log(2.0)


@jax.jit
def bald_about(chances: Array) -> Array:
    r"""Mutual information of the answer and some of the parameters, φ, the others, ψ, integrated out.

    .. math:: I(y; \varphi) = H(p(y)) - \mathbb{E}_\varphi\, H(\mathbb{E}_{\psi \mid \varphi}\, p(y \mid \varphi, \psi))

    Never above `bald`, which is of both.

    Parameters
    ----------
    chances : array, shape (draw of φ, draw of ψ given φ, answer, question)

    Returns
    -------
    array, shape (question,)

    Examples
    --------
    When an answer tells the annotator's competence only, it tells nothing about the rewards:

    >>> import jax.numpy as jnp
    >>> from raters.acquisition import scores
    >>> by_competence = jnp.broadcast_to(jnp.array([[[0.9], [0.1]], [[0.5], [0.5]]]), (3, 2, 2, 1))
    >>> abs(round(float(scores.bald_about(by_competence)[0]), 6))
    0.0
    """
    given = chances.mean(1)
    return jnp.maximum(_bits(given.mean(0)) - _bits(given).mean(0), 0.0)


@jax.jit
def entropy(chances: Array, weight: Array | None = None) -> Array:
    r"""Entropy of the predicted answer, :math:`H(\mathbb{E}_\theta\, p(y \mid \theta))`: uncertainty sampling.

    Among questions put to different annotators it prefers the *worst*: a guesser's answer is the most uncertain of all.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from raters.acquisition import scores
    >>> float(scores.entropy(jnp.array([[[[0.5], [0.5]]]]))[0])
    1.0
    """
    return _bits(mean(chances, weight))


@jax.jit
def least_confidence(chances: Array, weight: Array | None = None) -> Array:
    """One less the probability of the most probable answer. It *falls* in that probability, and with two answers orders
    questions as `entropy` does.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from raters.acquisition import scores
    >>> float(scores.least_confidence(jnp.array([[[[0.75], [0.25]]]]))[0])
    0.25
    """
    return jnp.maximum(1.0 - mean(chances, weight).max(-2), 0.0)


@jax.jit
def margin(chances: Array, weight: Array | None = None) -> Array:
    """One less the lead of the most probable answer over the second.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from raters.acquisition import scores
    >>> float(scores.margin(jnp.array([[[[0.75], [0.25]]]]))[0])
    0.5
    """
    best, second = jax.lax.top_k(jnp.moveaxis(mean(chances, weight), -2, -1), 2)[0].T
    return jnp.maximum(1.0 - (best - second), 0.0)


@jax.jit
def vote_entropy(chances: Array, weight: Array | None = None) -> Array:
    """Query by committee: entropy of the votes when each draw votes for its most probable answer (Dagan and Engelson 1995).

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from raters.acquisition import scores
    >>> committee = jnp.array([[[[0.6], [0.4]], [[0.1], [0.9]]]])
    >>> float(scores.vote_entropy(committee)[0])
    1.0
    """
    votes = jax.nn.one_hot(chances.argmax(-2), chances.shape[-2], axis=-2)
    return _bits(mean(votes, weight))


@jax.jit
def committee_divergence(chances: Array, weight: Array | None = None) -> Array:
    r"""Query by committee: mean divergence between the members, over ordered pairs with replacement.

    .. math:: \mathbb{E}_{\theta, \theta'}\, \mathrm{KL}(p(y \mid \theta) \,\|\, p(y \mid \theta'))

    A sum over pairs in both orders, as usually printed, counts each pair twice; a mean does not. 0 when all agree. Large where
    one member is sure and wrong; `bald_divergence`, from the consensus, is bounded.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from raters.acquisition import scores
    >>> agreed = jnp.full((1, 5, 2, 1), 0.5)
    >>> float(scores.committee_divergence(agreed)[0])
    0.0
    """
    log = jnp.log(jnp.maximum(chances, _TINY))
    consensus = mean(chances, weight)
    return jnp.maximum(mean((chances * log).sum(-2), weight) - (consensus * mean(log, weight)).sum(-2), 0.0) / jnp.log(2.0)


@jax.jit
def order_entropy(difference: Array, weight: Array | None = None) -> Array:
    """Entropy of which of two items is the better, when each draw says so by the sign of their `difference`.

    Unlike `entropy` it leaves out the noise of the answer: two items that are known to be nearly alike score low. With few
    draws, ten say, its chance differences make batches diverse.

    Parameters
    ----------
    difference : array, shape (chain, draw, question)
        Reward of the first item less that of the second.
    weight : array, shape (chain, draw) or (chain, draw, question), optional

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from raters.acquisition import scores
    >>> float(scores.order_entropy(jnp.array([[[0.1], [-2.0], [0.3], [-0.4]]]))[0])
    1.0
    """
    # Weights that sum to a little more than 1 would make a share of draws whose complement has no logarithm.
    above = jnp.clip(mean((difference > 0) + 0.5 * (difference == 0), weight), 0.0, 1.0)
    return _bits(jnp.stack([above, 1 - above]), 0)


@jax.jit
def joint(chances: Array, targets: Array, weight: Array | None = None) -> Array:
    r"""Probability of each answer to each question together with each answer to each target.

    .. math:: p(y, y_m) = \mathbb{E}_\theta\, p(y \mid \theta)\, p(y_m \mid \theta)

    Answers are taken as independent given a draw. Those that share a class which the likelihood sums out are not; they are
    given a draw of that class, so the axis draw then holds each draw once for each class.

    Parameters
    ----------
    chances : array, shape (chain, draw, answer, question)
    targets : array, shape (chain, draw, answer, target)
    weight : array, shape (chain, draw) or (chain, draw, question), optional

    Returns
    -------
    array, shape (answer, question, answer, target)

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from raters.acquisition import scores
    >>> sure = jnp.array([[[[1.0], [0.0]], [[0.0], [1.0]]]])
    >>> scores.joint(sure, sure)[:, 0, :, 0].tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """
    draws = chances.shape[0] * chances.shape[1]
    share = jnp.full((1, draws), 1 / draws) if weight is None else weight
    left = chances.reshape(draws, *chances.shape[2:]) * share.reshape(draws, 1, -1)
    return (left.reshape(draws, -1).T @ targets.reshape(draws, -1)).reshape(*chances.shape[2:], *targets.shape[2:])


@jax.jit
def epig(chances: Array, targets: Array, weight: Array | None = None, together: Array | None = None) -> Array:
    r"""Expected predictive information gain: what an answer tells about the answers to `targets`, on average over them.

    .. math:: \frac1M \sum_m I(y; y_m) = \frac1M \sum_m \bigl[H(y_m) - \mathbb{E}_y\, H(y_m \mid y)\bigr]

    Parameters
    ----------
    chances : array, shape (chain, draw, answer, question)
    targets : array, shape (chain, draw, answer, target)
    weight : array, shape (chain, draw), optional
    together : array, shape (answer, question, answer, target), optional
        Probability of the answers together; by default their `joint` one, which takes them as independent given a draw.

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
    pairs = joint(chances, targets, weight) if together is None else together
    both = _bits(pairs.transpose(0, 2, 1, 3).reshape(-1, pairs.shape[1], pairs.shape[3]), 0)
    gain = _bits(mean(chances, weight))[:, None] + _bits(mean(targets, weight))[None, :] - both
    return jnp.maximum(gain.mean(-1), 0.0)


@partial(jax.jit, static_argnames="printed")
def error_reduction(
    chances: Array, targets: Array, weight: Array | None = None, together: Array | None = None, *, printed: bool = False
) -> Array:
    r"""Expected error reduction of Roy and McCallum (2001): less the log-loss expected on `targets` once the answer is known.

    .. math:: -\frac1M \sum_m \mathbb{E}_y\, H(p(y_m \mid y)) = \mathrm{EPIG} - \frac1M \sum_m H(y_m)

    Often (for example in the notes that this project follows, their equation 46) the inner expectation is printed under the
    *old* model,

    .. math:: \frac1M \sum_m \mathbb{E}_y\, \mathbb{E}_{p(y_m)} \log p(y_m \mid y)
              = \text{const} - \frac1M \sum_m \mathbb{E}_y\, \mathrm{KL}(p(y_m) \,\|\, p(y_m \mid y)),

    whose largest value is that of the question that changes *nothing*. ``printed=True`` computes that, to compare; do not ask
    by it.

    Parameters
    ----------
    chances : array, shape (chain, draw, answer, question)
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
    >>> sure = jnp.array([[[[1.0, 0.5], [0.0, 0.5]], [[0.0, 0.5], [1.0, 0.5]]]])  # the second question tells nothing
    >>> scores.error_reduction(sure, sure[..., :1]).tolist()
    [0.0, -1.0]
    >>> int(scores.error_reduction(sure, sure[..., :1], printed=True).argmax())   # the printed form asks it
    1
    """
    pairs = joint(chances, targets, weight) if together is None else together
    answer = jnp.maximum(mean(chances, weight), _TINY)[:, :, None, None]
    under = answer * mean(targets, weight) if printed else pairs
    return (under * jnp.log2(jnp.maximum(pairs / answer, _TINY))).sum((0, 2)).mean(-1)


@jax.jit
def event_information(chances: Array, events: Array, weight: Array | None = None) -> Array:
    r"""What an answer tells about each of some events, summed over them: :math:`\sum_e I(y; e)`.

    Parameters
    ----------
    chances : array, shape (chain, draw, answer, question)
    events : array, shape (chain, draw, event)
        Whether each happens under each draw; such as that one item is better than another.
    weight : array, shape (chain, draw), optional

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from raters.acquisition import scores
    >>> sure = jnp.array([[[[1.0], [0.0]], [[0.0], [1.0]]]])
    >>> float(scores.event_information(sure, jnp.array([[[1.0, 1.0], [0.0, 1.0]]]))[0])
    1.0
    """
    happens = jnp.asarray(events, chances.dtype)
    return epig(chances, jnp.stack([happens, 1 - happens], -2), weight) * events.shape[-1]


@jax.jit
def variance_reduction(chances: Array, quantity: Array, weight: Array | None = None) -> Array:
    r"""By how much an answer is expected to lower the posterior variance of some quantities, summed over them.

    .. math:: \sum_n \bigl(\mathrm{Var}\, q_n - \mathbb{E}_y\, \mathrm{Var}(q_n \mid y)\bigr)
              = \sum_n \sum_a \frac{\mathrm{Cov}(p(y = a \mid \theta), q_n(\theta))^2}{p(y = a)}

    This is expected error reduction under squared loss, without an approximation beyond that of the draws.

    Parameters
    ----------
    chances : array, shape (chain, draw, answer, question)
    quantity : array, shape (chain, draw, quantity)
    weight : array, shape (chain, draw), optional

    Returns
    -------
    array, shape (question,)
        In squared units of the quantity.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from raters.acquisition import scores
    >>> sure = jnp.array([[[[1.0], [0.0]], [[0.0], [1.0]]]])
    >>> float(scores.variance_reduction(sure, jnp.array([[[2.0], [0.0]]]))[0])
    1.0
    """
    draws = chances.shape[0] * chances.shape[1]
    flat = jnp.full(draws, 1 / draws) if weight is None else weight.reshape(-1)
    values = quantity.reshape(draws, -1)
    centred = (values - flat @ values) * flat[:, None]
    answer = mean(chances, weight)
    covariance = jnp.tensordot(chances.reshape(draws, *chances.shape[2:]), centred, ((0,), (0,)))
    return ((covariance**2).sum(-1) / jnp.maximum(answer, _TINY)).sum(0)


@jax.jit
def order_variance_reduction(chances: Array, difference: Array, weight: Array | None = None) -> Array:
    r"""By how much an answer is expected to lower the variance of which of its own two items is the better.

    .. math:: \frac{\mathrm{Cov}(p(y \mid \theta), 1[r_i > r_j])^2}{p(y)\,(1 - p(y))}

    Between 0 and the variance of that order, at most ¼. It is large where `order_entropy` is and the annotator's answer goes
    with the order, and 0 where the answer is a coin's. Asking by ``target="ranking"`` maximises it.

    Parameters
    ----------
    chances : array, shape (chain, draw, answer, question)
    difference : array, shape (chain, draw, question)
        Reward of the first item less that of the second.
    weight : array, shape (chain, draw), optional

    Examples
    --------
    A sure answer to an open question, and a coin's answer to the same:

    >>> import jax.numpy as jnp
    >>> from raters.acquisition import scores
    >>> chances = jnp.array([[[[1.0, 0.5], [0.0, 0.5]], [[0.0, 0.5], [1.0, 0.5]]]])
    >>> scores.order_variance_reduction(chances, jnp.array([[[2.0, 2.0], [-2.0, -2.0]]])).tolist()
    [0.25, 0.0]
    """
    above = (difference > 0).astype(chances.dtype)
    wins = chances[:, :, 0]
    chance, share = mean(wins, weight), mean(above, weight)
    covariance = mean(wins * above, weight) - chance * share
    return covariance**2 / jnp.maximum(chance * (1 - chance), _TINY)


@jax.jit
def expected_improvement(first: Array, second: Array, best: Array, weight: Array | None = None) -> Array:
    r"""By how much the better of two items is expected to exceed the item that is now thought best.

    .. math:: \mathbb{E}_\theta \max(r_i - r^*, r_j - r^*, 0)

    Parameters
    ----------
    first, second : array, shape (chain, draw, question)
        Rewards of the two items.
    best : array, shape (chain, draw)
        Reward of the item of highest posterior mean.
    weight : array, shape (chain, draw), optional

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from raters.acquisition import scores
    >>> float(scores.expected_improvement(jnp.array([[[3.0], [0.0]]]), jnp.zeros((1, 2, 1)), jnp.ones((1, 2)))[0])
    1.0
    """
    return mean(jnp.maximum(jnp.maximum(first, second) - best[..., None], 0.0), weight)


@partial(jax.jit, static_argnums=2)
def class_variance_reduction(chances: Array, weight: Array, classes: int) -> Array:
    r"""By how much a label is expected to lower the variance of the indicators of its item's true class, summed over classes.

    .. math:: \sum_{c, a} \frac{(p(t = c, y = a) - p(t = c)\, p(y = a))^2}{p(y = a)}

    Parameters
    ----------
    chances : array, shape (chain, draw · class, label, question)
        Each draw once for each class, one class after the other.
    weight : array, shape (chain, draw · class, question)
    classes : int

    Examples
    --------
    A perfect annotator on an item of unknown class, of two:

    >>> import jax.numpy as jnp
    >>> from raters.acquisition import scores
    >>> perfect = jnp.array([[[[1.0], [0.0]], [[0.0], [1.0]]]])
    >>> float(scores.class_variance_reduction(perfect, jnp.full((1, 2, 1), 0.5), 2)[0])
    0.5
    """
    labels, questions = chances.shape[2:]
    weighted = (weight[:, :, None, :] * chances).reshape(-1, classes, labels, questions)
    joint = weighted.sum(0)
    truth, label = joint.sum(1, keepdims=True), joint.sum(0, keepdims=True)
    return ((joint - truth * label) ** 2 / jnp.maximum(label, _TINY)).sum((0, 1))

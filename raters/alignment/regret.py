"""Regrets of types under policies, and the mixture of policies whose worst regret is least."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.special import softmax

from raters.alignment import checks
from raters.alignment.saddle import least_worst, warn_of_gap
from raters.errors import refuse_data
from raters.errors.validation import checked, positive, whole

# Gap, in units of the largest entry, from which `hedge` warns.
_WIDE = 0.02
# Step size of Hedge, the largest that is proved to converge.
RATE = 0.5


@checked
def regret_matrix(
    policies: ArrayLike, reference: ArrayLike | None = None, *, beta: float = 1.0
) -> Float[np.ndarray, "1+type type"]:
    r"""Return each type's regret under each type's policy, by the policies' implicit rewards.

    The regret is the expected reward that a type loses when the policy is not its own:

    .. math:: R_{kk'} = \beta (L_{kk} - L_{kk'}), \qquad
              L_{kk'} = \mathbb{E}_x \sum_y \pi_{k'}(y \mid x)
              \log \frac{\pi_k(y \mid x)}{\pi_\text{ref}(y \mid x)},

    below a row of zeros for the type :math:`z_0` without preferences (Chidambaram et al. 2024,
    section 5.2). The regrets of the types under an ensemble with weights :math:`w` are
    :math:`R w`.

    Parameters
    ----------
    policies : array (type, prompt, response) or (type, response)
        Probabilities: each type's own policy. A response that one of them gives must have a
        probability above 0 under all of them, and under the reference.
    reference : array (prompt, response) or (response,), optional
        The reference policy; uniform unless given.
    beta : float
        Price of leaving the reference with which the policies were learned, in units of reward per
        nat.

    Returns
    -------
    numpy.ndarray (1 + type, type)
        In units of reward.

    Notes
    -----
    The paper's appendix D prints :math:`L` with :math:`\log \pi_{k'}` and the regret with its sign
    reversed; section 5.2, as here, has both right but leaves :math:`\beta` out. A regret can be
    negative, since a type's own policy is also close to the reference, but not for the type
    furthest from the reference.

    Types with larger rewards have larger regrets, and rewards estimated from few answers are
    shrunk. To weigh types alike, divide each row but that of :math:`z_0` by its largest entry.

    Examples
    --------
    >>> print(regret_matrix([[0.8, 0.1, 0.1], [0.2, 0.6, 0.2]]).round(2))
    [[0.   0.  ]
     [0.   1.25]
     [0.55 0.  ]]
    """
    positive("beta", beta)
    probs = checks.as_policy("policies", policies)
    if probs.ndim not in (2, 3):
        expected = "it must be (type, prompt, response) or (type, response)"
        checks.refuse_shape("policies", probs, expected, "policies=[policies] for one type")
    probs = probs if probs.ndim == 3 else probs[:, None]
    base = checks.as_reference(reference, probs.shape[1:])
    possible = (probs > 0).any(0)
    for name, table in (("policies", probs), ("reference", base)):
        if not np.where(possible, table, 1).all():
            such = f"0.999 * {name} + 0.001 / {name}.shape[-1]"
            refuse_data(name, problem="has a logarithm of 0", expected="smooth it", instead=such)
    log_ratio = np.log(np.where(possible, probs, 1)) - np.log(np.where(possible, base, 1))
    mean = np.einsum("kxy,jxy->kjx", log_ratio, probs).mean(-1)
    return np.vstack([np.zeros(len(probs)), beta * (np.diag(mean)[:, None] - mean)])


def regrets(policy: ArrayLike, reward: ArrayLike) -> Float[np.ndarray, "*draw type"]:
    r"""Return each type's regret under a policy, by known rewards or posterior draws of them:
    :math:`\mathbb{E}_x [\max_y r_k - \sum_y \pi r_k]`.

    Parameters
    ----------
    policy : array (prompt, response) or (response,)
        Probabilities.
    reward : array (..., type, prompt, response) or (..., type, response)
        Finite, with the axes of `policy` last; draws of them, as from `type_rewards`, first.

    Returns
    -------
    numpy.ndarray (..., type)
        In units of reward. Never negative: it compares with the best response, not with the best
        policy near a reference.

    Examples
    --------
    >>> print(regrets([0.5, 0.25, 0.25], [[4, 0, 0], [0, 8, 4]]))
    [2. 5.]
    """
    value = checks.as_reward(reward)
    probs = checks.as_policy("policy", policy, f"np.full({value.shape[-1]}, 1 / {value.shape[-1]})")
    if value.ndim <= probs.ndim or value.shape[-probs.ndim :] != probs.shape:
        expected = f"its axes must be the last ones of the rewards, here {value.shape}"
        checks.refuse_shape("policy", probs, expected)
    lost = np.sum(probs * (value.max(-1, keepdims=True) - value), -1)
    return np.asarray(lost.mean(-1) if probs.ndim > 1 else lost)


class MinMax(NamedTuple):
    """Weights of the types' policies, the worst regret under them, a bound on how far this is above
    the least possible, and the weights after each step of `hedge`."""

    weights: Float[np.ndarray, " type"]
    value: float
    gap: float = 0.0
    history: Float[np.ndarray, "step type"] | None = None


def linear_programme(regret: ArrayLike) -> MinMax:
    r"""Find the weights with the smallest worst regret, :math:`\min_w \max_k (R w)_k`, exactly.

    It solves the problem of Chidambaram et al. (2024), section 5.2, for the least :math:`v` with
    :math:`R w \le v` in each row.

    Parameters
    ----------
    regret : array (row, type)
        From `regret_matrix`.

    Returns
    -------
    MinMax
        ``weights`` (type,); ``value``, the largest regret of a row, in units of the matrix; and
        ``gap``, a bound on how far it is above the least possible.

    Warns
    -----
    ConvergenceWarning
        When regrets differ so much in size that rounding leaves a gap of more than a thousandth of
        the worst regret.

    Examples
    --------
    >>> solution = linear_programme(regret_matrix([[0.8, 0.1, 0.1], [0.2, 0.6, 0.2]]))
    >>> print(solution.weights.round(2), round(solution.value, 2))
    [0.69 0.31] 0.38
    """
    matrix, scale = _scaled(regret)
    # Rows are as the types of one draw, and types as the responses to one prompt.
    [weights], [rows] = least_worst(matrix[None, :, None])
    worst = float(np.max(matrix @ weights))
    gap = max(worst - float(np.min(matrix.T @ rows)), 0.0)
    warn_of_gap(worst, gap, scale)
    return MinMax(weights, scale * worst, scale * gap)


@checked
def hedge(regret: ArrayLike, *, steps: int = 2000) -> MinMax:
    r"""Approximate `linear_programme` by optimistic Hedge for both players.

    It is algorithm 2 of Chidambaram et al. (2024), with :math:`\eta = 1/2`,

    .. math:: w_t \propto w_{t-1} \exp(-\eta (2 R^\top p_{t-1} - R^\top p_{t-2})), \qquad
              p_t \propto p_{t-1} \exp(\eta (2 R w_{t-1} - R w_{t-2}))

    Parameters
    ----------
    regret : array (row, type)
        From `regret_matrix`. The steps use it divided by its largest absolute entry.
    steps : int
        Number of iterates that are averaged, :math:`T`.

    Returns
    -------
    MinMax
        As of `linear_programme`, with the average of the first :math:`t` iterates in row :math:`t`
        of ``history``, the last of them in ``weights``.

    Warns
    -----
    ConvergenceWarning
        When the worst regret may be above the least possible by more than a fiftieth of the largest
        entry: by weak duality, :math:`\min_j (R^\top \bar p)_j \le v \le \max_k (R \bar w)_k`.

    Notes
    -----
    For :math:`K + 1` rows the worst regret is within :math:`(\log K(K+1) / \eta + 2 \eta) / T` of
    the least, in units of the largest entry (by theorem 4 of Syrgkanis et al. 2015). The printed
    algorithm does not define the iterates before the first, divides a sum of :math:`T + 1` of them
    by :math:`T`, and has a step size that ignores the scale of :math:`R`. Here :math:`w_0` and
    :math:`p_0` are uniform, payoffs before them 0, and :math:`w_0, \dots, w_{T-1}` are averaged.

    Examples
    --------
    >>> solution = hedge(regret_matrix([[0.8, 0.1, 0.1], [0.2, 0.6, 0.2]]))
    >>> print(solution.weights.round(2), round(solution.value, 2), solution.history.shape)
    [0.69 0.31] 0.38 (2000, 2)
    """
    whole("steps", steps)
    matrix, scale = _scaled(regret)
    iterates = np.empty((steps, matrix.shape[1]))
    loss, gain = np.zeros(matrix.shape[1]), np.zeros(matrix.shape[0])
    last_loss, last_gain = loss, gain
    rows = np.zeros(matrix.shape[0])
    for step in range(steps):
        # The recursion of the docstring summed: the last payoff counts twice.
        w, p = softmax(-RATE * (loss + last_loss)), softmax(RATE * (gain + last_gain))
        last_loss, last_gain = matrix.T @ p, matrix @ w
        loss, gain = loss + last_loss, gain + last_gain
        iterates[step] = w
        rows += p / steps
    history = np.cumsum(iterates, 0) / np.arange(1, steps + 1)[:, None]
    worst, least = float(np.max(matrix @ history[-1])), float(np.min(matrix.T @ rows))
    gap = max(worst - least, 0.0)
    if gap > _WIDE:
        bound = f"the worst regret {scale * worst:.3g} may be {scale * gap:.3g} above the least"
        checks.warn_unconverged(f"{bound}; take more steps than {steps}, or use linear_programme")
    return MinMax(history[-1], scale * worst, scale * gap, history)


def _scaled(regret: ArrayLike) -> tuple[Float[np.ndarray, "row type"], float]:
    """The matrix divided by its largest absolute entry, and that entry."""
    matrix = checks.as_array("regret", regret)
    if matrix.ndim != 2:
        such = "regret_matrix(policies)"
        checks.refuse_shape("regret", matrix, "it must be (1 + type, type)", such)
    scale = float(np.abs(matrix).max()) or 1.0
    return matrix / scale, scale

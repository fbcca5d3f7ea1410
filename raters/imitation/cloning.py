"""Behavioural cloning on tables: imitation as classification of the actions in each state."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.special import log_softmax

from raters.errors import SettingError
from raters.errors.validation import checked, is_number, positive
from raters.imitation._checks import as_policy, as_reward, as_start, as_table, discounted
from raters.imitation.occupancies import occupancy_of
from raters.imitation.values import uniform_policy, values_of
from raters.judgements import MDP


class Bound(NamedTuple):
    """A difference, and what it cannot exceed.

    Attributes
    ----------
    gap : float
        In units of reward.
    bound : float
        In units of reward.
    """

    gap: float
    bound: float


@checked
def clone(
    mdp: MDP, counts: ArrayLike, *, pseudo_counts: float = 1.0
) -> Float[np.ndarray, "state action"]:
    r"""Return the policy that was demonstrated, state by state.

    .. math:: \hat\pi(a \mid s) = \frac{n(s, a) + \alpha / A(s)}{\sum_{a'} n(s, a') + \alpha}

    with :math:`A(s)` allowed actions: the mean of the posterior with a Dirichlet prior. With
    :math:`\alpha = 0` it is the maximum-likelihood estimate (equations 49 and 50 of Nalisnick
    (2024) with the log loss), and of an occupancy it is the policy that has it.

    Parameters
    ----------
    mdp : MDP
    counts : array (state, action)
        How often each action was done in each state, as from `action_counts`; or an occupancy.
    pseudo_counts : float
        :math:`\alpha`, at least 0: how many demonstrations of all actions alike the prior is worth
        in a state.

    Returns
    -------
    numpy.ndarray (state, action)
        All allowed actions alike in a state without demonstrations.

    Raises
    ------
    DataError, SettingError
        When `counts` has another shape or an entry that is negative or not allowed, or
        `pseudo_counts` is below 0.

    Examples
    --------
    >>> import raters as rt
    >>> print(clone(rt.MDP.grid(1, 2), [[0, 3, 0, 0], [0, 0, 0, 0]]))
    [[0.0625 0.8125 0.0625 0.0625]
     [0.25   0.25   0.25   0.25  ]]
    """
    if not is_number(pseudo_counts) or pseudo_counts < 0:
        raise SettingError(
            parameter="pseudo_counts", value=pseudo_counts, expected="it must be at least 0"
        )
    table = as_table(mdp, "counts", counts) + pseudo_counts * uniform_policy(mdp)
    total = table.sum(1, keepdims=True)
    return np.where(total > 0, table / np.where(total > 0, total, 1), uniform_policy(mdp))


@checked
def cloning_bound(
    mdp: MDP,
    reward: ArrayLike,
    demonstrator: ArrayLike,
    policy: ArrayLike,
    *,
    start: ArrayLike | None = None,
) -> Bound:
    r"""Return what a cloned policy loses, and the bound of it by how often the two disagree.

    .. math:: V^{\pi^*} - V^{\hat\pi} \le \frac{(r_\text{max} - r_\text{min})\, \epsilon}
              {(1 - \gamma)^2}, \qquad \epsilon = \mathbb{E}_{s \sim d(\pi^*)} \left[ \tfrac12
              \sum_a |\pi^*(a \mid s) - \hat\pi(a \mid s)| \right]

    It is proposition 3.1 of Nalisnick (2024), where rewards are from −1 to 1, so that the constant
    is 2, and both policies deterministic, so that :math:`\epsilon` is the probability that they
    disagree.

    Parameters
    ----------
    mdp : MDP
        With a discount below 1.
    reward : array (state, action) or (feature,)
        A table, or weights of the features.
    demonstrator, policy : array (state, action)
        The policies :math:`\pi^*` and :math:`\hat\pi`.
    start : int or array (state,), optional
        Code of the first state, or probabilities of it; by default those of the process.

    Returns
    -------
    Bound

    Raises
    ------
    DataError, SettingError
        When an argument has another shape or is no policy, or the discount is 1.

    Notes
    -----
    :math:`d(\pi^*)` is the discounted occupancy from the same start, since the proof is by the
    performance-difference lemma; the last two lines of the printed proof are inequalities.

    Examples
    --------
    >>> import raters as rt
    >>> mdp = rt.MDP.grid(1, 2, slip=0, discount=0.5)
    >>> print(cloning_bound(mdp, [0, 1], [[0, 1, 0, 0]] * 2, [[0.1, 0.9, 0, 0]] * 2, start=0))
    Bound(gap=0.0526, bound=0.4000)
    """
    discounted(mdp)
    table = as_reward(mdp, reward)
    good, own = as_policy(mdp, demonstrator, "demonstrator"), as_policy(mdp, policy)
    first = as_start(mdp, start)
    visits = (1 - mdp.discount) * occupancy_of(mdp, good, first).sum(1)
    disagreement = float(visits @ np.abs(good - own).sum(1)) / 2
    span = float(np.ptp(table[mdp.allowed]))
    gap = float(first @ (values_of(mdp, table, good) - values_of(mdp, table, own)))
    return Bound(gap, span * disagreement / (1 - mdp.discount) ** 2)


@checked
def positive_negative_cloning(
    mdp: MDP,
    positive_counts: ArrayLike,
    negative_counts: ArrayLike,
    *,
    penalty: float | None = None,
) -> Float[np.ndarray, "state action"]:
    r"""Return the policy that does what was approved of, and not what was disapproved of.

    It minimises

    .. math:: \sum_{s, a} [n^-(s, a) - n^+(s, a)] \log \pi(a \mid s) + \frac{\kappa}{2}
              \sum_{s, a} z(s, a)^2, \qquad \pi(a \mid s) \propto e^{z(s, a)}

    Parameters
    ----------
    mdp : MDP
    positive_counts, negative_counts : array (state, action)
        How often each action was done in demonstrations to follow, and in those not to.
    penalty : float, optional
        :math:`\kappa`, above 0: the precision of a normal prior on the log-odds.

    Returns
    -------
    numpy.ndarray (state, action)

    Raises
    ------
    DataError, SettingError
        When counts have another shape or an entry that is negative or not allowed; or without a
        penalty where an action was disapproved of more often than approved.

    Notes
    -----
    Without the penalty this is equation 69 of Nalisnick (2024), which is unbounded below: the
    probability of such an action goes to 0, its logarithm to minus infinity, and the objective with
    it, whatever is done to the other states. A likelihood of comparisons, as of DPO, is bounded.

    Examples
    --------
    >>> import raters as rt
    >>> one = rt.MDP.from_arrays([[[1], [1], [1]]])
    >>> print(positive_negative_cloning(one, [[6, 2, 0]], [[0, 2, 4]], penalty=1.0).round(2))
    [[0.98 0.02 0.  ]]
    """
    approved = as_table(mdp, "positive_counts", positive_counts)
    disapproved = as_table(mdp, "negative_counts", negative_counts)
    weight = approved - disapproved
    if penalty is None:
        _check_bounded(mdp, weight)
        return clone(mdp, np.maximum(weight, 0.0), pseudo_counts=0.0)
    positive("penalty", penalty)
    allowed = mdp.allowed

    def objective(flat: Float[np.ndarray, " entry"]) -> tuple[float, Float[np.ndarray, " entry"]]:
        logits = np.where(allowed, 0.0, -np.inf)
        logits[allowed] = flat
        log_probs = log_softmax(logits, 1)
        slope = weight.sum(1, keepdims=True) * np.exp(log_probs) - weight + penalty * logits
        value = -(weight[allowed] @ log_probs[allowed]) + penalty / 2 * flat @ flat
        return float(value), slope[allowed]

    options = {"gtol": 1e-10, "ftol": 1e-15, "maxiter": 10_000}
    found = minimize(
        objective, np.zeros(allowed.sum()), jac=True, method="L-BFGS-B", options=options
    )
    logits = np.where(allowed, 0.0, -np.inf)
    logits[allowed] = found.x
    return np.asarray(np.exp(log_softmax(logits, 1)))


def _check_bounded(mdp: MDP, weight: Float[np.ndarray, "state action"]) -> None:
    """Raise where an action is disapproved of more often than approved, and is not the only one."""
    choice = mdp.allowed.sum(1, keepdims=True) > 1
    if (worse := (weight < 0) & choice).any():
        state, action = np.argwhere(worse)[0]
        raise SettingError(
            parameter="penalty",
            value=None,
            problem="is left out, and the objective is unbounded below: action"
            f" {mdp.actions[action]!r} in state {mdp.states[state]!r} was disapproved of more often"
            " than approved",
            expected="give the precision of a normal prior on the log-odds",
            instead="penalty=1.0",
        )

"""Returns, values and advantages, exactly by linear equations."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from raters.errors import DataError, SettingError
from raters.errors.validation import checked, is_number
from raters.imitation._checks import as_policy, as_reward, check_ending, finite_numbers
from raters.judgements import MDP


def uniform_policy(mdp: MDP) -> Float[np.ndarray, "state action"]:
    """Return the policy that does each allowed action alike.

    Parameters
    ----------
    mdp : MDP

    Returns
    -------
    numpy.ndarray (state, action)

    Examples
    --------
    >>> import raters as rt
    >>> print(uniform_policy(rt.MDP.grid(1, 2))[0])
    [0.25 0.25 0.25 0.25]
    """
    return np.asarray(mdp.allowed / mdp.allowed.sum(1, keepdims=True))


@checked
def returns(rewards: ArrayLike, discount: float) -> Float[np.ndarray, "*batch step"]:
    r"""Return what is had from each step on, :math:`G_t = \sum_{t' \ge 0} \gamma^{t'} r_{t + t'}`.

    Parameters
    ----------
    rewards : array (..., step)
    discount : float
        :math:`\gamma`, from 0 to 1.

    Returns
    -------
    numpy.ndarray (..., step)

    Raises
    ------
    DataError, SettingError
        When a reward is not finite, or the discount not from 0 to 1.

    Notes
    -----
    Section 1.3 of Nalisnick (2024) sums from :math:`t' = 0`, and its equation 61 and proposition
    3.1 from 1; the bound :math:`1 / (1 - \gamma)` of the latter holds for sums from 0.

    Examples
    --------
    >>> print(returns([1, 1, 4], 0.5))
    [2.5 3.  4. ]
    """
    values = finite_numbers("rewards", rewards)
    if values.ndim == 0:
        raise DataError(
            parameter="rewards", problem="is one number", expected="give one for each step"
        )
    if not is_number(discount) or not 0 <= discount <= 1:
        raise SettingError(parameter="discount", value=discount, expected="it must be from 0 to 1")
    total = np.zeros_like(values)
    later = np.zeros(values.shape[:-1])
    for step in reversed(range(values.shape[-1])):
        later = total[..., step] = values[..., step] + discount * later
    return total


@checked
def state_values(mdp: MDP, reward: ArrayLike, policy: ArrayLike) -> Float[np.ndarray, " state"]:
    r"""Return the values of the states under a policy.

    .. math:: V^\pi(s) = \sum_a \pi(a \mid s) \left[ r(s, a) + \gamma \sum_{s'} P(s' \mid s, a)
              V^\pi(s') \right],

    solved as linear equations. With a discount of 1 the value of an end is 0.

    Parameters
    ----------
    mdp : MDP
    reward : array (state, action) or (feature,)
        A table, or weights of the features.
    policy : array (state, action)
        Probabilities of the actions in each state.

    Returns
    -------
    numpy.ndarray (state,)
        In units of reward.

    Raises
    ------
    DataError
        When shapes disagree, `policy` is none, or it never gets to an end where nothing is
        discounted.

    Examples
    --------
    >>> import raters as rt
    >>> mdp = rt.MDP.grid(1, 3, slip=0, ends=[(0, 2)], discount=0.5)
    >>> print(state_values(mdp, [0, 0, 8], uniform_policy(mdp)).round(2))
    [0.28 1.38 8.   0.  ]
    """
    return values_of(mdp, as_reward(mdp, reward), as_policy(mdp, policy))


@checked
def action_values(
    mdp: MDP, reward: ArrayLike, policy: ArrayLike
) -> Float[np.ndarray, "state action"]:
    r"""Return the values of the actions under a policy.

    .. math:: Q^\pi(s, a) = r(s, a) + \gamma \sum_{s'} P(s' \mid s, a) V^\pi(s')

    Parameters
    ----------
    mdp, reward, policy
        As of `state_values`.

    Returns
    -------
    numpy.ndarray (state, action)
        In units of reward; minus infinity for actions that are not allowed.

    Raises
    ------
    DataError
        As `state_values`.

    Examples
    --------
    >>> import raters as rt
    >>> mdp = rt.MDP.grid(1, 3, slip=0, ends=[(0, 2)], discount=0.5)
    >>> print(action_values(mdp, [0, 0, 8], uniform_policy(mdp))[0].round(2))  # of four moves
    [0.14 0.69 0.14 0.14]
    """
    table = as_reward(mdp, reward)
    values = backed_up(mdp, table, values_of(mdp, table, as_policy(mdp, policy)))
    return np.where(mdp.allowed, values, -np.inf)


@checked
def advantage(mdp: MDP, reward: ArrayLike, policy: ArrayLike) -> Float[np.ndarray, "state action"]:
    r"""Return what an action adds to the value of its state, :math:`A^\pi = Q^\pi - V^\pi`.

    Parameters
    ----------
    mdp, reward, policy
        As of `state_values`.

    Returns
    -------
    numpy.ndarray (state, action)
        In units of reward; minus infinity for actions that are not allowed.

    Raises
    ------
    DataError
        As `state_values`.

    Examples
    --------
    >>> import raters as rt
    >>> mdp = rt.MDP.grid(1, 3, slip=0, ends=[(0, 2)], discount=0.5)
    >>> print(advantage(mdp, [0, 0, 8], uniform_policy(mdp))[0].round(2))
    [-0.14  0.41 -0.14 -0.14]
    """
    table = as_reward(mdp, reward)
    values = values_of(mdp, table, as_policy(mdp, policy))
    gain = backed_up(mdp, table, values) - values[:, None]
    return np.where(mdp.allowed, gain, -np.inf)


@checked
def performance_difference(
    mdp: MDP, reward: ArrayLike, policy: ArrayLike, other: ArrayLike
) -> Float[np.ndarray, " state"]:
    r"""Return how much more another policy is worth, by the performance-difference lemma.

    .. math:: V^{\pi'}(s) - V^\pi(s) = \frac{1}{1 - \gamma} \sum_{s'} d_s^{\pi'}(s') \sum_a
              \pi'(a \mid s') A^\pi(s', a)

    (Kakade and Langford 2002, lemma 6.1).

    Parameters
    ----------
    mdp, reward, policy
        As of `state_values`.
    other : array (state, action)
        The policy :math:`\pi'`.

    Returns
    -------
    numpy.ndarray (state,)
        In units of reward.

    Raises
    ------
    DataError
        As `state_values`.

    Notes
    -----
    :math:`d_s^{\pi'}` is the discounted occupancy of a walk that begins in :math:`s`.
    Equation 14 of Nalisnick (2024) says stationary distribution, with which it is false.

    Examples
    --------
    >>> import numpy as np
    >>> import raters as rt
    >>> mdp = rt.MDP.grid(2, 2)
    >>> up = np.eye(4)[[0, 0, 0, 0]]
    >>> gain = performance_difference(mdp, [1, 0, 0, 0], uniform_policy(mdp), up)
    >>> print((gain - state_values(mdp, [1, 0, 0, 0], up)
    ...        + state_values(mdp, [1, 0, 0, 0], uniform_policy(mdp))).round(9) + 0)
    [0. 0. 0. 0.]
    """
    table = as_reward(mdp, reward)
    values = values_of(mdp, table, as_policy(mdp, policy))
    gain = backed_up(mdp, table, values) - values[:, None]
    return values_of(mdp, gain, as_policy(mdp, other, "other"))


# ---------------------------------------------------------------- without checks


def backed_up(
    mdp: MDP, reward: Float[np.ndarray, "state action"], values: Float[np.ndarray, " state"]
) -> Float[np.ndarray, "state action"]:
    """Reward of an action, and the discounted value of where it leads."""
    return np.asarray(reward + mdp.discount * (mdp.transition @ values))


def walk(
    mdp: MDP, policy: Float[np.ndarray, "state action"]
) -> Float[np.ndarray, "state next_state"]:
    """One less the discounted probabilities of the next state; as one where a walk has ended."""
    check_ending(mdp, policy)
    matrix = np.eye(mdp.num_states) - mdp.discount * np.einsum("sa,sat->st", policy, mdp.transition)
    if mdp.discount == 1:
        matrix[mdp.ends] = np.eye(mdp.num_states)[mdp.ends]
    return np.asarray(matrix)


def values_of(
    mdp: MDP, reward: Float[np.ndarray, "state action"], policy: Float[np.ndarray, "state action"]
) -> Float[np.ndarray, " state"]:
    """Values of the states under a policy."""
    gain = (policy * reward).sum(1)
    if mdp.discount == 1:
        gain = np.where(mdp.ends, 0.0, gain)
    return np.linalg.solve(walk(mdp, policy), gain)

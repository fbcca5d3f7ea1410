"""Policies that are optimal for a reward, with and without a price of certainty."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike
from scipy.special import entr, logsumexp, softmax

from raters.errors import DataError
from raters.errors.validation import checked, positive
from raters.imitation._checks import as_reward
from raters.imitation.values import backed_up, uniform_policy, values_of
from raters.judgements import MDP

# Actions whose values differ by less, relative to the largest, are tied.
_TIE = 1e-10
# Relative error of values below which one that grows is of rounding.
_ROUNDING = 1e-8
# Rounds of policy iteration. Each takes off digits as Newton's method does.
_MOST = 1000


class Plan(NamedTuple):
    """A policy, and what it is worth.

    Attributes
    ----------
    policy : numpy.ndarray (state, action)
        Probabilities of the actions in each state.
    state_values : numpy.ndarray (state,)
        Of `soft_policy` with the entropy that is still to come, in units of reward.
    action_values : numpy.ndarray (state, action)
        Minus infinity for actions that are not allowed.
    """

    policy: Float[np.ndarray, "state action"]
    state_values: Float[np.ndarray, " state"]
    action_values: Float[np.ndarray, "state action"]


@checked
def optimal_policy(mdp: MDP, reward: ArrayLike) -> Plan:
    r"""Find a policy of which no other is better in any state, by policy iteration (Howard 1960).

    Parameters
    ----------
    mdp : MDP
    reward : array (state, action) or (feature,)
        A table, or weights of the features.

    Returns
    -------
    Plan
        The policy is deterministic. Where nothing is discounted it is the best of those that end
        with probability 1.

    Raises
    ------
    DataError
        When shapes disagree, or to walk in a circle for ever pays, where nothing is discounted.

    Examples
    --------
    >>> import raters as rt
    >>> mdp = rt.MDP.grid(1, 3, slip=0, ends=[(0, 2)], discount=0.5)
    >>> plan = optimal_policy(mdp, [0, 0, 8])
    >>> print(plan.policy.argmax(1), plan.state_values)
    [1 1 0 0] [2. 4. 8. 0.]
    """
    table = as_reward(mdp, reward)
    policy = uniform_policy(mdp)
    for _ in range(_MOST):
        values = _valued(mdp, table, policy)
        gain = np.where(mdp.allowed, backed_up(mdp, table, values), -np.inf)
        tie = _TIE * max(1.0, float(np.abs(values).max()))
        # Where nothing is better, what was done stays: a policy that ends is followed by one that
        # ends, unless to walk in a circle pays.
        better = gain.max(1) > values + tie
        if not better.any():
            best = gain >= gain.max(1, keepdims=True) - tie
            chosen = best.argmax(1) if mdp.discount < 1 else _ending(mdp, best)
            return Plan(np.eye(mdp.num_actions)[chosen], values, gain)
        policy = np.where(better[:, None], np.eye(mdp.num_actions)[gain.argmax(1)], policy)
    raise _endless("improves for ever")


def _ending(mdp: MDP, best: Bool[np.ndarray, "state action"]) -> Int[np.ndarray, " state"]:
    """Of the best actions one in each state, such that an end is reached."""
    reached = mdp.ends.copy()
    chosen = best.argmax(1)
    while not reached.all():
        towards = best & (mdp.transition[:, :, reached].sum(-1) > 0)
        new = towards.any(1) & ~reached
        if not new.any():
            raise _endless("is as large in a circle that never ends")
        chosen = np.where(new, towards.argmax(1), chosen)
        reached |= new
    return np.asarray(chosen)


@checked
def soft_policy(
    mdp: MDP, reward: ArrayLike, *, temperature: float = 1.0, tolerance: float = 1e-10
) -> Plan:
    r"""Find the policy that maximises reward and entropy.

    It maximises the expected discounted sum of :math:`r(s_t, a_t) + \lambda
    H[\pi(\cdot \mid s_t)]`, and fulfils

    .. math:: \pi(a \mid s) &= \exp\{ (Q(s, a) - V(s)) / \lambda \}, \\
              Q(s, a) &= r(s, a) + \gamma \sum_{s'} P(s' \mid s, a) V(s'), \qquad
              V(s) = \lambda \log \sum_a \exp\{ Q(s, a) / \lambda \}

    Parameters
    ----------
    mdp : MDP
    reward : array (state, action) or (feature,)
        A table, or weights of the features.
    temperature : float
        Price :math:`\lambda` of entropy, in units of reward per nat. The rationality of a
        demonstrator is its inverse.
    tolerance : float
        Largest error of the equation of :math:`V`, relative to the largest value.

    Returns
    -------
    Plan

    Raises
    ------
    DataError, SettingError
        When shapes disagree, the temperature is not above 0, or nothing is discounted and the
        reward of some circle does not outweigh the entropy of walking in it for ever.

    Notes
    -----
    Equations 12 and 13 of Nalisnick (2024) have the second equality with the value of its
    definition, :math:`V = \mathbb{E}_\pi[Q]`; then the probabilities do not add up to 1. The soft
    value :math:`V = \mathbb{E}_\pi[Q] + \lambda H` is needed.

    Each round solves linear equations for the values of a policy and then makes the next one from
    them, which is Newton's method on the equation of :math:`V`: a handful of rounds, where value
    iteration takes :math:`\log \epsilon / \log \gamma`.

    Examples
    --------
    >>> import raters as rt
    >>> mdp = rt.MDP.grid(1, 3, slip=0, ends=[(0, 2)], discount=0.5)
    >>> plan = soft_policy(mdp, [0, 0, 8], temperature=2.0)
    >>> print(plan.policy[1].round(2), plan.state_values.round(2))
    [0.18 0.49 0.18 0.14] [ 5.82  6.8  10.77  0.  ]
    """
    positive("temperature", temperature)
    positive("tolerance", tolerance)
    return soft_plan(mdp, as_reward(mdp, reward), float(temperature), float(tolerance))


def soft_plan(
    mdp: MDP,
    reward: Float[np.ndarray, "state action"],
    temperature: float = 1.0,
    tolerance: float = 1e-10,
    values: Float[np.ndarray, " state"] | None = None,
) -> Plan:
    """The soft-optimal policy, from values that may be near already."""
    policy = uniform_policy(mdp)
    if values is not None:
        policy = _softened(mdp, reward, values, temperature)[0]
    before = np.inf
    for _ in range(_MOST):
        values = _valued(mdp, reward, policy, temperature * entr(policy).sum(1))
        policy, after, gain = _softened(mdp, reward, values, temperature)
        error = np.abs(after - values).max() / max(1.0, float(np.abs(values).max()))
        # The error falls quadratically, until rounding stops it.
        if error <= tolerance or before <= error <= _ROUNDING:
            return Plan(policy, after, gain)
        before = error
    raise _endless("grows for ever with the entropy")


def _softened(
    mdp: MDP,
    reward: Float[np.ndarray, "state action"],
    values: Float[np.ndarray, " state"],
    temperature: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Policy, values and values of actions from values of the next states."""
    gain = np.where(mdp.allowed, backed_up(mdp, reward, values), -np.inf)
    after = temperature * logsumexp(gain / temperature, axis=1)
    if mdp.discount == 1:  # What is had in an end counts for nothing, as in `state_values`.
        after = np.where(mdp.ends, 0.0, after)
    return softmax(gain / temperature, axis=1), after, gain


def _valued(
    mdp: MDP,
    reward: Float[np.ndarray, "state action"],
    policy: Float[np.ndarray, "state action"],
    more: Float[np.ndarray, " state"] | float = 0.0,
) -> Float[np.ndarray, " state"]:
    """Values of a policy with what is had in a state in addition; refused where they are none."""
    try:
        values = values_of(mdp, reward + np.reshape(more, (-1, 1)), policy)
    except (DataError, np.linalg.LinAlgError) as error:
        raise _endless("is larger in a circle that never ends") from error
    if not np.isfinite(values).all() or np.abs(values).max() > 1e12:
        raise _endless("grows for ever")
    return values


def _endless(problem: str) -> DataError:
    return DataError(
        parameter="reward",
        problem=f"{problem}, so that no policy is optimal",
        expected="with a discount of 1 each round of a circle must cost more than the entropy that"
        " it brings; lower the rewards, or discount them",
        instead="dataclasses.replace(mdp, discount=0.95)",
    )

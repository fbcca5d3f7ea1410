"""Policies that are optimal for a reward, with and without a price of certainty."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike
from scipy.special import entr, logsumexp, softmax

from raters.errors import DataError, refuse
from raters.errors.validation import checked, is_number
from raters.imitation._checks import as_reward
from raters.imitation.values import PerAction, PerState, backed_up, uniform_policy, values_of
from raters.judgements import MDP

# Actions whose values differ by less, relative to the largest, are tied.
_TIE = 1e-10
# Relative errors of values: that to stop at, and below which one that grows is of rounding.
_EXACT, _ROUNDING = 1e-12, 1e-8
# Rounds of policy iteration. Each takes off digits as Newton's method does.
_MOST = 1000


class Plan(NamedTuple):
    """A policy, and the values of states and actions."""

    policy: Float[np.ndarray, "state action"]
    state_values: Float[np.ndarray, " state"]
    action_values: Float[np.ndarray, "state action"]


@checked
def optimal_policy(mdp: MDP, reward: ArrayLike, *, temperature: float = 0.0) -> Plan:
    r"""Find the policy that maximises reward, or reward and entropy.

    It maximises the expected discounted sum of :math:`r(s_t, a_t) + \lambda
    H[\pi(\cdot \mid s_t)]`, and fulfils for :math:`\lambda > 0`

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
        demonstrator is its inverse. With 0 the policy is deterministic, by policy iteration (Howard
        1960).

    Returns
    -------
    Plan
        ``policy`` (state, action); ``state_values`` (state,) in units of reward, with the entropy
        that is still to come; and ``action_values`` (state, action), minus infinity for actions
        that are not allowed. Where nothing is discounted, of the policies that end with
        probability 1.

    Notes
    -----
    Equations 12 and 13 of Nalisnick (2024) have :math:`V = \mathbb{E}_\pi[Q]`, with which the
    probabilities do not add up to 1; :math:`V = \mathbb{E}_\pi[Q] + \lambda H` is needed.

    Examples
    --------
    >>> import raters as rt
    >>> mdp = rt.MDP.grid(1, 3, slip=0, ends=[(0, 2)], discount=0.5)
    >>> plan = optimal_policy(mdp, [0, 0, 8])
    >>> print(plan.policy.argmax(1), plan.state_values)
    [1 1 0 0] [2. 4. 8. 0.]
    >>> print(optimal_policy(mdp, [0, 0, 8], temperature=2.0).policy[1].round(2))
    [0.18 0.49 0.18 0.14]
    """
    if not is_number(temperature) or temperature < 0:
        refuse("temperature", temperature, expected="it must be a number of at least 0")
    table = as_reward(mdp, reward)
    return soft_plan(mdp, table, float(temperature)) if temperature else _hard_plan(mdp, table)


def _hard_plan(mdp: MDP, reward: PerAction) -> Plan:
    """Policy iteration."""
    policy = uniform_policy(mdp)
    for _ in range(_MOST):
        values = _valued(mdp, reward, policy)
        gain = np.where(mdp.allowed, backed_up(mdp, reward, values), -np.inf)
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


def soft_plan(mdp: MDP, reward: PerAction, temperature: float = 1.0) -> Plan:
    """The soft-optimal policy, by Newton's method on the equation of V: each round solves linear
    equations for the values of a policy."""
    policy, before = uniform_policy(mdp), np.inf
    for _ in range(_MOST):
        values = _valued(mdp, reward + temperature * entr(policy).sum(1, keepdims=True), policy)
        gain = np.where(mdp.allowed, backed_up(mdp, reward, values), -np.inf)
        after = temperature * logsumexp(gain / temperature, axis=1)
        if mdp.discount == 1:  # What is had in an end counts for nothing, as in `values_of`.
            after = np.where(mdp.ends, 0.0, after)
        plan = Plan(softmax(gain / temperature, axis=1), after, gain)
        error = np.abs(after - values).max() / max(1.0, float(np.abs(values).max()))
        # The error falls quadratically, until rounding stops it.
        if error <= _EXACT or before <= error <= _ROUNDING:
            return plan
        before, policy = error, plan.policy
    raise _endless("grows for ever with the entropy")


def _valued(mdp: MDP, reward: PerAction, policy: PerAction) -> PerState:
    """Values of a policy; refused where they are none."""
    try:
        values = values_of(mdp, reward, policy)
    except (DataError, np.linalg.LinAlgError) as error:
        raise _endless("is larger in a circle that never ends") from error
    if not np.isfinite(values).all() or np.abs(values).max() > 1e12:
        raise _endless("grows for ever")
    return values


def _endless(problem: str) -> DataError:
    expected = "discount, or let each round of a circle cost more than its entropy brings"
    such = "dataclasses.replace(mdp, discount=0.95)"
    return DataError(parameter="reward", problem=problem, expected=expected, instead=such)

"""Walks of a policy, and occupancies of policies and of demonstrations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from raters.errors import refuse_data
from raters.errors.validation import checked, numbers, whole
from raters.imitation._checks import as_policy, check_entries
from raters.imitation.values import PerAction, PerState, uniform_policy, visits_of
from raters.judgements import MDP
from raters.judgements.demonstrations import drawn, walked


class Rollout(NamedTuple):
    """States and actions of some episodes, as codes.

    Attributes
    ----------
    states : numpy.ndarray (episode, step)
        State before each action, −1 after the last step of an episode.
    actions : numpy.ndarray (episode, step)
        The action, −1 after the last step of an episode, as where an end is reached.
    """

    states: Int[np.ndarray, "episode step"]
    actions: Int[np.ndarray, "episode step"]


@checked
def rollout(mdp: MDP, policy: ArrayLike, *, episodes: int, steps: int, seed: int) -> Rollout:
    """Draw episodes under a policy.

    Parameters
    ----------
    mdp : MDP
    policy : array (state, action)
    episodes : int
    steps : int
        Number of actions of an episode at most. It ends earlier in a state that every action keeps.
    seed : int

    Returns
    -------
    Rollout
        ``states`` and ``actions`` (episode, step), as codes; −1 after the last step.

    Examples
    --------
    >>> import raters as rt
    >>> mdp = rt.MDP.grid(1, 3, slip=0, ends=[(0, 2)], start=(0, 0))
    >>> right = [[0, 1, 0, 0]] * 3 + [[1, 0, 0, 0]]
    >>> rollout(mdp, right, episodes=1, steps=5, seed=0).states.tolist()
    [[0, 1, 2, -1, -1]]
    """
    whole("episodes", episodes)
    whole("steps", steps)
    probs = as_policy(mdp, policy)
    rng = np.random.default_rng(seed)
    first = drawn(rng, np.tile(np.asarray(mdp.start), (episodes, 1)))
    policies = np.broadcast_to(probs, (episodes, *probs.shape))
    return Rollout(*walked(rng, mdp, policies, first, steps))


@checked
def occupancy(mdp: MDP, of: ArrayLike | Rollout) -> Float[np.ndarray, "state action"]:
    r"""Return the expected discounted number of times that each action is done in each state.

    .. math:: \rho^\pi(s, a) = \sum_{t \ge 0} \gamma^t P(s_t = s, a_t = a)

    Feature expectations are ``np.tensordot(occupancy, mdp.features)``.

    Parameters
    ----------
    mdp : MDP
    of : array (state, action) or Rollout
        A policy; or demonstrations, for the mean over episodes.

    Returns
    -------
    numpy.ndarray (state, action)
        A walk goes on for ever, or to an end where nothing is discounted, whose own occupancy is
        then 0. So an episode that got to an end stays there, in proportion to the probabilities of
        the ends that its last action may lead to. Episodes that are cut before they end lack a
        part; one that stops before the last column counts as ended if its last action may lead to
        an end.

    Examples
    --------
    >>> import raters as rt
    >>> mdp = rt.MDP.grid(1, 3, slip=0, ends=[(0, 2)], start=(0, 0), discount=0.5)
    >>> right = [[0, 1, 0, 0]] * 3 + [[1, 0, 0, 0]]
    >>> print(occupancy(mdp, right).sum(1))
    [1.   0.5  0.25 0.25]
    >>> print(occupancy(mdp, rollout(mdp, right, episodes=2, steps=9, seed=0)).sum(1))
    [1.   0.5  0.25 0.25]
    """
    if not isinstance(of, Rollout):
        return visits_of(mdp, as_policy(mdp, of))
    done = sums_of(mdp, of, mdp.discount)
    if mdp.discount < 1:
        done = done + _stay(mdp, of)[:, None] * uniform_policy(mdp)
    return done / len(of.states)


def _stay(mdp: MDP, rollout: Rollout) -> PerState:
    """Sums over episodes of the discounted times in the ends that they got to."""
    states, actions = (np.asarray(codes).astype(int) for codes in rollout)
    done = (states >= 0) & (actions >= 0)
    length = done.sum(1)
    rows, last = np.arange(len(states)), np.maximum(length - 1, 0)
    after = mdp.transition[np.maximum(states[rows, last], 0), np.maximum(actions[rows, last], 0)]
    after = np.where((length > 0)[:, None], after, np.asarray(mdp.start)) * mdp.ends
    total = after.sum(1, keepdims=True)
    stopped = (length < done.shape[1])[:, None]
    chance = np.where(stopped, after / np.where(total > 0, total, 1.0), after)
    weight = mdp.discount**length / (1 - mdp.discount)
    return np.asarray(weight @ chance)


def sums_of(mdp: MDP, rollout: Rollout, discount: float = 1.0) -> PerAction:
    """Discounted numbers of times of each action in each state, summed over episodes."""
    states, actions = (numbers("rollout", codes) for codes in rollout)
    codes = np.array([states, actions]) if states.shape == actions.shape else states
    most = np.reshape(mdp.allowed.shape, (2, 1, 1))
    wrong = codes.ndim != 3 or not codes.size
    if wrong or ((codes != np.round(codes)) | (codes < -1) | (codes >= most)).any():
        problem = f"has states of shape {states.shape} and actions of shape {actions.shape}"
        expected = "give codes (episode, step) of each action and the state before it, or -1"
        such = "Rollout(states[:, :-1], actions) with the last states left out"
        refuse_data("rollout", problem=problem, expected=expected, instead=such)
    done = (codes >= 0).all(0)
    table = np.zeros(mdp.allowed.shape)
    weights = np.broadcast_to(discount ** np.arange(states.shape[1]), states.shape)
    np.add.at(table, tuple(codes[:, done].astype(int)), weights[done])
    check_entries(mdp, "rollout", table, (table > 0) & ~mdp.allowed)
    return table

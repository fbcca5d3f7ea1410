"""Walks of a policy, and the counts and occupancies of demonstrations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from raters.errors import DataError
from raters.errors.validation import checked, numbers, whole
from raters.imitation._checks import as_policy, as_start
from raters.imitation.values import uniform_policy
from raters.judgements import MDP


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
def rollout(
    mdp: MDP,
    policy: ArrayLike,
    *,
    episodes: int,
    steps: int,
    seed: int,
    start: ArrayLike | None = None,
) -> Rollout:
    """Draw episodes under a policy.

    Parameters
    ----------
    mdp : MDP
    policy : array (state, action)
    episodes : int
    steps : int
        Number of actions of an episode at most. It ends earlier in a state that every action keeps,
        where nothing is done.
    seed : int
    start : int or array (state,), optional
        Code of the first state, or probabilities of it; by default those of the process.

    Returns
    -------
    Rollout

    Raises
    ------
    DataError, SettingError
        When `policy` is none, `start` is no state and no probabilities, or a number is below 1.

    Examples
    --------
    >>> import raters as rt
    >>> mdp = rt.MDP.grid(1, 3, slip=0, ends=[(0, 2)])
    >>> right = [[0, 1, 0, 0]] * 3 + [[1, 0, 0, 0]]
    >>> rollout(mdp, right, episodes=1, steps=5, seed=0, start=0).states.tolist()
    [[0, 1, 2, -1, -1]]
    """
    whole("episodes", episodes)
    whole("steps", steps)
    probs, first = as_policy(mdp, policy), as_start(mdp, start)
    rng = np.random.default_rng(seed)
    states = np.full((episodes, steps), -1)
    actions = np.full((episodes, steps), -1)
    ends = mdp.ends
    here = _drawn(np.broadcast_to(first, (episodes, len(first))), rng)
    going = ~ends[here]
    for step in range(steps):
        who = np.flatnonzero(going)
        states[who, step] = here[who]
        actions[who, step] = _drawn(probs[here[who]], rng)
        here[who] = _drawn(mdp.transition[here[who], actions[who, step]], rng)
        going &= ~ends[here]
    return Rollout(states, actions)


def _drawn(
    probs: Float[np.ndarray, "row outcome"], rng: np.random.Generator
) -> Int[np.ndarray, " row"]:
    """One outcome of each row."""
    total = np.cumsum(probs, 1)
    # Below the sum, which rounding leaves a little off 1, so that the last outcome is possible.
    point = rng.random((len(probs), 1)) * total[:, -1:]
    return np.asarray((total <= point).sum(1))


@checked
def action_counts(mdp: MDP, rollout: Rollout) -> Float[np.ndarray, "state action"]:
    """Count how often each action was done in each state.

    Parameters
    ----------
    mdp : MDP
    rollout : Rollout
        From `rollout`, or made of arrays of codes.

    Returns
    -------
    numpy.ndarray (state, action)

    Raises
    ------
    DataError
        When codes are none of the process's, or an action was not allowed.

    Examples
    --------
    >>> import numpy as np
    >>> import raters as rt
    >>> walks = Rollout(np.array([[0, 1], [0, -1]]), np.array([[1, 1], [3, -1]]))
    >>> print(action_counts(rt.MDP.grid(1, 2), walks))
    [[0. 1. 0. 1.]
     [0. 1. 0. 0.]]
    """
    return _weighed(mdp, rollout, np.ones(np.shape(rollout.states)[-1:]))


@checked
def empirical_occupancy(mdp: MDP, rollout: Rollout) -> Float[np.ndarray, "state action"]:
    r"""Return the mean over episodes of the discounted numbers of times that each action was done.

    .. math:: \hat\rho(s, a) = \frac{1}{N} \sum_n \sum_{t \ge 0} \gamma^t
              \mathbb{1}[s_{nt} = s, a_{nt} = a]

    Parameters
    ----------
    mdp : MDP
    rollout : Rollout
        From `rollout`, or made of arrays of codes.

    Returns
    -------
    numpy.ndarray (state, action)
        An episode that got to an end stays there for ever, as in `occupancy`: after :math:`T` steps
        it has :math:`\gamma^T / (1 - \gamma)` in the ends that its last action may lead to, in
        proportion to their probabilities, and alike over their actions; nothing where nothing is
        discounted. Of episodes that are cut before they end, that much is missing. One that stops
        before the last column counts as ended if its last action may lead to an end.

    Raises
    ------
    DataError
        As `action_counts`.

    Examples
    --------
    >>> import numpy as np
    >>> import raters as rt
    >>> walks = Rollout(np.array([[0, 1], [0, -1]]), np.array([[1, 1], [3, -1]]))
    >>> print(empirical_occupancy(rt.MDP.grid(1, 2, discount=0.5), walks))
    [[0.   0.5  0.   0.5 ]
     [0.   0.25 0.   0.  ]]
    """
    steps = np.arange(np.shape(rollout.states)[-1] if np.ndim(rollout.states) else 0)
    done = _weighed(mdp, rollout, mdp.discount**steps)
    if mdp.discount < 1:
        done = done + _stay(mdp, rollout)[:, None] * uniform_policy(mdp)
    return done / len(rollout.states)


def _stay(mdp: MDP, rollout: Rollout) -> Float[np.ndarray, " state"]:
    """Sums over episodes of the discounted times in the ends that they got to."""
    states, actions = (np.asarray(one).astype(int) for one in rollout)
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


def _weighed(
    mdp: MDP, rollout: Rollout, weights: Float[np.ndarray, " step"]
) -> Float[np.ndarray, "state action"]:
    """Sums over episodes of the weights of steps by state and action."""
    states, actions = (numbers(name, getattr(rollout, name)) for name in rollout._fields)
    if states.ndim != 2 or states.shape != actions.shape or not states.size:
        raise DataError(
            parameter="rollout",
            problem=f"has states of shape {states.shape} and actions of shape {actions.shape}",
            expected="both must be (episode, step), the state before each action",
            instead="Rollout(states[:, :-1], actions) with the last states left out",
        )
    for name, codes, size in (
        ("states", states, mdp.num_states),
        ("actions", actions, mdp.num_actions),
    ):
        if (wrong := (codes != np.round(codes)) | (codes < -1) | (codes >= size)).any():
            raise DataError(
                parameter="rollout",
                problem=f"has {codes[wrong][0]:g} among its {name}",
                expected=f"it must hold codes of the {size} {name}, or -1 after the last step",
            )
    done = (states >= 0) & (actions >= 0)
    table = np.zeros((mdp.num_states, mdp.num_actions))
    code = states[done].astype(int), actions[done].astype(int)
    np.add.at(table, code, np.broadcast_to(weights, states.shape)[done])
    if (outside := (table > 0) & ~mdp.allowed).any():
        state, action = np.argwhere(outside)[0]
        raise DataError(
            parameter="rollout",
            problem=f"has action {mdp.actions[action]!r} in state {mdp.states[state]!r}, where it"
            " is not allowed",
            expected="only actions that are allowed are done",
        )
    return table

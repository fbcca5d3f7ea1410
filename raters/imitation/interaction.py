"""DAgger: demonstrations asked for where the learner goes, and a cliff on which that matters."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from raters.errors import DataError
from raters.errors.validation import checked, share, whole
from raters.imitation._checks import as_policy
from raters.imitation.cloning import clone
from raters.imitation.rollouts import Rollout, action_counts, rollout
from raters.judgements import MDP

# What a demonstrator would do in some states, as codes of actions.
Asked = Callable[[Int[np.ndarray, " visit"]], Int[np.ndarray, " visit"]]


class Rounds(NamedTuple):
    """Policies of the rounds, and what was demonstrated.

    Attributes
    ----------
    policies : numpy.ndarray (1 + round, state, action)
        The first is cloned from demonstrations along the demonstrator's own way.
    counts : numpy.ndarray (1 + round, state, action)
        Demonstrations of each round; those of all rounds so far make its policy.
    """

    policies: Float[np.ndarray, "round state action"]
    counts: Float[np.ndarray, "round state action"]


@checked
def dagger(
    mdp: MDP,
    demonstrator: ArrayLike,
    *,
    rounds: int,
    episodes: int,
    steps: int,
    seed: int,
    ask: Callable[..., ArrayLike] | None = None,
    pseudo_counts: float = 1.0,
) -> Rounds:
    r"""Learn from a demonstrator who is asked what to do where the learner goes (Ross et al. 2011).

    Round 0 clones episodes of the demonstrator. Each later round walks with the policy before,
    asks for an action in each state on the way, and clones all demonstrations so far.

    Parameters
    ----------
    mdp : MDP
    demonstrator : array (state, action)
        The policy that demonstrations are drawn from.
    rounds : int
        Number of rounds after the first.
    episodes, steps : int
        Episodes of each round, and the largest number of actions of each.
    seed : int
    ask : callable, optional
        ``ask(states)`` gives what a person would do in some states, as codes of actions; by default
        it is drawn from `demonstrator`.
    pseudo_counts : float
        As of `clone`.

    Returns
    -------
    Rounds

    Raises
    ------
    DataError, SettingError
        When `demonstrator` is no policy, a number is below 1, or `ask` gives something else than an
        allowed action for each state.

    Notes
    -----
    The objective printed for one round in section 3.2 of Nalisnick (2024) has the parameters of
    the last round inside, and so none to minimise over; the policy of this round is meant.

    Examples
    --------
    >>> import raters as rt
    >>> mdp, good = cliff(depth=2)
    >>> learned = dagger(mdp, good, rounds=3, episodes=5, steps=20, seed=0)
    >>> learned.policies.shape, int(learned.counts.sum())
    ((4, 3, 3), 400)
    """
    whole("rounds", rounds)
    good = as_policy(mdp, demonstrator, "demonstrator")
    rng = np.random.default_rng(seed)
    seeds = rng.integers(2**32, size=rounds + 1).tolist()
    first = rollout(mdp, good, episodes=episodes, steps=steps, seed=seeds[0])
    counts = [action_counts(mdp, first)]
    policies = [clone(mdp, counts[0], pseudo_counts=pseudo_counts)]
    for own in seeds[1:]:
        walks = rollout(mdp, policies[-1], episodes=episodes, steps=steps, seed=own)
        counts.append(_asked(mdp, walks, good, ask, rng))
        policies.append(clone(mdp, np.sum(counts, 0), pseudo_counts=pseudo_counts))
    return Rounds(np.stack(policies), np.stack(counts))


def _asked(
    mdp: MDP,
    walks: Rollout,
    demonstrator: Float[np.ndarray, "state action"],
    ask: Callable[..., ArrayLike] | None,
    rng: np.random.Generator,
) -> Float[np.ndarray, "state action"]:
    """Counts of what the demonstrator does in the states of some walks."""
    states = walks.states[walks.states >= 0]
    if ask is None:
        visits = np.bincount(states, minlength=mdp.num_states)
        return rng.multinomial(visits, demonstrator).astype(float)
    answers = np.asarray(ask(states))
    codes = answers.astype(int) if answers.dtype.kind in "iu" else np.full(1, -1)
    if answers.shape != states.shape or not ((codes >= 0) & (codes < mdp.num_actions)).all():
        raise DataError(
            parameter="ask",
            problem=f"gave {answers.dtype} of shape {answers.shape}",
            expected=f"it must give a code below {mdp.num_actions} for each of the {len(states)}"
            " states",
            instead="ask=lambda states: actions[states]",
        )
    return action_counts(mdp, Rollout(states[None], codes[None]))


@checked
def cliff(
    *, depth: int = 6, num_actions: int = 3, discount: float = 0.95
) -> tuple[MDP, Float[np.ndarray, "state action"]]:
    r"""Make a process in which one mistake costs all that is to come, and its best policy.

    On the road the right action stays on it, and any other falls off it, one step down. Below, the
    right action, which is another one at each depth, climbs one step; any other falls one more. The
    reward is 1 on the road and 0 below (feature ``"on the road"``).

    A good demonstrator is never below, so cloning does not learn to climb. With :math:`\epsilon`
    for the probability of a mistake and the horizon :math:`H = 1 / (1 - \gamma)` the clone falls
    after some :math:`1 / \epsilon` steps and never comes back: it loses some
    :math:`\epsilon H^2` while that is small. Who was asked below climbs back, and loses some
    :math:`\epsilon H`.

    Parameters
    ----------
    depth : int
        Number of states below the road. Who does anything there comes back after some
        :math:`(A - 1)^\text{depth}` steps, with :math:`A` actions.
    num_actions : int
        At least 3, so that who does anything falls more often than they climb.
    discount : float
        Between 0 and 1.

    Returns
    -------
    mdp : MDP
    policy : numpy.ndarray (state, action)
        The best one.

    Raises
    ------
    SettingError
        When a setting is not possible.

    Examples
    --------
    >>> mdp, best = cliff(depth=2)
    >>> mdp.states, best.argmax(1)
    (('road', 'depth 1', 'depth 2'), array([0, 1, 2]))
    """
    whole("depth", depth)
    whole("num_actions", num_actions, 3)
    share("discount", discount)
    size = depth + 1
    right = np.arange(size) % num_actions
    transition = np.zeros((size, num_actions, size))
    for level in range(size):
        transition[level, :, min(level + 1, depth)] = 1.0
        transition[level, right[level]] = np.eye(size)[max(level - 1, 0)]
    names = ["road", *(f"depth {level}" for level in range(1, size))]
    start = np.eye(size)[0]
    road = start[:, None]
    mdp = MDP.from_arrays(
        transition,
        features=road,
        discount=discount,
        start=start,
        states=names,
        feature_names=["on the road"],
    )
    return mdp, np.eye(num_actions)[right]

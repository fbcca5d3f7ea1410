"""Imitation as classification of actions: behavioural cloning, its bound, and DAgger."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from raters.errors import refuse, refuse_data
from raters.errors.validation import checked, is_number, share, whole
from raters.imitation._checks import as_policy, as_reward, as_table
from raters.imitation.rollouts import Rollout, rollout, sums_of
from raters.imitation.values import PerAction, uniform_policy, values_of, visits_of
from raters.judgements import MDP


class Bound(NamedTuple):
    """A difference in units of reward, and what it cannot exceed."""

    gap: float
    bound: float


class Rounds(NamedTuple):
    """Policies of the rounds of DAgger, and what was demonstrated in each."""

    policies: Float[np.ndarray, "round state action"]
    counts: Float[np.ndarray, "round state action"]


@checked
def clone(
    mdp: MDP, demonstrations: ArrayLike | Rollout, *, pseudo_counts: float = 1.0
) -> PerAction:
    r"""Return the policy that was demonstrated, state by state.

    .. math:: \hat\pi(a \mid s) = \frac{n(s, a) + \alpha / A(s)}{\sum_{a'} n(s, a') + \alpha}

    with :math:`A(s)` allowed actions: the mean of the posterior with a Dirichlet prior. With
    :math:`\alpha = 0` it is the maximum-likelihood estimate (equations 49 and 50 of Nalisnick
    (2024) with the log loss), and of an occupancy it is the policy that has it.

    Parameters
    ----------
    mdp : MDP
    demonstrations : Rollout or array (state, action)
        Episodes; or how often each action was done in each state; or an occupancy.
    pseudo_counts : float
        :math:`\alpha`, at least 0: how many demonstrations of all actions alike the prior is worth
        in a state.

    Returns
    -------
    numpy.ndarray (state, action)
        All allowed actions alike in a state without demonstrations.

    Examples
    --------
    >>> import raters as rt
    >>> print(clone(rt.MDP.grid(1, 2), [[0, 3, 0, 0], [0, 0, 0, 0]]))
    [[0.0625 0.8125 0.0625 0.0625]
     [0.25   0.25   0.25   0.25  ]]
    """
    if not is_number(pseudo_counts) or pseudo_counts < 0:
        refuse("pseudo_counts", pseudo_counts, expected="it must be at least 0")
    if isinstance(demonstrations, Rollout):
        demonstrations = sums_of(mdp, demonstrations)
    table = as_table(mdp, "demonstrations", demonstrations) + pseudo_counts * uniform_policy(mdp)
    total = table.sum(1, keepdims=True)
    return np.where(total > 0, table / np.where(total > 0, total, 1), uniform_policy(mdp))


@checked
def cloning_bound(mdp: MDP, reward: ArrayLike, demonstrator: ArrayLike, policy: ArrayLike) -> Bound:
    r"""Return what a cloned policy loses, and the bound of it by how often the two disagree.

    .. math:: V^{\pi^*} - V^{\hat\pi} \le \frac{(r_\text{max} - r_\text{min})\, \epsilon}
              {(1 - \gamma)^2}, \qquad \epsilon = \mathbb{E}_{s \sim d(\pi^*)} \left[ \tfrac12
              \sum_a |\pi^*(a \mid s) - \hat\pi(a \mid s)| \right]

    It is proposition 3.1 of Nalisnick (2024), where rewards are from −1 to 1, so that the constant
    is 2, and both policies deterministic, so that :math:`\epsilon` is the probability that they
    disagree. :math:`d(\pi^*)` is the discounted occupancy, since the proof is by the
    performance-difference lemma; the last two lines of the printed proof are inequalities.

    Parameters
    ----------
    mdp : MDP
        With a discount below 1.
    reward : array (state, action) or (feature,)
        A table, or weights of the features.
    demonstrator, policy : array (state, action)
        The policies :math:`\pi^*` and :math:`\hat\pi`.

    Returns
    -------
    Bound
        ``gap`` and ``bound``, in units of reward.

    Examples
    --------
    >>> import raters as rt
    >>> mdp = rt.MDP.grid(1, 2, slip=0, start=(0, 0), discount=0.5)
    >>> print(cloning_bound(mdp, [0, 1], [[0, 1, 0, 0]] * 2, [[0.1, 0.9, 0, 0]] * 2))
    Bound(gap=0.0526, bound=0.4000)
    """
    if mdp.discount == 1:
        such = "dataclasses.replace(mdp, discount=0.99)"
        refuse("discount", 1.0, expected="it must be below 1", instead=such)
    table = as_reward(mdp, reward)
    good, learned = as_policy(mdp, demonstrator, "demonstrator"), as_policy(mdp, policy)
    visits = (1 - mdp.discount) * visits_of(mdp, good).sum(1)
    disagreement = float(visits @ np.abs(good - learned).sum(1)) / 2
    span = float(np.ptp(table[mdp.allowed]))
    gap = float(mdp.start @ (values_of(mdp, table, good) - values_of(mdp, table, learned)))
    return Bound(gap, span * disagreement / (1 - mdp.discount) ** 2)


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
        ``policies`` and ``counts`` (1 + round, state, action): the policy of a round, and the
        demonstrations of it; those of all rounds so far make its policy.

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
    counts = [sums_of(mdp, first)]
    policies = [clone(mdp, counts[0], pseudo_counts=pseudo_counts)]
    for walk_seed in seeds[1:]:
        walks = rollout(mdp, policies[-1], episodes=episodes, steps=steps, seed=walk_seed)
        states = walks.states[walks.states >= 0]
        if ask is None:
            visits = np.bincount(states, minlength=mdp.num_states)
            counts.append(rng.multinomial(visits, good).astype(float))
        else:
            counts.append(_answered(mdp, states, np.asarray(ask(states))))
        policies.append(clone(mdp, np.sum(counts, 0), pseudo_counts=pseudo_counts))
    return Rounds(np.stack(policies), np.stack(counts))


def _answered(mdp: MDP, states: np.ndarray, answers: np.ndarray) -> PerAction:
    """Counts of the actions that a person would do in some states."""
    possible = answers.dtype.kind in "iu" and answers.shape == states.shape
    if not possible or not ((answers >= 0) & (answers < mdp.num_actions)).all():
        problem = f"gave {answers.dtype} of shape {answers.shape}"
        expected = f"give a code below {mdp.num_actions} for each of the {len(states)} states"
        refuse_data("ask", problem=problem, expected=expected)
    return sums_of(mdp, Rollout(states[None], answers[None]))


@checked
def cliff(*, depth: int = 6, num_actions: int = 3, discount: float = 0.95) -> tuple[MDP, PerAction]:
    r"""Make a process in which one mistake costs all that is to come, and its best policy.

    On the road the right action stays on it, and any other falls off it, one step down. Below, the
    right action, which is another one at each depth, climbs one step; any other falls one more. The
    reward is 1 on the road and 0 below (feature ``"on the road"``).

    A good demonstrator is never below, so cloning does not learn to climb. With :math:`\epsilon`
    for the probability of a mistake and the horizon :math:`H = 1 / (1 - \gamma)` it loses some
    :math:`\epsilon H^2`; who was asked below climbs back, and loses some :math:`\epsilon H`.

    Parameters
    ----------
    depth : int
        Number of states below the road.
    num_actions : int
        At least 3, so that who does anything falls more often than they climb.
    discount : float
        Between 0 and 1.
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
    start = np.eye(size)[0]
    states = ["road", *(f"depth {level}" for level in range(1, size))]
    names = {"states": states, "feature_names": ["on the road"]}
    features = start[:, None]
    mdp = MDP.from_arrays(transition, features=features, discount=discount, start=start, **names)
    return mdp, np.eye(num_actions)[right]

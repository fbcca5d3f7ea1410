"""Values and occupancies of policies, exactly by linear equations. Nothing is checked here but that
walks end where nothing is discounted."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from raters.errors import refuse_data
from raters.judgements import MDP
from raters.judgements.names import shorten

PerAction = Float[np.ndarray, "state action"]
PerState = Float[np.ndarray, " state"]
PerFeature = Float[np.ndarray, " feature"]


def uniform_policy(mdp: MDP) -> PerAction:
    """Policy that does each allowed action alike."""
    return np.asarray(mdp.allowed / mdp.allowed.sum(1, keepdims=True))


def backed_up(mdp: MDP, reward: PerAction, values: PerState) -> PerAction:
    """Reward of an action, and the discounted value of where it leads."""
    return np.asarray(reward + mdp.discount * (mdp.transition @ values))


def walk(mdp: MDP, policy: PerAction) -> Float[np.ndarray, "state next_state"]:
    """One less the discounted probabilities of the next state; as one where a walk has ended."""
    after = np.einsum("sa,sat->st", policy, mdp.transition)
    matrix = np.eye(mdp.num_states) - mdp.discount * after
    if mdp.discount == 1:
        ending = mdp.ends
        while (more := ending | (after[:, ending] > 0).any(1)).sum() > ending.sum():
            ending = more
        if not ending.all():
            names = [mdp.states[code] for code in np.flatnonzero(~ending)]
            problem = f"never gets to an end from state(s) {shorten(names)}"
            such = "dataclasses.replace(mdp, discount=0.95)"
            refuse_data("policy", problem=problem, expected="let it end, or discount", instead=such)
        matrix[mdp.ends] = np.eye(mdp.num_states)[mdp.ends]
    return np.asarray(matrix)


def values_of(mdp: MDP, reward: PerAction, policy: PerAction) -> PerState:
    """Values of the states under a policy; with a discount of 1 the value of an end is 0."""
    gain = (policy * reward).sum(1)
    if mdp.discount == 1:
        gain = np.where(mdp.ends, 0.0, gain)
    return np.linalg.solve(walk(mdp, policy), gain)


def visits_of(mdp: MDP, policy: PerAction) -> PerAction:
    """Occupancy of a policy."""
    visits = np.linalg.solve(walk(mdp, policy).T, mdp.start)
    if mdp.discount == 1:
        visits = np.where(mdp.ends, 0.0, visits)
    # Rounding leaves states that are not reached at tiny numbers of either sign.
    return np.asarray(np.maximum(visits, 0.0)[:, None] * policy)

"""Checks of the arguments of `raters.imitation`."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool
from numpy.typing import ArrayLike

from raters.alignment.checks import ROUNDING, as_array, refuse_shape
from raters.errors import refuse_data
from raters.imitation.values import PerAction, PerFeature
from raters.judgements import MDP


def as_reward(mdp: MDP, reward: ArrayLike) -> PerAction:
    """Reward of each action in each state, of a table or of weights of the features."""
    array = as_array("reward", reward)
    if array.shape == (mdp.num_features,):
        return mdp.reward(array)
    if array.shape != mdp.allowed.shape:
        expected = f"give (state, action), {mdp.allowed.shape}, or (feature,), {mdp.num_features}"
        such = "np.repeat(reward[:, None], mdp.num_actions, 1) of a reward of states"
        refuse_shape("reward", array, expected, such)
    return array


def as_table(mdp: MDP, name: str, value: ArrayLike) -> PerAction:
    """Counts or occupancies: at least 0, and 0 for what is not allowed."""
    table = as_array(name, value)
    if table.shape != mdp.allowed.shape:
        refuse_shape(name, table, f"it must be (state, action), here {mdp.allowed.shape}")
    check_entries(mdp, name, table, (table < 0) | ((table > 0) & ~mdp.allowed))
    return table


def check_entries(
    mdp: MDP, name: str, table: PerAction, wrong: Bool[np.ndarray, "state action"]
) -> None:
    """Raise where an entry of a table is wrong."""
    if wrong.any():
        state, action = np.argwhere(wrong)[0]
        where = f"action {mdp.actions[action]!r} in state {mdp.states[state]!r}"
        problem = f"has {table[state, action]:g} for {where}"
        expected = "give numbers of at least 0, and 0 for what is not allowed"
        such = f"np.where(mdp.allowed, {name}, 0)"
        refuse_data(name, problem=problem, expected=expected, instead=such)


def as_policy(mdp: MDP, value: ArrayLike, name: str = "policy") -> PerAction:
    """Probabilities of the actions in each state, which add up to 1."""
    policy = as_table(mdp, name, value)
    total = policy.sum(1)
    if (wrong := np.abs(total - 1) > ROUNDING).any():
        state = int(wrong.argmax())
        problem = f"adds up to {total[state]:.6g} in state {mdp.states[state]!r}"
        such = f"{name} / {name}.sum(1, keepdims=True)"
        refuse_data(name, problem=problem, expected="it must add up to 1", instead=such)
    return np.asarray(policy / total[:, None])


def as_features(mdp: MDP, demonstrator: ArrayLike) -> PerFeature:
    """Feature expectations, of such or of an occupancy."""
    array = as_array("demonstrator", demonstrator)
    if array.shape == (mdp.num_features,):
        return array
    if array.ndim != 2:
        expected = f"give (feature,), {mdp.num_features}, or an occupancy, {mdp.allowed.shape}"
        such = "demonstrator=imitation.occupancy(mdp, rollout)"
        refuse_shape("demonstrator", array, expected, such)
    return features_of(mdp, as_table(mdp, "demonstrator", array))


def features_of(mdp: MDP, visits: PerAction) -> PerFeature:
    """Feature expectations of an occupancy."""
    return np.asarray(np.einsum("sa,saf->f", visits, mdp.features))

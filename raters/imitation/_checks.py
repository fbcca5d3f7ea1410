"""Checks of the arguments of `raters.imitation`."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike

from raters.alignment.checks import ROUNDING, as_array
from raters.errors import refuse_data
from raters.judgements import MDP


def as_reward(mdp: MDP, reward: ArrayLike) -> Float[np.ndarray, "state action"]:
    """Reward of each action in each state, of a table or of weights of the features."""
    array = as_array("reward", reward)
    if array.shape == (mdp.num_features,):
        return mdp.reward(array)
    if array.shape != mdp.allowed.shape:
        refuse_data(
            "reward",
            problem=f"has shape {array.shape}",
            expected=f"it must be a table (state, action), here {mdp.allowed.shape}, or weights"
            f" (feature,), here ({mdp.num_features},)",
            instead="np.repeat(reward[:, None], mdp.num_actions, 1) of a reward of states",
        )
    return array


def as_table(mdp: MDP, name: str, value: ArrayLike) -> Float[np.ndarray, "state action"]:
    """Counts or occupancies: at least 0, and 0 for what is not allowed."""
    table = as_array(name, value)
    if table.shape != mdp.allowed.shape:
        refuse_data(
            name,
            problem=f"has shape {table.shape}",
            expected=f"it must be (state, action), here {mdp.allowed.shape}",
        )
    check_entries(mdp, name, table, (table < 0) | ((table > 0) & ~mdp.allowed))
    return table


def check_entries(
    mdp: MDP,
    name: str,
    table: Float[np.ndarray, "state action"],
    wrong: Bool[np.ndarray, "state action"],
) -> None:
    """Raise where an entry of a table is wrong."""
    if wrong.any():
        state, action = np.argwhere(wrong)[0]
        refuse_data(
            name,
            problem=f"has {table[state, action]:g} for action {mdp.actions[action]!r} in state"
            f" {mdp.states[state]!r}",
            expected="numbers must be at least 0, and 0 where an action is not allowed",
            instead=f"np.where(mdp.allowed, {name}, 0)",
        )


def as_policy(
    mdp: MDP, value: ArrayLike, name: str = "policy"
) -> Float[np.ndarray, "state action"]:
    """Probabilities of the actions in each state, which add up to 1."""
    policy = as_table(mdp, name, value)
    total = policy.sum(1)
    if (wrong := np.abs(total - 1) > ROUNDING).any():
        state = int(wrong.argmax())
        refuse_data(
            name,
            problem=f"adds up to {total[state]:.6g} in state {mdp.states[state]!r}",
            expected="the probabilities of the actions must add up to 1 in each state",
            instead=f"{name} / {name}.sum(1, keepdims=True)",
        )
    return np.asarray(policy / total[:, None])


def as_features(mdp: MDP, demonstrator: ArrayLike) -> Float[np.ndarray, " feature"]:
    """Feature expectations, of such or of an occupancy."""
    array = as_array("demonstrator", demonstrator)
    if array.shape == (mdp.num_features,):
        return array
    if array.ndim != 2:
        refuse_data(
            "demonstrator",
            problem=f"has shape {array.shape}",
            expected=f"it must be feature expectations ({mdp.num_features},), or an occupancy"
            f" (state, action), here {mdp.allowed.shape}",
            instead="demonstrator=imitation.occupancy(mdp, rollout)",
        )
    return features_of(mdp, as_table(mdp, "demonstrator", array))


def features_of(
    mdp: MDP, visits: Float[np.ndarray, "state action"]
) -> Float[np.ndarray, " feature"]:
    """Feature expectations of an occupancy."""
    return np.asarray(np.einsum("sa,saf->f", visits, mdp.features))

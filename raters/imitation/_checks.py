"""Checks of the arguments of `raters.imitation`."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike

from raters.errors import DataError, SettingError
from raters.errors.validation import numbers
from raters.judgements import MDP
from raters.judgements.names import shorten

# Sums of single-precision probabilities are 1 within this.
_ROUNDING = 1e-5


def finite_numbers(name: str, value: ArrayLike) -> Float[np.ndarray, " ..."]:
    """Finite numbers in double precision."""
    array = numbers(name, value)
    if not np.isfinite(array).all():
        raise DataError(
            parameter=name,
            problem="has NaN or infinite entries",
            expected="all must be finite numbers",
            instead=f"np.argwhere(~np.isfinite({name})) to see where",
        )
    return array


def as_reward(mdp: MDP, reward: ArrayLike) -> Float[np.ndarray, "state action"]:
    """Reward of each action in each state, of a table or of weights of the features."""
    array = finite_numbers("reward", reward)
    size = (mdp.num_states, mdp.num_actions)
    if array.shape == (mdp.num_features,):
        return mdp.reward(array)
    if array.shape != size:
        raise DataError(
            parameter="reward",
            problem=f"has shape {array.shape}",
            expected=f"it must be a table (state, action), here {size}, or weights (feature,), here"
            f" ({mdp.num_features},)",
            instead="np.repeat(reward[:, None], mdp.num_actions, 1) of a reward of states",
        )
    return array


def as_table(mdp: MDP, name: str, value: ArrayLike) -> Float[np.ndarray, "state action"]:
    """Counts or occupancies: at least 0, and 0 for what is not allowed."""
    table = finite_numbers(name, value)
    size = (mdp.num_states, mdp.num_actions)
    if table.shape != size:
        raise DataError(
            parameter=name,
            problem=f"has shape {table.shape}",
            expected=f"it must be (state, action), here {size}",
        )
    if table.min() < 0:
        raise DataError(
            parameter=name,
            problem=f"has the entry {table.min():g}",
            expected="all must be at least 0",
        )
    if (outside := (table > 0) & ~mdp.allowed).any():
        state, action = np.argwhere(outside)[0]
        raise DataError(
            parameter=name,
            problem=f"has action {mdp.actions[action]!r} in state {mdp.states[state]!r}",
            expected="only actions that are allowed in a state are done there",
            instead=f"np.where(mdp.allowed, {name}, 0)",
        )
    return table


def as_policy(
    mdp: MDP, value: ArrayLike, name: str = "policy"
) -> Float[np.ndarray, "state action"]:
    """Probabilities of the actions in each state, which add up to 1."""
    policy = as_table(mdp, name, value)
    total = policy.sum(1)
    if (wrong := np.abs(total - 1) > _ROUNDING).any():
        state = int(np.flatnonzero(wrong)[0])
        raise DataError(
            parameter=name,
            problem=f"adds up to {total[state]:.6g} in state {mdp.states[state]!r}",
            expected="the probabilities of the actions must add up to 1 in each state",
            instead=f"{name} / {name}.sum(1, keepdims=True)",
        )
    return np.asarray(policy / total[:, None])


def as_start(mdp: MDP, start: ArrayLike | None) -> Float[np.ndarray, " state"]:
    """Probabilities of the first state, of a table, of the code of one, or the process's own."""
    if start is None:
        return np.asarray(mdp.start)
    if isinstance(start, (int, np.integer)) and not isinstance(start, bool):
        if not 0 <= start < mdp.num_states:
            raise DataError(
                parameter="start",
                value=start,
                problem="is no state",
                expected=f"give a code below {mdp.num_states}, or probabilities (state,)",
                instead=f"mdp.states.index({mdp.states[0]!r})",
            )
        return np.asarray(np.eye(mdp.num_states)[int(start)])
    table = finite_numbers("start", start)
    if table.shape != (mdp.num_states,) or table.min() < 0 or abs(table.sum() - 1) > _ROUNDING:
        raise DataError(
            parameter="start",
            problem=f"has shape {table.shape}"
            if table.shape != (mdp.num_states,)
            else f"adds up to {table.sum():.6g}, with {table.min():g} as the least",
            expected=f"it must hold probabilities of the {mdp.num_states} states",
        )
    return np.asarray(table / table.sum())


def as_weights(
    mdp: MDP, weights: ArrayLike, name: str = "weights"
) -> Float[np.ndarray, " feature"]:
    """Weights of the features."""
    array = finite_numbers(name, weights)
    if array.shape != (mdp.num_features,):
        raise DataError(
            parameter=name,
            problem=f"has shape {array.shape}",
            expected=f"it must be (feature,), here ({mdp.num_features},)",
        )
    return array


def as_features(mdp: MDP, demonstrator: ArrayLike) -> Float[np.ndarray, " feature"]:
    """Feature expectations, of such or of an occupancy."""
    array = finite_numbers("demonstrator", demonstrator)
    if array.shape == (mdp.num_features,):
        return array
    if array.ndim != 2:
        raise DataError(
            parameter="demonstrator",
            problem=f"has shape {array.shape}",
            expected=f"it must be feature expectations ({mdp.num_features},), or an occupancy"
            f" (state, action), here ({mdp.num_states}, {mdp.num_actions})",
            instead="demonstrator=empirical_occupancy(mdp, rollout)",
        )
    table = as_table(mdp, "demonstrator", array)
    return np.asarray(np.einsum("sa,saf->f", table, mdp.features))


def discounted(mdp: MDP) -> None:
    """Raise for a discount of 1, where it is divided by 1 less the discount."""
    if mdp.discount == 1:
        raise SettingError(
            parameter="discount",
            value=1.0,
            problem="is not possible here",
            expected="the bound is finite for a discount below 1",
            instead="dataclasses.replace(mdp, discount=0.99)",
        )


def check_ending(mdp: MDP, policy: Float[np.ndarray, "state action"]) -> None:
    """Raise where a policy may never get to an end, and nothing is discounted."""
    if mdp.discount < 1:
        return
    edges = np.einsum("sa,sat->st", policy, mdp.transition) > 0
    ending: Bool[np.ndarray, " state"] = mdp.ends
    while (more := ending | edges[:, ending].any(1)).sum() > ending.sum():
        ending = more
    if not ending.all():
        names = [mdp.states[code] for code in np.flatnonzero(~ending)]
        raise DataError(
            parameter="policy",
            problem=f"never gets to an end from state(s) {shorten(names)}",
            expected="with a discount of 1 returns are finite for policies that do",
            instead="dataclasses.replace(mdp, discount=0.95)",
        )

"""Checks of the tables of a Markov decision process, and where it goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Shaped
from numpy.typing import ArrayLike

from raters.errors import refuse, refuse_data
from raters.errors.validation import is_number, numbers
from raters.judgements.names import check_names, check_once, shorten

if TYPE_CHECKING:
    from raters.judgements.mdp import MDP

# Sums of single-precision probabilities are 1 within this.
_ROUNDING = 1e-6
# What is left of it after the division by the sum.
_EXACT = 1e-12


def scaled_rows(table: Float[np.ndarray, "*batch state"]) -> np.ndarray:
    """Probabilities whose sums over the last axis are 1 but for rounding, made exactly so."""
    total = table.sum(-1, keepdims=True)
    near = (np.abs(total - 1) <= _ROUNDING) & (total > 0)
    return np.asarray(np.where(near, table / np.where(near, total, 1.0), table))


def keeping(
    transition: Float[np.ndarray, "state action next_state"],
    allowed: Bool[np.ndarray, "state action"],
) -> Bool[np.ndarray, " state"]:
    """Mask of the states that every allowed action keeps, shape (state,)."""
    stays = np.einsum("sas->sa", transition) >= 1 - _EXACT
    return np.asarray((stays | ~allowed).all(-1))


def reached(
    edges: Bool[np.ndarray, "state next_state"], first: Bool[np.ndarray, " state"]
) -> Bool[np.ndarray, " state"]:
    """Mask of the states that edges lead to from the first ones, themselves included."""
    seen = first.copy()
    frontier = first
    while frontier.any():
        frontier = edges[frontier].any(0) & ~seen
        seen |= frontier
    return seen


def edges_of(process: MDP) -> Bool[np.ndarray, "state next_state"]:
    """Mask of the states that may follow a state under some allowed action."""
    return np.asarray((process.transition > 0).any(1))


def check_discount(discount: float) -> None:
    """A number above 0 and at most 1."""
    if not is_number(discount) or not 0 < discount <= 1:
        refuse(
            "discount",
            discount,
            expected="it must be above 0 and at most 1",
            instead="discount=0.95",
        )


def check_weights(weights: ArrayLike, process: MDP) -> Float[np.ndarray, " feature"]:
    """Finite weights, one for each feature."""
    array = numbers("weights", weights)
    _check_shape("weights", array, (process.num_features,), "(feature,)")
    _check_finite("weights", array)
    return array


def check_transition(transition: Shaped[np.ndarray, " ..."]) -> None:
    """Raise unless a table of transitions has its axes."""
    if transition.ndim != 3 or transition.shape[0] != transition.shape[2] or not transition.size:
        refuse_data(
            "transition",
            problem=f"has shape {transition.shape}",
            expected="it must be (state, action, next_state), as many states first as last",
            instead="np.stack([of_action_0, of_action_1], axis=1) of tables (state, next_state)",
        )


def check_allowed(allowed: Shaped[np.ndarray, " ..."], size: tuple[int, ...]) -> None:
    """Raise unless these are flags of each action in each state."""
    _check_shape("allowed", allowed, size, "(state, action)")
    if allowed.dtype != bool:
        refuse_data(
            "allowed",
            problem=f"has entries of type {allowed.dtype}",
            expected="it must hold flags",
            instead="allowed=allowed.astype(bool)",
        )


def check_process(process: MDP) -> None:
    """Raise unless the tables of a process fit together; see `MDP.from_arrays`."""
    check_discount(process.discount)
    transition, allowed = np.asarray(process.transition), np.asarray(process.allowed)
    check_transition(transition)
    size = transition.shape[:2]
    check_allowed(allowed, size)
    _check_shape("start", process.start, size[:1], "(state,)")
    features = np.asarray(process.features)
    if features.ndim != 3 or features.shape[:2] != size or not features.size:
        refuse_data(
            "features",
            problem=f"has shape {features.shape}",
            expected=f"it must be (state, action, feature) or (state, feature), with {size[0]}"
            f" states and {size[1]} actions",
        )
    lengths = {"states": size[0], "actions": size[1], "feature_names": features.shape[-1]}
    for parameter, length in lengths.items():
        _check_names(parameter, getattr(process, parameter), length)
    for name in ("transition", "features", "start"):
        _check_finite(name, np.asarray(getattr(process, name)))
    _check_done(process, allowed)
    _check_probabilities(process, transition, allowed)
    if process.discount == 1:
        _check_ends(process)


def _check_shape(name: str, array: Any, shape: tuple[int, ...], axes: str) -> None:
    if np.shape(array) != shape:
        refuse_data(
            name,
            problem=f"has shape {np.shape(array)}",
            expected=f"it must be {axes}, which is {shape}",
        )


def _check_names(parameter: str, names: Any, length: int) -> None:
    check_names(names, parameter, parameter.removesuffix("_names").removesuffix("s"))
    check_once(names, parameter)  # Tables name them as text.
    if len(names) != length:
        refuse_data(
            parameter,
            problem=f"has {len(names)} names, and the arrays have {length}",
            expected="give one name for each, in code order",
        )


def _check_finite(name: str, array: np.ndarray) -> None:
    if not np.isfinite(array).all():
        refuse_data(
            name,
            problem="has NaN or infinite entries",
            expected="all must be finite numbers",
            instead=f"np.argwhere(~np.isfinite({name})) to see where",
        )


def _check_done(process: MDP, allowed: Bool[np.ndarray, "state action"]) -> None:
    """Raise unless something is to be done in each state, and each action somewhere."""
    for names, axis in ((process.states, 1), (process.actions, 0)):
        if (none := ~allowed.any(axis)).any():
            refuse_data(
                "allowed",
                problem=f"has no action in a state, or an action in none: {_some(names, none)}",
                expected="allow one action at least in each state (an end has one that keeps it),"
                " and leave out actions that there are not",
            )


def _check_probabilities(
    process: MDP,
    transition: Float[np.ndarray, "state action next_state"],
    allowed: Bool[np.ndarray, "state action"],
) -> None:
    """Raise unless no probability is below 0, and they add up to 1."""
    total = transition.sum(-1)
    wrong = (allowed & (np.abs(total - 1) > _EXACT * 100)) | (transition < 0).any(-1)
    if wrong.any():
        state, action = np.argwhere(wrong)[0]
        refuse_data(
            "transition",
            problem=f"has probabilities from {transition[state, action].min():g} that add up to"
            f" {total[state, action]:.6g} after action {process.actions[action]!r} in state"
            f" {process.states[state]!r} ({int(wrong.sum())} such in all)",
            expected="the probabilities of the next states must be at least 0 and add up to 1; an"
            " action that there is not is left out by `allowed`",
            instead="transition / transition.sum(-1, keepdims=True) of counts",
        )
    start = np.asarray(process.start)
    if start.min() < 0 or abs(start.sum() - 1) > _EXACT * 100:
        refuse_data(
            "start",
            problem=f"has probabilities from {start.min():g} that add up to {start.sum():.6g}",
            expected="it must hold probabilities of the states, which add up to 1",
            instead="start / start.sum()",
        )


def _check_ends(process: MDP) -> None:
    """Raise unless sums without weights are finite."""
    ends = process.ends
    # Backwards from the ends: where some policy gets to one with probability 1, the policy that
    # does everything at random does, since an end stays within reach.
    astray = ~reached(edges_of(process).T, ends)
    if astray.any():
        refuse_data(
            "discount",
            1.0,
            f"needs ends, and none is reached from state(s) {_some(process.states, astray)}",
            "give a discount below 1, or actions that lead to a state that all actions keep",
            instead="discount=0.95",
        )
    busy = ends & (process.allowed.sum(1) > 1)
    paid = ends & (np.where(process.allowed[..., None], process.features, 0) != 0).any((1, 2))
    for parameter, which, problem, expected in (
        ("allowed", busy, "has several actions in", "with a discount of 1 an end has one"),
        ("features", paid, "are not 0 in", "with a discount of 1 they are in ends"),
    ):
        if which.any():
            refuse_data(
                parameter,
                problem=f"{problem} end(s) {_some(process.states, which)}",
                expected=f"{expected}, so that nothing is added up there for ever",
                instead="discount=0.95" if parameter == "allowed" else "features[mdp.ends] = 0",
            )


def _some(names: tuple[Any, ...], which: Bool[np.ndarray, " name"]) -> str:
    return shorten([names[code] for code in np.flatnonzero(which)])

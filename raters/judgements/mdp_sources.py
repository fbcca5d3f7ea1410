"""Tables of Markov decision processes: filled in, of a long table, of Gymnasium and of a grid."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from raters.errors import refuse, refuse_data
from raters.errors.validation import is_number, numbers, whole
from raters.judgements.mdp_checks import check_allowed, check_transition, keeping, scaled_rows
from raters.judgements.names import encode_names, name_text
from raters.judgements.reading.columns import read_columns, read_numbers, repeated, where

# Name of the state that is added where episodes end.
END = "end"
_MOVES = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}


def completed(tables: Mapping[str, Any], *, undiscounted: bool) -> dict[str, np.ndarray]:
    """Arrays in double precision, with what is left out filled in."""
    transition = numbers("transition", tables["transition"])
    check_transition(transition)
    size = transition.shape[:2]
    allowed = np.ones(size, bool)
    if (given := tables.get("allowed")) is not None:
        numbers("allowed", given)  # refuses rows of several lengths
        allowed = np.array(given)
        check_allowed(allowed, size)
    ends = keeping(transition, allowed)
    if undiscounted and given is None:
        allowed[ends, 1:] = False
    features = tables.get("features")
    if features is None:
        features = np.eye(size[0]) * ~(ends & undiscounted)
    features = numbers("features", features)
    if features.ndim == 2:
        features = np.repeat(features[:, None], size[1], 1)
    start = tables.get("start")
    if start is None:
        first = ~ends if not ends.all() else np.ones_like(ends)
        start = first / first.sum()
    return {
        "transition": scaled_rows(np.where(allowed[..., None], transition, 0.0)),
        "features": features,
        "start": scaled_rows(numbers("start", start)),
        "allowed": allowed,
    }


# ---------------------------------------------------------------- a long table


def of_frame(
    frame: Any,
    columns: Mapping[str, str],
    probability: str | None,
    features: tuple[str, ...],
    start: Any,
    known: Mapping[str, Any],
) -> dict[str, Any]:
    """Tables and names of a table with one row for each transition; see `MDP.from_frame`."""
    read = read_columns(frame, columns, several={"features": features}, probability=probability)
    ends = [read["state"], read["next_state"]]
    (first, after), states = encode_names(ends, known["state"], "state")
    action, actions = read.codes("action", known["action"])
    if (twice := repeated(first, action, after)).any():
        read["next_state"].refuse(
            f"has a transition that came before in {where(twice)}",
            "give each transition one row, with its probability",
            "frame.groupby([state, action, next_state], as_index=False)[probability].sum()",
        )
    size = (len(states), len(actions))
    weight = np.ones(len(first))
    if probability is not None:
        weight = read_numbers(read["probability"])
    transition, allowed = np.zeros((*size, size[0])), np.zeros(size, bool)
    transition[first, action, after] = weight
    allowed[first, action] = True
    final = np.flatnonzero(~allowed.any(1))
    transition[final, 0, final] = 1.0
    allowed[final, 0] = True
    table = None
    if features:
        table = np.zeros((*size, len(features)))
        for place, column in enumerate(read.lists["features"]):
            np.add.at(table[..., place], (first, action), weight * read_numbers(column))
    return {
        "transition": transition,
        "features": table,
        "start": _start_named(start, states),
        "allowed": allowed,
        "states": states,
        "actions": actions,
        "feature_names": features or None,
    }


def _start_named(start: Any, states: Sequence[Any]) -> Float[np.ndarray, " state"] | None:
    """Probabilities of the first state from a name, or from a mapping by name."""
    if start is None:
        return None
    code = {name_text(name): place for place, name in enumerate(states)}
    weights = start if isinstance(start, Mapping) else {name_text(start): 1.0}
    table = np.zeros(len(states))
    for name, weight in weights.items():
        if name_text(name) not in code or not is_number(weight):
            refuse_data(
                "start",
                start,
                f"gives {name!r} the probability {weight!r}",
                "name a state, or give probabilities by name of a state",
                instead=f"start={states[0]!r}",
            )
        table[code[name_text(name)]] = weight
    return table


# ---------------------------------------------------------------- Gymnasium


def of_gymnasium(env: Any) -> dict[str, Any]:
    """Tables and names of an environment; see `MDP.from_gymnasium`."""
    rows, start = _tables_of(env)
    size = (len(rows), max(map(len, rows)))
    # An end is a state that every action keeps without a reward.
    final = np.array(
        [
            all(
                after == state and gain == 0
                for outcomes in of_state.values()
                for share, after, gain, _ in outcomes
                if share > 0
            )
            for state, of_state in enumerate(rows)
        ]
    )
    # The last column and row are those of the additional end.
    transition = np.zeros((size[0] + 1, size[1], size[0] + 1))
    reward, allowed = np.zeros((size[0] + 1, size[1])), np.zeros((size[0] + 1, size[1]), bool)
    for state, of_state in enumerate(rows):
        for action, outcomes in of_state.items():
            allowed[state, action] = not final[state] or action == min(of_state)
            for probability, after, gain, terminated in outcomes:
                place = size[0] if terminated and not final[after] else after
                transition[state, action, place] += probability
                reward[state, action] += probability * gain
    transition[-1, 0, -1] = allowed[-1, 0] = 1
    kept = np.append(np.ones(size[0], bool), transition[:-1, :, -1].any())
    table = np.where(np.append(final, True)[:, None], 0.0, reward)[..., None]
    return {
        "transition": transition[kept][..., kept],
        "features": table[kept],
        "start": np.append(start, 0.0)[kept],
        "allowed": allowed[kept],
        "states": [*range(size[0]), END][: int(kept.sum())],
        "actions": range(size[1]),
        "feature_names": ["reward"],
    }


def _tables_of(env: Any) -> tuple[list[Mapping[int, Any]], Float[np.ndarray, " state"]]:
    """Outcomes by action of each state, and the probabilities of the first state."""
    if isinstance(env, str):
        try:
            gymnasium = importlib.import_module("gymnasium")
            env = gymnasium.make(env)
        except Exception as error:  # Gymnasium is optional, and has errors of its own.
            refuse(
                "env",
                env,
                f"is no environment that can be made ({error})",
                "install Gymnasium, and name one of its tabular environments, or pass one",
                instead="pip install gymnasium, and env='FrozenLake-v1'",
            )
    environment = getattr(env, "unwrapped", env)
    outcomes = getattr(environment, "P", None)
    start = getattr(environment, "initial_state_distrib", None)
    if not isinstance(outcomes, Mapping) or not outcomes or start is None:
        refuse_data(
            "env",
            type(environment).__name__,
            "has no tables P and initial_state_distrib",
            "pass one of Gymnasium's tabular environments",
            instead="rt.MDP.from_gymnasium(gymnasium.make('FrozenLake-v1'))",
        )
    rows: list[Mapping[int, Any]] = [dict(outcomes[state]) for state in range(len(outcomes))]
    return rows, numbers("initial_state_distrib", start)


# ---------------------------------------------------------------- a grid


def of_grid(
    rows: int, columns: int, slip: float, features: Any, ends: Any, start: Any
) -> dict[str, Any]:
    """Tables and names of a grid; see `MDP.grid`."""
    whole("rows", rows)
    whole("columns", columns)
    if not is_number(slip) or not 0 <= slip <= 1:
        refuse("slip", slip, expected="it must be a probability, from 0 to 1")
    code = np.arange(rows * columns).reshape(rows, columns)
    final = [code[cell] for cell in _cells("ends", ends, code.shape)]
    size = code.size + bool(final)
    transition = np.zeros((size, len(_MOVES), size))
    for cell in np.ndindex(code.shape):
        transition[code[cell], :, : code.size] = _moves(cell, code, slip)
    allowed = np.ones((size, len(_MOVES)), bool)
    if final:
        transition[final] = 0.0
        transition[final, :, -1] = 1.0
        transition[-1, 0, -1], allowed[-1, 1:] = 1.0, False
    names = [f"({row}, {column})" for row, column in np.ndindex(code.shape)]
    table, feature_names = _cell_features(features, code.shape, names)
    table = np.concatenate([table, np.zeros((size - len(table), table.shape[1]))])
    begin = np.zeros(size)
    inner = [place for place in range(code.size) if place not in final]
    first = [code[cell] for cell in _cells("start", start, code.shape)] or inner or [0]
    begin[first] = 1 / len(set(first))
    return {
        "transition": transition,
        "features": table,
        "start": begin,
        "allowed": allowed,
        "states": [*names, END][:size],
        "actions": list(_MOVES),
        "feature_names": feature_names,
    }


def _moves(
    cell: tuple[int, ...], code: Int[np.ndarray, "row column"], slip: float
) -> Float[np.ndarray, "action cell"]:
    """Probabilities of the next cells after each move."""
    after = []
    for step in _MOVES.values():
        row, column = cell[0] + step[0], cell[1] + step[1]
        inside = 0 <= row < code.shape[0] and 0 <= column < code.shape[1]
        after.append(code[row, column] if inside else code[cell])
    table = np.zeros((len(after), code.size))
    for move in range(len(after)):  # The sides of a move are its neighbours among the moves.
        for turn, share in ((0, 1 - slip), (1, slip / 2), (-1, slip / 2)):
            table[move, after[(move + turn) % len(after)]] += share
    return table


def _cells(parameter: str, cells: Any, shape: tuple[int, ...]) -> list[Any]:
    """Cells that are given as pairs, or as one pair."""
    if cells is None or len(cells) == 0:
        return []
    pairs = [cells] if all(isinstance(one, (int, np.integer)) for one in cells) else list(cells)
    for pair in pairs:
        numbered = np.ndim(pair) == 1 and len(pair) == 2 and np.asarray(pair).dtype.kind in "iu"
        if not numbered or not all(0 <= at < size for at, size in zip(pair, shape, strict=True)):
            refuse_data(
                parameter,
                pair,
                "is no cell of the grid",
                f"name cells by row and column, counted from 0, of {shape[0]} rows"
                f" and {shape[1]} columns",
                instead=f"{parameter}=[(0, 1)]",
            )
    return [tuple(map(int, pair)) for pair in pairs]


def _cell_features(
    given: Any, shape: tuple[int, ...], names: list[str]
) -> tuple[Float[np.ndarray, "cell feature"], list[Any]]:
    """Features of the cells and their names; by default an indicator of each."""
    if given is None:
        return np.eye(len(names)), list(names)
    labels = list(given) if isinstance(given, Mapping) else None
    if isinstance(given, Mapping):
        layers = [numbers("features", layer) for layer in given.values()]
        same = bool(layers) and all(layer.shape == shape for layer in layers)
        given = np.stack(layers, -1) if same else np.zeros(0)
    table = numbers("features", given)
    if table.ndim == 3 and table.shape[:2] == shape:
        table = table.reshape(len(names), -1)
    if table.ndim != 2 or len(table) != len(names):
        refuse_data(
            "features",
            problem="does not have a value for each cell",
            expected=f"give arrays of {shape[0]} rows and {shape[1]} columns by name, or"
            " one of (row, column, feature)",
            instead=f"features={{'mud': np.zeros({shape})}}",
        )
    return table, labels if labels is not None else list(range(table.shape[1]))

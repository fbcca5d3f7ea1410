"""Reading of demonstrations, and of the process that they are of."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd

from raters.errors import DataError, refuse
from raters.judgements.demonstrations import Demonstrations
from raters.judgements.mdp import MDP
from raters.judgements.names import match_names, name_text

# Columns of a table of transitions.
_OF_TRANSITIONS = ("state", "action", "next_state", "probability")


def read_demonstrations(
    frame: Any,
    *,
    state: str,
    action: str,
    transitions: pd.DataFrame,
    trajectory: str | None = None,
    step: str | None = None,
    annotator: str | None = None,
    count: str | None = None,
    state_features: pd.DataFrame | None = None,
    discount: float = 0.95,
) -> Demonstrations:
    """Read demonstrations and the process that they are of from tables."""
    if lacking := [name for name in _OF_TRANSITIONS[:3] if name not in transitions]:
        problem = f"has no column {lacking[0]!r}; it has {list(transitions.columns)}"
        expected = "it must have columns state, action, next_state and probability"
        refuse("transitions", problem=problem, expected=expected, error=DataError)
    features = tuple(name for name in map(str, transitions) if name not in _OF_TRANSITIONS)
    roles: dict[str, Any] = {name: name for name in _OF_TRANSITIONS if name in transitions}
    mdp = MDP.from_frame(transitions, **roles, features=features, discount=discount)
    if state_features is not None:
        mdp = _with_state_features(mdp, state_features, keep=bool(features))
    columns = {"trajectory": trajectory, "step": step, "annotator": annotator, "count": count}
    return Demonstrations.from_frame(frame, mdp=mdp, state=state, action=action, **columns)


def _with_state_features(mdp: MDP, table: pd.DataFrame, *, keep: bool) -> MDP:
    """The process with features of its states, behind those of actions where these are kept."""
    names = tuple(name for name in map(str, table) if name != "state")
    if "state" not in table or not names or not len(table):
        problem = f"has the columns {list(table.columns)}"
        expected = "it must have a column state, and one of numbers for each feature"
        refuse("state_features", problem=problem, expected=expected, error=DataError)
    listed = tuple(map(name_text, table["state"]))
    code = match_names(np.arange(len(listed)), listed, mdp.states, "state", "state_features")
    numbers = table[list(names)].apply(pd.to_numeric, errors="coerce").to_numpy(float)
    values = np.full((mdp.num_states, len(names)), np.nan)
    values[code] = numbers
    number = np.bincount(code, minlength=mdp.num_states)
    values[(number == 0) & np.asarray(mdp.ends)] = 0.0
    wrong = np.flatnonzero((number > 1) | ~np.isfinite(values).all(1))
    if len(wrong):
        problem = f"has no single row of numbers for state {name_text(mdp.states[wrong[0]])!r}"
        expected = "give each state one row of numbers; ends may be left out"
        refuse("state_features", problem=problem, expected=expected, error=DataError)
    features = np.repeat(values[:, None], mdp.num_actions, axis=1)
    if keep:
        features = np.concatenate([mdp.features, features], axis=-1)
        names = (*mdp.feature_names, *names)
    described = dataclasses.replace(mdp, features=features, feature_names=names)
    described.check()
    return described

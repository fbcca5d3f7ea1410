"""Demonstrations as a kind of judgement."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd

from raters.auditing import demonstrations as audited
from raters.errors import DataError
from raters.families.demonstrations import sections
from raters.judgements.demonstrations import Demonstrations
from raters.judgements.mdp import MDP
from raters.judgements.names import match_names, name_text
from raters.kinds import Kind, Reader, Words, register
from raters.models import demonstrations as models
from raters.models.demonstrations import MaxEntIRL

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
        raise DataError(
            parameter="transitions",
            problem=f"has no column {lacking[0]!r}; it has {list(transitions.columns)}",
            expected="it must have columns state, action, next_state and probability",
        )
    own = tuple(name for name in map(str, transitions) if name not in _OF_TRANSITIONS)
    mdp = MDP.from_frame(
        transitions,
        state="state",
        action="action",
        next_state="next_state",
        probability="probability" if "probability" in transitions else None,
        features=own,
        discount=discount,
    )
    if state_features is not None:
        mdp = _with_state_features(mdp, state_features, keep=bool(own))
    columns = {"trajectory": trajectory, "step": step, "annotator": annotator, "count": count}
    return Demonstrations.from_frame(frame, mdp=mdp, state=state, action=action, **columns)


def _with_state_features(mdp: MDP, table: pd.DataFrame, *, keep: bool) -> MDP:
    """The process with features of its states, behind its own where these are kept."""
    names = tuple(name for name in map(str, table) if name != "state")
    if "state" not in table or not names:
        raise DataError(
            parameter="state_features",
            problem=f"has the columns {list(table.columns)}",
            expected="it must have a column state, and one of numbers for each feature",
        )
    listed = tuple(map(name_text, table["state"]))
    numbers = table[list(names)].apply(pd.to_numeric, errors="coerce").to_numpy(float)
    code = match_names(np.arange(len(listed)), listed, mdp.states, "state", "state_features")
    lacking = sorted(set(range(mdp.num_states)) - set(code.tolist()) - set(_ends(mdp)))
    twice = [listed[row] for row in np.flatnonzero(pd.Series(listed).duplicated())]
    wrong = np.argwhere(~np.isfinite(numbers))
    if lacking or twice or len(wrong):
        if lacking:
            problem = f"has no row of state {name_text(mdp.states[lacking[0]])!r}"
        elif twice:
            problem = f"has two rows of state {twice[0]!r}"
        else:
            row, column = wrong[0]
            problem = (
                f"holds {table[names[column]].iloc[row]!r} for state {listed[row]!r} in column"
                f" {names[column]!r}, which is no number"
            )
        raise DataError(
            parameter="state_features",
            problem=problem,
            expected="give each state one row of numbers; ends may be left out",
        )
    values = np.zeros((mdp.num_states, len(names)))
    values[code] = numbers
    features = np.repeat(values[:, None], mdp.num_actions, axis=1)
    if keep:
        features = np.concatenate([mdp.features, features], axis=-1)
    own = (*mdp.feature_names, *names) if keep else names
    found = dataclasses.replace(mdp, features=features, feature_names=own)
    found.check()
    return found


def _ends(mdp: MDP) -> list[int]:
    return [int(code) for code in np.flatnonzero(mdp.ends)]


def _questions(data: Demonstrations) -> Demonstrations:
    """Every state in which there is a choice, put to every demonstrator."""
    free = np.flatnonzero(data.num_choices() > 1)
    if not len(free):
        raise DataError(
            "there is no state with a choice between actions, so there is nothing to ask",
            parameter="data",
        )
    state, who = (part.ravel() for part in np.meshgrid(free, range(data.num_annotators)))
    asked = dataclasses.replace(data.unanswered(), count=None)
    return dataclasses.replace(asked, state=state.astype(np.int32), annotator=who.astype(np.int32))


DEMONSTRATIONS = register(
    Kind(
        data=Demonstrations,
        readers=(Reader(read_demonstrations),),
        models=tuple(vars(models)[name] for name in models.__all__),
        default=MaxEntIRL(),
        words=Words("step", "steps"),
        questions=_questions,
        quantities=audited.quantities,
        threshold=0.25,
        columns=sections.COLUMNS,
        reason=sections.reason,
        sections=(sections.reward, sections.policy),
        lowest="least rational",
        by_crowd=True,
    )
)

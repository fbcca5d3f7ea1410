"""Votes of arenas: two models and a winner.

The forms are those of https://huggingface.co/datasets/lmsys/chatbot_arena_conversations (winner is
model_a, model_b, tie or "tie (bothbad)"), of lmsys/mt_bench_human_judgments, of the file
``gpt-4_pair.jsonl`` of FastChat (two games, with the sides exchanged in the second), and of the
Kaggle competition lmsys-chatbot-arena (a column for each outcome).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from raters.errors import refuse_data
from raters.judgements.names import shorten
from raters.judgements.reading.answers import Table, no_question
from raters.judgements.reading.files import is_nested

_ONE_HOT = ("winner_model_a", "winner_model_b", "winner_tie")
_GAMES = ("model_1", "model_2", "g1_winner", "g2_winner")
# Usual names of the column of who voted, the surest first.
_JUDGES = ("judge", "annotator", "judge_hash", "user", "user_id", "evaluator", "worker", "rater")


def arena(frame: pd.DataFrame, control: str | None) -> Table | None:
    """The votes between two models, with the sides in the order of presentation."""
    there, notes = set(map(str, frame.columns)), list[str]()
    votes = {"model_a", "model_b"} <= there and ("winner" in there or {*_ONE_HOT} <= there)
    if not votes and not {*_GAMES} <= there:
        return None
    no_question(control)
    if {*_GAMES} <= there:
        frame, notes = _games(frame)
    elif "winner" not in frame:
        frame = frame.assign(winner=_from_one_hot(frame))
    judges = [name for name in _JUDGES if name in frame]
    roles: dict[str, Any] = {"first": "model_a", "second": "model_b", "outcome": "winner"}
    if judges:
        roles["annotator"] = judges[0]
        if any(map(is_nested, frame[judges[0]])):  # such as ["gpt-4", "pair-v2"]
            names = [" ".join(map(str, one)) if is_nested(one) else one for one in frame[judges[0]]]
            frame = frame.assign(**{judges[0]: names})
    ties = frame["winner"].astype(str).str.lower().str.contains("tie|both", regex=True)
    if ties.any():
        roles["ties"] = "half"
        notes.append("ties count half a vote for each side, unless `ties` says keep or drop")
    others = [name for name in map(str, frame.columns) if name not in roles.values()]
    notes += [f"not read: {shorten(others, 8)}"] * bool(others)
    return Table(frame, "votes of an arena", roles, tuple(notes))


def _from_one_hot(frame: pd.DataFrame) -> list[str]:
    """Outcomes of votes with a column for each."""
    cells = frame[list(_ONE_HOT)].apply(pd.to_numeric, errors="coerce").to_numpy(float)
    wrong = ~((cells == 0) | (cells == 1)).all(1) | (cells.sum(1) != 1)
    if wrong.any():
        row = int(np.argmax(wrong))
        problem = f"has {cells[row].tolist()} in the columns {', '.join(_ONE_HOT)} of data row"
        problem += f" {row + 1} ({int(wrong.sum())} such row(s))"
        refuse_data("table", problem=problem, expected="one of them must be 1, and the others 0")
    return np.array(["model_a", "model_b", "tie"])[cells.argmax(1)].tolist()


def _games(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Votes of two games each, the second with the sides exchanged."""
    sides = {"model_1": "model_a", "model_2": "model_b"}
    swapped = {"model_1": "model_b", "model_2": "model_a"}
    others = [name for name in frame.columns if name not in _GAMES]
    games = []
    for game, places in (("g1_winner", sides), ("g2_winner", swapped)):
        models = {side: frame[model] for model, side in places.items()}
        winner = frame[game].astype(str).replace(places)
        games.append(frame[others].assign(**models, winner=winner))
    votes = pd.concat(games, ignore_index=True)
    failed = votes["winner"].isin(["error"])
    return votes[~failed], [f"{int(failed.sum())} failed game(s) are left out"] * bool(failed.any())

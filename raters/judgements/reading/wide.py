"""Tables of the usual forms: a column for each annotator, cells that are lists, votes of arenas."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from raters.errors import refuse_data
from raters.judgements.answers import MOST_LEVELS
from raters.judgements.names import name_text, shorten
from raters.judgements.reading import answers as reading
from raters.judgements.reading.answers import CHOICE, NUMBER, Answer, Table, plain
from raters.judgements.reading.columns import read_number
from raters.judgements.reading.files import is_nested, nested

_PEOPLE = re.compile("annotator|worker|user|rater|judge|person|labell?er", re.I)
_NUMBERS = re.compile("rating|score|stars?$", re.I)
_THINGS = "item|task|question|example|text|document|doc|image|unit"
_ITEMS = re.compile(f"(.*_)?(id|{_THINGS}|index)", re.I)
_GOLD = re.compile("(.*_)?(gold|truth)(_.*)?|(true|correct)_label", re.I)


# ---------------------------------------------------------------- cells that are lists


def lists(frame: pd.DataFrame, control: str | None) -> Table | None:
    """The answers in lists, each beside a list of the annotators who gave them."""
    if (who := _people(frame)) is None:
        return None
    beside = [name for name in nested(frame) if name != who and _is_beside(frame, name, who)]
    items = _item_column(frame, [name for name in frame if name not in nested(frame)])
    answers = []
    for place, row in enumerate(frame.to_dict("records")):
        data = plain(row)
        item = place if items is None else row[items]
        for name in beside:
            form = NUMBER if _NUMBERS.search(name) else CHOICE
            for person, value in zip(_cells(row[who]), _cells(row[name]), strict=True):
                said = value if form == NUMBER else [value] * (value not in (None, ""))
                if form == CHOICE or value is not None:
                    answers.append(Answer(name, form, item, person, said, data))
    return reading.table_of(
        f"lists in the columns of a table, annotators in {who!r}", answers, {}, control
    )


def _people(frame: pd.DataFrame) -> str | None:
    """The column with lists of annotators: names that come once in each list, beside another."""
    names = [str(name) for name in nested(frame) if _PEOPLE.search(str(name))]
    for name in names:
        listed = [_cells(cell) for cell in frame[name]]
        plain_cells = not any(is_nested(one) or one is None for each in listed for one in each)
        if not plain_cells or any(len({*each}) < len(each) for each in listed):
            continue
        if any(_is_beside(frame, other, name) for other in nested(frame) if other != name):
            return name
    return None


def _is_beside(frame: pd.DataFrame, name: str, who: str | None) -> bool:
    """True for a column of lists that are as long as those of the annotators."""
    pairs = zip(frame[name], frame[who], strict=True)
    one_each = all(len(_cells(one)) == len(_cells(other)) for one, other in pairs)
    return one_each and not any(is_nested(one) for cell in frame[name] for one in _cells(cell))


def _cells(cell: Any) -> list[Any]:
    values = cell.tolist() if hasattr(cell, "tolist") else cell
    return list(values) if isinstance(values, (list, tuple)) else []


# ---------------------------------------------------------------- a column for each annotator


def wide(frame: pd.DataFrame) -> Table | None:
    """A table with a column for each annotator, all from one small set of values, as one row for
    each answer; None for any other table."""
    frame = frame.rename(columns=str)
    flat = [name for name in frame.columns if name not in nested(frame)]
    item = _item_column(frame, flat)
    said = {name: set(_said(frame[name])) for name in flat if name != item}
    small = [name for name in said if 0 < len(said[name]) <= MOST_LEVELS]
    if not small:
        return None
    first = max(small, key=lambda name: len(said[name]))
    people = [name for name in small if said[name] & said[first] and not _GOLD.fullmatch(name)]
    values = set().union(*(said[name] for name in people))
    gold = next((name for name in said if _GOLD.fullmatch(name) and said[name] <= values), None)
    others = [name for name in frame.columns if name not in (item, gold, *people)]
    if len(people) < 2 or not 1 < len(values) <= MOST_LEVELS or len(others) >= len(people):
        return None
    if item is None and others:
        return None
    rows = frame[[*people, *([gold] if gold else [])]].map(_answer)
    rows.insert(0, "item", range(1, len(frame) + 1) if item is None else frame[item])
    numbers = len(values) > 2 and all(read_number(one) == read_number(one) for one in values)
    answer, truth = ("rating", "value") if numbers else ("label", "truth")
    table = rows.melt("item", people, "annotator", answer)
    table = table[table[answer] != ""].reset_index(drop=True)
    known = None if gold is None else rows[["item", gold]].set_axis(["item", truth], axis=1)
    known = None if known is None else known[known[truth] != ""].reset_index(drop=True)
    roles = {"item": "item", "annotator": "annotator", answer: answer}
    notes = [f"not read: {shorten(others)}"] * bool(others)
    notes += ["numbers are ratings, unless `kind` says labels"] * numbers
    form = f"a column for each annotator, a row for each {'item' if item is None else repr(item)}"
    return Table(table, form, roles, tuple(notes), known)


def _said(column: pd.Series) -> list[str]:
    answers = map(_answer, column.unique())
    return [name_text(answer) for answer in answers if answer != ""]


def _answer(cell: Any) -> Any:
    """A cell, empty without an answer; 1 and 1.0, which pandas writes beside missing cells, are one
    answer."""
    if cell is None or cell is pd.NA or cell != cell:
        return ""
    if isinstance(cell, str):
        return re.sub(r"(?<=\d)\.0+$", "", cell)
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell


def _item_column(frame: pd.DataFrame, names: list[str]) -> str | None:
    """The column that names the items: the first that does by its name, or holds no value twice."""
    distinct = [name for name in names if frame[name].is_unique and frame[name].notna().all()]
    named = [name for name in distinct if _ITEMS.fullmatch(str(name))]
    return next(iter(named), names[0] if names[:1] == distinct[:1] and names else None)


# ---------------------------------------------------------------- votes of arenas

_ONE_HOT = ("winner_model_a", "winner_model_b", "winner_tie")
_GAMES = ("model_1", "model_2", "g1_winner", "g2_winner")
# Usual names of the column of who voted, the surest first.
_JUDGES = ("judge", "annotator", "judge_hash", "user", "user_id", "evaluator", "worker", "rater")


def arena(frame: pd.DataFrame, control: str | None) -> Table | None:
    """The votes between two models, with the sides in the order of presentation.

    The forms are those of https://huggingface.co/datasets/lmsys/chatbot_arena_conversations (winner
    is model_a, model_b, tie or "tie (bothbad)"), of lmsys/mt_bench_human_judgments, of the file
    ``gpt-4_pair.jsonl`` of FastChat (two games, with the sides exchanged in the second), and of the
    Kaggle competition lmsys-chatbot-arena (a column for each outcome).
    """
    there, notes = set(map(str, frame.columns)), list[str]()
    votes = {"model_a", "model_b"} <= there and ("winner" in there or {*_ONE_HOT} <= there)
    if not votes and not {*_GAMES} <= there:
        return None
    reading.no_question(control)
    if {*_GAMES} <= there:
        frame, notes = _games(frame)
    elif "winner" not in frame:
        cells = frame[list(_ONE_HOT)].apply(pd.to_numeric, errors="coerce").to_numpy(float)
        wrong = ~((cells == 0) | (cells == 1)).all(1) | (cells.sum(1) != 1)
        if wrong.any():
            row = int(np.argmax(wrong))
            problem = f"has {cells[row].tolist()} in the columns {', '.join(_ONE_HOT)} of data row"
            problem += f" {row + 1} ({int(wrong.sum())} such row(s))"
            expected = "one of them must be 1, and the others 0"
            refuse_data("table", problem=problem, expected=expected)
        frame = frame.assign(winner=np.array(["model_a", "model_b", "tie"])[cells.argmax(1)])
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

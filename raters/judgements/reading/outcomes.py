"""Readings of a column of outcomes: the first side, the second, or a tie."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Bool, Float, Int

from raters.errors import DataError
from raters.judgements.names import name_text
from raters.judgements.reading.columns import Column

Ties = Literal["error", "drop", "half", "keep"]

_FIRST_WORDS = ("first", "left", "a", "item_a", "model_a", "true", "win")
_SECOND_WORDS = ("second", "right", "b", "item_b", "model_b", "false", "loss")
# Words of the two sides that also occur as parts of names of columns.
_SIDES = (("first", "second"), ("left", "right"), ("a", "b"))
_TIE = re.compile(r"(tie|tied|draw|equal|both|½)([^a-z].*)?", re.DOTALL)
_NUMBERS = {1.0: 1.0, 0.0: 0.0, 0.5: 0.5}


def check_ties(ties: Any) -> None:
    """One of the policies."""
    if not isinstance(ties, str) or ties not in get_args(Ties):
        raise DataError(
            f"ties={ties!r} is not a policy; write ties='error', ties='drop', ties='half' or"
            " ties='keep'",
            parameter="ties",
            value=ties,
            problem="is not a policy",
            expected="choose 'error', 'drop', 'half' or 'keep'",
        )


def settle_ties(
    wins: Float[np.ndarray, " row"], ties: Ties, where: str
) -> Bool[np.ndarray, " row"]:
    """Mask of the rows to keep under the policy."""
    tied = wins == 0.5
    if ties == "error" and tied.any():
        raise DataError(
            f"{where} holds {int(tied.sum())} tie(s), the first in row"
            f" {int(np.flatnonzero(tied)[0])} (counted from 0); say what a tie means: ties='drop'"
            " leaves them out, ties='half' gives each side half a vote, ties='keep' makes them an"
            " answer of their own, for a model with ties=",
            parameter="ties",
            value="error",
            problem=(
                f"does not allow the {int(tied.sum())} tie(s) that {where} holds, the first in row"
                f" {int(np.flatnonzero(tied)[0])} (counted from 0)"
            ),
            expected=(
                "'drop' leaves them out, 'half' gives each side half a vote, 'keep' makes them an"
                " answer of their own, for a model of ties"
            ),
        )
    if ties == "drop":
        if tied.all():
            raise DataError(
                f"{where} holds nothing but ties, so ties='drop' leaves no vote; write ties='half'"
                " to keep them",
                parameter="ties",
                value="drop",
                problem=f"leaves no vote, as {where} holds nothing but ties",
                expected="'half' keeps them",
            )
        kept: np.ndarray = ~tied
        return kept
    return np.ones(len(wins), dtype=bool)


def read(
    outcome: Column,
    first: tuple[Column, Int[np.ndarray, " row"]],
    second: tuple[Column, Int[np.ndarray, " row"]],
    items: tuple[Any, ...],
    spelled: Mapping[str, Any] | None,
) -> Float[np.ndarray, " row"]:
    """1 where the first side won, 0 where the second did, 0.5 for a tie; `first` and `second` come
    with their item codes."""
    sides = (first[0].name, second[0].name)
    if spelled is not None:
        wins = _spelled(outcome, spelled)[outcome.code]
        _refuse_unread(outcome, wins, f"one of the values in outcomes={dict(spelled)!r}", sides)
        votes: np.ndarray = wins.astype(np.float32)
        return votes
    as_word = _words(outcome.values, *sides)[outcome.code]
    lookup = {name_text(name): code for code, name in enumerate(items)}
    named = np.array([lookup.get(name_text(value), -1) for value in outcome.values])[outcome.code]
    # The name of an item in the row goes before the word: an item may be called "tie".
    as_name = np.select(
        [named == first[1], named == second[1], as_word == 0.5], [1.0, 0.0, 0.5], np.nan
    )
    by_name, by_word = np.isfinite(as_name), np.isfinite(as_word)
    if by_name.all() and by_word.all() and not np.array_equal(as_name, as_word):
        row = int(np.flatnonzero(as_name != as_word)[0])
        raise DataError(
            f"column {outcome.name!r} can be read as names of items and as sides, with different"
            f" results (row {row}, counted from 0, holds {outcome.values[outcome.code[row]]!r}). If"
            " they are sides, say which: outcomes={'first': 1, 'second': 0}; if they are names,"
            " rename the items so that no name is also a word or number for a side",
            parameter="outcome",
            value=outcome.name,
            problem=(
                f"can be read as names of items and as sides, with different results (row {row},"
                f" counted from 0, holds {outcome.values[outcome.code[row]]!r})"
            ),
            expected=(
                "spell out which values are which side, or rename the items so that no name is also"
                " a word or number for a side"
            ),
        )
    by_words = by_name.sum() < by_word.sum()
    wins = as_word if by_words else as_name
    if by_words:
        _refuse_other_sides(outcome, *sides)
    expected = (
        f"the item in {sides[0]!r} or {sides[1]!r} of its row, one of these two column names,"
        " 'first'/'second', 1/0, or 'tie'"
    )
    _refuse_unread(outcome, wins, expected, sides)
    return wins.astype(np.float32)


def _refuse_other_sides(outcome: Column, first: str, second: str) -> None:
    """Raise where a word for a side stands in the name of the column of the other side."""
    words = {str(value).strip().lower() for value in outcome.values} - {
        first.lower(),
        second.lower(),
    }
    parts = [set(re.split(r"[^a-z0-9]+", name.lower())) for name in (first, second)]
    for one, other in _SIDES:
        ends = (f"_{one}", f"_{other}")
        said = sorted(word for word in words if word in (one, other) or word.endswith(ends))
        if said and other in parts[0] and one in parts[1]:
            stem = said[0].removesuffix(one if said[0].endswith(one) else other)
            raise DataError(
                parameter="outcome",
                value=outcome.name,
                problem=f"holds {said[0]!r}, which means one side by the place of {first!r} and"
                f" {second!r}, and the other by their names",
                expected=f"name the columns the other way round (first={second!r},"
                f" second={first!r}), or say which values are which side",
                instead=f"outcomes={{'first': {stem + other!r}, 'second': {stem + one!r}}}",
            )


def _words(values: list[Any], first_column: str, second_column: str) -> Float[np.ndarray, " value"]:
    """Outcome of each distinct value when it is read as a word or number; NaN when nothing."""
    lowered = [str(value).strip().lower() for value in values]
    numbers = [_number(word) for word in lowered]
    coded = {number for number in numbers if number is not None}
    # 1 and 2 number the sides; beside a 0 (or any other number) a 2 could mean anything.
    meaning = {1.0: 1.0, 2.0: 0.0} if 2.0 in coded and coded <= {1.0, 2.0} else _NUMBERS
    columns = (
        {first_column: 1.0, second_column: 0.0},
        (
            {}
            if first_column.lower() == second_column.lower()
            else {first_column.lower(): 1.0, second_column.lower(): 0.0}
        ),
    )

    def reading(value: Any, word: str, number: float | None) -> float:
        if str(value) in columns[0]:
            return columns[0][str(value)]
        if word in columns[1]:
            return columns[1][word]
        if number is not None:
            return meaning.get(number, np.nan)
        if word in _FIRST_WORDS or word in _SECOND_WORDS:
            return float(word in _FIRST_WORDS)
        return 0.5 if _TIE.fullmatch(word) else np.nan

    return np.array([reading(*entry) for entry in zip(values, lowered, numbers, strict=True)])


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _spelled(outcome: Column, spelled: Mapping[str, Any]) -> Float[np.ndarray, " value"]:
    """Outcome of each distinct value under a mapping that the user wrote."""
    if not isinstance(spelled, Mapping) or not {"first", "second"} <= set(spelled) <= {
        "first",
        "second",
        "tie",
    }:
        raise DataError(
            "outcomes= takes a mapping with the keys 'first', 'second' and maybe 'tie', such as "
            f"outcomes={{'first': 1, 'second': 2, 'tie': 0}}, not {spelled!r}",
            parameter="outcomes",
            value=dict(spelled) if isinstance(spelled, Mapping) else spelled,
            problem="does not say what the outcomes mean",
            expected="give values for 'first' and 'second', and maybe 'tie'",
        )
    meaning: dict[str, float] = {}
    for key, wins in (("first", 1.0), ("second", 0.0), ("tie", 0.5)):
        wanted = spelled.get(key, [])
        for value in wanted if isinstance(wanted, (list, tuple, set, frozenset)) else [wanted]:
            if meaning.setdefault(name_text(value), wins) != wins:
                raise DataError(
                    f"outcomes= gives {value!r} two meanings; each value can have one",
                    parameter="outcomes",
                    value=value,
                    problem="has two meanings",
                    expected="each value can have one",
                )
    return np.array([meaning.get(name_text(value), np.nan) for value in outcome.values])


def _refuse_unread(
    outcome: Column, wins: Float[np.ndarray, " row"], expected: str, sides: tuple[str, str]
) -> None:
    unread = np.isnan(wins)
    if unread.any():
        row = int(np.flatnonzero(unread)[0])
        raise DataError(
            f"row {row} (counted from 0) of column {outcome.name!r} holds"
            f" {outcome.values[outcome.code[row]]!r}, which is neither side ({int(unread.sum())}"
            f" such row(s)); expected {expected}. Spell other values out: outcomes={{'first': ...,"
            f" 'second': ..., 'tie': ...}}, for {sides[0]!r}, {sides[1]!r} and a tie",
            parameter="outcome",
            value=outcome.name,
            problem=(
                f"holds {outcome.values[outcome.code[row]]!r} in row {row} (counted from 0), which"
                f" is neither side ({int(unread.sum())} such row(s))"
            ),
            expected=f"expected {expected}; spell other values out",
        )

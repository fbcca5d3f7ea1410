"""Steps of reading a table of votes or ratings, and the errors about what its rows say together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int

from raters.errors import refuse_data
from raters.judgements.counts import Codes, Mask, Numbers
from raters.judgements.names import Names, check_text, name_text, shorten, shown
from raters.judgements.reading.columns import Column, read_number, where

Ties = Literal["error", "drop", "half", "keep"]

_FIRST_WORDS = ("first", "left", "a", "item_a", "model_a", "true", "win")
_SECOND_WORDS = ("second", "right", "b", "item_b", "model_b", "false", "loss")
# Words of the two sides that also occur as parts of names of columns.
_SIDES = (("first", "second"), ("left", "right"), ("a", "b"))
_TIE = re.compile(r"(tie|tied|draw|equal|both|½)([^a-z].*)?", re.DOTALL)
_NUMBERS = {1.0: 1.0, 0.0: 0.0, 0.5: 0.5}


def settle_ties(wins: Numbers, ties: Ties, column: str) -> Mask:
    """Mask of the rows to keep under the policy."""
    tied = wins == 0.5
    if ties == "error" and tied.any():
        refuse_data(
            "ties",
            "error",
            f"does not allow the ties in column {column!r}, {where(tied)}",
            "'drop' leaves them out, 'half' gives each side half a vote, 'keep' makes them an"
            " answer of their own, for a model of ties",
        )
    if ties != "drop":
        return np.ones(len(wins), dtype=bool)
    if tied.all():
        problem = f"leaves no vote: column {column!r} has ties only"
        refuse_data("ties", "drop", problem, "'half' keeps them")
    return np.asarray(~tied)


def read(
    outcome: Column,
    first: tuple[Column, Codes],
    second: tuple[Column, Codes],
    items: tuple[Any, ...],
    spelled: Mapping[str, Any] | None,
) -> Numbers:
    """1 where the first side won, 0 where the second did, 0.5 for a tie; `first` and `second` come
    with their item codes."""
    sides = (first[0].name, second[0].name)
    if spelled is not None:
        return _read(outcome, _spelled(outcome, spelled)[outcome.code])
    as_word = _words(outcome.values, *sides)[outcome.code]
    lookup = {name_text(name): code for code, name in enumerate(items)}
    named = np.array([lookup.get(name_text(value), -1) for value in outcome.values])[outcome.code]
    # The name of an item in the row goes before the word: an item may be called "tie".
    as_name = np.select(
        [named == first[1], named == second[1], as_word == 0.5], [1.0, 0.0, 0.5], np.nan
    )
    by_name, by_word = np.isfinite(as_name), np.isfinite(as_word)
    if by_name.all() and by_word.all() and not np.array_equal(as_name, as_word):
        outcome.refuse(
            "can be read as names of items and as sides, with different results, in"
            f" {where(as_name != as_word)}",
            "spell out which values are which side, or rename the items so that no name is also a"
            " word or number for a side",
            "outcomes={'first': 1, 'second': 0}",
        )
    if by_name.sum() >= by_word.sum():
        return _read(outcome, as_name)
    _refuse_other_sides(outcome, *sides)
    return _read(outcome, as_word)


def _refuse_other_sides(outcome: Column, first: str, second: str) -> None:
    """Raise where a word for a side stands in the name of the column of the other side."""
    sides = {first.lower(), second.lower()}
    words = {str(value).strip().lower() for value in outcome.values} - sides
    parts = [set(re.split(r"[^a-z0-9]+", name.lower())) for name in (first, second)]
    for one, other in _SIDES:
        ends = (f"_{one}", f"_{other}")
        either = sorted(word for word in words if word in (one, other) or word.endswith(ends))
        if either and other in parts[0] and one in parts[1]:
            stem = either[0].removesuffix(one if either[0].endswith(one) else other)
            outcome.refuse(
                f"holds {either[0]!r}, which means one side by the place of {first!r} and"
                f" {second!r}, and the other by their names",
                f"name the columns the other way round (first={second!r}, second={first!r}), or say"
                " which values are which side",
                f"outcomes={{'first': {stem + other!r}, 'second': {stem + one!r}}}",
            )


def _words(values: list[Any], first_column: str, second_column: str) -> Float[np.ndarray, " value"]:
    """Outcome of each distinct value when it is read as a word or number; NaN when nothing."""
    lowered = [str(value).strip().lower() for value in values]
    numbers = [read_number(word) for word in lowered]
    coded = {number for number in numbers if not np.isnan(number)}
    # 1 and 2 number the sides; beside a 0 (or any other number) a 2 could mean anything.
    meaning = {1.0: 1.0, 2.0: 0.0} if 2.0 in coded and coded <= {1.0, 2.0} else _NUMBERS
    columns = {first_column: 1.0, second_column: 0.0}
    loose = {name.lower(): side for name, side in columns.items()}
    loose = loose if len(loose) == 2 else {}

    def reading(value: Any, word: str, number: float) -> float:
        if str(value) in columns:
            return columns[str(value)]
        if word in loose:
            return loose[word]
        if not np.isnan(number):
            return meaning.get(number, np.nan)
        if word in _FIRST_WORDS or word in _SECOND_WORDS:
            return float(word in _FIRST_WORDS)
        return 0.5 if _TIE.fullmatch(word) else np.nan

    return np.array([reading(*entry) for entry in zip(values, lowered, numbers, strict=True)])


def _spelled(outcome: Column, spelled: Mapping[str, Any]) -> Float[np.ndarray, " value"]:
    """Outcome of each distinct value under a mapping that the user wrote."""
    sides = {"first": 1.0, "second": 0.0, "tie": 0.5}
    if not isinstance(spelled, Mapping) or not {"first", "second"} <= set(spelled) <= set(sides):
        refuse_data(
            "outcomes",
            dict(spelled) if isinstance(spelled, Mapping) else spelled,
            "does not say what the outcomes mean",
            "give values for 'first' and 'second', and maybe 'tie'",
            instead="outcomes={'first': 1, 'second': 2, 'tie': 0}",
        )
    meaning: dict[str, float] = {}
    for key, values in spelled.items():
        for value in values if isinstance(values, (list, tuple, set, frozenset)) else [values]:
            check_text([value], "outcomes")
            if meaning.setdefault(name_text(value), sides[key]) != sides[key]:
                refuse_data("outcomes", value, "has two meanings", "each value can have one")
    return np.array([meaning.get(name_text(value), np.nan) for value in outcome.values])


def _read(outcome: Column, wins: Numbers) -> Numbers:
    """Outcomes in single precision, all of which are known."""
    outcome.refuse_rows(
        np.isnan(wins),
        "it must hold the item in the first or second column of its row, the name of one of these"
        " columns, 'first'/'second', 1/0, or 'tie'; spell other values out",
        "outcomes={'first': ..., 'second': ..., 'tie': ...}",
        ", which is neither side",
    )
    votes: np.ndarray = wins.astype(np.float32)
    return votes


_MAX_PAIRS = 50_000_000


def shape(given: dict[str, Any], outcomes: Any) -> tuple[str, str]:
    """The roles of the two sides; raises unless exactly one shape of table was described."""
    named = {role: shown(name) for role, name in given.items() if name is not None}
    one, other = {"winner", "loser"}, {"first", "second", "outcome"}
    if not (set(named) == other or (set(named) == one and outcomes is None)):
        listed = ", ".join(f"{role}={name}" for role, name in named.items()) or "neither"
        refuse_data(
            "winner",
            named.get("winner"),
            f"is no whole description of votes beside the other columns ({listed})",
            "name the winner and the loser; or the item shown first, the one shown second, and the"
            " outcome; of one rating per item make comparisons",
            instead="rt.Comparisons.from_ratings(table, item=..., rating=...)",
        )
    return ("winner", "loser") if set(named) == one else ("first", "second")


def check_items(left: Codes, right: Codes, names: Names, columns: tuple[Column, Column]) -> None:
    """`DataError` for rows that compare an item with itself, and for columns that do not name
    items."""
    one, other = columns
    if (same := left == right).any():
        one.refuse(
            f"names {names[left[np.argmax(same)]]!r} in {where(same)}, and so does `{other.role}`",
            "a vote needs two items; leave those rows out",
            f"frame = frame[frame[{one.name!r}] != frame[{other.name!r}]]",
        )
    if len(names) > max(1000, len(left)):
        one.refuse(
            f"and `{other.role}` hold {len(names):,} different items in {len(left):,} rows"
            f" ({shorten(names, 3)}), so most are compared once",
            "name the columns of the items, not of row numbers or texts",
        )


def pairs_within(group: Codes) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
    """All pairs of rows of the same group."""
    sizes = np.bincount(group).astype(np.int64)
    check_number(int((sizes * (sizes - 1) // 2).sum()), "rating")
    order, starts = np.argsort(group, kind="stable"), np.cumsum(sizes) - sizes
    pieces = []
    for size in np.unique(sizes):  # One set of positions serves all groups of a size.
        rows = order[starts[sizes == size][:, None] + np.arange(size)]
        pieces.append(rows[:, np.stack(np.triu_indices(size, 1))].transpose(1, 0, 2).reshape(2, -1))
    one, two = np.concatenate(pieces, axis=1)
    return one, two


def check_number(pairs: int, role: str) -> None:
    if pairs > _MAX_PAIRS:
        refuse_data(
            role,
            problem=f"would become {pairs:,} comparisons",
            expected=f"at most {_MAX_PAIRS:,} are made: take a sample of annotators, or fewer items"
            " of each",
        )

"""Steps of reading choices from sets: what was chosen and offered, and the errors about a set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from raters.errors import refuse_data
from raters.errors.validation import is_list
from raters.judgements.names import (
    Names,
    alike,
    check_once,
    check_ordered,
    name_list,
    name_text,
    shorten,
    shown,
)
from raters.judgements.reading.columns import (
    Column,
    column_names,
    first_row,
    read_list,
    read_numbers,
    repeated,
    where,
)

#: How columns of alternatives are given, by parameter.
EXAMPLES = {
    "features": "features={'price': {'car': 'price.car', 'train': 'price.train'}}",
    "available": "available={'car': 'car_available'}",
}


class Offers(NamedTuple):
    """Rows of a table of choices: one for each alternative of each set."""

    group: Int[np.ndarray, " offer"]
    alternative: Int[np.ndarray, " offer"]
    annotator: Int[np.ndarray, " offer"]
    chosen: Float[np.ndarray, " offer"] | None
    features: Float[np.ndarray, "offer feature"]

    def in_order(self) -> Offers:
        """The same rows, sorted by set and alternative."""
        order = np.lexsort((self.alternative, self.group))
        columns: Any = (None if column is None else column[order] for column in self)
        return Offers(*columns)


class SetNames(NamedTuple):
    """Names of sets and of alternatives, for messages."""

    sets: Names
    alternatives: Names


# ---------------------------------------------------------------- what was chosen


def chosen(column: Column, *, counted: bool) -> Float[np.ndarray, " offer"]:
    """A column of what was chosen: 1 and 0, or how often each alternative was."""
    truth = {"true": 1.0, "false": 0.0}
    values = [truth.get(name_text(value).strip().lower(), value) for value in column.values]
    numbers = read_numbers(Column(column.name, column.role, column.code, values))
    most = np.inf if counted else 1.0
    wrong = (numbers != np.round(numbers)) | (numbers < 0) | (numbers > most)
    if wrong.any():
        column.refuse(
            f"holds {shown(column.values[column.code[np.argmax(wrong)]])} in {where(wrong)}",
            "it must hold 1 for the alternative chosen from a set and 0 for the others, or how"
            " often each was chosen, with `counted`",
            None if counted else "counted=True",
        )
    return numbers


def check_fitted(column: Column, alternatives: Names) -> None:
    """Raise for an alternative that none of those that were fitted is."""
    known = {name_text(name) for name in alternatives}
    if new := [value for value in column.values if name_text(value) not in known]:
        column.refuse(
            f"holds {shown(new[0])}, first in row {first_row(column, new[0])} (counted from 0),"
            " which is none of the alternatives that were fitted",
            f"these are {shorten(alternatives)}: nothing is known of the constant of another; fit"
            " it as well, with at least one set that offers it",
        )


def check_sets(offers: Offers, names: SetNames, *, counted: bool) -> None:
    """Raise unless each set has two alternatives or more, each once, and what was chosen."""
    group, num_sets = offers.group, len(names.sets)
    if (twice := repeated(group, offers.alternative)).any():
        row = int(np.argmax(twice))
        refuse_data(
            "alternative",
            names.alternatives[offers.alternative[row]],
            f"has two rows in set {names.sets[group[row]]!r} ({int(twice.sum())} such row(s))",
            "keep one row for each alternative of a set; is `set` the column of one choice"
            " situation, and not of a person?",
        )
    size = np.bincount(group, minlength=num_sets)
    _refuse_sets(
        size == 1,
        names,
        "has one alternative, which says nothing: it had to be chosen",
        "leave out such sets, or add the rows of what was offered and not chosen",
    )
    if offers.chosen is None:
        return
    total = np.bincount(group, offers.chosen, num_sets)
    _refuse_sets(
        total == 0,
        names,
        "has no alternative that was chosen",
        "a set needs one; give a choice of none of them a row of its own, such as 'none'",
    )
    if not counted:
        _refuse_sets(
            total > 1,
            names,
            "has two alternatives or more that were chosen",
            "one is chosen from a set; give each choice a set of its own, or pass `counted`"
            " where the column holds how often each was chosen",
        )


def _refuse_sets(
    wrong: Bool[np.ndarray, " set"], names: SetNames, problem: str, expected: str
) -> None:
    """`DataError` about the first set that is wrong."""
    if wrong.any():
        name = names.sets[int(np.argmax(wrong))]
        refuse_data("set", name, f"{problem} ({int(wrong.sum())} such set(s))", expected)


# ---------------------------------------------------------------- wide tables


def alternative_names(given: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """Alternatives of a wide table as the column of choices has them, and their names."""
    check_ordered(given, "alternatives")
    names = list(given.values()) if isinstance(given, Mapping) else given
    listed = name_list(names, "alternatives", "alternatives=['train', 'car']")
    values = list(given) if isinstance(given, Mapping) else listed
    for one in (values, listed):
        check_once(one, "alternatives")
    return values, alike([listed])[0]


def choice_codes(column: Column, values: Sequence[Any]) -> Int[np.ndarray, " set"]:
    """Place of each choice among the alternatives."""
    place = {name_text(value): code for code, value in enumerate(values)}
    codes = np.array([place.get(name_text(value), -1) for value in column.values], np.int32)
    if (codes < 0).any():
        other = column.values[int(np.argmax(codes < 0))]
        refuse_data(
            "choice",
            other,
            f"was chosen, first in row {first_row(column, other)} (counted from 0), and is not"
            " among `alternatives`",
            f"these are {shorten(values)}; add it, or leave out those rows",
        )
    places: np.ndarray = codes[column.code]
    return places


def rows_of(frame: Any, columns: Mapping[str, Column], named: Sequence[tuple[str, str]]) -> int:
    """Number of rows of a wide table, by a column that is named; without any, by its first."""
    if columns:
        return len(next(iter(columns.values())))
    first = named[:1] or [("features", name) for name in column_names(frame)[:1]]
    if not first:
        refuse_data("frame", problem="has no columns", expected="give a table with some")
    return len(read_list(frame, first, empty=("features",))[0])


def availability(
    frame: Any, named: Sequence[tuple[int, str]], names: Sequence[Any], rows: int
) -> Bool[np.ndarray, "set alternative"]:
    """Mask of what was offered in each row of a wide table."""
    offered = np.ones((rows, len(names)), bool)
    columns = read_list(frame, [("available", name) for _, name in named], rows=rows)
    for (place, _), column in zip(named, columns, strict=True):
        numbers = read_numbers(column)
        if (wrong := ~np.isin(numbers, (0, 1))).any():
            column.refuse(
                f"holds {numbers[np.argmax(wrong)]:g} in {where(wrong)}",
                "it must hold 1 where the alternative was offered and 0 where it was not",
            )
        offered[:, place] = numbers == 1
    return offered


def check_available(
    offered: Bool[np.ndarray, "set alternative"],
    code: Int[np.ndarray, " set"],
    names: Sequence[Any],
) -> None:
    """Raise when something was chosen that was not offered."""
    wrong = ~offered[np.arange(len(code)), code]
    if wrong.any():
        refuse_data(
            "available",
            names[code[np.argmax(wrong)]],
            f"excludes what was chosen in {where(wrong)}",
            "what was chosen was offered: correct the column, or leave out those rows",
        )


def columns_by_alternative(
    parameter: str, name: Any, columns: Any, names: Sequence[Any]
) -> list[tuple[int, str]]:
    """Place and column of the alternatives, as they are given for a feature or for what was
    offered."""
    place = {name_text(one): code for code, one in enumerate(names)}
    if isinstance(columns, Mapping):
        if unknown := [one for one in columns if name_text(one) not in place]:
            refuse_data(
                parameter,
                unknown[0],
                f"has a column of {name!r}, and is not among the alternatives",
                f"these are {shorten(names)}",
            )
        return [(place[name_text(one)], column) for one, column in columns.items()]
    if not is_list(columns) or len(columns) != len(names):
        refuse_data(
            parameter,
            name,
            f"does not have one column for each of the {len(names)} alternatives",
            f"give {len(names)} columns in their order, or name those that have one",
            instead=EXAMPLES[parameter],
        )
    return list(enumerate(columns))

"""Steps of reading choices from sets: what was chosen and offered, and the errors about a set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Num

from raters.errors import DataError
from raters.errors.validation import is_list
from raters.judgements.names import (
    Names,
    alike,
    check_once,
    check_ordered,
    encode_names,
    name_list,
    name_text,
    shorten,
    shown,
)
from raters.judgements.reading.columns import (
    Column,
    column_names,
    first_row,
    number_of_rows,
    read_columns,
    read_numbers,
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
        taken = None if self.chosen is None else self.chosen[order]
        others = {
            name: column[order] for name, column in self._asdict().items() if name != "chosen"
        }
        return Offers(chosen=taken, **others)


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
        row = int(np.flatnonzero(wrong)[0])
        value = column.values[column.code[row]]
        raise DataError(
            parameter="chosen",
            value=column.name,
            problem=f"holds {shown(value)} in row {row} (counted from 0)",
            expected="it must hold whole numbers from 0 on, how often each alternative was chosen"
            if counted
            else "it must hold 1 for the alternative chosen from a set and 0 for the others",
            instead=None if counted else "counted=True, if it holds how often each was chosen",
        )
    return numbers


def check_fitted(column: Column, alternatives: Names) -> None:
    """Raise for an alternative that none of those that were fitted is."""
    known = {name_text(name) for name in alternatives}
    if new := [value for value in column.values if name_text(value) not in known]:
        raise DataError(
            parameter="alternative",
            value=column.name,
            problem=f"holds {shown(new[0])}, first in row {first_row(column, new[:1])} (counted"
            " from 0), which is none of the alternatives that were fitted",
            expected=f"these are {shorten(alternatives)}: nothing is known of the constant of"
            " another; fit it as well, with at least one set that offers it",
        )


def check_sets(offers: Offers, names: SetNames, *, counted: bool) -> None:
    """Raise unless each set has two alternatives or more, each once, and what was chosen."""
    group, num_sets = offers.group, len(names.sets)
    twice = (np.diff(group) == 0) & (np.diff(offers.alternative) == 0)
    if twice.any():
        row = int(np.flatnonzero(twice)[0])
        alternative = names.alternatives[offers.alternative[row]]
        raise DataError(
            parameter="alternative",
            value=alternative,
            problem=f"has two rows in set {names.sets[group[row]]!r}"
            f" ({int(twice.sum())} such row(s))",
            expected="keep one row for each alternative of a set; is `set` the column of one choice"
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
        sets = [names.sets[code] for code in np.flatnonzero(wrong)]
        raise DataError(
            f"set {sets[0]!r} {problem} ({len(sets)} such set(s): {shorten(sets)});"
            f" {expected.replace('`counted`', 'counted=True')}",
            parameter="set",
            value=sets[0],
            problem=f"{problem} ({len(sets)} such set(s))",
            expected=expected,
        )


# ---------------------------------------------------------------- long tables


def of_sets(
    values: Num[np.ndarray, "row ..."],
    group: Int[np.ndarray, " row"],
    sets: Names,
    parameter: str,
    columns: Sequence[str],
) -> Num[np.ndarray, "set ..."]:
    """Values of rows that are the same for all alternatives of a set, one for each set."""
    first = np.full(len(sets), -1)
    first[group[::-1]] = np.arange(len(group))[::-1]
    each: np.ndarray = values[first]
    differs = (values != each[group]).reshape(len(group), -1)
    if differs.any():
        row, column = np.argwhere(differs)[0]
        raise DataError(
            parameter=parameter,
            value=columns[column],
            problem=f"has several values in the set {sets[group[row]]!r}: row {row} (counted from"
            f" 0) differs from its first row ({int(differs.any(axis=1).sum())} such row(s))",
            expected="a set belongs to one chooser, whose columns have one value in all its rows;"
            " what differs between alternatives belongs to `features`",
        )
    return each


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
        other = [value for value, code in zip(column.values, codes, strict=True) if code < 0]
        raise DataError(
            parameter="choice",
            value=other[0],
            problem=f"was chosen, first in row {first_row(column, other[:1])} (counted from 0), and"
            " is not among `alternatives`"
            + (f" ({len(other)} such names)" if len(other) > 1 else ""),
            expected=f"these are {shorten(values)}; add it, or leave out those rows",
        )
    places: np.ndarray = codes[column.code]
    return places


def rows_of(
    frame: Any, columns: Mapping[str, Column], available: Any, features: Any, names: Sequence[Any]
) -> int:
    """Number of rows of a wide table, by a column that is named; without any, by its first."""
    if columns:
        return len(next(iter(columns.values())).code)
    by_alternative = [("available", "available", available or {})]
    if isinstance(features, Mapping):
        by_alternative += [("features", name, own) for name, own in features.items()]
    named = [name for one in by_alternative for _, name in columns_by_alternative(*one, names)]
    there = column_names(frame)
    if not there:
        raise DataError("the table has no columns")
    return number_of_rows(frame, next((name for name in named if name in there), there[0]))


def check_length(parameter: str, name: str, number: int, rows: int) -> None:
    """Raise unless a column has as many rows as the others."""
    if number != rows:
        raise DataError(
            parameter=parameter,
            value=name,
            problem=f"is a column of another length than {rows}",
            expected="every column needs one value per row",
        )


def availability(
    frame: Any, columns: Mapping[Any, str] | None, names: Sequence[Any], rows: int
) -> Bool[np.ndarray, "set alternative"]:
    """Mask of what was offered in each row of a wide table."""
    offered = np.ones((rows, len(names)), bool)
    for place, column in columns_by_alternative("available", "available", columns or {}, names):
        numbers = read_numbers(read_columns(frame, available=column)["available"])
        check_length("available", column, len(numbers), rows)
        if (wrong := ~np.isin(numbers, (0, 1))).any():
            row = int(np.flatnonzero(wrong)[0])
            raise DataError(
                parameter="available",
                value=column,
                problem=f"holds {numbers[row]:g} in row {row} (counted from 0)",
                expected="it must hold 1 where the alternative was offered and 0 where it was not",
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
        row = int(np.flatnonzero(wrong)[0])
        raise DataError(
            parameter="available",
            value=names[code[row]],
            problem=f"excludes what was chosen in row {row} (counted from 0;"
            f" {int(wrong.sum())} such row(s))",
            expected="what was chosen was offered: correct the column, or leave out those rows",
        )


def columns_by_alternative(
    parameter: str, name: str, columns: Mapping[Any, str] | Sequence[str], names: Sequence[Any]
) -> list[tuple[int, str]]:
    """Columns of the alternatives, as they are given for a feature or for what was offered."""
    place = {name_text(one): code for code, one in enumerate(names)}
    if isinstance(columns, Mapping):
        if unknown := [one for one in columns if name_text(one) not in place]:
            raise DataError(
                parameter=parameter,
                value=unknown[0],
                problem=f"has a column of {name!r}, and is not among the alternatives",
                expected=f"these are {shorten(names)}",
            )
        return [(place[name_text(one)], column) for one, column in columns.items()]
    if not is_list(columns) or len(columns) != len(names):
        raise DataError(
            parameter=parameter,
            value=name,
            problem=f"does not have one column for each of the {len(names)} alternatives",
            expected=f"give {len(names)} columns in their order, or name those that have one",
            instead=EXAMPLES[parameter],
        )
    return list(enumerate(columns))


def annotator_codes(
    columns: Mapping[str, Column], known: Iterable[Any] | None, rows: int
) -> tuple[Int[np.ndarray, " row"], Names]:
    """Codes and names of the annotators; without a column all rows are by one of the name
    ``all``."""
    if "annotator" in columns:
        (who,), names = encode_names([columns["annotator"]], known, "annotator")
        return who, names
    if known is not None:
        raise DataError(
            parameter="annotator",
            problem="is not given, and a list of annotators is",
            expected="say which column holds those names",
        )
    return np.zeros(rows, np.int32), ("all",)

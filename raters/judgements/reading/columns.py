"""The border, where every reader reads any table: columns as codes, text and numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from numbers import Integral
from typing import Any, NoReturn

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from jaxtyping import Num

from raters.errors import DataError, refuse_data
from raters.errors.validation import nearest
from raters.judgements import names as naming
from raters.judgements.counts import Codes, Mask, Numbers, exact
from raters.judgements.names import Names, name_text, shorten, shown


@dataclass(frozen=True)
class Column:
    """One column of a table in one role: row m holds ``values[code[m]]``, nothing for −1."""

    name: str
    role: str
    code: Codes
    values: list[Any]

    def __len__(self) -> int:
        return len(self.code)

    def rows(self, rows: Mask) -> Column:
        """The same column of some rows."""
        return dataclasses.replace(self, code=self.code[rows])

    def only(self, rows: Mask) -> Column:
        """The same column with empty cells in the other rows."""
        return dataclasses.replace(self, code=np.where(rows, self.code, -1))

    def refuse(self, problem: str, expected: str, instead: str | None = None) -> NoReturn:
        """Raise an error about this column."""
        refuse_data(self.role, self.name, problem, expected, instead=instead)

    def refuse_rows(
        self, wrong: Mask, expected: str, instead: str | None = None, why: str = ""
    ) -> None:
        """Raise where rows are wrong, with the value of the first of them."""
        if wrong.any():
            value = self.values[self.code[np.argmax(wrong)]]
            self.refuse(f"holds {shown(value)} in {where(wrong)}{why}", expected, instead)


class Columns(dict[str, Column]):
    """Columns of one table by role, or lists of them where a role has several; of one length."""

    def __init__(self, read: Sequence[Column], several: Iterable[str]) -> None:
        self.rows = len(read[0])
        self.lists: dict[str, list[Column]] = {role: [] for role in several}
        super().__init__((column.role, column) for column in read if column.role not in several)
        for column in read:
            if column.role in self.lists:
                self.lists[column.role].append(column)

    def codes(self, role: str, known: Iterable[Any] | None = None) -> tuple[Any, Names]:
        """Codes and names in the column of a role; without it None, and no names."""
        if role not in self:
            return None, ()
        (code,), names = naming.encode_names([self[role]], known, role)
        return code, names

    def counts(self) -> Numbers | None:
        """Numbers of judgements: whole numbers from 1 to 2**53; None without a column of them."""
        if "count" not in self:
            return None
        column = self["count"]
        numbers = read_numbers(column)
        # The float of 2**53 + 1 is that of 2**53.
        exactly = np.array([_is_at_most(value, 2**53) for value in column.values])[column.code]
        wrong = (numbers < 1) | (numbers != np.round(numbers)) | ~exactly
        expected = "it must hold whole numbers from 1 to 2**53; leave out rows without judgements,"
        column.refuse_rows(wrong, f"{expected} and round weights")
        return exact(numbers)

    def annotators(
        self, known: Iterable[Any] | None, once: str = "", each: Sequence[Any] | None = None
    ) -> tuple[Codes, Names]:
        """Codes and names of annotators, one named ``all`` without a column; warns of row
        numbers."""
        if "annotator" not in self:
            if known is not None:
                problem = "is not given, and a list of annotators is"
                expected = "say which column holds those names"
                refuse_data("annotator", problem=problem, expected=expected)
            if each is not None:
                return np.arange(len(each), dtype=np.int32), tuple(each)
            return np.zeros(self.rows, np.int32), ("all",)
        who, names = self.codes("annotator", known)
        if once and len(names) > 1000 and len(names) > 0.8 * self.rows:
            column = f"column {self['annotator'].name!r}"
            many = f"holds {len(names):,} different annotators in {self.rows:,} rows"
            advice = "is it a row number or a time? Give the column that names who judged"
            naming.warn_data(f"{column} {many}, so most {once}; {advice}")
        return who, names


def read_columns(
    table: Any,
    required: Mapping[str, Any] = {},
    *,
    several: Mapping[str, Iterable[Any]] = {},
    empty: Collection[str] = (),
    part_of: str | None = None,
    **optional: Any,
) -> Columns:
    """The columns named, by role, without missing values but in roles that may have empty cells; a
    row that lacks a part of a group named by `part_of` leaves with the group."""
    given = {role: name for role, name in optional.items() if name is not None}
    roles = {**required, **given}
    owner: dict[str, str] = {}
    for role, name in roles.items():
        other = owner.setdefault(column_name(role, name), role)
        if other != role:
            problem = f"is the column of `{other}` as well"
            refuse_data(role, name, problem, "name one column for each")
    wanted = [*roles.items(), *((role, name) for role, names in several.items() for name in names)]
    if not wanted:
        refuse_data("frame", problem="has no columns", expected="give a table with some")
    names, fetch = _opened(table, [column_name(role, name) for role, name in wanted])
    for role, name in wanted:
        if name not in names:
            has = f"it has {shorten(names, 20)}{did_you_mean(name, names, 0.5)}"
            refuse_data(role, name, "names no column of the table", has)
    arrays = [_array(fetch(name), name, role) for role, name in wanted]
    for (role, name), array in zip(wanted, arrays, strict=True):
        if len(array) != (number := len(arrays[0])):
            problem = f"has {len(array)} rows, and the columns before it {number}"
            refuse_data(role, name, problem, "every column needs one value per row")
        if not len(array) and role not in empty:
            refuse_data(role, name, "has no rows, as the table is empty", "give at least one")
    named = zip(wanted, arrays, strict=True)
    read = [as_column(a, name, role, role in empty, part_of) for (role, name), a in named]
    if len(read) > 1:
        _check_headings(read)
    return Columns(read, several)


def did_you_mean(name: str, names: Iterable[str], least: float = 0.6) -> str:
    """Hint at the nearest of some names, whatever their case; empty where none is near."""
    by_lower = {one.lower(): one for one in names}
    near = nearest(name.lower(), by_lower, least)
    return f"; did you mean {by_lower[near]!r}?" if near else ""


def column_names(table: Any) -> list[str]:
    """Names of all columns of a table, as `read_columns` takes it."""
    return _opened(table, [])[0]


def matching(table: Any, wanted: Any, role: str) -> list[str]:
    """Names of columns; those that a pattern such as ``item*`` matches, in their order."""
    names, listed = column_names(table), []
    for pattern in naming.name_list(wanted, role, f"{role}=['{role}*']"):
        matched = [name for name in names if fnmatchcase(name, column_name(role, pattern))]
        if pattern in names or not any(sign in pattern for sign in "*?["):
            matched = [pattern]
        elif not matched:
            problem, has = "matches no column of the table", f"it has {shorten(names, 20)}"
            refuse_data(role, pattern, problem, has)
        listed += matched
    return listed


def is_column(value: Any) -> bool:
    """True for a value that holds several, such as a column of a mapping or a pair."""
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes))


def column_name(role: str, name: Any) -> str:
    """The name of a column, as it is given for a role."""
    if not isinstance(name, str):
        problem = "is not given" if name is None else "is no name of a column"
        refuse_data(role, shown(name), problem, "name one column", instead=f"{role}='{role}'")
    return name


def _check_headings(columns: Sequence[Column]) -> None:
    """Raise where there are rows in which each column holds its own name."""
    if all(column.name in column.values for column in columns):
        own = [column.code == column.values.index(column.name) for column in columns]
        rows, name = np.logical_and.reduce(own), columns[0].name
        expected = "remove the headings of a file that was put behind another"
        line = f"frame = frame[frame[{name!r}] != {name!r}]"
        refuse_where(
            columns[0], rows, "holds its own name, as the other columns do,", expected, line
        )


def where(rows: Mask) -> str:
    """The first of some rows, and how many there are, in words."""
    return f"row {int(np.argmax(rows))} (counted from 0; {int(rows.sum())} such row(s))"


def refuse_where(
    of: Column | str, wrong: Mask, problem: str, expected: str, instead: str | None = None
) -> None:
    """Raise a `DataError` about a column or a parameter for the first of some rows."""
    if wrong.any():
        subject = (of,) if isinstance(of, str) else (of.role, of.name)
        problem = f"{problem} in {where(wrong)}"
        refuse_data(*subject, problem=problem, expected=expected, instead=instead)


def repeated(*codes: Codes) -> Mask:
    """Mask of the rows that equal an earlier one in all of some columns of codes."""
    return np.asarray(pd.DataFrame(dict(enumerate(codes))).duplicated())


def place(column: Column, known: Names, plural: str, advice: str) -> Codes:
    """The codes of a column among the names known, −1 where it is empty."""
    lookup = {name_text(name): code for code, name in enumerate(known)}
    table = np.array([*(lookup.get(name_text(value), -1) for value in column.values), -1], np.int32)
    code: np.ndarray = table[column.code]
    wrong = (code < 0) & (column.code >= 0)
    if wrong.any():
        near = did_you_mean(name_text(column.values[column.code[np.argmax(wrong)]]), lookup)
        why = f", which is none of the {plural} {shorten(map(repr, known))}"
        column.refuse_rows(wrong, f"{advice}{near}", why=why)
    return code


def one_each(
    unit: Codes, column: Column, values: Num[np.ndarray, " row"], names: Sequence[Any]
) -> Num[np.ndarray, " unit"]:
    """The value in a column of each name, −1 if its cells are empty; an error for several."""
    rows = np.flatnonzero(column.code >= 0)
    first = np.full(len(names), -1)
    first[unit[rows[::-1]]] = rows[::-1]  # of several assignments to one place the last stays
    wrong = np.zeros(len(values), bool)
    wrong[rows] = values[rows] != values[first[unit[rows]]]
    if wrong.any():
        row = int(np.argmax(wrong))
        one, other = (column.values[column.code[at]] for at in (first[unit[row]], row))
        problem = f"holds several values for {names[unit[row]]!r}: {one!r} and, in {where(wrong)},"
        column.refuse(f"{problem} {other!r}", "keep one for each")
    return np.where(first >= 0, values[first], -1)


# ---------------------------------------------------------------- from a table to arrays


def _opened(table: Any, wanted: Sequence[str]) -> tuple[list[str], Callable[[str], Any]]:
    """The names of all columns, and a function that gives one of those wanted."""
    if isinstance(table, Mapping):
        by_name = {str(name): values for name, values in table.items()}
        if len(by_name) < len(table):
            _refuse_table(table, "has two columns of one name", "give each a name of its own")
        return list(by_name), by_name.__getitem__
    if isinstance(table, np.ndarray) and table.dtype.names:
        return list(table.dtype.names), table.__getitem__
    try:
        if isinstance(table, pd.DataFrame) and not all(isinstance(n, str) for n in table.columns):
            table = table.set_axis(list(map(str, table.columns)), axis=1)
        frame = nw.from_native(table, allow_series=False)
        names = frame.collect_schema().names()
    except TypeError:
        expected = "give a pandas, polars or pyarrow table, or a dict of arrays"
        _refuse_table(table, "has no columns", expected)
    except nw.exceptions.NarwhalsError:
        _refuse_table(table, "has columns that cannot be read", "give each a name of its own")
    frame = frame.select([name for name in dict.fromkeys(wanted) if name in names])
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    return list(names), lambda name: frame[name].to_native()


def _refuse_table(table: Any, problem: str, expected: str) -> NoReturn:
    such = "pandas.read_csv(...), or {'winner': ['a', 'b'], 'loser': ['b', 'c']}"
    refuse_data("frame", shown(table), problem, expected, instead=such)


def _array(values: Any, name: str, role: str) -> Any:
    """A column as a one-dimensional array or pandas column, with one value in each row."""
    try:
        array = _converted(values)
    except Exception as error:  # Whatever a foreign object raises, it is no column.
        problem = f"is no column ({type(error).__name__})"
        refuse_data(role, name, problem, "every row must hold one value")
    if array.ndim != 1:
        refuse_data(role, name, f"has {array.ndim} dimensions", "every row must hold one value")
    return array


def _converted(values: Any) -> Any:
    if isinstance(values, np.ma.MaskedArray) and values.ndim == 1:
        # What is masked becomes missing.
        values = pd.Series(values.astype(object) if values.dtype.kind in "iu" else values)
    if isinstance(values, (pd.api.extensions.ExtensionArray, pd.Index)):
        values = pd.Series(values)
    values = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(values, nw.Series):
        # A pandas column stays as it is: its own factorisation knows its missing values, categories
        # and strings.
        is_pandas = values.implementation.is_pandas()
        values = values.to_native() if is_pandas else _series_array(values)
    if not isinstance(values, (np.ndarray, pd.Series)):
        values = _list_array(values)
    if isinstance(values, np.ndarray) and values.dtype.kind in "USTV":
        return values.astype(object)
    return values


def _series_array(series: nw.Series[Any]) -> np.ndarray:
    """A column as an array: of objects where floats would merge numbers or categories."""
    wide = series.dtype in (nw.Int128, nw.UInt128)
    coded = series.dtype.is_integer() or series.dtype in (nw.Categorical, nw.Enum)
    if wide or (coded and series.null_count()):
        return np.array(series.to_list(), dtype=object)
    return np.asarray(series.to_numpy())


def _list_array(values: Any) -> np.ndarray:
    """A list as an array: of objects where floats would merge whole numbers."""
    array = np.asarray(values)
    if array.ndim == 1 and array.dtype.kind in "fc":
        listed = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
        if any(isinstance(value, Integral) and abs(int(value)) > 2**53 for value in listed):
            return np.array(listed, dtype=object)
    if array.ndim == 1 and array.dtype.kind in "US" and isinstance(values, (list, tuple)):
        return np.array(values, dtype=object)  # a NaN or a number among texts stays one
    return array


def as_column(
    values: Any, name: str, role: str, empty: bool = False, part_of: str | None = None
) -> Column:
    """An array or pandas column as codes and values; it may have empty cells where that is said."""
    try:
        code, distinct = pd.factorize(values)
        naming.check_text(distinct, role, name)
        known = pd.Series(distinct).tolist()  # an Index holds no numbers of 16 bits
    except DataError:
        raise
    except Exception:  # values that cannot be told apart, such as lists
        problem = f"holds values such as {shown(next(iter(values)))}"
        refuse_data(role, name, problem, "it must hold a name or a number in each row")
    _check_logical(values, name, role)
    if "" in known:
        blank = known.index("")
        del known[blank]
        code = np.where(code == blank, -1, code - (code > blank))
    if not empty and (missing := code < 0).any():
        line = f"frame[frame[{name!r}].notna() & (frame[{name!r}] != '')]"
        if part_of is not None and part_of != name:
            line = f"frame[frame[{name!r}].notna().groupby(frame[{part_of!r}]).transform('all')]"
        problem = f"has {missing.sum()} missing value(s), first in row {np.argmax(missing)}"
        expected, line = "every row needs one; leave those rows out", f"frame = {line}"
        refuse_data(role, name, f"{problem} (counted from 0)", expected, instead=line)
    return Column(name, role, code.astype(np.int32), known)


def _check_logical(values: Any, name: str, role: str) -> None:
    """Raise for True beside other values: a table of hashes takes it for 1, and names for text."""
    if values.dtype != object:
        return
    logical = np.array([isinstance(value, (bool, np.bool_)) for value in values])
    if logical.any() and not (logical | pd.isna(values)).all():
        line = f"frame[{name!r}] = frame[{name!r}].astype(str)"
        problem = "holds True or False beside other values"
        refuse_data(role, name, problem, "make all of them text", instead=line)


# ---------------------------------------------------------------- numbers


def read_numbers(column: Column) -> Numbers:
    """A column as finite floats, NaN where it is empty."""
    numbers: np.ndarray = np.array([*map(read_number, column.values), np.nan])[column.code]
    column.refuse_rows(~np.isfinite(numbers) & (column.code >= 0), "it must hold finite numbers")
    return numbers


def read_ratings(column: Column) -> Numbers:
    """A column of numbers that are compared: below 2**53, where floats tell whole ones apart."""
    ratings = read_numbers(column)
    expected = "it must hold numbers below 2**53 (about 9e15) in size; shift or divide all"
    such, why = f"frame[{column.name!r}].rank()", ", which would equal its neighbours"
    column.refuse_rows(np.abs(ratings) >= 2**53, expected, such, why)
    return ratings


def read_number(value: Any) -> float:
    """A float, NaN for what is none, such as Python's underscores between digits."""
    if isinstance(value, str) and "_" in value:
        return np.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def _is_at_most(value: Any, most: int) -> bool:
    """True if a number, or its text, is at most so large, exactly."""
    return bool((Decimal(value.strip()) if isinstance(value, str) else value) <= most)

"""Columns of any table to integer codes and numbers, with the errors about a column."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Integral
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from raters.errors import DataError
from raters.judgements.counts import exact
from raters.judgements.names import check_text, shown


class Column(NamedTuple):
    """One complete column of a table, used in one role: its row m holds ``values[code[m]]``."""

    name: str
    role: str
    code: Int[np.ndarray, " row"]
    values: list[Any]

    def __len__(self) -> int:
        return len(self.code)


def read_columns(
    table: Any, *, part_of: str | None = None, **roles: str | None
) -> dict[str, Column]:
    """The columns named, by role: complete, one-dimensional and of one length."""
    wanted = {role: column_name(role, name) for role, name in roles.items() if name is not None}
    _check_apart(wanted)
    arrays = _arrays(table, wanted)
    columns = {role: _column(arrays[name], name, role, part_of) for role, name in wanted.items()}
    if len(columns) > 1:
        own = [
            column.code
            == (column.values.index(column.name) if column.name in column.values else -1)
            for column in columns.values()
        ]
        _check_headings(np.logical_and.reduce(own), next(iter(columns.values())))
    return columns


def column_names(table: Any) -> list[str]:
    """Names of all columns of a table, as `read_columns` takes it."""
    return _opened(table, [])[0]


def number_of_rows(table: Any, name: str) -> int:
    """Length of a column of a table, as `read_columns` takes it."""
    return len(_arrays(table, {name: name})[name])


def is_column(value: Any) -> bool:
    """True for a value that holds several, such as a column of a mapping or a pair."""
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes))


def _is_heading(column: Column) -> Bool[np.ndarray, " row"]:
    """True for each row in which a column holds its own name."""
    there = column.name in column.values
    return np.asarray(column.code == (column.values.index(column.name) if there else -1))


def _check_headings(rows: Bool[np.ndarray, " row"], column: Column) -> None:
    """`DataError` where there are rows in which each column holds its own name."""
    if rows.any():
        row = int(np.flatnonzero(rows)[0])
        raise DataError(
            f"row {row} (counted from 0) holds the names of the columns, such as {column.name!r}"
            f" ({int(rows.sum())} such row(s)), as where two files were put together; leave those"
            f" rows out first: frame = frame[frame[{column.name!r}] != {column.name!r}]",
            parameter=column.role,
            value=column.name,
            problem=(
                f"holds its own name in row {row} (counted from 0), as the other columns do"
                f" ({int(rows.sum())} such row(s))"
            ),
            expected="remove the headings of a file that was put behind another",
        )


def _check_apart(wanted: Mapping[str, str]) -> None:
    """`DataError` for a column in two roles."""
    roles: dict[str, str] = {}
    for role, name in wanted.items():
        if (other := roles.setdefault(name, role)) != role:
            raise DataError(
                f"column {name!r} is given for {other}= and for {role}=; name one column for each",
                parameter=role,
                value=name,
                problem=f"is the column of `{other}` as well",
                expected="name one column for each",
            )


def column_name(role: str, name: Any) -> str:
    """The name of a column, as it is given for a role."""
    if isinstance(name, str):
        return name
    left_out = "; it cannot be left out" if name is None else f", not {shown(name)}"
    raise DataError(
        f"{role}= takes the name of a column, such as {role}='{role}'{left_out}",
        parameter=role,
        value=shown(name),
        problem="is not given" if name is None else "is no name of a column",
        expected="name one column",
    )


def _arrays(table: Any, wanted: Mapping[str, str]) -> dict[str, Any]:
    """The columns named, by name: one-dimensional and of one length."""
    names, fetch = _opened(table, list(wanted.values()))
    for role, name in wanted.items():
        if name not in names:
            raise DataError(
                f"there is no column {name!r} (for {role}=); the table has"
                f" {_listed(names)}{_nearest(name, names, role)}",
                parameter=role,
                value=name,
                problem="names no column of the table",
                expected=f"it has {_listed(names)}"
                + _nearest(name, names, role).replace(f"{role}=", ""),
            )
    roles = {name: role for role, name in wanted.items()}
    arrays = {name: _array(fetch(name), name, role) for name, role in roles.items()}
    lengths = {name: len(values) for name, values in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(
            f"the columns differ in length: {lengths}; every column needs one value per row"
        )
    return arrays


def read_places(
    table: Any, places: Sequence[str]
) -> tuple[Bool[np.ndarray, "ranking place"], Column]:
    """Mask of the places of each ranking that hold an item, shape (ranking, place), and those
    items, row by row, as one column."""
    there, column = read_cells(
        table, {f"place {n}": column_name(f"place {n}", name) for n, name in enumerate(places, 1)}
    )
    if (late := there[:, 1:] & ~there[:, :-1]).any():
        row, place = np.argwhere(late)[0]
        raise DataError(
            f"the ranking in row {row} (counted from 0) has an item in column {places[place + 1]!r}"
            f" and none in {places[place]!r} before it ({int(late.any(1).sum())} such ranking(s));"
            " only the last places may be empty",
            parameter="places",
            value=places[place + 1],
            problem=(
                f"has an item in row {row} (counted from 0), and column {places[place]!r} before it"
                f" has none ({int(late.any(1).sum())} such ranking(s))"
            ),
            expected="only the last places may be empty",
        )
    return there, column


def read_cells(
    table: Any, roles: Mapping[str, str], called: str = "places"
) -> tuple[Bool[np.ndarray, "row cell"], Column]:
    """Several columns as one."""
    arrays, names = _arrays(table, roles), list(roles.values())
    held = pd.DataFrame(
        {name: pd.Series(arrays[name]).reset_index(drop=True) for name in names}, dtype=object
    )
    there = (held.notna() & (held != "")).to_numpy(bool)
    column = _column(held.to_numpy(object)[there], called, called)
    headings = (held == names).all(axis=1).to_numpy(bool)
    _check_headings(headings, Column(names[0], called, column.code, column.values))
    return there, column


def _opened(table: Any, wanted: list[str]) -> tuple[list[str], Callable[[str], Any]]:
    """The names of all columns, and a function that gives one of them."""
    if isinstance(table, Mapping):
        by_name = {str(name): values for name, values in table.items()}
        if len(by_name) < len(table):
            raise DataError(
                f"two columns have one name as text, of {shown(list(table))}; give each column its"
                " own name"
            )
        return list(by_name), by_name.__getitem__
    if isinstance(table, np.ndarray) and table.dtype.names:
        return list(table.dtype.names), table.__getitem__
    try:
        if isinstance(table, pd.DataFrame) and not all(isinstance(n, str) for n in table.columns):
            table = table.set_axis(list(map(str, table.columns)), axis=1)
        frame = nw.from_native(table, allow_series=False)
        names = frame.collect_schema().names()
    except TypeError as error:
        also = (
            "; read the file first, for example with pandas.read_csv"
            if isinstance(table, str)
            else ""
        )
        raise DataError(
            f"cannot read columns from a {type(table).__name__}; give a pandas, polars or pyarrow"
            f" table, or a dict of arrays: {{'winner': [...], 'loser': [...]}}{also}"
        ) from error
    except nw.exceptions.NarwhalsError as error:
        raise DataError(
            f"cannot read the columns of this table: {error}; give each column its own name"
        ) from error
    frame = frame.select([name for name in dict.fromkeys(wanted) if name in names])
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()

    def fetch(name: str) -> Any:
        # A pandas column stays as it is: its own factorisation knows its missing values, categories
        # and strings.
        return frame[name].to_native() if _is_pandas(frame) else _series_array(frame[name])

    return list(names), fetch


def _is_pandas(frame: Any) -> bool:
    return bool(frame.implementation.is_pandas())


def _series_array(series: nw.Series[Any]) -> np.ndarray:
    """A column as an array: of objects where it would take whole numbers for floats, which merges
    those beyond 2**53, or missing categories for others."""
    wide = series.dtype in (nw.Int128, nw.UInt128)
    coded = series.dtype.is_integer() or series.dtype in (nw.Categorical, nw.Enum)
    if wide or (coded and series.null_count()):
        return np.array(series.to_list(), dtype=object)
    array: np.ndarray = series.to_numpy()
    return array


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


def _array(values: Any, name: str, role: str) -> Any:
    """A column as a one-dimensional array or pandas column."""
    if isinstance(values, np.ma.MaskedArray) and values.ndim == 1:
        values = values.astype(object) if values.dtype.kind in "iu" else values
        values = pd.Series(values)  # what is masked becomes missing
    if isinstance(values, (pd.api.extensions.ExtensionArray, pd.Index)):
        values = pd.Series(values)
    values = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(values, nw.Series):
        values = values.to_native() if _is_pandas(values) else _series_array(values)
    if not isinstance(values, (np.ndarray, pd.Series)):
        try:
            values = _list_array(values)
        except (ValueError, TypeError) as error:  # such as lists of different lengths
            raise DataError(
                f"column {name!r} holds lists of different lengths, or tables; every row must hold"
                " one value",
                parameter=role,
                value=name,
                problem="has a column of lists or tables",
                expected="every row must hold one value",
            ) from error
    if values.ndim != 1:
        raise DataError(
            f"column {name!r} has {values.ndim} dimensions (shape {values.shape}); every column"
            " must be one-dimensional, with one value per row",
            parameter=role,
            value=name,
            problem=f"has {values.ndim} dimensions",
            expected="every column must be one-dimensional, with one value per row",
        )
    if isinstance(values, np.ndarray) and values.dtype.kind in "UST":
        return values.astype(object)
    return values


def _column(values: Any, name: str, role: str, part_of: str | None = None) -> Column:
    if len(values) == 0:
        raise DataError(
            f"the table is empty: column {name!r} has no rows; give at least one",
            parameter=role,
            value=name,
            problem="has no rows, as the table is empty",
            expected="give at least one",
        )
    try:
        code, distinct_values = pd.factorize(values)
    except (TypeError, ValueError) as error:  # values that cannot be told apart by hashing
        raise DataError(
            f"column {name!r} (for {role}=) holds values such as {shown(values[0])}; expected a"
            " name or a number in each row",
            parameter=role,
            value=name,
            problem=f"holds values such as {shown(values[0])}",
            expected="it must hold a name or a number in each row",
        ) from error
    _check_values(values, distinct_values, name, role)
    distinct = pd.Series(distinct_values).tolist()  # an Index holds no numbers of 16 bits
    missing = code < 0
    if "" in distinct:
        missing = missing | (code == distinct.index(""))
    if missing.any():
        what, line = "those rows out", f"frame[frame[{name!r}].notna() & (frame[{name!r}] != '')]"
        if part_of is not None and part_of != name:
            what = f"those out with all rows of the same {part_of!r}"
            complete = f"frame[{name!r}].notna().groupby(frame[{part_of!r}]).transform('all')"
            line = f"frame[{complete}]"
        raise DataError(
            f"column {name!r} (for {role}=) has {missing.sum()} missing value(s), first in row"
            f" {np.flatnonzero(missing)[0]} (counted from 0); every row needs one. Leave {what}"
            f" first: frame = {line}",
            parameter=role,
            value=name,
            problem=(
                f"has {missing.sum()} missing value(s), first in row {np.flatnonzero(missing)[0]}"
                " (counted from 0)"
            ),
            expected=f"every judgement needs one; leave {what}",
        )
    return Column(name, role, code.astype(np.int32), distinct)


def _check_values(values: Any, distinct: Any, name: str, role: str) -> None:
    """Raise for values that would become one name without a word, or that no file keeps."""
    check_text(distinct, role, name)
    if values.dtype != object:
        return
    # A table of hashes takes True for 1, and names take it for "True".
    logical = (bool, np.bool_)
    others = (value for value in values if not isinstance(value, logical) and not pd.isna(value))
    if any(isinstance(value, logical) for value in values) and (other := next(others, None)):
        raise DataError(
            parameter=role,
            value=name,
            problem=f"holds True or False beside other values, such as {shown(other)}",
            expected="make all of them text",
            instead=f"frame[{name!r}] = frame[{name!r}].astype(str)",
        )


def read_numbers(column: Column) -> Float[np.ndarray, " row"]:
    """A column as finite floats."""
    try:
        numbers = np.array([_number(value) for value in column.values])
    except (TypeError, ValueError, OverflowError) as error:
        wrong = next(value for value in column.values if not _is_number(value))
        raise DataError(
            f"column {column.name!r} (for {column.role}=) must hold numbers; it holds"
            f" {shown(wrong)}, first in row {first_row(column, [wrong])}",
            parameter=column.role,
            value=column.name,
            problem=f"holds {shown(wrong)}, first in row {first_row(column, [wrong])}",
            expected="it must hold numbers",
        ) from error
    if not np.isfinite(numbers).all():
        wrong = column.values[int(np.flatnonzero(~np.isfinite(numbers))[0])]
        raise DataError(
            f"column {column.name!r} (for {column.role}=) must hold finite numbers; row"
            f" {first_row(column, [wrong])} (counted from 0) holds {wrong!r}",
            parameter=column.role,
            value=column.name,
            problem=f"holds {wrong!r} in row {first_row(column, [wrong])} (counted from 0)",
            expected="it must hold finite numbers",
        )
    values: np.ndarray = numbers[column.code]
    return values


def read_counts(column: Column) -> Float[np.ndarray, " row"]:
    """A column of counts: whole numbers from 1 to 2**53."""
    numbers = read_numbers(column)
    # The float of 2**53 + 1 is that of 2**53.
    exactly = np.array([_is_at_most(value, 2**53) for value in column.values])[column.code]
    wrong = (numbers < 1) | (numbers != np.round(numbers)) | ~exactly
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise DataError(
            f"column {column.name!r} (for count=) must hold whole numbers from 1 to 2**53; row"
            f" {row} (counted from 0) holds {numbers[row]:g}. Leave out rows without judgements;"
            " weights are not counts, so round them first",
            parameter="count",
            value=column.name,
            problem=f"holds {numbers[row]:g} in row {row} (counted from 0)",
            expected=(
                "it must hold whole numbers from 1 to 2**53; leave out rows without judgements, and"
                " round weights"
            ),
        )
    return exact(numbers)


def read_ratings(column: Column) -> Float[np.ndarray, " row"]:
    """A column of numbers that are compared: below 2**53, where floats tell whole ones apart."""
    ratings = read_numbers(column)
    if (wrong := np.abs(ratings) >= 2**53).any():
        row = int(np.flatnonzero(wrong)[0])
        raise DataError(
            parameter=column.role,
            value=column.name,
            problem=f"holds {shown(column.values[column.code[row]])} in row {row} (counted from 0),"
            " which would equal its neighbours",
            expected="it must hold numbers below 2**53 (about 9e15) in size; shift or divide all",
            instead=f"frame[{column.name!r}] = frame[{column.name!r}].rank()",
        )
    return ratings


def first_row(column: Column, values: Sequence[Any]) -> int:
    """The first row that holds one of some values."""
    codes = [column.values.index(value) for value in values]
    return int(np.flatnonzero(np.isin(column.code, codes))[0])


def _number(value: Any) -> float:
    """A float; Python's underscores between digits are no numbers of a table."""
    if isinstance(value, str) and "_" in value:
        raise ValueError(value)
    return float(value)


def _is_number(value: Any) -> bool:
    try:
        _number(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _is_at_most(value: Any, most: int) -> bool:
    """True if a number, or its text, is at most so large, exactly."""
    return bool((Decimal(value.strip()) if isinstance(value, str) else value) <= most)


def _nearest(name: str, names: Iterable[str], role: str) -> str:
    by_lower = {key.lower(): key for key in names}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    return f"; did you mean {role}={by_lower[near[0]]!r}?" if near else ""


def _listed(names: Sequence[str], most: int = 20) -> str:
    return f"{sorted(names)[:most]}" + (
        f" and {len(names) - most} more" if len(names) > most else ""
    )

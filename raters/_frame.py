"""Columns of any table to integer codes. Every error about a column is raised here."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from raters.errors import DataError

Names = tuple[Any, ...]


def columns(table: Any) -> dict[str, np.ndarray]:
    """The columns of a pandas, polars or pyarrow table, of a mapping of arrays, or of a structured array."""
    if isinstance(table, Mapping):
        found = {str(name): np.asarray(values) for name, values in table.items()}
    elif isinstance(table, np.ndarray) and table.dtype.names:
        found = {name: table[name] for name in table.dtype.names}
    else:
        try:
            frame = nw.from_native(table, allow_series=False)
        except TypeError as error:
            raise DataError(
                f"cannot read columns from a {type(table).__name__}; give a pandas, polars or pyarrow table, "
                "or a dict of arrays: {'winner': [...], 'loser': [...]}"
            ) from error
        if isinstance(frame, nw.LazyFrame):
            frame = frame.collect()
        found = {name: frame[name].to_numpy() for name in frame.columns}
    for name, values in found.items():
        if values.ndim != 1:
            raise DataError(f"column {name!r} has {values.ndim} dimensions; every column must be one-dimensional")
    lengths = {name: len(values) for name, values in found.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"the columns differ in length: {lengths}; every column needs one value per row")
    return found


def column(found: Mapping[str, np.ndarray], name: str, role: str) -> np.ndarray:
    """One column by name, complete (no missing value); an unknown name is answered with the nearest one."""
    if not isinstance(name, str):
        raise DataError(f"{role}= takes the name of a column, not {name!r}")
    if name not in found:
        near = difflib.get_close_matches(name.lower(), {key.lower(): key for key in found}, n=1, cutoff=0.5)
        by_lower = {key.lower(): key for key in found}
        hint = f"; did you mean {role}={by_lower[near[0]]!r}?" if near else ""
        raise DataError(f"there is no column {name!r} (for {role}=); the table has {sorted(found)}{hint}")
    values = found[name]
    if len(values) == 0:
        raise DataError(f"the table is empty: column {name!r} has no rows; give at least one comparison")
    missing = is_missing(values)
    if missing.any():
        rows = np.flatnonzero(missing)
        raise DataError(
            f"column {name!r} has {missing.sum()} missing value(s), first in row {rows[0]}; "
            f"drop those rows first: frame = frame.dropna(subset=[{name!r}])"
        )
    return values


def is_missing(values: np.ndarray) -> np.ndarray:
    """True where a value is None, NaN, NaT or an empty string."""
    if values.dtype.kind in "fc":
        return np.isnan(values)
    if values.dtype.kind in "mM":
        return np.isnat(values)
    if values.dtype.kind == "O":
        return np.fromiter(
            (
                value is None or value == "" or (isinstance(value, float) and value != value)
                if isinstance(value, (str, int, float, type(None)))
                else value is None or str(value) in ("nan", "NaT", "<NA>")
                for value in values
            ),
            dtype=bool,
            count=len(values),
        )
    if values.dtype.kind in "US":
        return values == np.zeros((), values.dtype)[()]
    return np.zeros(len(values), dtype=bool)


def numeric(values: np.ndarray, name: str, role: str) -> np.ndarray:
    """A column as finite floats."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"column {name!r} (for {role}=) must hold numbers; it holds values such as {values[0]!r}") from error
    if not np.isfinite(numbers).all():
        raise DataError(f"column {name!r} (for {role}=) must hold finite numbers")
    return numbers


def counts(values: np.ndarray, name: str) -> np.ndarray:
    """A column of counts: whole numbers, at least 1."""
    numbers = numeric(values, name, "count")
    wrong = (numbers < 1) | (numbers != np.round(numbers))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise DataError(
            f"column {name!r} (for count=) must hold whole numbers of votes, at least 1; "
            f"row {row} holds {numbers[row]:g}. Weights are not counts: drop or round them first"
        )
    return numbers.astype(np.float32)


def encode(groups: Sequence[np.ndarray], known: Iterable[Any] | None, role: str) -> tuple[list[np.ndarray], Names]:
    """Shared integer codes of one or several columns that name the same things, and the names in code order.

    Names are sorted (numbers as numbers), or in the order of ``known`` when that is given.
    """
    values = [_plain(group) for group in groups]
    if len({group.dtype.kind for group in values}) > 1:
        values = [np.array([str(value) for value in group.tolist()], dtype=object) for group in values]
    if known is None and all(group.dtype.kind in "iu" for group in values):
        fast = _encode_integers(values)
        if fast is not None:
            return fast
    lists = [group.tolist() for group in values]
    found = dict.fromkeys(value for group in lists for value in group)
    names = tuple(known) if known is not None else _sorted(found)
    if len(set(names)) != len(names):
        raise DataError(f"{role} names repeat in the list that was given; give each name once")
    lookup = {name: code for code, name in enumerate(names)}
    unknown = [value for value in found if value not in lookup]
    if unknown:
        raise DataError(
            f"{len(unknown)} {role}(s) in the table are not in the list that was given, e.g. {unknown[0]!r}; "
            f"add them, or leave {role}s= out to take the names from the table"
        )
    return [np.fromiter((lookup[value] for value in group), np.int32, len(group)) for group in lists], names


def _plain(values: np.ndarray) -> np.ndarray:
    """Integer-valued floats as integers (a column that once held NaN), everything that is not a number as it is."""
    if values.dtype.kind == "f" and np.all(values == np.round(values)):
        return values.astype(np.int64)
    if values.dtype.kind == "O" and all(isinstance(value, (int, np.integer)) for value in values):
        return values.astype(np.int64)
    if values.dtype.kind in "USTb":
        return values.astype(object)
    return values


def _encode_integers(values: Sequence[np.ndarray]) -> tuple[list[np.ndarray], Names] | None:
    low = min(int(group.min()) for group in values)
    span = max(int(group.max()) for group in values) - low + 1
    if span > 10 * sum(map(len, values)) + 1000:
        return None
    present = np.zeros(span, dtype=bool)
    for group in values:
        present[group - low] = True
    code = np.cumsum(present, dtype=np.int32) - np.int32(1)
    return [code[group - low] for group in values], tuple((np.flatnonzero(present) + low).tolist())


def _sorted(names: Iterable[Any]) -> Names:
    try:
        return tuple(sorted(names))
    except TypeError:
        return tuple(sorted(names, key=str))

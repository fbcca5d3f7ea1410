"""Steps of reading item responses: what is right, and the columns of a wide table."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from raters.errors import DataError
from raters.judgements.names import meaning, name_list, name_text, shorten, shown
from raters.judgements.reading.columns import Column, _opened, column_name, first_row
from raters.judgements.reading.incomplete import filled

_EXPECTED = (
    "a response is 1 or True where it is right, and 0 or False where it is wrong; responses on a"
    " scale are rt.GradedResponses, with levels=[...], the lowest first"
)


def right(column: Column) -> Float[np.ndarray, " row"]:
    """A column of responses as 1 for right and 0 for wrong."""
    numbers = np.array([_right(value) for value in column.values])
    if (wrong := np.flatnonzero(np.isnan(numbers))).size:
        value = column.values[wrong[0]]
        where = f"row {first_row(column, [value])} (counted from 0)"
        raise DataError(
            f"column {column.name!r} (for {column.role}=) holds {shown(value)}, first in {where};"
            f" {_EXPECTED}. Say which value is right first: frame[{column.name!r}] ="
            f" frame[{column.name!r}] == ...",
            parameter=column.role,
            value=column.name,
            problem=f"holds {shown(value)}, first in {where}",
            expected=_EXPECTED,
        )
    values: np.ndarray = numbers[column.code].astype(np.float32)
    return values


def _right(value: Any) -> float:
    """1 or 0; NaN for a value that is neither."""
    number = meaning(name_text(value))
    return float(number) if isinstance(number, Decimal) and number in (0, 1) else np.nan


def item_columns(frame: Any, person: str, columns: Sequence[str] | None) -> list[str]:
    """Names of the columns of a wide table that hold responses to an item."""
    names, _ = _opened(frame, [])
    others = [name for name in names if name != column_name("person", person)]
    patterns = ["*"] if columns is None else name_list(columns, "columns", "columns=['item*']")
    for pattern in patterns:
        if not any(_matches(name, pattern) for name in others):
            raise DataError(
                parameter="columns",
                value=pattern,
                problem="names no column of the table beside that of the persons",
                expected=f"it has {shorten(others, 20)}",
            )
    return [name for name in others if any(_matches(name, pattern) for pattern in patterns)]


def _matches(name: str, pattern: Any) -> bool:
    return name == pattern or fnmatchcase(name, name_text(pattern))


def cells(
    frame: Any, names: Sequence[str]
) -> tuple[Int[np.ndarray, " row"], Int[np.ndarray, " row"], Float[np.ndarray, " row"]]:
    """Row of the table, place of the column and response of each cell of a wide table that is not
    empty."""
    _, fetch = _opened(frame, list(names))
    parts = []
    for place, name in enumerate(names):
        values = filled(fetch(name), "columns", name)
        line = np.flatnonzero(values.code >= 0)
        if len(line):
            parts.append((line, np.full(len(line), place, np.int32), right(values)[line]))
    if not parts:
        raise DataError(
            parameter="columns",
            value=list(names)[:5],
            problem="hold no response, as every cell is empty",
            expected=_EXPECTED,
        )
    line, column, correct = (np.concatenate(part) for part in zip(*parts, strict=True))
    return line.astype(np.int32), column, correct

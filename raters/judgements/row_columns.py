"""Columns of rows beside the roles of a kind, such as times; those of text, and of numbers that
single precision does not tell apart, hold codes of levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from raters.errors import refuse_data
from raters.judgements.names import Names, encode_names, match_names, names_array, shorten
from raters.judgements.reading.columns import Column, read_number, read_numbers
from raters.judgements.reading.features import LARGE, distinct, single


def named(columns: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the columns, and those that they have in a table."""
    if isinstance(columns, Mapping):
        return distinct(list(columns), "columns"), tuple(columns.values())
    names = distinct(() if columns is None else columns, "columns")
    return names, names


def fields(read: Sequence[Column], names: tuple[str, ...]) -> dict[str, Any]:
    """Fields of a container: values, names, and the levels of columns of text."""
    values, sizes, every = [], [], list[Any]()
    for column in read:
        levels: Names = ()
        numbers = np.array([read_number(value) for value in column.values])
        if np.isnan(numbers).any() or (np.abs(numbers) >= LARGE).all():  # Text, or seconds.
            (codes,), levels = encode_names([column], None, "columns")
            values.append(codes.astype(np.float64))
        else:
            values.append(read_numbers(column))
        sizes.append(len(levels))
        every += levels
    array = single(np.stack(values, 1), names, "columns") if values else None
    fields: dict[str, Any] = {"columns": array, "column_names": names}
    return fields | {"column_sizes": tuple(sizes), "column_levels": tuple(every)}


def place(data: Any, name: str) -> int:
    """Place of a column."""
    if name not in data.column_names:
        has = f"there are {shorten(data.column_names)}" if data.column_names else "there are none"
        instead = f"{type(data).__name__}.from_frame(table, columns=[{name!r}], ...)"
        refuse_data("columns", name, "is no column of these data", has, instead=instead)
    return int(data.column_names.index(name))


def levels(data: Any, name: str) -> Names:
    """Levels of a column of text; empty for numbers."""
    column = place(data, name)
    start = sum(data.column_sizes[:column])
    return data.column_levels[start : start + data.column_sizes[column]]


def values(data: Any, name: str) -> Any:
    """Numbers of a column, or the codes of its levels."""
    column = data.columns[..., place(data, name)]
    return column.astype(np.int32) if levels(data, name) else column


def written(data: Any, name: str) -> Any:
    """Numbers of a column, or the names of its levels."""
    column, known = np.asarray(values(data, name)), levels(data, name)
    return names_array(known)[column] if known else column


def recoded(data: Any, like: Any) -> dict[str, Any]:
    """Fields in the order and the levels of other data."""
    if not hasattr(like, "column_names"):
        return {}
    changes = {name: getattr(like, name) for name in ("column_names", "column_sizes")}
    changes |= {"column_levels": like.column_levels}
    if like.columns is None:
        return changes | {"columns": None}
    if data.columns is None:
        return changes | {"columns": _usual(data, like)}
    values = []
    for name in like.column_names:
        column, known = np.asarray(data.columns)[:, place(data, name)], levels(like, name)
        if known:
            column = match_names(column.astype(np.int32), levels(data, name), known, name)
        values.append(column)
    return changes | {"columns": np.stack(values, 1).astype(np.float32)}


def _usual(data: Any, like: Any) -> Float[np.ndarray, "row column"]:
    """The middle value of each column among the rows of each judge, for questions without."""
    table = pd.DataFrame(np.asarray(like.columns))
    middle = partial(pd.DataFrame.quantile, q=0.5, interpolation="higher")
    usual = np.tile(middle(table).to_numpy(np.float32), (len(like.judges), 1))
    for judge, rows in table.groupby(np.asarray(like.codes(like.judge))):
        usual[judge] = middle(rows)
    same: Int[np.ndarray, " row"] = match_names(
        np.asarray(data.codes(data.judge)), data.judges, like.judges, like.judge
    )
    return np.asarray(usual[same])

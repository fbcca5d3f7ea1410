"""Columns of a table in which cells may be empty."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from raters.errors import DataError
from raters.judgements.reading.columns import (
    Column,
    _array,
    _column,
    _opened,
    column_name,
    read_columns,
)


def incomplete(frame: Any, role: str, name: str | None, rows: int) -> Column | None:
    """A column that may have missing values, its code −1 there; None when it has nothing else."""
    if name is None:
        return None
    names, fetch = _opened(frame, [column_name(role, name)])
    if name not in names:
        read_columns(frame, **{role: name})  # says which columns there are
    column = filled(fetch(name), role, name)
    if len(column) != rows:
        raise DataError(
            f"column {name!r} has {len(column)} rows, the others {rows}; every column needs one"
            " value per row",
            parameter=role,
            value=name,
            problem=f"has {len(column)} rows, the others {rows}",
            expected="every column needs one value per row",
        )
    return column if column.values else None


def filled(values: Any, role: str, name: str) -> Column:
    """Cells of a column, with the code −1 for those that are empty."""
    cells = pd.Series(_array(values, name, role), dtype=object)
    there = (cells.notna() & (cells != "")).to_numpy(bool)
    code = np.full(len(cells), -1, np.int32)
    if not there.any():
        return Column(name, role, code, [])
    known = _column(cells.to_numpy(object)[there], name, role)
    code[there] = known.code
    return Column(name, role, code, known.values)

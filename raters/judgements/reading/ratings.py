"""Steps of reading ratings: the levels of a scale in their order, and the cells of a wide table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from raters.errors import DataError
from raters.judgements.names import Names, encode_names, name_text, shown
from raters.judgements.reading.columns import Column, _column, _opened, read_ratings
from raters.judgements.reading.incomplete import filled

# A scale has at most so many levels: each needs ratings of its own.
MOST_LEVELS = 20


def scale(column: Column, levels: Iterable[Any] | None) -> tuple[Int[np.ndarray, " row"], Names]:
    """Codes of a column of ratings, and the levels of the scale from the lowest.

    Parameters
    ----------
    column : Column
        Numbers, or names of levels.
    levels : iterable, optional
        All levels, the lowest first. Without it, the different numbers of the column, ascending.

    Returns
    -------
    codes : int array, shape (row,)
    levels : tuple

    Raises
    ------
    DataError
        When a rating is none of the levels; without them, when one is no number; when there are
        fewer than two levels, or more than 20.
    """
    if levels is not None:
        (codes,), names = encode_names([column], levels, "level")
    else:
        codes, names = _numbers(column)
    if not 2 <= len(names) <= MOST_LEVELS:
        few = len(names) < 2
        raise DataError(
            parameter=column.role,
            value=column.name,
            problem=(
                f"holds one rating only, {shown(names[0])}"
                if few
                else f"holds {len(names)} different ratings"
            ),
            expected=(
                "ratings that are all equal tell nothing; name the other levels of the scale"
                if few
                else f"a scale has at most {MOST_LEVELS} levels; put neighbouring ones together"
            ),
            instead=(
                "levels=[1, 2, 3, 4, 5]"
                if few
                else f"frame[{column.name!r}] = pandas.qcut(frame[{column.name!r}], 10,"
                " labels=False, duplicates='drop')"
            ),
        )
    return codes, names


def _numbers(column: Column) -> tuple[Int[np.ndarray, " row"], Names]:
    """Codes and levels of a column of numbers."""
    try:
        number = read_ratings(column)
    except DataError as error:
        raise DataError(
            parameter=column.role,
            value=column.name,
            problem=error.problem,
            expected="ratings are numbers, or levels whose order is given, the lowest first",
            instead=f"levels=[{', '.join(map(repr, map(name_text, column.values[:3])))}, ...]",
        ) from error
    each, code = np.unique(number, return_inverse=True)
    whole = bool((each == np.round(each)).all())
    names = tuple(int(one) if whole else name_text(float(one)) for one in each)
    return code.astype(np.int32), names


def cells(
    frame: Any, names: Sequence[str]
) -> tuple[Int[np.ndarray, " row"], Int[np.ndarray, " row"], Column]:
    """Row of the table, place of the column and value of each cell of a wide table that is not
    empty.

    Parameters
    ----------
    frame : table
    names : sequence of str
        Columns of ratings.

    Returns
    -------
    line, place : int array, shape (row,)
    value : Column

    Raises
    ------
    DataError
        When every cell is empty.
    """
    _, fetch = _opened(frame, list(names))
    parts = []
    for place, name in enumerate(names):
        own = filled(fetch(name), "columns", name)
        line = np.flatnonzero(own.code >= 0)
        each = np.empty(len(own.values), object)
        each[:] = own.values
        parts.append((line, np.full(len(line), place), each[own.code[line]]))
    line, whose, value = (np.concatenate(part) for part in zip(*parts, strict=True))
    if not len(line):
        raise DataError(
            parameter="columns",
            value=list(names)[:5],
            problem="hold no rating, as every cell is empty",
            expected="each column holds one annotator's ratings, a row for each item",
        )
    column = _column(value, ", ".join(names[:3]), "columns")
    return line.astype(np.int32), whose.astype(np.int32), column

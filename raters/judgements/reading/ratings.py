"""Steps of reading ratings: the levels of a scale in their order, and the cells of a wide table."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from raters.errors import DataError, DataWarning
from raters.judgements.names import Names, encode_names, name_text, shorten, shown
from raters.judgements.reading.columns import Column, _column, _opened, read_ratings
from raters.judgements.reading.incomplete import filled

# A scale has at most so many levels: each needs ratings of its own.
MOST_LEVELS = 20


def scale(column: Column, levels: Iterable[Any] | None) -> tuple[Int[np.ndarray, " row"], Names]:
    """Codes of a column of ratings, and the levels of the scale from the lowest."""
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
        words = sorted(map(name_text, column.values))
        raise DataError(
            parameter=column.role,
            value=column.name,
            problem=error.problem,
            expected="ratings are numbers, or levels whose order is given, the lowest first",
            instead=f"levels=[{', '.join(map(repr, words[:5]))}{', ...' * (len(words) > 5)}], in"
            " their order",
        ) from error
    each, code = np.unique(number, return_inverse=True)
    whole = bool((each == np.round(each)).all())
    if whole:
        _warn_of_gaps(each.astype(int))
    names = tuple(int(one) if whole else name_text(float(one)) for one in each)
    return code.astype(np.int32), names


def _warn_of_gaps(levels: Int[np.ndarray, " level"]) -> None:
    """Warn of levels that a scale of whole numbers seems to have, and that nothing was put on."""
    apart = np.diff(levels)
    step = int(np.gcd.reduce(apart)) if len(apart) else 0
    if len(levels) < 3 or step == 0 or (apart == step).all():
        return
    whole = range(int(levels[0]), int(levels[-1]) + 1, step)
    if len(whole) > MOST_LEVELS or len(whole) > 2 * len(levels):
        return  # such as 1, 10, 100: no level seems to be left out
    unused = [level for level in whole if level not in levels]
    by = "" if step == 1 else f", {step}"
    warnings.warn(
        f"nothing is on the level(s) {shorten(unused)} of the scale from {levels[0]} to"
        f" {levels[-1]}, so that those beside are taken for neighbours; where the scale has them,"
        f" write levels=range({whole[0]}, {whole[-1] + 1}{by})",
        DataWarning,
        stacklevel=4,
    )


def cells(
    frame: Any, names: Sequence[str], levels: Iterable[Any] | None
) -> tuple[Int[np.ndarray, " row"], Int[np.ndarray, " row"], Int[np.ndarray, " row"], Names]:
    """Row of the table, place of the column and level of each cell of a wide table that is not
    empty, and the levels of the scale."""
    _, fetch = _opened(frame, list(names))
    own = [filled(fetch(name), "columns", name) for name in names]
    given = None if levels is None else list(levels)
    parts = []
    for place, column in enumerate(own):
        line = np.flatnonzero(column.code >= 0)
        each = np.empty(len(column.values), object)
        each[:] = column.values
        parts.append((line, np.full(len(line), place), each[column.code[line]]))
    line, whose, value = (np.concatenate(part) for part in zip(*parts, strict=True))
    if not len(line):
        raise DataError(
            parameter="columns",
            value=list(names)[:5],
            problem="hold no rating, as every cell is empty",
            expected="each column holds one annotator's ratings, a row for each item",
        )
    together = _column(value, ", ".join(names[:3]), "columns")
    try:
        level, level_names = scale(together, given)
    except DataError as error:
        raise (_of_one_column(own, given) or error) from error
    return line.astype(np.int32), whose.astype(np.int32), level, level_names


def _of_one_column(columns: Sequence[Column], levels: list[Any] | None) -> DataError | None:
    """Error about the column of a wide table that is refused by itself, None where there is none or
    most are."""
    errors = {}
    for column in columns:
        there = column.code >= 0
        if len(column.values) > 1:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DataWarning)
                    scale(
                        Column(column.name, column.role, column.code[there], column.values), levels
                    )
            except DataError as error:
                errors[column.name] = error
    if not errors or len(errors) > len(columns) / 2:
        return None
    name = next(iter(errors))
    others = [column.name for column in columns if column.name not in errors]
    # Rows are those of the table.
    problem = re.sub(r", first in row \d+.*", "", errors[name].problem)
    return DataError(
        parameter="columns",
        value=name,
        problem=problem,
        expected="where it holds no ratings, name the columns that do",
        instead=f"columns=[{', '.join(map(repr, others[:3]))}{', ...' * (len(others) > 3)}]",
    )

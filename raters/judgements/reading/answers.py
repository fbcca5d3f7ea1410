"""Steps of reading who answered what: the levels of a scale, what is right, and the cells of a wide
table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from raters.errors import DataError, refuse_data
from raters.judgements.names import (
    Names,
    encode_names,
    meaning,
    name_list,
    name_text,
    shorten,
    warn_data,
)
from raters.judgements.reading.columns import (
    Column,
    Columns,
    column_name,
    column_names,
    matching,
    read_columns,
    read_ratings,
)

# A scale has at most so many levels: each needs ratings of its own.
MOST_LEVELS = 20


def coded(cls: Any, columns: Columns, known: Mapping[str, Any]) -> dict[str, Any]:
    """Codes and names of the columns of a container but its answers; without a column of annotators
    all rows are by one."""
    fields: dict[str, Any] = {}
    for column, axis in cls.axes.items():
        if axis == "annotator":
            code, names = columns.annotators(known.get(axis), "gave one rating")
        elif column in columns and column != cls.answer:
            code, names = columns.codes(column, known.get(axis))
        else:
            continue
        fields |= {column: code, cls.names[axis]: names}
    return fields


def wide(frame: Any, role: str, name: Any, columns: Sequence[str] | None) -> Columns:
    """Column of the rows of a wide table, and those of its cells, in the order of the table."""
    column_name(role, name)
    there = {one: place for place, one in enumerate(column_names(frame))}
    listed = list(there) if columns is None else matching(frame, columns, "columns")
    cells = sorted({one for one in listed if one != name}, key=lambda one: there.get(one, -1))
    read = read_columns(frame, {role: name}, several={"columns": cells}, empty=("columns",))
    if not any(column.values for column in read.lists["columns"]):
        refuse_data(
            "columns",
            listed[:5],
            "hold no answer",
            f"each must hold the answers of one, a row for each {role}",
        )
    return read


def scale(
    columns: Sequence[Column], levels: Iterable[Any] | None
) -> tuple[list[Int[np.ndarray, " row"]], Names]:
    """Codes of columns of ratings, and the levels of the scale from the lowest."""
    if levels is not None:
        codes, names = encode_names(columns, name_list(levels, "levels"), "level")
    else:
        codes, names = _numbers(columns)
    if not 2 <= len(names) <= MOST_LEVELS:
        longest = max(columns, key=lambda column: len(column.values))
        longest.refuse(
            f"holds {len(names)} different rating(s)",
            f"a scale has 2 to {MOST_LEVELS} levels: name the others, or put neighbours together",
            "levels=[1, 2, 3, 4, 5]",
        )
    return codes, names


def _numbers(columns: Sequence[Column]) -> tuple[list[Int[np.ndarray, " row"]], Names]:
    """Codes and levels of columns of numbers, −1 where they are empty."""
    numbers = []
    for column in columns:
        try:
            numbers.append(read_ratings(column))
        except DataError as error:
            expected = "ratings are numbers, or levels whose order is given, the lowest first"
            column.refuse(error.problem, expected, "levels=['poor', 'fair', 'good']")
    every = np.concatenate(numbers)
    each = np.unique(every[~np.isnan(every)])
    whole = bool((each == np.round(each)).all())
    if whole:
        _warn_of_gaps(each.astype(int))
    names = tuple(int(one) if whole else name_text(float(one)) for one in each)
    codes = [np.where(np.isnan(one), -1, np.searchsorted(each, one)) for one in numbers]
    return [code.astype(np.int32) for code in codes], names


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
    warn_data(
        f"nothing is on the level(s) {shorten(unused)} of the scale from {levels[0]} to"
        f" {levels[-1]}, so that those beside are taken for neighbours; where the scale has them,"
        f" write levels=range({whole[0]}, {whole[-1] + 1}{by})"
    )


def right(column: Column) -> Float[np.ndarray, " row"]:
    """A column of responses as 1 for right and 0 for wrong."""
    truth: dict[Any, float] = {Decimal(1): 1.0, Decimal(0): 0.0}
    numbers = [truth.get(meaning(name_text(value)), np.nan) for value in column.values]
    values: np.ndarray = np.array([*numbers, np.nan], np.float32)[column.code]
    column.refuse_rows(
        np.isnan(values) & (column.code >= 0),
        "a response is 1 or True where it is right, and 0 or False where it is wrong;"
        " responses on a scale are rt.GradedResponses, with levels=[...], the lowest first",
        f"frame[{column.name!r}] = frame[{column.name!r}] == ...",
    )
    return values

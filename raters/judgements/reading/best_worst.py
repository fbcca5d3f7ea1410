"""Steps of reading the best and the worst of items that were shown together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from raters.errors import refuse_data
from raters.judgements.names import Names, shorten
from raters.judgements.reading.columns import Column, read_numbers, where
from raters.judgements.reading.rankings import Table, by_cells, coded


def best_and_worst(
    shown: Sequence[Column], columns: Mapping[str, Column], known: Iterable[Any] | None
) -> tuple[Table, Names]:
    """Answers as rankings: place 1 for the best item, −1 for the worst, 0 for the others."""
    cells, names = coded(shown, known, [columns["best"], columns["worst"]])
    items, top, bottom = cells[:, :-2], cells[:, -2], cells[:, -1]
    if (few := (items >= 0).sum(1) < 2).any():
        refuse_data(
            "offered",
            problem=f"has fewer than two items in {where(few)}",
            expected="the best and the worst are of two items or more; leave those rows out",
        )
    for role, code in {"best": top, "worst": bottom}.items():
        other = ~(items == code[:, None]).any(1)
        other = (code < 0) | other if role == "best" else (code >= 0) & other
        if other.any():
            at = int(np.argmax(other))
            shown_items = shorten([names[item] for item in items[at] if item >= 0])
            columns[role].refuse(
                f"names {names[code[at]] if code[at] >= 0 else 'no item'!r} in {where(other)},"
                f" where the items are {shown_items}",
                "it must hold the name of one of them, and not its number or column",
            )
    if (same := top == bottom).any():
        columns["worst"].refuse(
            f"names what `best` does in {where(same)}",
            "the worst is another item; leave those rows out",
        )
    row, position = np.nonzero(items >= 0)
    item = items[row, position]
    place = np.where(item == top[row], 1, np.where(item == bottom[row], -1, 0))
    return by_cells(row, item, place, len(cells)), names


def with_worst(
    column: Column | None,
    ranking: Int[np.ndarray, " row"],
    names: Names,
    place: Int[np.ndarray, " row"],
) -> Int[np.ndarray, " row"]:
    """Places in a long table, with −1 for the items that a column marks as the worst."""
    if column is None:
        return place
    mark = np.nan_to_num(read_numbers(column))
    several = (mark == 1) & (np.bincount(ranking, mark == 1, len(names))[ranking] > 1)
    problems = {
        "is neither 0 nor 1": ~np.isin(mark, (0, 1)),
        "marks an item that has a rank": (mark == 1) & (place > 0),
        "marks several items as the worst": several,
    }
    for problem, wrong in problems.items():
        if wrong.any():
            column.refuse(
                f"{problem} in {where(wrong)}",
                "it must be 1 for the worst of the items without a rank, one in a ranking at most,"
                " and 0 or nothing for the others",
            )
    return np.where(mark == 1, -1, place).astype(np.int32)

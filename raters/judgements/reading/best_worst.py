"""Steps of reading the best and the worst of items that were shown together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from raters.errors import DataError
from raters.errors.validation import is_list
from raters.judgements.names import Names, encode_names
from raters.judgements.reading.columns import column_name, read_cells, read_numbers
from raters.judgements.reading.incomplete import incomplete
from raters.judgements.reading.rankings import Table, by_cells, matching


def best_and_worst(
    frame: Any,
    offered: Any,
    best: str,
    worst: str,
    known: Iterable[Any] | None,
    **others: str | None,
) -> tuple[Table, Names]:
    """Answers as rankings: place 1 for the best item, −1 for the worst, and 0 for the others
    shown."""
    columns = _columns_of(frame, offered, best=best, worst=worst, **others)
    there, column = read_cells(frame, columns, "offered")
    (code,), names = encode_names([column], known, "item")
    cells = np.full(there.shape, -1, np.int32)
    cells[there] = code
    items, top, bottom = cells[:, :-2], cells[:, -2], cells[:, -1]
    _check_shown(items, names)
    _check_named(items, top, bottom, columns, names)
    row, position = np.nonzero(items >= 0)
    item = items[row, position]
    place = np.where(item == top[row], 1, np.where(item == bottom[row], -1, 0))
    return by_cells(row, item, place, len(cells)), names


def _columns_of(
    frame: Any, offered: Any, best: Any, worst: Any, **others: str | None
) -> dict[str, str]:
    """Column of each role: of the items shown, in order, then of the best and of the worst."""
    listed = matching(frame, offered, "offered")
    if not is_list(listed) or len(listed) < 2:
        raise DataError(
            parameter="offered",
            value=offered,
            problem="does not list the columns of the items that were shown",
            expected="give two or more, or a pattern that matches them",
            instead="offered=['Item*']",
        )
    roles = {
        f"offered {number}": column_name("offered", one) for number, one in enumerate(listed, 1)
    }
    roles |= {"best": column_name("best", best), "worst": column_name("worst", worst)}
    owner: dict[str, str] = {}
    every = roles | {role: name for role, name in others.items() if name is not None}
    for role, name in every.items():
        first = owner.setdefault(name, role)
        if first != role:
            own, other = role.split()[0], first.split()[0]
            raise DataError(
                parameter=own,
                value=name,
                problem="comes twice" if own == other else f"is the column of `{other}` as well",
                expected="name one column for each, and those of the items shown alone",
                instead="offered=['Item*'], best='BestItem', worst='WorstItem'",
            )
    return roles


def _check_shown(items: Int[np.ndarray, "row cell"], names: Names) -> None:
    """Raise where an item is shown twice in a row, or fewer than two are."""
    ordered = np.sort(items, axis=1)
    again = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if again.any():
        row, cell = np.argwhere(again)[0]
        raise DataError(
            parameter="offered",
            problem=f"has {names[ordered[row, cell]]!r} twice in {_where(again.any(1))}",
            expected="an item is shown once in a row; correct those rows, or leave them out",
            instead=_without(again.any(1)),
        )
    if (few := (items >= 0).sum(1) < 2).any():
        raise DataError(
            parameter="offered",
            problem=f"has fewer than two items in {_where(few)}",
            expected="the best and the worst are of two items or more; leave those rows out",
            instead=_without(few),
        )


def _check_named(
    items: Int[np.ndarray, "row cell"],
    top: Int[np.ndarray, " row"],
    bottom: Int[np.ndarray, " row"],
    columns: dict[str, str],
    names: Names,
) -> None:
    """Raise where the best is lacking, one of the two is not among the items, or both are one."""
    if (none := top < 0).any():
        raise DataError(
            parameter="best",
            value=columns["best"],
            problem=f"names no item in {_where(none)}",
            expected="the worst is chosen when the best is: leave out rows without a best item",
            instead=_without(none),
        )
    for role, code in {"best": top, "worst": bottom}.items():
        other = (code >= 0) & ~(items == code[:, None]).any(1)
        if other.any():
            row = int(np.argmax(other))
            own = ", ".join(repr(names[item]) for item in items[row] if item >= 0)
            raise DataError(
                parameter=role,
                value=columns[role],
                problem=f"names {names[code[row]]!r} in {_where(other)}, where the items are {own}",
                expected="it must hold the name of one of them, and not its number or column;"
                " correct those rows, or leave them out",
                instead=_without(other),
            )
    if (same := top == bottom).any():
        raise DataError(
            parameter="worst",
            value=columns["worst"],
            problem=f"names {names[top[int(np.argmax(same))]]!r}, as `best` does, in"
            f" {_where(same)}",
            expected="the worst is another item; leave those rows out",
            instead=_without(same),
        )


def _where(rows: Bool[np.ndarray, " row"]) -> str:
    """The first of some rows, and how many there are, in words."""
    return f"row {int(np.argmax(rows))} (counted from 0; {int(rows.sum())} such row(s))"


def _without(rows: Bool[np.ndarray, " row"]) -> str:
    """Line that leaves rows out of a table of pandas."""
    listed = np.flatnonzero(rows).tolist()
    if len(listed) > 10:
        return f"frame = frame.drop(frame.index[rows]), where rows lists those {len(listed)}"
    return f"frame = frame.drop(frame.index[{listed}])"


def with_worst(
    frame: Any,
    lowest: str,
    ranking: Int[np.ndarray, " row"],
    names: Names,
    place: Int[np.ndarray, " row"],
) -> Int[np.ndarray, " row"]:
    """Places in a long table, with −1 for the items that a column marks as the worst."""
    column = incomplete(frame, "lowest", lowest, len(place))
    if column is None:
        return place
    mark = np.where(column.code >= 0, read_numbers(column), 0.0)
    several = (mark == 1) & (np.bincount(ranking, mark == 1, len(names))[ranking] > 1)
    problems = {
        "is neither 0 nor 1": ~np.isin(mark, (0, 1)),
        "marks an item that has a rank": (mark == 1) & (place > 0),
        "marks several items as the worst": several,
    }
    for problem, wrong in problems.items():
        if wrong.any():
            raise DataError(
                parameter="lowest",
                value=lowest,
                problem=f"{problem} in the ranking {names[ranking[int(np.argmax(wrong))]]!r}",
                expected="it must be 1 for the worst of the items without a rank, one in a ranking"
                " at most, and 0 or nothing for the others",
            )
    return np.where(mark == 1, -1, place).astype(np.int32)

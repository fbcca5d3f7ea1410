"""Steps of reading rankings: the items in each place, and who ranked them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Int

from raters.errors import refuse_data
from raters.judgements.counts import Codes, place_within
from raters.judgements.names import Names, encode_names, shorten, shown
from raters.judgements.reading.columns import (
    Column,
    Columns,
    check_no_annotators,
    matching,
    read_columns,
    read_numbers,
    where,
)


def best_and_worst(columns: Columns, known: Iterable[Any] | None) -> tuple[Table, Names]:
    """Answers as rankings: place 1 for the best item, −1 for the worst, 0 for the others."""
    shown_items = columns.lists["offered"]
    cells, names = coded(shown_items, known, [columns["best"], columns["worst"]])
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
            those = shorten([names[item] for item in items[at] if item >= 0])
            columns[role].refuse(
                f"names {names[code[at]] if code[at] >= 0 else 'no item'!r} in {where(other)},"
                f" where the items are {those}",
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


def with_worst(column: Column | None, ranking: Codes, names: Names, place: Codes) -> Codes:
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


Unranked = Literal["below", "not offered"]


class Table(NamedTuple):
    """Rankings as rows of codes."""

    offered: Int[np.ndarray, "ranking position"]
    place: Int[np.ndarray, "ranking position"]


def by_cells(
    ranking: Int[np.ndarray, " cell"],
    item: Int[np.ndarray, " cell"],
    place: Int[np.ndarray, " cell"],
    num_rankings: int,
) -> Table:
    """Rankings from cells in any order."""
    order = np.lexsort((item, ranking))
    ranking, item, place = ranking[order], item[order], place[order]
    position = place_within(ranking)
    shape = num_rankings, int(position.max(initial=-1)) + 1
    table = Table(np.full(shape, -1, np.int32), np.zeros(shape, np.int32))
    table.offered[ranking, position], table.place[ranking, position] = item, place
    return table


def with_unranked(table: Table, num_items: int, unranked: Any) -> Table:
    """Rankings with the items that they leave out, where those come below."""
    lacking = (table.offered >= 0).sum(1) < num_items
    known = isinstance(unranked, str) and unranked in get_args(Unranked)
    if not known and (unranked is not None or lacking.any()):
        refuse_data(
            "unranked",
            shown(unranked),
            f"does not say what becomes of the items that rankings leave out, in {where(lacking)}"
            if unranked is None
            else "is unknown",
            "'below': they were offered, and come below all that have a place; 'not offered': they"
            " were not to be ranked, as drivers who were not in a race",
            instead="unranked='below'",
        )
    if unranked != "below" or not lacking.any():
        return table
    place = np.zeros((len(table.place), num_items), np.int32)
    row, position = np.nonzero(table.offered >= 0)
    place[row, table.offered[row, position]] = table.place[row, position]
    offered = np.broadcast_to(np.arange(num_items, dtype=np.int32), place.shape).copy()
    return Table(offered, place)


def placed(column: Column, ranking: Codes, names: Names, item: Column) -> Codes:
    """Place of each row in its ranking by a column of ranks, 0 where that is empty."""
    score = read_numbers(column)
    if (below := score < 1).any():
        column.refuse(
            f"gives the rank {score[np.argmax(below)]:g} in {where(below)}",
            "ranks begin with 1, the best: leave the rank of an item without a place empty (as of a"
            " driver who did not finish), or add 1 to all where they begin with 0",
            f"frame[{column.name!r}] = frame[{column.name!r}].where(frame[{column.name!r}] >= 1)",
        )
    line = np.flatnonzero(~np.isnan(score))
    order = line[np.lexsort((score[line], ranking[line]))]
    sorted_codes, level = ranking[order], score[order]
    tied = (sorted_codes[1:] == sorted_codes[:-1]) & (level[1:] == level[:-1])
    if tied.any():
        at = int(np.argmax(tied))
        pair = ", ".join(
            repr(item.values[item.code[row]]) for row in sorted(order[at : at + 2].tolist())
        )
        column.refuse(
            f"gives {pair} the same rank in the ranking {names[sorted_codes[at]]!r}"
            f" ({len(np.unique(sorted_codes[1:][tied]))} such rankings)",
            "raters has no likelihood of ties in rankings: leave those rankings out, or compare"
            " ratings in pairs, where a tie is half a vote",
            "rt.Comparisons.from_ratings(...)",
        )
    place = np.zeros(len(ranking), np.int32)
    place[order] = place_within(sorted_codes) + 1
    return place


def check_placed(table: Table, role: str) -> None:
    """Raise when a ranking places no item."""
    if (none := ~(table.place > 0).any(1)).any():
        refuse_data(
            role,
            problem=f"has a ranking that places no item, {where(none)}",
            expected="a ranking places one item or more; leave the others out",
        )


def wide_columns(frame: Any, places: Any, role: str, least: int, **others: Any) -> Columns:
    """Columns of a table with a row for each ranking: those of its items, `least` or more, and the
    others by role."""
    listed = matching(frame, places, role)
    if len(listed) < least:
        few = f"names fewer than {least} columns"
        refuse_data(role, places, few, "give all of them", instead=f"{role}=['{role}*']")
    names = [*listed, *others.values()]
    for name in listed:
        if names.count(name) > 1:
            refuse_data(role, name, "comes twice", f"name one column for each, apart from `{role}`")
    return read_columns(frame, several={role: listed}, empty=(role, "best", "worst"), **others)


def coded(
    cells: Sequence[Column], known: Iterable[Any] | None, beside: Sequence[Column] = ()
) -> tuple[Int[np.ndarray, "ranking cell"], Names]:
    """Code of the item in each cell, −1 for none, and the names; an error for a row that names an
    item twice in `cells`."""
    codes, names = encode_names([*cells, *beside], known, "item")
    table = np.stack(codes, axis=1)
    ordered = np.sort(table[:, : len(cells)], axis=1)
    again = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if again.any():
        name = names[ordered[:, 1:][again][0]]
        refuse_data(
            cells[0].role,
            problem=f"has {name!r} twice in {where(again.any(1))}",
            expected="a row names an item once; correct those rows, or leave them out",
        )
    return table, names


def in_places(
    cells: Sequence[Column], known: Iterable[Any] | None
) -> tuple[Int[np.ndarray, "ranking place"], Names]:
    """Code of the item in each place of each ranking, −1 for none, and the names."""
    table, names = coded(cells, known)
    late = (table[:, 1:] >= 0) & (table[:, :-1] < 0)
    if late.any():
        place = int(np.argmax(late.any(0)))
        cells[place + 1].refuse(
            f"has an item, and column {cells[place].name!r} before it has none, in"
            f" {where(late[:, place])}",
            "only the last places may be empty",
        )
    return table, names


def rankers(
    columns: Columns, known: Iterable[Any] | None, each: Names
) -> tuple[Int[np.ndarray, " ranking"], Names]:
    """Code of who gave each ranking, and the names; without a column those of the rankings."""
    if "annotator" in columns:
        return columns.codes("annotator", known)
    check_no_annotators(known)
    return np.arange(len(each), dtype=np.int32), each

"""Steps of reading rankings: the items in each place, and who ranked them."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from raters.errors import DataError
from raters.errors.validation import is_list
from raters.judgements.names import Names, encode_names, shorten, shown
from raters.judgements.reading.columns import (
    Column,
    _opened,
    column_name,
    read_columns,
    read_counts,
    read_numbers,
    read_places,
)
from raters.judgements.reading.incomplete import filled

Unranked = Literal["below", "not offered"]
_UNRANKED = {
    "below": "they were offered, and come below all that have a place",
    "not offered": "they were not to be ranked, as drivers who were not in a race",
}


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
    size = np.bincount(ranking, minlength=num_rankings)
    position = np.arange(len(ranking)) - (np.cumsum(size) - size)[ranking]
    shape = num_rankings, int(size.max(initial=0))
    table = Table(np.full(shape, -1, np.int32), np.zeros(shape, np.int32))
    table.offered[ranking, position], table.place[ranking, position] = item, place
    return table


def with_unranked(table: Table, num_items: int, unranked: Any) -> Table:
    """Rankings with the items that they leave out, where those come below."""
    lacking = (table.offered >= 0).sum(1) < num_items
    if unranked not in (*_UNRANKED, None) or (unranked is None and lacking.any()):
        meanings = "; ".join(f"{word!r}: {text}" for word, text in _UNRANKED.items())
        raise DataError(
            parameter="unranked",
            value=unranked,
            problem=(
                f"does not say what becomes of items that {int(lacking.sum())} of"
                f" {len(lacking)} rankings leave out (the first is in row"
                f" {int(np.argmax(lacking))}, counted from 0)"
                if lacking.any()
                else "is not possible"
            ),
            expected=f"say what is true of them. {meanings}",
            # The worst is one of those shown.
            instead=f"unranked={'not offered' if (table.place < 0).any() else 'below'!r}",
        )
    if unranked != "below" or not lacking.any():
        return table
    place = np.zeros((len(table.place), num_items), np.int32)
    row, position = np.nonzero(table.offered >= 0)
    place[row, table.offered[row, position]] = table.place[row, position]
    every = np.broadcast_to(np.arange(num_items, dtype=np.int32), place.shape)
    return Table(np.array(every), place)


def matching(frame: Any, places: Any, role: str = "places") -> Any:
    """Columns of the places, with patterns such as ``pos*`` replaced by the columns that they
    match, in the order of the table."""
    if not is_list(places):
        return places
    names, _ = _opened(frame, [])
    found: list[Any] = []
    for pattern in places:
        if not isinstance(pattern, str):  # No name of a column, which is said later.
            found.append(pattern)
            continue
        known = pattern in names or not any(sign in pattern for sign in "*?[")
        matched = [name for name in names if fnmatchcase(name, pattern)]
        if not known and not matched:
            raise DataError(
                parameter=role,
                value=pattern,
                problem="matches no column of the table",
                expected=f"it has {shorten(names, 20)}",
            )
        found += [pattern] if known else matched
    return found


def placed(
    frame: Any, rank: str, ranking: Int[np.ndarray, " row"], names: Names, items: list[Any]
) -> Int[np.ndarray, " row"]:
    """Place of each row in its ranking by a column of ranks, 0 where that is empty."""
    score = _ranks(frame, rank)
    if (below := score < 1).any():
        at = int(np.argmax(below))
        raise DataError(
            parameter="rank",
            value=rank,
            problem=f"gives {items[at]!r} the rank {score[at]:g} in the ranking"
            f" {names[ranking[at]]!r} ({int(below.sum())} rank(s) below 1)",
            expected="ranks begin with 1, the best: leave the rank of an item without a place empty"
            " (as of a driver who did not finish), or add 1 to all where they begin with 0",
            instead=f"frame[{rank!r}] = frame[{rank!r}].where(frame[{rank!r}] >= 1)",
        )
    line = np.flatnonzero(~np.isnan(score))
    order = line[np.lexsort((score[line], ranking[line]))]
    own, level = ranking[order], score[order]
    tied = (own[1:] == own[:-1]) & (level[1:] == level[:-1])
    if tied.any():
        at = int(np.argmax(tied))
        pair = ", ".join(repr(items[row]) for row in sorted(order[at : at + 2].tolist()))
        others = f" ({len(np.unique(own[1:][tied]))} such rankings)" if tied.sum() > 1 else ""
        raise DataError(
            parameter="rank",
            value=rank,
            problem=f"gives {pair} the same rank in the ranking {names[own[at]]!r}{others}",
            expected="raters has no likelihood of ties in rankings: leave those rankings out, or"
            " compare ratings in pairs, where a tie is half a vote",
            instead="rt.Comparisons.from_ratings(...)",
        )
    size = np.bincount(own, minlength=len(names))
    place = np.zeros(len(ranking), np.int32)
    place[order] = np.arange(len(own)) - (np.cumsum(size) - size)[own] + 1
    return place


def _ranks(frame: Any, rank: str) -> Float[np.ndarray, " row"]:
    """A column of ranks, NaN where it is empty."""
    name = column_name("rank", rank)
    _, fetch = _opened(frame, [name])
    column = filled(fetch(name), "rank", name)
    if not column.values:
        return np.full(len(column), np.nan)
    return np.where(column.code >= 0, read_numbers(column), np.nan)


def check_once(
    ranking: Int[np.ndarray, " row"], item: Int[np.ndarray, " row"], names: Names, items: Names
) -> None:
    """Raise when a ranking names an item twice."""
    order = np.lexsort((item, ranking))
    same = (np.diff(ranking[order]) == 0) & (np.diff(item[order]) == 0)
    if same.any():
        row = order[1:][same][0]
        raise DataError(
            parameter="item",
            value=items[item[row]],
            problem=f"comes twice in the ranking {names[ranking[row]]!r}",
            expected="a ranking names an item once; leave one of the rows out",
        )


def of_ranking(
    ranking: Int[np.ndarray, " row"], who: Int[np.ndarray, " row"], names: Names, annotators: Names
) -> Int[np.ndarray, " ranking"]:
    """Code of who gave each ranking."""
    first = np.unique(ranking, return_index=True)[1]
    each = who[first]
    if (wrong := who != each[ranking]).any():
        row = int(np.argmax(wrong))
        both = shorten([annotators[each[ranking[row]]], annotators[who[row]]])
        raise DataError(
            parameter="ranking",
            value=names[ranking[row]],
            problem=f"is the name of rankings by several annotators ({both})",
            expected="give each ranking a name of its own",
            instead="frame['ranking'] = frame['annotator'] + ' ' + frame['ranking']",
        )
    return np.asarray(each, np.int32)


def count_of(
    ranking: Int[np.ndarray, " row"], column: Column, names: Names
) -> Float[np.ndarray, " ranking"]:
    """Count of each ranking."""
    number = read_counts(column)
    each = number[np.unique(ranking, return_index=True)[1]]
    if (wrong := number != each[ranking]).any():
        row = int(np.argmax(wrong))
        raise DataError(
            parameter="count",
            value=column.name,
            problem=f"holds {each[ranking[row]]:g} and {number[row]:g} in rows of the ranking"
            f" {names[ranking[row]]!r}",
            expected="it must be the same in all rows of a ranking",
        )
    return each


def counts(frame: Any, count: str, rows: int) -> Float[np.ndarray, " ranking"]:
    """A column of counts of rankings, one for each row."""
    number = read_counts(read_columns(frame, count=count)["count"])
    if len(number) != rows:
        raise DataError(
            parameter="count",
            value=count,
            problem=f"has {len(number)} rows, and there are {rows} rankings",
            expected="every column needs one value per row",
        )
    return number


def check_placed(table: Table, where: Any) -> None:
    """Raise when a ranking places no item."""
    if (none := ~(table.place > 0).any(1)).any():
        raise DataError(
            parameter="rank",
            problem=f"places no item in {where(int(np.argmax(none)))} ({int(none.sum())} such"
            " ranking(s))",
            expected="a ranking places one item or more; leave the others out",
        )


def refuse_names(known: Iterable[Any] | None) -> None:
    """Raise when names of annotators are given and no column of them."""
    if known is not None:
        raise DataError(
            "annotators= lists the names in a column; say which column that is with annotator=",
            parameter="annotator",
            problem="is not given, and a list of annotators is",
            expected="say which column holds those names",
        )


def place_columns(places: Any, least: int = 2, **roles: str | None) -> list[str]:
    """The columns of a ranking, in order: `least` or more, each once, and none that has another of
    the `roles` too."""
    listed = list(places) if is_list(places) else []
    if len(listed) < least:
        raise DataError(
            "places= lists the columns of a ranking in order, such as places=['first', 'second'],"
            f" not {shown(places)}",
            parameter="places",
            value=places,
            problem="does not list the columns of a ranking",
            expected=f"give {'two' if least == 2 else 'one'} or more, in the order of the places",
        )
    listed = [column_name("places", name) for name in listed]
    if twice := [name for name in listed if listed.count(name) > 1]:
        raise DataError(
            f"{twice[0]!r} comes twice in places=; every place of a ranking has a column of"
            " its own",
            parameter="places",
            value=twice[0],
            problem="comes twice",
            expected="every place of a ranking has a column of its own",
        )
    for role, name in roles.items():
        if name is not None and name in listed:
            raise DataError(
                f"column {name!r} is both a place and the {role}; name the columns of the places"
                " alone, such as places=['pos*']",
                parameter="places",
                value=name,
                problem=f"is the column of the {role} too",
                expected="name the columns of the places alone",
            )
    return listed


def ranked(
    frame: Any, places: list[str], known: Iterable[Any] | None
) -> tuple[Int[np.ndarray, "ranking place"], Names]:
    """Code of the item in each place of each ranking, −1 for none, and the names of the items."""
    item, name = read_places(frame, places)
    (code,), item_names = encode_names([name], known, "item")
    place = np.full(item.shape, -1, np.int32)
    place[item] = code
    ordered = np.sort(place, axis=1)
    if (again := (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
        row, column = np.argwhere(again)[0]
        raise DataError(
            f"the ranking in row {row} (counted from 0) names {item_names[ordered[row, column]]!r}"
            f" twice ({int(again.any(1).sum())} such ranking(s)); a ranking names an item once."
            " Leave those rows out first",
            parameter="places",
            problem=(
                f"names {item_names[ordered[row, column]]!r} twice in row {row} (counted from 0;"
                f" {int(again.any(1).sum())} such ranking(s))"
            ),
            expected="a ranking names an item once; leave those rows out",
        )
    return place, item_names


def rankers(
    frame: Any, annotator: str | None, known: Iterable[Any] | None, first_place: str, rows: int
) -> tuple[Int[np.ndarray, " ranking"], Names]:
    """Code of who gave each ranking, and the names; without a column each is its own."""
    if annotator is None:
        refuse_names(known)
        return np.arange(rows, dtype=np.int32), tuple(range(rows))
    (who,), names = encode_names(
        [read_columns(frame, annotator=annotator)["annotator"]], known, "annotator"
    )
    if len(who) != rows:
        raise DataError(
            f"column {annotator!r} has {len(who)} rows and column {first_place!r} has"
            f" {rows}; every column needs one value per row",
            parameter="annotator",
            value=annotator,
            problem=f"has {len(who)} rows, and column {first_place!r} has {rows}",
            expected="every column needs one value per row",
        )
    return who, names

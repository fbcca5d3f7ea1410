"""Steps of reading a table of votes or ratings, and the errors about what its rows say together."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Int

from raters.errors import refuse_data
from raters.judgements.names import Names, encode_names, shorten, shown
from raters.judgements.reading.columns import Column, where
from raters.judgements.reading.rankings import in_places, rankers, wide_columns

_MAX_PAIRS = 50_000_000


def shape(given: dict[str, Any], outcomes: Any) -> tuple[str, str]:
    """The roles of the two sides; raises unless exactly one shape of table was described."""
    named = {role: shown(name) for role, name in given.items() if name is not None}
    one, other = {"winner", "loser"}, {"first", "second", "outcome"}
    if not (set(named) == other or (set(named) == one and outcomes is None)):
        listed = ", ".join(f"{role}={name}" for role, name in named.items()) or "neither"
        refuse_data(
            "winner",
            named.get("winner"),
            f"is no whole description of votes beside the other columns ({listed})",
            "name the winner and the loser; or the item shown first, the one shown second, and the"
            " outcome; of one rating per item make comparisons",
            instead="rt.Comparisons.from_ratings(table, item=..., rating=...)",
        )
    return ("winner", "loser") if set(named) == one else ("first", "second")


def check_items(
    left: Int[np.ndarray, " row"],
    right: Int[np.ndarray, " row"],
    names: Names,
    columns: tuple[Column, Column],
) -> None:
    """`DataError` for rows that compare an item with itself, and for columns that do not name
    items."""
    one, other = columns
    if (same := left == right).any():
        one.refuse(
            f"names {names[left[np.argmax(same)]]!r} in {where(same)}, and so does `{other.role}`",
            "a vote needs two items; leave those rows out",
            f"frame = frame[frame[{one.name!r}] != frame[{other.name!r}]]",
        )
    if len(names) > max(1000, len(left)):
        one.refuse(
            f"and `{other.role}` hold {len(names):,} different items in {len(left):,} rows"
            f" ({shorten(names, 3)}), so most are compared once",
            "name the columns of the items, not of row numbers or texts",
        )


def pairs_within(
    group: Int[np.ndarray, " row"], groups: int
) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
    """All pairs of rows of the same group."""
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group, minlength=groups).astype(np.int64)
    _check_number(int((sizes * (sizes - 1) // 2).sum()), "rating")
    starts = np.cumsum(sizes) - sizes
    # One set of positions serves all groups of a size.
    pieces = []
    for size in np.unique(sizes):
        rows = order[starts[sizes == size][:, None] + np.arange(size)]
        pieces.append(rows[:, np.stack(np.triu_indices(size, 1))].transpose(1, 0, 2).reshape(2, -1))
    one, two = np.concatenate(pieces, axis=1)
    return one, two


def _check_number(pairs: int, role: str) -> None:
    if pairs > _MAX_PAIRS:
        refuse_data(
            role,
            problem=f"would become {pairs:,} comparisons",
            expected=f"at most {_MAX_PAIRS:,} are made: take a sample of annotators, or fewer items"
            " of each",
        )


def rankings(
    frame: Any,
    places: Iterable[str],
    annotator: str | None,
    known_items: Iterable[Any] | None,
    known_annotators: Iterable[Any] | None,
) -> tuple[
    Int[np.ndarray, " comparison"],
    Int[np.ndarray, " comparison"],
    Int[np.ndarray, " comparison"],
    Names,
    Names,
]:
    """Winners, losers and annotators of the comparisons that rankings make, and the names."""
    cells, columns = wide_columns(frame, places, "places", 2, annotator=annotator)
    place, item_names = in_places(cells, known_items)
    _check_number(len(place) * math.comb(len(cells), 2), "places")
    who, names = rankers(columns, known_annotators, len(place))
    before, after = np.triu_indices(len(cells), 1)
    winner, loser = place[:, before], place[:, after]
    both = (winner >= 0) & (loser >= 0)
    if not both.any():
        refuse_data(
            "places",
            [column.name for column in cells],
            "holds no ranking of two items, so there is nothing to compare",
            "give the columns of all places",
        )
    each = np.broadcast_to(who[:, None], both.shape)[both]
    return winner[both], loser[both], each, item_names, names


def strata(column: Column | None) -> tuple[Int[np.ndarray, " row"] | None, Names]:
    """Codes and names of the strata; None without a column."""
    if column is None:
        return None, ()
    (code,), names = encode_names([column], None, "stratum")
    return code, names

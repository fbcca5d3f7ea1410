"""Steps of reading a table of votes or ratings, and the errors about what its rows say together."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from raters.errors import DataError, DataWarning
from raters.judgements.counts import exact
from raters.judgements.names import Names, encode_names, shorten, shown
from raters.judgements.reading.columns import Column
from raters.judgements.reading.rankings import (
    matching,
    place_columns,
    ranked,
    rankers,
    refuse_names,
)

_MAX_PAIRS = 50_000_000


def shape(
    winner: str | None,
    loser: str | None,
    first: str | None,
    second: str | None,
    outcome: str | None,
    outcomes: Any,
) -> tuple[str, str]:
    """The roles of the two sides; raises unless exactly one shape of table was described."""
    sides = [part is not None for part in (winner, loser)]
    shown_sides = [part is not None for part in (first, second, outcome)]
    if all(sides) and outcomes is None and not any(shown_sides):
        return "winner", "loser"
    if all(shown_sides) and not any(sides):
        return "first", "second"
    roles = {
        "winner": winner,
        "loser": loser,
        "first": first,
        "second": second,
        "outcome": outcome,
        "outcomes": outcomes,
    }
    given = (
        ", ".join(f"{role}={shown(value)}" for role, value in roles.items() if value is not None)
        or "neither"
    )
    raise DataError(
        "describe the votes in one of two shapes: winner= and loser=, or first=, second= and"
        f" outcome= (with outcomes= where needed); you gave {given}. For one rating per item, write"
        " Comparisons.from_ratings(table, item=..., rating=...)",
        parameter="winner",
        value=winner,
        problem=f"is no whole description of votes beside the other columns ({given})",
        expected=(
            "name the winner and the loser; or the item shown first, the one shown second, and the"
            " outcome"
        ),
    )


def check_items(
    left: Int[np.ndarray, " row"],
    right: Int[np.ndarray, " row"],
    names: Names,
    columns: tuple[Column, Column],
) -> None:
    """`DataError` for rows that compare an item with itself, and for columns that do not name
    items."""
    one, other = columns
    _check_two(left, right, names, columns)
    if len(names) > max(1000, len(left)):
        raise DataError(
            f"columns {one.name!r} and {other.name!r} hold {len(names):,} different items in"
            f" {len(left):,} rows, so most are compared once; are these row numbers or texts, not"
            f" items? First values: {shorten(names, 3)}. Give the columns that name the items",
            parameter=one.role,
            value=one.name,
            problem=(
                f"and `{other.role}` hold {len(names):,} different items in {len(left):,} rows"
                f" ({shorten(names, 3)}), so most are compared once"
            ),
            expected="name the columns of the items, not of row numbers or texts",
        )


def _check_two(
    left: Int[np.ndarray, " row"],
    right: Int[np.ndarray, " row"],
    names: Names,
    columns: tuple[Column, Column],
) -> None:
    """`DataError` for rows that compare an item with itself."""
    one, other = columns
    same = left == right
    if same.any():
        row = int(np.flatnonzero(same)[0])
        raise DataError(
            f"row {row} (counted from 0) compares {names[left[row]]!r} with itself"
            f" ({int(same.sum())} such row(s)); a vote needs two items. Leave those rows out first:"
            f" frame = frame[frame[{one.name!r}] != frame[{other.name!r}]]",
            parameter=one.role,
            value=one.name,
            problem=(
                f"names {names[left[row]]!r} in row {row} (counted from 0), and so does"
                f" `{other.role}` ({int(same.sum())} such row(s))"
            ),
            expected="a vote needs two items; leave those rows out",
        )


def annotators(
    columns: Mapping[str, Column], known: Iterable[Any] | None, rows: int
) -> tuple[Int[np.ndarray, " row"], tuple[Any, ...]]:
    """Codes and names of the annotators; without a column all rows are by one of the name
    ``all``."""
    if "annotator" not in columns:
        refuse_names(known)
        return np.zeros(rows, np.int32), ("all",)
    (who,), names = encode_names([columns["annotator"]], known, "annotator")
    if len(names) > 1000 and len(names) > 0.8 * rows:
        warnings.warn(
            f"column {columns['annotator'].name!r} holds {len(names):,} different annotators in"
            f" {rows:,} rows, so most have one vote; is it a row number or a time? Leave annotator="
            " out to pool all votes",
            DataWarning,
            stacklevel=4,
        )
    return who, names


def strata(columns: Mapping[str, Column]) -> tuple[Int[np.ndarray, " row"] | None, Names]:
    """Codes and names of the strata; None without a column."""
    if "stratum" not in columns:
        return None, ()
    (code,), names = encode_names([columns["stratum"]], None, "stratum")
    return code, names


def pairs_within(
    group: Int[np.ndarray, " row"], groups: int
) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
    """All pairs of rows of the same group."""
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group, minlength=groups).astype(np.int64)
    if (pairs := int((sizes * (sizes - 1) // 2).sum())) > _MAX_PAIRS:
        raise DataError(
            f"{len(group):,} ratings would become {pairs:,} comparisons (at most {_MAX_PAIRS:,}); "
            "rate in smaller groups, or draw a sample of each annotator's ratings first"
        )
    starts = np.cumsum(sizes) - sizes
    # One set of positions serves all groups of a size.
    pieces = []
    for size in np.unique(sizes):
        rows = order[starts[sizes == size][:, None] + np.arange(size)]
        pieces.append(rows[:, np.stack(np.triu_indices(size, 1))].transpose(1, 0, 2).reshape(2, -1))
    one, two = np.concatenate(pieces, axis=1)
    return one, two


def cells(
    codes: Sequence[Int[np.ndarray, " row"]],
    sizes: Sequence[int],
    wins: Float[np.ndarray, " row"] | None,
    count: Float[np.ndarray, " row"] | None,
) -> tuple[
    list[Int[np.ndarray, " cell"]], Float[np.ndarray, " cell"] | None, Float[np.ndarray, " cell"]
]:
    """Equal rows put together, sorted by their codes: the codes, the wins and the votes of each
    distinct row."""
    single = count is None and (
        wins is None or bool(np.all((wins == 0) | (wins == 1) | (wins == 0.5)))
    )
    if single and 4 * math.prod(sizes) < 2**63:
        return _cells_of_single_votes(codes, sizes, wins)
    order, starts = _equal_rows(codes, sizes)

    def total(votes: Float[np.ndarray, " row"]) -> Float[np.ndarray, " cell"]:
        return exact(np.add.reduceat(votes[order], starts, dtype=np.float64))

    count = np.ones(len(order), np.float32) if count is None else count
    rows = order[starts]
    return (
        [code[rows].astype(np.int32) for code in codes],
        None if wins is None else total(wins),
        total(count),
    )


def _cells_of_single_votes(
    codes: Sequence[Int[np.ndarray, " row"]],
    sizes: Sequence[int],
    wins: Float[np.ndarray, " row"] | None,
) -> tuple[
    list[Int[np.ndarray, " cell"]], Float[np.ndarray, " cell"] | None, Float[np.ndarray, " cell"]
]:
    """`cells` by sorting one array in place, the outcome in its lowest bits: a third of the memory,
    and much faster."""
    key = _key(codes, sizes)
    key *= 4
    if wins is not None:
        key += (2 * wins).astype(np.int8)
    key.sort()
    starts = np.flatnonzero(np.concatenate([[True], key[1:] >> 2 != key[:-1] >> 2]))
    count = exact(np.diff(starts, append=len(key)))
    cell = key[starts] >> 2
    if wins is not None:
        key &= 3
        wins = exact(np.add.reduceat(key, starts) / 2)
    codes_of_cells = []
    for size in reversed(sizes):
        cell, code = np.divmod(cell, size)
        codes_of_cells.append(code.astype(np.int32))
    return codes_of_cells[::-1], wins, count


def _key(codes: Sequence[Int[np.ndarray, " row"]], sizes: Sequence[int]) -> Int[np.ndarray, " row"]:
    """One number for each row, which sorts as the codes do."""
    key = np.zeros(len(codes[0]), np.int64)
    for code, size in zip(codes, sizes, strict=True):
        key *= size
        key += code
    return key


def _equal_rows(
    codes: Sequence[Int[np.ndarray, " row"]], sizes: Sequence[int]
) -> tuple[Int[np.ndarray, " row"], Int[np.ndarray, " cell"]]:
    """An order that puts equal rows together, sorted by the codes, and where in it each group of
    equals starts."""
    if math.prod(sizes) < 2**63:
        key = _key(codes, sizes)
        order = np.argsort(key)
        key = key[order]
        new = key[1:] != key[:-1]
    else:
        order = np.lexsort(tuple(reversed(codes)))
        new = np.logical_or.reduce([np.diff(code[order]) != 0 for code in codes])
    return order, np.flatnonzero(np.concatenate([[True], new]))


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
    listed = place_columns(matching(frame, places), annotator=annotator)
    place, item_names = ranked(frame, listed, known_items)
    if len(place) * math.comb(len(listed), 2) > _MAX_PAIRS:
        raise DataError(
            f"{len(place):,} rankings of {len(listed)} places make more than {_MAX_PAIRS:,}"
            " comparisons; take a sample of annotators, or fewer places"
        )
    who, names = rankers(frame, annotator, known_annotators, listed[0], len(place))
    before, after = np.triu_indices(len(listed), 1)
    winner, loser = place[:, before], place[:, after]
    both = (winner >= 0) & (loser >= 0)
    if not both.any():
        raise DataError(
            "no ranking has two items, so there is nothing to compare; give the columns of all"
            " places in places=",
            parameter="places",
            value=listed,
            problem="holds no ranking of two items, so there is nothing to compare",
            expected="give the columns of all places",
        )
    return (
        winner[both],
        loser[both],
        np.broadcast_to(who[:, None], both.shape)[both],
        item_names,
        names,
    )

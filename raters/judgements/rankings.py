"""Rankings: ``Rankings`` holds which items were ranked and in which places, as integer codes with
the names beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from raters.errors.validation import boolean
from raters.judgements.names import encode_names, names_array
from raters.judgements.ordered import Ordered
from raters.judgements.reading import best_worst
from raters.judgements.reading import rankings as reading
from raters.judgements.reading.columns import (
    column_name,
    one_each,
    read_columns,
    read_counts,
    repeated,
)
from raters.judgements.roles import of_axes, static


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Rankings(Ordered):
    """Rankings of items by annotators, full or in part.

    A ranking has the items that were offered, each with its place, from 1 for the best, or without
    a place: it was offered, and comes below all that have one. What was not offered is not in the
    ranking. Of the items without a place the worst may be named, as in best–worst scaling. Build it
    with `from_frame`, `from_wide` or `from_best_worst`; the constructor takes codes that are
    already right.

    Parameters
    ----------
    annotator : int array, shape (ranking,)
        Code of who ranked.
    depth : int array, shape (ranking,)
        Number of places that were to be given: as many as there are, unless a part was asked for.
    count : float array, shape (ranking,), or None
        Equal rankings of one annotator that the row stands for. None means one each.
    offered : int array, shape (ranking, position)
        Codes of the items offered, ascending; −1 where a ranking has fewer.
    place : int array, shape (ranking, position), or None
        Place of each, from 1 without gaps; 0 for an item without a place, and where there is none;
        −1 for the worst of those without a place where it is named. None when the outcomes are not
        known yet, as for `raters.simulate`.
    annotators, items : tuple
        The names, in code order.
    lowest : int array, shape (ranking,), or None
        1 where the worst of the items without a place is asked for as well, else 0. None where it
        is asked for nowhere.

    Examples
    --------
    >>> import raters as rt
    >>> rankings = rt.Rankings.from_wide(
    ...     {"who": ["ann", "bob"], "best": ["tea", "milk"], "next": ["milk", None]},
    ...     places=["best", "next"], annotator="who", unranked="below")
    >>> rankings.num_rankings, rankings.num_items, rankings.place.tolist()
    (2, 2, [[2, 1], [1, 0]])
    """

    annotator: Any
    depth: Any
    count: Any
    offered: Any = of_axes("ranking", "position")
    place: Any = of_axes("ranking", "position")
    annotators: tuple[Any, ...] = static()
    items: tuple[Any, ...] = static()
    lowest: Any = None

    axes: ClassVar[Mapping[str, str]] = {"annotator": "annotator", "offered": "item"}
    names: ClassVar[Mapping[str, str]] = {"annotator": "annotators", "item": "items"}
    answer: ClassVar[str] = "place"
    row: ClassVar[str] = "ranking"
    predicted: ClassVar[str] = "first"
    listed: ClassVar[bool] = False

    # ---------------------------------------------------------------- building

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        ranking: str,
        item: str,
        rank: str,
        lowest: str | None = None,
        annotator: str | None = None,
        count: str | None = None,
        unranked: reading.Unranked | None = None,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        aggregate: bool = True,
    ) -> Rankings:
        """Read rankings from a table with one row for each item of each ranking.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
        ranking, item : str
            Columns that name the ranking, and the item.
        rank : str
            Column of ranks, from 1 for the best. An empty one says that the item was offered,
            and comes below all that have a rank.
        lowest : str, optional
            Column with 1 for the item named as the worst of those without a rank, and 0 or nothing
            for the others.
        annotator : str, optional
            Column that names who ranked; without it every ranking is by an annotator of its own, of
            the same name.
        count : str, optional
            Column with the number of equal rankings that a ranking stands for, the same in all of
            its rows.
        unranked : {"below", "not offered"}, optional
            Meaning of the items that have no row in a ranking, needed where there are some:
            ``"below"`` all that were ranked (the best three of ten), or ``"not offered"`` (a race
            of some of the drivers).
        items, annotators : iterable, optional
            All names in the order wanted, also of those that the table does not mention.
        aggregate : bool
            Put equal rankings of one annotator together into one row with a count.

        Returns
        -------
        Rankings

        Raises
        ------
        DataError
            When a rank is below 1; when two items of a ranking have the same rank, since there is
            no likelihood of ties; when a ranking names an item twice, places none, or has several
            counts.

        Examples
        --------
        >>> import raters as rt
        >>> rankings = rt.Rankings.from_frame(
        ...     {"race": [1, 1, 2, 2], "driver": ["ann", "bob", "bob", "eve"],
        ...      "finish": [1, 2, 1, 2]},
        ...     ranking="race", item="driver", rank="finish", unranked="not offered")
        >>> rankings.offered.tolist()
        [[0, 1], [1, 2]]
        """
        boolean("aggregate", aggregate)
        roles = {"ranking": ranking, "item": item, "rank": rank}
        named = {role: column_name(role, name) for role, name in roles.items()}
        others = {"lowest": lowest, "annotator": annotator, "count": count}
        optional = ("rank", "lowest")
        columns = read_columns(frame, empty=optional, part_of=ranking, **named, **others)
        (of,), names = encode_names([columns["ranking"]], None, "ranking")
        (what,), item_names = encode_names([columns["item"]], items, "item")
        if (twice := repeated(of, what)).any():
            columns["item"].refuse(
                f"names {item_names[what[np.argmax(twice)]]!r} twice in the ranking"
                f" {names[of[np.argmax(twice)]]!r}",
                "a ranking names an item once; leave one of the rows out",
            )
        who, annotator_names = reading.rankers(columns, annotators, len(names))
        if annotator is None:
            annotator_names = names
        else:
            who = one_each(of, columns["annotator"], who, names)
        place = reading.placed(columns["rank"], of, names, columns["item"])
        place = best_worst.with_worst(columns.get("lowest"), of, names, place)
        table = reading.by_cells(of, what, place, len(names))
        reading.check_placed(table, "rank")
        number = None
        if count is not None:
            number = one_each(of, columns["count"], read_counts(columns["count"]), names)
        return cls._read(table, who, number, item_names, annotator_names, unranked, aggregate)

    @classmethod
    def from_wide(
        cls,
        frame: Any,
        *,
        places: Sequence[str],
        annotator: str | None = None,
        count: str | None = None,
        unranked: reading.Unranked | None = None,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        aggregate: bool = True,
    ) -> Rankings:
        """Read rankings from a table with one row for each ranking and one column for each place.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
        places : sequence of str
            Columns that name the item in the first place, the second, and so on, or patterns such
            as ``pos*``, whose columns are in the order of the table. The last places may be empty.
        annotator : str, optional
            Column that names who ranked; without it every row is an annotator of its own, numbered
            from 0.
        count : str, optional
            Column with the number of equal rankings that a row stands for.
        unranked : {"below", "not offered"}, optional
            Meaning of the items that a ranking leaves out, needed where it does: ``"below"`` all
            that were ranked (the best three of ten), or ``"not offered"`` (a race of some of the
            drivers).
        items, annotators : iterable, optional
            All names in the order wanted, also of those that the table does not mention.
        aggregate : bool
            Put equal rankings of one annotator together into one row with a count.

        Returns
        -------
        Rankings

        Raises
        ------
        DataError
            When a ranking names an item twice or none, or a place after an empty one.

        Examples
        --------
        >>> import raters as rt
        >>> best = rt.Rankings.from_wide(
        ...     {"pos1": ["tea", "milk"], "pos2": ["milk", "beer"]}, places=["pos*"],
        ...     unranked="below")
        >>> best.num_rankings, best.items
        (2, ('beer', 'milk', 'tea'))
        """
        boolean("aggregate", aggregate)
        others = {"annotator": annotator, "count": count}
        cells, columns = reading.wide_columns(frame, places, "places", 1, **others)
        in_place, item_names = reading.in_places(cells, items)
        who, annotator_names = reading.rankers(columns, annotators, len(in_place))
        row, column = np.nonzero(in_place >= 0)
        table = reading.by_cells(row, in_place[row, column], column + 1, len(in_place))
        reading.check_placed(table, "places")
        number = read_counts(columns["count"]) if "count" in columns else None
        return cls._read(table, who, number, item_names, annotator_names, unranked, aggregate)

    @classmethod
    def from_best_worst(
        cls,
        frame: Any,
        *,
        offered: Sequence[str],
        best: str,
        worst: str,
        annotator: str | None = None,
        count: str | None = None,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        aggregate: bool = True,
    ) -> Rankings:
        """Read best–worst answers from a table with one row for each: of the items shown, the best
        and the worst (best–worst scaling; Louviere, Flynn and Marley 2015).

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
        offered : sequence of str
            Columns that name the items shown, or patterns such as ``Item*``. Where fewer were
            shown, some are empty.
        best : str
            Column with the name of the best item.
        worst : str
            Column with the name of the worst item; empty where the best alone was named.
        annotator : str, optional
            Column that names who answered; without it every row is an annotator of its own,
            numbered from 0.
        count : str, optional
            Column with the number of equal answers that a row stands for.
        items, annotators : iterable, optional
            All names in the order wanted, also of those that the table does not mention.
        aggregate : bool
            Put equal answers of one annotator together into one row with a count.

        Returns
        -------
        Rankings

        Raises
        ------
        DataError
            When an item is shown twice in a row, or a single one is; when the best or the worst is
            none of those shown, both are the same, or no best is named.

        References
        ----------
        Louviere, J. J., Flynn, T. N. and Marley, A. A. J. (2015). Best–Worst Scaling: Theory,
        Methods and Applications. Cambridge University Press.

        Examples
        --------
        >>> import raters as rt
        >>> answers = rt.Rankings.from_best_worst(
        ...     {"Item1": ["tea", "milk"], "Item2": ["milk", "beer"], "Item3": ["beer", "mead"],
        ...      "BestItem": ["tea", "milk"], "WorstItem": ["beer", "mead"]},
        ...     offered=["Item*"], best="BestItem", worst="WorstItem")
        >>> answers.items, answers.place.tolist()
        (('beer', 'mead', 'milk', 'tea'), [[-1, 0, 1], [0, -1, 1]])
        """
        boolean("aggregate", aggregate)
        named = {"best": column_name("best", best), "worst": column_name("worst", worst)}
        others = {"annotator": annotator, "count": count}
        shown, columns = reading.wide_columns(frame, offered, "offered", 2, **named, **others)
        table, item_names = best_worst.best_and_worst(shown, columns, items)
        who, annotator_names = reading.rankers(columns, annotators, len(table.place))
        number = read_counts(columns["count"]) if "count" in columns else None
        return cls._read(table, who, number, item_names, annotator_names, "not offered", aggregate)

    @classmethod
    def _read(
        cls,
        table: reading.Table,
        who: Int[np.ndarray, " ranking"],
        count: Float[np.ndarray, " ranking"] | None,
        items: tuple[Any, ...],
        annotators: tuple[Any, ...],
        unranked: reading.Unranked | None,
        aggregate: bool,
    ) -> Rankings:
        """The rankings of a table of codes."""
        offered, place = reading.with_unranked(table, len(items), unranked)
        depth = (place > 0).sum(1).astype(np.int32)
        named = (place < 0).any(1).astype(np.int32)
        lowest = named if named.any() else None
        data = cls(who, depth, count, offered, place, annotators, items, lowest)
        return data.aggregate() if aggregate else data

    # ---------------------------------------------------------------- facts

    @property
    def num_rankings(self) -> int:
        """Number of rankings, counts included."""
        return self.num_judgements

    @property
    def is_partial(self) -> bool:
        """True if a ranking leaves an item that was offered without a place."""
        if self.place is None:
            return False
        return bool(((np.asarray(self.place) == 0) & (np.asarray(self.offered) >= 0)).any())

    def to_frame(self) -> pd.DataFrame:
        """The rankings as a long table, by name: ``ranking`` (its row), ``annotator``, ``item``,
        ``rank`` (missing for an item without a place), ``lowest`` (1 for an item named as the
        worst, in data that ask for it) and ``count``, as `from_frame` reads it with ``unranked="not
        offered"``."""
        self.check_answered()
        offered, place = np.asarray(self.offered), np.asarray(self.place)
        count = np.asarray(self.weight)
        row, position = np.nonzero((offered >= 0) & (count > 0)[:, None])
        rank = pd.array(place[row, position], dtype="Int64")
        rank[place[row, position] <= 0] = pd.NA
        lowest = {} if self.lowest is None else {"lowest": (place[row, position] < 0).astype(int)}
        return pd.DataFrame(
            {
                "ranking": row,
                "annotator": names_array(self.annotators)[np.asarray(self.annotator)[row]],
                "item": names_array(self.items)[offered[row, position]],
                "rank": rank,
                **lowest,
                "count": count[row].astype(np.int64),
            }
        )

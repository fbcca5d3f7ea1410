"""Rankings: which items were ranked in which places, as integer codes with the names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float, Int, Shaped

from raters.errors import DataError, refuse_data
from raters.errors.validation import boolean
from raters.judgements import names as naming
from raters.judgements.choices import Choices
from raters.judgements.counts import (
    Codes,
    Mask,
    Numbers,
    Sets,
    Tallies,
    numbers_tied,
    ordered_pairs,
    place_within,
)
from raters.judgements.names import Names
from raters.judgements.reading import columns as reading
from raters.judgements.reading.columns import Column, Columns, read_columns
from raters.judgements.roles import of_axes, same_as, static
from raters.judgements.sets import OfferedSets

Unranked = Literal["below", "not offered"]

# Up to here whole numbers are exact in double precision.
_MOST = 2**53


def order_code(positions: Sequence[int], size: int) -> int:
    """Number of an order in a mixed radix: first position's among all, next's among the rest, …."""
    code, rest = 0, list(range(size))
    for position in positions:
        code = code * len(rest) + rest.index(position)
        rest.remove(position)
    return code


def order_of(code: int, size: int, depth: int) -> list[int]:
    """The order of a number."""
    digits, left = [], code
    for number in range(size - depth + 1, size + 1):
        left, digit = divmod(left, number)
        digits.append(digit)
    if left:
        problem = f"is the number of no order of {depth} of {size} items"
        expected = f"it must be at least 0 and below {math.perm(size, depth)}"
        refuse_data("outcomes", code, problem, expected)
    rest = list(range(size))
    return [rest.pop(digit) for digit in reversed(digits)]


# What stands, in words, for the items between the best and the worst.
_BETWEEN = ("...", "…")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Rankings(OfferedSets):
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
        Place of each: 1 and the number of items ahead, so that items of equal rank share a place
        and leave a gap (1, 2, 2, 4); 0 for an item without a place, and where there is none; −1 for
        the worst of those without a place where it is named. None when the outcomes are not known
        yet, as for `raters.simulate`.
    annotators, items : tuple
        The names, in code order.
    lowest : int array, shape (ranking,), or None
        1 where the worst of the items without a place is asked for as well, else 0. None where it
        is asked for nowhere.
    most_tied : int
        Most items that may share a place: 1 where ranks are distinct.

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
    most_tied: int = static(1)

    axes = {"annotator": "annotator", "offered": "item"}
    names = {"annotator": "annotators", "item": "items"}
    answer = "place"
    row = "ranking"
    predicted = "first"
    answer_scale = "places"

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
        unranked: Unranked | None = None,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        aggregate: bool = True,
    ) -> Rankings:
        """Read rankings from a table with one row for each item of each ranking.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
        ranking, item : str
            Columns that name the ranking, or what several annotators rank the items of, and the
            item.
        rank : str
            Column of ranks, from 1 for the best; equal ones are ties, and those behind may go on
            as 2, as 3 or after a mean of 1.5. An empty one says that the item was offered, and
            comes below all that have a rank.
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

        Raises
        ------
        DataError
            When a rank is below 1; when a ranking names an item twice, places none, or has several
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
        others: dict[str, Any] = {"lowest": lowest, "annotator": annotator, "count": count}
        roles, empty = {"ranking": ranking, "item": item, "rank": rank}, ("rank", "lowest")
        columns = read_columns(frame, roles, empty=empty, part_of=ranking, **others)
        of, names = columns.codes("ranking")
        what, item_names = columns.codes("item", items)
        who, annotator_names = columns.annotators(annotators, each=names)
        if annotator is not None and reading.repeated(of, what).any():
            # Each annotator ranks the items of a text.
            each, of = np.unique(np.stack([of, who], 1), axis=0, return_inverse=True)
            names = tuple(f"{names[one]} by {annotator_names[by]}" for one, by in each.tolist())
        if (twice := reading.repeated(of, what)).any():
            item_name, name = item_names[what[np.argmax(twice)]], names[of[np.argmax(twice)]]
            problem = f"names {item_name!r} twice in the ranking {name!r}"
            expected = "it must name an item once; leave out the other rows, or name `annotator`"
            columns["item"].refuse(problem, f"{expected} where several rank the same items")
        if annotator is not None:
            who = reading.one_each(of, columns["annotator"], who, names)
        place = _placed(columns["rank"], of)
        place = _with_worst(columns.get("lowest"), of, names, place)
        number = columns.counts()
        if number is not None:
            number = reading.one_each(of, columns["count"], number, names)
        cells, by = (of, what, place), (who, annotator_names)
        return cls._of(cells, len(names), item_names, by, number, unranked, "rank", aggregate)

    @classmethod
    def from_wide(
        cls,
        frame: Any,
        *,
        places: Sequence[str],
        annotator: str | None = None,
        count: str | None = None,
        unranked: Unranked | None = None,
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
        columns = wide_columns(frame, places, "places", 1, **others)
        in_place, item_names = in_places(columns.lists["places"], items)
        row, column = np.nonzero(in_place >= 0)
        cells = row, in_place[row, column], column + 1
        by = columns.annotators(annotators, each=range(columns.rows))
        number = len(in_place), item_names
        return cls._of(cells, *number, by, columns.counts(), unranked, "places", aggregate)

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
        given = {"best": best, "worst": worst}
        named = {role: reading.column_name(role, name) for role, name in given.items()}
        others = {"annotator": annotator, "count": count}
        columns = wide_columns(frame, offered, "offered", 2, **named, **others)
        cells, item_names = _best_and_worst(columns, items)
        by = columns.annotators(annotators, each=range(columns.rows))
        number = columns.rows, item_names
        return cls._of(cells, *number, by, columns.counts(), "not offered", "best", aggregate)

    @classmethod
    def _of(
        cls,
        cells: tuple[Codes, Codes, Codes],
        number: int,
        items: Names,
        by: tuple[Codes, Names],
        count: Numbers | None,
        unranked: Unranked | None,
        role: str,
        aggregate: bool,
    ) -> Rankings:
        """So many rankings of cells: number of the ranking, code of the item, and its place."""
        order = np.lexsort(cells[1::-1])
        ranking, item, place = (column[order] for column in cells)
        none = np.bincount(ranking, place > 0, number) == 0
        expected = "a ranking places one item or more; leave the others out"
        reading.refuse_where(role, none, "has a ranking that places no item,", expected)
        size = np.bincount(ranking, minlength=number)
        _check_unranked(unranked, size < len(items))
        position, every = place_within(ranking), np.full((number, int(size.max(initial=0))), -1)
        if unranked == "below" and (size < len(items)).any():
            position, every = item, np.tile(np.arange(len(items)), (number, 1))
        offered, places = every.astype(np.int32), np.zeros(every.shape, np.int32)
        offered[ranking, position], places[ranking, position] = item, place
        depth, named = (places > 0).sum(1).astype(np.int32), (places < 0).any(1).astype(np.int32)
        lowest = named if named.any() else None
        most_tied = int(numbers_tied(places)[places > 0].max(initial=1))
        data = cls(by[0], depth, count, offered, places, by[1], items, lowest, most_tied)
        return data.aggregate() if aggregate else data

    # ---------------------------------------------------------------- facts

    num_rankings = same_as("num_judgements", "Number of rankings, counts included.")

    @property
    def is_partial(self) -> bool:
        """True if a ranking leaves an item that was offered without a place."""
        left = self.place is not None and (np.asarray(self.place) == 0) & self.there
        return bool(np.any(left))

    def to_frame(self) -> pd.DataFrame:
        """The rankings as a long table, by name: ``ranking`` (its row), ``annotator``, ``item``,
        ``rank`` (missing for an item without a place), ``lowest`` (1 for an item named as the
        worst, in data that ask for it) and ``count``, as `from_frame` reads it with ``unranked="not
        offered"``."""
        real = self.unpadded()
        row, position, columns = real.offers()
        table = pd.DataFrame(columns)[["ranking", "annotator", "item"]]
        if real.place is not None:
            place = pd.Series(np.asarray(real.place)[row, position])
            table["rank"] = place.astype("Int64").where(place > 0)
            if self.lowest is not None:
                table["lowest"] = (place < 0).astype(int)
        return table.assign(count=np.asarray(real.weight)[row].astype(np.int64))

    def answers(self) -> Int[np.ndarray, " answer"]:
        """Places, 0 for none, and −1 for the worst where it is asked for."""
        return np.arange(0 if self.lowest is None else -1, np.shape(self.offered)[1] + 1)

    def all_answered(self, answer: Any) -> Self:
        """The item in one position comes first, and no other has a place, where none may tie."""
        return replace(super().all_answered(answer), most_tied=1)

    def answer_table(
        self, table: Float[np.ndarray, "draw position ranking"]
    ) -> tuple[Shaped[np.ndarray, " item"], Float[np.ndarray, "draw item ranking"]]:
        """Names of all items, and their probabilities of the first place, 0 if not offered."""
        offered = np.asarray(self.offered)
        by_item = np.zeros((len(table), len(self.items), len(offered)), table.dtype)
        row, position = np.nonzero(self.there)
        by_item[:, offered[row, position], row] = table[:, position, row]
        return naming.names_array(self.items), by_item

    @property
    def instruction(self) -> str:
        """Sentence that asks these questions."""
        if self.lowest is None or not np.any(np.asarray(self.lowest)):
            return super().instruction
        if np.all(np.asarray(self.lowest)) and np.all(np.asarray(self.depth) == 1):
            return "Which of these is the best, and which is the worst?"
        return "Put the best of these in order, and name the worst where it is asked for."

    def unanswered(self) -> Self:
        """The questions without the answers: a row with a count becomes so many rows."""
        return replace(self._each(), place=None, count=None)

    def answered(self, outcomes: Any) -> Self:
        """These questions with outcomes."""
        column = np.asarray(outcomes)
        is_code = column.shape == (self.num_rows,) != (np.size(self.offered),)
        if not is_code or column.dtype.kind not in "iuf":
            return super().answered(column)
        place = np.zeros(np.shape(self.offered), np.int32)
        for row, code in enumerate(column.tolist()):
            size, named = self._shape_of(row)
            if math.perm(size, named) << (named if self.most_tied > 1 else 0) > _MOST:
                problem = f"places of {size} items have more orders than a journal can hold"
                expected = "ask for fewer, or offer fewer items"
                line = "rt.Candidates.sets(data, size=6)"
                refuse_data("depth", named, problem, expected, instead=line)
            number = 1
            for tie in self._ties_of(row, int(code)):
                place[row, tie] = number
                number += len(tie)
            if self._asks_worst(row):
                place[row, tie] = -1
        return replace(self, place=place)

    def _ties_of(self, row: int, code: int) -> list[list[int]]:
        """Positions of each place, in the order that a number stands for."""
        size, named = self._shape_of(row)
        orders, tied = math.perm(size, named), 0
        if self.most_tied > 1 and code < orders << (named - 1):
            tied, code = divmod(code, orders)
        ties: list[list[int]] = []
        for at, position in enumerate(order_of(code, size, named)):
            if at and tied >> (at - 1) & 1:
                ties[-1].append(position)
            else:
                ties.append([position])
        return ties

    def _code_of(self, row: int, ties: Iterable[Iterable[int]]) -> float:
        """Number of an order of positions: that without ties, and one for each that ties."""
        size, named = self._shape_of(row)
        order, tied = list[int](), 0
        for tie in map(sorted, ties):
            tied |= sum(1 << (len(order) + at) for at in range(len(tie) - 1))
            order += tie
        return float(tied * math.perm(size, named) + order_code(order, size))

    def _alike(self, other: Self) -> tuple[Self, Self]:
        first, second = super()._alike(other)
        asks = self.lowest is not None or other.lowest is not None
        most_tied = max(self.most_tied, other.most_tied)
        return first._asking(asks, most_tied), second._asking(asks, most_tied)

    def _asking(self, asks: bool, most_tied: int) -> Self:
        """The same rankings with larger ties, and whether the worst is asked."""
        none = np.zeros(self.num_rows, np.int32) if asks else None
        lowest = none if self.lowest is None else self.lowest
        return replace(self, lowest=lowest, most_tied=most_tied)

    def stages(self) -> Choices:
        """The rankings as choices: of the best of all items offered, then of the best of the rest.

        Plackett and Luce's probability of a ranking is the product of those of its choices, so that
        models of choices without features are models of rankings, with constants for worths:
        `MultinomialLogit` is then `PlackettLuce`, and `LatentClassLogit` is `MixturePlackettLuce`.

        Returns
        -------
        Choices
            One set for each place that leaves a choice, by the annotators of the rankings; equal
            ones of an annotator are counted together.

        Raises
        ------
        DataError
            When these are questions without answers, no place leaves a choice, items tie, or a
            ranking names the worst: that is chosen by utilities turned round, as in no model of
            choices.

        Examples
        --------
        >>> import raters as rt
        >>> rankings = rt.Rankings.from_wide(
        ...     {"best": ["tea", "milk"], "next": ["milk", "tea"], "last": ["beer", "beer"]},
        ...     places=["best", "next", "last"])
        >>> rankings.stages().num_choices
        4
        """
        if self.place is None:
            raise DataError("these are questions without answers, which choose nothing")
        if self.most_tied > 1:
            raise DataError(
                "items of these rankings tie, and a choice is of one; fit the rankings themselves:"
                " rt.fit(rt.PlackettLuce(ties='davidson'), rankings, seed=0)"
            )
        if self.lowest is not None and np.any(np.asarray(self.lowest)):
            raise DataError(
                "the worst is chosen by the lowest utility, and models of choices choose by the"
                " highest; take choices of the best: rankings.without_worst().stages()"
            )
        offered, place = np.asarray(self.offered), np.asarray(self.place)
        count, who = np.asarray(self.weight), np.asarray(self.annotator)
        stages, of_stage = np.arange(1, int(place.max(initial=0)) + 1)[:, None], place[:, None]
        left = (offered >= 0)[:, None] & ((of_stage == 0) | (of_stage >= stages))
        asked = (of_stage == stages).any(2) & (left.sum(2) > 1) & (count > 0)[:, None]
        row, stage = np.nonzero(asked)
        if not len(row):
            raise DataError("no ranking has two items, so that no place leaves a choice")
        best = place[row] == stage[:, None] + 1
        sets = row * (place.shape[1] + 1) + stage + 1
        choices = Choices(
            offered=np.where(left[row, stage], offered[row], -1),
            annotator=who[row],
            chosen=np.where(best, count[row, None], 0).astype(np.float32),
            count=count[row].astype(np.float32),
            sets=tuple(sets.tolist()),
            alternatives=self.items,
            annotators=self.annotators,
        )
        return choices.aggregate()

    def without_worst(self) -> Self:
        """The rankings with the items named as the worst among those without a place."""
        place = None if self.place is None else np.maximum(np.asarray(self.place), 0)
        return replace(self, place=place, lowest=None)

    def _tallied(self, about: Codes) -> Tallies:
        """Counted answers by annotator and pair: 1 where the lower code is ahead."""
        who, offered = np.asarray(self.annotator, np.int64), np.asarray(self.offered, np.int64)
        place, count = np.asarray(self.place), np.asarray(self.weight, float)
        return ordered_pairs(who, offered, place, count, len(self.items))

    def warn(self) -> None:
        """Warn about what these data cannot tell: items never offered, rankings of one."""
        never = self.judgements_by("item") == 0
        sentence = "item(s) were never offered, and keep their prior"
        naming.warn_of_each({sentence: (self.items, never)})
        if single := int((self.there.sum(1) == 1).sum()):
            naming.warn_data(f"{single} ranking(s) have a single item, and say nothing")

    # ---------------------------------------------------------------- checks

    def check(self) -> None:
        """Raise unless each ranking places its items from 1 without gaps, and columns fit."""
        super().check()
        if self.lowest is not None:
            left = self.there.sum(1) - np.asarray(self.depth)
            asked = np.asarray(self.lowest)
            wrong = ~np.isin(asked, (0, 1)) | ((asked == 1) & (left < 1))
            self._refuse("lowest", wrong, "it must be 0 or 1, and 0 where all items have a place")
        if self.place is None:
            return
        place = np.asarray(self.place)
        lowest = 0 if self.lowest is None else np.asarray(self.lowest)
        ordered, number = np.sort(np.maximum(place, 0), axis=1), (place > 0).sum(1)
        wanted = np.arange(place.shape[1]) - (place.shape[1] - number)[:, None] + 1
        tied = (wanted > 1) & (ordered == np.roll(ordered, 1, axis=1))
        wrong = (ordered != np.maximum(wanted, 0)) & ~tied
        wrong |= (place != 0) & ~self.there
        wrong |= ((number != np.asarray(self.depth)) | ((place < 0).sum(1) != lowest))[:, None]
        expected = "places of items offered must be 1, 2, ... up to `depth`, and -1 of one item"
        self._refuse("place", wrong, f"{expected} where `lowest` is 1")
        several = numbers_tied(place) > self.most_tied
        self._refuse("place", several, f"{self.most_tied} item(s) may share one, by `most_tied`")

    # ---------------------------------------------------------------- words

    def listed_word(self, row: int, answer: float) -> str:
        """Name of the item in the first place."""
        return next(word for word, value in self.answer_words(row).items() if value == answer)

    def outcome_of(self, row: int, answer: Any) -> float | None:
        """Number of the order that an answer in words stands for."""
        names = answer.split(">") if isinstance(answer, str) else answer
        if not isinstance(names, (list, tuple)):
            return None
        size, named = self._shape_of(row)
        if self._asks_worst(row) and len(names) == named + 1:
            between = isinstance(names[-2], str) and names[-2].strip() in _BETWEEN
            names = [*names[:-2], names[-1]] if between else names
        if self.most_tied > 1:
            names = [name.split("=") if isinstance(name, str) else name for name in names]
        places = [name if isinstance(name, (list, tuple)) else [name] for name in names]
        known = [[super(Rankings, self).outcome_of(row, one) for one in tied] for tied in places]
        ties = [[-1 if one is None else int(one) for one in tied] for tied in known]
        every = [position for tie in ties for position in tie]
        if named == size == len(every) + 1:
            ties.append([one for one in range(size) if one not in every][:1])
            every += ties[-1]
        most, worst = max(map(len, ties), default=0), self._asks_worst(row)
        is_order = -1 not in every and len(set(every)) == len(every) == named
        if not is_order or most > self.most_tied or (worst and len(ties[-1]) > 1):
            words = list(self.answer_words(row))
            such = [*words[: named - 1], words[-1]] if worst else words[:named]
            best = f"the best {named - worst}{' and the worst' if worst else ''}"
            problem = f"is no order of {best} of these {size} items"
            expected = f"write names, the best first, such as {self._written(row, such)!r}"
            if self.most_tied > 1:
                expected += f", with = between at most {self.most_tied} that tie"
            refuse_data("answer", answer, problem, expected)
        return self._code_of(row, ties)

    def _written(self, row: int, names: list[str]) -> str:
        """Names in each place, and of the worst, as an order in words."""
        size, named = self._shape_of(row)
        between = [_BETWEEN[0]] if self._asks_worst(row) and named < size else []
        return " > ".join([*names[:-1], *between, names[-1]])

    def words_of(self, row: int, outcome: float) -> str:
        """The order that a number stands for, in words."""
        names, ties = list(self.answer_words(row)), self._ties_of(row, int(outcome))
        places = [" = ".join(names[position] for position in tie) for tie in ties]
        return self._written(row, places)

    def single_outcomes(self) -> tuple[Codes, Numbers, Numbers]:
        """Each row, the number of its order, and how often it was given."""
        codes = np.zeros(self.num_rows)
        for row, place in enumerate(np.asarray(self.place)):
            numbers = [*np.unique(place[place > 0]), *([-1] if self._asks_worst(row) else [])]
            ties = [np.flatnonzero(place == number).tolist() for number in numbers]
            codes[row] = self._code_of(row, ties)
        return np.arange(self.num_rows), codes, np.asarray(self.weight, float)

    def _shape_of(self, row: int) -> tuple[int, int]:
        """Number of items offered by a question, and of those to name."""
        row = self._place(row)
        size = int((np.asarray(self.offered)[row] >= 0).sum())
        return size, int(np.asarray(self.depth)[row]) + self._asks_worst(row)

    def _asks_worst(self, row: int) -> bool:
        """True if a question asks for the worst, too."""
        return self.lowest is not None and bool(np.asarray(self.lowest)[row])


# ---------------------------------------------------------------- reading


def _best_and_worst(columns: Columns, known: Iterable[Any] | None) -> tuple[Any, Names]:
    """Answers as rankings: place 1 for the best item, −1 for the worst, 0 for the others."""
    shown_items = columns.lists["offered"]
    cells, names = _coded(shown_items, known, [columns["best"], columns["worst"]])
    items, top, bottom = cells[:, :-2], cells[:, -2], cells[:, -1]
    few = (items >= 0).sum(1) < 2
    expected = "the best and the worst are of two items or more; leave those rows out"
    reading.refuse_where("offered", few, "has fewer than two items", expected)
    for role, code in {"best": top, "worst": bottom}.items():
        other = ~(items == code[:, None]).any(1)
        other = (code < 0) | other if role == "best" else (code >= 0) & other
        if other.any():
            at = int(np.argmax(other))
            those = naming.shorten([names[item] for item in items[at] if item >= 0])
            name = names[code[at]] if code[at] >= 0 else "no item"
            problem = f"names {name!r} in {reading.where(other)}, where the items are {those}"
            columns[role].refuse(problem, "it must name one of them, not its number or column")
    expected = "the worst is another item; leave those rows out"
    reading.refuse_where(columns["worst"], top == bottom, "names what `best` does", expected)
    row, position = np.nonzero(items >= 0)
    item = items[row, position]
    place = np.where(item == top[row], 1, np.where(item == bottom[row], -1, 0))
    return (row, item, place), names


def _with_worst(column: Column | None, ranking: Codes, names: Names, place: Codes) -> Codes:
    """Places in a long table, with −1 for the items that a column marks as the worst."""
    if column is None:
        return place
    mark = np.nan_to_num(reading.read_numbers(column))
    several = (mark == 1) & (np.bincount(ranking, mark == 1, len(names))[ranking] > 1)
    problems = {
        "is neither 0 nor 1": ~np.isin(mark, (0, 1)),
        "marks an item that has a rank": (mark == 1) & (place > 0),
        "marks several items as the worst": several,
    }
    expected = "it must be 1 for one item without a rank at most, and 0 or nothing for the others"
    for problem, wrong in problems.items():
        reading.refuse_where(column, wrong, problem, expected)
    return np.where(mark == 1, -1, place).astype(np.int32)


def _check_unranked(unranked: Any, lacking: Mask) -> None:
    """Raise unless it is said what becomes of items that rankings leave out, where some do."""
    known = isinstance(unranked, str) and unranked in get_args(Unranked)
    if not known and (unranked is not None or lacking.any()):
        problem = "is unknown"
        if unranked is None:
            problem = "does not say what becomes of the items that rankings leave out,"
            problem += f" in {reading.where(lacking)}"
        expected = "'below': they were offered, and come below all that have a place; 'not offered'"
        expected += ": they were not to be ranked, as drivers who were not in a race"
        line = "unranked='below'"
        refuse_data("unranked", naming.shown(unranked), problem, expected, instead=line)


def _placed(column: Column, ranking: Codes) -> Codes:
    """Place of each row in its ranking by a column of ranks, 0 where that is empty."""
    score = reading.read_numbers(column)
    column.refuse_rows(
        score < 1,
        "ranks begin with 1, the best: leave the rank of an item without a place empty (as of a"
        " driver who did not finish), or add 1 to all where they begin with 0",
        f"frame[{column.name!r}] = frame[{column.name!r}].where(frame[{column.name!r}] >= 1)",
    )
    place = pd.Series(score).groupby(ranking).rank(method="min")
    return place.fillna(0).to_numpy(np.int32)


def wide_columns(frame: Any, places: Any, role: str, least: int, **others: Any) -> Columns:
    """Columns of a table with rows of rankings: those of items, `least` or more, others by role."""
    listed = reading.matching(frame, places, role)
    if len(listed) < least:
        few = f"names fewer than {least} columns"
        refuse_data(role, places, few, "give all of them", instead=f"{role}=['{role}*']")
    names = [*listed, *filter(np.isscalar, others.values())]
    for name in listed:
        if names.count(name) > 1:
            refuse_data(role, name, "comes twice", f"name one column for each, apart from `{role}`")
    return read_columns(frame, several={role: listed}, empty=(role, "best", "worst"), **others)


def _coded(
    cells: Sequence[Column], known: Iterable[Any] | None, beside: Sequence[Column] = ()
) -> tuple[Sets, Names]:
    """Code of each cell's item, −1 for none, and names; an error for a row with an item twice."""
    codes, names = naming.encode_names([*cells, *beside], known, "item")
    table = np.stack(codes, axis=1)
    ordered = np.sort(table[:, : len(cells)], axis=1)
    again = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if again.any():
        problem = f"has {names[ordered[:, 1:][again][0]]!r} twice in {reading.where(again.any(1))}"
        expected = "a row names an item once; correct those rows, or leave them out"
        refuse_data(cells[0].role, problem=problem, expected=expected)
    return table, names


def in_places(cells: Sequence[Column], known: Iterable[Any] | None) -> tuple[Sets, Names]:
    """Code of the item in each place of each ranking, −1 for none, and the names."""
    table, names = _coded(cells, known)
    late = (table[:, 1:] >= 0) & (table[:, :-1] < 0)
    for wrong, before, column in zip(late.T, cells, cells[1:], strict=False):
        problem = f"has an item, and column {before.name!r} before it has none,"
        reading.refuse_where(column, wrong, problem, "only the last may be empty")
    return table, names

"""The containers of human judgement. ``Comparisons`` holds pairwise votes as integer codes with the names beside them."""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax
import numpy as np
import scipy.sparse

from raters import _frame
from raters.errors import DataError, DataWarning

Ties = Literal["error", "drop", "half"]

_FIRST_WORDS = ("first", "left", "a", "item_a", "1", "true", "win", "model_a")
_SECOND_WORDS = ("second", "right", "b", "item_b", "0", "false", "loss", "model_b")
_TIE_WORDS = ("tie", "draw", "equal", "both", "0.5", "½")
_MAX_PAIRS = 50_000_000
# Rows at a time where a pass over all of them would need arrays as large as the data.
_PIECE = 1 << 18


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Comparisons:
    """Pairwise votes: annotator k compared two items; how many of the votes went to the first.

    Build it with `from_frame` or `from_ratings`; the constructor takes codes that are already right.

    Parameters
    ----------
    first, second : int array, shape (comparison,)
        Codes of the two items, in the order of presentation where that is known (`ordered`).
    annotator : int array, shape (comparison,)
        Code of the annotator who voted.
    wins : float array, shape (comparison,), or None
        Votes for the first item: between 0 and `count`. A tie under ``ties="half"`` gives half a vote.
        None when the outcomes are not known yet, as for `raters.simulate`.
    count : float array, shape (comparison,), or None
        Votes in the row. None means one in each.
    items, annotators : tuple
        The names, in code order.
    ordered : bool
        Whether `first` is known to have been shown first. Position bias can only be learned if it is.

    Examples
    --------
    >>> import raters as rt
    >>> votes = rt.Comparisons.from_frame(
    ...     {"winner": ["tea", "tea", "coffee"], "loser": ["coffee", "water", "water"], "who": ["ann", "bob", "ann"]},
    ...     winner="winner", loser="loser", annotator="who",
    ... )
    >>> votes.num_items, votes.num_annotators, votes.num_votes
    (3, 2, 3)
    >>> votes.coords["item"]
    ('coffee', 'tea', 'water')
    """

    first: Any
    second: Any
    annotator: Any
    wins: Any
    count: Any
    items: tuple[Any, ...] = dataclasses.field(metadata={"static": True})
    annotators: tuple[Any, ...] = dataclasses.field(metadata={"static": True})
    ordered: bool = dataclasses.field(default=False, metadata={"static": True})

    # ---------------------------------------------------------------- building

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        winner: str | None = None,
        loser: str | None = None,
        first: str | None = None,
        second: str | None = None,
        outcome: str | None = None,
        annotator: str | None = None,
        count: str | None = None,
        ties: Ties = "error",
        outcomes: Mapping[str, Any] | None = None,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        aggregate: bool = True,
    ) -> Comparisons:
        """Read votes from a table: a winner and a loser, or two sides and an outcome.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
        winner, loser : str
            Columns that name the preferred and the other item. The order of presentation is then unknown.
        first, second, outcome : str
            Columns that name the item shown first, the item shown second, and who won. An outcome is the name of
            one of the two items, the name of one of the two columns, a word (``first``/``second``, ``left``/``right``,
            ``a``/``b``), or a number (1: the first, 0: the second, 0.5: a tie). A word that starts with ``tie``, or
            ``draw``, ``equal``, ``both``, is a tie.
        annotator : str, optional
            Column that names who voted; without it all votes are those of one annotator, ``"all"``.
        count : str, optional
            Column with the number of equal votes that a row stands for.
        ties : {"error", "drop", "half"}
            What to do with a tie: refuse the table, leave the row out, or count half a vote for each side.
        outcomes : mapping, optional
            The values of `outcome` spelled out, when they are none of the above:
            ``{"first": 1, "second": 2, "tie": 0}``.
        items, annotators : iterable, optional
            All names in the order wanted, also of those that the table does not mention.
        aggregate : bool
            Put equal (pair, annotator) rows together into one row with a count.

        Returns
        -------
        Comparisons

        Raises
        ------
        DataError
            When a column is missing, empty or has missing values; an item is compared with itself; an outcome is
            neither side; a count is not a whole number; a tie is met under ``ties="error"``.
        """
        if ties not in ("error", "drop", "half"):
            raise DataError(f"ties={ties!r} is not a policy; write ties='error', ties='drop' or ties='half'")
        table = _frame.columns(frame)
        sides = _sides(winner, loser, first, second, outcome, table)
        left, right = (_frame.column(table, name, role) for role, name in sides)
        (left_code, right_code), item_names = _frame.encode([left, right], items, "item")
        _check_items(left_code, right_code, item_names, sides)
        if outcome is None:
            wins = np.ones(len(left_code), np.float32)
        else:
            values = _frame.column(table, outcome, "outcome")
            wins = _read_outcomes(values, left, right, sides, outcome, outcomes)
        votes = np.ones(len(left_code), np.float32)
        if count is not None:
            votes = _frame.counts(_frame.column(table, count, "count"), count)
        who, annotator_names = _annotators(table, annotator, annotators, len(left_code))
        keep = _settle_ties(wins, ties, outcome or "")
        data = cls(
            first=left_code[keep],
            second=right_code[keep],
            annotator=who[keep],
            wins=(wins * votes)[keep],
            count=votes[keep],
            items=item_names,
            annotators=annotator_names,
            ordered=outcome is not None,
        )
        return data.aggregate() if aggregate else data._slim()

    @classmethod
    def from_ratings(
        cls,
        frame: Any,
        *,
        item: str,
        rating: str,
        annotator: str | None = None,
        ties: Ties = "drop",
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
    ) -> Comparisons:
        """Turn ratings or scores into comparisons: of two items that one annotator rated, the higher rating wins.

        Each annotator's n ratings become up to n(n−1)/2 comparisons. Those are not independent (they carry n numbers'
        worth of information), so intervals come out narrower than n ratings deserve: read the order of things
        and the contrast between annotators from the fit, and the widths with that in mind.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
        item, rating : str
            Columns with the item and its numeric rating; higher wins.
        annotator : str, optional
            Column that names who rated. An item rated several times by one annotator is compared in each of them.
        ties : {"drop", "half", "error"}
            What to do with equal ratings.
        items, annotators : iterable, optional
            All names in the order wanted.

        Returns
        -------
        Comparisons
            Aggregated, without an order of presentation.

        Examples
        --------
        >>> import raters as rt
        >>> votes = rt.Comparisons.from_ratings(
        ...     {"film": ["Alien", "Brazil", "Casablanca"], "stars": [3, 5, 3]}, item="film", rating="stars")
        >>> votes.num_votes        # the tie is dropped
        2
        """
        if ties not in ("error", "drop", "half"):
            raise DataError(f"ties={ties!r} is not a policy; write ties='error', ties='drop' or ties='half'")
        table = _frame.columns(frame)
        (codes,), item_names = _frame.encode([_frame.column(table, item, "item")], items, "item")
        score = _frame.numeric(_frame.column(table, rating, "rating"), rating, "rating")
        who, annotator_names = _annotators(table, annotator, annotators, len(codes))
        order = np.argsort(who, kind="stable")
        sizes = np.bincount(who, minlength=len(annotator_names)).astype(np.int64)
        if (pairs := int((sizes * (sizes - 1) // 2).sum())) > _MAX_PAIRS:
            raise DataError(
                f"{len(codes):,} ratings would become {pairs:,} comparisons (at most {_MAX_PAIRS:,}); "
                "rate in smaller groups, or draw a sample of each annotator's ratings first"
            )
        pieces = [
            order[start : start + size][np.stack(np.triu_indices(size, 1))]
            for start, size in zip(np.cumsum(sizes) - sizes, sizes, strict=True)
        ]
        one, two = np.concatenate(pieces, axis=1)
        one, two = (side[codes[one] != codes[two]] for side in (one, two))
        if len(one) == 0:
            raise DataError("no annotator rated two different items, so there is nothing to compare")
        wins = np.where(score[one] == score[two], 0.5, score[one] > score[two]).astype(np.float32)
        keep = _settle_ties(wins, ties, rating)
        one, two = one[keep], two[keep]
        return cls(
            codes[one], codes[two], who[one], wins[keep], np.ones(len(one), np.float32), item_names, annotator_names
        ).aggregate()

    # ---------------------------------------------------------------- facts

    @property
    def num_items(self) -> int:
        """Number of items, compared or not."""
        return len(self.items)

    @property
    def num_annotators(self) -> int:
        """Number of annotators, with votes or without."""
        return len(self.annotators)

    @property
    def num_comparisons(self) -> int:
        """Number of rows; see `num_votes` for the votes that they stand for."""
        return self.first.shape[0]

    @property
    def num_votes(self) -> int:
        """Number of votes, counts included."""
        return self.num_comparisons if self.count is None else int(np.asarray(self.count).sum())

    @property
    def coords(self) -> dict[str, Sequence[Any]]:
        """The names along each axis: ``item``, ``annotator``, ``comparison``."""
        return {
            "item": self.items,
            "annotator": self.annotators,
            "comparison": range(self.num_comparisons),
        }

    def votes_by_annotator(self) -> np.ndarray:
        """Number of votes of each annotator, shape (annotator,)."""
        weights = None if self.count is None else np.asarray(self.count)
        return np.bincount(np.asarray(self.annotator), weights, self.num_annotators).astype(np.int64)

    def votes_by_item(self) -> np.ndarray:
        """Number of votes in which each item took part, shape (item,)."""
        total = np.zeros(self.num_items)
        for piece in self.chunks(_PIECE):
            weights = None if piece.count is None else np.asarray(piece.count)
            for side in (piece.first, piece.second):
                total += np.bincount(np.asarray(side), weights, self.num_items)
        return total.astype(np.int64)

    def components(self) -> list[tuple[Any, ...]]:
        """The connected components of the graph of comparisons, largest first, as tuples of item names.

        Rewards of items in different components are related by the prior only.
        """
        label = np.arange(self.num_items)
        for piece in self.chunks(_PIECE):
            ends = label[np.asarray(piece.first)], label[np.asarray(piece.second)]
            graph = scipy.sparse.coo_array((np.ones(len(ends[0]), bool), ends), shape=(self.num_items, self.num_items))
            label = scipy.sparse.csgraph.connected_components(graph, directed=False)[1][label]
        groups: dict[int, list[Any]] = {}
        for name, group in zip(self.items, label.tolist(), strict=True):
            groups.setdefault(group, []).append(name)
        return sorted(map(tuple, groups.values()), key=len, reverse=True)

    def warn(self) -> None:
        """Warn about what these data cannot tell: items never compared, components, a single annotator."""
        seen = self.votes_by_item() > 0
        if not seen.all():
            names = [name for name, used in zip(self.items, seen, strict=True) if not used]
            warnings.warn(
                f"{len(names)} item(s) are never compared and keep their prior: {_shorten(names)}",
                DataWarning,
                stacklevel=3,
            )
        parts = [part for part in self.components() if len(part) > 1]
        if len(parts) > 1:
            listing = "; ".join(f"{len(part)} items ({_shorten(part)})" for part in parts[:4])
            warnings.warn(
                f"the graph of comparisons falls into {len(parts)} components: {listing}. Rewards are comparable within "
                "a component; between components only the prior relates them. Add comparisons across",
                DataWarning,
                stacklevel=3,
            )

    # ---------------------------------------------------------------- results

    def groups(self) -> dict[str, dict[str, np.ndarray]]:
        """What a result stores of the data, by group; `from_result` reads it back."""
        constant = {f"{role}_code": np.asarray(getattr(self, role)) for role in ("first", "second", "annotator")}
        if self.count is not None:
            constant["count"] = np.asarray(self.count)
        return {"observed_data": {"outcome": np.asarray(self.wins)}, "constant_data": constant}

    def flags(self) -> dict[str, Any]:
        """What a result stores of the data as attributes: the names, also of those who have no axis, and the order."""
        return {
            "items": json.dumps([_plain_name(name) for name in self.items]),
            "annotators": json.dumps([_plain_name(name) for name in self.annotators]),
            "ordered": int(self.ordered),
        }

    @classmethod
    def from_result(cls, result: Any) -> Comparisons:
        """The data that a result was fitted to."""
        constant = result["constant_data"]
        return cls(
            **{role: np.asarray(constant[f"{role}_code"].values) for role in ("first", "second", "annotator")},
            wins=np.asarray(result["observed_data"]["outcome"].values),
            count=np.asarray(constant["count"].values) if "count" in constant else None,
            items=tuple(json.loads(result.attrs["items"])),
            annotators=tuple(json.loads(result.attrs["annotators"])),
            ordered=bool(result.attrs["ordered"]),
        )

    # ---------------------------------------------------------------- parts

    def take(self, rows: Any) -> Comparisons:
        """The given rows (a slice, integer or boolean index), with all names kept."""
        return jax.tree.map(lambda column: column[rows], self)

    def chunks(self, size: int) -> Iterator[Comparisons]:
        """The rows in pieces of at most `size`, in order."""
        for start in range(0, max(self.num_comparisons, 1), size):
            yield self if self.num_comparisons <= size else self.take(slice(start, start + size))

    def without_annotators(self, names: Iterable[Any]) -> Comparisons:
        """The votes of everyone else. The items stay; the annotators named are gone.

        Examples
        --------
        >>> import raters as rt
        >>> votes = rt.Comparisons.from_frame({"w": [1, 2], "l": [2, 3], "who": ["ann", "bob"]},
        ...                                   winner="w", loser="l", annotator="who")
        >>> votes.without_annotators(["bob"]).annotators
        ('ann',)
        """
        dropped = set(names)
        if unknown := dropped - set(self.annotators):
            raise DataError(f"no annotator is called {_shorten(sorted(unknown, key=str))}; nobody was dropped")
        stays = np.array([name not in dropped for name in self.annotators])
        if not stays[np.asarray(self.annotator)].any():
            raise DataError("dropping these annotators would leave no vote; keep at least one who voted")
        code = np.cumsum(stays) - 1
        part = self.take(stays[np.asarray(self.annotator)])
        return dataclasses.replace(
            part,
            annotator=code[np.asarray(part.annotator)].astype(np.int32),
            annotators=tuple(name for name, stay in zip(self.annotators, stays, strict=True) if stay),
        )

    def without_outcomes(self) -> Comparisons:
        """The questions without the answers, as `raters.simulate` and `raters.predict` take them."""
        return dataclasses.replace(self, wins=None)

    def aggregate(self) -> Comparisons:
        """Equal (pair, annotator) rows as one row with a count; the likelihood does not change but for a constant.

        Rows come out sorted by pair and annotator. When the order of presentation is unknown each pair is first
        written with the smaller code in front.
        """
        first, second = np.asarray(self.first), np.asarray(self.second)
        wins = np.asarray(self.wins)
        count = np.ones(len(first), np.float32) if self.count is None else np.asarray(self.count)
        if not self.ordered:
            swap = first > second
            first, second = np.where(swap, second, first), np.where(swap, first, second)
            wins = np.where(swap, count - wins, wins)
        key = (first.astype(np.int64) * self.num_items + second) * self.num_annotators + np.asarray(self.annotator)
        key, cell = np.unique(key, return_inverse=True)
        pair, annotator = np.divmod(key, self.num_annotators)
        first, second = np.divmod(pair, self.num_items)
        return dataclasses.replace(
            self,
            first=first.astype(np.int32),
            second=second.astype(np.int32),
            annotator=annotator.astype(np.int32),
            wins=np.bincount(cell, wins).astype(np.float32),
            count=np.bincount(cell, count).astype(np.float32),
        )._slim()

    def _slim(self) -> Comparisons:
        """Without the counts when each is 1: the model then uses a Bernoulli, which costs less than a Binomial."""
        whole = self.wins is None or bool(np.all(np.asarray(self.wins) % 1 == 0))
        if self.count is not None and whole and bool(np.all(np.asarray(self.count) == 1)):
            return dataclasses.replace(self, count=None)
        return self


def _plain_name(name: Any) -> int | str:
    """A name that JSON and NetCDF can hold."""
    return int(name) if isinstance(name, (int, np.integer)) and not isinstance(name, bool) else str(name)


def _sides(winner, loser, first, second, outcome, table) -> tuple[tuple[str, str], tuple[str, str]]:
    """Which two columns hold the items; raises unless exactly one shape was described."""
    if winner is not None and loser is not None and first is second is outcome is None:
        return ("winner", winner), ("loser", loser)
    if winner is loser is None and None not in (first, second, outcome):
        return ("first", first), ("second", second)
    raise DataError(
        "describe the votes in one of two shapes: winner= and loser=, or first=, second= and outcome=. "
        f"The table has the columns {sorted(table)}; for ratings use Comparisons.from_ratings"
    )


def _check_items(left, right, names, sides) -> None:
    same = left == right
    if same.any():
        row = int(np.flatnonzero(same)[0])
        raise DataError(
            f"row {row} compares {names[left[row]]!r} with itself ({int(same.sum())} such row(s)); drop them first: "
            f"frame = frame[frame[{sides[0][1]!r}] != frame[{sides[1][1]!r}]]"
        )
    if len(names) > max(1000, len(left)):
        raise DataError(
            f"columns {sides[0][1]!r} and {sides[1][1]!r} hold {len(names):,} different items in {len(left):,} rows, so "
            f"most are compared once; are these row numbers or texts, not items? First values: {list(names[:3])}"
        )


def _annotators(table, annotator, known, rows: int):
    if annotator is None:
        return np.zeros(rows, np.int32), ("all",)
    (who,), names = _frame.encode([_frame.column(table, annotator, "annotator")], known, "annotator")
    if len(names) > 1000 and len(names) > 0.8 * rows:
        warnings.warn(
            f"column {annotator!r} holds {len(names):,} different annotators in {rows:,} rows, so most have one vote; "
            "is it a row number or a time? Leave annotator= out to pool all votes",
            DataWarning,
            stacklevel=4,
        )
    return who, names


def _settle_ties(wins: np.ndarray, ties: Ties, column: str) -> np.ndarray:
    """Which rows to keep under the policy."""
    tied = wins == 0.5
    if ties == "error" and tied.any():
        raise DataError(
            f"column {column!r} holds {int(tied.sum())} tie(s), first in row {int(np.flatnonzero(tied)[0])}; "
            "say what a tie means: ties='drop' leaves them out, ties='half' gives each side half a vote"
        )
    if ties == "drop":
        if tied.all():
            raise DataError(f"every row of column {column!r} is a tie, so ties='drop' leaves nothing")
        return ~tied
    return np.ones(len(wins), dtype=bool)


def _read_outcomes(values, left, right, sides, outcome, spelled) -> np.ndarray:
    """1 where the first side won, 0 where the second did, 0.5 for a tie."""
    if spelled is not None:
        if not {"first", "second"} <= set(spelled) <= {"first", "second", "tie"}:
            raise DataError(f"outcomes= needs the keys 'first', 'second' and maybe 'tie'; it has {sorted(spelled)}")
        is_first, is_second = values == spelled["first"], values == spelled["second"]
        is_tie = values == spelled["tie"] if "tie" in spelled else np.zeros(len(values), bool)
        return _outcome_array(is_first, is_second, is_tie, values, outcome, "the values given in outcomes=")
    words = np.array([str(value).strip().lower() for value in values.tolist()], dtype=object)
    if values.dtype.kind in "fi":
        words = np.array([f"{float(value):g}" for value in values], dtype=object)
    is_tie = np.array([word in _TIE_WORDS or word.startswith("tie") for word in words.tolist()])
    by_name = (_equal(values, left), _equal(values, right))
    is_tie &= ~(by_name[0] | by_name[1])
    (_, first_column), (_, second_column) = sides
    by_word = (
        np.isin(words, (*_FIRST_WORDS, first_column.lower())),
        np.isin(words, (*_SECOND_WORDS, second_column.lower())),
    )
    named = np.all(is_tie | by_name[0] | by_name[1])
    worded = np.all(is_tie | by_word[0] | by_word[1])
    if named and worded and not is_tie.all() and not np.array_equal(by_name[0], by_word[0]):
        raise DataError(
            f"the values of column {outcome!r} can be read as item names and as sides, with different results; "
            "say which: outcomes={'first': 1, 'second': 0}, or rename the items"
        )
    is_first, is_second = by_word if worded and not named else by_name
    expected = f"the item in {first_column!r} or {second_column!r} of its row, 'first'/'second', 1/0, or a tie"
    return _outcome_array(is_first, is_second, is_tie, values, outcome, expected)


def _equal(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    if one.dtype.kind in "fiu" and other.dtype.kind in "fiu":
        return one == other
    return np.array([str(a) == str(b) for a, b in zip(one.tolist(), other.tolist(), strict=True)])


def _outcome_array(is_first, is_second, is_tie, values, outcome, expected) -> np.ndarray:
    neither = ~(is_first | is_second | is_tie)
    if neither.any():
        row = int(np.flatnonzero(neither)[0])
        raise DataError(
            f"row {row} of column {outcome!r} holds {values[row]!r}, which is neither side ({int(neither.sum())} such "
            f"row(s)); expected {expected}. Spell other values out: outcomes={{'first': ..., 'second': ..., 'tie': ...}}"
        )
    return np.where(is_tie, 0.5, is_first).astype(np.float32)


def _shorten(names: Iterable[Any], most: int = 5) -> str:
    names = list(names)
    return ", ".join(map(str, names[:most])) + (f", … ({len(names)} in all)" if len(names) > most else "")

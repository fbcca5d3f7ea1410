"""The containers of human judgement. ``Comparisons`` holds pairwise votes as integer codes with the names beside them."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import numpy as np
import pandas as pd
import scipy.sparse

from raters import _feature_reading, _frame, _outcomes, _reading
from raters._judgements import Judgements, check_padding, check_result, names_from_json, names_to_json, staying
from raters.errors import DataError, DataWarning

# Rows at a time where a pass over all of them would need arrays as large as the data.
_PIECE = 1 << 18


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Comparisons(Judgements):
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
    features : float array, shape (comparison, feature), or None
        Features of the first item less those of the second, as they were given.
    feature_names : tuple of str

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
    features: Any = None
    feature_names: tuple[str, ...] = dataclasses.field(default=(), metadata={"static": True})

    unit_axis: ClassVar[str] = "comparison"

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
        features: Mapping[str, tuple[str, str]] | None = None,
        ties: _outcomes.Ties = "error",
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
            ``a``/``b``, ``model_a``/``model_b``, true/false), or a number (1: the first, 0: the second, 0.5: a tie; or 1 and 2
            alone, for the first and the second). A word such as ``tie``, ``tie (both bad)``, ``draw`` or ``equal`` is a tie.
        annotator : str, optional
            Column that names who voted; without it all votes are those of one annotator, ``"all"``.
        count : str, optional
            Column with the number of equal votes that a row stands for.
        features : mapping, optional
            What describes the two sides of a comparison: from the name of each feature to its two columns, of the winner and
            the loser, or of what was shown first and second: ``{"length": ("length_a", "length_b")}``. Features of items
            that are the same in every comparison are added with `with_features`.
        ties : {"error", "drop", "half"}
            What to do with a tie: refuse the table, leave the row out, or count half a vote for each side.
        outcomes : mapping, optional
            The values of `outcome` spelled out, when they are none of the above; a list gives several values one meaning:
            ``{"first": 1, "second": 2, "tie": [0, 3]}``.
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

        Notes
        -----
        Names are whole numbers when all names in a role are, and text otherwise (dates, booleans, a mixture); spaces and
        case tell names apart.

        Examples
        --------
        Judges who say which of two answers, 1 or 2, to each of many questions is better, each question in both orders of
        presentation: an item is one answer to one question, and the two sides are what was shown first and second.

        >>> import pandas as pd, raters as rt
        >>> table = pd.DataFrame({"question": [7, 7, 8], "judge": ["x", "y", "x"], "swapped": [0, 1, 0], "winner": [1, 2, 2]})
        >>> answer = table["question"].astype(str) + "/"
        >>> table["shown_first"] = answer + (1 + table["swapped"]).astype(str)
        >>> table["shown_second"] = answer + (2 - table["swapped"]).astype(str)
        >>> table["better"] = answer + table["winner"].astype(str)
        >>> votes = rt.Comparisons.from_frame(
        ...     table, first="shown_first", second="shown_second", outcome="better", annotator="judge")
        >>> votes.items, votes.wins.tolist()
        (('7/1', '7/2', '8/1', '8/2'), [1.0, 1.0, 0.0])
        """
        _outcomes.check_ties(ties)
        left_role, right_role = _reading.shape(winner, loser, first, second, outcome, outcomes)
        roles = {"winner": winner, "loser": loser, "first": first, "second": second, "outcome": outcome}
        columns = _frame.read(frame, **roles, annotator=annotator, count=count)
        left, right = columns[left_role], columns[right_role]
        (left_code, right_code), item_names = _frame.encode([left, right], items, "item")
        _reading.check_items(left_code, right_code, item_names, (left.name, right.name))
        who, annotator_names = _reading.annotators(columns, annotators, len(left))
        wins = np.ones(len(left), np.float32)
        if outcome is not None:
            sides = (left, left_code), (right, right_code)
            wins = _outcomes.read(columns["outcome"], *sides, item_names, outcomes)
        votes = _frame.counts(columns["count"]) if count is not None else np.ones(len(left), np.float32)
        differences, names = _feature_reading.differences(frame, features, len(left))
        keep = _outcomes.settle_ties(wins, ties, f"column {outcome!r}")
        data = cls(
            first=left_code[keep],
            second=right_code[keep],
            annotator=who[keep],
            wins=(wins * votes)[keep],
            count=votes[keep],
            items=item_names,
            annotators=annotator_names,
            ordered=outcome is not None,
            features=None if differences is None else differences[keep],
            feature_names=names,
        )
        return data.aggregate() if aggregate else data._slim()

    @classmethod
    def from_rankings(
        cls,
        frame: Any,
        *,
        places: Sequence[str],
        annotator: str | None = None,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
    ) -> Comparisons:
        """Turn rankings into comparisons: of two items that one annotator ranked, the one in the earlier place wins.

        A ranking of n items becomes n(n−1)/2 comparisons. They agree with one another as independent votes would not, so
        intervals come out narrower than n places deserve, and annotators look more certain of their taste; read the order
        of things and the types from the fit, and widths with that in mind.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
            One row for each ranking.
        places : sequence of str
            Columns that name the item in the first place, the second, and so on. A missing name ends the ranking: what is
            not ranked is not compared.
        annotator : str, optional
            Column that names who ranked; without it every row is an annotator of its own, numbered from 0.
        items, annotators : iterable, optional
            All names in the order wanted.

        Returns
        -------
        Comparisons
            Aggregated, without an order of presentation.

        Raises
        ------
        DataError
            When a ranking names an item twice, or a place after an empty one; when no ranking has two items.

        Examples
        --------
        >>> import raters as rt
        >>> votes = rt.Comparisons.from_rankings(
        ...     {"who": ["ann", "bob"], "best": ["tea", "milk"], "next": ["milk", "tea"], "last": ["beer", None]},
        ...     places=["best", "next", "last"], annotator="who")
        >>> votes.num_votes        # three comparisons by ann, one by bob
        4
        """
        winner, loser, who, item_names, annotator_names = _reading.rankings(frame, places, annotator, items, annotators)
        ones = np.ones(len(winner), np.float32)
        return cls(winner, loser, who, ones, ones, item_names, annotator_names).aggregate()

    def with_features(self, features: Any, *, names: Sequence[str] | None = None, item: str | None = None) -> Comparisons:
        """The votes with features of the items; a comparison carries those of its first item less those of its second.

        Parameters
        ----------
        features : array, shape (item, feature), or table
            An array has its rows in the order of `items`. A table names its items, and has a row for each. They are not
            scaled: one prior serves all coefficients, so put features on like scales.
        names : sequence of str, optional
            Names of the features of an array (``x1``, ``x2``, … without it); of a table, the columns to use (all others
            without it).
        item : str, optional
            Column of the table that names the items.

        Raises
        ------
        DataError
            When rows and items do not match, or a feature is not a number everywhere.

        Examples
        --------
        >>> import raters as rt
        >>> votes = rt.Comparisons.from_frame({"w": ["tea", "milk"], "l": ["milk", "beer"]}, winner="w", loser="l")
        >>> votes = votes.with_features({"drink": ["beer", "milk", "tea"], "warmth": [0.0, 0.5, 1.0]}, item="drink")
        >>> votes.feature_names, votes.features.tolist()
        (('warmth',), [[-0.5], [-0.5]])
        """
        if item is None:
            values, chosen = _feature_reading.feature_array(features, names, self.items)
        else:
            values, chosen = _feature_reading.feature_table(features, item, names, self.items)
        values = values.astype(np.float64)
        _feature_reading.check_finite(values, chosen, self.items)
        differences = values[np.asarray(self.first)] - values[np.asarray(self.second)]
        differences = _feature_reading.single(differences, chosen)
        return dataclasses.replace(self, features=differences, feature_names=tuple(chosen))

    @classmethod
    def from_ratings(
        cls,
        frame: Any,
        *,
        item: str,
        rating: str,
        annotator: str | None = None,
        ties: _outcomes.Ties = "half",
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
        ties : {"half", "drop", "error"}
            What to do with equal ratings. Half a vote for each side says that the two are alike; dropped, nothing holds
            them together, and the rewards of coarse ratings drift apart.
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
        >>> votes.num_votes        # the tie gives Alien and Casablanca half a vote each
        3
        """
        _outcomes.check_ties(ties)
        columns = _frame.read(frame, item=item, rating=rating, annotator=annotator)
        (codes,), item_names = _frame.encode([columns["item"]], items, "item")
        score = _frame.numeric(columns["rating"])
        who, annotator_names = _reading.annotators(columns, annotators, len(codes))
        one, two = _reading.pairs_within(who, len(annotator_names))
        one, two = (side[codes[one] != codes[two]] for side in (one, two))
        if len(one) == 0:
            raise DataError(
                "no annotator rated two different items, so there is nothing to compare"
                + ("; without annotator= all ratings count as one annotator's" if annotator is None else "")
            )
        wins = np.where(score[one] == score[two], 0.5, score[one] > score[two]).astype(np.float32)
        keep = _outcomes.settle_ties(wins, ties, f"the comparison of equal ratings in column {rating!r}")
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
    def num_units(self) -> int:
        """Each row is a unit of its own."""
        return self.num_comparisons

    @property
    def answered(self) -> bool:
        """Whether the outcomes are there."""
        return self.wins is not None

    @property
    def num_votes(self) -> int:
        """Number of votes, counts included."""
        return self.num_comparisons if self.count is None else int(np.asarray(self.count).sum(dtype=np.float64))

    @property
    def coords(self) -> dict[str, Sequence[Any]]:
        """The names along each axis: ``item``, ``annotator``, ``comparison``, ``feature``."""
        return {
            "item": self.items,
            "annotator": self.annotators,
            "comparison": range(self.num_comparisons),
            "feature": self.feature_names,
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
            real = slice(None) if piece.count is None else np.asarray(piece.count) > 0
            ends = label[np.asarray(piece.first)[real]], label[np.asarray(piece.second)[real]]
            graph = scipy.sparse.coo_array((np.ones(len(ends[0]), bool), ends), shape=(self.num_items, self.num_items))
            label = scipy.sparse.csgraph.connected_components(graph, directed=False)[1][label]
        groups: dict[int, list[Any]] = {}
        for name, group in zip(self.items, label.tolist(), strict=True):
            groups.setdefault(group, []).append(name)
        return sorted(map(tuple, groups.values()), key=len, reverse=True)

    def to_frame(self) -> pd.DataFrame:
        """The votes as a table, by name: ``annotator``, ``first``, ``second``, ``outcome`` and ``count``.

        Examples
        --------
        >>> import raters as rt
        >>> votes = rt.Comparisons.from_frame({"w": ["tea", "tea"], "l": ["milk", "beer"], "by": ["ann", "bob"]},
        ...                                   winner="w", loser="l", annotator="by")
        >>> votes.to_frame()
          annotator first second outcome  count
        0       bob  beer    tea  second      1
        1       ann  milk    tea  second      1
        >>> again = rt.Comparisons.from_frame(votes.to_frame(), first="first", second="second", annotator="annotator",
        ...                                   outcome="outcome", count="count", ties="half")
        >>> again.num_votes
        2
        """
        if self.wins is None:
            raise DataError("these are questions without answers; simulate some: rt.simulate(model, questions, seed=0)")
        items, people = (pd.Index(names) for names in (self.items, self.annotators))
        count = np.ones(self.num_comparisons) if self.count is None else np.asarray(self.count)
        wins = np.asarray(self.wins)
        # A row of several votes becomes one for each side; a half is a tie.
        tied = np.where(wins % 1 != 0, 1.0, 0.0)
        parts = []
        for outcome, number in (("first", wins - tied / 2), ("second", count - wins - tied / 2), ("tie", tied)):
            rows = np.flatnonzero(number > 0)
            columns = {"annotator": people.take(np.asarray(self.annotator)[rows])}
            columns |= {side: items.take(np.asarray(getattr(self, side))[rows]) for side in ("first", "second")}
            parts.append(pd.DataFrame(columns | {"outcome": outcome, "count": number[rows].astype(int), "row": rows}))
        return pd.concat(parts).sort_values("row", kind="stable").drop(columns="row").reset_index(drop=True)

    def warn(self) -> None:
        """Warn about what these data cannot tell: items never compared, components, a single annotator."""
        seen = self.votes_by_item() > 0
        if not seen.all():
            names = [name for name, used in zip(self.items, seen, strict=True) if not used]
            warnings.warn(
                f"{len(names)} item(s) are never compared and keep their prior: {_frame.shorten(names)}",
                DataWarning,
                stacklevel=3,
            )
        parts = [part for part in self.components() if len(part) > 1]
        if len(parts) > 1:
            listing = "; ".join(f"{len(part)} items ({_frame.shorten(part)})" for part in parts[:4])
            warnings.warn(
                f"the graph of comparisons falls into {len(parts)} components: {listing}. Rewards are comparable within "
                "a component; between components only the prior relates them. Add comparisons across",
                DataWarning,
                stacklevel=3,
            )

    # ---------------------------------------------------------------- results

    def groups(self) -> dict[str, dict[str, tuple[tuple[str, ...], np.ndarray]]]:
        """What a result stores of the data: by group, the axes and a copy of each array; `from_result` reads it back."""
        row: tuple[str, ...] = ("comparison",)
        constant: dict[str, tuple[tuple[str, ...], np.ndarray]] = {
            f"{role}_code": (row, np.array(getattr(self, role))) for role in ("first", "second", "annotator")
        }
        if self.count is not None:
            constant["count"] = (row, np.array(self.count))
        if self.features is not None:
            constant["features"] = (("comparison", "feature"), np.array(self.features))
        return {"observed_data": {"outcome": (row, np.array(self.wins))}, "constant_data": constant}

    def flags(self) -> dict[str, Any]:
        """What a result stores of the data as attributes: the names, also of those who have no axis, and the order."""
        return {
            "items": names_to_json(self.items),
            "annotators": names_to_json(self.annotators),
            "ordered": int(self.ordered),
            "feature_names": names_to_json(self.feature_names),
        }

    @classmethod
    def from_result(cls, result: Any) -> Comparisons:
        """The data that a result was fitted to."""
        check_result(result)
        constant = result["constant_data"]
        return cls(
            **{role: np.asarray(constant[f"{role}_code"].values) for role in ("first", "second", "annotator")},
            wins=np.asarray(result["observed_data"]["outcome"].values),
            count=np.asarray(constant["count"].values) if "count" in constant else None,
            items=names_from_json(result.attrs["items"]),
            annotators=names_from_json(result.attrs["annotators"]),
            ordered=bool(result.attrs["ordered"]),
            features=np.asarray(constant["features"].values) if "features" in constant else None,
            feature_names=names_from_json(result.attrs.get("feature_names", "[]")),
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
        stays = staying(self.annotators, names)
        if not self.votes_by_annotator()[stays].any():
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

    def with_outcomes(self, outcomes: np.ndarray) -> Comparisons:
        """These questions with votes for the first item."""
        return dataclasses.replace(self, wins=np.asarray(outcomes, np.float32))

    def padded(self, rows: int) -> Comparisons:
        """The same votes in so many rows: those added are copies of the last one with a count of 0.

        A fit does not see them. Functions are compiled once for each number of rows, so data that grow, as in a campaign, are
        fitted faster where their number of rows is one of a few, such as the powers of two. The result of a fit keeps the
        rows added, with a log-likelihood of 0; `unpadded` and `aggregate` leave them out.

        Examples
        --------
        >>> import raters as rt
        >>> votes = rt.Comparisons.from_frame({"w": ["tea", "milk"], "l": ["milk", "beer"]}, winner="w", loser="l")
        >>> votes.padded(64).num_comparisons, votes.padded(64).num_votes
        (64, 2)
        """
        there = self.num_comparisons
        check_padding(rows, there)
        if there == 0:
            if self.num_items < 2 or not self.num_annotators:
                raise DataError("padding without votes needs the names of two items and an annotator")
            zero = np.zeros(rows, np.int32)
            features = None if self.features is None else np.zeros((rows, len(self.feature_names)))
            none = np.zeros(rows, np.float32)
            wins = None if self.wins is None else none
            return dataclasses.replace(
                self, first=zero, second=zero + 1, annotator=zero, wins=wins, count=none, features=features
            )
        found = jax.tree.map(np.asarray, self).take(np.minimum(np.arange(rows), there - 1))
        real = np.arange(rows) < there
        count = np.where(real, 1.0 if found.count is None else found.count, 0.0).astype(np.float32)
        wins = None if found.wins is None else np.where(real, found.wins, 0.0).astype(np.float32)
        return dataclasses.replace(found, wins=wins, count=count)

    def unpadded(self) -> Comparisons:
        """The votes without rows of count 0."""
        if self.count is None or (np.asarray(self.count) > 0).all():
            return self
        return jax.tree.map(np.asarray, self).take(np.asarray(self.count) > 0)._slim()

    def aggregate(self) -> Comparisons:
        """Equal (pair, annotator) rows as one row with a count; the likelihood does not change but for a constant.

        Rows come out sorted by pair and annotator. When the order of presentation is unknown each pair is first
        written with the smaller code in front. Rows with different features stay apart; rows of count 0 are left out.
        """
        if self.unpadded() is not self:
            return self.unpadded().aggregate()
        if self.num_comparisons == 0:
            return self
        first, second, annotator = (np.asarray(codes) for codes in (self.first, self.second, self.annotator))
        wins, count = (None if column is None else np.asarray(column) for column in (self.wins, self.count))
        if count is not None and np.all(count == 1):
            count = None
        features = None if self.features is None else np.asarray(self.features)
        if not self.ordered:
            swap = first > second
            first, second = np.minimum(first, second), np.maximum(first, second)
            if wins is not None:
                wins = np.where(swap, (1 if count is None else count) - wins, wins)
            if features is not None:
                features = np.where(swap[:, None], -features, features)
        keys, sizes = [first, second, annotator], [self.num_items, self.num_items, self.num_annotators]
        if features is not None:
            features, described = np.unique(features, axis=0, return_inverse=True)
            keys, sizes = [*keys, described.ravel()], [*sizes, len(features)]
        cells, wins, count = _reading.cells(keys, sizes, wins, count)
        return dataclasses.replace(
            self,
            first=cells[0],
            second=cells[1],
            annotator=cells[2],
            wins=wins,
            count=count,
            features=None if features is None else features[cells[3]],
        )._slim()

    def _slim(self) -> Comparisons:
        """Without the counts when each is 1: the model then uses a Bernoulli, which costs less than a Binomial."""
        whole = self.wins is None or bool(np.all(np.asarray(self.wins) % 1 == 0))
        if self.count is not None and whole and bool(np.all(np.asarray(self.count) == 1)):
            return dataclasses.replace(self, count=None)
        return self

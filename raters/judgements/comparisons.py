"""Comparisons: pairwise votes as integer codes with the names beside them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

import jax
import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int, Num

from raters.errors import DataError, refuse_data
from raters.errors.validation import boolean, checked, finite, one_of
from raters.judgements import names as naming
from raters.judgements import row_columns
from raters.judgements.base import PIECE, Judgements
from raters.judgements.connection import is_even, is_separated, merged
from raters.judgements.counts import Codes, Mask, Numbers, Tallies, exact, pairs_within
from raters.judgements.names import Names
from raters.judgements.rankings import in_places, wide_columns
from raters.judgements.reading import columns as reading
from raters.judgements.reading import features as feature_reading
from raters.judgements.reading.columns import Column, read_columns
from raters.judgements.roles import of_axes, same_as, static
from raters.judgements.scanned import scan

Ties = Literal["error", "drop", "half", "keep"]
_SIDE_WORDS = {
    **dict.fromkeys(("first", "left", "a", "item_a", "model_a", "true", "win"), 1.0),
    **dict.fromkeys(("second", "right", "b", "item_b", "model_b", "false", "loss"), 0.0),
}
# Words of the two sides that also occur as parts of names of columns.
_SIDES = (("first", "second"), ("left", "right"), ("a", "b"))
_TIE = re.compile(r"(tie|tied|draw|equal|both(bad)?|½)([^a-z].*)?", re.DOTALL)
_MAX_PAIRS = 50_000_000

# Outcomes in tables of votes.
_OUTCOMES = {"first": 1.0, "second": 0.0, "tie": 0.5}
#: Words for an answer, and votes for the first item that each stands for.
_WORDS = {"first": 1.0, "left": 1.0, "second": 0.0, "right": 0.0, "tie": 0.5}


class Side(str):
    """Word for a side or a tie, where answers are no names: it stands for that side."""

    __slots__ = ()


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Comparisons(Judgements):
    """Pairwise votes: annotator k compared two items; how many of the votes went to the first.

    Build it with `from_frame` or `from_ratings`; the constructor takes codes that are already
    right.

    Parameters
    ----------
    first, second : int array, shape (comparison,)
        Codes of the two items, in the order of presentation where that is known (`ordered`).
    annotator : int array, shape (comparison,)
        Code of the annotator who voted.
    wins : float array, shape (comparison,), or None
        Votes for the first item: between 0 and `count`. A tie under ``ties="half"`` gives half a
        vote. Where ties are kept (`tied`), the outcome that all votes of the row have: 1 for the
        first item, ½ for a tie, 0 for the second. None when the outcomes are not known yet, as for
        `raters.simulate`.
    count : float array, shape (comparison,), or None
        Votes in the row. None means one in each.
    items, annotators : tuple
        The names, in code order.
    ordered : bool
        Whether `first` is known to have been shown first. Position bias can only be learned if it
        is.
    features : float array, shape (comparison, feature), or None
        Features of the first item less those of the second, as they were given.
    feature_names : tuple of str
    tied : bool
        Whether a tie is an answer of its own, as read with ``ties="keep"``. Votes in a row are then
        alike, and `halved` gives half of each tie to either side.
    stratum : int array, shape (comparison,), or None
        Code of the stratum of each row, such as a category of prompts.
    strata : tuple
        The names of the strata, in code order.
    columns : float array, shape (comparison, column), or None
        Other columns of the rows, for terms of models; of text, codes of its levels.
    column_names, column_sizes, column_levels : tuple
        Names of these columns, the number of levels of each (0 of numbers), and all levels.

    Examples
    --------
    >>> import raters as rt
    >>> votes = rt.Comparisons.from_frame(
    ...     {"winner": ["tea", "tea", "coffee"], "loser": ["coffee", "water", "water"],
    ...      "who": ["ann", "bob", "ann"]},
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
    items: tuple[Any, ...] = static()
    annotators: tuple[Any, ...] = static()
    ordered: bool = static(False)
    features: Any = of_axes("comparison", "feature", default=None)
    feature_names: tuple[str, ...] = static(())
    tied: bool = static(False)
    stratum: Any = None
    strata: tuple[Any, ...] = static(())
    columns: Any = of_axes("comparison", "column", default=None)
    column_names: tuple[str, ...] = static(())
    column_sizes: tuple[int, ...] = static(())
    column_levels: tuple[Any, ...] = static(())

    axes = {"first": "item", "second": "item", "annotator": "annotator"}
    names = {"item": "items", "annotator": "annotators"}
    names |= {"feature": "feature_names", "stratum": "strata", "column": "column_names"}
    answer = "wins"
    observed = "outcome"
    row = "comparison"
    again = True
    pair = ("first", "second")
    table_words = {1.0: "first", 0.0: "second", 0.5: "tie"}

    # ---------------------------------------------------------------- building

    scan = classmethod(scan)

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
        stratum: str | None = None,
        columns: Sequence[str] | Mapping[str, str] | None = None,
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
            Columns that name the preferred and the other item. The order of presentation is then
            unknown.
        first, second, outcome : str
            Columns that name the item shown first, the item shown second, and who won. An outcome
            is the name of one of the two items, the name of one of the two columns, a word
            (``first``/``second``, ``left``/``right``, ``a``/``b``, ``model_a``/``model_b``,
            true/false), or a number (1: the first, 0: the second, 0.5: a tie; or 1 and 2 alone, for
            the first and the second). A word such as ``tie``, ``tie (both bad)``, ``draw`` or
            ``equal`` is a tie.
        annotator : str, optional
            Column that names who voted; without it all votes are those of one annotator, ``"all"``.
        count : str, optional
            Column with the number of equal votes that a row stands for.
        features : mapping, optional
            What describes the two sides of a comparison: from the name of each feature to its two
            columns, of the winner and the loser, or of what was shown first and second:
            ``{"length": ("length_a", "length_b")}``. Features of items that are the same in every
            comparison are added with `with_features`.
        stratum : str, optional
            Column with the stratum of each vote, such as a category or a language, for a model with
            ``strata=True``.
        columns : sequence of str, or mapping, optional
            Further columns, which terms of a model read as ``data.column(name)``; a mapping from
            such a name to the column.
        ties : {"error", "drop", "half", "keep"}
            What to do with a tie: refuse the table, leave the row out, count half a vote for each
            side, or keep it as an answer of its own, for a model with ``ties``.
        outcomes : mapping, optional
            The values of `outcome` spelled out, when they are none of the above; a list gives
            several values one meaning: ``{"first": 1, "second": 2, "tie": [0, 3]}``.
        items, annotators : iterable, optional
            All names in the order wanted, also of those that the table does not mention.
        aggregate : bool
            Put equal (pair, annotator) rows together into one row with a count.

        Raises
        ------
        DataError
            When a column is missing, empty or has missing values; an item is compared with itself;
            an outcome is neither side; a count is not a whole number; a tie is met under
            ``ties="error"``.

        Notes
        -----
        Names are whole numbers when all names in a role are, and text otherwise (dates, booleans, a
        mixture); spaces and case tell names apart.

        Examples
        --------
        Judges who say which of two answers, 1 or 2, to each of many questions is better, each
        question in both orders of presentation: an item is one answer to one question, and the two
        sides are what was shown first and second.

        >>> import pandas as pd, raters as rt
        >>> table = pd.DataFrame({"question": [7, 7, 8], "judge": ["x", "y", "x"],
        ...                       "swapped": [0, 1, 0], "winner": [1, 2, 2]})
        >>> answer = table["question"].astype(str) + "/"
        >>> table["shown_first"] = answer + (1 + table["swapped"]).astype(str)
        >>> table["shown_second"] = answer + (2 - table["swapped"]).astype(str)
        >>> table["better"] = answer + table["winner"].astype(str)
        >>> votes = rt.Comparisons.from_frame(
        ...     table, first="shown_first", second="shown_second", outcome="better",
        ...     annotator="judge")
        >>> votes.items, votes.wins.tolist()
        (('7/1', '7/2', '8/1', '8/2'), [1.0, 1.0, 0.0])
        """
        one_of("ties", ties, get_args(Ties))
        boolean("aggregate", aggregate)
        sides: dict[str, Any] = {"winner": winner, "loser": loser}
        sides |= {"first": first, "second": second, "outcome": outcome}
        roles = _shape(sides, outcomes)
        sides |= {"annotator": annotator, "count": count, "stratum": stratum}
        names, pairs = feature_reading.sides(features)
        more, further = row_columns.named(columns)
        several = {"features": pairs, "columns": further}
        table = read_columns(frame, several=several, **sides)
        left, right = (table[role] for role in roles)
        (left_code, right_code), item_names = naming.encode_names([left, right], items, "item")
        _check_items(left_code, right_code, item_names, (left, right))
        who, people = table.annotators(annotators, "have one vote")
        wins, votes = np.ones(table.rows, np.float32), table.counts()
        votes = wins if votes is None else votes
        if outcome is not None:
            coded = (left, left_code), (right, right_code)
            wins = _wins_of(table["outcome"], *coded, item_names, outcomes)
        group, strata = table.codes("stratum")
        differences = feature_reading.differences(table.lists["features"], names)
        keep = _kept(wins, ties, outcome)
        rows: dict[str, Any] = {
            "first": left_code,
            "second": right_code,
            "annotator": who,
            "wins": wins if ties == "keep" else wins * votes,
            "count": votes,
            "features": differences,
            "stratum": group,
        }
        rows = {name: None if column is None else column[keep] for name, column in rows.items()}
        flags: dict[str, Any] = {"ordered": outcome is not None, "tied": ties == "keep"}
        flags |= {"feature_names": names, "strata": strata}
        flags |= row_columns.fields([column.rows(keep) for column in table.lists["columns"]], more)
        data = cls(**rows, items=item_names, annotators=people, **flags)
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
        """Turn rankings into comparisons: of two items that one annotator ranked, the one in the
        earlier place wins.

        A ranking of n items becomes n(n−1)/2 comparisons. They count as independent and agree with
        one another as independent votes would not, so intervals come out narrower than n places
        deserve, and annotators look more certain of their taste; read the order of things and the
        types from the fit, and widths with that in mind. What was offered and not ranked is lost.
        `raters.Rankings` has neither fault, with `PlackettLuce` and `ExtendedPlackettLuce`.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
            One row for each ranking.
        places : sequence of str
            Columns that name the item in the first place, the second, and so on, or patterns such
            as ``pos*``. A missing name ends the ranking: what is not ranked is not compared.
        annotator : str, optional
            Column that names who ranked; without it every row is an annotator of its own, numbered
            from 0.
        items, annotators : iterable, optional
            All names in the order wanted.

        Returns
        -------
        Comparisons
            Aggregated, without an order of presentation.

        Raises
        ------
        DataError
            When a ranking names an item twice, or a place after an empty one; when no ranking has
            two items.

        Examples
        --------
        >>> import raters as rt
        >>> votes = rt.Comparisons.from_rankings(
        ...     {"who": ["ann", "bob"], "best": ["tea", "milk"], "next": ["milk", "tea"],
        ...      "last": ["beer", None]},
        ...     places=["best", "next", "last"], annotator="who")
        >>> votes.num_votes        # three comparisons by ann, one by bob
        4
        """
        columns = wide_columns(frame, places, "places", 2, annotator=annotator)
        ranked, item_names = in_places(columns.lists["places"], items)
        who, annotator_names = columns.annotators(annotators, each=range(columns.rows))
        row, place = np.nonzero(ranked >= 0)
        item = ranked[row, place]
        one, two = _pairs_within(row, item, "places")
        first = (place[one] < place[two]).astype(np.float32)
        votes = item[one], item[two], who[row[one]], first, np.ones_like(first)
        return cls(*votes, item_names, annotator_names).aggregate()

    @classmethod
    def from_ratings(
        cls,
        frame: Any,
        *,
        item: str,
        rating: str,
        annotator: str | None = None,
        ties: Ties = "half",
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
    ) -> Comparisons:
        """Turn ratings or scores into comparisons: of two items that one annotator rated, the
        higher rating wins.

        Each annotator's n ratings become up to n(n−1)/2 comparisons. Those are not independent
        (they carry n numbers' worth of information), so intervals come out narrower than n ratings
        deserve, and probabilities of an order are too near 0 and 1. `Ratings` with `ManyFacet` is a
        model of the ratings themselves; this is for models of votes.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
        item, rating : str
            Columns with the item and its numeric rating; higher wins.
        annotator : str, optional
            Column that names who rated. An item rated several times by one annotator is compared in
            each of them.
        ties : {"half", "drop", "error", "keep"}
            What to do with equal ratings. Half a vote for each side says that the two are alike;
            dropped, nothing holds them together, and the rewards of coarse ratings drift apart;
            kept, they are an answer of their own, for a model with ``ties``.
        items, annotators : iterable, optional
            All names in the order wanted.

        Returns
        -------
        Comparisons
            Aggregated, without an order of presentation.

        Raises
        ------
        DataError
            When a rating is not a number below 2**53 in size, when nobody rated two different
            items, or when ties are refused or leave nothing.

        Examples
        --------
        >>> import raters as rt
        >>> votes = rt.Comparisons.from_ratings(
        ...     {"film": ["Alien", "Brazil", "Casablanca"], "stars": [3, 5, 3]}, item="film",
        ...     rating="stars")
        >>> votes.num_votes        # the tie gives Alien and Casablanca half a vote each
        3
        """
        one_of("ties", ties, get_args(Ties))
        columns = read_columns(frame, {"item": item, "rating": rating}, annotator=annotator)
        codes, item_names = columns.codes("item", items)
        score = reading.read_ratings(columns["rating"])
        who, annotator_names = columns.annotators(annotators, "gave one rating")
        one, two = _pairs_within(who, codes, "rating")
        wins = np.where(score[one] == score[two], 0.5, score[one] > score[two]).astype(np.float32)
        keep = _kept(wins, ties, rating, np.stack([one, two]))
        one, two, wins = one[keep], two[keep], wins[keep]
        rows, names = (codes[one], codes[two], who[one], wins), (item_names, annotator_names)
        return cls(*rows, np.ones_like(wins), *names, tied=ties == "keep").aggregate()

    # ---------------------------------------------------------------- facts

    num_comparisons = same_as("num_rows", "Number of rows; `num_votes` counts the votes in them.")

    num_votes = same_as("num_judgements", "Number of votes, counts included.")

    def warn(self) -> None:
        """Warn about what these data cannot tell: items never compared, components, even votes, and
        votes without a contradiction, which give no distances."""
        never = self.judgements_by("item") == 0
        sentence = "item(s) are never compared and keep their prior"
        naming.warn_of_each({sentence: (self.items, never)})
        parts = [part for part in self.components() if len(part) > 1]
        if len(parts) > 1:
            listing = "; ".join(f"{len(part)} items ({naming.shorten(part)})" for part in parts[:4])
            naming.warn_data(
                f"the graph of comparisons falls into {len(parts)} components: {listing}. Rewards"
                " are comparable within a component; between components only the prior relates"
                " them. Add comparisons across"
            )
        if self.num_judgements and self.has_answers and is_even(self):
            naming.warn_data(
                "neither side has more votes in any comparison, so that no item is preferred to"
                " another, and nothing tells annotators apart"
            )
        if self.has_answers and is_separated(self):
            naming.warn_data(
                "no vote contradicts another (perfect separation), so that they give an order and"
                " not how far apart the items are, which the prior alone says"
            )

    def tells_judges_apart(self) -> bool:
        """True if judges can differ in agreement: several, and not only ties."""
        return super().tells_judges_apart() and not is_even(self)

    def to_frame(self) -> pd.DataFrame:
        """The votes as a table, by name: ``annotator``, ``first``, ``second``, ``outcome`` and
        ``count``, and ``stratum`` where votes have one."""
        table = super().to_frame()
        table.insert(0, self.judge, table.pop(self.judge))
        return table

    # ---------------------------------------------------------------- ties, sides and features

    # Of other kinds these two are facts of the class; here they depend on how ties were read.
    @property
    def answer_scale(self) -> Literal["nominal", "binary"]:  # type: ignore[override]
        """That of a sum of votes, unless ties are kept."""
        return "nominal" if self.tied else "binary"

    @property
    def success(self) -> tuple[str, float] | None:  # type: ignore[override]
        """The outcome whose probability says all; None where ties are kept."""
        return None if self.tied else ("p_win", 1.0)

    def answers(self) -> Float[np.ndarray, " answer"]:
        """The first item wins, or the second; where ties are kept, a tie is between the two."""
        return np.array([1.0, 0.5, 0.0] if self.tied else [1.0, 0.0])

    def with_ties(self) -> Self:
        """The votes with a tie as an answer of its own, which a model with ``ties`` takes.

        Returns
        -------
        Comparisons
            In rows of votes that are alike. It takes rows of single votes (``aggregate=False``), or
            of votes for one side: a sum does not say how many ties are in it.

        Raises
        ------
        DataError
            When a row holds the sum of votes that are not all for one side.

        Examples
        --------
        >>> import raters as rt
        >>> votes = rt.Comparisons.from_frame({"a": ["tea", "tea"], "b": ["milk", "milk"],
        ...                                    "says": ["tie", "a"]}, first="a", second="b",
        ...                                   outcome="says", ties="half", aggregate=False)
        >>> votes.with_ties().answers().tolist()
        [1.0, 0.5, 0.0]
        """
        if self.tied:
            return self
        if self.wins is None:
            return replace(self, tied=True)
        wins, count = np.asarray(self.wins, float), np.asarray(self.weight, float)
        if (several := (count > 1) & (wins > 0) & (wins < count)).any():
            row = int(np.flatnonzero(several)[0])
            problem = f"is a sum of {count[row]:g} votes in row {row} (counted from 0), which does"
            problem += " not say how many of them are ties"
            refuse_data("wins", float(wins[row]), problem, "read the table again with ties='keep'")
        rows, outcome, number = self.single_outcomes()
        kept = replace(self.rows(rows), wins=outcome.astype(np.float32), tied=True)
        return replace(kept, count=exact(number))._slim()

    def halved(self) -> Self:
        """The votes with half of each tie for either side, as read with ``ties="half"``.

        Returns
        -------
        Comparisons
            In the same rows; as they are unless ties are kept.

        Examples
        --------
        >>> import raters as rt
        >>> votes = rt.Comparisons.from_frame({"a": ["tea"], "b": ["milk"], "says": ["tie"],
        ...                                    "times": [3]}, first="a", second="b",
        ...                                   outcome="says", count="times", ties="keep")
        >>> votes.wins.tolist(), votes.halved().wins.tolist()
        ([0.5], [1.5])
        """
        if not self.tied:
            return self
        if self.wins is None:
            return replace(self, tied=False)
        count = np.asarray(self.weight, float)
        wins = exact(np.asarray(self.wins) * count)
        return replace(self, wins=wins, count=exact(count), tied=False)._slim()

    @checked
    def joined(self, more: Self) -> Self:
        """These votes and further ones, with ties as these have them."""
        return super().joined(more.with_ties() if self.tied else more.halved())

    def answer_words(self, row: int) -> dict[str, float]:
        """Words for the outcomes of a question: the sides, a tie, and the items' names."""
        return _WORDS | self._sides(row)

    def _sides(self, row: int) -> dict[str, float]:
        place = self._place(row)
        first, second = (self.items[int(side[place])] for side in (self.first, self.second))
        return {naming.name_text(first): 1.0, naming.name_text(second): 0.0}

    def outcome_of(self, row: int, answer: Any) -> float | None:
        """Outcome that an answer in words stands for."""
        if isinstance(answer, Side):
            return _WORDS.get(answer)
        outcome = super().outcome_of(row, answer)
        if outcome is None:
            return None
        if _WORDS.get(naming.loosely(naming.name_text(answer)), outcome) == outcome:
            return outcome
        first, second = self._sides(row)
        # A word for each side that is not the name of the item on the other.
        left = "first" if second == "left" else "left"
        right = "second" if first == "right" else "right"
        raise DataError(
            f"the answer {answer!r} is the name of an item and also a word for a side or a tie;"
            f" write {left!r} for {first!r} or {right!r} for {second!r}"
        )

    def words_of(self, row: int, outcome: float) -> str:
        """The name of the item that won, or ``tie``."""
        finite("outcome", outcome, 1.0)
        first, second = self._sides(row)
        words = {1.0: first, 0.5: "tie", 0.0: second}
        return words[outcome] if outcome in words else super().words_of(row, outcome)

    def canonical(self) -> Self:
        """With the smaller code in front, unless the order of presentation is known."""
        if self.ordered:
            return self
        return self._turned(np.asarray(self.first) > np.asarray(self.second))

    def _turned(self, swap: Bool[np.ndarray, " comparison"]) -> Self:
        """With the sides of some rows swapped."""
        first, second = np.asarray(self.first), np.asarray(self.second)
        turned: dict[str, Any] = {"first": (first, second), "second": (second, first)}
        if self.wins is not None:
            count = 1 if self.count is None or self.tied else np.asarray(self.count)
            turned["wins"] = np.asarray(self.wins), count - np.asarray(self.wins)
        changes = {name: np.where(swap, other, one) for name, (one, other) in turned.items()}
        if self.features is not None:  # differences: of the first item less the second
            features = np.asarray(self.features)
            changes["features"] = np.where(swap[:, None], np.float32(0) - features, features)
        return replace(self, **changes)

    @property
    def exchangeable(self) -> bool:
        """True if it is not known which item was shown first: the sides then have no meaning."""
        return not self.ordered

    def about(self, *, ordered: bool = False) -> Codes:
        """A number for the pair of each row, by default in either order."""
        if ordered:
            return super().about()
        first, second = np.asarray(self.first), np.asarray(self.second)
        low, high = np.minimum(first, second), np.maximum(first, second)
        return low.astype(np.int64) * len(self.items) + high

    def tallies(self, *, ordered: bool = False) -> Tallies:
        """Votes for the lower code and for the other; answers as they are where order counts."""
        if ordered:
            return super().tallies(ordered=True)
        if self.tied:
            return self.halved().tallies()
        judge, about, _, votes = super().tallies()
        for_smaller = np.asarray(self.first) < np.asarray(self.second)
        answer = np.concatenate([np.where(for_smaller, 0, 1), np.where(for_smaller, 1, 0)])
        return judge, about, answer, votes

    @checked
    def shuffled(self, seed: int) -> Self:
        """The pairs with either item first, by chance: people favour what they see first."""
        if self.ordered:
            return self
        swap = np.random.default_rng(seed).random(self.num_rows) < 0.5
        return self.canonical()._turned(swap)

    def answered(self, outcomes: Any) -> Self:
        """These questions with votes."""
        votes = super().answered(outcomes)
        halves = not self.tied and bool((np.asarray(votes.wins) % 1 != 0).any())
        if halves and votes.count is None:  # half a vote of one
            return replace(votes, count=np.ones(self.num_rows, np.float32))
        return votes

    def check(self) -> None:
        """Raise unless each question is about two different items; see `Judgements.check`."""
        super().check()
        if self.stratum is not None:
            self._check_codes("stratum", "stratum")
        if (same := np.flatnonzero(np.asarray(self.first) == np.asarray(self.second))).size:
            name = self.items[int(self.first[same[0]])]
            problem = f"is also `first` in row {same[0]} (counted from 0; {same.size} in all)"
            expected = "two different items must be compared; leave such rows out"
            refuse_data("second", name, problem, expected)

    def _empty_rows(self, rows: int) -> dict[str, Any]:
        if len(self.items) < 2 or not self.annotators:
            raise DataError("padding without votes needs the names of two items and an annotator")
        return super()._empty_rows(rows) | {"second": np.ones(rows, np.int32)}

    def components(self) -> list[tuple[Any, ...]]:
        """The connected components of the graph of comparisons."""
        label = np.arange(len(self.items))
        for piece in self.chunks(PIECE):
            real = np.asarray(piece.weight) > 0
            label = merged(label, np.asarray(piece.first)[real], np.asarray(piece.second)[real])
        groups = pd.Series(self.items, dtype=object).groupby(label).agg(tuple)
        return sorted(groups, key=len, reverse=True)

    def with_features(
        self, features: Any, *, names: Sequence[str] | None = None, item: str | None = None
    ) -> Self:
        """The votes with features of the items; a comparison carries those of its first item less
        those of its second.

        Parameters
        ----------
        features : array, shape (item, feature), or table
            An array has its rows in the order of `items`. A table names its items, and has a row
            for each. They are not scaled: one prior serves all coefficients, so put features on
            like scales.
        names : sequence of str, optional
            Names of the features of an array (``x1``, ``x2``, … without it); of a table, the
            columns to use (all others without it).
        item : str, optional
            Column of the table that names the items.

        Raises
        ------
        DataError
            When rows and items do not match, or a feature is not a number everywhere.

        Examples
        --------
        >>> import raters as rt
        >>> votes = rt.Comparisons.from_frame({"w": ["tea", "milk"], "l": ["milk", "beer"]},
        ...                                   winner="w", loser="l")
        >>> votes = votes.with_features({"drink": ["beer", "milk", "tea"],
        ...                              "warmth": [0.0, 0.5, 1.0]}, item="drink")
        >>> votes.feature_names, votes.features.tolist()
        (('warmth',), [[-0.5], [-0.5]])
        """
        values, chosen = feature_reading.features_of(features, item, names, self.items)
        values = values.astype(np.float64)
        feature_reading.check_finite(values, chosen, self.items)
        differences = values[np.asarray(self.first)] - values[np.asarray(self.second)]
        differences = feature_reading.single(differences, chosen)
        return replace(self, features=differences, feature_names=tuple(chosen))

    @checked
    def features_of(self, like: Self) -> Self:
        """With the features of other data, in their order."""
        if like.features is None:
            return self.without_features()
        if missing := [name for name in like.feature_names if name not in self.feature_names]:
            refuse_data("features", missing, "of the fit are missing from these", "add them")
        order = [self.feature_names.index(name) for name in like.feature_names]
        features = np.asarray(self.features)[:, order]
        return replace(self, features=features, feature_names=like.feature_names)

    @checked
    def recoded(self, like: Self, axes: Iterable[str]) -> Self:
        """In the codes of `like` along the given axes, and in its strata."""
        votes = super().recoded(like, axes)
        votes = votes.with_ties() if like.tied else votes.halved()
        codes = votes.stratum
        if codes is not None and like.strata:
            codes = naming.match_names(codes, votes.strata, like.strata, "stratum")
        return replace(votes, stratum=codes, strata=like.strata)

    def column(self, name: str) -> Num[Any, " comparison"]:
        """One of the `columns`: its numbers, or the codes of its levels."""
        return row_columns.values(self, name)

    def levels(self, name: str) -> tuple[Any, ...]:
        """Levels of a column of text, in code order; empty for numbers."""
        return row_columns.levels(self, name)

    @checked
    def in_stratum(self, name: Any) -> Self:
        """The questions as those of one stratum; without one they are about all strata together."""
        strata = self.strata or (name,)
        (code,) = naming.match_names(np.zeros(1, np.int32), (name,), strata, "stratum")
        column = np.full(self.num_rows, code, np.int32)
        return replace(self, stratum=column, strata=strata)

    @classmethod
    def axis_of(cls, column: str) -> str | None:
        """Axis of the names behind a column of codes, also of the stratum that some rows have."""
        return column if column == "stratum" else super().axis_of(column)

    def at_equal_features(self, like: Self) -> Self:
        """With the features of other data, equal on both sides, unless there are features."""
        if self.features is not None:
            return self
        features = np.zeros((self.num_rows, len(like.feature_names)), np.float32)
        return replace(self, features=features, feature_names=like.feature_names)

    def without_features(self) -> Self:
        """Without features."""
        return replace(self, features=None, feature_names=())

    def _question(self, without: tuple[str, ...] = ()) -> list[Num[np.ndarray, "row ..."]]:
        """Codes that tell questions apart, then features."""
        return sorted(super()._question(without), key=np.ndim)


# ---------------------------------------------------------------- reading


def _kept(wins: Numbers, ties: Ties, column: str | None, rows: Any = None) -> Mask:
    """Mask of the votes to keep under the policy for ties; `rows` are both of a vote in a table."""
    tied = wins == 0.5
    if ties == "error" and tied.any():
        wrong = tied if rows is None else np.bincount(rows[:, tied].ravel()) > 0
        problem = f"does not allow the ties in column {column!r}, {reading.where(wrong)}"
        expected = "'drop' omits them, 'half' gives each half a vote, 'keep' is for models of ties"
        refuse_data("ties", "error", problem, expected)
    if ties == "drop" and tied.all():
        problem = f"leaves no vote: column {column!r} has ties only"
        refuse_data("ties", "drop", problem, "'half' keeps them")
    return ~tied if ties == "drop" else np.ones(len(wins), dtype=bool)


def _wins_of(
    outcome: Column,
    first: tuple[Column, Codes],
    second: tuple[Column, Codes],
    items: tuple[Any, ...],
    spelled: Mapping[str, Any] | None,
) -> Numbers:
    """1 where the first side won, 0 where the second did, 0.5 for a tie, by item codes."""
    sides = (first[0].name, second[0].name)
    if spelled is not None:
        return _read(outcome, _spelled(outcome, spelled)[outcome.code])
    as_word = _words(outcome.values, *sides)[outcome.code]
    lookup = {naming.name_text(name): code for code, name in enumerate(items)}
    named = np.array([lookup.get(naming.name_text(value), -1) for value in outcome.values])[
        outcome.code
    ]
    # The name of an item in the row goes before the word: an item may be called "tie".
    which = [named == first[1], named == second[1], as_word == 0.5]
    as_name = np.select(which, [1.0, 0.0, 0.5], np.nan)
    by_name, by_word = np.isfinite(as_name), np.isfinite(as_word)
    if by_name.all() and by_word.all() and not np.array_equal(as_name, as_word):
        outcome.refuse(
            "can be read as names of items and as sides, with different results, in"
            f" {reading.where(as_name != as_word)}",
            "spell out which values are which side, or rename the items",
            "outcomes={'first': 1, 'second': 0}",
        )
    if by_name.sum() >= by_word.sum():
        return _read(outcome, as_name)
    _refuse_other_sides(outcome, *sides)
    return _read(outcome, as_word)


def _refuse_other_sides(outcome: Column, first: str, second: str) -> None:
    """Raise where a word for a side stands in the name of the column of the other side."""
    words = {str(value).strip().lower() for value in outcome.values}
    parts = [set(re.split(r"[^a-z0-9]+", name.lower())) for name in (first, second)]
    for one, other in _SIDES:
        ends = (f"_{one}", f"_{other}")
        either = [word for word in words if word in (one, other) or word.endswith(ends)]
        either = sorted({*either} - {first.lower(), second.lower()})
        if either and other in parts[0] and one in parts[1]:
            stem = either[0].removesuffix(one if either[0].endswith(one) else other)
            outcome.refuse(
                f"holds {either[0]!r}, which means one side by the place of {first!r} and"
                f" {second!r}, and the other by their names",
                f"name the columns the other way round (first={second!r}, second={first!r}), or say"
                " which values are which side",
                f"outcomes={{'first': {stem + other!r}, 'second': {stem + one!r}}}",
            )


def _words(values: list[Any], first_column: str, second_column: str) -> Float[np.ndarray, " value"]:
    """Outcome of each distinct value when it is read as a word or number; NaN when nothing."""
    lowered = [str(value).strip().lower() for value in values]
    numbers = [reading.read_number(word) for word in lowered]
    coded = {number for number in numbers if not np.isnan(number)}
    # 1 and 2 number the sides; beside a 0 (or any other number) a 2 could mean anything.
    of_two = 2.0 in coded and coded <= {1.0, 2.0}
    meaning = {1.0: 1.0, 2.0: 0.0} if of_two else {1.0: 1.0, 0.0: 0.0, 0.5: 0.5}
    columns = {first_column: 1.0, second_column: 0.0}
    loose = {name.lower(): side for name, side in columns.items()}
    words = _SIDE_WORDS | (loose if len(loose) == 2 else {})

    def side_of(value: Any, word: str, number: float) -> float:
        if str(value) in columns:
            return columns[str(value)]
        if not np.isnan(number) and word not in words:
            return meaning.get(number, np.nan)
        return words.get(word, 0.5 if _TIE.fullmatch(word) else np.nan)

    return np.array([side_of(*entry) for entry in zip(values, lowered, numbers, strict=True)])


def _spelled(outcome: Column, spelled: Mapping[str, Any]) -> Float[np.ndarray, " value"]:
    """Outcome of each distinct value under a mapping that the user wrote."""
    sides = _OUTCOMES
    if not isinstance(spelled, Mapping) or not {"first", "second"} <= set(spelled) <= set(sides):
        given = dict(spelled) if isinstance(spelled, Mapping) else spelled
        expected = "give values for 'first' and 'second', and maybe 'tie'"
        line = "outcomes={'first': 1, 'second': 2, 'tie': 0}"
        refuse_data("outcomes", given, "does not say what they mean", expected, instead=line)
    meaning: dict[str, float] = {}
    for key, values in spelled.items():
        for value in values if isinstance(values, (list, tuple, set, frozenset)) else [values]:
            naming.check_text([value], "outcomes")
            if meaning.setdefault(naming.name_text(value), sides[key]) != sides[key]:
                refuse_data("outcomes", value, "has two meanings", "each value can have one")
    return np.array([meaning.get(naming.name_text(value), np.nan) for value in outcome.values])


def _read(outcome: Column, wins: Numbers) -> Numbers:
    """Outcomes in single precision, all of which are known."""
    outcome.refuse_rows(
        np.isnan(wins),
        "it must hold the item in the first or second column of its row, the name of one of these"
        " columns, 'first'/'second', 1/0, or 'tie'; spell other values out",
        "outcomes={'first': ..., 'second': ..., 'tie': ...}",
        ", which is neither side",
    )
    return np.asarray(wins.astype(np.float32))


def _shape(given: dict[str, Any], outcomes: Any) -> tuple[str, str]:
    """The roles of the two sides; raises unless exactly one shape of table was described."""
    named = {role: naming.shown(name) for role, name in given.items() if name is not None}
    if set(named) == {"winner", "loser"} and outcomes is None:
        return "winner", "loser"
    if set(named) != {"first", "second", "outcome"}:
        listed = ", ".join(f"{role}={name}" for role, name in named.items()) or "neither"
        problem = f"is no whole description of votes beside the other columns ({listed})"
        expected = "name the winner and the loser; or the item shown first, the one shown second,"
        expected += " and the outcome; of one rating per item make comparisons"
        line = "rt.Comparisons.from_ratings(table, item=..., rating=...)"
        refuse_data("winner", named.get("winner"), problem, expected, instead=line)
    return "first", "second"


def _check_items(left: Codes, right: Codes, names: Names, columns: tuple[Column, Column]) -> None:
    """Raise `DataError` for items compared with themselves, and columns that name no items."""
    one, other = columns
    same = left == right
    reading.refuse_where(
        one,
        same,
        f"names {names[left[np.argmax(same)]]!r}, as `{other.role}` does,",
        "a vote needs two items; leave those rows out",
        f"frame = frame[frame[{one.name!r}] != frame[{other.name!r}]]",
    )
    if len(names) > max(1000, len(left)):
        problem = f"and `{other.role}` hold {len(names):,} different items in {len(left):,} rows"
        problem += f" ({naming.shorten(names, 3)}), so most are compared once"
        one.refuse(problem, "name the columns of the items, not of row numbers or texts")


def _pairs_within(
    group: Codes, item: Codes, role: str
) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
    """All pairs of rows of the same group that are about different items."""
    sizes = np.bincount(group).astype(np.int64)
    if (pairs := int((sizes * (sizes - 1) // 2).sum())) > _MAX_PAIRS:
        expected = f"at most {_MAX_PAIRS:,} are made: take fewer annotators, or items of each"
        refuse_data(role, problem=f"would become {pairs:,} comparisons", expected=expected)
    order = np.argsort(group, kind="stable")
    one, two = (order[side] for side in pairs_within(group[order], _MAX_PAIRS))
    differ = item[one] != item[two]
    if not differ.any():
        problem = "leaves nothing to compare, as nobody rated two different items"
        expected = "name the column that says who rated"
        if role == "places":
            problem = "leave nothing to compare, as each row has a single item"
            expected = "give the columns of all places"
        refuse_data(role, problem=problem, expected=expected)
    return one[differ], two[differ]

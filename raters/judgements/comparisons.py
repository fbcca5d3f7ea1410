"""The containers of human judgement. ``Comparisons`` holds pairwise votes as integer codes with the
names beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

import jax
import numpy as np
import pandas as pd

from raters.errors.validation import boolean, one_of
from raters.judgements.names import encode_names, warn_data
from raters.judgements.pairs import Pairs
from raters.judgements.reading import comparisons as reading
from raters.judgements.reading import features as feature_reading
from raters.judgements.reading.columns import read_columns, read_ratings
from raters.judgements.roles import of_axes, static
from raters.judgements.scanned import Scanned
from raters.judgements.separation import is_even, is_separated


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Comparisons(Scanned, Pairs):
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

    axes: ClassVar[Mapping[str, str]] = {
        "first": "item",
        "second": "item",
        "annotator": "annotator",
    }
    names: ClassVar[Mapping[str, str]] = {
        "item": "items",
        "annotator": "annotators",
        "feature": "feature_names",
        "stratum": "strata",
    }
    answer: ClassVar[str] = "wins"
    observed: ClassVar[str] = "outcome"
    row: ClassVar[str] = "comparison"

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
        stratum: str | None = None,
        ties: reading.Ties = "error",
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
        one_of("ties", ties, get_args(reading.Ties))
        boolean("aggregate", aggregate)
        sides: dict[str, Any] = {"winner": winner, "loser": loser}
        sides |= {"first": first, "second": second, "outcome": outcome}
        roles = reading.shape(sides, outcomes)
        sides |= {"annotator": annotator, "count": count, "stratum": stratum}
        names, pairs = feature_reading.sides(features)
        columns = read_columns(frame, several={"features": pairs}, **sides)
        left, right = (columns[role] for role in roles)
        (left_code, right_code), item_names = encode_names([left, right], items, "item")
        reading.check_items(left_code, right_code, item_names, (left, right))
        who, annotator_names = columns.annotators(annotators, "have one vote")
        wins = votes = np.ones(columns.rows, np.float32)
        if outcome is not None:
            coded = (left, left_code), (right, right_code)
            wins = reading.read(columns["outcome"], *coded, item_names, outcomes)
        if count is not None:
            votes = columns.counts()
        group, strata = columns.codes("stratum")
        differences = feature_reading.differences(columns.lists["features"], names)
        keep, tied = reading.settle_ties(wins, ties, str(outcome)), ties == "keep"
        data = cls(
            first=left_code[keep],
            second=right_code[keep],
            annotator=who[keep],
            wins=(wins if tied else wins * votes)[keep],
            count=votes[keep],
            items=item_names,
            annotators=annotator_names,
            ordered=outcome is not None,
            features=None if differences is None else differences[keep],
            feature_names=names,
            tied=tied,
            stratum=None if group is None else group[keep],
            strata=strata,
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
        fields = reading.rankings(frame, places, annotator, items, annotators)
        ones = np.ones(len(fields["first"]), np.float32)
        return cls(**fields, wins=ones, count=ones).aggregate()

    @classmethod
    def from_ratings(
        cls,
        frame: Any,
        *,
        item: str,
        rating: str,
        annotator: str | None = None,
        ties: reading.Ties = "half",
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
        one_of("ties", ties, get_args(reading.Ties))
        columns = read_columns(frame, {"item": item, "rating": rating}, annotator=annotator)
        codes, item_names = columns.codes("item", items)
        score = read_ratings(columns["rating"])
        who, annotator_names = columns.annotators(annotators, "gave one rating")
        one, two = reading.pairs_within(who)
        one, two = (side[codes[one] != codes[two]] for side in (one, two))
        if len(one) == 0:
            columns["rating"].refuse(
                "leaves nothing to compare, as no annotator rated two different items",
                "an annotator must rate two items; name the column that says who rated",
            )
        wins = np.where(score[one] == score[two], 0.5, score[one] > score[two]).astype(np.float32)
        keep = reading.settle_ties(wins, ties, rating)
        one, two = one[keep], two[keep]
        sides, ones = (codes[one], codes[two]), np.ones(len(one), np.float32)
        names, tied = (item_names, annotator_names), ties == "keep"
        return cls(*sides, who[one], wins[keep], ones, *names, tied=tied).aggregate()

    # ---------------------------------------------------------------- facts

    @property
    def num_comparisons(self) -> int:
        """Number of rows; see `num_votes` for the votes that they stand for."""
        return self.num_rows

    @property
    def num_votes(self) -> int:
        """Number of votes, counts included."""
        return self.num_judgements

    def warn(self) -> None:
        """Warn about what these data cannot tell: as of any pairs; votes that are even; and votes
        of which none contradicts another, which give an order of the items and no distances."""
        super().warn()
        if self.num_judgements and self.has_answers and is_even(self):
            warn_data(
                "neither side has more votes in any comparison, so that no item is preferred to"
                " another, and nothing tells annotators apart"
            )
        if self.has_answers and is_separated(self):
            warn_data(
                "no vote contradicts another (perfect separation), so that they give an order and"
                " not how far apart the items are, which the prior alone says"
            )

    def tells_judges_apart(self) -> bool:
        """True if judges can differ in how well they agree: there are several, and not only
        ties."""
        return super().tells_judges_apart() and not is_even(self)

    def to_frame(self) -> pd.DataFrame:
        """The votes as a table, by name: ``annotator``, ``first``, ``second``, ``outcome`` and
        ``count``, and ``stratum`` where votes have one."""
        self.check_answered()
        votes = self.halved()
        count, wins = np.asarray(votes.weight, float), np.asarray(votes.wins)
        # A row of several votes becomes one for each side; a half is a tie.
        tied = np.where(wins % 1 != 0, 1.0, 0.0)
        if self.tied:
            tied = np.where(np.asarray(self.wins) == 0.5, count, 0.0)
        numbers = {"first": wins - tied / 2, "second": count - wins - tied / 2, "tie": tied}
        table = self._by_outcome("outcome", numbers)
        if self.stratum is not None:
            names = pd.Index(self.strata).take(np.asarray(self.stratum)[table.index])
            table.insert(3, "stratum", names)
        return table.reset_index(drop=True)

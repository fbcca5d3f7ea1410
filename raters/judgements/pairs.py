"""Judgements of two things, of which one is preferred."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
from jaxtyping import Bool, Float, Int, Num, Shaped

from raters.errors import DataError, refuse_data
from raters.errors.validation import checked, finite
from raters.judgements.base import Judgements
from raters.judgements.counts import Tallies, exact
from raters.judgements.names import (
    loosely,
    match_names,
    matched_codes,
    name_text,
    names_array,
    shorten,
    warn_data,
    warn_of_each,
)
from raters.judgements.parts import PIECE
from raters.judgements.reading import features as feature_reading

#: Words for an answer, and votes for the first item that each stands for.
_WORDS = {"first": 1.0, "left": 1.0, "second": 0.0, "right": 0.0, "tie": 0.5}


class Side(str):
    """Word for a side or a tie, from where an answer is no name: in `Pairs.outcome_of` it stands
    for that side, whatever items are called."""

    __slots__ = ()


def side_words(first: str, second: str) -> tuple[str, str]:
    """A word for each side that is not the name of the item on the other."""
    return "first" if second == "left" else "left", "second" if first == "right" else "right"


class Pairs(Judgements):
    """Base of `raters.Comparisons`: what follows from a question having two sides."""

    again: ClassVar[bool] = True
    pair: ClassVar[tuple[str, str] | None] = ("first", "second")

    first: Any
    second: Any
    wins: Any
    features: Any
    stratum: Any
    items: tuple[Any, ...]
    strata: tuple[Any, ...]
    annotators: tuple[Any, ...]
    ordered: bool
    tied: bool
    feature_names: tuple[str, ...]

    # Of other kinds these two are facts of the class; here they depend on how ties were read.
    @property
    def summed(self) -> bool:  # type: ignore[override]
        """True where a row holds the sum of its votes, as it does unless ties are kept."""
        return not self.tied

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
        Pairs
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
            return dataclasses.replace(self, tied=True)
        wins, count = np.asarray(self.wins, float), np.asarray(self.weight, float)
        half = wins % 1 != 0
        if (several := (count > 1) & (wins > 0) & (wins < count)).any():
            row = int(np.flatnonzero(several)[0])
            refuse_data(
                "wins",
                float(wins[row]),
                f"is a sum of {count[row]:g} votes in row {row} (counted from 0), which"
                " does not say how many of them are ties",
                "read the table again with ties='keep'",
            )
        # Votes for the first item, ties, and votes for the second, each as a row of its own.
        decided = np.where(half, 0, wins), np.where(half, 0, count - wins)
        numbers = np.stack([decided[0], half.astype(float), decided[1]])
        place, rows = np.nonzero(numbers > 0)
        order = np.argsort(rows, kind="stable")
        place, rows = place[order], rows[order]
        outcome = np.array([1.0, 0.5, 0.0], np.float32)[place]
        kept = dataclasses.replace(self.rows(rows), wins=outcome, tied=True)
        return dataclasses.replace(kept, count=exact(numbers[place, rows]))._slim()

    def halved(self) -> Self:
        """The votes with half of each tie for either side, as read with ``ties="half"``.

        Returns
        -------
        Pairs
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
            return dataclasses.replace(self, tied=False)
        count = np.asarray(self.weight, float)
        votes = dataclasses.replace(self, wins=exact(np.asarray(self.wins) * count), tied=False)
        return dataclasses.replace(votes, count=exact(count))._slim()

    @checked
    def joined(self, more: Self) -> Self:
        """These votes and further ones, in this order, with ties as these have them; see
        `Judgements.joined`."""
        return super().joined(more.with_ties() if self.tied else more.halved())

    def answer_words(self, row: int) -> dict[str, float]:
        """Words for the outcomes of one question: the sides, a tie, and the names of the two
        items."""
        return _WORDS | self._sides(row)

    def _sides(self, row: int) -> dict[str, float]:
        place = self._place(row)
        first, second = (self.items[int(side[place])] for side in (self.first, self.second))
        return {name_text(first): 1.0, name_text(second): 0.0}

    def outcome_of(self, row: int, answer: Any) -> float | None:
        """Outcome that an answer in words stands for."""
        if isinstance(answer, Side):
            return _WORDS.get(answer)
        outcome = super().outcome_of(row, answer)
        text = name_text(answer) if outcome is not None else ""
        if outcome is not None and _WORDS.get(loosely(text), outcome) != outcome:
            first, second = self._sides(row)
            left, right = side_words(first, second)
            raise DataError(
                f"the answer {answer!r} is the name of an item and also a word for a side or a tie;"
                f" write {left!r} for {first!r} or {right!r} for {second!r}"
            )
        return outcome

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
        changes: dict[str, Any] = {
            "first": np.where(swap, second, first),
            "second": np.where(swap, first, second),
        }
        if self.wins is not None:
            count = 1 if self.count is None or self.tied else np.asarray(self.count)
            changes["wins"] = np.where(swap, count - np.asarray(self.wins), np.asarray(self.wins))
        if self.features is not None:  # differences: of the first item less the second
            features = np.asarray(self.features)
            changes["features"] = np.where(swap[:, None], np.float32(0) - features, features)
        return dataclasses.replace(self, **changes)

    @property
    def exchangeable(self) -> bool:
        """True if it is not known which item was shown first: the sides then have no meaning."""
        return not self.ordered

    def about(self) -> Int[np.ndarray, " comparison"]:
        """A number for the pair of each row, in either order."""
        first, second = np.asarray(self.first), np.asarray(self.second)
        low, high = np.minimum(first, second), np.maximum(first, second)
        return low.astype(np.int64) * len(self.items) + high

    def tallies(self) -> Tallies:
        """Votes for the item of smaller code and for the other, each as a tally; half a tie to each
        side."""
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
            return dataclasses.replace(votes, count=np.ones(self.num_rows, np.float32))
        return votes

    def check(self) -> None:
        """Raise unless each question is about two different items; see `Judgements.check`."""
        super().check()
        if self.stratum is not None:
            codes = np.asarray(self.stratum)
            wrong = ~((codes >= 0) & (codes < len(self.strata)))
            self._refuse("stratum", wrong, f"it must be codes of the {len(self.strata)} strata")
        if (same := np.flatnonzero(np.asarray(self.first) == np.asarray(self.second))).size:
            name = self.items[int(self.first[same[0]])]
            refuse_data(
                "second",
                name,
                f"is also `first` in row {same[0]} (counted from 0; {same.size} in all)",
                "two different items must be compared; leave such rows out",
            )

    def _empty_rows(self, rows: int) -> dict[str, Any]:
        if len(self.items) < 2 or not self.annotators:
            raise DataError("padding without votes needs the names of two items and an annotator")
        return super()._empty_rows(rows) | {"second": np.ones(rows, np.int32)}

    def _slim(self) -> Self:
        """Without the counts when each is 1: the model then uses a Bernoulli, which costs less than
        a Binomial."""
        whole = self.wins is None or self.tied or bool(np.all(np.asarray(self.wins) % 1 == 0))
        if self.count is not None and whole and bool(np.all(np.asarray(self.count) == 1)):
            return dataclasses.replace(self, count=None)
        return self

    def components(self) -> list[tuple[Any, ...]]:
        """The connected components of the graph of comparisons."""
        label = np.arange(len(self.items))
        for piece in self.chunks(PIECE):
            real = slice(None) if piece.count is None else np.asarray(piece.count) > 0
            ends = label[np.asarray(piece.first)[real]], label[np.asarray(piece.second)[real]]
            graph = scipy.sparse.coo_array(
                (np.ones(len(ends[0]), bool), ends), shape=(len(self.items), len(self.items))
            )
            label = scipy.sparse.csgraph.connected_components(graph, directed=False)[1][label]
        groups: dict[int, list[Any]] = {}
        for name, group in zip(self.items, label.tolist(), strict=True):
            groups.setdefault(group, []).append(name)
        return sorted(map(tuple, groups.values()), key=len, reverse=True)

    def warn(self) -> None:
        """Warn about what these data cannot tell: items never compared, and components."""
        never = self.judgements_by("item") == 0
        warn_of_each({"item(s) are never compared and keep their prior": (self.items, never)})
        parts = [part for part in self.components() if len(part) > 1]
        if len(parts) > 1:
            listing = "; ".join(f"{len(part)} items ({shorten(part)})" for part in parts[:4])
            warn_data(
                f"the graph of comparisons falls into {len(parts)} components: {listing}. Rewards"
                " are comparable within a component; between components only the prior relates"
                " them. Add comparisons across"
            )

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
        return dataclasses.replace(self, features=differences, feature_names=tuple(chosen))

    @checked
    def features_of(self, like: Self) -> Self:
        """With the features of other data, in their order."""
        if like.features is None:
            return self.without_features()
        if missing := [name for name in like.feature_names if name not in self.feature_names]:
            refuse_data("features", missing, "of the fit are missing from these", "add them")
        order = [self.feature_names.index(name) for name in like.feature_names]
        features = np.asarray(self.features)[:, order]
        return dataclasses.replace(self, features=features, feature_names=like.feature_names)

    @checked
    def recoded(self, like: Self, axes: Iterable[str]) -> Self:
        """In the codes of `like` along the given axes, and in its strata; see
        `Judgements.recoded`."""
        votes = super().recoded(like, axes)
        votes = votes.with_ties() if like.tied else votes.halved()
        codes = votes.stratum
        if codes is not None and like.strata:
            codes = matched_codes(np.asarray(codes), votes.strata, like.strata, "stratum")
        return dataclasses.replace(votes, stratum=codes, strata=like.strata)

    @checked
    def in_stratum(self, name: Any) -> Self:
        """The questions as those of one stratum; without one they are about all strata together."""
        strata = self.strata or (name,)
        (code,) = match_names(np.zeros(1, np.int32), (name,), strata, "stratum")
        column = np.full(self.num_rows, code, np.int32)
        return dataclasses.replace(self, stratum=column, strata=strata)

    def plain_columns(self) -> tuple[str, ...]:
        """Columns of one number for each row that are a part of the question; the strata are codes
        of names, which `question_names` gives."""
        return tuple(name for name in super().plain_columns() if name != "stratum")

    def question_names(self) -> dict[str, Shaped[np.ndarray, " row"]]:
        """Names that each row asks about, its stratum where there is one, and who is asked; see
        `Judgements.question_names`."""
        columns = super().question_names()
        if self.stratum is None:
            return columns
        return columns | {"stratum": names_array(self.strata)[np.asarray(self.stratum)]}

    def at_equal_features(self, like: Self) -> Self:
        """With the features of other data, equal on both sides, unless there are features."""
        if self.features is not None:
            return self
        features = np.zeros((self.num_rows, len(like.feature_names)), np.float32)
        return dataclasses.replace(self, features=features, feature_names=like.feature_names)

    def without_features(self) -> Self:
        """Without features."""
        return dataclasses.replace(self, features=None, feature_names=())

    def _question(self, without: tuple[str, ...] = ()) -> list[Num[np.ndarray, "row ..."]]:
        """Codes that tell questions apart, then features."""
        return sorted(super()._question(without), key=np.ndim)

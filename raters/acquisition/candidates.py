"""Questions that could be asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np

from raters import _frame
from raters._check import whole
from raters.data import Comparisons
from raters.errors import DataError
from raters.labels import Labels


class Candidates:
    """Questions that could be asked, as `Comparisons` or `Labels` without outcomes."""

    @staticmethod
    def pairs(
        votes: Comparisons,
        *,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        limit: int = 1_000_000,
        seed: int = 0,
    ) -> Comparisons:
        """Every pair of items, put to every annotator.

        Parameters
        ----------
        votes : Comparisons
            Where the names come from.
        items, annotators : iterable, optional
            Restrict the questions to these names.
        limit : int
            Beyond this many, a uniform sample of so many.
        seed : int
            For the sample.

        Returns
        -------
        Comparisons
            Without outcomes.

        Examples
        --------
        >>> import raters as rt
        >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
        >>> rt.Candidates.pairs(votes, annotators=[0]).num_comparisons
        6
        """
        _check_kind(votes, Comparisons, "Candidates.labels(labels)")
        whole("limit", limit)
        chosen_items = _codes(items, votes.items, "item")
        chosen_annotators = _codes(annotators, votes.annotators, "annotator")
        if len(chosen_items) < 2:
            raise DataError("a question needs two items; give at least two")
        pairs = len(chosen_items) * (len(chosen_items) - 1) // 2
        total = pairs * len(chosen_annotators)
        number = np.arange(total) if total <= limit else _sample(np.random.default_rng(seed), total, limit)
        pair, who = np.divmod(number, len(chosen_annotators))
        # Pair (i, j), i < j, has number j(j−1)/2 + i.
        larger = ((1 + np.sqrt(1 + 8 * pair.astype(np.float64))) / 2).astype(np.int64)
        larger -= larger * (larger - 1) // 2 > pair
        larger += (larger + 1) * larger // 2 <= pair
        smaller = pair - larger * (larger - 1) // 2
        return _questions(votes, chosen_items[smaller], chosen_items[larger], chosen_annotators[who])

    @staticmethod
    def annotators(votes: Comparisons, first: Any, second: Any) -> Comparisons:
        """One pair, put to every annotator: whom to ask.

        Parameters
        ----------
        votes : Comparisons
            Where the names come from.
        first, second : item names

        Returns
        -------
        Comparisons
            Without outcomes.

        Examples
        --------
        >>> import raters as rt
        >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
        >>> rt.Candidates.annotators(votes, 0, 1).num_comparisons
        3
        """
        _check_kind(votes, Comparisons, "Candidates.labels(labels)")
        one, other = _codes([first], votes.items, "item"), _codes([second], votes.items, "item")
        if one[0] == other[0]:
            raise DataError(f"a question needs two different items; both are {first!r}")
        who = np.arange(votes.num_annotators)
        return _questions(votes, np.repeat(one, len(who)), np.repeat(other, len(who)), who)

    @staticmethod
    def labels(
        labels: Labels,
        *,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        again: bool = False,
        limit: int = 1_000_000,
        seed: int = 0,
    ) -> Labels:
        """Every item, put to every annotator who has not labelled it.

        Parameters
        ----------
        labels : Labels
            The labels that there are.
        items, annotators : iterable, optional
            Restrict the questions to these names.
        again : bool
            Whether an annotator may be asked about an item that they have labelled.
        limit : int
            Beyond this many, a uniform sample of so many.
        seed : int
            For the sample.

        Returns
        -------
        Labels
            Without labels.

        Examples
        --------
        >>> import raters as rt
        >>> labels, _ = rt.datasets.label_crowd(20, 5, 3, seed=0)
        >>> rt.Candidates.labels(labels).num_rows
        40
        """
        _check_kind(labels, Labels, "Candidates.pairs(votes)")
        whole("limit", limit)
        item, annotator = _codes(items, labels.items, "item"), _codes(annotators, labels.annotators, "annotator")
        total = len(item) * len(annotator)
        asked = np.zeros(0, np.int64)
        if not again:
            seen = _places(labels.item, item, labels.num_items), _places(labels.annotator, annotator, labels.num_annotators)
            among = (seen[0] >= 0) & (seen[1] >= 0)
            asked = np.unique(seen[0][among] * len(annotator) + seen[1][among])
        if len(asked) == total:
            raise DataError("every annotator has labelled every item; write again=True to ask them again")
        place = np.arange(total - len(asked))
        if len(place) > limit:
            place = _sample(np.random.default_rng(seed), len(place), limit)
        # Number n of what was not asked is at place n + how much was asked before it.
        place = place + np.searchsorted(asked - np.arange(len(asked)), place, side="right")
        group, who = item[place // len(annotator)], annotator[place % len(annotator)]
        most = int(np.bincount(group).max())
        return dataclasses.replace(
            labels, group=group.astype(np.int32), annotator=who.astype(np.int32), label=None, count=None, most=most
        )


def _check_kind(data: Any, kind: type, instead: str) -> None:
    if not isinstance(data, kind):
        raise DataError(f"these candidates are made from {kind.__name__}, not {type(data).__name__}; write rt.{instead}")


def _codes(names: Iterable[Any] | None, known: tuple[Any, ...], role: str) -> np.ndarray:
    if names is None:
        return np.arange(len(known))
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise DataError(f"{role}s= takes a list of names, such as {role}s=[{names!r}], not {names!r} alone")
    names = tuple(names)
    if not names:
        raise DataError(f"{role}s= names nobody and nothing; give at least one {role}, or leave it out for all")
    codes = _frame.match(np.arange(len(names)), names, known, role)
    return np.unique(codes)


def _places(codes: Any, among: np.ndarray, number: int) -> np.ndarray:
    """Where each code stands among those chosen; −1 for others."""
    place = np.full(number, -1, np.int64)
    place[among] = np.arange(len(among))
    return place[np.asarray(codes)]


def _sample(rng: np.random.Generator, total: int, number: int) -> np.ndarray:
    """Distinct numbers below `total`, in order, without an array of that length."""
    found = np.unique(rng.integers(total, size=int(number * 1.1) + 100))
    while len(found) < number:
        found = np.unique(np.concatenate([found, rng.integers(total, size=number)]))
    return np.sort(rng.choice(found, number, replace=False))


def _questions(votes: Comparisons, first, second, annotator) -> Comparisons:
    first, second, annotator = (np.asarray(column, np.int32) for column in (first, second, annotator))
    return Comparisons(first, second, annotator, None, None, votes.items, votes.annotators, votes.ordered)

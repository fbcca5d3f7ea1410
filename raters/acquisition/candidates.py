"""Questions that could be asked: about all pairs, about some, or about what each annotator can judge."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from raters import _frame
from raters._check import whole
from raters.acquisition._numbered import Abilities, Listed, Pairs, sample
from raters.data import Comparisons
from raters.errors import DataError
from raters.labels import Labels

Mask = np.ndarray | Iterable[tuple[Any, Any]] | Callable[[np.ndarray, np.ndarray], np.ndarray]
Available = Mapping[Any, Iterable[Any] | None]


class Candidates:
    """Questions that could be asked, as `Comparisons` or `Labels` without outcomes."""

    @staticmethod
    def pairs(
        votes: Comparisons | None = None,
        *,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        mask: Mask | None = None,
        available: Available | None = None,
        limit: int = 1_000_000,
        seed: int = 0,
    ) -> Comparisons:
        """Every pair of items, put to every annotator.

        Of votes whose order of presentation counts (``votes.ordered``), each pair comes both ways round, as two questions, so
        that a liking for what comes first can be told from one for an item.

        Parameters
        ----------
        votes : Comparisons, optional
            Where the names come from. Without them, for a campaign that has no votes yet, from `items` and `annotators`.
        items, annotators : iterable, optional
            Restrict the questions to these names.
        mask : array, iterable of pairs, or function, optional
            Which pairs may be asked about; the order within a pair means nothing. A boolean array, shape (item, item), in the
            order of `items` (else of ``votes.items``), where either of the two entries will do; or pairs of names; or a
            function of two arrays of codes (into the ``items`` of what is returned) that gives a boolean array, and is called
            for up to 65,536 pairs at a time.
        available : mapping, optional
            From the name of an annotator to the items that they can judge (None for all). A pair is put to an annotator who can
            judge both. Annotators that it does not name can judge all.
        limit : int
            Beyond this many, a uniform sample of so many; memory is that of so many and a chunk of 65,536.
        seed : int
            For the sample.

        Returns
        -------
        Comparisons
            Without outcomes.

        Raises
        ------
        DataError
            When a name is unknown, or nothing is left to ask.

        Notes
        -----
        Of up to 33 million questions every one is put to the mask. Of more, so many are drawn at random, and the sample is
        smaller than `limit` when the mask lets few of them pass: pass such a mask as pairs of names.

        Examples
        --------
        >>> import raters as rt
        >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
        >>> rt.Candidates.pairs(votes, annotators=[0]).num_comparisons
        6

        Before there is any vote, neighbours only, and Bob has not seen the film "c":

        >>> pool = rt.Candidates.pairs(items=["a", "b", "c", "d"], annotators=["ann", "bob"],
        ...                            mask=lambda first, second: abs(first - second) == 1, available={"bob": ["a", "b", "d"]})
        >>> [(pool.items[i], pool.items[j], pool.annotators[k]) for i, j, k in zip(pool.first, pool.second, pool.annotator)]
        [('a', 'b', 'ann'), ('b', 'c', 'ann'), ('c', 'd', 'ann'), ('a', 'b', 'bob')]
        """
        if votes is None:
            names = _names(items, "item", "Candidates.pairs"), _names(annotators, "annotator", "Candidates.pairs")
            votes = Comparisons(*(np.zeros(0, np.int32),) * 3, None, None, *names)
        _check_kind(votes, Comparisons, "Candidates.labels(labels)")
        whole("limit", limit)
        listed = _codes(items, votes.items, "item")
        chosen, who = np.unique(listed), np.unique(_codes(annotators, votes.annotators, "annotator"))
        if len(chosen) < 2:
            raise DataError("a question needs two items; give at least two")
        can = _abilities(available, chosen, who, votes.items, votes.annotators)
        mask = _boolean(mask, len(listed))
        if mask is None or callable(mask) or (isinstance(mask, np.ndarray) and mask.dtype == bool):
            pool: Pairs | Listed = Pairs.of(can)
            allowed = _mask_of(mask, listed, votes.num_items)
        else:
            pool = Listed(*_listed_pairs(mask, chosen, votes.items), who)
            allowed = None if available is None else can.both
        ways = 2 if votes.ordered else 1
        keep = None if allowed is None else lambda number: allowed(*pool.of_numbers(number // ways))
        number = sample(np.random.default_rng(seed), ways * pool.total, limit, keep)
        if not len(number):
            raise DataError(_nothing_left(mask, available, "pair"))
        first, second, by = pool.of_numbers(number // ways)
        turned = number % ways == 1
        return _questions(votes, np.where(turned, second, first), np.where(turned, first, second), by)

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
        labels: Labels | None = None,
        *,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        classes: Iterable[Any] | None = None,
        available: Available | None = None,
        again: bool = False,
        limit: int = 1_000_000,
        seed: int = 0,
    ) -> Labels:
        """Every item, put to every annotator who has not labelled it.

        Parameters
        ----------
        labels : Labels, optional
            The labels that there are. Without them, for a campaign that has no labels yet, the names come from `items`,
            `annotators` and `classes`.
        items, annotators : iterable, optional
            Restrict the questions to these names.
        classes : iterable, optional
            The classes, where there are no labels to take them from.
        available : mapping, optional
            From the name of an annotator to the items that they can label (None for all). Annotators that it does not name can
            label all.
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

        Raises
        ------
        DataError
            When a name is unknown, or nothing is left to ask.

        Examples
        --------
        >>> import raters as rt
        >>> labels, _ = rt.datasets.label_crowd(20, 5, 3, seed=0)
        >>> rt.Candidates.labels(labels).num_rows
        40
        >>> rt.Candidates.labels(items=[7, 8, 9], annotators=["ann", "bob"], classes=["ham", "spam"],
        ...                      available={"bob": [8]}).num_rows
        4
        """
        if labels is None:
            labels = _unlabelled(items, annotators, classes)
        elif classes is not None:
            raise DataError("classes= is for questions before there are labels; these labels have classes, so leave it out")
        _check_kind(labels, Labels, "Candidates.pairs(votes)")
        whole("limit", limit)
        item = np.unique(_codes(items, labels.items, "item"))
        annotator = np.unique(_codes(annotators, labels.annotators, "annotator"))
        can = _abilities(available, item, annotator, labels.items, labels.annotators)
        asked = np.zeros(0, np.int64) if again else can.answered(labels.unpadded())
        if can.total == len(asked):
            if can.total == 0:
                raise DataError(_nothing_left(None, available, "item"))
            those = "every item" if available is None else "every item that they can judge"
            raise DataError(f"every annotator has labelled {those}; write again=True to ask them again")
        place = sample(np.random.default_rng(seed), can.total - len(asked), limit, None)
        # Number n of what was not asked is at place n + how much was asked before it.
        place = place + np.searchsorted(asked - np.arange(len(asked)), place, side="right")
        group, who = can.of_numbers(place)
        order = np.lexsort((who, group))
        group, who = group[order].astype(np.int32), who[order].astype(np.int32)
        most = int(np.bincount(group).max())
        return dataclasses.replace(labels, group=group, annotator=who, label=None, count=None, most=most, even=False)


# ---------------------------------------------------------------------------------------------------- what is given


def _check_kind(data: Any, kind: type, instead: str) -> None:
    if not isinstance(data, kind):
        raise DataError(f"these candidates are made from {kind.__name__}, not {type(data).__name__}; write rt.{instead}")


def _names(names: Iterable[Any] | None, role: str, verb: str) -> tuple[Any, ...]:
    """Names where there are no judgements to take them from."""
    if names is None:
        plural = f"{role}es" if role == "class" else f"{role}s"
        raise DataError(f"without judgements, name the {plural}: rt.{verb}({plural}=[...], ...)")
    _, found = _frame.encode([], _some(names, role), role)
    return found


def _some(names: Iterable[Any], role: str) -> tuple[Any, ...]:
    """A list of names, at least one."""
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise DataError(f"{role}s= takes a list of names, such as {role}s=[{names!r}], not {names!r} alone")
    names = tuple(names)
    if not names:
        raise DataError(f"{role}s= names nobody and nothing; give at least one {role}, or leave it out for all")
    if missing := [name for name in names if name is None or (isinstance(name, (float, np.floating)) and np.isnan(name))]:
        raise DataError(f"{role}s= has {missing[0]!r} among the names; leave out what has no name, such as by table.dropna()")
    return names


def _codes(names: Iterable[Any] | None, known: tuple[Any, ...], role: str) -> np.ndarray:
    """The codes of names, in their order; of all without any."""
    if names is None:
        return np.arange(len(known))
    names = _some(names, role)
    return np.asarray(_frame.match(np.arange(len(names)), names, known, role), np.int64)


def _unlabelled(items, annotators, classes) -> Labels:
    """Labels without a row."""
    item, annotator, class_names = (
        _names(names, role, "Candidates.labels")
        for names, role in ((items, "item"), (annotators, "annotator"), (classes, "class"))
    )
    if len(class_names) < 2:
        raise DataError(f"a label needs two classes to choose from; classes= has {class_names[0]!r} alone")
    none, unit = np.zeros(0, np.int32), np.arange(len(item), dtype=np.int32)
    return Labels(none, none, None, None, unit, None, None, None, None, None, item, annotator, class_names)


def _abilities(available: Available | None, items: np.ndarray, who: np.ndarray, names: Any, annotators: Any) -> Abilities:
    """What each of some annotators can judge, among some items."""
    if available is None:
        return Abilities.of(items, who, {}, len(names))
    if not isinstance(available, Mapping):
        raise DataError(f"available= maps names of annotators to lists of items, such as {{'ann': [...]}}; it is {available!r}")
    given = tuple(name for name in available if available[name] is not None)
    judged = [_judged(name, available[name]) for name in given]
    flat = tuple(name for part in judged for name in part)
    codes = np.asarray(_frame.match(np.arange(len(flat)), flat, names, "item"), np.int64)
    parts = np.split(codes, np.cumsum([len(part) for part in judged])[:-1]) if judged else []
    whose = _frame.match(np.arange(len(given)), given, annotators, "annotator")
    lists = {int(code): np.intersect1d(part, items) for code, part in zip(whose, parts, strict=True)}
    return Abilities.of(items, who, lists, len(names))


def _judged(name: Any, items: Any) -> tuple[Any, ...]:
    """The items that an annotator can judge."""
    if isinstance(items, (str, bytes)) or not isinstance(items, Iterable):
        raise DataError(f"available= takes a list of items for {name!r}, such as [{items!r}], not {items!r} alone")
    return tuple(items)


def _boolean(mask: Any, number: int) -> Any:
    """An array of zeros and ones, a row and a column for each item, as one of booleans."""
    of_numbers = isinstance(mask, np.ndarray) and mask.dtype.kind in "iuf" and mask.shape == (number, number)
    return mask.astype(bool) if of_numbers and np.isin(mask, (0, 1)).all() else mask


def _mask_of(mask: Any, listed: np.ndarray, number: int) -> Callable[..., np.ndarray] | None:
    """Which questions a mask lets pass, as a function of two items and an annotator."""
    if mask is None:
        return None
    if not callable(mask):
        if mask.shape != (len(listed), len(listed)):
            raise DataError(
                f"mask= has shape {mask.shape}, and there are {len(listed)} items; give a row and a column for each, in the "
                "order of items= (else of votes.items)"
            )
        place = np.zeros(number, np.int64)
        place[listed] = np.arange(len(listed))

        def within(first, second, _):
            one, other = place[first], place[second]
            return mask[one, other] | mask[other, one]

        return within

    def asked(first, second, _):
        found = np.asarray(mask(first, second))
        if found.shape != first.shape or found.dtype != bool:
            raise DataError(
                f"mask= gave {found.dtype} of shape {found.shape} for {len(first)} pairs; it must give True or False for each, "
                "such as mask=lambda first, second: abs(first - second) < 10"
            )
        return found

    return asked


def _listed_pairs(mask: Any, chosen: np.ndarray, names: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The codes of listed pairs among the items chosen, each pair once, the smaller code first."""
    pairs = [tuple(pair) for pair in mask] if isinstance(mask, Iterable) and not isinstance(mask, (str, bytes)) else [()]
    if wrong := [pair for pair in pairs if len(pair) != 2]:
        raise DataError(
            f"mask= takes a boolean array, pairs of item names such as [('a', 'b')], or a function; it has {wrong[0] or mask!r}"
        )
    flat = tuple(name for pair in pairs for name in pair)
    codes = np.sort(np.asarray(_frame.match(np.arange(len(flat)), flat, names, "item"), np.int64).reshape(-1, 2), axis=1)
    if (same := np.flatnonzero(codes[:, 0] == codes[:, 1])).size:
        raise DataError(f"a question needs two different items; mask= has {pairs[same[0]]!r}")
    codes = np.unique(codes[np.isin(codes, chosen).all(1)], axis=0)
    return codes[:, 0], codes[:, 1]


def _nothing_left(mask: Any, available: Any, what: str) -> str:
    """Why the pool is empty."""
    by = [name for name, given in (("mask=", mask), ("available=", available)) if given is not None]
    return f"no question is left to ask: {' and '.join(by)} let no {what} pass to any annotator; allow more"


def _questions(votes: Comparisons, first, second, annotator) -> Comparisons:
    first, second, annotator = (np.asarray(column, np.int32) for column in (first, second, annotator))
    return Comparisons(first, second, annotator, None, None, votes.items, votes.annotators, votes.ordered)

"""Questions that could be asked: about all pairs or items, some, or those that annotators can
judge."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Int, Num

from raters.acquisition.questions.arguments import (
    Available,
    Mask,
    abilities_given,
    as_boolean,
    check_askable,
    codes_given,
    listed_pairs,
    mask_function,
    names_given,
    nothing_left,
)
from raters.acquisition.questions.numbered import Listed, Pairs, sample
from raters.acquisition.questions.sets import sets_of
from raters.errors import DataError, SettingError
from raters.errors.validation import boolean, checked, one_of, seed_number, whole
from raters.judgements.base import Judgements
from raters.judgements.comparisons import Comparisons
from raters.judgements.labels import Labels
from raters.judgements.rankings import Rankings
from raters.kinds import kind_of


class Candidates:
    """Questions that could be asked: `Judgements` without outcomes, such as `Comparisons` or
    `Labels`."""

    @staticmethod
    def of(data: Judgements, **options: Any) -> Any:
        """Every question that can be asked about the names of some judgements, for any kind.

        Parameters
        ----------
        data : Judgements
        **options
            Those of the kind: of `pairs` for comparisons, of `labels` for labels, of `sets` for
            rankings; for other kinds
            ``again`` (whether a question that was answered may be asked again), ``limit`` and
            ``seed``. Of any kind also the names that questions are restricted to, by the field of
            their axis, such as ``items=["tea", "water"]``.

        Returns
        -------
        Judgements
            Without outcomes.

        Raises
        ------
        SettingError
            When the kind is not registered, has no such option, or has questions of several rows.
        DataError
            When a name is unknown, or nothing is left to ask.

        Examples
        --------
        >>> import raters as rt
        >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
        >>> rt.Candidates.of(votes).num_rows
        18
        """
        questions = kind_of(data).questions
        if questions is None:
            check_askable(data, "data")
            return _combinations(data, **options)
        parameters = inspect.signature(questions).parameters
        if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
            return questions(data, **options)
        own = {name: options[name] for name in options if name in parameters}
        pool = questions(data, **own)
        rest = [name for name in options if name not in parameters]
        keep = [_about(pool, name, options[name], tuple(parameters)[1:]) for name in rest]
        if not rest:
            return pool
        rows = np.flatnonzero(np.logical_and.reduce(keep))
        return _sampled(pool, rows, pool.num_rows, 0, again=True)

    @staticmethod
    def pairs(
        votes: Comparisons | None = None,
        *,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        mask: Mask | None = None,
        available: Available | None = None,
        ties: Literal["keep"] | None = None,
        limit: int = 1_000_000,
        seed: int = 0,
    ) -> Comparisons:
        """Every pair of items, put to every annotator.

        Where the order of presentation counts (``votes.ordered``), each pair comes both ways round,
        as two questions, so that a preference for the first item shown can be told from one for an
        item. Where votes have strata, it comes in each of them.

        Parameters
        ----------
        votes : Comparisons, optional
            Source of the names. Without votes, for a campaign that begins, they are `items` and
            `annotators`.
        items, annotators : iterable, optional
            Restrict the questions to these names.
        mask : array, iterable of pairs, or function, optional
            Pairs that may be asked about, in either order: a boolean array, shape (item, item), in
            the order of `items` (else of ``votes.items``), in which one of the two entries
            suffices; or pairs of names; or a function of two arrays of codes (into the ``items`` of
            the result) that gives a boolean array, and is called for up to 65,536 pairs at a time.
        available : mapping, optional
            From the name of an annotator to the items that they can judge (None for all). A pair is
            put to annotators who can judge both items. Other annotators can judge all items.
        ties : {"keep"}, optional
            Whether a tie is an answer of its own, for a model with ``ties``; by default as
            `votes` have it.
        limit : int
            Number of questions beyond which a uniform sample of this size is returned; memory is
            that of so many and a chunk of 65,536.
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
        The mask is applied to each of up to 33 million questions. Of more, so many are drawn at
        random, and the sample is smaller than `limit` when the mask allows few of them: give such a
        mask as pairs of names.

        Examples
        --------
        >>> import raters as rt
        >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
        >>> rt.Candidates.pairs(votes, annotators=[0]).num_comparisons
        6

        Before there is any vote, neighbours only, and Bob has not seen the film "c":

        >>> pool = rt.Candidates.pairs(items=["a", "b", "c", "d"], annotators=["ann", "bob"],
        ...                            mask=lambda first, second: abs(first - second) == 1,
        ...                            available={"bob": ["a", "b", "d"]})
        >>> [(pool.items[i], pool.items[j], pool.annotators[k])
        ...  for i, j, k in zip(pool.first, pool.second, pool.annotator)]
        [('a', 'b', 'ann'), ('b', 'c', 'ann'), ('c', 'd', 'ann'), ('a', 'b', 'bob')]
        """
        if votes is None:
            names = (
                names_given(items, "item", "Candidates.pairs"),
                names_given(annotators, "annotator", "Candidates.pairs"),
            )
            votes = Comparisons(*(np.zeros(0, np.int32),) * 3, None, None, *names)
        _check_kind(votes, Comparisons)
        if ties is not None:
            one_of("ties", ties, ("keep",))
            votes = votes.with_ties()
        whole("limit", limit)
        seed_number(seed)
        listed = codes_given(items, votes.items, "item")
        chosen = np.unique(listed)
        judges = np.unique(codes_given(annotators, votes.annotators, "annotator"))
        if len(chosen) < 2:
            raise DataError(
                parameter="items",
                value=[votes.items[code] for code in chosen],
                expected="a question needs two items; give at least two",
            )
        abilities = abilities_given(available, chosen, judges, votes.items, votes.annotators)
        mask = as_boolean(mask, len(listed))
        if mask is None or callable(mask) or (isinstance(mask, np.ndarray) and mask.dtype == bool):
            pool: Pairs | Listed = Pairs.of(abilities)
            allowed = mask_function(mask, listed, votes.num_items)
        else:
            pool = Listed(*listed_pairs(mask, chosen, votes.items), judges)
            allowed = None if available is None else abilities.both
        # Each pair comes in both orders, where these count, and in each stratum.
        orders = 2 if votes.ordered else 1
        ways = orders * max(1, len(votes.strata))
        keep = None if allowed is None else lambda number: allowed(*pool.of_numbers(number // ways))
        number = sample(np.random.default_rng(seed), ways * pool.total, limit, keep)
        if not len(number):
            raise nothing_left(mask, available, "pair")
        first, second, by = pool.of_numbers(number // ways)
        turned, stratum = number % orders == 1, number % ways // orders
        sides = np.where(turned, second, first), np.where(turned, first, second)
        asked = _questions(votes, *sides, by)
        if not votes.strata:
            return asked
        return dataclasses.replace(asked, stratum=stratum.astype(np.int32), strata=votes.strata)

    @staticmethod
    @checked
    def annotators(votes: Comparisons, first: Any, second: Any) -> Comparisons:
        """One pair, put to every annotator, to choose the annotator.

        Parameters
        ----------
        votes : Comparisons
            Source of the names.
        first, second : names of items

        Returns
        -------
        Comparisons
            Without outcomes.

        Raises
        ------
        DataError
            When a name is unknown, or both are one.

        Examples
        --------
        >>> import raters as rt
        >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
        >>> rt.Candidates.annotators(votes, 0, 1).num_comparisons
        3
        """
        _check_kind(votes, Comparisons)
        one, other = (
            codes_given([first], votes.items, "item"),
            codes_given([second], votes.items, "item"),
        )
        if one[0] == other[0]:
            raise DataError(
                parameter="second", value=second, expected="a question needs two different items"
            )
        judges = np.arange(votes.num_annotators)
        return _questions(votes, np.repeat(one, len(judges)), np.repeat(other, len(judges)), judges)

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
            Labels so far. Without labels, for a campaign that begins, the names are `items`,
            `annotators` and `classes`.
        items, annotators : iterable, optional
            Restrict the questions to these names.
        classes : iterable, optional
            Classes, where there are no labels to take them from.
        available : mapping, optional
            From the name of an annotator to the items that they can label (None for all).
            Other annotators can label all items.
        again : bool
            Whether an annotator may be asked about an item that they have labelled.
        limit : int
            Number of questions beyond which a uniform sample of this size is returned.
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
        >>> rt.Candidates.labels(items=[7, 8, 9], annotators=["ann", "bob"],
        ...                      classes=["ham", "spam"], available={"bob": [8]}).num_rows
        4
        """
        if labels is None:
            labels = _unlabelled(items, annotators, classes)
        elif classes is not None:
            raise DataError(
                parameter="classes",
                value=classes,
                problem="is for questions before there are labels, and these labels have classes",
                expected="leave it out",
            )
        _check_kind(labels, Labels)
        whole("limit", limit)
        boolean("again", again)
        seed_number(seed)
        item = np.unique(codes_given(items, labels.items, "item"))
        annotator = np.unique(codes_given(annotators, labels.annotators, "annotator"))
        abilities = abilities_given(available, item, annotator, labels.items, labels.annotators)
        labelled = np.zeros(0, np.int64) if again else abilities.answered(labels.unpadded())
        left = abilities.total - len(labelled)
        if abilities.total == 0:
            raise nothing_left(None, available, "item")
        if left == 0:
            those = "every item" if available is None else "every item that they can judge"
            raise DataError(
                f"every annotator has labelled {those}; write again=True to ask them again",
                parameter="again",
                value=False,
                problem=f"is not given, and every annotator has labelled {those}",
                expected="give it to ask them again",
            )
        place = sample(np.random.default_rng(seed), left, limit, None)
        # Number n of the questions left is at place n + how many before it were answered.
        place = place + np.searchsorted(labelled - np.arange(len(labelled)), place, side="right")
        group, judge = abilities.of_numbers(place)
        order = np.lexsort((judge, group))
        group, judge = group[order].astype(np.int32), judge[order].astype(np.int32)
        most = int(np.bincount(group).max())
        return dataclasses.replace(
            labels, group=group, annotator=judge, label=None, count=None, most=most, even=False
        )

    @staticmethod
    def sets(
        rankings: Rankings | None = None,
        *,
        size: int | None = None,
        depth: int | None = None,
        lowest: bool | None = None,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        again: bool = False,
        limit: int = 20_000,
        seed: int = 0,
    ) -> Rankings:
        """Sets of items to rank, each put to every annotator.

        Parameters
        ----------
        rankings : Rankings, optional
            Source of the names. Without rankings, for a campaign that begins, they are `items` and
            `annotators`.
        size : int, optional
            Number of items of a set; by default the most frequent one of `rankings`, but ten at
            most.
        depth : int, optional
            Number of places to fill; by default all, or as many as `rankings` mostly fill.
        lowest : bool, optional
            Whether the worst is to be named as well, of the items that have no place; by default as
            in most of `rankings`. With a `depth` of 1, its default then, the best and the worst are
            asked for. Scores of `raters.suggest` are of the first place alone.
        items, annotators : iterable, optional
            Restrict the questions to these names.
        again : bool
            Whether an annotator may be given a set again that they have ranked.
        limit : int
            Number of questions beyond which sets are drawn at random, so many that all annotators
            together have at most this number of questions.
        seed : int
            For the sets drawn.

        Returns
        -------
        Rankings
            Without places.

        Raises
        ------
        DataError
            When a name is unknown, or nothing is left to ask.
        SettingError
            When a set cannot have so many items, or places.

        Examples
        --------
        >>> import raters as rt
        >>> rankings = rt.Rankings.from_wide(
        ...     {"who": ["ann", "bob"], "p1": ["a", "b"], "p2": ["b", "c"], "p3": ["c", "a"],
        ...      "p4": ["d", "d"]}, places=["p*"], annotator="who")
        >>> rt.Candidates.sets(rankings, size=3).num_rows
        8
        """
        if rankings is not None:
            _check_kind(rankings, Rankings)
        return sets_of(
            rankings,
            size=size,
            depth=depth,
            lowest=lowest,
            items=items,
            annotators=annotators,
            again=again,
            limit=limit,
            seed=seed,
        )


def _combinations[Data: Judgements](
    data: Data,
    *,
    again: bool | None = None,
    limit: int = 1_000_000,
    seed: int = 0,
    **names: Iterable[Any] | None,
) -> Data:
    """Every combination of names where a question has one of each axis, and otherwise every
    question that somebody was asked, put to every judge; without those that each has answered."""
    again = type(data).again if again is None else again
    boolean("again", again)
    whole("limit", limit)
    seed_number(seed)
    real = data.unpadded()
    asked = dataclasses.replace(real, **{real.answer: None, "count": None})
    judge = data.code_columns(data.judge)[0]
    bodies = _bodies(asked, judge)
    size, num_judges = len(next(iter(bodies.values()), [0])), len(data.judges)
    index = np.repeat(np.arange(size), num_judges)
    columns = {name: column[index] for name, column in bodies.items()}
    columns[judge] = np.tile(np.arange(num_judges, dtype=np.int32), size)
    pool: Data = dataclasses.replace(asked, **columns)
    keep = np.ones(pool.num_rows, bool) if again else pool.without(asked)
    for field, some in names.items():
        keep &= _about(pool, field, some, ("again", "limit", "seed"))
    rows = np.flatnonzero(keep)
    return _sampled(pool, rows, limit, seed, again)


def _sampled[Data: Judgements](
    pool: Data, rows: Int[np.ndarray, " question"], limit: int, seed: int, again: bool
) -> Data:
    """So many of the rows at most; `DataError` when there are none."""
    if not len(rows):
        why = "there is none" if again else "everybody has answered every one"
        raise DataError(
            parameter="again",
            value=again,
            problem=f"leaves no question about these names, as {why}",
            expected="ask about other names" if again else "ask again, or about other names",
        )
    if len(rows) > limit:
        rows = np.sort(np.random.default_rng(seed).choice(rows, limit, replace=False))
    return pool.rows(rows)


def _about(
    pool: Judgements, field: str, names: Iterable[Any] | None, others: tuple[str, ...]
) -> Bool[np.ndarray, " question"]:
    """Mask of the questions about the given names alone; `others` are the options there are."""
    fields = {own: axis for axis, own in pool.names.items() if axis in pool.question_axes()}
    if field not in fields:
        raise SettingError(
            parameter=field,
            problem="is no option of these questions",
            expected=f"choose among {', '.join(dict.fromkeys((*others, *fields)))}",
        )
    keep = np.ones(pool.num_rows, bool)
    if names is None:
        return keep
    axis = fields[field]
    wanted = codes_given(names, tuple(pool.coords[axis]), axis)
    arrays = pool.arrays()
    columns = [name for name in pool.code_columns(axis) if arrays[name][0] == pool.row]
    for codes in [getattr(pool, name) for name in columns] or [pool.codes(axis)]:
        there = np.isin(codes, wanted) | (np.asarray(codes) < 0)
        keep &= there if there.ndim == 1 else there.all(1)
    return keep


def _bodies(asked: Judgements, judge: str) -> dict[str, Num[np.ndarray, "body ..."]]:
    """Columns of what can be asked about, without the column `judge`."""
    columns = {
        name: np.asarray(getattr(asked, name))
        for name, axes in asked.arrays().items()
        if axes[0] == asked.row and getattr(asked, name) is not None
    }
    columns = {name: column for name, column in columns.items() if name not in (judge, "count")}
    # Rows of a container of groups ascend by them.
    ordered = sorted(columns, key=lambda name: asked.axis_of(name) != asked.unit)
    columns = {name: columns[name] for name in ordered}
    axes = {name: asked.axis_of(name) for name in columns}
    # One of each axis: all combinations. Numbers, and several of an axis, come as they were asked.
    if len({axis for axis in axes.values() if axis}) == len(columns) and all(
        column.ndim == 1 for column in columns.values()
    ):
        sizes = [
            asked.num_units if axis == asked.unit else len(asked.coords[str(axis)])
            for axis in axes.values()
        ]
        grid = np.indices(sizes)
        every = zip(columns, grid, strict=True)
        return {name: codes.ravel().astype(np.int32) for name, codes in every}
    rows = np.sort(np.unique(asked.about(), return_index=True)[1])
    return {name: column[rows] for name, column in columns.items()}


def _questions(
    votes: Comparisons,
    first: Int[np.ndarray, " question"],
    second: Int[np.ndarray, " question"],
    annotator: Int[np.ndarray, " question"],
) -> Comparisons:
    """Comparisons without outcomes, with the names of `votes`."""
    first, second, annotator = (
        np.asarray(column, np.int32) for column in (first, second, annotator)
    )
    names = votes.items, votes.annotators
    return Comparisons(first, second, annotator, None, None, *names, votes.ordered, tied=votes.tied)


def _unlabelled(
    items: Iterable[Any] | None, annotators: Iterable[Any] | None, classes: Iterable[Any] | None
) -> Labels:
    """Labels without a row."""
    item, annotator, class_names = (
        names_given(names, role, "Candidates.labels")
        for names, role in ((items, "item"), (annotators, "annotator"), (classes, "class"))
    )
    if len(class_names) < 2:
        raise DataError(
            parameter="classes",
            value=list(class_names),
            expected="a label is a choice between two classes or more",
        )
    none, unit = np.zeros(0, np.int32), np.arange(len(item), dtype=np.int32)
    return Labels(
        none, none, None, None, unit, None, None, None, None, None, item, annotator, class_names
    )


def _check_kind(data: Any, container: type) -> None:
    """Raise `DataError` unless the data are of the kind of this container."""
    if kind_of(data).data is not container:
        check_askable(data, "data")
        raise DataError(
            parameter="data",
            value=data,
            problem=f"is {type(data).__name__}, and these candidates are made from"
            f" {container.__name__}",
            expected="use those of any kind",
            instead="rt.Candidates.of(data)",
        )

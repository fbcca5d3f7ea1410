"""Questions that could be asked: of all pairs or items, some, or those annotators can judge."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from typing import Any, Literal, NoReturn

import numpy as np
from jaxtyping import Bool, Int, Num

from raters.acquisition.questions.numbered import Abilities, Available, sample, shape_of, subsets
from raters.acquisition.questions.pool import check_askable, codes_of, listed
from raters.errors import refuse, refuse_data
from raters.errors.validation import boolean, checked, seed_number, whole
from raters.judgements.base import Judgements
from raters.judgements.comparisons import Comparisons
from raters.judgements.labels import Labels
from raters.judgements.names import encode_names
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
            rankings; for other kinds ``again`` (whether a question that was answered may be asked
            again), ``limit`` and ``seed``. Of any kind also the names that questions are restricted
            to, by the field of their axis, such as ``items=["tea", "water"]``.

        Examples
        --------
        >>> import raters as rt
        >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
        >>> rt.Candidates.of(votes).num_rows
        18
        """
        limit, seed = options.get("limit", 1_000_000), options.get("seed", 0)
        whole("limit", limit)
        seed_number(seed)
        questions = kind_of(data).questions or _combinations
        known = inspect.signature(questions).parameters
        if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in known.values()):
            return questions(data, **options)
        pool = questions(data, **{name: options[name] for name in options if name in known})
        keep = np.ones(pool.num_rows, bool)
        for name in options.keys() - known.keys() - {"limit", "seed"}:
            keep &= _about(pool, name, options[name])
        if not keep.any():
            _refuse_all("again")
        rows = np.flatnonzero(keep)
        if len(rows) > limit:
            rows = np.sort(np.random.default_rng(seed).choice(rows, limit, replace=False))
        return pool if len(rows) == pool.num_rows else pool.rows(rows)

    @staticmethod
    @checked
    def pairs(
        votes: Comparisons | None = None,
        *,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        mask: Callable[[Any, Any], Any] | None = None,
        available: Available | None = None,
        ties: Literal["keep"] | None = None,
        limit: int = 1_000_000,
        seed: int = 0,
    ) -> Comparisons:
        """Every pair of items, put to every annotator.

        Where the order of presentation counts (``votes.ordered``), each pair comes both ways round,
        as two questions. Where votes have strata, it comes in each of them.

        Parameters
        ----------
        votes : Comparisons, optional
            Source of the names. Without votes, for a campaign that begins, they are `items` and
            `annotators`, which otherwise restrict the questions.
        mask : callable, optional
            Says which pairs may be asked about: from two arrays of codes (into the ``items`` of the
            result), up to 65,536 at a time, to a boolean array.
        available : mapping, optional
            From the name of an annotator to the items that they can judge (None for all). A pair is
            put to annotators who can judge both items. Other annotators can judge all items.
        ties : {"keep"}, optional
            Whether a tie is an answer of its own; by default as `votes` have it.
        limit : int
            Number of questions beyond which a uniform sample of this size is returned; of more than
            33 million so many are tried.
        seed : int
            For the sample.

        Examples
        --------
        Before there is any vote, neighbours only, and Bob has not seen the film "c":

        >>> import raters as rt
        >>> pool = rt.Candidates.pairs(items=["a", "b", "c", "d"], annotators=["ann", "bob"],
        ...                            mask=lambda first, second: abs(first - second) == 1,
        ...                            available={"bob": ["a", "b", "d"]})
        >>> [(pool.items[i], pool.items[j], pool.annotators[k])
        ...  for i, j, k in zip(pool.first, pool.second, pool.annotator)]
        [('a', 'b', 'ann'), ('b', 'c', 'ann'), ('c', 'd', 'ann'), ('a', 'b', 'bob')]
        """
        if votes is None:
            names = new_names(items, "item"), new_names(annotators, "annotator")
            votes = Comparisons(*(np.zeros(0, np.int32),) * 3, None, None, *names)
        if ties is not None:
            votes = votes.with_ties()
        abilities = Abilities.of(available, items, annotators, votes)
        if len(abilities.items) < 2:
            refuse_data("items", items, expected="a question needs two items")
        # Each pair comes in both orders, where these count, and in each stratum.
        orders = 2 if votes.ordered else 1
        ways = orders * max(1, len(votes.strata))

        def keep(number: Int[np.ndarray, " question"]) -> Bool[np.ndarray, " question"]:
            first, second, _ = abilities.pairs_of_numbers(number // ways)
            assert mask is not None
            allowed = np.asarray(mask(first, second))
            if allowed.shape != first.shape or allowed.dtype != bool:
                problem = f"gave {allowed.dtype} of shape {allowed.shape} for {len(first)} pairs"
                refuse_data("mask", problem=problem, expected="give True or False for each")
            return allowed

        rng, total = np.random.default_rng(seed), ways * int(abilities.num_pairs.sum())
        number = sample(rng, total, limit, None if mask is None else keep)
        if not len(number):
            _refuse_all("available" if mask is None else "mask")
        first, second, by = abilities.pairs_of_numbers(number // ways)
        turned, stratum = number % orders == 1, number % ways // orders
        sides = np.where(turned, second, first), np.where(turned, first, second)
        first, second, by = (column.astype(np.int32) for column in (*sides, by))
        names = votes.items, votes.annotators
        asked = Comparisons(first, second, by, None, None, *names, votes.ordered, tied=votes.tied)
        if not votes.strata:
            return asked
        return dataclasses.replace(asked, stratum=stratum.astype(np.int32), strata=votes.strata)

    @staticmethod
    @checked
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
            `annotators` and `classes`; otherwise the first two restrict the questions.
        available, limit, seed : optional
            As in `pairs`.
        again : bool
            Whether an annotator may be asked about an item that they have labelled.

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
            item_names, class_names = new_names(items, "item"), new_names(classes, "class")
            names = item_names, new_names(annotators, "annotator"), class_names
            if len(names[2]) < 2:
                refuse_data("classes", list(names[2]), expected="give two classes or more")
            none, unit = np.zeros(0, np.int32), np.arange(len(names[0]), dtype=np.int32)
            labels = Labels(none, none, None, None, unit, None, None, None, None, None, *names)
        elif classes is not None:
            refuse_data("classes", classes, "is for questions before any label", "leave it out")
        abilities = Abilities.of(available, items, annotators, labels)
        width = len(labels.annotators)
        real = labels.unpadded()
        answered = np.asarray(real.item, np.int64) * width + np.asarray(real.annotator)

        def keep(number: Int[np.ndarray, " question"]) -> Bool[np.ndarray, " question"]:
            asked, who = abilities.of_numbers(number)
            return ~np.isin(asked * width + who, answered)

        rng, total = np.random.default_rng(seed), int(abilities.size.sum())
        place = sample(rng, total, limit, None if again else keep)
        if not len(place):
            _refuse_all("again" if total else "available")
        group, judge = abilities.of_numbers(place)
        order = np.lexsort((judge, group))
        group, judge = group[order].astype(np.int32), judge[order].astype(np.int32)
        most = int(np.bincount(group).max())
        return dataclasses.replace(
            labels, group=group, annotator=judge, label=None, count=None, most=most, even=False
        )

    @staticmethod
    @checked
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
            `annotators`, which otherwise restrict the questions.
        size : int, optional
            Number of items of a set; by default the most frequent one, but ten at most.
        depth : int, optional
            Number of places to fill; by default all, or as many as `rankings` mostly fill.
        lowest : bool, optional
            Whether the worst is to be named as well, with a `depth` of 1 by default. Scores of
            `raters.suggest` are of the first place alone.
        again : bool
            Whether an annotator may be given a set again that they have ranked.
        limit : int
            Number of questions beyond which sets are drawn at random, so many that all annotators
            together have at most this number of questions.
        seed : int
            For the sets drawn.

        Examples
        --------
        >>> import raters as rt
        >>> rankings = rt.Rankings.from_wide(
        ...     {"who": ["ann", "bob"], "p1": ["a", "b"], "p2": ["b", "c"], "p3": ["c", "a"],
        ...      "p4": ["d", "d"]}, places=["p*"], annotator="who")
        >>> rt.Candidates.sets(rankings, size=3).num_rows
        8
        """
        if rankings is None:
            names = new_names(annotators, "annotator"), new_names(items, "item")
            none, nothing = np.zeros(0, np.int32), np.zeros((0, 0), np.int32)
            rankings = Rankings(none, none, None, nothing, nothing, *names)
        whole("limit", limit)
        codes = codes_of(items, rankings.items, "item")
        judges = codes_of(annotators, rankings.annotators, "annotator")
        rng = np.random.default_rng(seed)
        size, depth, lowest = shape_of(rankings, size, depth, lowest, len(codes))
        sets = subsets(len(codes), size, max(1, limit // len(judges)), rng)
        who = np.tile(judges, len(sets)).astype(np.int32)
        offered = np.repeat(codes[sets], len(judges), axis=0).astype(np.int32)
        places, worst = np.full(len(who), depth, np.int32), np.ones(len(who), np.int32)
        names = rankings.annotators, rankings.items
        more = worst if lowest else None, rankings.most_tied
        pool = Rankings(who, places, None, offered, None, *names, *more)
        if not again and rankings.num_rows:
            pool = pool.rows(pool.without(rankings.unpadded().unanswered()))
        if not pool.num_rows:
            _refuse_all("again")
        return pool


def _combinations[Data: Judgements](data: Data, *, again: bool | None = None) -> Data:
    """Every combination of names, or every question asked, for each judge who did not answer."""
    check_askable(data, "data")
    again = type(data).again if again is None else again
    boolean("again", again)
    real = data.unpadded()
    asked = dataclasses.replace(real, **{real.answer: None, "count": None})
    judge = data.code_columns(data.judge)[0]
    bodies = _bodies(asked, judge)
    size, num_judges = len(next(iter(bodies.values()), [0])), len(data.judges)
    index = np.repeat(np.arange(size), num_judges)
    columns = {name: column[index] for name, column in bodies.items()}
    columns[judge] = np.tile(np.arange(num_judges, dtype=np.int32), size)
    pool: Data = dataclasses.replace(asked, **columns)
    return pool if again else pool.rows(np.flatnonzero(pool.without(asked)))


def new_names(names: Iterable[Any] | None, role: str) -> tuple[Any, ...]:
    """Names where there are no judgements to take them from."""
    return encode_names([], listed(names, role, ordered=True), role)[1]


def _refuse_all(parameter: str) -> NoReturn:
    refuse_data(parameter, problem="leaves nothing to ask", expected="allow more, or ask again")


def _about(pool: Judgements, field: str, names: Any) -> Bool[np.ndarray, " question"]:
    """Mask of the questions about the given names alone."""
    fields = {name: axis for axis, name in pool.names.items() if axis in pool.question_axes()}
    if field not in fields:
        expected = f"choose among {', '.join(fields)}"
        refuse(field, problem="is no option of these questions", expected=expected)
    keep, axis = np.ones(pool.num_rows, bool), fields[field]
    wanted = codes_of(names, tuple(pool.coords[axis]), axis)
    columns = [name for name in pool.code_columns(axis) if name in pool.row_columns()]
    for codes in [getattr(pool, name) for name in columns] or [pool.codes(axis)]:
        there = np.isin(codes, wanted) | (np.asarray(codes) < 0)
        keep &= there.reshape(len(there), -1).all(1)
    return keep


def _bodies(asked: Judgements, judge: str) -> dict[str, Num[np.ndarray, "body ..."]]:
    """Columns of what can be asked about, without the column `judge`."""
    given = [name for name in asked.row_columns() if name not in (judge, "count")]
    given = [name for name in given if getattr(asked, name) is not None]
    # Rows of a container of groups ascend by them.
    ordered = sorted(given, key=lambda name: asked.axis_of(name) != asked.unit)
    columns = {name: np.asarray(getattr(asked, name)) for name in ordered}
    axes = [asked.axis_of(name) for name in columns]
    # One of each axis: all combinations. Numbers, and several of an axis, come as they were asked.
    distinct = {axis for axis in axes if axis}
    if len(distinct) == len(columns) and all(column.ndim == 1 for column in columns.values()):
        lengths = {axis: len(names) for axis, names in asked.coords.items()}
        sizes = [(lengths | {asked.unit: asked.num_units})[str(axis)] for axis in axes]
        every = zip(columns, np.indices(sizes), strict=True)
        return {name: codes.ravel().astype(np.int32) for name, codes in every}
    rows = np.sort(np.unique(asked.about(), return_index=True)[1])
    return {name: column[rows] for name, column in columns.items()}

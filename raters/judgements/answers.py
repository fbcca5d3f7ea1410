"""Judgements that say who gave which item which answer: right or wrong, or a level of a scale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Self

import jax
import numpy as np
from jaxtyping import Float, Int

from raters.errors import DataError, refuse_data
from raters.errors.validation import boolean
from raters.judgements import names as naming
from raters.judgements import scanned
from raters.judgements.base import Judgements
from raters.judgements.connection import judges_by_part, warn_of_parts
from raters.judgements.counts import Codes, Numbers, exact
from raters.judgements.names import Names
from raters.judgements.reading import columns as reading
from raters.judgements.reading.columns import Column, Columns, read_columns
from raters.judgements.roles import number_of, same_as, static

_OPTIONAL = ("annotator", "count")
# Levels that each need ratings of their own, and steps of a fine scale that is read as such.
MOST_LEVELS, _FINE, _STEPS = 20, 200, 100
# With so many ratings on one level only, an annotator is warned of.
_SAME = 5


class Answers(Judgements):
    """Base of the containers of answers: a judge gave a unit one of a scale."""

    _most_levels: ClassVar[int] = MOST_LEVELS
    scan: ClassVar[Any] = classmethod(scanned.scan)

    @classmethod
    def _read(
        cls, columns: Sequence[Column], known: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Answers in some columns, and further fields that they give."""
        if cls.answer_scale == "binary":
            return [right(column) for column in columns], {}
        codes, levels = _levels(columns, known["level"], cls._most_levels)
        return codes, {"levels": levels}

    @classmethod
    def _from_frame(
        cls, frame: Any, roles: Mapping[str, Any], known: Mapping[str, Any], aggregate: bool
    ) -> Self:
        """Read a table with one row for each answer."""
        boolean("aggregate", aggregate)
        required = {role: name for role, name in roles.items() if role not in _OPTIONAL}
        optional = {role: name for role, name in roles.items() if role in _OPTIONAL}
        columns = read_columns(frame, required, **optional)
        (answer,), more = cls._read([columns[cls.answer]], known)
        count = columns.counts()
        if count is not None and cls.answer_scale == "binary":
            answer = exact(answer * count)
        more |= {cls.answer: answer, "count": count}
        data = cls(**_coded(cls, columns, known), **more)
        return data.aggregate() if aggregate else data._slim()

    @classmethod
    def _from_wide(
        cls, frame: Any, role: str, name: str, columns: Any, known: Mapping[str, Any]
    ) -> Self:
        """Read a table with a row for each name of a role, and a column for each of the other."""
        reading.column_name(role, name)
        there = {one: place for place, one in enumerate(reading.column_names(frame))}
        listed = list(there) if columns is None else reading.matching(frame, columns, "columns")
        others = sorted({*listed} - {name}, key=lambda one: there.get(one, -1))
        read = read_columns(frame, {role: name}, several={"columns": others}, empty=("columns",))
        cells, fields = read.lists["columns"], _coded(cls, read, known)
        if not any(column.values for column in cells):
            expected = f"each must hold the answers of one, a row for each {role}"
            refuse_data("columns", listed[:5], "hold no answer", expected)
        answers, more = cls._read(cells, known)
        place, row = np.nonzero(np.stack([column.code >= 0 for column in cells]))
        other = next(axis for axis in cls.axes.values() if axis not in (role, "level"))
        fields |= {role: fields[role][row], other: place.astype(np.int32)}
        fields |= {cls.names[other]: tuple(column.name for column in cells)}
        answer = np.stack(answers)[place, row]
        return cls(**fields, **more, **{cls.answer: answer, "count": None}).aggregate()

    def warn(self) -> None:
        """Warn about what these data cannot tell: names not used, items answered alike."""
        used = self.answers_by("item")
        alike = (used.sum(1) > 0) & ((used > 0).sum(1) == 1)
        how = "right by all, or by nobody" if self.answer_scale == "binary" else "alike by all"
        sentence = f"item(s) were answered {how}: the prior alone bounds their difficulty"
        naming.warn_of_each(self._unused() | {sentence: (self.coords["item"], alike)})

    def _unused(self) -> dict[str, tuple[Any, ...]]:
        """Names without a judgement, by a sentence."""
        sentence = "{}(s) have no judgement, and keep their prior"
        axes = [axis for column, axis in self.axes.items() if column != self.answer]
        return {
            sentence.format(axis): (self.coords[axis], self.judgements_by(axis) == 0)
            for axis in axes
        }


class OnScale(Answers):
    """Base of the containers whose answers are levels of one scale, the lowest first."""

    levels: tuple[Any, ...]

    row = "row"
    answer_scale = "ordinal"

    @property
    def coords(self) -> dict[str, Sequence[Any]]:
        """Names along each axis; a step from a level to the next has the name of the latter."""
        return super().coords | {"step": self.levels[1:]}

    num_levels = number_of("levels", "Number of levels of the scale, met in the answers or not.")

    def scores(self) -> Float[np.ndarray, " level"]:
        """Number of each level: itself where all are numbers, otherwise its place from 1."""
        try:
            return np.array([float(level) for level in self.levels])
        except ValueError:
            return np.arange(1.0, self.num_levels + 1)

    def standard_levels(self, axis: str) -> Float[np.ndarray, " axis"]:
        """Mean levels, shrunk by one answer of the overall mean, standardised; 0 if unknown."""
        used, level = self.answers_by(axis), np.arange(self.num_levels)
        overall = float(used.sum(0) @ level / max(used.sum(), 1.0))
        mean = (used @ level + overall) / (used.sum(1) + 1)
        return (mean - overall) / max(float(np.std(mean)), 0.1)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Responses(Answers):
    """Responses of persons to items, each right or wrong.

    A person is whoever answers: a pupil, a respondent, a language model. What a person was not
    asked has no row. Build it with `from_frame` or `from_wide`; the constructor takes codes that
    are already right.

    Parameters
    ----------
    person, item : int array, shape (response,)
        Codes of who answered, and of what was asked.
    correct : float array, shape (response,), or None
        Right responses: between 0 and `count`. None when the outcomes are not known yet, as for
        `raters.simulate`.
    count : float array, shape (response,), or None
        Responses in the row: how often the person answered this item. None means one in each.
    persons, items : tuple
        The names, in code order.

    Examples
    --------
    >>> import raters as rt
    >>> responses = rt.Responses.from_frame(
    ...     {"who": ["ann", "ann", "bob"], "question": [1, 2, 1], "right": [1, 0, 1]},
    ...     person="who", item="question", correct="right")
    >>> responses.num_persons, responses.num_items, responses.num_responses
    (2, 2, 3)
    """

    person: Any
    item: Any
    correct: Any
    count: Any
    persons: tuple[Any, ...] = static()
    items: tuple[Any, ...] = static()

    axes = {"person": "person", "item": "item"}
    names = {"person": "persons", "item": "items"}
    answer = "correct"
    row = "response"
    judge = "person"
    answer_scale = "binary"
    success = ("p_correct", 1.0)
    table_words = {1.0: 1, 0.0: 0}

    # ---------------------------------------------------------------- building

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        person: str,
        item: str,
        correct: str,
        count: str | None = None,
        persons: Iterable[Any] | None = None,
        items: Iterable[Any] | None = None,
        aggregate: bool = True,
    ) -> Responses:
        """Read responses from a table with one row for each.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
        person, item : str
            Columns that name who answered, and what was asked.
        correct : str
            Column with 1 or True for a right response, and 0 or False for a wrong one.
        count : str, optional
            Column with the number of equal responses that a row stands for.
        persons, items : iterable, optional
            All names in the order wanted, also of those that the table does not mention.
        aggregate : bool
            Put equal (person, item) rows together into one row with a count.

        Raises
        ------
        DataError
            When a column is missing, empty or has missing values; a response is neither right nor
            wrong; a count is not a whole number.

        Notes
        -----
        Names are whole numbers when all names in a role are, and text otherwise; spaces and case
        tell names apart.

        Examples
        --------
        >>> import raters as rt
        >>> responses = rt.Responses.from_frame(
        ...     {"who": ["ann", "bob"], "question": ["q1", "q1"], "right": [True, False]},
        ...     person="who", item="question", correct="right")
        >>> responses.correct.tolist()
        [1.0, 0.0]
        """
        roles = {"person": person, "item": item, "correct": correct, "count": count}
        return cls._from_frame(frame, roles, {"person": persons, "item": items}, aggregate)

    @classmethod
    def from_wide(
        cls,
        frame: Any,
        *,
        person: str,
        columns: Sequence[str] | None = None,
        persons: Iterable[Any] | None = None,
    ) -> Responses:
        """Read responses from a table with one row for each person and one column for each item.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
        person : str
            Column that names who answered, such as the models of a benchmark.
        columns : sequence of str, optional
            Columns of the items, or patterns such as ``item*``; in Python all columns but that of
            the persons unless given. They hold 1 or True for a right response, 0 or False for a
            wrong one, and are empty where the person was not asked.
        persons : iterable, optional
            All names in the order wanted.

        Returns
        -------
        Responses
            The items are named by their columns, in the order of the table.

        Raises
        ------
        DataError
            When a column is missing, a cell holds anything else, or all cells are empty.

        Examples
        --------
        >>> import raters as rt
        >>> responses = rt.Responses.from_wide(
        ...     {"model": ["small", "large"], "q1": [0, 1], "q2": [1, None]}, person="model")
        >>> responses.num_responses, responses.items
        (3, ('q1', 'q2'))
        """
        return cls._from_wide(frame, "person", person, columns, {"person": persons})

    # ---------------------------------------------------------------- facts

    num_persons = number_of("persons", "Number of persons, with responses or without.")
    num_responses = same_as("num_judgements", "Number of responses, counts included.")

    # ---------------------------------------------------------------- questions

    def answer_words(self, row: int) -> dict[str, float]:
        """Words for the outcomes of one question."""
        self._place(row)
        return {"0": 0.0, "false": 0.0, "wrong": 0.0, "1": 1.0, "true": 1.0, "right": 1.0}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GradedResponses(OnScale):
    """Responses of persons to items on one ordered scale, such as a questionnaire's "no",
    "perhaps", "yes", or marks from 0 to 5.

    Responses that are right or wrong are `Responses`. Build it with `from_frame` or `from_wide`;
    the constructor takes codes that are already right.

    Parameters
    ----------
    person, item : int array, shape (row,)
        Codes of who answered, and of what was asked.
    response : int array, shape (row,), or None
        Level of each row, 0 for the lowest. None when the outcomes are not known yet, as for
        `raters.simulate`.
    count : float array, shape (row,), or None
        Number of equal responses that a row stands for. None means one in each.
    persons, items : tuple
        The names, in code order.
    levels : tuple
        The levels, the lowest first.

    Examples
    --------
    >>> import raters as rt
    >>> responses = rt.GradedResponses.from_wide(
    ...     {"who": ["ann", "bob"], "calm": ["no", "yes"], "kind": ["perhaps", "yes"]},
    ...     person="who", levels=["no", "perhaps", "yes"])
    >>> responses.num_persons, responses.num_items, responses.num_levels
    (2, 2, 3)
    """

    person: Any
    item: Any
    response: Any
    count: Any
    persons: tuple[Any, ...] = static()
    items: tuple[Any, ...] = static()
    levels: tuple[Any, ...] = static()

    axes = {"person": "person", "item": "item", "response": "level"}
    names = {"person": "persons", "item": "items", "level": "levels"}
    answer = "response"
    judge = "person"

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        person: str,
        item: str,
        response: str,
        count: str | None = None,
        levels: Iterable[Any] | None = None,
        persons: Iterable[Any] | None = None,
        items: Iterable[Any] | None = None,
        aggregate: bool = True,
    ) -> GradedResponses:
        """Read graded responses from a table with one row for each.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
        person, item : str
            Columns that name who answered, and what was asked.
        response : str
            Column with the level of each response.
        count : str, optional
            Column with the number of equal responses that a row stands for.
        levels : iterable, optional
            All levels of the scale, the lowest first; needed where responses are no numbers.
            Without it, the different numbers in the column, ascending.
        persons, items : iterable, optional
            All names in the order wanted, also of those that the table does not mention.
        aggregate : bool
            Put equal (person, item, response) rows together into one row with a count.

        Raises
        ------
        DataError
            When a column is missing, empty or has missing values; a response is none of `levels`,
            or no number without them; there are fewer than 2 levels, or more than 20; a count is
            not a whole number.

        Examples
        --------
        >>> import raters as rt
        >>> responses = rt.GradedResponses.from_frame(
        ...     {"who": ["ann", "bob"], "task": ["essay", "essay"], "mark": [3, 5]},
        ...     person="who", item="task", response="mark", levels=range(6))
        >>> responses.response.tolist()
        [3, 5]
        """
        roles = {"person": person, "item": item, "response": response, "count": count}
        known = {"person": persons, "item": items, "level": levels}
        return cls._from_frame(frame, roles, known, aggregate)

    @classmethod
    def from_wide(
        cls,
        frame: Any,
        *,
        person: str,
        columns: Sequence[str] | None = None,
        levels: Iterable[Any] | None = None,
        persons: Iterable[Any] | None = None,
    ) -> GradedResponses:
        """Read graded responses from a table with one row for each person and one column for each
        item.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
        person : str
            Column that names who answered.
        columns : sequence of str, optional
            Columns of the items, or patterns such as ``item*``; in Python all columns but that of
            the persons unless given. Cells are empty where the person was not asked.
        levels : iterable, optional
            All levels of the scale, the lowest first: see `from_frame`.
        persons : iterable, optional
            All names in the order wanted.

        Returns
        -------
        GradedResponses
            The items are named by their columns, in the order of the table.

        Raises
        ------
        DataError
            When a column is missing, all cells are empty, or a response is none of `levels`, or no
            number without them.

        Examples
        --------
        >>> import raters as rt
        >>> responses = rt.GradedResponses.from_wide(
        ...     {"pupil": ["ann", "bob"], "essay": [3, 5], "oral": [4, None]}, person="pupil")
        >>> responses.num_responses, responses.levels
        (3, (3, 4, 5))
        """
        known = {"person": persons, "level": levels}
        return cls._from_wide(frame, "person", person, columns, known)

    num_persons = number_of("persons", "Number of persons, with responses or without.")
    num_responses = same_as("num_judgements", "Number of responses, counts included.")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Ratings(OnScale):
    """Ratings of items by annotators on one ordered scale, such as the scores of LLM judges.

    Build it with `from_frame` or `from_wide`; the constructor takes codes that are already right.

    Parameters
    ----------
    item, annotator : int array, shape (row,)
        Codes of what was rated, and of who rated.
    rating : int array, shape (row,), or None
        Level of each row, 0 for the lowest. None when the outcomes are not known yet, as for
        `raters.simulate`.
    count : float array, shape (row,), or None
        Number of equal ratings that a row stands for. None means one in each.
    items, annotators : tuple
        The names, in code order.
    levels : tuple
        The levels, the lowest first.

    Examples
    --------
    >>> import raters as rt
    >>> ratings = rt.Ratings.from_frame(
    ...     {"essay": ["a", "a", "b"], "judge": ["ann", "bob", "ann"], "score": [4, 5, 3]},
    ...     item="essay", annotator="judge", rating="score")
    >>> ratings.num_items, ratings.num_annotators, ratings.levels
    (2, 2, (3, 4, 5))
    """

    item: Any
    annotator: Any
    rating: Any
    count: Any
    items: tuple[Any, ...] = static()
    annotators: tuple[Any, ...] = static()
    levels: tuple[Any, ...] = static()

    axes = {"item": "item", "annotator": "annotator", "rating": "level"}
    names = {"item": "items", "annotator": "annotators", "level": "levels"}
    answer = "rating"
    _most_levels = 201

    # ---------------------------------------------------------------- building

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        item: str,
        rating: str,
        annotator: str | None = None,
        count: str | None = None,
        levels: Iterable[Any] | None = None,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        aggregate: bool = True,
    ) -> Ratings:
        """Read ratings from a table with one row for each.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
        item, rating : str
            Columns with the item and its rating; higher is better.
        annotator : str, optional
            Column that names who rated. Without it all ratings count as one annotator's.
        count : str, optional
            Column with the number of equal ratings that a row stands for.
        levels : iterable, optional
            All levels of the scale, the lowest first; needed where ratings are no numbers. Without
            it, the different numbers in the column, ascending; where those are more than 20, as on
            a scale to 100, all of an evenly spaced scale, for `raters.models.FineScale`.
        items, annotators : iterable, optional
            All names in the order wanted, also of those that the table does not mention.
        aggregate : bool
            Put equal rows together into one row with a count.

        Raises
        ------
        DataError
            When a column is missing or has missing values; a rating is none of `levels`, or no
            number without them; there are fewer than 2 levels, or more than 201.

        Examples
        --------
        >>> import raters as rt
        >>> ratings = rt.Ratings.from_frame(
        ...     {"film": ["Alien", "Brazil"], "critic": ["ann", "ann"], "says": ["good", "poor"]},
        ...     item="film", annotator="critic", rating="says", levels=["poor", "fair", "good"])
        >>> ratings.rating.tolist()
        [2, 0]
        """
        roles = {"item": item, "rating": rating, "annotator": annotator, "count": count}
        known = {"item": items, "annotator": annotators, "level": levels}
        return cls._from_frame(frame, roles, known, aggregate)

    @classmethod
    def from_wide(
        cls,
        frame: Any,
        *,
        item: str,
        columns: Sequence[str] | None = None,
        levels: Iterable[Any] | None = None,
        items: Iterable[Any] | None = None,
    ) -> Ratings:
        """Read ratings from a table with one row for each item and one column for each annotator.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
        item : str
            Column that names what was rated.
        columns : sequence of str, optional
            Columns of the annotators, or patterns such as ``judge_*``; by default all but that of
            the items. Cells are empty where an annotator gave no rating.
        levels : iterable, optional
            All levels of the scale, the lowest first: see `from_frame`.
        items : iterable, optional
            All names in the order wanted.

        Returns
        -------
        Ratings
            The annotators are named by their columns, in the order of the table.

        Examples
        --------
        >>> import raters as rt
        >>> ratings = rt.Ratings.from_wide(
        ...     {"essay": ["a", "b"], "ann": [4, 3], "bob": [5, None]}, item="essay")
        >>> ratings.num_ratings, ratings.annotators
        (3, ('ann', 'bob'))
        """
        return cls._from_wide(frame, "item", item, columns, {"item": items, "level": levels})

    # ---------------------------------------------------------------- facts

    num_ratings = same_as("num_judgements", "Number of ratings, counts included.")

    def warn(self) -> None:
        """Warn about what these data cannot tell: names unrated, one level only, parts."""
        used = self.answers_by("annotator")
        same = (used.sum(1) >= _SAME) & ((used > 0).sum(1) == 1)
        sentence = "annotator(s) put every item on one level, which tells no item from another"
        naming.warn_of_each(self._unused() | {sentence: (self.annotators, same)})
        if self.levels == (0, 1):
            naming.warn_data(
                "all ratings are 0 or 1; where they say whether somebody was right, read them as"
                " responses of persons to items: rt.Responses.from_frame(frame, person=...,"
                " item=..., correct=...)"
            )
        parts = [part for part in judges_by_part(self) if len(part)]
        severe = "The prior alone tells how severe one part is beside another, and so where its"
        warn_of_parts(self, parts, f"{severe} items stand; add ratings across")


# ---------------------------------------------------------------- reading


def _coded(cls: Any, columns: Columns, known: Mapping[str, Any]) -> dict[str, Any]:
    """Codes and names of columns other than the answers; all rows by one without annotators."""
    fields: dict[str, Any] = {}
    for column, axis in cls.axes.items():
        if axis == "annotator":
            code, names = columns.annotators(known.get(axis), "gave one rating")
        elif column in columns and column != cls.answer:
            code, names = columns.codes(column, known.get(axis))
        else:
            continue
        fields |= {column: code, cls.names[axis]: names}
    return fields


def _levels(
    columns: Sequence[Column], known: Iterable[Any] | None, most: int
) -> tuple[list[Codes], Names]:
    """Codes of columns of ratings, −1 where they are empty, and the levels from the lowest."""
    if known is not None:
        codes, names = naming.encode_names(columns, naming.name_list(known, "levels"), "level")
    else:
        every = np.concatenate(numbers := [_ratings(column) for column in columns])
        each = np.unique(every[~np.isnan(every)])
        if is_fine := len(each) > MOST_LEVELS:
            each = _evenly_spaced(columns[0], each)
        if whole := bool((each == np.round(each)).all()):
            _warn_of_gaps(each.astype(int))
        names = tuple(int(one) if whole else naming.name_text(float(one)) for one in each)
        step = (each[-1] - each[0]) / max(len(each) - 1, 1)
        places = [
            np.rint((one - each[0]) / step) if is_fine else np.searchsorted(each, one)
            for one in numbers
        ]
        missing = [np.isnan(one) for one in numbers]
        codes = [
            np.where(none, -1, place).astype(np.int32)
            for none, place in zip(missing, places, strict=True)
        ]
    if not 2 <= len(names) <= most:
        longest = max(columns, key=lambda column: len(column.values))
        expected = f"a scale has 2 to {most} levels: name the others, or join neighbours"
        problem = f"holds {len(names)} different rating(s)"
        longest.refuse(problem, expected, "levels=[1, 2, 3, 4, 5]")
    return codes, names


def _evenly_spaced(column: Column, numbers: Numbers) -> Numbers:
    """Levels of the coarsest evenly spaced scale that these numbers are on, or nearly on."""
    lowest, highest = numbers[0], numbers[-1]
    for power in (1, 10, 100):
        places = np.round((numbers - lowest) * power)
        step = max(int(np.gcd.reduce(places.astype(np.int64))), 1)
        if np.allclose(places, (numbers - lowest) * power) and places[-1] <= step * _FINE:
            return np.round(lowest + np.arange(0, places[-1] + step, step) / power, 10)
    levels = np.rint((numbers - lowest) * _STEPS / (highest - lowest))
    if len(np.unique(levels)) <= MOST_LEVELS:
        problem = (
            f"holds {len(numbers):,} different ratings from {lowest:g} to {highest:g}, of which"
        )
        problem += " most are in a small part of the scale"
        column.refuse(problem, "leave out those far from the others", "levels=range(101)")
    naming.warn_data(
        f"{len(numbers):,} different ratings are put on the nearest of {_STEPS + 1} levels from"
        f" {lowest:g} to {highest:g}"
    )
    return np.linspace(lowest, highest, _STEPS + 1)


def _ratings(column: Column) -> Numbers:
    try:
        return reading.read_ratings(column)
    except DataError as error:
        expected = "ratings are numbers, or levels whose order is given, the lowest first"
        column.refuse(error.problem, expected, "levels=['poor', 'fair', 'good']")


def _warn_of_gaps(levels: Int[np.ndarray, " level"]) -> None:
    """Warn of levels that a scale of whole numbers seems to have, and that nothing was put on."""
    apart = np.diff(levels)
    step = int(np.gcd.reduce(apart)) if len(apart) else 0
    if len(levels) < 3 or step == 0 or (apart == step).all():
        return
    whole = range(int(levels[0]), int(levels[-1]) + 1, step)
    if len(whole) > MOST_LEVELS or len(whole) > 2 * len(levels):
        return  # such as 1, 10, 100: no level seems to be left out
    unused = [level for level in whole if level not in levels]
    by = "" if step == 1 else f", {step}"
    naming.warn_data(
        f"nothing is on the level(s) {naming.shorten(unused)} of the scale from {levels[0]} to"
        f" {levels[-1]}, so that those beside are taken for neighbours; where the scale has them,"
        f" write levels=range({whole[0]}, {whole[-1] + 1}{by})"
    )


def right(column: Column) -> Numbers:
    """A column of responses as 1 for right and 0 for wrong."""
    truth: dict[Any, float] = {Decimal(1): 1.0, Decimal(0): 0.0}
    numbers = [
        truth.get(naming.meaning(naming.name_text(value)), np.nan) for value in column.values
    ]
    values: np.ndarray = np.array([*numbers, np.nan], np.float32)[column.code]
    column.refuse_rows(
        np.isnan(values) & (column.code >= 0),
        "a response is 1 or True where it is right, and 0 or False where it is wrong;"
        " responses on a scale are rt.GradedResponses, with levels=[...], the lowest first",
        f"frame[{column.name!r}] = frame[{column.name!r}] == ...",
    )
    return values

"""Judgements as integer codes with the names, and what follows from the roles of columns."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int, Num, Shaped

from raters.errors import DataError, refuse_data
from raters.errors.validation import at_most, boolean, checked, finite, one_of, places, whole
from raters.judgements import names as naming
from raters.judgements import row_columns
from raters.judgements.counts import Codes, Mask, Numbers, Tallies, exact, ranks
from raters.judgements.display import Tabled
from raters.judgements.names import Names
from raters.judgements.reading.features import in_units_of_users, no_features, scaled_as

# Rows at a time where a pass over all of them would need arrays as large as the data.
PIECE = 1 << 18


class Judgements(Tabled):
    """Base of the containers: a frozen dataclass, registered as a pytree, whose columns declare
    their roles.

    Every field that is not `static` is an array with the rows as its first axis, or with the axes
    that `of_axes` declares. A subclass declares the class variables below, and writes `answers`
    where they are neither codes of names nor 0 and 1; taking parts, recoding by name, joining,
    storing and reading back follow from them.

    Attributes
    ----------
    axes : mapping
        From each column of codes to the axis of its names: ``{"first": "item", "second": "item",
        "annotator": "annotator"}``. A code of −1 stands for none.
    names : mapping
        From each axis to the static field that holds its names.
    answer : str
        Column of the outcomes; None in it says that they are not known yet.
    observed : str
        Name of the site that draws the outcomes; that of `answer` unless it is declared.
    row : str
        Axis of the rows.
    unit : str
        Axis that `take` goes by, which mini-batches are taken of and cross-validation leaves out:
        `row`, or the axis that groups rows.
    judge : str
        Axis of those who are audited, paid and bounded by quotas.
    known : str, optional
        Column of units with the latent class where it is known, −1 elsewhere.
    answer_scale : {"nominal", "ordinal", "binary", "choice", "places"}
        What an answer is: a name, a level of a scale with the lowest first, 0 or 1 or a choice of
        one of several things, of which a row holds the sums over its judgements, or places of
        several things. Of those there are too many to list: predictions and scores are then of
        `listed_answers`.
    again : bool
        Whether a judge who answers a question again tells something new.
    predicted : str
        Name of the column of the most probable answer in tables of questions; `observed` unless it
        is declared.
    pair : tuple of (str, str), optional
        Columns of the two things that a question compares, the one shown first in front.
    success : tuple of (str, float), optional
        Where one outcome's probability says all: what that probability is called, and the outcome.
    table_words : mapping
        Outcomes as tables write them, where that is the same for all questions.
    standardised : mapping
        Fields of features that are centred and scaled, by the parameter that they are read from.
    """

    axes: ClassVar[Mapping[str, str]]
    names: ClassVar[Mapping[str, str]]
    answer: ClassVar[str]
    observed: ClassVar[str]
    predicted: ClassVar[str]
    row: ClassVar[str]
    unit: ClassVar[str]
    judge: ClassVar[str] = "annotator"
    known: ClassVar[str | None] = None
    answer_scale: ClassVar[Literal["nominal", "ordinal", "binary", "choice", "places"]] = "nominal"
    again: ClassVar[bool] = False
    pair: ClassVar[tuple[str, str] | None] = None
    success: ClassVar[tuple[str, float] | None] = None
    table_words: ClassVar[Mapping[float, Any]] = {}
    standardised: ClassVar[Mapping[str, Sequence[str]]] = {}
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    # Number of equal judgements that each row stands for, or None for one each.
    count: Any

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        declared = cls.__dict__
        if "answer" in declared:
            cls.observed = declared.get("observed", cls.answer)
            cls.predicted = declared.get("predicted", cls.observed)
        if "row" in declared:
            cls.unit = declared.get("unit", cls.row)
        # Of its own, so that `dataclass` does not write one with all columns.
        cls.__repr__ = cls.__repr__  # type: ignore[method-assign]

    # ---------------------------------------------------------------- what can be answered

    def answers(self) -> Num[np.ndarray, " answer"]:
        """Outcomes that a question can have, in the order of tables of answers."""
        if self.answer in self.axes:
            return np.arange(len(self.coords[self.axes[self.answer]]))
        return np.array([0.0, 1.0])

    @property
    def summed(self) -> bool:
        """True if the outcome of a row is the sum over its judgements, and not that of each."""
        return self.answer_scale in ("binary", "choice")

    @property
    def listed(self) -> bool:
        """True if the answers that a question can have are few enough to be listed."""
        return self.answer_scale != "places"

    def check_listed(self) -> None:
        """Raise where the outcomes of a question cannot be listed, as orders of several things."""
        if not self.listed:
            raise DataError(
                f"{type(self).__name__} have as many answers as there are orders, too many for"
                " outcomes by answer; draw new ones with rt.simulate, or check with rt.check"
            )

    def listed_answers(self) -> Num[np.ndarray, " answer"]:
        """Answers of which predictions and scores list the probabilities, in their order."""
        return self.answers()

    def all_answered(self, answer: Any) -> Self:
        """These questions, each with the same of the `listed_answers`; also when compiled."""
        column = jnp.broadcast_to(answer, (self.num_rows,))
        return replace(self, **{self.answer: column, "count": None})

    def answer_table(
        self, table: Float[np.ndarray, "draw answer row"]
    ) -> tuple[Shaped[np.ndarray, " name"], Float[np.ndarray, "draw name row"]]:
        """Names of the answers, and a table of the `listed_answers` by name."""
        answers, axis = self.listed_answers(), self.axes.get(self.answer)
        return answers if axis is None else naming.names_array(self.coords[axis])[answers], table

    def answer_words(self, row: int) -> dict[str, float]:
        """Words for the outcomes of one question: names behind codes, or outcomes as text."""
        self._place(row)
        answers = self.answers().tolist()
        names = self.coords.get(self.axes.get(self.answer, ""), range(0))
        words = [names[int(answer)] for answer in answers] if self.answer in self.axes else answers
        return {
            naming.name_text(word): float(one) for word, one in zip(words, answers, strict=True)
        }

    def outcome_of(self, row: int, answer: Any) -> float | None:
        """Outcome that an answer in words stands for."""
        logical = isinstance(answer, (bool, np.bool_)) and self.answer not in self.axes
        if logical or not isinstance(answer, (str, int, float, np.number, np.bool_)):
            return None
        text, words = naming.name_text(answer), self.answer_words(row)
        for spelled in (text, text.strip()):
            if spelled in words:
                return words[spelled]
        alike = {
            word: value
            for word, value in words.items()
            if naming.loosely(word) == naming.loosely(text)
        }
        if len(set(alike.values())) > 1:
            refuse_data("answer", answer, f"may be each of {list(alike)}", "write one of these")
        return next(iter(alike.values()), None)

    def words_of(self, row: int, outcome: float) -> str:
        """The last of the words for an outcome: a name, where there is one."""
        finite("outcome", outcome, 1.0)
        words = [word for word, value in self.answer_words(row).items() if value == outcome]
        if not words:
            expected = f"it must be one of {sorted(set(self.answer_words(row).values()))}"
            refuse_data("outcome", outcome, f"is no outcome of question {row}", expected)
        return words[-1]

    def listed_word(self, row: int, answer: float) -> str:
        """Word for one of the `listed_answers` of a question."""
        return self.words_of(row, answer)

    def single_outcomes(self) -> tuple[Codes, Numbers, Numbers]:
        """Row, outcome and number of the judgements of each row that are alike, by row."""
        outcome, count = np.asarray(getattr(self, self.answer)), np.asarray(self.weight, float)
        if not self.summed:
            rows = np.flatnonzero(count > 0)
            return rows, outcome[rows].astype(float), count[rows]
        halves = outcome % 1 != 0  # A tie is half a vote for either side.
        numbers = [outcome - halves / 2, count - outcome - halves / 2, halves]
        rows, place = np.nonzero(np.stack(numbers, axis=1) > 0)
        return rows, np.array([1.0, 0.0, 0.5])[place], np.stack(numbers, axis=1)[rows, place]

    def _place(self, row: int) -> int:
        whole("row", row, least=0)
        at_most("row", row, self.num_rows - 1, "as the number of the last")
        return int(row)

    def canonical(self) -> Self:
        """The same questions written in one way, such as pairs with the smaller code first."""
        return self

    def warn(self) -> None:
        """Warn about what these data cannot tell."""

    # ---------------------------------------------------------------- facts

    @classmethod
    def arrays(cls) -> dict[str, tuple[str, ...]]:
        """Array fields by name, and their axes."""
        fields = (field for field in dataclasses.fields(cls) if not field.metadata.get("static"))
        return {field.name: field.metadata.get("axes", (cls.row,)) for field in fields}

    @classmethod
    def statics(cls, *, derived: bool = False) -> tuple[str, ...]:
        """Names of the fields that are not arrays."""
        fields = (field for field in dataclasses.fields(cls) if field.metadata.get("static"))
        return tuple(field.name for field in fields if derived or not field.metadata.get("derived"))

    @classmethod
    def code_columns(cls, axis: str) -> tuple[str, ...]:
        """Columns of codes along an axis."""
        return tuple(column for column, other in cls.axes.items() if other == axis)

    @classmethod
    def axis_of(cls, column: str) -> str | None:
        """Axis of the names behind a column of codes."""
        return cls.axes.get(column)

    @classmethod
    def row_columns(cls) -> list[str]:
        """Columns with an entry for each row."""
        return [name for name, axes in cls.arrays().items() if axes[0] == cls.row]

    @classmethod
    def _of_judges(cls, column: str) -> bool:
        """True for an array with an entry for each judge, such as a code of their family."""
        return cls.arrays()[column][0] == cls.judge

    def __repr__(self) -> str:
        judge = getattr(self, self.code_columns(self.judge)[0])
        traced = isinstance(judge, jax.core.Tracer)
        if traced or not isinstance(judge, (np.ndarray, jax.Array)) or judge.ndim != 1:
            return f"{type(self).__name__}(...)"  # a tree of something else, or traced
        number = self.num_judgements if self.has_answers else self.num_rows
        sizes = [naming.counted(number, "judgement" if self.has_answers else "question")]
        if number != self.num_rows:
            sizes[0] += f" in {naming.counted(self.num_rows, 'row')}"
        fields = {field: axis for axis, field in reversed(list(self.names.items()))}
        for field, axis in reversed(fields.items()):
            size = self.num_units if axis == self.unit else len(getattr(self, field))
            sizes += [naming.counted(size, axis.replace("_", " "))] if size else []
        return f"{type(self).__name__}({', '.join(sizes)})"

    def _head(self) -> pd.DataFrame:
        return self.rows(slice(0, 8)).to_frame().head(8)

    @property
    def has_answers(self) -> bool:
        """True if the outcomes are there."""
        return getattr(self, self.answer) is not None

    @property
    def answer_dtype(self) -> Any:
        """Type of the outcomes: int32 for whole numbers, float32 where sums may be halves."""
        whole = np.asarray(self.answers()).dtype.kind in "biu" and not self.summed
        return np.int32 if whole else np.float32

    @property
    def num_rows(self) -> int:
        """Number of rows; see `num_judgements` for the judgements that they stand for."""
        return len(getattr(self, self.code_columns(self.judge)[0]))

    @property
    def num_units(self) -> int:
        """Number of units."""
        return self.num_rows

    @property
    def num_items(self) -> int:
        """Number of items, judged or not."""
        return len(self.coords["item"])

    @property
    def num_annotators(self) -> int:
        """Number of annotators, with judgements or without."""
        return len(self.coords["annotator"])

    @property
    def weight(self) -> Any:
        """`count`, or ones, shape (row,)."""
        return jnp.ones(self.num_rows) if self.count is None else self.count

    @property
    def num_known(self) -> int:
        """Number of units whose latent class is known."""
        known = None if self.known is None else getattr(self, self.known)
        return 0 if known is None else int((np.asarray(known) >= 0).sum())

    @property
    def num_judgements(self) -> int:
        """Number of judgements, counts included."""
        if self.count is None:
            return self.num_rows
        total = float(np.asarray(self.count).sum(dtype=np.float64))
        return int(total) if total < 2**53 else sum(map(int, np.asarray(self.count).tolist()))

    @property
    def judges(self) -> tuple[Any, ...]:
        """Names of those who are audited."""
        return tuple(self.coords[self.judge])

    @property
    def coords(self) -> dict[str, Sequence[Any]]:
        """Names along each axis."""
        coords: dict[str, Sequence[Any]] = {
            axis: getattr(self, field) for axis, field in self.names.items()
        }
        return coords if self.row in coords else coords | {self.row: range(self.num_rows)}

    def row_axes(self) -> tuple[str, ...]:
        """Axes along which each row has one code, which log-likelihoods of rows are summed to."""
        arrays, axes = self.arrays(), self.axes.values()
        return tuple(a for a in axes if [len(arrays[c]) for c in self.code_columns(a)] == [1])

    def codes(self, axis: str) -> Any:
        """Codes of each row along an axis."""
        if axis == self.row:
            return np.arange(self.num_rows)
        one_of("axis", axis, self.axes.values())
        column = self.code_columns(axis)[0]
        if not self._of_judges(column):
            return getattr(self, column)
        each = getattr(self, column)
        judge = self.codes(self.judge)
        return np.full(np.shape(judge), -1, np.int32) if each is None else each[judge]

    def _code_arrays(self, axis: str) -> list[Int[np.ndarray, "row ..."]]:
        """Codes of the rows along an axis, by column."""
        columns = self.code_columns(axis)
        if len(columns) < 2:
            return [np.asarray(self.codes(axis))]
        return [np.asarray(getattr(self, column)) for column in columns]

    def question_names(self) -> dict[str, Shaped[np.ndarray, " row"]]:
        """Give the names and the numbers that each row asks about, and the judge who is asked."""
        columns = {}
        for column in self.row_columns():
            axis = self.axis_of(column)
            if axis is None or column == self.answer or getattr(self, column) is None:
                continue
            names, of_unit = naming.names_array(self.coords[axis]), axis == self.unit
            codes = np.asarray(self.codes(axis) if of_unit else getattr(self, column))
            named = names[codes]
            if codes.ndim > 1:
                sets = [", ".join(map(str, names[row[row >= 0]])) for row in codes]
                named = np.array(sets, object)
            columns["by" if axis == self.judge else axis if of_unit else column] = named
        return columns | {name: _plain(getattr(self, name)) for name in self.plain_columns()}

    def plain_columns(self) -> tuple[str, ...]:
        """Columns of one number a row that are a part of the question, such as a place."""
        return tuple(
            name
            for name, axes in self.arrays().items()
            if axes == (self.row,)
            and name not in (self.answer, "count")
            and self.axis_of(name) is None
            and np.ndim(getattr(self, name)) == 1
        )

    # ---------------------------------------------------------------- columns

    def __post_init__(self) -> None:
        """Make arrays of columns that are given as lists; `check` sees those of several lengths."""
        for name in self.arrays():
            if isinstance(column := getattr(self, name), (list, tuple)):
                with contextlib.suppress(ValueError):
                    array = np.asarray(column, None if column else np.int32)
                    object.__setattr__(self, name, array)

    # ---------------------------------------------------------------- rows of count 0

    def padded(self, rows: int) -> Self:
        """The same judgements in so many rows: copies of the last one are added, with count 0."""
        present = self.num_rows
        whole("rows", rows, least=present)
        columns = self._empty_rows(rows)
        if present:
            columns = self._at_rows(np.minimum(np.arange(rows), present - 1))
        real = np.arange(rows) < present
        count, answers = columns["count"], columns[self.answer]
        columns["count"] = exact(np.where(real, 1.0 if count is None else count, 0.0))
        if answers is not None and self.summed:
            columns[self.answer] = exact((real * answers.T).T)
        return replace(self, **columns)

    def first_unit(self) -> Self:
        """The first unit, to read a program on; without any, one of count 0."""
        return (self if self.num_units else self.padded(1)).take(slice(0, 1))

    def per_row(self, times: Any) -> Any:
        """Times of the rows, from what `raters.check` takes."""
        return times

    def _each(self) -> Self:
        """A row with a count as so many rows."""
        counts = None if self.count is None else np.asarray(self.count).astype(int)
        return self if counts is None else self.rows(np.repeat(np.arange(self.num_rows), counts))

    def _empty_rows(self, rows: int) -> dict[str, Any]:
        """Rows of code 0 where there is none to copy."""
        return {
            name: None if one is None else np.zeros_like(one, shape=(rows, *one.shape[1:]))
            for name, one in self._at_rows(slice(0)).items()
        }

    def unpadded(self) -> Self:
        """The judgements without rows of count 0."""
        if self.count is None or (np.asarray(self.count) > 0).all():
            return self
        return jax.tree.map(np.asarray, self).rows(np.asarray(self.count) > 0)._slim()

    def _slim(self) -> Self:
        """Without the counts when each is 1, and sums are whole: single outcomes cost less."""
        answer = getattr(self, self.answer) if self.summed else None
        if self.count is None or (answer is not None and np.any(np.asarray(answer) % 1)):
            return self
        return replace(self, count=None) if np.all(np.asarray(self.count) == 1) else self

    def aggregate(self) -> Self:
        """Equal rows as one row with a count, sorted; the likelihood changes by a constant."""
        real = self.unpadded().canonical()
        if real.num_rows == 0:
            return real
        columns, answer = real._question(), getattr(real, self.answer)
        if answer is not None and not self.summed:
            columns.append(np.asarray(answer))
        _, first, place = np.unique(ranks(columns), return_index=True, return_inverse=True)
        sums = {"count": np.asarray(real.weight)}
        if answer is not None and self.summed:
            sums[self.answer] = np.asarray(answer)
        sums = {
            name: exact(np.apply_along_axis(lambda one: np.bincount(place, one), 0, column))
            for name, column in sums.items()
        }
        return replace(real.rows(first), **sums)._slim()

    # ---------------------------------------------------------------- questions

    def questions(self) -> Self:
        """Each question once, without outcomes and counts, in order of first appearance."""
        asked = replace(self.unanswered(), count=None)
        _, first = np.unique(asked.keys(), return_index=True)
        return asked if len(first) == asked.num_rows else asked.rows(np.sort(first))

    @checked
    def keys(self, other: Self | None = None) -> Codes:
        """Number of each row that equal questions share, and no others."""
        parts = [self] if other is None else self._alike(other)
        columns = zip(*(part.canonical()._question() for part in parts), strict=True)
        return ranks([np.concatenate(of_parts) for of_parts in columns])

    def _question(self, without: tuple[str, ...] = ()) -> list[Num[np.ndarray, "row ..."]]:
        """Columns that tell questions apart: codes of each row but the answer, and features."""
        left_out = (self.answer, "count", *without)
        asked = [name for name in self.row_columns() if name not in left_out]
        columns = {name: np.asarray(getattr(self, name)) for name in asked}
        known = {name: column for name, column in columns.items() if column.ndim}
        # −0 is 0.
        return [column if name in self.axes else column + 0.0 for name, column in known.items()]

    @property
    def exchangeable(self) -> bool:
        """True if answers to a question may change places, as sides without an order."""
        return False

    def about(self, *, ordered: bool = False) -> Codes:
        """Number of each row that questions about the same share, whoever is asked."""
        # Further columns, such as a time, are of the answer.
        without = (*self.code_columns(self.judge), "columns")
        return ranks(self.canonical()._question(without=without))

    def tallies(self, *, ordered: bool = False) -> Tallies:
        """Counted answers by judge and by what they are about; see `about`."""
        data = self.canonical() if ordered else self
        return data._tallied(data.about(ordered=ordered))

    def _tallied(self, about: Codes) -> Tallies:
        """Counted answers by judge and the given number of each row."""
        judge = np.asarray(self.codes(self.judge), np.int64)
        outcome, count = np.asarray(getattr(self, self.answer)), np.asarray(self.weight, float)
        if not self.summed:
            return judge, about, np.searchsorted(np.sort(self.answers()), outcome), count
        answer = np.repeat([1, 0], len(judge))
        counts = np.concatenate([outcome, count - outcome])
        return np.tile(judge, 2), np.tile(about, 2), answer, counts

    @checked
    def without(self, more: Self) -> Mask:
        """Mask of the rows that ask what `more` does not."""
        these, other = np.split(self.keys(more), [self.num_rows])
        return ~np.isin(these, other)

    @checked
    def joined(self, more: Self) -> Self:
        """These judgements and further ones, in this order."""
        if more.num_rows == 0:
            return self
        both, columns = self._alike(more), dict[str, Any]()
        for name in set(self.row_columns()) - {"count"}:
            parts = [getattr(part, name) for part in both]
            if (parts[0] is None) != (parts[1] is None):
                problem = "is in one of the two alone"
                refuse_data(name, problem=problem, expected="join the same columns")
            if parts[0] is not None:
                columns[name] = np.concatenate([np.asarray(part) for part in parts])
        if self.count is not None or more.count is not None:
            weights = [np.asarray(part.weight) for part in (self, more)]
            columns["count"] = exact(np.concatenate(weights))
        return replace(both[0], **columns)

    def _alike(self, other: Self) -> tuple[Self, Self]:
        """These judgements and others, with columns of one shape."""
        return self, other

    @checked
    def recoded(self, like: Self, axes: Iterable[str]) -> Self:
        """In the codes of `like` along the given axes; the other axes keep their own names."""
        changes: dict[str, Any] = {}
        axes = tuple(axes)
        for axis in axes:
            one_of("axes", axis, {*self.names, *self.axes.values()})
        for axis in filter(self.names.__contains__, axes):
            known, present = tuple(like.coords[axis]), tuple(self.coords[axis])
            for column in self.code_columns(axis):
                codes = getattr(self, column)
                if codes is not None and not self._of_judges(column):
                    role = axis.removeprefix("true_")
                    changes[column] = naming.match_names(codes, present, known, role)
            changes[self.names[axis]] = known
        if self.judge in axes:
            columns = [name for name in self.arrays() if self._of_judges(name)]
            names = [self.names[self.axes[name]] for name in columns if name in self.axes]
            changes |= {name: getattr(like, name) for name in (*columns, *names)}
        return replace(self, **changes, **row_columns.recoded(self, like))

    @classmethod
    def named_axes(cls) -> tuple[str, ...]:
        """Axes with names of their own; true classes are labels."""
        return tuple({field: axis for axis, field in cls.names.items()}.values())

    def _takes_names(self, axis: str, names: Names) -> bool:
        """True unless new names on an axis need unknown numbers, such as features of new items."""
        return True

    def with_names(self, axis: str, names: Names) -> Self:
        """The same judgements in the codes of other names, all that they use among them."""
        present, field = tuple(self.coords[axis]), self.names[axis]
        if present == tuple(names):
            return self
        lookup = {naming.name_text(name): code for code, name in enumerate(names)}
        code = np.array([lookup.get(naming.name_text(name), -1) for name in present], np.int32)
        same = [other for other, its in self.names.items() if its == field]
        # Next states are states.
        along = {**dict.fromkeys(same, code), f"next_{axis}": code} | self._unit_places(axis, code)
        changes: dict[str, Any] = {field: tuple(names)}
        for name, axes in self.arrays().items():
            if (column := getattr(self, name)) is None:
                continue
            values = np.asarray(column)
            if self.axes.get(name) in same:
                moved = naming.match_names(values, present, names, axis)
                values = moved.astype(values.dtype)
            for dim in (dim for dim, one in enumerate(axes) if one in along):
                shape = (*values.shape[:dim], len(names), *values.shape[dim + 1 :])
                none = np.full(shape, -1 if name in self.axes else 0, values.dtype)
                to = along[axes[dim]]
                none[(slice(None),) * dim + (to[to >= 0],)] = values.compress(to >= 0, dim)
                values = none
            changes[name] = values
        return replace(self, **changes)

    def _unit_places(self, axis: str, code: Codes) -> dict[str, Codes]:
        """Places of groups of rows among the names of an axis, where it is theirs."""
        return {}

    @property
    def warned_axes(self) -> set[str]:
        """Axes that `warn` is about: models without parameters of one of them do not mind it."""
        return set(self.axes.values()) - {self.judge}

    @classmethod
    def question_axes(cls) -> tuple[str, ...]:
        """Axes whose names say what is asked, and whom."""
        arrays = cls.arrays()
        asked = [name for name in cls.axes if name != cls.answer]
        axes = [cls.axes[name] for name in asked if arrays[name][0] in (cls.row, "unit")]
        return tuple(dict.fromkeys(axes))

    @checked
    def asked_of(self, like: Self) -> Self:
        """These questions in the codes of other data."""
        return self.unanswered().recoded(like, self.question_axes())

    def check(self) -> None:
        """Raise unless columns fit together: lengths, codes, counts, possible outcomes."""
        for axis, name in self.names.items():
            naming.check_names(getattr(self, name), name, axis)
        for name in self.statics():
            if isinstance(self.__dataclass_fields__[name].default, bool):
                boolean(name, getattr(self, name))
        arrays = self.arrays()
        for name in (*self.code_columns(self.judge), *arrays):
            self._check_column(name, arrays[name])
        for column, axis in self.axes.items():
            if (codes := getattr(self, column)) is not None:
                # Only sets, known classes and what is known of judges have places for none.
                none = column == self.known or np.ndim(codes) > 1 or self._of_judges(column)
                self._check_codes(column, axis, -1 if none else 0)
        count = np.asarray(self.weight, float)
        self._refuse("count", ~(np.isfinite(count) & (count >= 0)), "it must be at least 0")
        if not self.has_answers or self.answer in self.axes:
            return
        answers = np.asarray(self.answers(), float)
        outcome = np.asarray(getattr(self, self.answer), float)
        wrong, words = ~np.isin(outcome, answers), f"one of {naming.shorten(answers, 10)}"
        if self.summed:
            least, most = answers.min() * count, answers.max() * count
            by_column = outcome.T
            wrong = ~((by_column >= least) & (by_column <= most)).T
            words = "a sum over its judgements"
        self._refuse(self.answer, wrong, f"it must be {words}")

    def _check_codes(self, column: str, axis: str, least: int = 0) -> None:
        """Raise unless a column holds codes of the names along an axis."""
        values, size = np.asarray(getattr(self, column)), len(getattr(self, self.names[axis]))
        right = (values >= least) & (values < size) & (values.dtype.kind in "iu")
        self._refuse(column, ~right, f"it must be codes of the {size} {self.names[axis]}")

    def _check_column(self, name: str, axes: tuple[str, ...]) -> None:
        """Raise unless a column is an array of numbers with its axes, as long as there are rows."""
        column = getattr(self, name)
        optional = name not in self.axes or name in (self.answer, self.known)
        if column is None and (optional or self._of_judges(name)):
            return
        values = np.asarray(column if hasattr(column, "ndim") else None)
        if values.dtype.kind not in "biuf" or values.ndim != len(axes):
            expected = f"it must be an array of numbers with the axes ({', '.join(axes)})"
            such = f"{name}=np.array(...)"
            refuse_data(name, column, "is no column", expected, instead=such)
        size = {self.row: self.num_rows, self.judge: len(self.judges)}.get(axes[0], len(values))
        if len(values) != size:
            expected = f"it must have one for each {axes[0]}, and there are {size}"
            refuse_data(name, problem=f"has {len(values)} entries", expected=expected)
        if values.dtype.kind == "f" and name not in (self.answer, "count"):
            self._refuse(name, ~np.isfinite(values), "it must be a finite number")

    def _refuse(self, column: str, wrong: Bool[np.ndarray, "row ..."], expected: str) -> None:
        """Raise `DataError` for the first entry that is wrong."""
        if wrong.any():
            place = tuple(int(index) for index in np.argwhere(wrong)[0])
            values = np.asarray(self.weight if column == "count" else getattr(self, column))
            problem = f"is wrong in row {place[0]} (counted from 0; {int(wrong.sum())} in all)"
            refuse_data(column, values[place].item(), problem, expected)

    @checked
    def features_of(self, like: Self) -> Self:
        """With features in the order and on the scale of other data."""
        changes: dict[str, Any] = {}
        for parameter, fields in self.standardised.items():
            raw = in_units_of_users(self, fields)
            changes |= scaled_as(like, raw, fields, parameter, "the fit")
        return replace(self, **changes) if changes else self

    def without_features(self) -> Self:
        """Without features, for a model that does without."""
        none = [no_features(fields).items() for fields in self.standardised.values()]
        return replace(self, **dict(itertools.chain(*none))) if none else self

    # ---------------------------------------------------------------- parts

    def answers_by(self, axis: str) -> Float[np.ndarray, "name answer"]:
        """Number of each answer by name on an axis; zeros where unknown."""
        if np.ndim(getattr(self, self.answer)) > 1:
            refuse_data("axis", axis, "has rows of several outcomes", "count those of to_frame()")
        return self._answer_counts(self.codes(axis), len(self.coords[axis]))

    def _answer_counts(self, codes: Any, size: int) -> Float[np.ndarray, "name answer"]:
        """Number of each answer by another code of each row; zeros where unknown."""
        answers, codes = self.answers(), np.asarray(codes, np.int64)
        if not self.has_answers:
            return np.zeros((size, len(answers)))
        outcome, weight = getattr(self, self.answer), np.asarray(self.weight, np.float64)
        if self.summed:
            right = np.asarray(outcome, float)
            number = np.where(answers[:, None] == 1, right, weight - right)
            return np.stack([np.bincount(codes, each, size) for each in number], axis=1)
        cell = codes * len(answers) + np.asarray(outcome)
        return np.bincount(cell, weight, size * len(answers)).reshape(size, len(answers))

    def tells_judges_apart(self) -> bool:
        """True if judges can differ in how well they agree: there is more than one."""
        return int((self.judgements_by(self.judge) > 0).sum()) > 1

    def judgements_by(self, axis: str) -> Int[np.ndarray, " axis"]:
        """Number of judgements in which each name of an axis takes part.

        Parameters
        ----------
        axis : str

        Returns
        -------
        int array, shape (axis,)
            Counts included; in the order of the names.
        """
        one_of("axis", axis, self.coords)
        total = np.zeros(len(self.coords[axis]))
        for piece in self.chunks(PIECE):
            for codes in piece._code_arrays(axis):
                weight = None
                if piece.count is not None:
                    each = (-1, *[1] * (codes.ndim - 1))
                    weight = np.broadcast_to(np.reshape(piece.count, each), codes.shape)[codes >= 0]
                total += np.bincount(codes[codes >= 0], weight, len(total))
        return total.astype(np.int64)

    def rows(self, index: Any) -> Self:
        """The given rows, with all names kept.

        Parameters
        ----------
        index : slice, int array or bool array
            Rows to take, in the order of the result.
        """
        return replace(self, **self._at_rows(places("index", index, self.num_rows)))

    def _at_rows(self, index: Any) -> dict[str, Any]:
        arrays = {name: getattr(self, name) for name in self.row_columns()}
        return {name: None if column is None else column[index] for name, column in arrays.items()}

    def take(self, units: Any) -> Self:
        """The given units, with all names kept."""
        return self.rows(places("units", units, self.num_rows))

    def window(self, begin: Any, units: int, rows: int) -> Self:
        """Consecutive units, counted round, for mini-batches in a compiled function."""
        place = (begin + jnp.arange(units)) % self.num_units
        return replace(self, **self._at_rows(place))

    def window_rows(self, units: int) -> int:
        """Number of rows that hold every `window` of so many units."""
        return units

    def chunks(self, size: int) -> Iterator[Self]:
        """The units in pieces, in order."""
        whole("size", size)
        for start in range(0, max(self.num_rows, 1), size):
            yield self if self.num_rows <= size else self.take(slice(start, start + size))

    @checked
    def shuffled(self, seed: int) -> Self:
        """The questions as they are shown, where the order of what is shown is drawn by chance."""
        return self

    def unanswered(self) -> Self:
        """The questions without the answers, as `raters.simulate` takes them."""
        return replace(self, **{self.answer: None})

    @property
    def instruction(self) -> str:
        """Sentence that asks these questions."""
        if not self.listed:
            return "Put these in order, the best first."
        # Where no class is known, there may be no right answer.
        return f"Which of these {'do you choose' if self.known is None else 'is right'}?"

    def answered(self, outcomes: Any) -> Self:
        """These questions with outcomes."""
        try:
            column = np.asarray(outcomes, self.answer_dtype)
        except (TypeError, ValueError, OverflowError):
            column = np.asarray(None)
        if column.shape != (self.num_rows,):
            expected = f"it must be an array of {self.num_rows} outcomes"
            refuse_data("outcomes", outcomes, "is not one number for each question", expected)
        return replace(self, **{self.answer: column})

    def without_truth(self) -> Self:
        """Without the latent classes that are known."""
        return self if self.known is None else replace(self, **{self.known: None})

    def with_truth_of(self, like: Self, classes: Any) -> Self:
        """With the latent class of each unit of which `like` knows it; also when compiled."""
        if self.known is None or (places := getattr(like, self.known)) is None:
            return self
        known = jnp.where(jnp.asarray(places) >= 0, classes, -1).astype(jnp.int32)
        return replace(self, **{self.known: known})

    def without_judges(self, names: Iterable[Any]) -> Self:
        """The judgements of everybody else. The other axes keep their names.

        Parameters
        ----------
        names : iterable
            Names of the judges to leave out.

        Raises
        ------
        DataError
            When a name is not that of a judge, or no judgement would be left.
        """
        stays = naming.staying(self.judges, names, self.judge)
        if not self.judgements_by(self.judge)[stays].any():
            problem = f"leaves no {self.judge} who gave judgements"
            refuse_data("names", problem=problem, expected="keep at least one who gave some")
        kept = tuple(name for name, stay in zip(self.judges, stays, strict=True) if stay)
        return self.rows(stays[np.asarray(self.codes(self.judge))]).with_names(self.judge, kept)

    # ---------------------------------------------------------------- storing

    def to_frame(self) -> pd.DataFrame:
        """The judgements as a table by name, with a column of answers where there are some, and
        ``count``; rows of count 0 are left out."""
        columns = pd.DataFrame(self.question_names()).rename(columns={"by": self.judge})
        weight, answer = np.asarray(self.weight), self.answer
        if not self.has_answers or answer in self.axes:
            if self.has_answers:
                names = naming.names_array(self.coords[self.axes[answer]])
                columns[answer] = names[np.asarray(getattr(self, answer))]
            columns["count"] = weight.astype(np.int64)
            return columns[weight > 0].reset_index(drop=True)
        rows, outcome, number = self.single_outcomes()
        if self.table_words:
            words = [self.table_words[one] for one in outcome.tolist()]
        else:
            words = list(map(self.words_of, rows.tolist(), outcome.tolist()))
        columns = columns.take(rows).assign(**{self.observed: words}, count=number.astype(np.int64))
        for name in getattr(self, "column_names", ()):
            columns[name] = row_columns.written(self, name)[rows]
        return columns.reset_index(drop=True)

    def packed(self) -> dict[str, Shaped[np.ndarray, " ..."]]:
        """Copies of the arrays, which `unpack` puts together."""
        arrays = {name: getattr(self, name) for name in self.arrays()}
        return {name: np.array(array) for name, array in arrays.items() if array is not None}

    def flags(self) -> dict[str, str]:
        """Names and flags as text, which `unpack` reads."""
        values = {name: getattr(self, name) for name in self.statics()}
        return {
            name: naming.names_to_json(value) if isinstance(value, tuple) else json.dumps(value)
            for name, value in values.items()
        }

    @classmethod
    def unpack(
        cls, arrays: Mapping[str, Shaped[np.ndarray, " ..."]], flags: Mapping[str, Any]
    ) -> Self:
        """The judgements that `packed` and `flags` took apart."""
        columns: dict[str, Any] = {name: arrays.get(name) for name in cls.arrays()}
        for name in cls.statics():
            if name in flags:
                value = json.loads(flags[name])
                columns[name] = tuple(value) if isinstance(value, list) else value
        return cls(**columns)

    def groups(self) -> dict[str, dict[str, tuple[tuple[str, ...], Shaped[np.ndarray, " ..."]]]]:
        """Arrays as a result stores them."""
        axes = self.arrays()
        constant = {self._stored(name): (axes[name], one) for name, one in self.packed().items()}
        observed = {self._stored(self.answer): constant.pop(self._stored(self.answer))}
        return {"observed_data": observed, "constant_data": constant}

    @classmethod
    def _stored(cls, name: str) -> str:
        return f"{name}_code" if name in cls.axes else cls.observed if name == cls.answer else name

    @classmethod
    def from_result(cls, result: Any) -> Self:
        """The data that a result was fitted to."""
        naming.check_result(result)
        try:
            groups = [result[name].data_vars.items() for name in ("observed_data", "constant_data")]
            stored = {str(name): one.values for name, one in itertools.chain(*groups)}
            data = cls._within(stored, result.attrs)
            if not data.has_answers:
                raise ValueError("it has no outcomes")
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            problem = f"was altered: its data cannot be read ({type(error).__name__}: {error})"
            expected = "pass a result, as fitted or as read back from its file"
            line = "rt.fit(model, data, seed=0)"
            refuse_data("result", problem=problem, expected=expected, instead=line)
        data.check()
        return data

    @classmethod
    def _within(cls, stored: Mapping[str, Any], attrs: Mapping[str, Any]) -> Self:
        """The judgements of the arrays and the attributes that a result holds."""
        return cls.unpack(cls._arrays_in(stored), attrs)

    @classmethod
    def _arrays_in(cls, stored: Mapping[str, Any]) -> dict[str, Shaped[np.ndarray, " ..."]]:
        """Arrays of the fields that a result holds."""
        names = {name: cls._stored(name) for name in cls.arrays()}
        return {name: stored[key] for name, key in names.items() if key in stored}


def _plain(numbers: Any) -> Shaped[np.ndarray, " row"]:
    """Numbers to be read: whole ones without a decimal point."""
    values: np.ndarray = np.asarray(numbers)
    whole = values.dtype.kind in "biu" or bool(np.all(values == np.round(values)))
    return values.astype(np.int64) if whole else values

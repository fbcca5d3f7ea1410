"""Roles of the columns of judgements, and the facts that follow from them."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, Num, Shaped

from raters.errors import DataError, refuse_data
from raters.errors.validation import at_most, finite, one_of, whole
from raters.judgements.names import counted, loosely, name_text, names_array


def of_axes(*axes: str, default: Any = dataclasses.MISSING) -> Any:
    """Field of an array that has other axes than the rows alone."""
    return dataclasses.field(default=default, metadata={"axes": axes})


def static(default: Any = dataclasses.MISSING, *, derived: bool = False) -> Any:
    """Field that is no array: names, or a flag."""
    return dataclasses.field(default=default, metadata={"static": True, "derived": derived})


def number_of(field: str, doc: str) -> property:
    """Property with the number of names in a field."""
    return property(lambda data: len(getattr(data, field)), doc=doc)


def same_as(number: str, doc: str) -> property:
    """Property that is another number, under the name that the judgements have."""
    return property(attrgetter(number), doc=doc)


class Roles(abc.ABC):
    """Declarations of a container, and the facts that follow; see `Judgements`."""

    axes: ClassVar[Mapping[str, str]]
    names: ClassVar[Mapping[str, str]]
    answer: ClassVar[str]
    observed: ClassVar[str]
    predicted: ClassVar[str]
    row: ClassVar[str]
    unit: ClassVar[str]
    judge: ClassVar[str] = "annotator"
    known: ClassVar[str | None] = None
    summed: ClassVar[bool] = False
    together: ClassVar[bool] = False
    again: ClassVar[bool] = False
    graded: ClassVar[bool] = False
    listed: ClassVar[bool] = True
    divisible: ClassVar[bool] = True
    pair: ClassVar[tuple[str, str] | None] = None
    success: ClassVar[tuple[str, float] | None] = None
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    # Number of equal judgements that each row stands for, or None for one each.
    count: Any

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "answer" in cls.__dict__ and "observed" not in cls.__dict__:
            cls.observed = cls.answer
        if "answer" in cls.__dict__ and "predicted" not in cls.__dict__:
            cls.predicted = cls.observed
        if "row" in cls.__dict__ and "unit" not in cls.__dict__:
            cls.unit = cls.row
        # Of its own, so that `dataclass` does not write one with all columns.
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = cls.__repr__  # type: ignore[method-assign]

    # ---------------------------------------------------------------- what can be answered

    @abc.abstractmethod
    def answers(self) -> Num[np.ndarray, " answer"]:
        """Outcomes that a question can have, in the order of tables of answers."""

    @classmethod
    def check_listed(cls) -> None:
        """Raise where the outcomes of a question cannot be listed, as orders of several things."""
        if not cls.listed:
            raise DataError(
                f"{cls.__name__} have as many answers as there are orders, which are not listed one"
                " by one, so that there are no outcomes by answer; draw new ones with rt.simulate,"
                " or check the model with rt.check"
            )

    def listed_answers(self) -> Num[np.ndarray, " answer"]:
        """Answers of which predictions and scores list the probabilities, in their order."""
        return self.answers()

    def all_answered(self, answer: Any) -> Self:
        """These questions, each with the same of the `listed_answers`, also within a compiled
        function."""
        column = jnp.broadcast_to(answer, (self.num_rows,))
        return dataclasses.replace(self, **{self.answer: column, "count": None})

    def answer_table(
        self, table: Float[np.ndarray, "draw answer row"]
    ) -> tuple[Shaped[np.ndarray, " name"], Float[np.ndarray, "draw name row"]]:
        """Names of the answers, and a table of the `listed_answers` by name."""
        answers = self.listed_answers()
        if self.answer not in self.axes:
            return answers, table
        return names_array(self.coords[self.axes[self.answer]])[answers], table

    def answer_words(self, row: int) -> dict[str, float]:
        """Words for the outcomes of one question: by default the names behind the codes, or the
        outcomes as text."""
        self._place(row)
        answers = self.answers().tolist()
        if self.answer in self.axes:
            names = self.coords[self.axes[self.answer]]
            return {name_text(names[int(answer)]): float(answer) for answer in answers}
        return {name_text(answer): float(answer) for answer in answers}

    def outcome_of(self, row: int, answer: Any) -> float | None:
        """Outcome that an answer in words stands for."""
        if not isinstance(answer, (str, int, float, np.number, np.bool_)):
            return None
        if isinstance(answer, (bool, np.bool_)) and self.answer not in self.axes:
            return None
        text, words = name_text(answer), self.answer_words(row)
        for spelled in (text, text.strip()):
            if spelled in words:
                return words[spelled]
        alike = {word: value for word, value in words.items() if loosely(word) == loosely(text)}
        if len(set(alike.values())) > 1:
            refuse_data("answer", answer, f"may be each of {list(alike)}", "write one of these")
        return next(iter(alike.values()), None)

    def words_of(self, row: int, outcome: float) -> str:
        """The last of the words for an outcome: a name, where there is one."""
        finite("outcome", outcome, 1.0)
        words = [word for word, value in self.answer_words(row).items() if value == outcome]
        if not words:
            possible = sorted(set(self.answer_words(row).values()))
            problem = f"is no outcome of question {row}"
            refuse_data("outcome", outcome, problem, f"it must be one of {possible}")
        return words[-1]

    def listed_word(self, row: int, answer: float) -> str:
        """Word for one of the `listed_answers` of a question."""
        return self.words_of(row, answer)

    def single_outcomes(self, row: int) -> dict[float, int]:
        """Count the judgements of a row by their outcome."""
        row = self._place(row)
        count = 1.0 if self.count is None else float(self.count[row])
        outcome = float(getattr(self, self.answer)[row])
        if not self.summed:
            return {outcome: round(count)}
        numbers = {1.0: int(outcome), 0.5: round(2 * (outcome % 1)), 0.0: int(count - outcome)}
        return {single: number for single, number in numbers.items() if number}

    def _place(self, row: int) -> int:
        """The number of a row that there is."""
        whole("row", row, least=0)
        at_most("row", row, self.num_rows - 1, "as the number of the last")
        return int(row)

    def canonical(self) -> Self:
        """The same questions written in one way, such as unordered pairs with the smaller code in
        front."""
        return self

    def warn(self) -> None:  # noqa: B027
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
    def of_judges(cls, column: str) -> bool:
        """True for an array with an entry for each judge, such as a code of their family, −1 for
        none."""
        return cls.arrays()[column][0] == cls.judge

    def __repr__(self) -> str:
        codes = getattr(self, self.code_columns(self.judge)[0])
        axes = self.arrays()
        if codes is None or not all(_has_axes(getattr(self, name), axes[name]) for name in axes):
            return f"{type(self).__name__}(...)"  # a tree of something else, or traced
        number = self.num_units if self.together else self.num_rows
        if self.has_answers:
            number = self.num_judgements
        sizes = [counted(number, "judgement" if self.has_answers else "question")]
        if number != self.num_rows:
            sizes[0] += f" in {counted(self.num_rows, 'row')}"
        of_field: dict[str, str] = {}
        for axis, field in self.names.items():
            of_field.setdefault(field, axis)
        for field, axis in of_field.items():
            size = self.num_units if axis == self.unit else len(getattr(self, field))
            sizes += [counted(size, axis.replace("_", " "))] if size else []
        return f"{type(self).__name__}({', '.join(sizes)})"

    @property
    def has_answers(self) -> bool:
        """True if the outcomes are there."""
        return getattr(self, self.answer) is not None

    @property
    def answer_dtype(self) -> Any:
        """Type of the column of outcomes: int32 for codes and other whole numbers, unless sums of
        them may be halves, and float32 otherwise."""
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
        return tuple(axis for axis in self.axes.values() if len(self.code_columns(axis)) == 1)

    def codes(self, axis: str) -> Any:
        """Codes of each row along an axis."""
        one_of("axis", axis, self.axes.values())
        column = self.code_columns(axis)[0]
        if not self.of_judges(column):
            return getattr(self, column)
        each = getattr(self, column)
        judge = self.codes(self.judge)
        return np.full(np.shape(judge), -1, np.int32) if each is None else each[judge]

    def code_arrays(self, axis: str) -> list[Int[np.ndarray, "row ..."]]:
        """Codes of the rows along an axis, by column."""
        columns = self.code_columns(axis)
        if len(columns) == 1:
            return [np.asarray(self.codes(axis))]
        return [np.asarray(getattr(self, column)) for column in columns]

    def question_names(self) -> dict[str, Shaped[np.ndarray, " row"]]:
        """Give the names and the numbers that each row asks about, and the judge who is asked."""
        columns = {}
        for column, axis in self.axes.items():
            if column != self.answer and self.arrays()[column][0] == self.row:
                names = names_array(self.coords[axis])
                codes = np.asarray(getattr(self, column))
                named = names[codes]
                if codes.ndim > 1:
                    sets = [", ".join(map(str, names[row[row >= 0]])) for row in codes]
                    named = np.array(sets, object)
                columns["by" if axis == self.judge else column] = named
        return columns | {name: _plain(getattr(self, name)) for name in self.plain_columns()}

    def plain_columns(self) -> tuple[str, ...]:
        """Columns of one number for each row that are a part of the question, such as a place in a
        ranking."""
        return tuple(
            name
            for name, axes in self.arrays().items()
            if axes == (self.row,)
            and name not in (self.answer, "count")
            and self.axis_of(name) is None
            and np.ndim(getattr(self, name)) == 1
        )


def _plain(numbers: Any) -> Shaped[np.ndarray, " row"]:
    """Numbers to be read: whole ones without a decimal point."""
    values: np.ndarray = np.asarray(numbers)
    whole = values.dtype.kind in "biu" or bool(np.all(values == np.round(values)))
    return values.astype(np.int64) if whole else values


def _has_axes(column: Any, axes: tuple[str, ...]) -> bool:
    """True for an array of numbers with these axes, and for None."""
    if isinstance(column, jax.core.Tracer):
        return False
    return column is None or (
        isinstance(column, (np.ndarray, jax.Array)) and column.ndim == len(axes)
    )

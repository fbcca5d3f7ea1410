"""Judgements as integer codes with the names beside them; everything that follows from the roles of
their columns."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Bool, Int, Num, Shaped

from raters.errors import refuse_data
from raters.errors.validation import boolean, checked, one_of, places, whole
from raters.judgements.counts import Codes, Mask, Tallies, exact, ranks
from raters.judgements.names import (
    check_names,
    check_result,
    matched_codes,
    names_to_json,
    plural,
    shorten,
    staying,
)
from raters.judgements.roles import Roles

# Rows at a time where a pass over all of them would need arrays as large as the data.
PIECE = 1 << 18


class Judgements(Roles):
    """Base of the containers: a frozen dataclass, registered as a pytree, whose columns declare
    their roles.

    Every field that is not `static` is an array with the rows as its first axis, or with the axes
    that `of_axes` declares. A subclass declares the class variables below, and writes `answers`;
    taking parts, recoding by name, joining, storing and reading back follow from them.

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
    summed : bool
        Whether the outcome of a row with a count is the sum of its judgements', and not that of
        each.
    together : bool
        Whether the rows of a unit are answered together: each judgement chooses one of them, and
        the `count` of each row is the number of judgements of its unit.
    again : bool
        Whether a judge who answers a question again tells something new.
    graded : bool
        Whether the names of the answers are levels of a scale, the lowest first.
    predicted : str
        Name of the column of the most probable answer in tables of questions; `observed` unless it
        is declared.
    listed : bool
        Whether `answers` lists what a question can be answered. Of orders there are too many:
        predictions and scores are then of `listed_answers`.
    divisible : bool
        Whether the rows can be divided over devices.
    pair : tuple of (str, str), optional
        Columns of the two things that a question compares, the one shown first in front.
    success : tuple of (str, float), optional
        Where one outcome's probability says all: what that probability is called, and the outcome.
    """

    def __post_init__(self) -> None:
        """Make arrays of columns that are given as lists; `check` sees those of several lengths."""
        for name in self.arrays():
            if isinstance(column := getattr(self, name), (list, tuple)):
                with contextlib.suppress(ValueError):
                    array = np.asarray(column, None if column else np.int32)
                    object.__setattr__(self, name, array)

    # ---------------------------------------------------------------- rows of count 0

    def padded(self, rows: int) -> Self:
        """The same judgements in so many rows: those added are copies of the last one with a count
        of 0."""
        present = self.num_rows
        whole("rows", rows, least=present)
        columns = self._empty_rows(rows)
        if present:
            columns = self._at_rows(np.minimum(np.arange(rows), present - 1))
        real = np.arange(rows) < present
        count = columns["count"]
        columns["count"] = exact(np.where(real, 1.0 if count is None else count, 0.0))
        answers = columns[self.answer]
        if answers is not None and self.summed:
            columns[self.answer] = exact(np.where(real, answers, 0.0))
        return dataclasses.replace(self, **columns)

    def first_unit(self) -> Self:
        """The first unit, to read a program on; without any, one of count 0: plates are not empty,
        and a campaign may begin without a judgement."""
        return (self if self.num_units else self.padded(1)).take(slice(0, 1))

    def _empty_rows(self, rows: int) -> dict[str, Any]:
        """Rows of code 0 where there is none to copy."""
        columns: dict[str, Any] = {}
        for name, axes in self.arrays().items():
            if axes[0] == self.row:
                column = getattr(self, name)
                if column is not None:
                    column = np.zeros_like(column, shape=(rows, *np.shape(column)[1:]))
                columns[name] = column
        return columns

    def unpadded(self) -> Self:
        """The judgements without rows of count 0."""
        if self.count is None or (np.asarray(self.count) > 0).all():
            return self
        real: Self = jax.tree.map(np.asarray, self).rows(np.asarray(self.count) > 0)._slim()
        return real

    def _slim(self) -> Self:
        """Without the counts when each is 1."""
        if self.count is not None and bool(np.all(np.asarray(self.count) == 1)):
            return dataclasses.replace(self, count=None)
        return self

    def aggregate(self) -> Self:
        """Equal rows as one row with a count, in sorted order; the likelihood does not change but
        for a constant."""
        real = self.unpadded().canonical()
        if real.num_rows == 0:
            return real
        columns = real._question()
        if real.has_answers and not self.summed:
            columns.append(np.asarray(getattr(real, self.answer)))
        _, first, place = np.unique(ranks(columns), return_index=True, return_inverse=True)
        weights = None if real.count is None else np.asarray(real.count)
        cells = dataclasses.replace(real.rows(first), count=exact(np.bincount(place, weights)))
        if real.has_answers and self.summed:
            total = np.bincount(place, np.asarray(getattr(real, self.answer)))
            cells = dataclasses.replace(cells, **{self.answer: exact(total)})
        return cells._slim()

    # ---------------------------------------------------------------- questions

    def questions(self) -> Self:
        """Each question once, without outcomes and counts, in order of first appearance."""
        asked = dataclasses.replace(self.unanswered(), count=None)
        _, first = np.unique(asked.keys(), return_index=True)
        return asked if len(first) == asked.num_rows else asked.rows(np.sort(first))

    @checked
    def keys(self, other: Self | None = None) -> Codes:
        """Number of each row that equal questions share, and no others."""
        parts = [part.canonical() for part in ([self] if other is None else [self, other])]
        columns = [
            np.concatenate(of_parts)
            for of_parts in zip(*(part._question() for part in parts), strict=True)
        ]
        return ranks(columns)

    def _question(self, without: tuple[str, ...] = ()) -> list[Num[np.ndarray, "row ..."]]:
        """Columns that tell questions apart: codes of each row but the answer, and features of
        rows."""
        columns = []
        left_out = (self.answer, "count", *without)
        for name, axes in self.arrays().items():
            column = getattr(self, name)
            if axes[0] == self.row and name not in left_out and column is not None:
                values = np.asarray(column)
                columns.append(values if name in self.axes else values + 0.0)  # −0 is 0
        return columns

    @property
    def exchangeable(self) -> bool:
        """True if the answers to a question may change places, as the sides of a pair whose order
        of presentation is not known."""
        return False

    def same_question(self) -> Codes:
        """Number of each row that equal questions share, whoever is asked."""
        return ranks(self.canonical()._question(without=self.code_columns(self.judge)))

    def about(self) -> Codes:
        """Number of each row that questions about the same share, whoever is asked."""
        return self.same_question()

    def tallies(self) -> Tallies:
        """Counted answers by judge and subject."""
        return self._tallied(self.about())

    def question_tallies(self) -> Tallies:
        """Counted answers by judge and question, of which there may be several about the same."""
        return self.canonical()._tallied(self.same_question())

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
        columns: dict[str, Any] = {}
        for name, axes in self.arrays().items():
            parts = [getattr(part, name) for part in (self, more)]
            if axes[0] != self.row or name == "count" or (parts[0] is None and parts[1] is None):
                continue
            if parts[0] is None or parts[1] is None:
                refuse_data(
                    name, problem="is in one of the two alone", expected="join the same columns"
                )
            columns[name] = np.concatenate([np.asarray(part) for part in parts])
        if self.count is not None or more.count is not None:
            weights = [np.asarray(part.weight) for part in (self, more)]
            columns["count"] = exact(np.concatenate(weights))
        return dataclasses.replace(self, **columns)

    @checked
    def recoded(self, like: Self, axes: Iterable[str]) -> Self:
        """In the codes of `like` along the given axes; the other axes keep their own names."""
        changes: dict[str, Any] = {}
        axes = tuple(axes)
        for axis in axes:
            one_of("axes", axis, {*self.names, *self.axes.values()})
            if axis not in self.names:
                continue
            known, present = tuple(like.coords[axis]), tuple(self.coords[axis])
            for column in self.code_columns(axis):
                if self.of_judges(column):
                    continue
                if (codes := getattr(self, column)) is not None:
                    changes[column] = matched_codes(np.asarray(codes), present, known, axis)
            changes[self.names[axis]] = known
        if self.judge in axes:
            columns = [name for name in self.arrays() if self.of_judges(name)]
            names = [self.names[self.axes[name]] for name in columns if name in self.axes]
            changes |= {name: getattr(like, name) for name in (*columns, *names)}
        return dataclasses.replace(self, **changes)

    @property
    def warned_axes(self) -> set[str]:
        """Axes that `warn` is about: models without parameters of one of them do not mind it."""
        return set(self.axes.values()) - {self.judge}

    @classmethod
    def question_axes(cls) -> tuple[str, ...]:
        """Axes whose names say what is asked, and whom."""
        arrays = cls.arrays()
        axes = {
            axis: None
            for column, axis in cls.axes.items()
            if column != cls.answer and arrays[column][0] in (cls.row, "unit")
        }
        return tuple(axes)

    @checked
    def asked_of(self, like: Self) -> Self:
        """These questions in the codes of other data."""
        return self.unanswered().recoded(like, self.question_axes())

    def check(self) -> None:
        """Raise unless the columns fit together: equally long, with codes of names that there are,
        counts of at least 0, and outcomes that a question can have."""
        for axis, name in self.names.items():
            check_names(getattr(self, name), name, axis)
        for name in self.statics():
            if isinstance(self.__dataclass_fields__[name].default, bool):
                boolean(name, getattr(self, name))
        arrays = self.arrays()
        for name in (*self.code_columns(self.judge), *arrays):
            self._check_column(name, arrays[name])
        for column, axis in self.axes.items():
            if (codes := getattr(self, column)) is not None:
                # Only sets, known classes and what is known of judges have places for none.
                none = column == self.known or np.ndim(codes) > 1 or self.of_judges(column)
                values, size = np.asarray(codes), len(self.coords[axis])
                wrong = ~((values >= (-1 if none else 0)) & (values < size))
                if values.dtype.kind not in "iu":
                    wrong = np.ones_like(wrong)
                self._refuse(column, wrong, f"it must be codes of the {size} {plural(axis)}")
        count = np.asarray(self.weight, float)
        self._refuse("count", ~(np.isfinite(count) & (count >= 0)), "it must be at least 0")
        if self.has_answers and self.answer not in self.axes:
            answers = np.asarray(self.answers(), float)
            outcome = np.asarray(getattr(self, self.answer), float)
            if self.summed:
                low, high = answers.min() * count, answers.max() * count
                wrong, words = ~((outcome >= low) & (outcome <= high)), "a sum over its judgements"
            else:
                wrong, words = ~np.isin(outcome, answers), f"one of {shorten(answers, 10)}"
            self._refuse(self.answer, wrong, f"it must be {words}")

    def _check_column(self, name: str, axes: tuple[str, ...]) -> None:
        """Raise unless a column is an array of numbers with its axes, as long as there are rows."""
        column = getattr(self, name)
        optional = name not in self.axes or name in (self.answer, self.known)
        if column is None and (optional or self.of_judges(name)):
            return
        shape = f"an array of numbers with the axes ({', '.join(axes)})"
        values = np.asarray(column if hasattr(column, "ndim") else None)
        if values.dtype.kind not in "biuf" or values.ndim != len(axes):
            refuse_data(
                name, column, "is no column", f"it must be {shape}", instead=f"{name}=np.array(...)"
            )
        size = {self.row: self.num_rows, self.judge: len(self.judges)}.get(axes[0], len(values))
        if len(values) != size:
            refuse_data(
                name,
                problem=f"has {len(values)} entries",
                expected=f"it must have one for each {axes[0]}, and there are {size}",
            )
        if values.dtype.kind == "f" and name not in (self.answer, "count"):
            self._refuse(name, ~np.isfinite(values), "it must be a finite number")

    def _refuse(self, column: str, wrong: Bool[np.ndarray, "row ..."], expected: str) -> None:
        """Raise `DataError` for the first entry that is wrong."""
        if wrong.any():
            place = tuple(int(index) for index in np.argwhere(wrong)[0])
            values = np.asarray(self.weight if column == "count" else getattr(self, column))
            problem = f"is wrong in row {place[0]} (counted from 0; {int(wrong.sum())} in all)"
            refuse_data(column, values[place].item(), problem, expected)

    def features_of(self, like: Self) -> Self:
        """With features in the order and on the scale of other data."""
        return self

    def without_features(self) -> Self:
        """Without features, for a model that does without."""
        return self

    # ---------------------------------------------------------------- parts

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
            for codes in piece.code_arrays(axis):
                weight = None
                if piece.count is not None:
                    weight = np.repeat(np.asarray(piece.count), codes[0].size if len(codes) else 1)
                    weight = weight[codes.ravel() >= 0]
                total += np.bincount(codes[codes >= 0], weight, len(total))
        return total.astype(np.int64)

    def rows(self, index: Any) -> Self:
        """The given rows, with all names kept.

        Parameters
        ----------
        index : slice, int array or bool array
            Rows to take, in the order of the result.
        """
        return dataclasses.replace(self, **self._at_rows(places("index", index, self.num_rows)))

    def _at_rows(self, index: Any) -> dict[str, Any]:
        columns = [name for name, axes in self.arrays().items() if axes[0] == self.row]
        arrays = {name: getattr(self, name) for name in columns}
        return {name: None if column is None else column[index] for name, column in arrays.items()}

    def take(self, units: Any) -> Self:
        """The given units, with all names kept."""
        return self.rows(places("units", units, self.num_rows))

    def window(self, begin: Any, units: int, rows: int) -> Self:
        """Consecutive units, counted round, for mini-batches in a compiled function."""
        place = (begin + jnp.arange(units)) % self.num_units
        return dataclasses.replace(self, **self._at_rows(place))

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
        return dataclasses.replace(self, **{self.answer: None})

    @property
    def instruction(self) -> str:
        """Sentence that asks these questions."""
        if not self.listed:
            return "Put these in order, the best first."
        if self.known is not None:
            return "Which of these is right?"
        return "Which of these do you choose?"  # There may be no right answer.

    def shaped(self, outcomes: Any) -> Any:
        """Outcomes as a distribution draws them, in the shape of the column of answers; also within
        a compiled function."""
        return outcomes

    def some_outcomes(self) -> Any:
        """Outcomes that these questions can have, whichever, as `answered` takes them."""
        return np.full(self.num_rows, self.answers()[-1])

    def answered(self, outcomes: Any) -> Self:
        """These questions with outcomes."""
        try:
            column = np.asarray(outcomes, self.answer_dtype)
        except (TypeError, ValueError, OverflowError):
            column = np.asarray(None)
        if column.shape != (self.num_rows,):
            refuse_data(
                "outcomes",
                outcomes,
                "is not one number for each question",
                f"it must be an array of {self.num_rows} outcomes",
            )
        return dataclasses.replace(self, **{self.answer: column})

    def without_truth(self) -> Self:
        """Without the latent classes that are known."""
        return self if self.known is None else dataclasses.replace(self, **{self.known: None})

    def with_truth_of(self, like: Self, classes: Any) -> Self:
        """With the latent class known of the units of which `like` knows it; also within a compiled
        function."""
        if self.known is None or (places := getattr(like, self.known)) is None:
            return self
        known = jnp.where(jnp.asarray(places) >= 0, classes, -1).astype(jnp.int32)
        return dataclasses.replace(self, **{self.known: known})

    def _of_judges(self, stay: Bool[np.ndarray, " judge"]) -> Self:
        """The judgements of those who stay."""
        return self.rows(stay[np.asarray(getattr(self, self.code_columns(self.judge)[0]))])

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
        stays = staying(self.judges, names, self.judge)
        if not self.judgements_by(self.judge)[stays].any():
            refuse_data(
                "names",
                problem=f"holds all {plural(self.judge)} with judgements, so none would be left",
                expected="keep at least one who gave some",
            )
        column, code = self.code_columns(self.judge)[0], (np.cumsum(stays) - 1).astype(np.int32)
        part = self._of_judges(stays)
        kept = tuple(name for name, stay in zip(self.judges, stays, strict=True) if stay)
        changes: dict[str, Any] = {
            column: code[np.asarray(getattr(part, column))],
            self.names[self.judge]: kept,
        }
        for name in filter(self.of_judges, self.arrays()):
            if (array := getattr(self, name)) is not None:
                changes[name] = np.asarray(array)[stays]
        return dataclasses.replace(part, **changes)

    # ---------------------------------------------------------------- storing

    def to_frame(self) -> pd.DataFrame:
        """The judgements as a table by name, with a column of answers where there are some, and
        ``count``; rows of count 0 are left out."""
        columns: dict[str, Any] = {
            (self.judge if name == "by" else name): names
            for name, names in self.question_names().items()
        }
        if not self.has_answers:
            count = np.asarray(self.weight).astype(np.int64)
            return pd.DataFrame(columns | {"count": count})[count > 0].reset_index(drop=True)
        single = [
            (row, self.words_of(row, outcome), number)
            for row in np.flatnonzero(np.asarray(self.weight) > 0).tolist()
            for outcome, number in self.single_outcomes(row).items()
        ]
        table = pd.DataFrame(single, columns=["row", self.answer, "count"])
        names = pd.DataFrame(columns).take(table.pop("row")).reset_index(drop=True)
        return names.join(table)

    def _by_outcome(self, answer: str, numbers: Mapping[Any, Any]) -> pd.DataFrame:
        """Judgements by name, those of each outcome in a row of their own, with the row of the data
        as the index."""
        axes = {name: axis for name, axis in self.axes.items() if name != self.answer}
        names = pd.DataFrame(
            {
                name: pd.Index(self.coords[axes[name]]).take(np.asarray(getattr(self, name)))
                for name in sorted(axes, key=lambda name: axes[name] != self.judge)
            }
        )
        parts = [
            names[number > 0].assign(**{answer: outcome}, count=number[number > 0].astype(np.int64))
            for outcome, number in numbers.items()
        ]
        return pd.concat(parts).sort_index(kind="stable")

    def check_answered(self) -> None:
        """Raise for questions without answers."""
        if not self.has_answers:
            refuse_data(
                "data",
                problem="holds questions without answers",
                expected="simulate some",
                instead="rt.simulate(model, questions, seed=0)",
            )

    def packed(self) -> dict[str, Shaped[np.ndarray, " ..."]]:
        """Copies of the arrays, which `unpack` puts together."""
        arrays = {name: getattr(self, name) for name in self.arrays()}
        return {name: np.array(array) for name, array in arrays.items() if array is not None}

    def flags(self) -> dict[str, str]:
        """Names and flags as text, which `unpack` reads."""
        values = {name: getattr(self, name) for name in self.statics()}
        return {
            name: names_to_json(value) if isinstance(value, tuple) else json.dumps(value)
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
        constant = {}
        for name, array in self.packed().items():
            constant[self._stored(name)] = axes[name], array
        observed = constant.pop(self._stored(self.answer))
        return {"observed_data": {self._stored(self.answer): observed}, "constant_data": constant}

    @classmethod
    def _stored(cls, name: str) -> str:
        """Name of a column in a result."""
        return f"{name}_code" if name in cls.axes else cls.observed if name == cls.answer else name

    @classmethod
    def from_result(cls, result: Any) -> Self:
        """The data that a result was fitted to."""
        check_result(result)
        try:
            data = cls._within(result)
            if not data.has_answers:
                raise ValueError("it has no outcomes")
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            refuse_data(
                "result",
                problem=f"was altered: its data cannot be read ({type(error).__name__}: {error})",
                expected="pass a result, as fitted or as read back from its file",
                instead="rt.fit(model, data, seed=0)",
            )
        data.check()
        return data

    @classmethod
    def _within(cls, result: Any) -> Self:
        """The data in a result."""
        return cls.unpack(cls._arrays_in(result), result.attrs)

    @classmethod
    def _arrays_in(cls, result: Any) -> dict[str, Shaped[np.ndarray, " ..."]]:
        """Arrays of the fields that a result holds."""
        arrays = {}
        for name in cls.arrays():
            group = result["observed_data" if name == cls.answer else "constant_data"]
            if (stored := cls._stored(name)) in group:
                arrays[name] = np.asarray(group[stored].values)
        return arrays

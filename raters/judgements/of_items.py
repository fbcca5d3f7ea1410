"""Judgements that say who gave which item which answer: right or wrong, or a level of a scale."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from raters.errors.validation import boolean
from raters.judgements.base import Judgements
from raters.judgements.counts import exact
from raters.judgements.reading import answers as reading
from raters.judgements.reading.columns import Column, read_columns
from raters.judgements.scanned import Scanned


class OfItems(Scanned, Judgements):
    """Base of the containers of answers to items."""

    @classmethod
    @abc.abstractmethod
    def _read(
        cls, columns: Sequence[Column], known: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Answers in some columns, and further fields that they give."""

    @classmethod
    def _from_frame(
        cls, frame: Any, roles: Mapping[str, Any], known: Mapping[str, Any], aggregate: bool
    ) -> Self:
        """Read a table with one row for each answer."""
        boolean("aggregate", aggregate)
        optional = {role: roles[role] for role in ("annotator", "count") if role in roles}
        required = {role: name for role, name in roles.items() if role not in optional}
        columns = read_columns(frame, required, **optional)
        fields = reading.coded(cls, columns, known)
        (answer,), more = cls._read([columns[cls.answer]], known)
        count = columns.counts()
        if count is not None and cls.summed:
            answer = exact(answer * count)
        data = cls(**fields, **more, **{cls.answer: answer, "count": count})
        return data.aggregate() if aggregate else data._slim()

    @classmethod
    def _from_wide(
        cls,
        frame: Any,
        role: str,
        name: str,
        columns: Sequence[str] | None,
        known: Mapping[str, Any],
    ) -> Self:
        """Read a table with one row for each name of a role, and one column for each name of the
        other."""
        read = reading.wide(frame, role, name, columns)
        cells, fields = read.lists["columns"], reading.coded(cls, read, known)
        answers, more = cls._read(cells, known)
        place, row = np.nonzero(np.stack([column.code >= 0 for column in cells]))
        other = next(axis for axis in cls.axes.values() if axis not in (role, "level"))
        fields |= {
            role: fields[role][row],
            other: place.astype(np.int32),
            cls.names[other]: tuple(column.name for column in cells),
            cls.answer: np.stack(answers)[place, row],
            "count": None,
        }
        return cls(**fields, **more).aggregate()

    def _unused(self) -> dict[str, tuple[Any, ...]]:
        """Names without a judgement, by a sentence."""
        return {
            f"{axis}(s) have no judgement, and keep their prior": (
                self.coords[axis],
                self.judgements_by(axis) == 0,
            )
            for column, axis in self.axes.items()
            if column != self.answer
        }


class OnScale(OfItems):
    """Base of the containers whose answers are levels of one scale, the lowest first."""

    levels: tuple[Any, ...]

    row: ClassVar[str] = "row"
    graded: ClassVar[bool] = True

    @property
    def coords(self) -> dict[str, Sequence[Any]]:
        """Names along each axis; a step from a level to the next has the name of the latter."""
        return super().coords | {"step": self.levels[1:]}

    @classmethod
    def _read(
        cls, columns: Sequence[Column], known: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        codes, levels = reading.scale(columns, known["level"])
        return codes, {"levels": levels}

    @property
    def num_levels(self) -> int:
        """Number of levels of the scale, met in the answers or not."""
        return len(self.levels)

    def scores(self) -> Float[np.ndarray, " level"]:
        """Number of each level: the level itself where all are numbers, otherwise its place from
        1."""
        try:
            return np.array([float(level) for level in self.levels])
        except ValueError:
            return np.arange(1.0, self.num_levels + 1)

    def levels_by(self, axis: str) -> Float[np.ndarray, "axis level"]:
        """Number of answers on each level, of each name of an axis; zeros where the outcomes are
        not known."""
        shape = (len(self.coords[axis]), self.num_levels)
        if not self.has_answers:
            return np.zeros(shape)
        level = np.asarray(getattr(self, self.answer))
        cell = np.asarray(self.codes(axis), np.int64) * self.num_levels + level
        weight = np.asarray(self.weight, np.float64)
        return np.bincount(cell, weight, shape[0] * shape[1]).reshape(shape)

    def standard_levels(self, axis: str) -> Float[np.ndarray, " axis"]:
        """Mean level of each name of an axis, shrunk by one answer of the overall mean, and
        standardised; zeros where the outcomes are not known."""
        used, level = self.levels_by(axis), np.arange(self.num_levels)
        overall = float(used.sum(0) @ level / max(used.sum(), 1.0))
        mean = (used @ level + overall) / (used.sum(1) + 1)
        standard: np.ndarray = (mean - overall) / max(float(np.std(mean)), 0.1)
        return standard

    def to_frame(self) -> pd.DataFrame:
        """The judgements as a table, by name, with a column ``count``."""
        self.check_answered()
        table = {
            column: pd.Index(self.coords[axis]).take(np.asarray(getattr(self, column)))
            for column, axis in self.axes.items()
        }
        count = np.asarray(self.weight).astype(np.int64)
        return pd.DataFrame(table | {"count": count})[count > 0].reset_index(drop=True)

    def answers(self) -> Int[np.ndarray, " answer"]:
        """Codes of the levels."""
        return np.arange(self.num_levels)

"""Judgements that put something on a level of an ordered scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from raters.errors import DataError
from raters.judgements.base import Judgements


class OnScale(Judgements):
    """Base of the containers whose answers are levels of one scale, the lowest first."""

    levels: tuple[Any, ...]

    row: ClassVar[str] = "row"
    graded: ClassVar[bool] = True

    @property
    def coords(self) -> dict[str, Sequence[Any]]:
        """Names along each axis; a step from a level to the next has the name of the latter."""
        return super().coords | {"step": self.levels[1:]}

    @property
    def num_items(self) -> int:
        """Number of items, with answers or without."""
        return len(self.coords["item"])

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
        """Number of answers on each level, of each name of an axis.

        Parameters
        ----------
        axis : str
            Such as ``"item"``.

        Returns
        -------
        array, shape (axis, level)
            Zeros where the outcomes are not known.
        """
        shape = (len(self.coords[axis]), self.num_levels)
        if not self.has_answers:
            return np.zeros(shape)
        level = np.asarray(getattr(self, self.answer))
        cell = np.asarray(self.codes(axis), np.int64) * self.num_levels + level
        weight = np.asarray(self.weight, np.float64)
        return np.bincount(cell, weight, shape[0] * shape[1]).reshape(shape)

    def standard_levels(self, axis: str) -> Float[np.ndarray, " axis"]:
        """Mean level of each name of an axis, shrunk by one answer of the overall mean, and
        standardised.

        Parameters
        ----------
        axis : str

        Returns
        -------
        array, shape (axis,)
            Zeros where the outcomes are not known.
        """
        used, level = self.levels_by(axis), np.arange(self.num_levels)
        overall = float(used.sum(0) @ level / max(used.sum(), 1.0))
        mean = (used @ level + overall) / (used.sum(1) + 1)
        standard: np.ndarray = (mean - overall) / max(float(np.std(mean)), 0.1)
        return standard

    def to_frame(self) -> pd.DataFrame:
        """The judgements as a table, by name, with a column ``count``."""
        if not self.has_answers:
            raise DataError(
                "these are questions without answers; simulate some: rt.simulate(model, questions,"
                " seed=0)"
            )
        table = {
            column: pd.Index(self.coords[axis]).take(np.asarray(getattr(self, column)))
            for column, axis in self.axes.items()
        }
        count = np.asarray(self.weight).astype(np.int64)
        return pd.DataFrame(table | {"count": count})[count > 0].reset_index(drop=True)

    def answers(self) -> Int[np.ndarray, " answer"]:
        """Codes of the levels."""
        return np.arange(self.num_levels)

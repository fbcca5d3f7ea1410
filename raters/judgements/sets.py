"""Judgements about sets of things that were offered, padded: choices and rankings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import jax.numpy as jnp
import numpy as np
from jaxtyping import Int, Shaped

from raters.errors import refuse_data
from raters.judgements.base import Judgements
from raters.judgements.counts import Codes
from raters.judgements.names import Names, name_text, names_array


class OfferedSets(Judgements):
    """Base of the containers whose rows are sets of things, each in a position of its set.

    `offered` has the code of the thing in each position, ascending, and −1 where a set has fewer.
    Of the answers that a set can have, the position of a single thing is listed.
    """

    offered: Any

    @property
    def there(self) -> Shaped[np.ndarray, "row position"]:
        """Mask of the positions that have something."""
        return np.asarray(self.offered) >= 0

    def _in_positions(self) -> dict[str, Shaped[np.ndarray, "row position ..."]]:
        """Columns with an entry for each position of each set."""
        names = (name for name, axes in self.arrays().items() if axes[1:2] == ("position",))
        columns = {name: getattr(self, name) for name in names}
        return {name: np.asarray(one) for name, one in columns.items() if one is not None}

    def canonical(self) -> Self:
        """The same sets with the things of each ascending by code."""
        key = np.where(self.there, self.offered, len(self.coords[self.axes["offered"]]))
        order = np.argsort(key, 1, kind="stable")
        if (order == np.arange(order.shape[1])).all():
            return self
        row = np.arange(len(order))[:, None]
        changes: dict[str, Any] = {n: one[row, order] for n, one in self._in_positions().items()}
        return replace(self, **changes)

    def with_names(self, axis: str, names: Names) -> Self:
        """The same judgements in the codes of other names; things ascend by their codes."""
        return super().with_names(axis, names).canonical()

    def _alike(self, other: Self) -> tuple[Self, Self]:
        width = max(np.shape(part.offered)[1] for part in (self, other))
        return self._widened(width), other._widened(width)

    def _widened(self, width: int) -> Self:
        """The same sets with more positions."""
        changes: dict[str, Any] = {}
        for name, column in self._in_positions().items():
            more = ((0, 0), (0, width - column.shape[1]), (0, 0))[: column.ndim]
            changes[name] = np.pad(column, more, constant_values=-1 if name == "offered" else 0)
        return replace(self, **changes)

    def listed_answers(self) -> Int[np.ndarray, " position"]:
        """Positions in `offered` of the thing that is chosen, or comes first."""
        return np.arange(np.shape(self.offered)[1])

    def all_answered(self, answer: Any) -> Self:
        """The sets with the thing in one position chosen, or first, and nothing else."""
        first = jnp.arange(np.shape(self.offered)[1]) == answer
        column = jnp.broadcast_to(first, np.shape(self.offered)).astype(self.answer_dtype)
        return replace(self, **{self.answer: column, "count": None})

    def answered(self, outcomes: Any) -> Self:
        """These questions with outcomes, one for each position."""
        shape, column = np.shape(self.offered), np.asarray(outcomes)
        if column.size != np.size(self.offered) or column.dtype.kind not in "iuf":
            refuse_data("outcomes", outcomes, expected=f"it must have the shape {shape}")
        table = np.where(self.there, column.reshape(shape), 0).astype(self.answer_dtype)
        return replace(self, **{self.answer: table})

    def answer_words(self, row: int) -> dict[str, float]:
        """Names of the things offered, and their positions."""
        codes = np.asarray(self.offered)[self._place(row)]
        known = self.coords[self.axes["offered"]]
        names = (name_text(known[code]) for code in codes[codes >= 0])
        return {name: float(position) for position, name in enumerate(names)}

    def offers(self) -> tuple[Codes, Codes, dict[str, Any]]:
        """Row and position of each thing that is offered, and the names of it and its row."""
        row, position = np.nonzero(self.there)
        codes = {self.row: row, self.axes["offered"]: np.asarray(self.offered)[row, position]}
        codes[self.judge] = np.asarray(self.codes(self.judge))[row]
        names = {axis: names_array(self.coords[axis])[code] for axis, code in codes.items()}
        return row, position, names

    def check(self) -> None:
        """Raise unless the things of each set ascend; see `Judgements.check`."""
        super().check()
        offered = np.asarray(self.offered)
        for name, column in self._in_positions().items():
            if column.shape[:2] != offered.shape:
                expected = f"it must be {offered.shape}, that of `offered`"
                refuse_data(name, problem=f"has the shape {column.shape}", expected=expected)
        ascending = (np.diff(offered) > 0) & (offered[:, :-1] >= 0) | (offered[:, 1:] < 0)
        self._refuse("offered", ~ascending, "what a set offers must ascend, before any −1")

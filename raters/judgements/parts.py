"""Parts of judgements: some rows, units or judges, and the questions without what is known of their
answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, Self

import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from raters.errors import refuse_data
from raters.errors.validation import checked, one_of, places, whole
from raters.judgements.names import plural, staying
from raters.judgements.roles import Roles

# Rows at a time where a pass over all of them would need arrays as large as the data.
PIECE = 1 << 18


class Parts(Roles):
    """Judgements in part, as a mixin of `Judgements`."""

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
        part = self.rows(stays[np.asarray(getattr(self, column))])
        kept = tuple(name for name, stay in zip(self.judges, stays, strict=True) if stay)
        changes: dict[str, Any] = {
            column: code[np.asarray(getattr(part, column))],
            self.names[self.judge]: kept,
        }
        for name in filter(self.of_judges, self.arrays()):
            if (array := getattr(self, name)) is not None:
                changes[name] = np.asarray(array)[stays]
        return dataclasses.replace(part, **changes)

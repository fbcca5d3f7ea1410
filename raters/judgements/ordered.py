"""Questions that ask for an order of several items, and their answers."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, Num, Shaped

from raters._validation import checked
from raters.errors import DataError
from raters.judgements.base import Judgements
from raters.judgements.counts import Tallies, ordered_pairs
from raters.judgements.names import name_text, names_array
from raters.judgements.order_codes import check_codes, order_code, order_of


class Ordered(Judgements):
    """Questions and answers of orders, as a mixin of `Rankings`.

    Of the answers to a question, as many as there are orders, predictions and scores list those
    about the first place: which of the items offered it is given to. By the models of Plackett and
    Luce, the order of two items alone is the first place of the set of both.
    """

    annotator: Any
    depth: Any
    offered: Any
    place: Any
    items: tuple[Any, ...]

    def answers(self) -> Int[np.ndarray, " answer"]:
        """Places, and 0 for none."""
        return np.arange(np.shape(self.offered)[1] + 1)

    def listed_answers(self) -> Int[np.ndarray, " position"]:
        """Positions in `offered` of the item in the first place."""
        return np.arange(np.shape(self.offered)[1])

    def all_answered(self, answer: Any) -> Self:
        """The item in one position comes first, and no other has a place."""
        first = jnp.arange(np.shape(self.offered)[1]) == answer
        place = jnp.broadcast_to(first, np.shape(self.offered)).astype(jnp.int32)
        return dataclasses.replace(self, place=place, count=None)

    def answer_table(
        self, table: Float[np.ndarray, "draw position ranking"]
    ) -> tuple[Shaped[np.ndarray, " item"], Float[np.ndarray, "draw item ranking"]]:
        """Names of all items, and their probabilities of the first place: 0 where they are not
        offered."""
        offered = np.asarray(self.offered)
        by_item = np.zeros((len(table), len(self.items), len(offered)), table.dtype)
        row, position = np.nonzero(offered >= 0)
        by_item[:, offered[row, position], row] = table[:, position, row]
        return names_array(self.items), by_item

    def answer_words(self, row: int) -> dict[str, float]:
        """Names of the items offered, and their positions.

        Parameters
        ----------
        row : int
            Row of the question.

        Returns
        -------
        dict of str to float
        """
        codes = np.asarray(self.offered)[self._place(row)]
        names = (name_text(self.items[code]) for code in codes[codes >= 0])
        return {name: float(position) for position, name in enumerate(names)}

    def listed_word(self, row: int, answer: float) -> str:
        """Name of the item in the first place."""
        return next(word for word, value in self.answer_words(row).items() if value == answer)

    def outcome_of(self, row: int, answer: Any) -> float | None:
        """Number of the order that an answer in words stands for.

        Parameters
        ----------
        row : int
            Row of the question.
        answer : str or sequence of str
            Names of the items, the best first, such as ``"tea > milk > beer"`` or ``["tea",
            "milk", "beer"]``. The last of all may be left out.

        Returns
        -------
        float or None
            None for what is no text and no sequence.

        Raises
        ------
        DataError
            When a name is not that of an item offered or comes twice, or places are missing.
        """
        names = answer.split(">") if isinstance(answer, str) else answer
        if not isinstance(names, (list, tuple)):
            return None
        size, depth = self._shape_of(row)
        positions = [super(Ordered, self).outcome_of(row, name) for name in names]
        if depth == size == len(positions) + 1:
            positions += [float(one) for one in range(size) if float(one) not in positions][:1]
        is_order = None not in positions and len(set(positions)) == len(positions) == depth
        if not is_order:
            words = " > ".join(list(self.answer_words(row))[:depth])
            raise DataError(
                f"the answer {answer!r} is no order of the best {depth} of these {size} items;"
                f" write their names, the best first, such as {words!r}"
            )
        return float(order_code([int(one) for one in positions if one is not None], size))

    def words_of(self, row: int, outcome: float) -> str:
        """The order that a number stands for, in words.

        Parameters
        ----------
        row : int
            Row of the question.
        outcome : float
            Number of an order, as of `outcome_of`.

        Returns
        -------
        str
            Names of the items placed, such as ``"tea > milk > beer"``.
        """
        names = list(self.answer_words(row))
        order = order_of(int(outcome), *self._shape_of(row))
        return " > ".join(names[position] for position in order)

    def single_outcomes(self, row: int) -> dict[float, int]:
        """The number of the order of a row, and how often it was given; see
        `Judgements.single_outcomes`."""
        size, depth = self._shape_of(row)
        place = np.asarray(self.place)[row]
        order = [int(np.flatnonzero(place == number)[0]) for number in range(1, depth + 1)]
        count = 1.0 if self.count is None else float(self.count[row])
        return {float(order_code(order, size)): round(count)}

    def _shape_of(self, row: int) -> tuple[int, int]:
        """Number of items offered by a question, and of places to fill."""
        row = self._place(row)
        return int((np.asarray(self.offered)[row] >= 0).sum()), int(np.asarray(self.depth)[row])

    def canonical(self) -> Self:
        """The same questions with the items of each ascending by code."""
        offered = np.asarray(self.offered)
        order = np.argsort(np.where(offered < 0, len(self.items), offered), 1, kind="stable")
        if (order == np.arange(offered.shape[1])).all():
            return self
        columns = {"offered": offered, "place": self.place}
        sorted_columns = {
            name: np.take_along_axis(np.asarray(column), order, 1)
            for name, column in columns.items()
            if column is not None
        }
        return dataclasses.replace(self, **sorted_columns)

    def unanswered(self) -> Self:
        """The questions without the answers: a row with a count becomes so many rows."""
        index = np.repeat(np.arange(self.num_rows), np.asarray(self.weight).astype(int))
        questions = self if self.count is None else self.rows(index)
        return dataclasses.replace(questions, place=None, count=None)

    def shaped(self, outcomes: Any) -> Any:
        """Places as a distribution draws them, one after the other, by ranking and position."""
        return outcomes.reshape(np.shape(self.offered))

    def some_outcomes(self) -> Int[np.ndarray, "ranking position"]:
        """Places in the order of the codes."""
        place = np.arange(1, np.shape(self.offered)[1] + 1)
        return np.where(place <= np.asarray(self.depth)[:, None], place, 0)

    def answered(self, outcomes: Any) -> Self:
        """These questions with outcomes.

        Parameters
        ----------
        outcomes : array, shape (ranking, position), (ranking × position,), or (ranking,)
            Place of each item offered; or number of each order, as of `outcome_of`.

        Returns
        -------
        Rankings
        """
        offered = np.asarray(self.offered)
        column = np.asarray(outcomes)
        if column.shape == (len(offered),) != (offered.size,) and column.dtype.kind in "iuf":
            return dataclasses.replace(self, place=self._places(column))
        if column.size != offered.size or column.dtype.kind not in "iuf":
            raise DataError(
                parameter="outcomes",
                value=outcomes,
                problem="is not one place for each item offered",
                expected=f"it must be an array of shape {offered.shape}",
            )
        place = self.shaped(column).astype(np.int32)
        return dataclasses.replace(self, place=np.where(offered >= 0, place, 0))

    def _places(self, codes: Num[np.ndarray, " ranking"]) -> Int[np.ndarray, "ranking position"]:
        """Places of the items offered, from the number of each order."""
        place = np.zeros(np.shape(self.offered), np.int32)
        for row, code in enumerate(codes.tolist()):
            size, depth = self._shape_of(row)
            check_codes(size, depth)
            place[row, order_of(int(code), size, depth)] = np.arange(1, depth + 1)
        return place

    def joined(self, more: Self) -> Self:
        """These rankings and further ones, in this order.

        Parameters
        ----------
        more : Rankings
            Rankings with the same names.

        Returns
        -------
        Rankings
        """
        width = max(np.shape(part.offered)[1] for part in (self, more))
        one, other = self._widened(width), more._widened(width)
        return super(Ordered, one).joined(other)

    @checked
    def keys(self, other: Self | None = None) -> Int[np.ndarray, " row"]:
        """Number of each row that equal questions share, and no others; see `Judgements.keys`.

        Parameters
        ----------
        other : Rankings, optional
            Questions in the same codes, also with more or fewer positions.

        Returns
        -------
        int array, shape (row,)
        """
        if other is None:
            return super().keys()
        width = max(np.shape(part.offered)[1] for part in (self, other))
        return super(Ordered, self._widened(width)).keys(other._widened(width))

    def _widened(self, width: int) -> Self:
        """The same rankings with more positions."""
        more = ((0, 0), (0, width - np.shape(self.offered)[1]))
        place = None if self.place is None else np.pad(np.asarray(self.place), more)
        offered = np.pad(np.asarray(self.offered), more, constant_values=-1)
        return dataclasses.replace(self, offered=offered, place=place)

    def _tallied(self, about: Int[np.ndarray, " row"]) -> Tallies:
        """Counted answers by annotator and pair of items, whatever else was offered: 1 where the
        item of the lower code is ahead. Pairs of which neither item has a place do not count."""
        who, offered = np.asarray(self.annotator, np.int64), np.asarray(self.offered, np.int64)
        place, count = np.asarray(self.place), np.asarray(self.weight, float)
        return ordered_pairs(who, offered, place, count, len(self.items))

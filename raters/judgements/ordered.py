"""Questions that ask for an order of several items, and their answers."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, Self

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, Num, Shaped

from raters.errors import DataError, DataWarning, refuse_data
from raters.errors.validation import checked
from raters.judgements.choices import Choices
from raters.judgements.counts import Tallies, ordered_pairs
from raters.judgements.names import names_array, shorten
from raters.judgements.order_codes import check_codes, order_of
from raters.judgements.order_words import OrderWords


class Ordered(OrderWords):
    """Questions and answers of orders, as a mixin of `Rankings`."""

    annotator: Any
    annotators: tuple[Any, ...]

    def answers(self) -> Int[np.ndarray, " answer"]:
        """Places, 0 for none, and −1 for the worst where it is asked for."""
        return np.arange(0 if self.lowest is None else -1, np.shape(self.offered)[1] + 1)

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

    @property
    def instruction(self) -> str:
        """Sentence that asks these questions."""
        if self.lowest is None or not np.any(np.asarray(self.lowest)):
            return super().instruction
        if np.all(np.asarray(self.lowest)) and np.all(np.asarray(self.depth) == 1):
            return "Which of these is the best, and which is the worst?"
        return "Put the best of these in order, and name the worst where it is asked for."

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
        """Places in the order of the codes; the last item is the worst where that is asked for."""
        place = np.arange(1, np.shape(self.offered)[1] + 1)
        placed = np.where(place <= np.asarray(self.depth)[:, None], place, 0)
        if self.lowest is None:
            return placed
        is_last = place == (np.asarray(self.offered) >= 0).sum(1, keepdims=True)
        return np.where(is_last & (np.asarray(self.lowest) > 0)[:, None], -1, placed)

    def answered(self, outcomes: Any) -> Self:
        """These questions with outcomes."""
        offered = np.asarray(self.offered)
        column = np.asarray(outcomes)
        if column.shape == (len(offered),) != (offered.size,) and column.dtype.kind in "iuf":
            return dataclasses.replace(self, place=self._places(column))
        if column.size != offered.size or column.dtype.kind not in "iuf":
            refuse_data(
                "outcomes",
                outcomes,
                "is not one place for each item offered",
                f"it must be an array of shape {offered.shape}",
            )
        place = self.shaped(column).astype(np.int32)
        return dataclasses.replace(self, place=np.where(offered >= 0, place, 0))

    def _places(self, codes: Num[np.ndarray, " ranking"]) -> Int[np.ndarray, "ranking position"]:
        """Places of the items offered, from the number of each order."""
        place = np.zeros(np.shape(self.offered), np.int32)
        for row, code in enumerate(codes.tolist()):
            size, named = self._shape_of(row)
            check_codes(size, named)
            numbers = np.arange(1, named + 1)
            if self._asks_worst(row):
                numbers[-1] = -1
            place[row, order_of(int(code), size, named)] = numbers
        return place

    def joined(self, more: Self) -> Self:
        """These rankings and further ones, in this order."""
        one, other = self._alike(more)
        return super(Ordered, one).joined(other)

    @checked
    def keys(self, other: Self | None = None) -> Int[np.ndarray, " row"]:
        """Number of each row that equal questions share, and no others; see `Judgements.keys`."""
        if other is None:
            return super().keys()
        one, other = self._alike(other)
        return super(Ordered, one).keys(other)

    def _alike(self, other: Self) -> tuple[Self, Self]:
        """These rankings and others, with equally many positions, and with `lowest` where one has
        it."""
        width = max(np.shape(part.offered)[1] for part in (self, other))
        one, two = self._widened(width), other._widened(width)
        if (one.lowest is None) == (two.lowest is None):
            return one, two
        return one._with_lowest(), two._with_lowest()

    def _with_lowest(self) -> Self:
        """The same rankings with a column that says of which the worst is asked for."""
        if self.lowest is not None:
            return self
        return dataclasses.replace(self, lowest=np.zeros(self.num_rows, np.int32))

    def _widened(self, width: int) -> Self:
        """The same rankings with more positions."""
        more = ((0, 0), (0, width - np.shape(self.offered)[1]))
        place = None if self.place is None else np.pad(np.asarray(self.place), more)
        offered = np.pad(np.asarray(self.offered), more, constant_values=-1)
        return dataclasses.replace(self, offered=offered, place=place)

    def stages(self) -> Choices:
        """The rankings as choices: of the best of all items offered, then of the best of the rest.

        Plackett and Luce's probability of a ranking is the product of those of its choices, so that
        models of choices without features are models of rankings, with constants for worths:
        `MultinomialLogit` is then `PlackettLuce`, and `LatentClassLogit` is `MixturePlackettLuce`.

        Returns
        -------
        Choices
            One set for each place that leaves a choice, by the annotators of the rankings; equal
            ones of an annotator are counted together.

        Raises
        ------
        DataError
            When these are questions without answers, no place leaves a choice, or a ranking names
            the worst: that is chosen by utilities turned round, as in no model of choices.

        Examples
        --------
        >>> import raters as rt
        >>> rankings = rt.Rankings.from_wide(
        ...     {"best": ["tea", "milk"], "next": ["milk", "tea"], "last": ["beer", "beer"]},
        ...     places=["best", "next", "last"])
        >>> rankings.stages().num_choices
        4
        """
        if self.place is None:
            raise DataError("these are questions without answers, which choose nothing")
        if self.lowest is not None and np.any(np.asarray(self.lowest)):
            raise DataError(
                "the worst is chosen by the lowest utility, and models of choices choose by the"
                " highest, so that best–worst answers are no choices in stages; take those of the"
                " best alone: rankings.without_worst().stages()"
            )
        offered, place = np.asarray(self.offered), np.asarray(self.place)
        count, who = np.asarray(self.weight), np.asarray(self.annotator)
        parts = []
        for stage in range(1, int(place.max(initial=0)) + 1):
            left = (offered >= 0) & ((place == 0) | (place >= stage))
            left &= ((place == stage).any(1) & (left.sum(1) > 1) & (count > 0))[:, None]
            row, position = np.nonzero(left)
            chosen = np.where(place[row, position] == stage, count[row], 0)
            parts.append((row * (place.shape[1] + 1) + stage, row, position, chosen))
        sets, row, position, chosen = map(np.concatenate, zip(*parts, strict=True))
        if not len(sets):
            raise DataError("no ranking has two items, so that no place leaves a choice")
        return Choices.from_frame(
            {
                "set": sets,
                "alternative": names_array(self.items)[offered[row, position]],
                "annotator": names_array(self.annotators)[who[row]],
                "chosen": chosen,
            },
            set="set",
            alternative="alternative",
            annotator="annotator",
            chosen="chosen",
            counted=True,
            alternatives=names_array(self.items).tolist(),
            annotators=names_array(self.annotators).tolist(),
        )

    def without_worst(self) -> Self:
        """The rankings without the items that were named as the worst: these are then among the
        ones without a place."""
        place = None if self.place is None else np.maximum(np.asarray(self.place), 0)
        return dataclasses.replace(self, place=place, lowest=None)

    def _tallied(self, about: Int[np.ndarray, " row"]) -> Tallies:
        """Counted answers by annotator and pair of items, whatever else was offered: 1 where the
        item of the lower code is ahead. Pairs that a ranking leaves open do not count."""
        who, offered = np.asarray(self.annotator, np.int64), np.asarray(self.offered, np.int64)
        place, count = np.asarray(self.place), np.asarray(self.weight, float)
        return ordered_pairs(who, offered, place, count, len(self.items))

    def warn(self) -> None:
        """Warn about what these data cannot tell: items that were never offered, and rankings of a
        single item."""
        never = self.judgements_by("item") == 0
        if names := [self.items[code] for code in np.flatnonzero(never)]:
            warnings.warn(
                f"{len(names)} item(s) were never offered, and keep their prior: {shorten(names)}",
                DataWarning,
                stacklevel=3,
            )
        if single := int(((np.asarray(self.offered) >= 0).sum(1) == 1).sum()):
            warnings.warn(
                f"{single} ranking(s) have a single item, and say nothing",
                DataWarning,
                stacklevel=3,
            )

    # ---------------------------------------------------------------- checks

    def check(self) -> None:
        """Raise unless the columns fit together, and each ranking places its items from 1 without
        gaps; see `Judgements.check`."""
        super().check()
        offered = np.asarray(self.offered)
        ascending = (np.diff(offered, axis=1) > 0) | (offered[:, 1:] < 0)
        self._refuse("offered", ~ascending, "items of a ranking must ascend, those there are first")
        if self.lowest is not None:
            left = (offered >= 0).sum(1) - np.asarray(self.depth)
            asked = np.asarray(self.lowest)
            wrong = ~np.isin(asked, (0, 1)) | ((asked == 1) & (left < 1))
            self._refuse("lowest", wrong, "it must be 0 or 1, and 0 where all items have a place")
        if self.place is None:
            return
        place = np.asarray(self.place)
        self._refuse("place", (place != 0) & (offered < 0), "only items offered have a place")
        lowest = 0 if self.lowest is None else np.asarray(self.lowest)
        wrong = np.broadcast_to(((place < 0).sum(1) != lowest)[:, None], place.shape)
        self._refuse(
            "place", wrong, "one item must be the worst (-1) where `lowest` is 1, else none"
        )
        ordered, number = np.sort(np.maximum(place, 0), axis=1), (place > 0).sum(1)
        wanted = np.arange(place.shape[1]) - (place.shape[1] - number)[:, None] + 1
        wrong = ordered != np.maximum(wanted, 0)
        wrong |= (number != np.asarray(self.depth))[:, None]
        self._refuse("place", wrong, "places must be 1, 2, ... up to the depth of the ranking")

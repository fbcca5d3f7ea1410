"""Orders of several items in words, and as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from raters.errors import DataError
from raters.judgements.base import Judgements
from raters.judgements.names import name_text
from raters.judgements.order_codes import order_code, order_of

# What stands, in words, for the items between the best and the worst.
_BETWEEN = ("...", "…")


class OrderWords(Judgements):
    """Answers that are orders, in words and as numbers, as a mixin of `Ordered`."""

    depth: Any
    lowest: Any
    offered: Any
    place: Any
    items: tuple[Any, ...]

    def answer_words(self, row: int) -> dict[str, float]:
        """Names of the items offered, and their positions."""
        codes = np.asarray(self.offered)[self._place(row)]
        names = (name_text(self.items[code]) for code in codes[codes >= 0])
        return {name: float(position) for position, name in enumerate(names)}

    def listed_word(self, row: int, answer: float) -> str:
        """Name of the item in the first place."""
        return next(word for word, value in self.answer_words(row).items() if value == answer)

    def outcome_of(self, row: int, answer: Any) -> float | None:
        """Number of the order that an answer in words stands for."""
        names = answer.split(">") if isinstance(answer, str) else answer
        if not isinstance(names, (list, tuple)):
            return None
        size, named = self._shape_of(row)
        if self._asks_worst(row) and len(names) == named + 1 and _is_between(names[-2]):
            names = [*names[:-2], names[-1]]
        positions = [super(OrderWords, self).outcome_of(row, name) for name in names]
        if named == size == len(positions) + 1:
            positions += [float(one) for one in range(size) if float(one) not in positions][:1]
        is_order = None not in positions and len(set(positions)) == len(positions) == named
        if not is_order:
            unknown = [name for name, place in zip(names, positions, strict=False) if place is None]
            raise self._no_order(row, answer, unknown)
        return float(order_code([int(one) for one in positions if one is not None], size))

    def _no_order(self, row: int, answer: Any, unknown: Sequence[Any]) -> DataError:
        """Error that says how an order is written, and which names are none of these."""
        size, named = self._shape_of(row)
        names = list(self.answer_words(row))
        asked, depth = f"the best {named}", named
        if self._asks_worst(row):
            depth = named - 1
            asked = f"the best {depth} and the worst" if depth > 1 else "the best and the worst"
            names = [*names[:depth], names[-1]]
        none = f" ({str(unknown[0]).strip()!r} is none of them)" if unknown else ""
        return DataError(
            f"the answer {answer!r} is no order of {asked} of these {size} items{none}; write their"
            f" names, the best first, such as {self._written(row, names[:named])!r}"
        )

    def _written(self, row: int, names: list[str]) -> str:
        """Names of the items placed, and of the worst, as an order in words."""
        size, named = self._shape_of(row)
        between = [_BETWEEN[0]] if self._asks_worst(row) and named < size else []
        return " > ".join([*names[:-1], *between, names[-1]])

    def words_of(self, row: int, outcome: float) -> str:
        """The order that a number stands for, in words."""
        names = list(self.answer_words(row))
        order = order_of(int(outcome), *self._shape_of(row))
        return self._written(row, [names[position] for position in order])

    def single_outcomes(self, row: int) -> dict[float, int]:
        """The number of the order of a row, and how often it was given; see
        `Judgements.single_outcomes`."""
        size, depth = self._shape_of(row)[0], int(np.asarray(self.depth)[row])
        place = np.asarray(self.place)[row]
        numbers = [*range(1, depth + 1), *([-1] if self._asks_worst(row) else [])]
        order = [int(np.flatnonzero(place == number)[0]) for number in numbers]
        count = 1.0 if self.count is None else float(self.count[row])
        return {float(order_code(order, size)): round(count)}

    def _shape_of(self, row: int) -> tuple[int, int]:
        """Number of items offered by a question, and of those to name."""
        row = self._place(row)
        size = int((np.asarray(self.offered)[row] >= 0).sum())
        return size, int(np.asarray(self.depth)[row]) + self._asks_worst(row)

    def _asks_worst(self, row: int) -> bool:
        """True if a question asks for the worst, too."""
        return self.lowest is not None and bool(np.asarray(self.lowest)[row])


def _is_between(name: Any) -> bool:
    """True for dots between two names."""
    return isinstance(name, str) and name.strip() in _BETWEEN

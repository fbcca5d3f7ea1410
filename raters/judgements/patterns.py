"""Response patterns: ``Patterns`` holds each pattern of responses once, with the number of persons
who gave it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import jax
import numpy as np
from jaxtyping import Float

from raters.judgements.grouped import Grouped
from raters.judgements.responses import Responses
from raters.judgements.roles import of_axes, static


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Patterns(Grouped):
    """Patterns of item responses, each with the number of persons who answered alike.

    Models that integrate the abilities out do not tell such persons apart: of 1,000 persons with 5
    items there are 32 patterns at most.

    Parameters
    ----------
    group : int array, shape (response,)
        Pattern of each row; ascending.
    item : int array, shape (response,)
        Code of what was asked.
    correct : float array, shape (response,)
        Right responses of one of the persons, between 0 and `count`.
    count : float array, shape (response,), or None
        Responses of one of the persons in the row. None means one in each.
    unit_code : int array, shape (pattern,)
    repeats : float array, shape (pattern,)
        Number of persons with the pattern.
    items, patterns : tuple
        Names.
    most : int
        The largest number of rows of a pattern.
    even : bool
        Whether each pattern has as many rows, with those that it lacks of a count of 0.
    """

    group: Any
    item: Any
    correct: Any
    count: Any
    unit_code: Any = of_axes("unit")
    repeats: Any = of_axes("unit")
    items: tuple[Any, ...] = static()
    patterns: tuple[Any, ...] = static()
    most: int = static(1, derived=True)
    even: bool = static(False)

    axes: ClassVar[Mapping[str, str]] = {"unit_code": "pattern", "item": "item"}
    names: ClassVar[Mapping[str, str]] = {"pattern": "patterns", "item": "items"}
    answer: ClassVar[str] = "correct"
    row: ClassVar[str] = "response"
    unit: ClassVar[str] = "pattern"
    judge: ClassVar[str] = "item"
    summed: ClassVar[bool] = True

    @classmethod
    def of(cls, responses: Responses) -> Self:
        """The patterns of these responses.

        Parameters
        ----------
        responses : Responses

        Returns
        -------
        Patterns
            In the order of the first person of each. Persons without responses have none.
        """
        cells = responses.unpadded().aggregate()
        person, item = np.asarray(cells.person), np.asarray(cells.item)
        count = np.asarray(cells.weight, np.float64)
        right = np.zeros(len(item)) if cells.correct is None else np.asarray(cells.correct)
        order = np.lexsort((item, person))
        rows = np.stack([item, count, right], axis=1).astype(np.float64)[order]
        size = np.bincount(person, minlength=len(cells.persons))
        end = np.cumsum(size)
        code: dict[bytes, int] = {}
        first: list[np.ndarray] = []
        repeats: list[int] = []
        for begin, last in zip(end - size, end, strict=True):
            if begin == last:
                continue
            place = code.setdefault(rows[begin:last].tobytes(), len(code))
            if place == len(first):
                first.append(order[begin:last])
                repeats.append(0)
            repeats[place] += 1
        group = np.repeat(np.arange(len(first)), [len(part) for part in first])
        chosen = np.concatenate([*first, np.zeros(0, int)]).astype(int)
        columns = {
            "item": item[chosen],
            "correct": None if cells.correct is None else right[chosen],
            "count": None if cells.count is None else count[chosen],
        }
        return cls.of_all(
            group,
            columns,
            repeats=np.array(repeats, np.float32),
            items=cells.items,
            patterns=tuple(range(len(first))),
        )

    @property
    def num_items(self) -> int:
        """Number of items, answered or not."""
        return len(self.items)

    def answers(self) -> Float[np.ndarray, " answer"]:
        """Wrong and right."""
        return np.array([0.0, 1.0])

"""Patterns of answers: each pattern once, with the number of names that have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float

from raters.judgements.base import Judgements
from raters.judgements.grouped import Grouped
from raters.judgements.roles import number_of, of_axes, static


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Patterns(Grouped):
    """Patterns of answers along one of two axes, each with the number of names that have it."""

    group: Any
    facet: Any
    given: Any
    count: Any
    unit_code: Any = of_axes("unit")
    repeats: Any = of_axes("unit")
    facets: tuple[Any, ...] = static()
    patterns: tuple[Any, ...] = static()
    num_answers: int = static(2)
    most: int = static(1, derived=True)
    even: bool = static(False)

    axes = {"unit_code": "pattern", "facet": "facet"}
    names = {"pattern": "patterns", "facet": "facets"}
    answer = "given"
    row = "row"
    unit = "pattern"
    judge = "facet"
    answer_scale = "binary"

    @classmethod
    def of(cls, data: Judgements, axis: str, other: str) -> Self:
        """The patterns of these answers along one of their two axes."""
        cells = data.unpadded().aggregate()
        name, facet = np.asarray(cells.codes(axis)), np.asarray(cells.codes(other))
        count = np.asarray(cells.weight, np.float64)
        answer = np.asarray(getattr(cells, data.answer)) if cells.has_answers else None
        sorted_by = np.zeros(len(facet)) if answer is None else answer
        order = np.lexsort((sorted_by, facet, name))
        rows = np.stack([facet, count, sorted_by], axis=1).astype(np.float64)[order]
        start = np.unique(name[order], return_index=True)[1]
        parts = np.split(np.arange(len(order)), start[1:]) if len(order) else []
        # Numbered by first appearance.
        code, _ = pd.factorize(np.array([rows[part].tobytes() for part in parts], object))
        first = [parts[place] for place in np.unique(code, return_index=True)[1]]
        group = np.repeat(np.arange(len(first)), [len(part) for part in first])
        chosen = order[np.concatenate([*first, np.zeros(0, int)]).astype(int)]
        columns = {
            "facet": facet[chosen],
            "given": None if answer is None else answer[chosen],
            "count": None if cells.count is None else count[chosen],
        }
        return cls.of_all(
            group,
            columns,
            repeats=np.bincount(code).astype(np.float32),
            facets=tuple(cells.coords[other]),
            patterns=tuple(range(len(first))),
            num_answers=len(data.answers()),
        )

    num_facets = number_of("facets", "Number of names along the other axis.")

    def answers(self) -> Float[np.ndarray, " answer"]:
        """Numbers of the answers."""
        return np.arange(float(self.num_answers))

    def counts(self) -> Float[np.ndarray, "facet answer"]:
        """Number of each answer (a code) by name on the other axis, over all names of a pattern."""
        shape = (self.num_facets, self.num_answers)
        if self.given is None:
            return np.zeros(shape)
        cell = np.asarray(self.facet, np.int64) * self.num_answers + np.asarray(self.given, int)
        weight = np.asarray(self.weight, np.float64)
        weight = weight * np.asarray(self.repeats, np.float64)[np.asarray(self.group)]
        return np.bincount(cell, weight, shape[0] * shape[1]).reshape(shape)

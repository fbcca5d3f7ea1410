"""Arguments of a NumPyro function, as the data that a model is fitted to."""

from __future__ import annotations

import dataclasses
import json
from collections import UserDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import jax
import numpy as np
from jaxtyping import Int, Shaped

from raters.errors import refuse_data
from raters.judgements.base import Judgements
from raters.judgements.roles import static

# Answers of which predictions list the probabilities.
_MOST_ANSWERS = 200


class Fixed(UserDict[str, Any]):
    """Arguments that are not traced: numbers, texts, and arrays that the function looks into."""

    @cached_property
    def _key(self) -> Any:
        return tuple((name, _key(value)) for name, value in self.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fixed) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _key(value: Any) -> Any:
    """Return a hashable key that equal values share."""
    if isinstance(value, np.ndarray):
        return "array", value.shape, value.dtype.str, value.tobytes()
    return type(value).__name__, value


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Arguments(Judgements):
    """Arguments of a plain NumPyro function, as made by `raters.models.numpyro_model`."""

    outcomes: Any
    count: Any
    columns: Any
    fixed: Fixed = static(Fixed())
    outcome: str = static("")
    site: str = static("")
    shape: tuple[int, ...] = static(())
    number: int = static(0)
    largest: int = static(-1)

    axes = {}
    names = {}
    answer = "outcomes"
    row = "observation"
    unit = "data set"
    judge = "observation"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.number:,} observations of {self.outcome!r})"

    # ---------------------------------------------------------------- facts

    def arguments(self) -> dict[str, Any]:
        """Arguments by name, as the function takes them."""
        outcomes = self.outcomes
        if outcomes is not None and np.size(outcomes) == np.prod(self.shape, dtype=int):
            outcomes = outcomes.reshape(self.shape)
        return {**self.fixed, **self.columns, self.outcome: outcomes}

    @property
    def num_rows(self) -> int:
        """Number of observations."""
        return self.number

    @property
    def num_units(self) -> int:
        """One: the whole."""
        return 1

    @property
    def coords(self) -> dict[str, Any]:
        """Numbers of the observations."""
        return {self.row: range(self.number), self.unit: range(1)}

    def judgements_by(self, axis: str) -> Int[np.ndarray, " axis"]:
        """One judgement for each observation."""
        return np.ones(len(self.coords[axis]), np.int64)

    @property
    def success(self) -> tuple[str, float] | None:  # type: ignore[override]
        """Outcome 1 of outcomes that are 0 or 1."""
        return ("p_1", 1.0) if self.largest == 1 else None

    def answers(self) -> Int[np.ndarray, " answer"]:
        """Outcomes from 0 to the largest."""
        if not 0 <= self.largest < _MOST_ANSWERS:
            many = "numbers without end" if self.largest < 0 else f"0 to {self.largest:,}"
            problem = f"can be {many}, of which no table of probabilities is made"
            expected = "draw new outcomes instead, with numpyro.infer.Predictive"
            refuse_data(self.outcome, problem=problem, expected=expected)
        return np.arange(self.largest + 1)

    @property
    def answer_dtype(self) -> Any:
        """Type of the outcomes."""
        return np.float32 if self.largest < 0 else np.int32

    # ---------------------------------------------------------------- parts: there are none

    def _whole(self, *_: Any, **__: Any) -> Self:
        return self

    take = rows = first_unit = unpadded = recoded = _whole

    def chunks(self, size: int) -> Iterator[Self]:
        """The whole, in one piece."""
        yield self

    def check(self) -> None:
        """Nothing is left to check: `raters.models.numpyro_model` has run the function."""

    # ---------------------------------------------------------------- storing

    def flags(self) -> dict[str, str]:
        """Numbers, texts and other facts that are no arrays, as JSON."""
        plain = {name: value for name, value in self.fixed.items() if not np.ndim(value)}
        names = ("outcome", "site", "shape", "number", "largest")
        facts = {name: getattr(self, name) for name in names} | {
            "columns": list(self.columns),
            "order": list(self.fixed),
            "plain": plain,
        }
        return {"arguments": json.dumps(facts)}

    def groups(self) -> dict[str, dict[str, tuple[tuple[str, ...], Shaped[np.ndarray, " ..."]]]]:
        """Arrays as a result stores them."""
        rows = self.shape[0] if self.shape else -1

        def stored(name: str, array: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
            along = self.row if rows == self.number else f"{self.outcome}_dim_0"
            axes = [f"{name}_dim_{axis}" for axis in range(array.ndim)]
            if array.ndim and len(array) == rows:
                axes[0] = along
            return tuple(axes), array

        fixed = {name: value for name, value in self.fixed.items() if np.ndim(value)}
        arrays = {**self.columns, **fixed}
        constant = {name: stored(name, np.array(array)) for name, array in arrays.items()}
        outcomes = np.array(self.outcomes).reshape(self.shape)
        return {
            "observed_data": {self.outcome: stored(self.outcome, outcomes)},
            "constant_data": constant,
        }

    @classmethod
    def _within(cls, stored: Mapping[str, Any], attrs: Mapping[str, Any]) -> Self:
        facts = json.loads(attrs["arguments"])
        every = {**stored, **facts.pop("plain")}
        fixed = {name: every[name] for name in facts.pop("order")}
        is_list = {name: isinstance(value, list) for name, value in fixed.items()}
        fixed |= {name: tuple(fixed[name]) for name in fixed if is_list[name]}
        columns = {name: stored[name] for name in facts.pop("columns")}
        shape, outcomes = tuple(facts.pop("shape")), stored[facts["outcome"]]
        return cls(outcomes, None, columns, Fixed(fixed), shape=shape, **facts)

    def answered(self, outcomes: Any) -> Self:
        """These arguments with outcomes."""
        return dataclasses.replace(self, outcomes=np.asarray(outcomes).reshape(self.shape))

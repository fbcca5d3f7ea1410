"""Judgements as tables, and as the arrays and text that files hold."""

from __future__ import annotations

import abc
import json
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pandas as pd
from jaxtyping import Shaped

from raters.errors import refuse_data
from raters.judgements.names import check_result, names_to_json
from raters.judgements.roles import Roles


class Storing(Roles):
    """Writing judgements and reading them back, as a mixin of `Judgements`."""

    def to_frame(self) -> pd.DataFrame:
        """The judgements as a table by name, with a column of answers where there are some, and
        ``count``; rows of count 0 are left out."""
        columns: dict[str, Any] = {
            (self.judge if name == "by" else name): names
            for name, names in self.question_names().items()
        }
        if not self.has_answers:
            count = np.asarray(self.weight).astype(np.int64)
            return pd.DataFrame(columns | {"count": count})[count > 0].reset_index(drop=True)
        single = [
            (row, self.words_of(row, outcome), number)
            for row in np.flatnonzero(np.asarray(self.weight) > 0).tolist()
            for outcome, number in self.single_outcomes(row).items()
        ]
        table = pd.DataFrame(single, columns=["row", self.answer, "count"])
        names = pd.DataFrame(columns).take(table.pop("row")).reset_index(drop=True)
        return names.join(table)

    def _by_outcome(self, answer: str, numbers: Mapping[Any, Any]) -> pd.DataFrame:
        """Judgements by name, those of each outcome in a row of their own, with the row of the data
        as the index."""
        axes = {name: axis for name, axis in self.axes.items() if name != self.answer}
        names = pd.DataFrame(
            {
                name: pd.Index(self.coords[axes[name]]).take(np.asarray(getattr(self, name)))
                for name in sorted(axes, key=lambda name: axes[name] != self.judge)
            }
        )
        parts = [
            names[number > 0].assign(**{answer: outcome}, count=number[number > 0].astype(np.int64))
            for outcome, number in numbers.items()
        ]
        return pd.concat(parts).sort_index(kind="stable")

    def check_answered(self) -> None:
        """Raise for questions without answers."""
        if not self.has_answers:
            refuse_data(
                "data",
                problem="holds questions without answers",
                expected="simulate some",
                instead="rt.simulate(model, questions, seed=0)",
            )

    def packed(self) -> dict[str, Shaped[np.ndarray, " ..."]]:
        """Copies of the arrays, which `unpack` puts together."""
        arrays = {name: getattr(self, name) for name in self.arrays()}
        return {name: np.array(array) for name, array in arrays.items() if array is not None}

    def flags(self) -> dict[str, str]:
        """Names and flags as text, which `unpack` reads."""
        values = {name: getattr(self, name) for name in self.statics()}
        return {
            name: names_to_json(value) if isinstance(value, tuple) else json.dumps(value)
            for name, value in values.items()
        }

    @classmethod
    def unpack(
        cls, arrays: Mapping[str, Shaped[np.ndarray, " ..."]], flags: Mapping[str, Any]
    ) -> Self:
        """The judgements that `packed` and `flags` took apart."""
        columns: dict[str, Any] = {name: arrays.get(name) for name in cls.arrays()}
        for name in cls.statics():
            if name in flags:
                value = json.loads(flags[name])
                columns[name] = tuple(value) if isinstance(value, list) else value
        return cls(**columns)

    def groups(self) -> dict[str, dict[str, tuple[tuple[str, ...], Shaped[np.ndarray, " ..."]]]]:
        """Arrays as a result stores them."""
        axes = self.arrays()
        constant = {}
        for name, array in self.packed().items():
            constant[self._stored(name)] = axes[name], array
        observed = constant.pop(self._stored(self.answer))
        return {"observed_data": {self._stored(self.answer): observed}, "constant_data": constant}

    @classmethod
    def _stored(cls, name: str) -> str:
        """Name of a column in a result."""
        return f"{name}_code" if name in cls.axes else cls.observed if name == cls.answer else name

    @classmethod
    def from_result(cls, result: Any) -> Self:
        """The data that a result was fitted to."""
        check_result(result)
        try:
            data = cls._within(result)
            if not data.has_answers:
                raise ValueError("it has no outcomes")
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            refuse_data(
                "result",
                problem=f"was altered: its data cannot be read ({type(error).__name__}: {error})",
                expected="pass a result, as fitted or as read back from its file",
                instead="rt.fit(model, data, seed=0)",
            )
        data.check()
        return data

    @abc.abstractmethod
    def check(self) -> None:
        """Raise unless the columns fit together."""

    @classmethod
    def _within(cls, result: Any) -> Self:
        """The data in a result."""
        return cls.unpack(cls._arrays_in(result), result.attrs)

    @classmethod
    def _arrays_in(cls, result: Any) -> dict[str, Shaped[np.ndarray, " ..."]]:
        """Arrays of the fields that a result holds."""
        arrays = {}
        for name in cls.arrays():
            group = result["observed_data" if name == cls.answer else "constant_data"]
            if (stored := cls._stored(name)) in group:
                arrays[name] = np.asarray(group[stored].values)
        return arrays

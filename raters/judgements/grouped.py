"""Judgements whose rows form groups: the labels of an item, the responses of a person."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Float, Shaped

from raters.errors import DataError, refuse_data
from raters.errors.validation import checked, one_of, places
from raters.judgements.base import Judgements
from raters.judgements.counts import Codes, pad_to
from raters.judgements.names import Names, match_names
from raters.judgements.roles import number_of, of_axes, static


class Grouped(Judgements):
    """Base of the containers whose likelihood is a product over groups of rows.

    `group` is each row's place among `unit_code`, the codes of the groups (axis ``"unit"``), both
    ascending. Groups have `most` rows or fewer; with `even`, each has so many in parts of the data.
    """

    group: Any
    unit_code: Any
    most: int
    even: bool

    @classmethod
    def of_all(cls, codes: Codes, columns: dict[str, Any], **others: Any) -> Self:
        """Judgements of all groups, with the rows sorted by group, stably."""
        order = np.argsort(codes, kind="stable")
        num_units = len(others[cls.names[cls.unit]])
        known = {name: np.asarray(one)[order] for name, one in columns.items() if one is not None}
        fields: dict[str, Any] = dict.fromkeys(columns) | known | others
        fields["group"] = group = np.asarray(codes, np.int32)[order]
        fields["unit_code"] = np.arange(num_units, dtype=np.int32)
        fields["most"] = _most(group)
        return cls(**fields)

    @property
    def num_units(self) -> int:
        """Number of groups in this part of the data."""
        return len(self.unit_code)

    @classmethod
    def axis_of(cls, column: str) -> str | None:
        """Axis of a column's names, of `group` that of the units: see `Judgements.axis_of`."""
        return cls.unit if column == "group" else super().axis_of(column)

    def codes(self, axis: str) -> Any:
        """Codes of each row along an axis."""
        one_of("axis", axis, self.coords)
        return self.unit_code[self.group] if axis == self.unit else super().codes(axis)

    def rows(self, index: Any) -> Self:
        """The given rows in their order; all groups stay."""
        columns = self._at_rows(places("index", index, self.num_rows))
        most = _most(columns["group"]) if self.has_answers else 1
        return replace(self, **columns, most=most)

    def first_unit(self) -> Self:
        """The first group that has rows, to read a program on; without any, one of count 0."""
        if isinstance(self.group, jax.core.Tracer):
            return self.take(slice(0, 1))
        some = self if self.num_rows else self.padded(1)
        place = int(np.asarray(some.group)[0])
        return some.take(slice(place, place + 1))

    def chunks(self, size: int) -> Iterator[Self]:
        """The data in one piece: groups stay together, and each shape would be compiled for."""
        yield self

    def take(self, units: Any) -> Self:
        """The given groups with their rows; all names are kept."""
        if not isinstance(units, jax.core.Tracer):
            # Also for places counted from the end.
            units = np.arange(self.num_units)[places("units", units, self.num_units)]
        traced = isinstance(units, jax.core.Tracer) or isinstance(self.group, jax.core.Tracer)
        xp: Any = jnp if traced else np
        group, units = xp.asarray(self.group), xp.asarray(units)
        begin = xp.searchsorted(group, units)
        number = xp.searchsorted(group, units, side="right") - begin
        new_group = xp.arange(len(units), dtype=group.dtype)
        if traced or self.even:
            place = xp.arange(self.most)
            rows = xp.minimum(begin[:, None] + place, self.num_rows - 1).ravel()
            there = (place < number[:, None]).ravel()
            count = 1.0 if self.count is None else xp.asarray(self.count)[rows]
            new_group, count = xp.repeat(new_group, self.most), xp.where(there, count, 0.0)
            return self._at(rows, units, xp, group=new_group, count=count)
        rows = np.arange(number.sum()) + np.repeat(begin - (np.cumsum(number) - number), number)
        return self._at(rows, units, np, group=np.repeat(new_group, number))

    def window(self, begin: Any, units: int, rows: int) -> Self:
        """Consecutive groups, counted round, with their rows: see `Judgements.window`."""
        group = jnp.asarray(self.group)
        first, end = jnp.searchsorted(group, begin), begin + units
        last = jnp.searchsorted(group, end) + jnp.searchsorted(group, end - self.num_units)
        place = (first + jnp.arange(rows)) % self.num_rows
        there = jnp.arange(rows) < last - first
        unit = jnp.where(there, (group[place] - begin) % self.num_units, units - 1)
        count = 1.0 if self.count is None else jnp.asarray(self.count)[place]
        of_units = (begin + jnp.arange(units)) % self.num_units
        columns = {"group": unit.astype(group.dtype), "count": jnp.where(there, count, 0.0)}
        return self._at(place, of_units, jnp, **columns)

    def window_rows(self, units: int) -> int:
        """Number of rows that hold any `window` of groups: a multiple of their number."""
        sizes = np.bincount(np.asarray(self.group), minlength=self.num_units)
        until = np.append(0, np.cumsum(np.append(sizes, sizes[: units - 1])))
        return units * -(-int((until[units:] - until[:-units]).max()) // units)

    def _at(self, rows: Any, units: Any, xp: Any, **columns: Any) -> Self:
        """Rows and groups at these places; `columns` take the place of what is there."""
        places_of = {self.row: rows, "unit": units}
        for name, axes in self.arrays().items():
            if axes[0] in places_of and name not in columns:
                column = getattr(self, name)
                columns[name] = None if column is None else xp.asarray(column)[places_of[axes[0]]]
        return replace(self, **columns)

    def unanswered(self) -> Self:
        """The questions without answers; a row with a count becomes so many rows."""
        # Nobody takes parts of questions, and equal shapes share what was compiled.
        return replace(self._each(), **{self.answer: None, "count": None}, most=1, even=False)

    def answered(self, outcomes: Any) -> Self:
        """These questions with outcomes."""
        return replace(super().answered(outcomes), most=_most(self.group))

    @checked
    def asked_of(self, like: Self) -> Self:
        """These questions about the groups of other data, with all known of them, in its codes."""
        axes = [axis for axis in self.question_axes() if axis != self.unit]
        columns = self.recoded(like, axes)._at_rows(slice(None))
        names, known = (tuple(part.coords[self.unit]) for part in (self, like))
        group = match_names(np.asarray(self.codes(self.unit)), names, known, self.unit)
        columns["group"] = group.astype(np.int32)
        none = {self.answer: None, "count": None}
        return replace(like, **columns | none, most=1, even=False)

    def _takes_names(self, axis: str, names: Names) -> bool:
        """True unless new names on an axis need unknown numbers, such as features of new items."""
        numbers = [
            name
            for name, axes in self.arrays().items()
            if axes[0] == "unit" and name not in self.axes and getattr(self, name) is not None
        ]
        return axis != self.unit or len(names) == len(self.coords[axis]) or not numbers

    def with_names(self, axis: str, names: Names) -> Self:
        """The same judgements in the codes of other names, all of theirs among them."""
        moved = super().with_names(axis, names)
        if axis != self.unit or moved is self:
            return moved
        place = match_names(self.unit_code, tuple(self.coords[axis]), names, axis)
        group = place[np.asarray(self.group)].astype(np.int32)
        rows = replace(moved, group=group)._at_rows(np.argsort(group, kind="stable"))
        return replace(moved, **rows, unit_code=np.arange(len(names), dtype=np.int32))

    def _unit_places(self, axis: str, code: Codes) -> dict[str, Codes]:
        return {"unit": code[np.asarray(self.unit_code)]} if axis == self.unit else {}

    @checked
    def keys(self, other: Self | None = None) -> Codes:
        """Number of each row that equal questions share, and no others."""
        if other is not None and not np.array_equal(self.unit_code, other.unit_code):
            raise DataError("questions of two parts cannot be compared; give all groups")
        return super().keys(other)

    @checked
    def joined(self, more: Self) -> Self:
        """These judgements and further ones, sorted by group."""
        both = super().joined(more)
        return both.rows(np.argsort(np.asarray(both.group), kind="stable"))

    def padded(self, rows: int) -> Self:
        """The same judgements in so many rows: those added copy the last, with a count of 0."""
        if not self.num_rows and not (self.num_units and len(self.judges)):
            raise DataError(
                f"padding without judgements needs names of {self.unit!r} and {self.judge!r}"
            )
        return super().padded(rows)._evened()

    def _evened(self) -> Self:
        """With `most` as a power of two that the rows that count keep to."""
        sizes = np.bincount(np.asarray(self.group)[np.asarray(self.weight) > 0], minlength=1)
        return replace(self, most=pad_to(int(sizes.max()), least=4), even=True)

    def unpadded(self) -> Self:
        """The judgements without rows of count 0."""
        if self.count is None or (not self.even and (np.asarray(self.count) > 0).all()):
            return self
        kept = self.rows(np.asarray(self.count) > 0)
        return replace(kept._slim(), even=False)

    def aggregate(self) -> Self:
        """Equal rows as one with a count, sorted by group; rows of count 0 are left out."""
        cells = super().aggregate()
        return cells.rows(np.argsort(np.asarray(cells.group), kind="stable"))

    def check(self) -> None:
        """Raise unless the rows are sorted by group, and each is in one; see `Judgements.check`."""
        super().check()
        group = np.asarray(self.group)
        ascends = np.append(0, np.diff(group)) >= 0
        wrong = group.dtype.kind not in "iu" or not ascends[: group.size].all()
        if group.size and (wrong or group.min() < 0 or group.max() >= self.num_units):
            problem = f"does not ascend from 0 to at most {self.num_units - 1}"
            expected = "make the container from codes of groups in any order"
            line = f"{type(self).__name__}.of_all(codes, columns, **names)"
            refuse_data("group", group[:10].tolist(), problem, expected, instead=line)

    # ---------------------------------------------------------------- storing

    def groups(self) -> dict[str, dict[str, tuple[tuple[str, ...], Shaped[np.ndarray, " ..."]]]]:
        """Arrays as a result stores them; the code of each row's group in place of `group`."""
        groups = super().groups()
        constant = groups["constant_data"]
        del constant["group"], constant[self._stored("unit_code")]
        constant[f"{self.unit}_code"] = (self.row,), np.array(self.codes(self.unit))
        units = {"unit": self.unit}
        of_units = {
            name: (tuple(units.get(axis, axis) for axis in axes), array)
            for name, (axes, array) in constant.items()
        }
        return groups | {"constant_data": of_units}

    @classmethod
    def unpack(
        cls, arrays: Mapping[str, Shaped[np.ndarray, " ..."]], flags: Mapping[str, Any]
    ) -> Self:
        """The judgements that `packed` and `flags` took apart."""
        judgements = super().unpack(arrays, flags)
        whole = replace(judgements, most=_most(judgements.group))
        return whole._evened() if judgements.even else whole

    @classmethod
    def _within(cls, stored: Mapping[str, Any], attrs: Mapping[str, Any]) -> Self:
        codes = np.arange(len(json.loads(attrs[cls.names[cls.unit]])), dtype=np.int32)
        groups = {"group": stored[f"{cls.unit}_code"], cls._stored("unit_code"): codes}
        return super()._within({**stored, **groups}, attrs)


def _most(group: Any) -> int:
    return int(np.bincount(np.asarray(group), minlength=1).max(initial=1))


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

"""What every container of human judgement offers to the verbs and the back-ends."""

from __future__ import annotations

import abc
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from raters._check import whole
from raters.errors import DataError, SettingError


class Judgements(abc.ABC):
    """Judgements as integer codes with the names beside them; a registered pytree.

    A *unit* is what the likelihood is a product over: a comparison, or an item with all its labels. Units are
    what a mini-batch takes, and what cross-validation leaves out.
    """

    unit_axis: ClassVar[str]

    @property
    @abc.abstractmethod
    def num_units(self) -> int:
        """Number of units."""

    @property
    @abc.abstractmethod
    def answered(self) -> bool:
        """Whether the outcomes are there."""

    @property
    @abc.abstractmethod
    def coords(self) -> dict[str, Sequence[Any]]:
        """The names along each axis."""

    @abc.abstractmethod
    def votes_by_annotator(self) -> np.ndarray:
        """Number of judgements of each annotator, shape (annotator,)."""

    @abc.abstractmethod
    def take(self, units: Any) -> Self:
        """The given units, with all names kept."""

    @abc.abstractmethod
    def chunks(self, size: int) -> Iterator[Self]:
        """The units in pieces of about `size`, in order."""

    @abc.abstractmethod
    def without_annotators(self, names: Iterable[Any]) -> Self:
        """The judgements of everyone else."""

    @abc.abstractmethod
    def without_outcomes(self) -> Self:
        """The questions without the answers."""

    @abc.abstractmethod
    def with_outcomes(self, outcomes: np.ndarray) -> Self:
        """These questions with answers, in the order of the rows."""

    @abc.abstractmethod
    def padded(self, rows: int) -> Self:
        """The same judgements in so many rows, those added with a count of 0."""

    @abc.abstractmethod
    def unpadded(self) -> Self:
        """The judgements without rows of count 0."""

    @abc.abstractmethod
    def warn(self) -> None:
        """Warn about what these data cannot tell."""

    @abc.abstractmethod
    def groups(self) -> dict[str, dict[str, tuple[tuple[str, ...], np.ndarray]]]:
        """What a result stores of the data: by group, the axes and a copy of each array."""

    @abc.abstractmethod
    def flags(self) -> dict[str, Any]:
        """What a result stores of the data as attributes."""

    @classmethod
    @abc.abstractmethod
    def from_result(cls, result: Any) -> Self:
        """The data that a result was fitted to."""


def check_padding(rows: Any, there: int) -> None:
    """As many rows as there are, or more."""
    whole("rows", rows)
    if rows < there:
        raise SettingError(f"rows={rows} is not possible; there are {there} rows already, such as rows={pad_to(there)}")


def pad_to(rows: int, least: int = 64) -> int:
    """The power of two that holds so many rows: compiled functions see few shapes while data grow."""
    return max(least, 1 << (rows - 1).bit_length()) if rows > 1 else least


def check_result(result: Any) -> None:
    """A result of `raters.fit`, with the data that it was fitted to."""
    if "items" not in getattr(result, "attrs", {}) or "constant_data" not in result:
        raise DataError(
            f"expected a result of rt.fit, with the data that it was fitted to; this is a {type(result).__name__} without "
            "them. Pass what rt.fit returned, or what arviz.from_netcdf read back"
        )


def names_to_json(names: Iterable[Any]) -> str:
    """Names as an attribute that NetCDF can hold."""
    names = list(names)
    return json.dumps(names if set(map(type, names)) <= {int, str} else [_plain_name(name) for name in names])


def names_from_json(text: str) -> tuple[Any, ...]:
    """The names that `names_to_json` wrote."""
    return tuple(json.loads(text))


def _plain_name(name: Any) -> int | str:
    return int(name) if isinstance(name, (int, np.integer)) and not isinstance(name, bool) else str(name)


def staying(names: Sequence[Any], dropped: Iterable[Any]) -> np.ndarray:
    """Which annotators stay when those named are dropped; an error for names that are not there."""
    if isinstance(dropped, str):
        raise DataError(f"without_annotators takes a list of names; write without_annotators([{dropped!r}])")
    gone = set(dropped)
    if unknown := gone - set(names):
        from raters._frame import shorten

        raise DataError(
            f"no annotator is called {shorten(sorted(map(repr, unknown)))}; nobody was dropped. "
            f"Names are such as {', '.join(map(repr, names[:3]))}"
        )
    return np.array([name not in gone for name in names])

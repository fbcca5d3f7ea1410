"""Verbs of several containers, which do the same with each of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, NoReturn, Self

from raters.errors import refuse
from raters.judgements.base import Judgements


class PartByPart(Judgements):
    """Rows of several containers, as a mixin of `Together`."""

    parts: tuple[Any, ...]
    part_names: tuple[str, ...]

    def __repr__(self) -> str:
        if not isinstance(self.parts, tuple):
            return f"{type(self).__name__}(...)"
        parts = ", ".join(f"{name}={part!r}" for name, part in self.by_name())
        return f"{type(self).__name__}({parts})"

    def by_name(self) -> list[tuple[str, Any]]:
        """Name and judgements of each part."""
        return list(zip(self.part_names, self.parts, strict=True))

    def _each(self, change: Any) -> Self:
        return dataclasses.replace(self, parts=tuple(change(part) for part in self.parts))

    def first_unit(self) -> Self:
        """The first unit of each part."""
        return self._each(lambda part: part.first_unit())

    def unpadded(self) -> Self:
        """The judgements without rows of count 0."""
        return self._each(lambda part: part.unpadded())

    def unanswered(self) -> Self:
        """The questions without the answers."""
        return self._each(lambda part: part.unanswered())

    def aggregate(self) -> Self:
        """Equal rows of each part as one row with a count."""
        return self._each(lambda part: part.aggregate())

    def without_judges(self, names: Iterable[Any]) -> Self:
        """The judgements of everybody else, in every part; see `Judgements.without_judges`."""
        gone = tuple(names)
        return self._each(lambda part: part.without_judges(gone))

    def without_truth(self) -> Self:
        """Without the latent classes that are known."""
        return self._each(lambda part: part.without_truth())

    def some_outcomes(self) -> dict[str, Any]:
        """Outcomes that the questions of each part can have, as `answered` takes them."""
        return {name: part.some_outcomes() for name, part in self.by_name()}

    def take(self, units: Any) -> Self:
        """The given units of each part; see `Judgements.take`."""
        return self._each(lambda part: part.take(units))

    def answered(self, outcomes: Any) -> Self:
        """These questions with outcomes."""
        answered = [part.answered(outcomes[name]) for name, part in self.by_name()]
        return dataclasses.replace(self, parts=tuple(answered))

    def joined(self, more: Self) -> Self:
        """These judgements and further ones, part by part; see `Judgements.joined`."""
        others = dict(more.by_name())
        joined = [part.joined(others[name]) for name, part in self.by_name()]
        return dataclasses.replace(self, parts=tuple(joined))

    # ---------------------------------------------------------------- of one part only

    def _refuse_all(self, what: str) -> NoReturn:
        first = self.part_names[0]
        refuse(
            "data",
            self,
            f"is of several kinds of judgement, which have no {what} in common",
            "take one part at a time",
            instead=f"together.part({first!r})",
        )

    def to_frame(self) -> NoReturn:
        """Refuse: tables are of one kind."""
        self._refuse_all("table")

    def rows(self, index: Any) -> NoReturn:
        """Refuse: rows are of one kind."""
        self._refuse_all("rows")

    def padded(self, rows: int) -> NoReturn:
        """Refuse: rows are of one kind."""
        self._refuse_all("rows")

    def questions(self) -> NoReturn:
        """Refuse: questions are of one kind."""
        self._refuse_all("questions")

    def recoded(self, like: Any, axes: Iterable[str]) -> NoReturn:
        """Refuse: codes are those of a part."""
        self._refuse_all("codes")

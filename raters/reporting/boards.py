"""Boards: one table with notes, as text, Markdown, a page and JSON."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from raters.kinds import AuditContext, kind_of
from raters.reporting import views
from raters.reporting.convergence import convergence
from raters.reporting.facts import as_json, data_facts, plain


@dataclass(frozen=True, repr=False)
class Board(abc.ABC):
    """A table with one row for each of those compared, and notes.

    Attributes
    ----------
    table : pandas.DataFrame
    notes : tuple of mapping
        What else is to be known, as numbers by name; ``"code"`` names the words for it.
    facts : mapping
        The question, the fit, and the settings.
    """

    table: pd.DataFrame
    notes: tuple[Mapping[str, Any], ...]
    facts: Mapping[str, Any]

    @classmethod
    def facts_of(
        cls,
        context: AuditContext,
        words: Mapping[str, str],
        answer: Mapping[str, Any],
        **asked: Any,
    ) -> dict[str, Any]:
        """Facts about the question, the fit, and the settings."""
        program = context.program
        question = {"data": data_facts(program.data), "model": type(program.model).__name__}
        return plain(
            {
                "schema_version": 1,
                "board": cls.__name__.lower(),
                "judged": "",
                "words": kind_of(program.data).words._asdict() | words,
                "asked": question | {"level": context.level} | asked,
                "answer": answer,
                "convergence": convergence(context),
            }
        )

    @abc.abstractmethod
    def shown(self) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
        """Rows and columns as they are shown."""

    def to_frame(self) -> pd.DataFrame:
        """A copy of the table, with names in a column."""
        return self.table.reset_index() if self.table.index.name else self.table.copy()

    def to_text(self, rows: int = 20) -> str:
        """Plain text for a terminal, with at most so many rows."""
        return views.board("txt", self._facts(), rows)

    def to_markdown(self) -> str:
        """Markdown; names are escaped."""
        return views.board("md", self._facts())

    def to_html(self) -> str:
        """One page that needs nothing else."""
        return views.board("html", self._facts())

    def to_json(self) -> str:
        """Strict JSON of the facts, the notes and all rows."""
        return as_json({**self.facts, "notes": self.notes, "rows": self.to_frame()})

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        name, model = type(self).__name__, self.facts["asked"]["model"]
        return f"{name} of {model}: {views.board_answer(self._facts())}"

    def _repr_html_(self) -> str:
        return views.board("inline.html", self._facts())

    def _facts(self) -> dict[str, Any]:
        rows, columns = self.shown()
        return plain({**self.facts, "notes": self.notes, "rows": rows, "columns": columns})

"""Tables and figures of a report as files."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from raters.auditing.audit import by_verdict
from raters.kinds import AuditContext, Section, kind_of
from raters.reporting.facts import plural_noun

# A number with a sign is no formula. What looks marked is marked once more, so that it comes back.
_FORMULA = re.compile(r"'*([=@\t\r]|[+-](?!\d*\.?\d+$))").match


def files_of(
    context: AuditContext, sections: Iterable[Section]
) -> dict[str, Callable[[Path], object]]:
    """Tables (CSV) and figures (PNG) of a report by name, each with what writes it."""
    tables = {section.key: section.table for section in sections}
    figures = {
        name: arguments for section in sections for name, arguments in section.figures.items()
    }
    audit, truths = context.audit, kind_of(context.program.data).truths
    if audit is not None:
        tables[plural_noun(audit.judge).replace(" ", "-")] = by_verdict(audit)
        figures["competences"] = {"audit": audit}
        if audit.settling is not None and truths is not None:
            # To be filled in.
            tables["truths-wanted"] = audit.settling.questions.assign(**{truths.answer: ""})
    written: dict[str, Callable[[Path], object]] = {
        f"{name}.csv": partial(write_csv, table)
        for name, table in tables.items()
        if table is not None
    }
    return written | {
        f"{name}.png": partial(_draw, name, arguments) for name, arguments in figures.items()
    }


def _draw(name: str, arguments: Mapping[str, Any], path: Path) -> None:
    from raters import figures

    getattr(figures, name)(**arguments).savefig(path)


def for_people(table: pd.DataFrame) -> pd.DataFrame:
    """Mark text that a spreadsheet would run as a formula by an apostrophe."""
    return table.map(lambda cell: f"'{cell}" if isinstance(cell, str) and _FORMULA(cell) else cell)


def unmarked(cell: str) -> str:
    """The text of a cell that `for_people` may have marked."""
    return cell[1:] if cell[:1] == "'" and _FORMULA(cell[1:]) else cell


def write_csv(
    table: pd.DataFrame, path: Path, separator: str = ",", *, people: bool = True
) -> None:
    """Write a table as CSV, for people or as it is, so that carriage returns stay within cells."""
    shown = for_people(table) if people else table
    broken = shown.map(lambda cell: isinstance(cell, str) and "\r" in cell).to_numpy().any()
    quoting = csv.QUOTE_NONNUMERIC if broken else csv.QUOTE_MINIMAL
    shown.to_csv(path, index=False, sep=separator, quoting=quoting)

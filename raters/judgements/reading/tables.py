"""Tables before their judgements are read: rows, and what is known of their columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from raters.errors import refuse_data


@dataclass(frozen=True)
class Table:
    """A table, and what is known of it.

    Parameters
    ----------
    frame : pandas.DataFrame
        Of a large file of Parquet, its first rows.
    form : str
        What the table was recognised as, for the person who gave it; empty for a plain one.
    roles : mapping
        Columns and settings of readers by role.
    notes : tuple of str
        What was left out.
    gold : pandas.DataFrame, optional
        Known truths, as `raters.audit` takes them.
    question : str
        Of an export, the question whose answers these are.
    classes : tuple of str
        Of answers with several choices, the classes of which it is asked whether they were chosen.
    path : Path, optional
        File or folder of Parquet to be read row by row.
    """

    frame: pd.DataFrame
    form: str = ""
    roles: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    gold: pd.DataFrame | None = None
    question: str = ""
    classes: tuple[str, ...] = ()
    path: Path | None = None

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(map(str, self.frame.columns))


def no_question(control: str | None) -> None:
    """Raise where a question is named, and the table has no several ones."""
    if control is not None:
        expected = "it is for exports with several questions; leave it out"
        refuse_data("control", control, "names nothing in a plain table", expected)

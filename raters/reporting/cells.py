"""Cells of tables that people open in a spreadsheet."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Literal

import pandas as pd

# A number with a sign is no formula. What looks marked is marked once more, so that it comes back.
_FORMULA = re.compile(r"'*([=@\t\r]|[+-](?!\d*\.?\d+$))").match


def for_people(table: pd.DataFrame) -> pd.DataFrame:
    """Mark text that a spreadsheet would run as a formula by an apostrophe, so that it stays
    text."""
    return table.map(lambda cell: f"'{cell}" if isinstance(cell, str) and _FORMULA(cell) else cell)


def unmarked(cell: str) -> str:
    """The text of a cell that `for_people` may have marked."""
    return cell[1:] if cell[:1] == "'" and _FORMULA(cell[1:]) else cell


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write a table for people as CSV."""
    shown = for_people(table)
    shown.to_csv(path, index=False, quoting=quoting_of(shown))


def quoting_of(table: pd.DataFrame) -> Literal[0, 2]:
    """Quoting of the cells of a CSV, so that carriage returns stay within cells."""
    broken = table.map(lambda cell: isinstance(cell, str) and "\r" in cell).to_numpy().any()
    return csv.QUOTE_NONNUMERIC if broken else csv.QUOTE_MINIMAL

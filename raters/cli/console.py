"""Output of commands: notes and warnings on standard error, tables on standard output."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pandas as pd

from raters.errors import ConvergenceWarning, DataWarning
from raters.judgements.display import display_name, visible


def note(lines: Iterable[str], quiet: bool = False) -> None:
    """Print lines for the person on standard error, unless they are not wanted."""
    for line in () if quiet else lines:
        print(f"raters: {visible(' '.join(line.split()))}", file=sys.stderr)


def show(table: pd.DataFrame) -> None:
    """Print a table, in which no text steers the terminal."""
    print(table.map(_cell).to_string(index=False))


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) >= 0.001 or not value else f"{value:.1e}"
    return value if isinstance(value, int) else display_name(value, 40)


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Warnings as one line each on standard error, and as a list; each only once."""
    seen: list[str] = []

    def keep(message: Any, *_args: Any, **_settings: Any) -> None:
        text = visible(" ".join(str(message).split()))
        if text not in seen:
            seen.append(text)
            note([f"warning: {text}"])

    with warnings.catch_warnings():
        for category in (DataWarning, ConvergenceWarning):
            warnings.filterwarnings("always", category=category)
        warnings.showwarning = keep
        yield seen

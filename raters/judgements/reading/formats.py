"""Forms of tables and exports, in the order in which they are tried."""

from __future__ import annotations

from typing import Any

from raters.judgements.reading import (
    arena,
    argilla,
    doccano,
    inspect_logs,
    label_studio,
    mturk,
    prodigy,
    wide,
)
from raters.judgements.reading.tables import Table

# Each recognises content by itself, not by the name of a file, and makes a table of it.
_FORMATS = (label_studio, argilla, prodigy, inspect_logs, doccano, mturk, arena, wide)


def recognised(content: Any, control: str | None) -> Table | None:
    """The table of an export, or of votes of an arena; None for any other content."""
    for form in _FORMATS:
        if form.recognise(content):
            return form.table(content, control)
    return None

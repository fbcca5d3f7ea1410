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
from raters.judgements.reading.files import as_table
from raters.judgements.reading.tables import Table

# Each recognises content by itself, not by the name of a file, and makes a table of it.
_OF_JSON = (label_studio, argilla, prodigy, inspect_logs, doccano)
_OF_TABLES = (label_studio, argilla, mturk, arena, wide)


def recognised(content: Any, control: str | None) -> Table | None:
    """The table of an export, or of votes of an arena; None for any other content."""
    for form in _OF_JSON:
        if form.recognise(content):
            return form.table(content, control)
    frame = as_table(content)
    for form in _OF_TABLES if frame is not None else ():
        if form.recognise(frame):
            return form.table(frame, control)
    return None

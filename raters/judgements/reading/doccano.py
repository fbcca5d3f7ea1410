"""Exports of doccano: JSON lines with a list of labels, one file for each annotator.

The form is that of ``backend/data_export`` in doccano 1.8: ``text`` or ``filename``, and the labels
in ``label`` (classification and spans) or ``cats`` (of projects with both).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from raters.errors import DataError
from raters.judgements.names import shown
from raters.judgements.reading.answers import CHOICE, Answer, chosen, has_keys, plain, table_of
from raters.judgements.reading.files import Several
from raters.judgements.reading.tables import Table

_LABELS = ("label", "cats")


def recognise(content: Any) -> bool:
    """True for rows with a list of labels, in one file or several."""
    files = list(content.values()) if isinstance(content, Several) else [content]
    return any(
        _key(one)
        for file in files
        if has_keys(file, "text") or has_keys(file, "filename")
        for one in file[:1]
    )


def table(content: Any, control: str | None) -> Table:
    """The labels of all annotators."""
    files = content if isinstance(content, Several) else {"all": content}
    answers, left = [], Counter[str]()
    for name, rows in files.items():
        if not isinstance(rows, list):
            raise DataError(f"the file {name!r} holds {shown(rows)}; expected rows of doccano")
        for row in rows:
            if not isinstance(row, Mapping) or (key := _key(row)) is None:
                raise DataError(f"a row of {name!r} is {shown(row)}; expected a list of labels")
            item = row.get("id", row.get("text", row.get("filename")))
            if isinstance(item, (dict, list, type(None))):
                raise DataError(f"a row of {name!r} has the id {shown(item)}; expected a name")
            spans = any(isinstance(one, (list, dict)) for one in row[key])
            form = "spans" if spans else CHOICE
            value = None if spans else chosen(row[key], f"a row of {name!r}")
            left["row(s) without a label"] += not row[key]  # Perhaps not looked at.
            if row[key]:
                answers.append(Answer(key, form, item, name, value, plain(row)))
    return table_of("doccano", answers, left, control)


def _key(row: Any) -> str | None:
    """The key of the labels."""
    keys = _LABELS if isinstance(row, Mapping) else ()
    return next((key for key in keys if isinstance(row.get(key), list)), None)

"""Exports of Prodigy (``db-out``): choices among options, and accepted or rejected labels.

The form is that of https://prodi.gy/docs/api-interfaces: ``answer`` is accept, reject or ignore,
``accept`` the chosen options, and annotators are named by ``_annotator_id`` or ``_session_id``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from raters.errors import DataError
from raters.judgements.names import shown
from raters.judgements.reading.answers import (
    CHOICE,
    Answer,
    chosen,
    has_keys,
    part,
    plain,
    table_of,
)
from raters.judgements.reading.files import Several
from raters.judgements.reading.tables import Table


def recognise(content: Any) -> bool:
    """True for examples with an answer and the hash of their input."""
    files = list(content.values()) if isinstance(content, Several) else [content]
    return bool(files) and all(has_keys(file, "answer", "_input_hash") for file in files)


def table(content: Any, control: str | None) -> Table:
    """The answers of all annotators to one question."""
    answers, left = list[Answer](), Counter[str]()
    for name, examples in (content if isinstance(content, Several) else {"all": content}).items():
        for example in examples:
            said = part(example, "answer", str)
            if said not in ("accept", "reject", "ignore"):
                raise DataError(f"an example has the answer {shown(said)}; expected accept, reject")
            item = example.get("_input_hash", example.get("_task_hash"))
            if not isinstance(item, (int, str)):
                raise DataError(f"an example has the _input_hash {shown(item)}; expected a number")
            question, form, value = _answer(example, said)
            if said == "ignore" or (said == "reject" and "options" in example):
                left[f"example(s) with the answer {said}"] += 1
                continue
            who = part(example, "_annotator_id", str) or part(example, "_session_id", str) or name
            data = plain({key: example[key] for key in example if not key.startswith("_")})
            data |= plain(part(example, "meta", Mapping) or {})
            time = example.get("_timestamp")
            answers.append(Answer(question, form, item, who, value, data, time))
    return table_of("Prodigy", answers, left, control)


def _answer(example: Mapping[str, Any], said: str) -> tuple[str, str, Any]:
    """Question, form and value of one example."""
    if "options" in example:
        return "choice", CHOICE, chosen(example.get("accept") or [], "an example")
    if "spans" in example or "relations" in example:
        return str(example.get("_view_id") or "spans"), "spans", None
    return part(example, "label", str) or "answer", CHOICE, [said]

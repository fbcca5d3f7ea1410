"""Records of Argilla 2: nested, as ``to_list`` and ``to_json`` give them, and flat, as rows of
Hugging Face datasets.

The forms are those of ``argilla.records._io`` in argilla 2.8: ``responses`` by question, or columns
``question.responses``, ``.users``, ``.status`` and ``question.suggestion``, ``.agent``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pandas as pd

from raters.errors import DataError
from raters.judgements.names import shown
from raters.judgements.reading import answers as reading
from raters.judgements.reading.answers import CHOICE, NUMBER, Answer, Table, part, plain

_STATUS = ("submitted", "discarded", "draft")
_RESPONSES, _SUGGESTION = ".responses", ".suggestion"


class Response(NamedTuple):
    """One response to a question about a record."""

    record: Mapping[str, Any]
    question: str
    value: Any
    user: Any
    status: str


def argilla(content: Any, control: str | None) -> Table | None:
    """The responses to one question, in records or in rows with responses and their users."""
    if isinstance(content, pd.DataFrame):
        names = list(map(str, content.columns))
        if not any(f"{name}.users" in names for name in names if name.endswith(_RESPONSES)):
            return None
        records = [_nested(row) for row in content.to_dict("records")]
    else:
        listed = list(content.values()) if isinstance(content, dict) else content
        records = listed if reading.has_keys(listed, "responses") else content
        if not reading.has_keys(records, "responses") or not reading.has_keys(records, "fields"):
            return None
    left = Counter[str]()
    people = list(_answers(responses(records), left))
    answers = [*people, *_none_chosen(people), *_answers(_suggestions(records), left)]
    return reading.table_of("Argilla", answers, left, control)


def _answers(given: Iterator[Response], left: Counter[str]) -> Iterator[Answer]:
    """Submitted responses as answers."""
    for one in given:
        if one.status != "submitted":
            left[f"response(s) that are {one.status}"] += 1
            continue
        fields = [part(one.record, name, Mapping) or {} for name in ("fields", "metadata")]
        data = plain({**fields[0], **fields[1]})
        form, value = _answer(one.value)
        item = one.record.get("id") or one.record.get("_server_id")
        yield Answer(one.question, form, item, one.user, value, data)


def _none_chosen(people: list[Answer]) -> Iterator[Answer]:
    """Empty answers to questions with several choices, by those who answered others of a record:
    there is no response without a choice."""
    several = {one.control for one in people if one.form == CHOICE and len(one.value) > 1}
    given = {(one.control, one.item, one.annotator) for one in people}
    for one in {(one.item, one.annotator): one for one in people}.values():
        for question in sorted(several):
            if (question, one.item, one.annotator) not in given:
                yield one._replace(control=question, form=CHOICE, value=[])


def responses(records: Any) -> Iterator[Response]:
    """Responses to all questions."""
    for record in records:
        for question, listed in (part(record, "responses", Mapping) or {}).items():
            if not isinstance(listed, (list, type(None))):
                raise DataError(f"{question!r} in the export is {shown(listed)}; expected list")
            for one in listed or []:
                status, user = part(one, "status", str) or "submitted", one.get("user_id")
                if status not in _STATUS:
                    raise DataError(f"a response to {question!r} has the status {shown(status)}")
                reading.check_name(user, "a user of the export")
                if status == "submitted" and one.get("value") is None:
                    raise DataError(f"a response to {question!r} has no 'value'")
                yield Response(record, question, one.get("value"), user, status)


def _suggestions(records: Any) -> Iterator[Response]:
    """Suggestions as responses of whoever made them."""
    for record in records:
        for question, one in (part(record, "suggestions", Mapping) or {}).items():
            agent = part(one, "agent", str) or "suggestion"
            if one.get("value") is not None:
                yield Response(record, question, one["value"], agent, "submitted")


def _answer(value: Any) -> tuple[str, Any]:
    """Form and value of a response."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return NUMBER, value
    if isinstance(value, list) and any(isinstance(one, (dict, list)) for one in value):
        return "ranking or spans", None
    return CHOICE, reading.chosen(value, "a response")


def _nested(row: Mapping[str, Any]) -> dict[str, Any]:
    """A flat row as a record."""
    record: dict[str, Any] = {"id": row.get("id"), "responses": {}, "suggestions": {}}
    record["fields"] = {
        str(name): value
        for name, value in row.items()
        if _RESPONSES not in str(name) and _SUGGESTION not in str(name)
    }
    for name in map(str, row):
        question = name.removesuffix(_RESPONSES)
        if name.endswith(_RESPONSES) and _listed(row[name]):
            keys = {"value": "", "user_id": ".users", "status": ".status"}
            columns = [_listed(row.get(f"{name}{end}")) for end in keys.values()]
            columns = [column or [None] * len(columns[0]) for column in columns]
            if len({len(column) for column in columns}) > 1:
                raise DataError(f"record {row.get('id')!r} has other numbers of {name!r} and users")
            rows = zip(*columns, strict=True)
            record["responses"][question] = [dict(zip(keys, one, strict=True)) for one in rows]
        question = name.removesuffix(_SUGGESTION)
        if name.endswith(_SUGGESTION) and not _is_missing(row[name]):
            agent = row.get(f"{name}.agent")
            value = row[name] if isinstance(row[name], (str, int, float)) else _listed(row[name])
            agent = None if _is_missing(agent) else agent
            record["suggestions"][question] = {"value": value, "agent": agent}
    return record


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def _listed(cell: Any) -> list[Any]:
    """A cell with several values as a list of plain ones."""
    if _is_missing(cell):
        return []
    values = cell.tolist() if hasattr(cell, "tolist") else cell
    if not isinstance(values, list):
        raise DataError(f"a column of responses holds {shown(cell)}; expected lists")
    return [one.tolist() if hasattr(one, "tolist") else one for one in values]

"""Exports of Label Studio: JSON, and JSON-MIN or CSV with one row for each annotation.

The forms are those of https://labelstud.io/guide/task_format and of the converter in
label-studio-sdk 2.1 (``label_studio_sdk/converter``).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pandas as pd

from raters.errors import DataError
from raters.judgements.names import shorten, shown
from raters.judgements.reading import answers as reading
from raters.judgements.reading.answers import CHOICE, NUMBER, SIDE, Answer, Table, part, plain

# Types of regions by the keys of their values.
_TYPES = {"choices": "choices", "rating": "rating", "number": "number", "selected": "pairwise"}
_SIDES = {"left": "first", "right": "second", "first": "first", "second": "second", "tie": "tie"}
# Keys of rows of JSON-MIN, and those by which either form is recognised.
_OF_ROWS = ("id", "annotator", "annotation_id")
_DONE = ("annotations", "completions", "predictions")
_KEYS = (*(("data", done) for done in _DONE), _OF_ROWS)
# Keys of JSON-MIN behind the answers.
_BEHIND = ("annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement")


class Annotation(NamedTuple):
    """One annotation of a task, with each of its answers by question: form and value."""

    task: Mapping[str, Any]
    users: list[Any]
    answers: list[tuple[str, str, Any]]
    is_skipped: bool
    is_truth: bool
    time: str
    is_predicted: bool = False


def label_studio(content: Any, control: str | None) -> Table | None:
    """The answers to one question, of tasks with annotations or of rows of JSON-MIN."""
    if isinstance(content, pd.DataFrame):
        if not {*_OF_ROWS} <= set(content.columns):
            return None
        return reading.table_of("Label Studio CSV", _rows(content.to_dict("records")), {}, control)
    tasks = [content] if isinstance(content, dict) else content
    if not any(reading.has_keys(tasks, *keys) for keys in _KEYS):
        return None
    if reading.has_keys(tasks, *_OF_ROWS):
        return reading.table_of("Label Studio JSON-MIN", _rows(tasks), {}, control)
    answers, left = list[Answer](), Counter[str]()
    known: dict[Any, Any] = {}
    projects = dict.fromkeys(part(task, "project", int) for task in tasks)
    if len(projects) > 1:
        raise DataError(f"the tasks are of the projects {shorten(projects)}; give one at a time")
    for task in tasks:
        number = task.get("id")
        reading.check_name(number, "the id of a task")
        if number is not None and known.setdefault(number, task.get("data")) != task.get("data"):
            raise DataError(f"two tasks have the id {number!r}; give one project at a time")
    done = [*annotations_in(tasks), *_predictions(tasks)]
    named = ((name, form) for one in done for name, form, _ in one.answers)
    questions = [name for name, form in dict.fromkeys(named) if form == CHOICE]
    predicted = {name for one in done if one.is_predicted for name, _, _ in one.answers}
    for one in done:
        answered = {name for name, _, _ in one.answers}
        # An annotation has nothing about a question of which nothing was chosen.
        none = {*questions} & (predicted if one.is_predicted else {*questions}) - answered
        given = [*one.answers, *((name, CHOICE, []) for name in questions if name in none)]
        left["annotation(s) cancelled or skipped"] += one.is_skipped
        left["annotation(s) without an answer"] += not given and not one.is_skipped
        data = plain(part(one.task, "data", Mapping) or {})
        common = one.task.get("id", data.get("question_id")), one.users[0]
        for name, form, value in () if one.is_skipped else given:
            answers.append(Answer(name, form, *common, value, data, one.time, one.is_truth))
    return reading.table_of("Label Studio JSON", answers, left, control)


def annotations_in(tasks: Any) -> Iterator[Annotation]:
    """Annotations of people."""
    for task in tasks:
        done = (part(task, "annotations", list) or []) + (part(task, "completions", list) or [])
        for one in done:
            cancelled = part(one, "was_cancelled", bool) or part(one, "skipped", bool)
            user = one.get("completed_by")
            users = [user.get("email"), user.get("id")] if isinstance(user, Mapping) else [user]
            for name in users:
                reading.check_name(name, "a user of the export")
            users = [name for name in users if name is not None] or [None]
            truth = bool(part(one, "ground_truth", bool))
            time = str(one.get("updated_at") or one.get("created_at") or "")
            answers = _answers(part(one, "result", list) or [])
            yield Annotation(task, users, answers, bool(cancelled), truth, time)


def _predictions(tasks: Any) -> Iterator[Annotation]:
    """Predictions as annotations by their models."""
    for task in tasks:
        for one in part(task, "predictions", list) or []:
            model = part(one, "model_version", str) or "prediction"
            answers = _answers(part(one, "result", list) or [])
            yield Annotation(task, [model], answers, False, False, "", True)


def _answers(regions: list[Any]) -> list[tuple[str, str, Any]]:
    """Question, form and value of each answer of an annotation; choices of one question
    together."""
    answers: dict[str, tuple[str, Any]] = {}
    for region in regions:
        value = part(region, "value", Mapping) or {}
        name = part(region, "from_name", str) or "answer"
        form, read = _answer(value, str(region.get("type")))
        if form == CHOICE and answers.get(name, ("", None))[0] == CHOICE:
            read = list(dict.fromkeys([*answers[name][1], *read]))
        elif form in (NUMBER, SIDE) and answers.get(name, (form, read)) != (form, read):
            both = f"{answers[name][1]!r} and {read!r}"
            raise DataError(f"an annotation holds the answers {both} to {name!r}; expected one")
        answers[name] = form, read
    return [(name, form, value) for name, (form, value) in answers.items()]


def _answer(value: Mapping[str, Any], kind: str) -> tuple[str, Any]:
    """Form and value of a region of an annotation."""
    if kind == "choices":
        return CHOICE, reading.chosen(part(value, kind, list) or [], "an annotation")
    if kind == "pairwise":
        if value.get("selected") not in [*_SIDES]:
            raise DataError(f"a pairwise answer is {shown(value)}; expected left or right")
        return SIDE, _SIDES[value["selected"]]
    if kind not in ("rating", "number"):
        return kind, None
    if not isinstance(value.get(kind), (int, float, str)):
        raise DataError(f"an answer is {shown(value)}; expected a {kind}")
    return NUMBER, value[kind]


def _rows(rows: list[Any]) -> list[Answer]:
    """Answers of rows with fields of the task, its number, answers by question, and who gave
    them."""
    answers = []
    for row in rows:
        names = list(row) if isinstance(row, dict) else []
        if not {*_OF_ROWS} <= {*names}:
            raise DataError(f"a row of the export is {shown(row)}, without id and annotator")
        who = row["annotator"]
        reading.check_name(who, "an annotator")
        between = names[names.index("id") + 1 : names.index("annotator")]
        data = plain({name: row[name] for name in names if name not in (*between, *_BEHIND, "id")})
        for name in between:
            if row[name] in ("", None) or row[name] != row[name]:
                continue
            form, value = _min_value(row[name])
            answers.append(Answer(name, form, row["id"], who, value, data, row.get("updated_at")))
    return answers


def _min_value(value: Any) -> tuple[str, Any]:
    """Form and value of an answer in JSON-MIN, which in CSV is JSON."""
    if isinstance(value, str) and value[:1] in ("[", "{") and "}" in value:
        try:
            value = json.loads(value)
        except ValueError:
            return CHOICE, [value]
    regions = value if isinstance(value, list) else [value]
    if regions and all(isinstance(region, Mapping) for region in regions):
        kinds = [next((_TYPES[key] for key in one if key in _TYPES), "other") for one in regions]
        typed = [{"type": kind, "value": one} for kind, one in zip(kinds, regions, strict=True)]
        ((_, form, read),) = _answers(typed)
        return form, read
    return CHOICE, reading.chosen(value, "an annotation")

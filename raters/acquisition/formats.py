"""Questions and answers in the formats of Label Studio and Argilla, so that people can answer
there.

Neither package is needed: the formats are JSON. They were checked against label-studio-sdk 2.1 and
argilla 2.8, and are documented at https://labelstud.io/guide/tasks (tasks),
https://labelstud.io/guide/task_format (annotations), https://labelstud.io/tags/pairwise and
https://labelstud.io/tags/choices (interfaces), and
https://docs.argilla.io/latest/how_to_guides/import_export/ (records and settings).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np
import xarray as xr

from raters.errors import DataError, refuse, refuse_data
from raters.errors.validation import checked, instance
from raters.judgements.comparisons import Side
from raters.judgements.names import check_once, name_list, name_text, shorten, shown, warn_data
from raters.judgements.reading.answers import Table, has_keys, part
from raters.judgements.reading.argilla import responses
from raters.judgements.reading.exports import recognised
from raters.judgements.reading.label_studio import Annotation, annotations_in

# Columns of questions that are not names of what is asked about.
_BESIDE = {"by", "score", "answers", "batch", "status", "answer"}
# Choices of the interfaces about pairs, which are also possible names of classes.
_SIDES = ("first", "second", "tie")
# Characters that XML cannot hold, in whatever spelling (https://www.w3.org/TR/xml/#charsets).
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

# Moment of a response, its question, its users, and the answer, None where it was skipped.
_Response = tuple[str, str, Any, Any]
# Entries that are written, what a tool wrote, texts by name, and annotators by user.
Entries = list[dict[str, Any]]
Entry = Mapping[str, Any]
Export = Sequence[Entry]
Texts = Mapping[Any, str] | None


class Imported(NamedTuple):
    """Content of an export: `answers` is for `Campaign.tell`, the rest for a person to look at."""

    answers: dict[str, Any]
    skipped: list[str]
    open: list[str]
    by_others: list[tuple[str, Any, Any]]
    disputed: dict[str, list[Any]]


# ---------------------------------------------------------------- questions


def roles_of(questions: xr.Dataset, ties: bool = False) -> list[str]:
    """Columns with the names that questions are about."""
    roles = [str(name) for name in questions.data_vars if name not in _BESIDE]
    if "id" not in questions.coords or "by" not in questions or not roles:
        refuse_data("questions", expected="give a table of them", instead="campaign.ask()")
    if ties and "pair" not in questions.attrs:
        refuse("ties", ties, expected="it is for questions about two items; leave it out")
    return roles


def options_of(questions: xr.Dataset, ties: bool = False) -> list[str]:
    """Answers to choose from, as text."""
    if "pair" in questions.attrs:
        return list(_SIDES if ties else _SIDES[:2])
    answers = questions.attrs.get("answers")
    if "answers" in questions:
        each = questions["answers"].values.ravel()
        answers = list(dict.fromkeys(answer for some in each for answer in some))
    if not answers or questions.attrs.get("ordered"):
        expected = "write orders into a table, such as 'tea > milk > beer', the best first"
        refuse_data("questions", problem="have no list of answers", expected=expected)
    return [name_text(name) for name in answers]


def title_of(questions: xr.Dataset) -> str:
    """An instruction that suits the questions."""
    return str(questions.attrs.get("title", "Which of these is right?"))


class _Row(NamedTuple):
    """A question: the names that it is about, the texts to show for them, and its own answers."""

    id: str
    names: dict[str, Any]
    texts: dict[str, str]
    answers: Sequence[str]


def rows_of(questions: xr.Dataset, texts: Texts) -> Iterator[_Row]:
    """Questions with their names and texts."""
    roles = roles_of(questions)
    options_of(questions)
    check_once(texts or {}, "texts")
    lookup = {name_text(name): text for name, text in (texts or {}).items()}
    for name, text in lookup.items():
        if not isinstance(text, str) or not text.strip():
            refuse_data("texts", problem=f"has {text!r} for {name!r}", expected="give a text")
    columns = {name: questions[name].values.tolist() for name in (*roles, "by", "id")}
    for place, question in enumerate(columns["id"]):
        answers = questions["answers"].values[place] if "answers" in questions else ()
        names = {f"{role}_name": columns[role][place] for role in roles}
        shown = {role: name_text(columns[role][place]) for role in roles}
        if texts is not None:
            for role in set(roles) - set(questions.attrs.get("plain", ())):
                shown[role] = _text_of(shown[role], answers, lookup)
        yield _Row(str(question), {"by": columns["by"][place], **names}, shown, answers)


def _text_of(name: str, answers: Sequence[str], lookup: Mapping[str, str]) -> str:
    """Text to show for a name; for a set to choose from, those of its members."""
    if name in lookup:
        return lookup[name]
    missing = [answer for answer in answers if answer not in lookup] or [name] * (not answers)
    if missing:
        refuse_data("texts", problem=f"has none for {missing[0]!r}", expected="give one for each")
    return "\n\n".join(f"{answer}: {lookup[answer]}" for answer in answers)


# ---------------------------------------------------------------- Label Studio


@checked
def to_label_studio(questions: xr.Dataset, texts: Texts = None) -> Entries:
    """Questions as tasks of Label Studio, with a text to show for each name; write them as JSON and
    import that file."""
    tasks = []
    for row in rows_of(questions, texts):
        data = {"question_id": row.id, **row.names, **row.texts}
        if row.answers:
            data["answers"] = [{"value": answer} for answer in row.answers]
        tasks.append({"data": data, "meta": {"question_id": row.id}})
    return tasks


@checked
def label_studio_config(questions: xr.Dataset, *, ties: bool = False) -> str:
    """Labelling interface for the tasks: two texts side by side, or a text with a choice of
    answers."""
    return _settings("label_studio.xml.jinja", questions, ties)


def _settings(template: str, questions: xr.Dataset, ties: bool) -> str:
    import jinja2  # Imported once it is wanted.

    made = jinja2.Environment(trim_blocks=True, undefined=jinja2.StrictUndefined)
    made.filters["quoted"] = _quoted
    parts: dict[str, Any] = {"title": title_of(questions), "ties": ties}
    parts |= {"roles": roles_of(questions, ties), "options": options_of(questions, ties)}
    parts |= {"pair": questions.attrs.get("pair", ()), "each": "answers" in questions}
    text = files("raters.acquisition").joinpath(template).read_text("utf-8")
    return made.from_string(text).render(parts)


def _quoted(text: str) -> str:
    """Text as an attribute of XML."""
    if wrong := _NO_XML.search(text):
        refuse_data("questions", wrong[0], "is a character which XML cannot hold", "leave it out")
    return quoteattr(text)


def from_label_studio(export: Export, people: Mapping[Any, Any] | None = None) -> Imported:
    """Read answers from the JSON export of Label Studio (not JSON-MIN, which does not say who
    skipped a task); `people` maps its users to annotators."""
    asked: dict[str, Any] = {}
    tasks = _entries(export, "annotations")
    for task in tasks:
        if (question := _question_of(task)) is None:
            raise DataError(f"a task has no 'question_id' in its data: {shown(task)}")
        asked.setdefault(question, (part(task, "data", Mapping) or {}).get("by"))
    given: list[_Response] = []
    for one in annotations_in(tasks):
        if one.is_skipped or one.answers:
            answer = None if one.is_skipped else _said(one)
            given.append((one.time, str(_question_of(one.task)), one.users, answer))
    return _collected(asked, given, people)


def _question_of(task: Any) -> str | None:
    """The question that a task was written for."""
    data, meta = (part(task, name, Mapping) or {} for name in ("data", "meta"))
    return part(data if "question_id" in data else meta, "question_id", str) or None


def _said(annotation: Annotation) -> Any:
    """The answer in an annotation: a side, or a choice of one."""
    values = [value for _, _, value in annotation.answers]
    listed = [value if isinstance(value, list) else [value] for value in values]
    return _single(listed[0] if len(listed) == 1 else values)


def _single(values: list[Any]) -> Any:
    """The only answer; one that was chosen in an interface of raters is never a name of an item."""
    if len(values) != 1 or not isinstance(values[0], str):
        raise DataError(f"an annotation holds the answers {shown(values)}; expected a single one")
    return Side(values[0]) if values[0] in _SIDES else values[0]


# ---------------------------------------------------------------- Argilla


@checked
def to_argilla(questions: xr.Dataset, texts: Texts = None) -> Entries:
    """Questions as records of Argilla 2, with a text to show for each name:
    ``dataset.records.log([rg.Record.from_dict(record) for record in records])``."""
    records = []
    for row in rows_of(questions, texts):
        metadata = {key: name_text(name) for key, name in row.names.items()}
        record = {"id": row.id, "fields": row.texts, "metadata": metadata}
        records.append(record | {"suggestions": {}, "responses": {}, "vectors": {}})
    return records


@checked
def argilla_settings(questions: xr.Dataset, *, ties: bool = False) -> dict[str, Any]:
    """Settings of the dataset for these records: write them as JSON, and read that with
    ``rg.Settings.from_json``."""
    settings: dict[str, Any] = json.loads(_settings("argilla.json.jinja", questions, ties))
    return settings


def from_argilla(records: Export, people: Mapping[Any, Any] | None = None) -> Imported:
    """Read answers from records of Argilla 2, as ``dataset.records.to_list()`` or ``to_json`` gives
    them; `people` maps its users to annotators."""
    asked: dict[str, Any] = {}
    for record in _entries(records, "responses"):
        if not (question := part(record, "id", str)):
            raise DataError(f"a record has no 'id': {shown(record)}")
        asked.setdefault(question, (part(record, "metadata", Mapping) or {}).get("by"))
    given: list[_Response] = []
    for one in responses(records):
        if one.question == "answer" and one.status != "draft":
            answer = None if one.status == "discarded" else _single([one.value])
            given.append(("", one.record["id"], [one.user], answer))
    return _collected(asked, given, people)


# ---------------------------------------------------------------- labels


@checked
def with_predictions(
    export: Export, labels: Any, *, control: str | None = None, model_version: str = "raters"
) -> Entries:
    """An export of Label Studio (JSON) or Argilla (nested records) with labels as predictions or
    suggestions, each with its probability as the score.

    Parameters
    ----------
    export : list
        What the tool wrote, and `raters.read` read.
    labels : xarray.Dataset or pandas.DataFrame
        ``items`` of an audit, or any table with columns ``item``, ``label`` and ``probability``.
        What has no label stays as it is.
    control : str, optional
        The question whose answers were read, where there are several.
    model_version : str
        Name of the predictions, which `raters.read` reads as that of a judge. A record of Argilla
        has one suggestion for a question, which this replaces.

    Examples
    --------
    >>> from raters.acquisition import formats
    >>> task = {"id": 7, "data": {"text": "Great!"}, "annotations": [
    ...     {"completed_by": 1, "result": [{"from_name": "mood", "to_name": "text",
    ...      "type": "choices", "value": {"choices": ["good"]}}]}]}
    >>> labels = {"item": [7], "label": ["good"], "probability": [0.9]}
    >>> formats.with_predictions([task], labels)[0]["predictions"][0]["score"]
    0.9
    """
    table = _exported(export, control)
    rows = _columns_of(labels, "item", "label", "probability")
    of_item = {name_text(item): more for item, *more in rows}
    written = []
    for entry in export:
        known = {one: of_item[item] for item, one in _items(entry, table) if item in of_item}
        if known:
            chosen = [one for one, (label, _) in known.items() if name_text(label) == "yes"]
            label = chosen if table.classes else next(iter(known.values()))[0]
            score = math.prod(chance for _, chance in known.values())
            entry = _predicted(entry, table.question, label, score, model_version)
        written.append(dict(entry))
    return written


@checked
def relabel_queue(export: Export, questions: Any, *, control: str | None = None) -> Entries:
    """Tasks of Label Studio or records of Argilla that are to be answered again, without their
    answers.

    Parameters
    ----------
    export : list
        What the tool wrote, and `raters.read` read.
    questions : xarray.Dataset or pandas.DataFrame
        Of `raters.suggest`: ``item``, and ``by`` or ``annotator``. Tasks come in this order, each
        once, with those who are to be asked in ``meta`` (Label Studio) or ``metadata`` (Argilla).
    control : str, optional
        The question whose answers were read, where there are several.

    Examples
    --------
    >>> from raters.acquisition import formats
    >>> task = {"id": 7, "data": {"text": "Great!"}, "annotations": [
    ...     {"completed_by": 1, "result": [{"from_name": "mood", "to_name": "text",
    ...      "type": "choices", "value": {"choices": ["good"]}}]}]}
    >>> formats.relabel_queue([task], {"item": [7], "by": ["ann"]})
    [{'id': 7, 'data': {'text': 'Great!'}, 'meta': {'by': 'ann'}}]
    """
    table = _exported(export, control)
    people = [name for name in ("by", "annotator") if name in questions]
    if "item" not in questions or not people:
        refuse_data("questions", expected="give a table of them", instead="raters.suggest(...)")
    entries = {item: entry for entry in export for item, _ in _items(entry, table)}
    asked: dict[Any, list[str]] = {}
    for item, who in _columns_of(questions, "item", people[0]):
        if name_text(item) not in entries:
            refuse_data("questions", item, "is no item of this export", "leave it out")
        asked.setdefault(entries[name_text(item)]["id"], []).append(name_text(who))
    tasks = {entry["id"]: entry for entry in entries.values()}
    return [_unanswered(tasks[task], ", ".join(dict.fromkeys(by))) for task, by in asked.items()]


def _unanswered(entry: Entry, by: str) -> dict[str, Any]:
    """A task or record without its answers, with those who are to be asked."""
    kept = {"id", "data", "predictions", "fields", "suggestions", "vectors"}
    common = {name: value for name, value in entry.items() if name in kept}
    if "data" in entry:
        return common | {"meta": {**(entry.get("meta") or {}), "by": by}}
    return common | {"responses": {}, "metadata": {**(entry.get("metadata") or {}), "by": by}}


def _exported(export: Any, control: str | None) -> Table:
    """The answers of an export of Label Studio or Argilla with its tasks or records."""
    table = recognised(export, control)
    nested = has_keys(export, "data") or has_keys(export, "fields")
    if table is None or not nested or not table.form.startswith(("Label Studio JSON", "Argilla")):
        raise DataError("this is no JSON of Label Studio or Argilla; give what the tool wrote")
    return table


def _columns_of(table: Any, *names: str) -> Iterator[tuple[Any, ...]]:
    """Columns of a table of any library, row by row."""
    frame = table.to_dataframe().reset_index() if isinstance(table, xr.Dataset) else table
    return zip(*(np.asarray(frame[name]).tolist() for name in names), strict=True)


def _items(entry: Entry, table: Table) -> Iterator[tuple[str, str]]:
    """Items that a task stands for, as they were read: itself, or each class of it."""
    beside = entry.get("data") or entry.get("metadata") or {}
    name = name_text(beside.get("item_name", entry["id"]))
    for one in table.classes or ("",):
        yield (f"{name}={one}" if "features" in table.roles else name), one


def _predicted(entry: Entry, question: str, label: Any, score: float, model: str) -> dict[str, Any]:
    """A task with one more prediction, or a record with a suggestion."""
    if "data" not in entry:
        suggestion = {"value": label, "score": score, "agent": model}
        return {**entry, "suggestions": {**(entry.get("suggestions") or {}), question: suggestion}}
    done = [*(entry.get("annotations") or []), *(entry.get("predictions") or [])]
    regions = [region for one in done for region in one.get("result") or []]
    shown = [one for one in regions if one.get("from_name") == question and "to_name" in one]
    to_name = shown[0]["to_name"] if shown else "text"
    choices = list(map(name_text, label)) if isinstance(label, list) else [name_text(label)]
    result = {"from_name": question, "to_name": to_name, "type": "choices"}
    results = [result | {"value": {"choices": choices}}] if choices else []
    prediction = {"model_version": model, "score": score, "result": results}
    return {**entry, "predictions": [*(entry.get("predictions") or []), prediction]}


# ---------------------------------------------------------------- content of an export


def _entries(export: Any, key: str) -> Any:
    """Return the entries of an export, which all have `key`."""
    whole = isinstance(export, (list, tuple))
    if not whole or not all(isinstance(entry, Mapping) and key in entry for entry in export):
        expected = f"it must be a list of JSON, in which each entry has {key!r}"
        refuse_data("source", problem="is of another tool", expected=expected)
    return export


def _collected(asked: Mapping[str, Any], responses: list[_Response], people: Any) -> Imported:
    """Sort the responses to each question, given with the annotator who was asked."""
    if people is not None:
        instance("people", people, Mapping, "a mapping of users to annotators", "people={1: 'ann'}")
        check_once(people, "people")
        people = dict(zip(map(str, people), name_list(people.values(), "people"), strict=True))
    lookup: Mapping[str, Any] = people or {}
    last: dict[str, dict[Hashable, tuple[Any, Any]]] = {question: {} for question in asked}
    for _, question, users, answer in sorted(responses, key=lambda response: response[0]):
        # A user may have a number and an address.
        named = [lookup[str(user)] for user in users if str(user) in lookup]
        person = next(iter(named or users), None)
        # Of one person the last counts; those who are not named are different people.
        last[question][object() if person in (None, "") else person] = person, answer
    there = {name_text(who) for answers in last.values() for who in answers}
    if absent := [user for user, who in lookup.items() if name_text(who) not in there]:
        warn_data(f"{shorten(absent)}: no such user gave a response in this export")
    result = Imported({}, [], [], [], {})
    for question, answers in last.items():
        theirs, by = [], name_text(asked[question])
        for person, answer in answers.values():
            if not lookup or (person is not None and name_text(person) == by):
                theirs.append(answer)
            elif answer is not None:
                result.by_others.append((question, person, answer))
        different = list(dict.fromkeys(answer for answer in theirs if answer is not None))
        if len(different) == 1:
            result.answers[question] = different[0]
        elif different:
            result.disputed[question] = different
        else:
            (result.skipped if theirs else result.open).append(question)
    return result

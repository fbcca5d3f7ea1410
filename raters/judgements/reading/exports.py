"""Tables and exports, recognised by their content: those of doccano, inspect_ai, Mechanical Turk
and Prodigy are read here."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pandas as pd

from raters.errors import DataError
from raters.judgements.names import shown
from raters.judgements.reading import answers as reading
from raters.judgements.reading.answers import CHOICE, NUMBER, Answer, Table, has_keys, part, plain
from raters.judgements.reading.argilla import argilla
from raters.judgements.reading.columns import read_number
from raters.judgements.reading.files import Several, as_table
from raters.judgements.reading.label_studio import label_studio
from raters.judgements.reading.wide import arena, lists

# Keys of the labels of doccano: of classification and spans, and of projects with both.
_LABELS = ("label", "cats")
# Right and wrong, however a scorer of inspect_ai writes them.
_RIGHT, _WRONG = "C", "I"
_SWITCHES = {"true": True, "false": False, "": False}


def recognised(content: Any, control: str | None) -> Table | None:
    """The table of an export, or of votes of an arena; None for any other content."""
    frame = as_table(content)
    of_json: list[Callable[..., Table | None]] = [label_studio, argilla, prodigy, inspect_ai]
    forms = [(form, content) for form in of_json]
    if frame is not None:
        forms += [(form, frame) for form in (label_studio, argilla, mechanical_turk, arena, lists)]
    # Rows with lists are of doccano where nobody is named beside them.
    for form, known in [*forms, (doccano, content)]:
        if (table := form(known, control)) is not None:
            return table
    return None


def _files(content: Any) -> dict[str, Any]:
    """Files of an export by the names of their annotators."""
    return content if isinstance(content, Several) else {"all": content}


# ---------------------------------------------------------------- doccano


def doccano(content: Any, control: str | None) -> Table | None:
    """The labels of all annotators, in rows with a list of labels, one file for each annotator.

    The form is that of ``backend/data_export`` in doccano 1.8: ``text`` or ``filename``, and the
    labels in ``label`` (classification and spans) or ``cats`` (of projects with both).
    """
    files = _files(content)
    whole = [one for key in ("text", "filename") for one in files.values() if has_keys(one, key)]
    if not any(_labels_key(file[0]) for file in whole):
        return None
    answers, left = list[Answer](), Counter[str]()
    for name, rows in files.items():
        if not isinstance(rows, list):
            raise DataError(f"the file {name!r} holds {shown(rows)}; expected rows of doccano")
        for row in rows:
            if not isinstance(row, Mapping) or (key := _labels_key(row)) is None:
                raise DataError(f"a row of {name!r} is {shown(row)}; expected a list of labels")
            item = row.get("id", row.get("text", row.get("filename")))
            reading.check_name(item, f"the id of a row of {name!r}", optional=False)
            spans = any(isinstance(one, (list, dict)) for one in row[key])
            form = "spans" if spans else CHOICE
            value = None if spans else reading.chosen(row[key], f"a row of {name!r}")
            left["row(s) without a label"] += not row[key]  # Perhaps not looked at.
            if row[key]:
                answers.append(Answer(key, form, item, name, value, plain(row)))
    return reading.table_of("doccano", answers, left, control)


def _labels_key(row: Any) -> str | None:
    """The key of the labels."""
    keys = _LABELS if isinstance(row, Mapping) else ()
    return next((key for key in keys if isinstance(row.get(key), list)), None)


# ---------------------------------------------------------------- Prodigy


def prodigy(content: Any, control: str | None) -> Table | None:
    """Choices among options, and accepted or rejected labels, of all annotators.

    The form is that of https://prodi.gy/docs/api-interfaces (``db-out``): ``answer`` is accept,
    reject or ignore, ``accept`` the chosen options, and annotators are named by ``_annotator_id``
    or ``_session_id``.
    """
    files = _files(content)
    known = [has_keys(one, "answer", "_input_hash") for one in files.values()]
    if not known or not all(known):
        return None
    answers, left = list[Answer](), Counter[str]()
    for name, examples in files.items():
        for example in examples:
            said = part(example, "answer", str)
            if said not in ("accept", "reject", "ignore"):
                raise DataError(f"an example has the answer {shown(said)}; expected accept, reject")
            item = example.get("_input_hash", example.get("_task_hash"))
            reading.check_name(item, "the _input_hash of an example", optional=False)
            question, form, value = _example_answer(example, said)
            if said == "ignore" or (said == "reject" and "options" in example):
                left[f"example(s) with the answer {said}"] += 1
                continue
            who = part(example, "_annotator_id", str) or part(example, "_session_id", str) or name
            data = plain({key: example[key] for key in example if not key.startswith("_")})
            data |= plain(part(example, "meta", Mapping) or {})
            time = example.get("_timestamp")
            answers.append(Answer(question, form, item, who, value, data, time))
    return reading.table_of("Prodigy", answers, left, control)


def _example_answer(example: Mapping[str, Any], said: str) -> tuple[str, str, Any]:
    """Question, form and value of one example."""
    if "options" in example:
        return "choice", CHOICE, reading.chosen(example.get("accept") or [], "an example")
    if "spans" in example or "relations" in example:
        return str(example.get("_view_id") or "spans"), "spans", None
    return part(example, "label", str) or "answer", CHOICE, [said]


# ---------------------------------------------------------------- inspect_ai


def inspect_ai(content: Any, control: str | None) -> Table | None:
    """The scores of all samples by all scorers.

    The form is that of an ``EvalLog`` written as JSON (https://inspect.aisi.org.uk/eval-logs.html):
    ``samples`` with ``id``, ``epoch``, ``target`` and ``scores`` by scorer, whose ``value`` is C
    (correct), I (incorrect), P, N, a number, or several by name.
    """
    files = content if isinstance(content, list) else list(_files(content).values())
    if not files or not all(has_keys([log], "eval", "samples") for log in files):
        return None
    answers, left = list[Answer](), Counter[str]()
    samples = [(log, sample) for log in files for sample in part(log, "samples", list) or []]
    epochs = {part(sample, "epoch", int) for _, sample in samples}
    for log, sample in samples:
        about = part(log, "eval", Mapping) or {}
        names = [part(about, "task", str), part(about, "model", str)] if len(files) > 1 else []
        number = sample.get("id")
        reading.check_name(number, "the id of a sample", optional=False)
        names += [f"{number}" if len(epochs) < 2 else f"{number} #{sample.get('epoch')}"]
        data = plain({"model": about.get("model"), "task": about.get("task"), "sample": number})
        data |= plain({name: sample.get(name) for name in ("epoch", "target")})
        item = number if len(names) == 1 and len(epochs) < 2 else "/".join(map(str, names))
        scores = list(_scores(sample))
        left["sample(s) without a score"] += not scores
        answers += [Answer(q, NUMBER, item, scorer, value, data) for q, scorer, value in scores]
    return reading.table_of(
        "inspect_ai", _changed(answers, _are_letters, _as_letter), left, control
    )


def _scores(sample: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Question, scorer and value of each score of a sample."""
    for scorer, score in (part(sample, "scores", Mapping) or {}).items():
        value = score.get("value") if isinstance(score, Mapping) else score
        several = value if isinstance(value, Mapping) else {"score": value}
        for name, one in several.items():
            if isinstance(one, (list, dict)):
                raise DataError(f"{scorer!r} scored {shown(one)}; expected a number or a letter")
            if one is not None and one == one:
                yield str(name), str(scorer), one


def _changed(
    answers: list[Answer], test: Callable[[list[Any]], bool], change: Callable[[Answer], Answer]
) -> list[Answer]:
    """Answers, changed for the questions whose values pass a test."""
    values: dict[str, list[Any]] = {}
    for answer in answers:
        values.setdefault(answer.control, []).append(answer.value)
    chosen = {question for question, some in values.items() if test(some)}
    return [change(answer) if answer.control in chosen else answer for answer in answers]


def _are_letters(values: list[Any]) -> bool:
    """True for scores of right and wrong."""
    numbers = [read_number(one) for one in values]
    words = [one for one, number in zip(values, numbers, strict=True) if number != number]
    return any(isinstance(one, str) for one in words) or {*numbers} <= {0.0, 1.0}


def _as_letter(answer: Answer) -> Answer:
    """A score as a choice."""
    letter = {1.0: _RIGHT, 0.0: _WRONG}.get(read_number(answer.value), answer.value)
    data = {**answer.data, "right": int(letter == _RIGHT)}  # for a model of responses
    return answer._replace(form=CHOICE, value=reading.chosen(letter, "a score"), data=data)


# ---------------------------------------------------------------- Mechanical Turk


def mechanical_turk(frame: Any, control: str | None) -> Table | None:
    """The answers to one question of the HITs, with a row for each assignment.

    Columns are those of the "Review results" file of https://requester.mturk.com: ``HITId``,
    ``WorkerId``, ``AssignmentStatus``, ``Input.*`` and ``Answer.*``; radio buttons of a crowd form
    are a column of true or false for each choice, or JSON in ``Answer.taskAnswers``.
    """
    names = list(map(str, frame.columns)) if isinstance(frame, pd.DataFrame) else []
    of_answers = [name for name in names if name.startswith("Answer.")]
    if not of_answers or not {"HITId", "WorkerId"} <= {*names}:
        return None
    answers, left = list[Answer](), Counter[str]()
    for row in frame.fillna("").to_dict("records"):
        status = str(row.get("AssignmentStatus", ""))
        if status.lower() == "rejected" or str(row.get("Reject") or ""):
            left["assignment(s) rejected"] += 1
            continue
        data = plain({name: row[name] for name in row if str(name).startswith("Input.")})
        time = row.get("SubmitTime")
        for question, value in _assignment({name: row[name] for name in of_answers}).items():
            who = row["HITId"], row["WorkerId"]
            answers.append(Answer(question, CHOICE, *who, value, data, time))
    answers = [one for one in _changed(answers, _are_numbers, _as_number) if one.value is not None]
    return reading.table_of("Mechanical Turk", answers, left, control)


def _assignment(cells: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Choices of an assignment, by question."""
    said: dict[str, list[Any]] = {}
    for name, value in cells.items():
        question = name.removeprefix("Answer.")
        head, _, choice = question.rpartition(".")
        if question == "taskAnswers":
            said |= _task_answers(str(value))
        elif head and choice != "label" and str(value).lower() in _SWITCHES:
            said.setdefault(head, [])
            said[head] += [choice] * _SWITCHES[str(value).lower()]
        else:
            said[head if choice == "label" and head else question] = [value] * (value != "")
    return said


def _task_answers(text: str) -> dict[str, list[Any]]:
    """Answers of a crowd form, by question."""
    try:
        (form,) = json.loads(text)
        said = {str(name): _chosen_in_form(value) for name, value in form.items()}
    except (ValueError, TypeError, AttributeError) as error:
        expected = 'such as [{"sentiment": {"label": "Positive"}}]'
        raise DataError(f"Answer.taskAnswers is {shown(text)}; expected JSON {expected}") from error
    return said


def _chosen_in_form(value: Any) -> list[Any]:
    """Choices of one element of a crowd form."""
    if isinstance(value, Mapping):
        label = value.get("label", value.get("labels"))
        value = [name for name, on in value.items() if on is True] if label is None else label
    return value if isinstance(value, list) else [value]


def _are_numbers(values: list[list[Any]]) -> bool:
    """True for choices that are more than two different numbers alone."""
    said = {str(one) for value in values for one in value}
    return len(said) > 2 and all(read_number(one) == read_number(one) for one in said)


def _as_number(answer: Answer) -> Answer:
    """A choice as a rating, None without one."""
    return answer._replace(form=NUMBER, value=next(iter(answer.value), None))

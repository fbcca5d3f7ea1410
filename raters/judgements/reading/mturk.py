"""Results of Mechanical Turk as CSV: a row for each assignment.

Columns are those of the "Review results" file of https://requester.mturk.com: ``HITId``,
``WorkerId``, ``AssignmentStatus``, ``Input.*`` and ``Answer.*``; radio buttons of a crowd form are
a column of true or false for each choice, or JSON in ``Answer.taskAnswers``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from raters.errors import DataError
from raters.judgements.names import shown
from raters.judgements.reading.answers import CHOICE, NUMBER, Answer, plain, table_of
from raters.judgements.reading.columns import read_number
from raters.judgements.reading.tables import Table

_SWITCHES = {"true": True, "false": False, "": False}


def recognise(frame: pd.DataFrame) -> bool:
    """True for a table of workers, HITs and answers."""
    names = list(map(str, frame.columns))
    return {"HITId", "WorkerId"} <= {*names} and any(one.startswith("Answer.") for one in names)


def table(frame: pd.DataFrame, control: str | None) -> Table:
    """The answers to one question of the HITs."""
    answers, left = list[Answer](), Counter[str]()
    for row in frame.fillna("").to_dict("records"):
        status = str(row.get("AssignmentStatus", ""))
        if status.lower() == "rejected" or str(row.get("Reject") or ""):
            left["assignment(s) rejected"] += 1
            continue
        data = plain({name: row[name] for name in row if str(name).startswith("Input.")})
        time = row.get("SubmitTime")
        for question, value in _said(row).items():
            who = row["HITId"], row["WorkerId"]
            answers.append(Answer(question, CHOICE, *who, value, data, time))
    return table_of("Mechanical Turk", _with_numbers(answers), left, control)


def _said(row: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Choices of an assignment, by question."""
    said: dict[str, list[Any]] = {}
    for name in (str(name) for name in row if str(name).startswith("Answer.")):
        question, value = name.removeprefix("Answer."), row[name]
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
        said = {str(name): _chosen(value) for name, value in form.items()}
    except (ValueError, TypeError, AttributeError) as error:
        expected = 'such as [{"sentiment": {"label": "Positive"}}]'
        raise DataError(f"Answer.taskAnswers is {shown(text)}; expected JSON {expected}") from error
    return said


def _chosen(value: Any) -> list[Any]:
    """Choices of one element of a crowd form."""
    if isinstance(value, Mapping):
        label = value.get("label", value.get("labels"))
        value = [name for name, on in value.items() if on is True] if label is None else label
    return value if isinstance(value, list) else [value]


def _with_numbers(answers: Iterable[Answer]) -> list[Answer]:
    """Answers in which questions with more than two different numbers alone are of ratings."""
    answers, said = list(answers), dict[str, set[Any]]()
    for answer in answers:
        said.setdefault(answer.control, set()).update(map(str, answer.value))
    numbers = {
        name
        for name, values in said.items()
        if len(values) > 2 and all(read_number(value) == read_number(value) for value in values)
    }
    answers = [answer for answer in answers if answer.value or answer.control not in numbers]
    return [
        one._replace(form=NUMBER, value=one.value[0]) if one.control in numbers else one
        for one in answers
    ]

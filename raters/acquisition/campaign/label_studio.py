"""Tasks, interfaces and exports of Label Studio."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

import xarray as xr

from raters.acquisition.campaign.exports import (
    SIDES,
    Imported,
    Response,
    all_answers,
    answer_of,
    collected,
    listed,
    mapping,
    mappings,
    pair_of,
    people_of,
    question_rows,
    roles_of,
    title_of,
)
from raters.errors import DataError
from raters.errors.validation import checked
from raters.judgements.names import shown
from raters.judgements.pairs import Side

_SIDES = {"left": Side("first"), "right": Side("second")}
_SINGLE = 'choice="single" required="true"'
# Characters that XML cannot hold, in whatever spelling (https://www.w3.org/TR/xml/#charsets).
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@checked
def to_label_studio(
    questions: xr.Dataset, texts: Mapping[Any, str] | None = None
) -> list[dict[str, Any]]:
    """Questions as tasks of Label Studio; write them as JSON and import that file."""
    tasks = []
    for row in question_rows(questions, texts):
        data = {"question_id": row["id"], "by": row["by"], **row["names"], **row["texts"]}
        if row["answers"]:
            data["answers"] = [{"value": answer} for answer in row["answers"]]
        tasks.append({"data": data, "meta": {"question_id": row["id"]}})
    return tasks


@checked
def label_studio_config(
    questions: xr.Dataset,
    *,
    ties: bool = False,
    answers: Sequence[Any] | None = None,
    title: str | None = None,
) -> str:
    """Labelling interface for the tasks: two texts side by side, or a text with a choice of
    answers."""
    roles, pair = roles_of(questions), pair_of(questions, ties=ties)
    shown = [f"  {_text(role)}" for role in roles if role not in (pair or ())]
    if pair is not None:
        sides = [f'    <View style="flex: 1">{_text(side)}</View>' for side in pair]
        shown += ['  <View style="display: flex; gap: 2em">', *sides, "  </View>"]
        control = (
            _choices(pair[0], SIDES)
            if ties
            else [f'  <Pairwise name="answer" toName="{",".join(pair)}"/>']
        )
    elif answers is None and "answers" in questions:  # each task brings its own
        control = [f'  <Choices name="answer" toName="{roles[0]}" {_SINGLE} value="$answers"/>']
    else:
        control = _choices(roles[0], all_answers(questions, answers))
    header = f"  <Header value={_quoted('title', title_of(questions, title))}/>"
    return "\n".join(["<View>", header, *shown, *control, "</View>"])


def _text(role: str) -> str:
    return f'<Text name="{role}" value="${role}"/>'


def _choices(shown: str, values: Iterable[str]) -> list[str]:
    options = [f"    <Choice value={_quoted('answers', value)}/>" for value in values]
    return [f'  <Choices name="answer" toName="{shown}" {_SINGLE}>', *options, "  </Choices>"]


def _quoted(parameter: str, text: str) -> str:
    """Text as an attribute of XML."""
    if wrong := _NO_XML.search(text):
        raise DataError(
            f"{shown(text)} holds the character {wrong[0]!r}, which XML cannot, and so no interface"
            " of Label Studio can show; leave that character out",
            parameter=parameter,
            value=text,
        )
    return quoteattr(text)


def from_label_studio(
    export: Sequence[Mapping[str, Any]], people: Mapping[Any, Any] | None = None
) -> Imported:
    """Read answers from the JSON export of Label Studio (not JSON-MIN, which does not say who
    skipped a task)."""
    lookup = people_of(people)
    return collected(_tasks(export, lookup), lookup)


def _tasks(
    export: Any, people: Mapping[Any, Any] | None
) -> Iterator[tuple[str, Any, list[Response]]]:
    """Yield the id of each question and the annotator asked, first without responses, and then with
    each response in the order of time."""
    responses: list[tuple[str, str, Any, Response]] = []
    for place, task in enumerate(
        listed(export, "annotations", "tasks, as Label Studio exports them under JSON")
    ):
        name = f"task {task.get('id', place)}"
        data, meta = (mapping(task.get(part), f"{part!r} of {name}") for part in ("data", "meta"))
        question = data.get("question_id") or meta.get("question_id")
        if not isinstance(question, str):
            raise DataError(
                f"{name} has no id of a question in data['question_id']; export the tasks that"
                " raters made"
            )
        by = data.get("by")
        yield question, by, []
        for annotation in mappings(task["annotations"], f"'annotations' of {name}"):
            moment = str(annotation.get("updated_at") or annotation.get("created_at") or "")
            responses.extend(
                (moment, question, by, response)
                for response in _responses(annotation, question, people)
            )
    # By time over all tasks, since one question may be in several of them.
    for _, question, by, response in sorted(responses, key=lambda given: given[0]):
        yield question, by, [response]


def _responses(
    annotation: Mapping[str, Any], question: str, people: Mapping[Any, Any] | None
) -> list[Response]:
    """Return the response in an annotation; none where nothing was chosen."""
    cancelled = annotation.get("was_cancelled") or False
    if not isinstance(cancelled, bool):
        raise DataError(
            f"an annotation of question {question!r} has was_cancelled={shown(cancelled)}; expected"
            " true or false"
        )
    answer = None if cancelled else _of_annotation(annotation.get("result"), question)
    if answer is None and not cancelled:
        return []
    return [Response(_person(annotation.get("completed_by"), people), answer)]


def _of_annotation(result: Any, question: Any) -> Any:
    """Return the answer in the regions of one annotation; None when nothing was chosen."""
    name = f"the annotation of question {question!r}"
    regions = mappings(result, name)
    every = [_of_region(region, name) for region in regions]
    answers = list(dict.fromkeys(answer for answer in every if answer is not None))
    if len(answers) > 1:
        raise DataError(
            f"{name} holds the answers {', '.join(map(repr, answers))}; expected one: delete the"
            " other regions in Label Studio, and export again"
        )
    if regions and not answers:
        kinds = ", ".join(sorted({repr(region.get("type")) for region in regions}))
        raise DataError(
            f"{name} holds {kinds}; expected 'pairwise' or 'choices', as the interface gives them"
            " that raters writes for the questions"
        )
    return answers[0] if answers else None


def _of_region(region: Mapping[str, Any], name: str) -> str | None:
    """Return the answer in one region; None in one of another type."""
    value = mapping(region.get("value"), f"'value' in {name}")
    if region.get("type") == "pairwise":
        side = value.get("selected")
        if not isinstance(side, str) or side not in _SIDES:
            raise DataError(f"{name} has selected={side!r}; expected 'left' or 'right'")
        return _SIDES[side]
    if region.get("type") != "choices":
        return None
    chosen = value.get("choices") or []
    if not isinstance(chosen, (list, tuple)) or len(chosen) != 1 or not isinstance(chosen[0], str):
        raise DataError(f"{name} has the choices {chosen!r}; expected one of them")
    return answer_of(chosen[0])


def _person(completed_by: Any, people: Mapping[Any, Any] | None) -> Any:
    """Annotator behind a user, given as a number or as a dictionary with number and address."""
    names = (
        [completed_by.get(key) for key in ("email", "id")]
        if isinstance(completed_by, Mapping)
        else [completed_by]
    )
    for name in names:
        if not isinstance(name, (str, int, float, type(None))):
            raise DataError(
                f"completed_by={shown(completed_by)} names no user; it must be a number, an"
                " address, or an object with id or email"
            )
    lookup = people or {}
    known = [lookup[str(name)] for name in names if str(name) in lookup]
    return known[0] if known else next((name for name in names if name is not None), None)

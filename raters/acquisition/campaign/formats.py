"""Questions and answers in the formats of Label Studio and Argilla, so that people can answer
there.

Neither package is needed: the formats are JSON. They were checked against label-studio-sdk 2.1 and
argilla 2.8, and are documented at https://labelstud.io/guide/tasks (tasks),
https://labelstud.io/guide/task_format (annotations), https://labelstud.io/tags/pairwise and
https://labelstud.io/tags/choices (interfaces), and
https://docs.argilla.io/latest/how_to_guides/import_export/ (records and settings).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

import xarray as xr

from raters.errors import DataError, DataWarning, refuse
from raters.errors.validation import boolean, checked, instance
from raters.judgements.names import check_once, name_list, name_text, shorten, shown
from raters.judgements.pairs import Side

__all__ = [
    "Imported",
    "argilla_settings",
    "from_argilla",
    "from_label_studio",
    "label_studio_config",
    "to_argilla",
    "to_label_studio",
]

# Columns of questions that are not names of what is asked about.
_BESIDE = {"by", "score", "answers", "batch", "status", "answer"}
# Choices of the interfaces about pairs, which are also possible names of classes.
_SIDES = ("first", "second", "tie")
_SINGLE = 'choice="single" required="true"'
# Characters that XML cannot hold, in whatever spelling (https://www.w3.org/TR/xml/#charsets).
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_USER = (str, int, float, type(None))

# Id of a question, the annotator asked, and of each response the person and the answer, None where
# it was skipped.
_Entry = tuple[str, Any, list[tuple[Any, Any]]]


class Imported(NamedTuple):
    """Content of an export: `answers` is for `Campaign.tell`, the rest for a person to look at."""

    answers: dict[str, Any]
    skipped: list[str]
    open: list[str]
    by_others: list[tuple[str, Any, Any]]
    disputed: dict[str, list[Any]]


# ---------------------------------------------------------------- questions


def roles_of(questions: xr.Dataset) -> list[str]:
    """Columns with the names that questions are about."""
    roles = [str(name) for name in questions.data_vars if name not in _BESIDE]
    if "id" not in questions.coords or "by" not in questions or not roles:
        such = "campaign.ask()"
        expected = "give a table of questions"
        refuse("questions", questions, expected=expected, instead=such, error=DataError)
    return roles


def pair_of(questions: xr.Dataset) -> tuple[str, str] | None:
    """Columns of the two things that are compared, or None."""
    pair = questions.attrs.get("pair")
    return None if pair is None else (pair[0], pair[1])


def all_answers(questions: xr.Dataset) -> list[str]:
    """Possible answers as text."""
    answers = questions.attrs.get("answers")
    if "answers" in questions:
        each = questions["answers"].values.ravel()
        answers = list(dict.fromkeys(answer for some in each for answer in some))
    if not answers:
        problem = "do not name the possible answers"
        refuse("questions", problem=problem, expected="ask by a campaign", error=DataError)
    return [name_text(name) for name in answers]


def _checked_roles(questions: xr.Dataset, ties: bool = False) -> list[str]:
    """Columns of what questions are about, which the interfaces can ask."""
    roles = roles_of(questions)
    if questions.attrs.get("ordered"):
        problem = "ask for orders of several items, which are not exchanged with labelling tools"
        expected = "write the answers into a table, the best first, such as 'tea > milk > beer'"
        refuse("questions", problem=problem, expected=expected, error=DataError)
    boolean("ties", ties)
    if ties and pair_of(questions) is None:
        refuse("ties", ties, expected="it is for questions about two items; leave it out")
    return roles


def _title_of(questions: xr.Dataset) -> str:
    """An instruction that suits the questions."""
    if pair_of(questions) is not None:
        return "Which of the two is better?"
    return str(questions.attrs.get("title", "Which of these is right?"))


class _Row(NamedTuple):
    """A question: the names that it is about, the texts to show for them, and its own answers."""

    id: str
    by: Any
    names: dict[str, Any]
    texts: dict[str, str]
    answers: Sequence[str]


def _rows(questions: xr.Dataset, texts: Mapping[Any, str] | None) -> Iterator[_Row]:
    roles = _checked_roles(questions)
    plain = questions.attrs.get("plain", ())
    check_once(texts or {}, "texts")
    lookup = {name_text(name): text for name, text in (texts or {}).items()}
    for name, text in lookup.items():
        if not isinstance(text, str) or not text.strip():
            problem, expected = f"has {text!r} for {name!r}", "every text must be one to read"
            refuse("texts", problem=problem, expected=expected, error=DataError)
    columns = {name: questions[name].values.tolist() for name in (*roles, "by", "id")}
    for place, question in enumerate(columns["id"]):
        answers = questions["answers"].values[place] if "answers" in questions else ()
        names = {role: columns[role][place] for role in roles}
        shown = {role: name_text(name) for role, name in names.items()}
        if texts is not None:
            for role in set(roles) - set(plain):
                shown[role] = _text_of(shown[role], answers, lookup)
        by_role = {f"{role}_name": name for role, name in names.items()}
        yield _Row(str(question), columns["by"][place], by_role, shown, answers)


def _text_of(name: str, answers: Sequence[str], lookup: Mapping[str, str]) -> str:
    """Text to show for a name; for a set to choose from, those of its members."""
    if name in lookup:
        return lookup[name]
    missing = [answer for answer in answers if answer not in lookup] or [name] * (not answers)
    if missing:
        problem, expected = f"has none for {missing[0]!r}", "give one for every name"
        refuse("texts", problem=problem, expected=expected, error=DataError)
    return "\n\n".join(f"{answer}: {lookup[answer]}" for answer in answers)


# ---------------------------------------------------------------- Label Studio


@checked
def to_label_studio(
    questions: xr.Dataset, texts: Mapping[Any, str] | None = None
) -> list[dict[str, Any]]:
    """Questions as tasks of Label Studio, with a text to show for each name; write them as JSON and
    import that file."""
    tasks = []
    for row in _rows(questions, texts):
        data = {"question_id": row.id, "by": row.by, **row.names, **row.texts}
        if row.answers:
            data["answers"] = [{"value": answer} for answer in row.answers]
        tasks.append({"data": data, "meta": {"question_id": row.id}})
    return tasks


@checked
def label_studio_config(questions: xr.Dataset, *, ties: bool = False) -> str:
    """Labelling interface for the tasks: two texts side by side, or a text with a choice of
    answers."""
    roles, pair = _checked_roles(questions, ties), pair_of(questions)
    lines = [f"  {_text(role)}" for role in roles if role not in (pair or ())]
    if pair is not None:
        sides = [f'    <View style="flex: 1">{_text(side)}</View>' for side in pair]
        lines += ['  <View style="display: flex; gap: 2em">', *sides, "  </View>"]
    if pair is not None and not ties:
        lines.append(f'  <Pairwise name="answer" toName="{",".join(pair)}"/>')
    elif pair is None and "answers" in questions:  # each task brings its own
        lines.append(f'  <Choices name="answer" toName="{roles[0]}" {_SINGLE} value="$answers"/>')
    else:
        choices = _SIDES if ties else all_answers(questions)
        about = pair[0] if pair else roles[0]
        lines.append(f'  <Choices name="answer" toName="{about}" {_SINGLE}>')
        lines += [f"    <Choice value={_quoted(value)}/>" for value in choices]
        lines.append("  </Choices>")
    header = f"  <Header value={_quoted(_title_of(questions))}/>"
    return "\n".join(["<View>", header, *lines, "</View>"])


def _text(role: str) -> str:
    return f'<Text name="{role}" value="${role}"/>'


def _quoted(text: str) -> str:
    """Text as an attribute of XML."""
    if wrong := _NO_XML.search(text):
        problem = f"has an answer with the character {wrong[0]!r}, which XML cannot hold"
        refuse("questions", problem=problem, expected="leave it out", error=DataError)
    return quoteattr(text)


def from_label_studio(
    export: Sequence[Mapping[str, Any]], people: Mapping[Any, Any] | None = None
) -> Imported:
    """Read answers from the JSON export of Label Studio (not JSON-MIN, which does not say who
    skipped a task); `people` maps its users to annotators."""
    lookup = _people(people)
    return _collected(_tasks(_entries(export, "annotations", "tasks"), lookup), lookup)


def _tasks(tasks: Iterable[Any], people: Mapping[str, Any]) -> Iterator[_Entry]:
    """Yield each task without responses, and then each response in the order of time over all
    tasks, since one question may be in several of them."""
    responses: list[tuple[str, _Entry]] = []
    for place, task in enumerate(tasks):
        name = f"task {task.get('id', place)}"
        data, meta = (_as(Mapping, task.get(part) or {}, name) for part in ("data", "meta"))
        question = _as(str, data.get("question_id") or meta.get("question_id"), f"the id of {name}")
        yield question, data.get("by"), []
        for annotation in _as((list, tuple), task["annotations"] or [], name):
            _as(Mapping, annotation, f"an annotation of {name}")
            skipped = _as((bool, type(None)), annotation.get("was_cancelled"), "was_cancelled")
            answer = None if skipped else _chosen(annotation.get("result") or [], name)
            if answer is not None or skipped:
                moment = str(annotation.get("updated_at") or annotation.get("created_at") or "")
                person = _person(annotation.get("completed_by"), people)
                responses.append((moment, (question, data.get("by"), [(person, answer)])))
    for _, entry in sorted(responses, key=lambda response: response[0]):
        yield entry


def _chosen(result: Any, name: str) -> Any:
    """Return the answer in the regions of one annotation; None when nothing was chosen."""
    answers: list[str | None] = []
    for region in _as((list, tuple), result, f"the annotation of {name}"):
        kind = _as(Mapping, region, f"a region of {name}").get("type")
        value = _as(Mapping, region.get("value") or {}, f"a value of {name}")
        if kind == "pairwise":
            sides = {"left": Side("first"), "right": Side("second")}
            side = _as(str, value.get("selected"), f"the selected side of {name}")
            answers.append(sides.get(side))
        elif kind == "choices":
            choices = _as((list, tuple), value.get("choices"), f"the choices of {name}")
            answers += [_answer(_as(str, choice, f"a choice of {name}")) for choice in choices]
            answers += [None] * (not choices)
    if result and (len(set(answers)) != 1 or answers[0] is None):
        raise DataError(
            f"{name} holds the answers {answers}; expected one, 'pairwise' or 'choices'"
        )
    return answers[0] if answers else None


def _person(completed_by: Any, people: Mapping[str, Any]) -> Any:
    """Annotator behind a user, given as a number or as a dictionary with number and address."""
    names = [completed_by]
    if isinstance(completed_by, Mapping):
        names = [completed_by.get(key) for key in ("email", "id")]
    for name in names:
        _as(_USER, name, "a user")
    known = [people[str(name)] for name in names if str(name) in people]
    return known[0] if known else next((name for name in names if name is not None), None)


# ---------------------------------------------------------------- Argilla


@checked
def to_argilla(
    questions: xr.Dataset, texts: Mapping[Any, str] | None = None
) -> list[dict[str, Any]]:
    """Questions as records of Argilla 2, with a text to show for each name:
    ``dataset.records.log([rg.Record.from_dict(record) for record in records])``."""
    return [
        {
            "id": row.id,
            "fields": row.texts,
            "metadata": {key: name_text(name) for key, name in {"by": row.by, **row.names}.items()},
            "suggestions": {},
            "responses": {},
            "vectors": {},
        }
        for row in _rows(questions, texts)
    ]


@checked
def argilla_settings(questions: xr.Dataset, *, ties: bool = False) -> dict[str, Any]:
    """Settings of the dataset for these records: write them as JSON, and read that with
    ``rg.Settings.from_json``."""
    roles = _checked_roles(questions, ties)
    if pair_of(questions) is None:
        options = {name: name for name in all_answers(questions)}
    else:
        options = {"first": "The first", "second": "The second"}
        options |= {"tie": "Equally good"} if ties else {}
    kind = {
        "type": "label_selection",
        "visible_options": None,
        "options": [{"value": value, "text": name} for value, name in options.items()],
    }
    question = {
        "name": "answer",
        "title": _title_of(questions),
        "description": None,
        "required": True,
        "settings": kind,
    }
    return {
        "guidelines": None,
        "fields": [
            {
                "name": role,
                "title": role.replace("_", " ").capitalize(),
                "required": True,
                "settings": {"type": "text", "use_markdown": False},
            }
            for role in roles
        ],
        "questions": [question],
        "vectors": [],
        "metadata": [
            {
                "name": name,
                "title": name,
                "settings": {"type": "terms", "values": None},
                "visible_for_annotators": name == "by",
            }
            for name in ("by", *(f"{role}_name" for role in roles))
        ],
        "allow_extra_metadata": True,
    }


def from_argilla(
    records: Sequence[Mapping[str, Any]], people: Mapping[Any, Any] | None = None
) -> Imported:
    """Read answers from records of Argilla 2, as ``dataset.records.to_list(flatten=True)`` or
    ``to_json`` gives them; `people` maps its users to annotators."""
    lookup = _people(people)
    return _collected(_records(_entries(records, "id", "records"), lookup), lookup)


def _records(records: Iterable[Any], people: Mapping[str, Any]) -> Iterator[_Entry]:
    """Yield each record with its responses."""
    for record in records:
        question = _as(str, record["id"], "the id of a record")
        name = f"record {question!r}"
        if "responses" in record:
            given = _as(Mapping, record["responses"] or {}, f"'responses' of {name}")
            answers = _as((list, tuple), given.get("answer") or [], f"the answers to {name}")
            each = [_as(Mapping, answer, f"an answer to {name}") for answer in answers]
            keys = ("value", "user_id", "status")
            responses = [tuple(answer.get(key) for key in keys) for answer in each]
            by = _as(Mapping, record.get("metadata") or {}, f"'metadata' of {name}").get("by")
        else:
            values = record.get("answer.responses") or []
            users = record.get("answer.responses.users") or [None] * len(values)
            states = record.get("answer.responses.status") or [None] * len(values)
            for part in (values, users, states):
                _as((list, tuple), part, f"answer.responses of {name}")
            if not len(values) == len(users) == len(states):
                raise DataError(f"the responses of {name} and their users differ in number")
            responses, by = list(zip(values, users, states, strict=True)), record.get("by")
        read = []
        for value, user, state in responses:
            _as(_USER, user, f"a user of {name}")
            if state not in ("submitted", "discarded", "draft", None):
                raise DataError(f"a response of {name} has the status {shown(state)}")
            if state != "draft":
                answer = None
                if state != "discarded":
                    answer = _answer(_as(str, value, f"the answer to {name}"))
                read.append((people.get(str(user), user), answer))
        yield question, by, read


# ---------------------------------------------------------------- content of an export


def _as(kind: Any, value: Any, name: str) -> Any:
    """Return a part of an export; `DataError` when it is of another type."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        expected = " or ".join(one.__name__ for one in kinds)
        raise DataError(f"{name} is {shown(value)}; expected {expected}")
    return value


def _entries(export: Any, key: str, what: str) -> Any:
    """Return the entries of an export, which all have `key`."""
    for entry in _as((list, tuple), export, f"the export, a list of {what}"):
        tool = isinstance(entry, Mapping) and ("annotations" in entry) == (key == "annotations")
        if not tool or key not in entry:
            expected = f"it must be a list of {what}, each with {key!r}"
            refuse(
                "source", problem="is another tool's, or none", expected=expected, error=DataError
            )
    return export


def _answer(value: str) -> str:
    """An answer that was chosen in an interface of raters, where sides are never names of items."""
    return Side(value) if value in _SIDES else value


def _people(people: Any) -> Mapping[str, Any]:
    """Annotators by the text of a user."""
    if people is None:
        return {}
    instance("people", people, Mapping, "a mapping of users to annotators", "people={1: 'ann'}")
    annotators = name_list(people.values(), "people")
    check_once(people, "people")
    return dict(zip(map(str, people), annotators, strict=True))


def _collected(entries: Iterable[_Entry], people: Mapping[str, Any]) -> Imported:
    """Sort the responses to each question, given with the annotator who was asked."""
    by_question: dict[str, tuple[Any, dict[Hashable, tuple[Any, Any]]]] = {}
    for question, by, responses in entries:
        answers = by_question.setdefault(question, (by, {}))[1]
        for person, answer in responses:
            # Of one person the last counts; those who are not named are different people.
            who = object() if person in (None, "") else person
            answers.pop(who, None)
            answers[who] = person, answer
    there = {name_text(who) for _, answers in by_question.values() for who in answers}
    if absent := [user for user, who in people.items() if name_text(who) not in there]:
        sentence = f"{shorten(absent)}: no such user gave a response in this export"
        warnings.warn(sentence, DataWarning, stacklevel=3)
    result = Imported({}, [], [], [], {})
    for question, (by, answers) in by_question.items():
        theirs = []
        for person, answer in answers.values():
            if not people or (person is not None and name_text(person) == name_text(by)):
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

"""Content of exports of labelling tools, whichever tool it is."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import xarray as xr

from raters.errors import DataError, DataWarning, SettingError
from raters.errors.validation import instance
from raters.judgements.names import check_once, name_list, name_text, shorten
from raters.judgements.pairs import Side

# Columns of questions that are not names of what is asked about.
_BESIDE = {"by", "score", "answers", "batch", "status", "answer"}
# Choices of the interfaces about pairs, which are also possible names of classes.
SIDES = ("first", "second", "tie")
# Keys that only records of Argilla have, flat or not.
_ARGILLA = {
    "responses",
    "answer.responses",
    "suggestions",
    "answer.suggestion",
    "status",
    "_server_id",
}


class Imported(NamedTuple):
    """Content of an export: `answers` is for `Campaign.tell`, the rest for a person to look at."""

    answers: dict[str, Any]
    skipped: list[str]
    open: list[str]
    by_others: list[tuple[str, Any, Any]]
    disputed: dict[str, list[Any]]


class Response(NamedTuple):
    """One person's answer to one question: None for one who skipped it."""

    person: Any
    answer: Any


def question_rows(
    questions: xr.Dataset, texts: Mapping[Any, str] | None
) -> Iterator[dict[str, Any]]:
    """Yield each question with the names that it is about, the texts to show for them, and the
    answers where each question has its own."""
    _refuse_orders(questions)
    roles = roles_of(questions)
    lookup = None if texts is None else _checked_texts(texts)
    plain = questions.attrs.get("plain", ())
    answers = questions["answers"].values if "answers" in questions else None
    columns = {name: questions[name].values.tolist() for name in (*roles, "by", "id")}
    for place, question in enumerate(columns["id"]):
        names = {role: columns[role][place] for role in roles}
        own = () if answers is None else answers[place]
        shown = {
            role: name_text(name)
            if role in plain
            else _text_of(name_text(name), own, lookup, question)
            for role, name in names.items()
        }
        yield {
            "id": str(question),
            "by": columns["by"][place],
            "names": {f"{role}_name": name for role, name in names.items()},
            "texts": shown,
            "answers": own,
        }


def _checked_texts(texts: Mapping[Any, str]) -> dict[str, str]:
    """Texts by name as text; `DataError` for one that shows nothing."""
    check_once(texts, "texts")
    for name, shown in texts.items():
        if not isinstance(shown, str) or not shown.strip():
            raise DataError(
                parameter="texts",
                problem=f"shows nothing for {name!r}: its text is {shown!r}",
                expected="every text must be one that people can read",
            )
    return {name_text(name): shown for name, shown in texts.items()}


def _text_of(
    name: str, answers: Sequence[str], lookup: Mapping[str, str] | None, question: Any
) -> str:
    """Text to show for a name; for a set to choose from, those of its members."""
    if lookup is None:
        return name
    if name in lookup:
        return lookup[name]
    missing = [answer for answer in answers if answer not in lookup] or [name] * (not answers)
    if missing:
        raise DataError(
            parameter="texts",
            problem=f"has none for {missing[0]!r}, which question {question} is about",
            expected="give one for every name",
        )
    return "\n\n".join(f"{answer}: {lookup[answer]}" for answer in answers)


def roles_of(questions: xr.Dataset) -> list[str]:
    """Columns with the names that questions are about."""
    roles = [str(name) for name in questions.data_vars if name not in _BESIDE]
    if "id" not in questions.coords or "by" not in questions or not roles:
        raise DataError(
            parameter="questions",
            value=questions,
            expected="it must have id, by and the names that each question is about, as a campaign"
            " gives them",
            instead="campaign.ask()",
        )
    return roles


def pair_of(questions: xr.Dataset, **settings: bool) -> tuple[str, str] | None:
    """Columns of the two things that are compared, or None."""
    if (pair := questions.attrs.get("pair")) is not None:
        first, second = pair
        return first, second
    for name, value in settings.items():
        if value:
            raise SettingError(
                parameter=name,
                value=value,
                expected="it has a meaning for questions about two items only; leave it out",
            )
    return None


def title_of(questions: xr.Dataset, title: str | None) -> str:
    """The instruction that is given, or else one that suits the questions."""
    _refuse_orders(questions)
    if title is not None:
        return title
    pair = questions.attrs.get("pair")
    own: str = questions.attrs.get("title", "Which of these is right?")
    return own if pair is None else "Which of the two is better?"


def _refuse_orders(questions: xr.Dataset) -> None:
    """Raise `DataError` where the answers are orders, which no interface here asks for."""
    if questions.attrs.get("ordered"):
        raise DataError(
            parameter="questions",
            problem="ask for orders of several items, which are not exchanged with labelling tools",
            expected="write the answers into a table, the best first, such as 'tea > milk > beer'",
            instead="campaign.tell({'a3f1-1': 'tea > milk > beer'})",
        )


def all_answers(questions: xr.Dataset, answers: Sequence[Any] | None) -> list[str]:
    """Possible answers as text: those given, or else those of the questions."""
    if answers is None and "answers" in questions:
        own = questions["answers"].values.ravel()
        answers = list(dict.fromkeys(answer for some in own for answer in some))
    names = questions.attrs.get("answers") if answers is None else answers
    if not names or isinstance(names, str):
        raise DataError(
            parameter="answers",
            problem="is not given, and the questions do not name the possible answers",
            expected="name all that one may choose",
            instead="answers=['no', 'yes']",
        )
    return [name_text(name) for name in name_list(names, "answers")]


def listed(export: Any, key: str, what: str) -> Sequence[Mapping[str, Any]]:
    """Return the entries of an export that all have `key`; `DataError` for anything else."""
    entries = (
        [entry for entry in export if isinstance(entry, Mapping)]
        if isinstance(export, (list, tuple))
        else []
    )
    if key == "annotations" and any(
        "id" in entry and "annotations" not in entry and _ARGILLA & set(entry) for entry in entries
    ):
        raise DataError(
            f"expected a list of {what}; these are records of Argilla: read them with"
            " formats.from_argilla(records)",
            parameter="source",
            value="label-studio",
            problem=f"has a list of {what}, and these are records of Argilla",
            expected="read them as 'argilla'",
        )
    if key == "id" and any("annotations" in entry for entry in entries):
        raise DataError(
            f"expected a list of {what}; these are tasks of Label Studio: read them with"
            " formats.from_label_studio",
            parameter="source",
            value="argilla",
            problem=f"has a list of {what}, and these are tasks of Label Studio",
            expected="read them as 'label-studio'",
        )
    if (
        not isinstance(export, (list, tuple))
        or len(entries) < len(export)
        or not all(key in entry for entry in entries)
    ):
        raise DataError(f"expected a list of {what}; this is none (every entry needs {key!r})")
    return entries


def people_of(people: Any) -> Mapping[str, Any] | None:
    """Annotators by the text of a user, where they are given."""
    if people is None:
        return None
    instance("people", people, Mapping, "a mapping of users to annotators", "people={1: 'ann'}")
    annotators = name_list(people.values(), "people")
    check_once(people, "people")
    return dict(zip(map(str, people), annotators, strict=True))


def mapping(part: Any, what: str) -> Mapping[str, Any]:
    """Return a dictionary of an export, empty for None; `DataError` for anything else."""
    if part is not None and not isinstance(part, Mapping):
        raise DataError(f"{what} is {shorten([repr(part)])}; expected a dictionary")
    return part or {}


def mappings(part: Any, what: str) -> list[Mapping[str, Any]]:
    """Return a list of dictionaries of an export, empty for None; `DataError` for anything else."""
    if part is not None and not (
        isinstance(part, (list, tuple)) and all(isinstance(entry, Mapping) for entry in part)
    ):
        raise DataError(f"{what} is {shorten([repr(part)])}; expected a list of dictionaries")
    return list(part or [])


def answer_of(value: str) -> str:
    """An answer that was chosen in an interface of raters, where sides are never names of items."""
    return Side(value) if value in SIDES else value


def collected(
    entries: Iterable[tuple[str, Any, list[Response]]], people: Mapping[Any, Any] | None
) -> Imported:
    """Sort the responses to each question, given with the annotator who was asked."""
    by_question: dict[str, tuple[Any, dict[Hashable, Response]]] = {}
    for question, by, responses in entries:
        answers = by_question.setdefault(question, (by, {}))[1]
        for response in responses:
            # Of one person the last counts; those who are not named are different people.
            who = object() if response.person in (None, "") else response.person
            answers.pop(who, None)
            answers[who] = response
    _warn_of_absent(people, [who for _, answers in by_question.values() for who in answers])
    result = Imported({}, [], [], [], {})

    def was_asked(person: Any, by: Any) -> bool:
        return people is None or (person is not None and name_text(person) == name_text(by))

    for question, (by, answers) in by_question.items():
        result.by_others.extend(
            (question, person, answer)
            for person, answer in answers.values()
            if answer is not None and not was_asked(person, by)
        )
        theirs = [answer for person, answer in answers.values() if was_asked(person, by)]
        different = list(dict.fromkeys(answer for answer in theirs if answer is not None))
        if len(different) == 1:
            result.answers[question] = different[0]
        elif different:
            result.disputed[question] = different
        else:
            (result.skipped if theirs else result.open).append(question)
    return result


def _warn_of_absent(people: Mapping[Any, Any] | None, responded: Iterable[Hashable]) -> None:
    """Warn of users who gave no response: they may be misspelled."""
    there = {name_text(who) for who in responded}
    if absent := [user for user, who in (people or {}).items() if name_text(who) not in there]:
        warnings.warn(
            f"{shorten(absent)}: no such user gave a response in this export; if some should have,"
            " name users as the export does",
            DataWarning,
            stacklevel=4,
        )

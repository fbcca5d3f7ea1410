"""Records, settings and exports of Argilla."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import xarray as xr

from raters.acquisition.campaign.exports import (
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
from raters.judgements.names import name_text, shown

# Of responses; a draft is none yet.
_STATES = ("submitted", "discarded", "draft")


@checked
def to_argilla(
    questions: xr.Dataset, texts: Mapping[Any, str] | None = None
) -> list[dict[str, Any]]:
    """Questions as records of Argilla 2: ``dataset.records.log([rg.Record.from_dict(record) for
    record in records])``."""
    return [
        {
            "id": row["id"],
            "fields": row["texts"],
            "metadata": (
                {"by": name_text(row["by"])}
                | {name: name_text(value) for name, value in row["names"].items()}
            ),
            "suggestions": {},
            "responses": {},
            "vectors": {},
        }
        for row in question_rows(questions, texts)
    ]


@checked
def argilla_settings(
    questions: xr.Dataset,
    *,
    ties: bool = False,
    ranking: bool = False,
    answers: Sequence[Any] | None = None,
    title: str | None = None,
) -> dict[str, Any]:
    """Settings of the dataset for these records: write them as JSON, and read that with
    ``rg.Settings.from_json``."""
    roles = roles_of(questions)
    if pair_of(questions, ties=ties, ranking=ranking) is None:
        options = {name: name for name in all_answers(questions, answers)}
    else:
        options = {"first": "The first", "second": "The second"}
        if ties and not ranking:
            options["tie"] = "Equally good"
    kind: dict[str, Any] = {"type": "label_selection", "visible_options": None}
    if ranking:
        kind = {"type": "ranking"}
    kind["options"] = [{"value": value, "text": name} for value, name in options.items()]
    question = {
        "name": "answer",
        "title": title_of(questions, title),
        "description": None,
        "required": True,
        "settings": kind,
    }
    return {
        "guidelines": None,
        "fields": [_field(role) for role in roles],
        "questions": [question],
        "vectors": [],
        "metadata": [_metadata(name) for name in ("by", *(f"{role}_name" for role in roles))],
        "allow_extra_metadata": True,
    }


def _field(role: str) -> dict[str, Any]:
    settings = {"type": "text", "use_markdown": False}
    title = role.replace("_", " ").capitalize()
    return {"name": role, "title": title, "required": True, "settings": settings}


def _metadata(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "title": name,
        "settings": {"type": "terms", "values": None},
        "visible_for_annotators": name == "by",
    }


def from_argilla(
    records: Sequence[Mapping[str, Any]], people: Mapping[Any, Any] | None = None
) -> Imported:
    """Read answers from records of Argilla 2, as ``dataset.records.to_list(flatten=True)`` or
    ``to_json`` gives them."""
    lookup = people_of(people)
    return collected(_records(records, lookup), lookup)


def _records(
    records: Any, people: Mapping[Any, Any] | None
) -> Iterator[tuple[str, Any, list[Response]]]:
    """Yield the id of each question, the annotator asked, and the responses."""
    lookup = people or {}
    for record in listed(
        records, "id", "records, as dataset.records.to_list(flatten=True) gives them"
    ):
        name = f"record {record['id']!r}"
        if not isinstance(record["id"], str):
            raise DataError(
                f"{name} has no id of a question, such as 'a3f1-1', in 'id'; export the records"
                " that raters made"
            )
        if "responses" in record:
            answers = mapping(record["responses"], f"'responses' of {name}").get("answer")
            given = mappings(answers, f"the answers to {name}")
            responses = [(own.get("value"), own.get("user_id"), own.get("status")) for own in given]
            by = mapping(record.get("metadata"), f"'metadata' of {name}").get("by")
        else:
            responses, by = _flat_responses(record, name), record.get("by")
        read = []
        for value, user, state in responses:
            _check_response(user, state, name)
            if state != "draft":
                answer = None if state == "discarded" else _of_response(value, record["id"])
                read.append(Response(lookup.get(str(user), user), answer))
        yield str(record["id"]), by, read


def _flat_responses(record: Mapping[str, Any], name: str) -> list[tuple[Any, Any, Any]]:
    """Value, user and status of each response of a flat record."""
    values = record.get("answer.responses") or []
    users, states = (
        record.get(f"answer.responses.{part}") or [None] * len(values)
        for part in ("users", "status")
    )
    sizes = [
        len(part) if isinstance(part, (list, tuple)) else part for part in (values, users, states)
    ]
    if len(set(map(repr, sizes))) > 1 or not isinstance(values, (list, tuple)):
        raise DataError(
            f"answer.responses, .users and .status of {name} have the lengths"
            f" {', '.join(map(repr, sizes))}; expected three lists of one length, as"
            " dataset.records.to_list(flatten=True) gives them"
        )
    return list(zip(values, users, states, strict=True))


def _check_response(user: Any, state: Any, name: str) -> None:
    """`DataError` for what is no user, or no status of a response."""
    if isinstance(user, (list, tuple, dict)):
        raise DataError(
            f"a user of {name} is {user!r}; it must be the id of one user, as text or a number"
        )
    if state is not None and (not isinstance(state, str) or state not in _STATES):
        raise DataError(
            f"a response of {name} has the status {shown(state)}; expected one of"
            f" {', '.join(map(repr, _STATES))}"
        )


def _of_response(value: Any, question: Any) -> Any:
    """Return a label; of a ranking, the name in the first place, or a tie."""
    if isinstance(value, str):
        return answer_of(value)
    if isinstance(value, (list, tuple)) and len(value) == 2:
        places = [
            entry if isinstance(entry, Mapping) else {"value": entry, "rank": place}
            for place, entry in enumerate(value, 1)
        ]
        ranks = [entry.get("rank") or place for place, entry in enumerate(places, 1)]
        names = [entry.get("value") for entry in places]
        if all(isinstance(rank, int) for rank in ranks) and all(
            isinstance(name, str) for name in names
        ):
            first = str(names[ranks.index(min(ranks))])
            return answer_of("tie" if ranks[0] == ranks[1] else first)
    raise DataError(
        f"the response to question {question!r} is {value!r}; expected a label, or a ranking of two"
    )

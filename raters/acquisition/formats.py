"""Questions and answers in the formats of Label Studio and Argilla, so that people can answer there.

Neither package is needed: the formats are JSON. They were checked against label-studio-sdk 2.1 and argilla 2.8, and are
documented at https://labelstud.io/guide/tasks (tasks), https://labelstud.io/guide/task_format (annotations),
https://labelstud.io/tags/pairwise and https://labelstud.io/tags/choices (interfaces), and
https://docs.argilla.io/latest/how_to_guides/import_export/ (records and settings).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

import xarray as xr

from raters._frame import shorten, text
from raters.errors import DataError

_SIDES = {"left": "first", "right": "second"}
# What only records of Argilla have, flat or not.
_ARGILLA = {"responses", "answer.responses", "suggestions", "answer.suggestion", "status", "_server_id"}
_TITLE_OF_PAIR = "Which of the two is better?"
_TITLE_OF_ITEM = "Which class is it?"


class Imported(NamedTuple):
    """What an export holds: `answers` is for `Campaign.tell`, the rest for a person to look at.

    Parameters
    ----------
    answers : dict
        From the id of a question to its answer.
    skipped : list of str
        Ids of questions that were skipped, cancelled or discarded and have no other answer.
    open : list of str
        Ids of questions that nobody has dealt with yet, drafts included.
    by_others : list of tuple
        Id, who answered, and what, where that was not the annotator asked. Such answers are left out.
    disputed : dict
        From ids to the different answers of several people, where nothing says whose counts. They are left out.
    """

    answers: dict[str, Any]
    skipped: list[str]
    open: list[str]
    by_others: list[tuple[str, Any, Any]]
    disputed: dict[str, list[Any]]


class _Said(NamedTuple):
    """One person's answer to one question: None for one who skipped it."""

    who: Any
    answer: Any


# ---------------------------------------------------------------- Label Studio


def to_label_studio(questions: xr.Dataset, texts: Mapping[Any, str] | None = None) -> list[dict[str, Any]]:
    """Questions as tasks of Label Studio; write them as JSON and import that file.

    Parameters
    ----------
    questions : xarray.Dataset
        What ``campaign.ask()`` or ``campaign.outstanding()`` gave.
    texts : mapping, optional
        What to show for each item; its name without it.

    Returns
    -------
    list of dict
        Each with ``data``: what is shown, and ``question`` (the id), ``by`` (who is asked) and the names of the items.

    Raises
    ------
    DataError
        When `texts` lacks an item that is asked about.

    Examples
    --------
    >>> import xarray as xr
    >>> from raters.acquisition import formats
    >>> questions = xr.Dataset({"item": ("id", ["page"]), "by": ("id", ["ann"]), "score": ("id", [0.1])}, {"id": ["a3f1-1"]})
    >>> formats.to_label_studio(questions, {"page": "Buy now!"})[0]["data"]
    {'question': 'a3f1-1', 'by': 'ann', 'item_name': 'page', 'item': 'Buy now!'}
    """
    tasks = []
    for row in _rows(questions, texts):
        data = {"question": row["id"], "by": row["by"], **row["names"], **row["texts"]}
        tasks.append({"data": data, "meta": {"question": row["id"]}})
    return tasks


def label_studio_config(questions: xr.Dataset, *, ties: bool = False, classes: Sequence[Any] | None = None) -> str:
    """The labelling interface for the tasks: two texts side by side, or one with a choice of classes.

    Parameters
    ----------
    questions : xarray.Dataset
        What ``campaign.ask()`` gave: of two items, or of one.
    ties : bool
        Whether one may say that the two are equally good.
    classes : sequence, optional
        Of labels: the classes; those in ``questions.attrs`` without it.

    Examples
    --------
    >>> import xarray as xr
    >>> from raters.acquisition import formats
    >>> questions = xr.Dataset({"item": ("id", ["page"]), "by": ("id", ["ann"])}, {"id": ["a3f1-1"]})
    >>> print(formats.label_studio_config(questions, classes=["ham", "spam"]))
    <View>
      <Header value="Which class is it?"/>
      <Text name="item" value="$item"/>
      <Choices name="answer" toName="item" choice="single" required="true">
        <Choice value="ham"/>
        <Choice value="spam"/>
      </Choices>
    </View>
    """
    if "item" in questions:
        header, shown = _TITLE_OF_ITEM, ['  <Text name="item" value="$item"/>']
        control = _choices("item", _classes(questions, classes))
    else:
        header = _TITLE_OF_PAIR
        shown = [
            '  <View style="display: flex; gap: 2em">',
            '    <View style="flex: 1"><Text name="first" value="$first"/></View>',
            '    <View style="flex: 1"><Text name="second" value="$second"/></View>',
            "  </View>",
        ]
        control = (
            _choices("first", ["first", "second", "tie"]) if ties else ['  <Pairwise name="answer" toName="first,second"/>']
        )
    return "\n".join(["<View>", f"  <Header value={quoteattr(header)}/>", *shown, *control, "</View>"])


def _choices(shown: str, values: Iterable[str]) -> list[str]:
    options = [f"    <Choice value={quoteattr(value)}/>" for value in values]
    return [f'  <Choices name="answer" toName="{shown}" choice="single" required="true">', *options, "  </Choices>"]


def from_label_studio(export: Sequence[Mapping[str, Any]], people: Mapping[Any, Any] | None = None) -> Imported:
    """Answers from the JSON export of Label Studio (not JSON-MIN, which does not say who skipped a task).

    Parameters
    ----------
    export : list of dict
        Annotated tasks.
    people : mapping, optional
        From users of Label Studio (the number or the e-mail address in ``completed_by``) to annotators of the campaign. Without
        it, whoever answered is taken for the one who was asked.

    Returns
    -------
    Imported
        Of several annotations by one person the last counts.

    Raises
    ------
    DataError
        When this is no export, or a task has no id of a question; when an annotation holds no answer that can be read.
    """
    return _collected(_tasks(export, people), people)


def _tasks(export: Any, people: Mapping[Any, Any] | None) -> Iterator[tuple[str, Any, list[_Said]]]:
    for place, task in enumerate(_listed(export, "annotations", "tasks, as Label Studio exports them under JSON")):
        name = f"task {task.get('id', place)}"
        data, meta = (_mapping(task.get(part), f"{part!r} of {name}") for part in ("data", "meta"))
        question = data.get("question") or meta.get("question")
        if question is None:
            raise DataError(f"{name} has no id of a question in data['question']; export the tasks that raters made")
        found = []
        annotations = sorted(
            _mappings(task["annotations"], f"'annotations' of {name}"),
            key=lambda one: str(one.get("updated_at") or one.get("created_at") or ""),
        )
        for annotation in annotations:
            answer = None if annotation.get("was_cancelled") else _of_annotation(annotation.get("result"), question)
            if answer is not None or annotation.get("was_cancelled"):
                found.append(_Said(_person(annotation.get("completed_by"), people), answer))
        yield str(question), data.get("by"), found


def _of_annotation(result: Any, question: Any) -> Any:
    """The answer in the regions of one annotation; None when nothing was chosen."""
    regions = _mappings(result, f"the annotation of question {question!r}")
    for region in regions:
        value = _mapping(region.get("value"), f"'value' in the annotation of question {question!r}")
        if region.get("type") == "pairwise":
            side = value.get("selected")
            if not isinstance(side, str) or side not in _SIDES:
                raise DataError(f"the annotation of question {question!r} has selected={side!r}; expected 'left' or 'right'")
            return _SIDES[side]
        if region.get("type") == "choices":
            chosen = value.get("choices") or []
            if not isinstance(chosen, (list, tuple)) or len(chosen) != 1 or not isinstance(chosen[0], str):
                raise DataError(f"the annotation of question {question!r} has the choices {chosen!r}; expected one of them")
            return chosen[0]
    if regions:
        kinds = ", ".join(sorted({repr(region.get("type")) for region in regions}))
        raise DataError(
            f"the annotation of question {question!r} holds {kinds}; expected 'pairwise' or 'choices', as the interface of "
            "formats.label_studio_config(questions) gives them"
        )
    return None


def _person(completed_by: Any, people: Mapping[Any, Any] | None) -> Any:
    """The annotator behind a user, who comes as a number or as a dictionary with number and address."""
    names = [completed_by.get(key) for key in ("email", "id")] if isinstance(completed_by, Mapping) else [completed_by]
    lookup = {str(user): name for user, name in (people or {}).items()}
    found = [lookup[str(name)] for name in names if str(name) in lookup]
    return found[0] if found else next((name for name in names if name is not None), None)


# ---------------------------------------------------------------- Argilla


def to_argilla(questions: xr.Dataset, texts: Mapping[Any, str] | None = None) -> list[dict[str, Any]]:
    """Questions as records of Argilla 2: ``dataset.records.log([rg.Record.from_dict(record) for record in records])``.

    Parameters
    ----------
    questions : xarray.Dataset
        What ``campaign.ask()`` or ``campaign.outstanding()`` gave.
    texts : mapping, optional
        What to show for each item; its name without it.

    Returns
    -------
    list of dict
        As ``Record.to_dict`` writes them: the id of the question is that of the record, who is asked is in its metadata.

    Raises
    ------
    DataError
        When `texts` lacks an item that is asked about.
    """
    return [
        {
            "id": row["id"],
            "fields": row["texts"],
            "metadata": {"by": text(row["by"])} | {name: text(value) for name, value in row["names"].items()},
            "suggestions": {},
            "responses": {},
            "vectors": {},
        }
        for row in _rows(questions, texts)
    ]


def argilla_settings(
    questions: xr.Dataset, *, ties: bool = False, ranking: bool = False, classes: Sequence[Any] | None = None
) -> dict[str, Any]:
    """Settings of the dataset for these records: write them as JSON, and read that with ``rg.Settings.from_json``.

    Parameters
    ----------
    questions : xarray.Dataset
        What ``campaign.ask()`` gave: of two items, or of one.
    ties : bool
        Whether one may say that the two are equally good.
    ranking : bool
        A ``RankingQuestion`` of the two items in place of a ``LabelQuestion``; it has ties in any case.
    classes : sequence, optional
        Of labels: the classes; those in ``questions.attrs`` without it.
    """
    of_items = "item" in questions
    if of_items:
        shown = {"item": "Item"}
        options = {name: name for name in _classes(questions, classes)}
    else:
        shown = {"first": "First", "second": "Second"}
        options = {"first": "The first", "second": "The second"} | ({"tie": "Equally good"} if ties and not ranking else {})
    kind: dict[str, Any] = {"type": "label_selection", "visible_options": None}
    if ranking and not of_items:
        kind = {"type": "ranking"}
    kind["options"] = [{"value": value, "text": name} for value, name in options.items()]
    title = _TITLE_OF_ITEM if of_items else _TITLE_OF_PAIR
    fields = [
        {"name": name, "title": name_shown, "required": True, "settings": {"type": "text", "use_markdown": False}}
        for name, name_shown in shown.items()
    ]
    roles = ("item_name",) if of_items else ("first_name", "second_name")
    metadata = [
        {"name": name, "title": name, "settings": {"type": "terms", "values": None}, "visible_for_annotators": name == "by"}
        for name in ("by", *roles)
    ]
    return {
        "guidelines": None,
        "fields": fields,
        "questions": [{"name": "answer", "title": title, "description": None, "required": True, "settings": kind}],
        "vectors": [],
        "metadata": metadata,
        "allow_extra_metadata": True,
    }


def from_argilla(records: Sequence[Mapping[str, Any]], people: Mapping[Any, Any] | None = None) -> Imported:
    """Answers from records of Argilla 2, as ``dataset.records.to_list(flatten=True)`` or ``to_json`` gives them.

    Prefer ``flatten=True``: only then a record says which responses are drafts or discarded; without it all count.

    Parameters
    ----------
    records : list of dict
    people : mapping, optional
        From ids of users of Argilla to annotators of the campaign. Without it, whoever answered is taken for the one who was
        asked.

    Returns
    -------
    Imported

    Raises
    ------
    DataError
        When these are no such records; when a response holds no answer that can be read.
    """
    return _collected(_records(records, people), people)


def _records(records: Any, people: Mapping[Any, Any] | None) -> Iterator[tuple[str, Any, list[_Said]]]:
    for record in _listed(records, "id", "records, as dataset.records.to_list(flatten=True) gives them"):
        name = f"record {record['id']!r}"
        if not isinstance(record["id"], str):
            raise DataError(f"{name} has no id of a question, such as 'a3f1-1', in 'id'; export the records that raters made")
        if "responses" in record:
            answers = _mapping(record["responses"], f"'responses' of {name}").get("answer")
            given = _mappings(answers, f"the answers to {name}")
            responses = [(one.get("value"), one.get("user_id"), one.get("status")) for one in given]
            by = _mapping(record.get("metadata"), f"'metadata' of {name}").get("by")
        else:
            values = record.get("answer.responses") or []
            users, states = (record.get(f"answer.responses.{part}") or [None] * len(values) for part in ("users", "status"))
            sizes = [len(part) if isinstance(part, (list, tuple)) else part for part in (values, users, states)]
            if len(set(map(repr, sizes))) > 1 or not isinstance(values, (list, tuple)):
                raise DataError(
                    f"answer.responses, .users and .status of {name} have the lengths {', '.join(map(repr, sizes))}; expected "
                    "three lists of one length, as dataset.records.to_list(flatten=True) gives them"
                )
            responses, by = list(zip(values, users, states, strict=True)), record.get("by")
        found = []
        for value, user, state in responses:
            if state == "draft":
                continue
            answer = None if state == "discarded" else _of_response(value, record["id"])
            found.append(_Said({str(key): name for key, name in (people or {}).items()}.get(str(user), user), answer))
        yield str(record["id"]), by, found


def _of_response(value: Any, question: Any) -> Any:
    """A label as it is; of a ranking, the one in the first place, or a tie."""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)) and len(value) == 2:
        places = [one if isinstance(one, Mapping) else {"value": one, "rank": place} for place, one in enumerate(value, 1)]
        ranks = [one.get("rank") or place for place, one in enumerate(places, 1)]
        names = [one.get("value") for one in places]
        if all(isinstance(rank, int) for rank in ranks) and all(isinstance(name, str) for name in names):
            return "tie" if ranks[0] == ranks[1] else names[ranks.index(min(ranks))]
    raise DataError(f"the response to question {question!r} is {value!r}; expected a label, or a ranking of two")


# ---------------------------------------------------------------- what both share


def _rows(questions: xr.Dataset, texts: Mapping[Any, str] | None) -> Iterator[dict[str, Any]]:
    """Each question with the names of its items, and the texts to show for them."""
    roles = ("item",) if "item" in questions else ("first", "second")
    if "id" not in questions.coords or any(role not in questions for role in (*roles, "by")):
        raise DataError(
            "questions= takes what campaign.ask() or campaign.outstanding() gave, with id, first, second (item) and by"
        )
    lookup = None if texts is None else {text(name): shown for name, shown in texts.items()}
    columns = {name: questions[name].values.tolist() for name in (*roles, "by", "id")}
    for place, question in enumerate(columns["id"]):
        names = {role: columns[role][place] for role in roles}
        if lookup is not None and (missing := [name for name in names.values() if text(name) not in lookup]):
            raise DataError(f"texts= has none for {missing[0]!r}, which question {question} is about; give one for every item")
        shown = {role: text(name) if lookup is None else lookup[text(name)] for role, name in names.items()}
        yield {
            "id": str(question),
            "by": columns["by"][place],
            "names": {f"{role}_name": name for role, name in names.items()},
            "texts": shown,
        }


def _classes(questions: xr.Dataset, classes: Sequence[Any] | None) -> list[str]:
    found = questions.attrs.get("classes") if classes is None else classes
    if not found or isinstance(found, str):
        raise DataError("the classes are not known; write classes=['no', 'yes'], with all that one may choose")
    return [text(name) for name in found]


def _listed(export: Any, key: str, what: str) -> Sequence[Mapping[str, Any]]:
    entries = [one for one in export if isinstance(one, Mapping)] if isinstance(export, (list, tuple)) else []
    if key == "annotations" and any("id" in one and "annotations" not in one and _ARGILLA & set(one) for one in entries):
        raise DataError(
            f"expected a list of {what}; these are records of Argilla: read them with formats.from_argilla(records)"
        )
    if key == "id" and any("annotations" in one for one in entries):
        raise DataError(f"expected a list of {what}; these are tasks of Label Studio: read them with formats.from_label_studio")
    if not isinstance(export, (list, tuple)) or len(entries) < len(export) or not all(key in one for one in entries):
        raise DataError(f"expected a list of {what}; this is none (every entry needs {key!r})")
    return entries


def _mapping(part: Any, what: str) -> Mapping[str, Any]:
    """A dictionary in an export; an empty one for nothing."""
    if part is not None and not isinstance(part, Mapping):
        raise DataError(f"{what} is {shorten([repr(part)])}; expected a dictionary")
    return part or {}


def _mappings(part: Any, what: str) -> list[Mapping[str, Any]]:
    """A list of dictionaries in an export; an empty one for nothing."""
    if part is not None and not (isinstance(part, (list, tuple)) and all(isinstance(one, Mapping) for one in part)):
        raise DataError(f"{what} is {shorten([repr(part)])}; expected a list of dictionaries")
    return list(part or [])


def _collected(entries: Iterable[tuple[str, Any, list[_Said]]], people: Mapping[Any, Any] | None) -> Imported:
    """What everybody said, sorted by what can be done with it."""
    said: dict[str, tuple[Any, dict[Hashable, Any]]] = {}
    for question, by, found in entries:
        answers = said.setdefault(question, (by, {}))[1]
        for one in found:
            answers.pop(one.who, None)  # of one person the last counts
            answers[one.who] = one.answer
    result = Imported({}, [], [], [], {})
    asked: Callable[[Any, Any], bool] = lambda who, by: people is None or text(who) == text(by)  # noqa: E731
    for question, (by, answers) in said.items():
        result.by_others.extend(
            (question, who, answer) for who, answer in answers.items() if answer is not None and not asked(who, by)
        )
        theirs = [answer for who, answer in answers.items() if asked(who, by)]
        different = list(dict.fromkeys(answer for answer in theirs if answer is not None))
        if len(different) == 1:
            result.answers[question] = different[0]
        elif different:
            result.disputed[question] = different
        else:
            (result.skipped if theirs else result.open).append(question)
    return result

"""Logs of inspect_ai: scores of samples, by scorer.

The form is that of an ``EvalLog`` written as JSON (https://inspect.aisi.org.uk/eval-logs.html):
``samples`` with ``id``, ``epoch``, ``target`` and ``scores`` by scorer, whose ``value`` is C
(correct), I (incorrect), P, N, a number, or several by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from raters.errors import DataError
from raters.judgements.names import shown
from raters.judgements.reading.answers import CHOICE, NUMBER, Answer, chosen, part, plain, table_of
from raters.judgements.reading.columns import read_number
from raters.judgements.reading.files import Several
from raters.judgements.reading.tables import Table

# Right and wrong, however a scorer writes them.
_RIGHT, _WRONG = "C", "I"
_LETTERS = (_RIGHT, _WRONG, "P", "N")


def recognise(content: Any) -> bool:
    """True for logs with samples and the facts of an evaluation."""
    logs = _logs(content)
    return bool(logs) and all(
        isinstance(log, dict) and {"eval", "samples"} <= log.keys() for log in logs
    )


def table(content: Any, control: str | None) -> Table:
    """The scores of all samples by all scorers."""
    logs, left = _logs(content), Counter[str]()
    samples = [(log, sample) for log in logs for sample in part(log, "samples", list) or []]
    epochs = {part(sample, "epoch", int) for _, sample in samples}
    answers = []
    for log, sample in samples:
        about = part(log, "eval", Mapping) or {}
        names = [part(about, "task", str), part(about, "model", str)] if len(logs) > 1 else []
        number = sample.get("id")
        if not isinstance(number, (int, str)):
            raise DataError(f"a sample has the id {shown(number)}; expected a number or a text")
        names += [f"{number}" if len(epochs) < 2 else f"{number} #{sample.get('epoch')}"]
        data = plain({"model": about.get("model"), "task": about.get("task"), "sample": number})
        data |= plain({name: sample.get(name) for name in ("epoch", "target")})
        item = number if len(names) == 1 and len(epochs) < 2 else "/".join(map(str, names))
        scores = list(_scores(sample))
        left["sample(s) without a score"] += not scores
        answers += [Answer(q, NUMBER, item, scorer, value, data) for q, scorer, value in scores]
    return table_of("inspect_ai", _with_letters(answers), left, control)


def _logs(content: Any) -> list[Any]:
    if isinstance(content, Several):
        return list(content.values())
    return content if isinstance(content, list) else [content]


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


def _with_letters(answers: list[Answer]) -> list[Answer]:
    """Scores that are right or wrong as choices, and the others as numbers."""
    by_question: dict[str, set[Any]] = {}
    for answer in answers:
        by_question.setdefault(answer.control, set()).add(answer.value)
    read = []
    for answer in answers:
        values = by_question[answer.control]
        if any(isinstance(one, str) and read_number(one) != read_number(one) for one in values) or {
            *map(read_number, values)
        } <= {0.0, 1.0}:
            number = read_number(answer.value)
            letter = {1.0: _RIGHT, 0.0: _WRONG}.get(number, answer.value)
            data = {**answer.data, "right": int(letter == _RIGHT)}  # for a model of responses
            answer = answer._replace(form=CHOICE, value=chosen(letter, "a score"), data=data)
        read.append(answer)
    return read

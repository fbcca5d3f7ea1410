"""Answers in words, as `Campaign.tell` takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from raters.errors import DataError
from raters.errors.validation import is_list
from raters.judgements.base import Judgements
from raters.judgements.names import shorten


def as_mapping(answers: Any, answer: Any) -> Mapping[Any, Any]:
    """Return answers by id: `answers` itself, or one id and its answer."""
    if isinstance(answers, Mapping):
        if answer is not None:
            raise DataError(
                "tell takes a mapping alone, or an id and an answer",
                parameter="answer",
                value=answer,
                problem="is given beside a mapping",
                expected="give an id and an answer, or a mapping from ids to answers",
            )
        return answers
    if not isinstance(answers, str) or answer is None:
        raise DataError(
            "tell takes an id and an answer, or a mapping: campaign.tell({'a3f1-1': 'first'})",
            parameter="answers",
            value=answers,
            expected="give an id and an answer, or a mapping from ids to answers",
        )
    return {answers: answer}


def as_ids(ids: Any) -> list[Any]:
    """Return ids of questions as a list: one, or several."""
    if not isinstance(ids, str) and not is_list(ids):
        raise DataError(
            parameter="ids",
            value=ids,
            expected="give the id of a question, or several",
            instead="campaign.withdraw(['a3f1-1'])",
        )
    return [ids] if isinstance(ids, str) else list(ids)


def outcome_of(pool: Judgements, row: int, answer: Any, question: Any) -> float:
    """Return the outcome that an answer in words stands for."""
    try:
        outcome = pool.outcome_of(row, answer)
    except DataError as error:
        raise DataError(f"question {question}: {error}. Nothing was written") from error
    if outcome is None:
        words = list(map(repr, pool.answer_words(row)))
        raise DataError(
            f"the answer {answer!r} to question {question} is none of those possible; it must be"
            f" one of {shorten(words, 10)}. Nothing was written",
            parameter="answers",
            value=answer,
        )
    return outcome

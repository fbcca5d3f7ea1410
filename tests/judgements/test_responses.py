"""Item responses read from long and wide tables, their facts, and their patterns."""

from __future__ import annotations

import numpy as np
import pytest

import raters as rt
from raters.errors import DataError, DataWarning
from raters.judgements.grouped import Patterns
from tests.refusals import raises_about

LONG = {
    "who": ["ann", "ann", "bob", "bob", "eve"],
    "question": ["q2", "q1", "q1", "q2", "q1"],
    "right": [1, 0, 1, 1, 0],
}
ROLES = {"person": "who", "item": "question", "correct": "right"}
WIDE = {"model": ["small", "large", "tiny"], "q9": [0, 1, None], "q1": [1, 1, 0]}


def read(**changes) -> rt.Responses:
    return rt.Responses.from_frame(LONG | changes, **ROLES)


@pytest.mark.parametrize(
    "right",
    [
        [True, False, True, True, False],
        ["1", "0", "1", "1", "0"],
        ["True", "False", "TRUE", "true", "false"],
        [1.0, 0.0, 1.0, 1.0, 0.0],
    ],
)
def test_what_is_right_may_be_written_in_several_ways(right) -> None:
    responses, plain = read(right=right), read()
    np.testing.assert_array_equal(responses.correct, plain.correct)
    assert responses.persons == ("ann", "bob", "eve")
    assert responses.answers_by("person")[:, 1].tolist() == [1, 2, 0]
    assert responses.answers_by("item")[:, 1].tolist() == [1, 2]


@pytest.mark.parametrize("value", [2, 0.5, "yes", -1])
def test_other_values_are_refused(value) -> None:
    right = ["1", "0", "1", value, "0"] if isinstance(value, str) else [1, 0, 1, value, 0]
    with raises_about(DataError, "correct", "right"):
        read(right=right)


def test_repeats_and_counts_are_put_together() -> None:
    twice = {name: [*column, *column] for name, column in LONG.items()}
    responses = rt.Responses.from_frame(twice, **ROLES)
    counted = rt.Responses.from_frame(LONG | {"n": [2] * 5}, **ROLES, count="n")
    for name in ("person", "item", "correct", "count"):
        np.testing.assert_array_equal(getattr(responses, name), getattr(counted, name))
    assert (responses.num_rows, responses.num_responses) == (5, 10)
    single = rt.Responses.from_frame(twice, **ROLES, aggregate=False)
    assert single.num_rows == 10
    with raises_about(DataError, "count", "n"):
        rt.Responses.from_frame(LONG | {"n": [1, 2, 0, 1, 1]}, **ROLES, count="n")


def test_a_table_comes_back() -> None:
    responses = read()
    table = responses.to_frame()
    assert table["correct"].tolist() == [0, 1, 1, 1, 0]
    roles = {"person": "person", "item": "item", "correct": "correct", "count": "count"}
    again = rt.Responses.from_frame(table, **roles)
    np.testing.assert_array_equal(again.correct, responses.correct)
    assert "correct" not in responses.unanswered().to_frame()


def test_a_wide_table_keeps_the_order_of_its_columns_and_leaves_out_empty_cells() -> None:
    responses = rt.Responses.from_wide(WIDE, person="model")
    assert responses.items == ("q9", "q1")
    assert responses.num_responses == 5
    asked = {
        (responses.persons[p], responses.items[i])
        for p, i in zip(responses.person, responses.item, strict=True)
    }
    assert ("tiny", "q9") not in asked
    assert responses.answers_by("person")[:, 1].tolist() == [2, 1, 0]  # large, small, tiny


def test_what_the_data_cannot_tell_is_said() -> None:
    responses = rt.Responses.from_frame(
        LONG, **ROLES, persons=["ann", "bob", "eve", "zoe"], items=["q1", "q2", "q3"]
    )
    with pytest.warns(DataWarning) as caught:
        responses.warn()
    text = " | ".join(str(one.message) for one in caught)
    assert "1 person(s) have no judgement, and keep their prior: zoe" in text
    assert "1 item(s) have no judgement, and keep their prior: q3" in text
    assert "answered right by all, or by nobody" in text
    assert "q2" in text.split("nobody")[1]


def test_patterns_hold_equal_persons_once() -> None:
    table = {"who": list("abcdef"), "q1": [1, 0, 1, 1, None, 1], "q2": [0, 1, 0, 0, 1, 1]}
    responses = rt.Responses.from_wide(table, person="who")
    patterns = Patterns.of(responses, "person", "item")
    patterns.check()
    assert patterns.repeats.tolist() == [3, 1, 1, 1]
    assert patterns.group.tolist() == [0, 0, 1, 1, 2, 3, 3]
    assert patterns.given.tolist() == [1, 0, 0, 1, 1, 1, 1]
    assert patterns.facets == ("q1", "q2")


def test_patterns_tell_counts_and_who_was_asked_apart() -> None:
    table = {"who": list("aabb"), "q": [1, 1, 1, 1], "r": [1, 1, 1, 0]}
    responses = rt.Responses.from_frame(
        table, person="who", item="q", correct="r", persons=["a", "b", "nobody"]
    )
    patterns = Patterns.of(responses, "person", "item")
    assert patterns.repeats.tolist() == [1, 1]
    assert patterns.count.tolist() == [2, 2]
    assert patterns.given.tolist() == [2, 1]

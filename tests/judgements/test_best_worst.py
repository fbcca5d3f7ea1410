"""Best–worst answers: reading, refusals, words, parts, and round trips."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import raters as rt
from raters.errors import DataError
from raters.judgements.counts import standing
from tests.refusals import raises_about

TABLE = {
    "Item1": ["tea", "milk", "tea", "beer"],
    "Item2": ["milk", "beer", "milk", "tea"],
    "Item3": ["beer", "mead", "beer", None],
    "Item4": ["mead", "tea", "mead", ""],
    "BestItem": ["tea", "milk", "tea", "beer"],
    "WorstItem": ["beer", "mead", "beer", None],
    "who": ["ann", "bob", "ann", "eve"],
}
ROLES = {"offered": ["Item*"], "best": "BestItem", "worst": "WorstItem"}


def read(table=TABLE, **options) -> rt.Rankings:
    return rt.Rankings.from_best_worst(table, **ROLES | {"annotator": "who"} | options)


def test_a_table_of_best_and_worst_is_read() -> None:
    answers = read()
    answers.check()
    assert answers.items == ("beer", "mead", "milk", "tea")
    assert answers.num_rows == 3
    assert answers.num_rankings == 4
    assert answers.offered.tolist() == [[0, 1, 2, 3], [0, 1, 2, 3], [0, 3, -1, -1]]
    # Ann twice; bob; eve saw two items, and named the best alone.
    assert answers.place.tolist() == [[-1, 0, 0, 1], [0, -1, 1, 0], [1, 0, 0, 0]]
    assert answers.lowest.tolist() == [1, 1, 0]
    assert answers.depth.tolist() == [1, 1, 1]
    assert answers.weight.tolist() == [2, 1, 1]
    assert answers.is_partial


@pytest.mark.parametrize(
    ("change", "parameter"),
    [
        ({"BestItem": ["tea", "wine", "tea", "beer"]}, "best"),
        ({"WorstItem": ["4", "mead", "beer", None]}, "worst"),
        ({"WorstItem": ["beer", "mead", "tea", None]}, "worst"),
        ({"Item2": ["milk", "milk", "milk", "tea"]}, "offered"),
        ({"Item2": ["milk", "beer", "milk", None]}, "offered"),
        ({"BestItem": ["tea", "", "tea", "beer"]}, "best"),
    ],
    ids=["other best", "number", "same", "twice", "single", "no best"],
)
def test_rows_that_are_no_answers_are_refused(change, parameter) -> None:
    with raises_about(DataError, parameter):
        read(TABLE | change)


# ---------------------------------------------------------------- round trips


def test_a_long_table_holds_the_worst() -> None:
    answers = read()
    frame = answers.to_frame()
    ann = frame[frame["ranking"] == 0].set_index("item")
    assert ann["lowest"].to_dict() == {"beer": 1, "mead": 0, "milk": 0, "tea": 0}
    roles = ("ranking", "item", "rank", "lowest", "annotator", "count")
    columns = dict(zip(roles, roles, strict=True))
    again = rt.Rankings.from_frame(frame, **columns, unranked="not offered")
    for name in ("offered", "place", "lowest", "depth", "weight"):
        np.testing.assert_array_equal(getattr(again, name), getattr(answers, name))
    assert "lowest" not in answers.without_worst().to_frame()


@pytest.mark.parametrize("marks", [[0, 2, 0], [1, 0, 0], [0, 1, 1], ["x", 0, 0]])
def test_marks_of_a_long_table_fit_the_ranks(marks) -> None:
    table = {"race": [7, 7, 7], "driver": list("abc"), "finish": [1, None, None], "last": marks}
    roles = {"ranking": "race", "item": "driver", "rank": "finish"}
    with raises_about(DataError, "lowest"):
        rt.Rankings.from_frame(table, **roles, lowest="last")
    none = rt.Rankings.from_frame(table | {"last": [None] * 3}, **roles, lowest="last")
    assert none.lowest is None
    with raises_about(DataError, "lowest"):
        rt.Rankings.from_frame(table, **roles, lowest="lats")


# ---------------------------------------------------------------- words and numbers


def test_best_and_worst_in_words() -> None:
    asked = read().unanswered()
    outcome = asked.outcome_of(0, "Tea > ... > beer")
    assert asked.words_of(0, outcome) == "tea > ... > beer"
    for same in ("tea > beer", "tea>…>beer", ["tea", "beer"], ["tea", "...", "beer"]):
        assert asked.outcome_of(0, same) == outcome
    one = asked.rows([0]).answered(np.array([outcome]))
    assert one.place.tolist() == [[-1, 0, 0, 1]]
    assert [each.tolist() for each in one.single_outcomes()] == [[0], [outcome], [1]]
    for wrong in ("tea", "tea > tea", "tea > milk > beer", "...", ["tea", "wine"], "a > ... > b"):
        with pytest.raises(DataError):
            asked.outcome_of(0, wrong)


# ---------------------------------------------------------------- parts


def test_answers_with_and_without_a_worst_are_joined_and_told_apart() -> None:
    answers = read()
    best = answers.without_worst()
    assert best.lowest is None
    assert best.place.tolist() == [[0, 0, 0, 1], [0, 0, 1, 0], [1, 0, 0, 0]]
    for one, other in ((answers, best), (best, answers)):
        both = one.joined(other)
        both.check()
        assert both.num_rankings == 8
        # Eve's question is the same in both.
        assert one.without(other).tolist() == [True, True, False]
    assert best.joined(best).lowest is None
    assert answers.aggregate().num_rows == 3
    padded = answers.padded(8)
    padded.check()
    assert padded.unpadded().place.tolist() == answers.place.tolist()
    assert answers.without_judges(["eve"]).lowest.tolist() == [1, 1]
    turned = dataclasses.replace(
        answers, offered=answers.offered[:, ::-1], place=answers.place[:, ::-1]
    )
    np.testing.assert_array_equal(turned.canonical().place, answers.place)


# ---------------------------------------------------------------- properties


@st.composite
def tables(draw) -> pd.DataFrame:
    """Answers about three to five of six items, some without a worst."""
    rows = []
    for _ in range(draw(st.integers(1, 6))):
        shown = draw(st.permutations("abcdef"))[: draw(st.integers(3, 5))]
        worst = shown[-1] if draw(st.booleans()) else None
        cells = [*draw(st.permutations(shown)), *[None] * (5 - len(shown))]
        rows.append([*cells, shown[0], worst, draw(st.sampled_from("xy"))])
    return pd.DataFrame(
        rows, columns=[*(f"Item{n}" for n in range(5)), "BestItem", "WorstItem", "who"]
    )


@given(tables())
@settings(max_examples=30, deadline=None)
def test_whatever_is_read_fits_together_and_is_written_and_read_again(table) -> None:
    answers = read(table)
    answers.check()
    assert answers.num_rankings == len(table)
    number = standing(answers.place)
    there = answers.offered >= 0
    named = answers.place < 0
    assert (named.sum(1) == (0 if answers.lowest is None else answers.lowest)).all()
    assert (number[named] == np.where(there, number, 0).max(1)[named.any(1)]).all()
    codes = answers.single_outcomes()[1].tolist()
    told = dataclasses.replace(answers, place=None).answered(np.array(codes))
    np.testing.assert_array_equal(told.place, answers.place)
    # The order of the rows, and of the columns of items, does not matter.
    turned = table.iloc[::-1, [3, 1, 4, 0, 2, 5, 6, 7]]
    again = read(turned, items=answers.items, annotators=answers.annotators)
    np.testing.assert_array_equal(again.place, answers.place)

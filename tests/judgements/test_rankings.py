"""Rankings: reading, refusals, parts, and round trips."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.errors import DataError, DataWarning
from raters.judgements.rankings import order_code, order_of
from tests.refusals import raises_about

WIDE = {
    "who": ["ann", "bob", "ann", "eve"],
    "pos1": ["tea", "milk", "tea", "beer"],
    "pos2": ["milk", "tea", "milk", None],
}
LONG = {
    "race": [7, 7, 7, 8, 8],
    "driver": ["ann", "bob", "eve", "eve", "ann"],
    "finish": [2, 1, None, 1, 5],
}


def wide(**options) -> rt.Rankings:
    given = {"places": ["pos1", "pos2"], "annotator": "who", "unranked": "below"}
    return rt.Rankings.from_wide(WIDE, **given | options)


def long(table=LONG, **options) -> rt.Rankings:
    roles = {"ranking": "race", "item": "driver", "rank": "finish"}
    return rt.Rankings.from_frame(table, **roles | options)


def test_counts_are_equal_rankings() -> None:
    counted = rt.Rankings.from_wide(
        {
            "who": ["ann", "bob", "eve"],
            "pos1": ["tea", "milk", "beer"],
            "pos2": ["milk", "tea", None],
            "times": [2, 1, 1],
        },
        places=["pos*"],
        annotator="who",
        count="times",
        unranked="below",
    )
    one = wide()
    np.testing.assert_array_equal(counted.weight, one.weight)
    np.testing.assert_array_equal(counted.place, one.place)
    frame = rankings_table(one)
    again = rt.Rankings.from_frame(
        frame, ranking="race", item="driver", rank="finish", annotator="annotator", count="count"
    )
    np.testing.assert_array_equal(again.weight, one.weight)
    frame.loc[0, "count"] = 7
    with raises_about(DataError, "count"):
        long(frame, annotator="annotator", count="count")
    with raises_about(DataError, "count"):
        long(frame.assign(count=0), annotator="annotator", count="count")


def test_what_is_left_out_is_below_or_was_not_offered() -> None:
    below, apart = wide(), wide(unranked="not offered")
    assert below.judgements_by("item").tolist() == [4, 4, 4]
    assert apart.judgements_by("item").tolist() == [1, 3, 3]
    assert below.is_partial
    assert not apart.is_partial
    assert below.depth.tolist() == apart.depth.tolist()
    with raises_about(DataError, "unranked"):
        wide(unranked=None)
    with raises_about(DataError, "unranked"):
        wide(unranked="above")


def test_a_long_table_ranks_by_the_lowest_and_an_empty_rank_is_below() -> None:
    rankings = long(unranked="not offered")
    assert rankings.annotators == (7, 8)
    assert rankings.items == ("ann", "bob", "eve")
    assert rankings.offered.tolist() == [[0, 1, 2], [0, 2, -1]]
    assert rankings.place.tolist() == [[2, 1, 0], [2, 1, 0]]
    assert rankings.depth.tolist() == [2, 2]
    again = long(rankings_table(rankings), unranked="not offered")
    assert again.offered.tolist() == rankings.offered.tolist()
    assert again.place.tolist() == rankings.place.tolist()


def rankings_table(rankings: rt.Rankings) -> pd.DataFrame:
    frame = rankings.to_frame()
    return frame.rename(columns={"ranking": "race", "item": "driver", "rank": "finish"})


@pytest.mark.parametrize(
    "change",
    [
        {"driver": ["ann", "ann", "eve", "eve", "ann"]},
        {"finish": [None, None, None, 1, 2]},
        {"finish": ["first", 1, None, 1, 2]},
    ],
    ids=["twice", "no place", "no number"],
)
def test_tables_that_are_no_rankings_are_refused(change) -> None:
    with pytest.raises(DataError):
        long(LONG | change, unranked="not offered")


def test_questions_and_answers() -> None:
    rankings = wide()
    asked = rankings.unanswered()
    assert asked.num_rows == 4
    assert asked.count is None
    assert asked.answered(wide(aggregate=False).place).num_rankings == 4
    with raises_about(DataError, "outcomes"):
        asked.answered(np.zeros(3, int))
    assert "rank" not in asked.to_frame()


@pytest.mark.parametrize(("size", "depth"), [(3, 3), (4, 2), (5, 1)])
def test_every_order_has_a_number(size, depth) -> None:
    orders = list(itertools.permutations(range(size), depth))
    codes = [order_code(order, size) for order in orders]
    assert sorted(codes) == list(range(len(orders)))
    assert [tuple(order_of(code, size, depth)) for code in codes] == orders
    with raises_about(DataError, "outcomes"):
        order_of(len(orders), size, depth)


def test_orders_in_words() -> None:
    asked = wide().unanswered()
    row = int(np.flatnonzero(asked.depth == 2)[0])
    outcome = asked.outcome_of(row, "Tea > beer")
    assert asked.words_of(row, outcome) == "tea > beer"
    assert asked.outcome_of(row, ["tea", "beer"]) == outcome
    assert asked.outcome_of(row, 7) is None
    assert asked.answer_words(row) == {"beer": 0.0, "milk": 1.0, "tea": 2.0}
    assert asked.listed_word(row, 2) == "tea"
    one = asked.rows([row]).answered(np.array([outcome]))
    assert one.place.tolist() == [[2, 0, 1]]
    assert [each.tolist() for each in one.single_outcomes()] == [[0], [outcome], [1]]
    for wrong in ("tea", "tea > tea", "tea > milk > beer", ["tea", "mead"]):
        with pytest.raises(DataError):
            asked.outcome_of(row, wrong)


def test_pairs_of_a_ranking_count_its_order() -> None:
    """Ann put tea before milk twice, and both before beer."""
    judge, pair, answer, count = wide().tallies()
    ann = judge == 0
    assert sorted(zip(pair[ann] % 3, answer[ann], count[ann], strict=True)) == [
        (1, 0, 2.0),  # beer and milk
        (2, 0, 2.0),  # beer and tea, milk and tea
        (2, 0, 2.0),
    ]


def test_warnings_name_what_is_not_known() -> None:
    rankings = rt.Rankings.from_wide(
        {"a": ["x", "y"], "b": ["y", None]},
        places=["a", "b"],
        unranked="not offered",
        items=["x", "y", "z"],
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rankings.warn()
    texts = [str(one.message) for one in caught if one.category is DataWarning]
    assert "1 item(s) were never offered, and keep their prior: z" in texts[0]
    assert "1 ranking(s) have a single item" in texts[1]


def test_stages_are_choices_of_the_best_of_the_rest() -> None:
    table = wide().stages().to_frame().groupby(["set", "alternative"])["chosen"].sum()
    sizes = table.groupby("set").size().to_list()
    assert sorted(sizes) == [2, 2, 3, 3, 3]  # Of three drinks the first two places, of eve's one.
    assert wide().stages().num_choices == 7  # Ann twice, bob, and eve's single place.
    ann = wide().without_judges(["bob", "eve"]).stages().to_frame()
    assert ann.groupby("alternative")["chosen"].sum().to_dict() == {"beer": 0, "milk": 2, "tea": 2}
    one = rt.Rankings.from_wide({"a": ["x"]}, places=["a"])
    with pytest.raises(DataError):
        one.stages()
    with pytest.raises(DataError):
        wide().unanswered().stages()

"""Comparisons: every shape of table, every way to say who won, and the errors and warnings about
what the rows say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import raters as rt
from raters.errors import DataError
from raters.judgements import connection
from tests import hand
from tests.refusals import raises_about


def outcome_votes(outcome, first=("x", "y", "x"), second=("y", "z", "z"), **options):
    table = {"one": list(first), "two": list(second), "won": outcome}
    return rt.Comparisons.from_frame(
        table, first="one", second="two", outcome="won", aggregate=False, **options
    )


# ------------------------------------------------------------------ shapes of table


@pytest.mark.parametrize(
    "roles",
    [
        {},
        {"winner": "a"},
        {"first": "a", "second": "b"},
        {"first": "a", "outcome": "o"},
        {"winner": "a", "loser": "b", "first": "a", "second": "b", "outcome": "o"},
        {"winner": "a", "loser": "b", "outcomes": {"first": 1, "second": 0}},
    ],
)
def test_exactly_one_shape_must_be_described(roles):
    with raises_about(DataError, "winner"):
        rt.Comparisons.from_frame({"a": [1], "b": [2], "o": [1]}, **roles)


def test_the_presentation_order_is_kept_where_it_is_known():
    table = {"one": ["b", "a"], "two": ["a", "b"], "won": [1, 1]}
    votes = rt.Comparisons.from_frame(table, first="one", second="two", outcome="won")
    assert votes.ordered
    assert votes.num_comparisons == 2
    votes = rt.Comparisons.from_frame(table, winner="one", loser="two")
    assert not votes.ordered
    assert (votes.num_comparisons, votes.num_votes, votes.wins.tolist()) == (1, 2, [1.0])


# ------------------------------------------------------------------ outcomes

X_Y_X = [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    "outcome",
    [
        ["x", "z", "x"],  # names of items
        ["one", "two", "one"],  # names of columns
        ["ONE", "Two", "one "],
        ["first", "second", "first"],
        ["First", "SECOND", " first "],
        ["left", "right", "left"],
        ["a", "b", "a"],
        ["A", "B", "A"],
        ["item_a", "item_b", "item_a"],
        ["model_a", "model_b", "model_a"],
        ["win", "loss", "win"],
        [1, 0, 1],
        [1.0, 0.0, 1.0],
        ["1", "0", "1"],
        ["1.0", "0.0", "1.0"],
        [True, False, True],
        np.array([True, False, True]),
        ["True", "False", "true"],
        [1, 2, 1],
        ["1", "2", "1"],
        np.array([1, 2, 1], np.uint8),
        pd.Series([1, 0, 1], dtype="Int64"),
        pd.Series([True, False, True], dtype="boolean"),
        pd.Series(["left", "right", "left"], dtype="category"),
        pl.Series([True, False, True]),
    ],
)
def test_every_way_to_say_who_won(outcome):
    assert outcome_votes(outcome).wins.tolist() == X_Y_X


@pytest.mark.parametrize(
    "tie",
    ["tie", "Tie", "tie (inconsistent)", "tie (bothbad)", "tie_both", "draw", "equal", "both", "½"],
)
def test_every_word_for_a_tie(tie):
    votes = outcome_votes(["model_a", tie, "model_b"], ties="half")
    assert votes.wins.tolist() == [1.0, 0.5, 0.0]


@pytest.mark.parametrize(
    ("outcomes", "values"),
    [
        ({"first": 1, "second": 2, "tie": 0}, [1, 2, 0]),
        ({"first": 1, "second": -1, "tie": 0}, [1, -1, 0]),
        ({"first": "1", "second": "-1", "tie": "0"}, [1, -1, 0]),
        ({"first": 1, "second": -1, "tie": 0}, ["1", "-1", "0"]),
        (
            {"first": "A better", "second": "B better", "tie": ["same", "both bad"]},
            ["A better", "B better", "both bad"],
        ),
    ],
)
def test_outcomes_spelled_out(outcomes, values):
    assert outcome_votes(values, outcomes=outcomes, ties="half").wins.tolist() == [1.0, 0.0, 0.5]


def test_column_names_go_before_words():
    """Columns called b and a, in this order: "a" is the second."""
    table = {"b": ["x", "y"], "a": ["y", "x"], "won": ["a", "b"]}
    votes = rt.Comparisons.from_frame(table, first="b", second="a", outcome="won", aggregate=False)
    assert votes.wins.tolist() == [0.0, 1.0]


# ------------------------------------------------------------------ items that look like outcomes


def test_items_called_0_and_1_are_ambiguous_until_spelled_out():
    sides = {"first": [0, 1, 0], "second": [1, 0, 1]}
    with raises_about(DataError, "outcome"):
        outcome_votes([1, 1, 0], **sides)
    votes = outcome_votes([1, 1, 0], **sides, outcomes={"first": 1, "second": 0})
    assert votes.wins.tolist() == [1.0, 1.0, 0.0]
    renamed = {side: [f"item {name}" for name in names] for side, names in sides.items()}
    assert outcome_votes(["item 1", "item 1", "item 0"], **renamed).wins.tolist() == [0.0, 1.0, 1.0]


# ------------------------------------------------------------------ ties


def test_ties_under_each_policy():
    outcome = ["x", "tie", "z"]
    with raises_about(DataError, "ties"):
        outcome_votes(outcome)
    assert outcome_votes(outcome, ties="drop").wins.tolist() == [1.0, 0.0]
    assert outcome_votes(outcome, ties="half").wins.tolist() == [1.0, 0.5, 0.0]


# ------------------------------------------------------------------ counts


def test_counts_are_exact():
    """Single precision holds whole numbers up to 2**24 only."""
    table = {"w": ["a", "c", "a"], "l": ["b", "a", "b"], "n": [2**24 + 1, 2**52, 2]}
    votes = rt.Comparisons.from_frame(table, winner="w", loser="l", count="n")
    assert sorted(votes.count.tolist()) == [2**24 + 3, 2**52]
    assert votes.aggregate().num_votes == 2**24 + 3 + 2**52
    most = {"w": ["a", "c", "b"], "l": ["b", "a", "a"], "n": [2**53 - 1, 1, 1]}
    votes = rt.Comparisons.from_frame(most, winner="w", loser="l", count="n")
    assert votes.num_votes == 2**53 + 1
    with raises_about(DataError, "count"):
        rt.fit(rt.BTL(), votes, rt.PGEM(draws=0), seed=0, progress=False)
    table["n"][0] = table["n"][2] = 2**53
    with raises_about(DataError, "count"):
        rt.Comparisons.from_frame(table, winner="w", loser="l", count="n")


# ------------------------------------------------------------------ ratings


def test_equal_ratings_under_each_policy():
    table = {"film": ["A", "B"], "stars": [3, 3]}
    with raises_about(DataError, "ties"):
        rt.Comparisons.from_ratings(table, item="film", rating="stars", ties="drop")
    three = {"film": ["Z", "A", "B", "C"], "stars": [1, 3, 3, 3]}
    with pytest.raises(DataError, match=r"^ties=.*row 1 .*; 3 such"):
        rt.Comparisons.from_ratings(three, item="film", rating="stars", ties="error")
    votes = rt.Comparisons.from_ratings(table, item="film", rating="stars")
    assert (votes.wins.tolist(), votes.count.tolist()) == ([0.5], [1.0])


@pytest.mark.parametrize("annotator", [None, "who"])
def test_ratings_without_a_pair_are_refused(annotator):
    with raises_about(DataError, "rating"):
        table = {"film": ["A", "A"], "stars": [3, 4], "who": ["x", "x"]}
        rt.Comparisons.from_ratings(table, item="film", rating="stars", annotator=annotator)


# ---------------------------------------------------------------- order of presentation


@pytest.mark.parametrize(
    ("rows", "share"),
    [
        ([("a", "b")] * 3, 0.0),
        ([("a", "b"), ("b", "c"), ("a", "c")], 1 / 9),
        ([("a", "b"), ("b", "c"), ("c", "a")], 1.0),
        ([("a", "b")] * 3 + [("b", "a")], 0.75),
    ],
)
def test_rewards_imitate_an_advantage_of_the_first_unless_orders_are_mixed(rows, share) -> None:
    """By hand: of a before b before c, rewards ⅔ apart leave (⅓² + ⅓² + ⅓²) / 3."""
    votes = hand.ordered_votes(*[(*row, "first", "ann") for row in rows])
    assert connection.order_share(votes) == pytest.approx(share, abs=1e-5)

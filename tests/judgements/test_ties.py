"""Comparisons with ties as answers of their own."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import raters as rt
from raters.errors import DataError
from tests.refusals import raises_about

SIDES = {"first": "a", "second": "b", "outcome": "says"}
TABLE = pd.DataFrame(
    {
        "a": ["x", "x", "x", "x", "y", "y"],
        "b": ["y", "y", "y", "y", "z", "z"],
        "says": ["tie", "a", "a", "tie", "b", "both"],
        "who": ["p", "p", "p", "p", "p", "q"],
    }
)
ROWS = st.lists(
    st.tuples(
        st.sampled_from("xyz"),
        st.sampled_from("xyz"),
        st.sampled_from(["first", "second", "tie"]),
        st.sampled_from("pq"),
    ).filter(lambda row: row[0] != row[1]),
    min_size=1,
    max_size=30,
)


def kept(table=TABLE, **options) -> rt.Comparisons:
    return rt.Comparisons.from_frame(table, **SIDES, annotator="who", ties="keep", **options)


def test_ties_are_kept_as_rows_of_their_own() -> None:
    votes = kept()
    assert votes.wins.tolist() == [0.5, 1.0, 0.0, 0.5]
    assert votes.count.tolist() == [2.0, 2.0, 1.0, 1.0]
    assert votes.num_votes == 6
    assert votes.answers().tolist() == [1.0, 0.5, 0.0]
    assert [each[0] for each in votes.single_outcomes()] == [0, 0.5, 2]
    votes.check()


def test_half_of_each_tie_is_what_half_reads() -> None:
    half = rt.Comparisons.from_frame(TABLE, **SIDES, annotator="who", ties="half")
    again = kept().halved().aggregate()
    assert not again.tied
    assert again.wins.tolist() == half.wins.tolist()
    assert again.count.tolist() == half.count.tolist()


@given(rows=ROWS)
def test_tables_come_back_as_they_were(rows) -> None:
    table = pd.DataFrame(rows, columns=["a", "b", "says", "who"])
    votes = kept(table, items=list("xyz"), annotators=list("pq"))
    columns = {name: name for name in ("first", "second", "outcome", "annotator", "count")}
    again = rt.Comparisons.from_frame(
        votes.to_frame(), **columns, ties="keep", items=list("xyz"), annotators=list("pq")
    )
    for name in ("first", "second", "annotator", "wins", "weight"):
        np.testing.assert_array_equal(getattr(votes, name), getattr(again, name))


def test_unordered_pairs_turn_with_their_outcomes() -> None:
    votes = rt.Comparisons.from_ratings(
        {"item": ["x", "y", "z"], "stars": [3, 3, 5]}, item="item", rating="stars", ties="keep"
    )
    assert votes.to_frame()["outcome"].tolist() == ["tie", "second", "second"]
    turned = votes.rows(slice(None))
    sides = {"first": turned.second, "second": turned.first}
    swapped = dataclasses.replace(turned, **sides, wins=1 - turned.wins)
    assert swapped.aggregate().wins.tolist() == votes.wins.tolist()


def test_sums_do_not_say_how_many_ties_they_hold() -> None:
    half = rt.Comparisons.from_frame(TABLE.iloc[:3], **SIDES, annotator="who", ties="half")
    with raises_about(DataError, "wins"):
        half.with_ties()


def test_further_votes_join_in_the_same_way() -> None:
    half = rt.Comparisons.from_frame(TABLE, **SIDES, annotator="who", ties="half", aggregate=False)
    joined = kept(aggregate=False).joined(half)
    assert joined.tied
    assert joined.aggregate().count.tolist() == [4.0, 4.0, 2.0, 2.0]
    assert half.joined(kept(aggregate=False)).aggregate().wins.tolist() == [6.0, 0.0, 1.0]


def test_questions_take_over_how_the_fitted_votes_have_ties() -> None:
    votes = kept()
    assert rt.Candidates.pairs(votes).tied
    assert rt.Candidates.pairs(items=["x", "y"], annotators=["p"], ties="keep").tied
    asked = rt.Candidates.pairs(votes.halved())
    assert asked.recoded(votes, ["item"]).tied
    assert not rt.Candidates.pairs(votes).recoded(votes.halved(), ["item"]).tied


def test_padding_and_stored_results_keep_ties() -> None:
    votes = kept()
    padded = votes.padded(8)
    padded.check()
    assert padded.aggregate().wins.tolist() == votes.wins.tolist()
    again = rt.Comparisons.unpack(votes.packed(), votes.flags())
    assert again.tied
    assert again.success is None


def test_words_stand_for_three_outcomes() -> None:
    votes = kept()
    assert [votes.outcome_of(0, word) for word in ("x", "tie", "second")] == [1.0, 0.5, 0.0]
    assert votes.words_of(0, 0.5) == "tie"


def test_agreement_counts_a_tie_as_an_answer() -> None:
    table = pd.DataFrame(
        {
            "a": ["x"] * 4,
            "b": ["y", "y", "z", "z"],
            "says": ["tie", "tie", "tie", "a"],
            "who": ["p", "q", "p", "q"],
        }
    )
    observed = rt.agreement(kept(table)).loc["observed_agreement", "estimate"]
    assert observed == pytest.approx(0.5)  # Halves would agree by chance.

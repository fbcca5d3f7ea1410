"""Ratings and graded responses read from long and wide tables, and their facts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import raters as rt
from raters.errors import DataError, DataWarning
from tests.refusals import raises_about

LONG = {
    "film": ["Alien", "Alien", "Brazil", "Brazil", "Casablanca"],
    "critic": ["ann", "bob", "ann", "bob", "bob"],
    "stars": [4, 5, 2, 3, 5],
}
ROLES = {"item": "film", "annotator": "critic", "rating": "stars"}
WIDE = {"prompt": [1, 2, 3], "gpt": [7, 9, None], "claude": [8, None, 7]}


def read(**changes) -> rt.Ratings:
    return rt.Ratings.from_frame(LONG | changes, **ROLES)


def test_levels_are_the_numbers_in_the_column_by_size() -> None:
    ratings = read(stars=[4.0, "10", 2.5, 3, 10])
    assert ratings.levels == ("2.5", "3", "4", "10")
    assert ratings.rating.tolist() == [2, 3, 0, 1, 3]
    assert read().levels == (2, 3, 4, 5)
    assert read().scores().tolist() == [2, 3, 4, 5]


def test_levels_may_be_named_in_their_order() -> None:
    words = ["good", "great", "poor", "fair", "great"]
    scale = ["poor", "fair", "good", "great", "best"]
    ratings = rt.Ratings.from_frame(LONG | {"stars": words}, **ROLES, levels=scale)
    assert ratings.rating.tolist() == [2, 3, 0, 1, 3]
    assert ratings.num_levels == 5
    assert ratings.scores().tolist() == [1, 2, 3, 4, 5]
    assert list(ratings.coords["step"]) == scale[1:]


def test_one_level_and_too_many_are_refused() -> None:
    with raises_about(DataError, "rating", "stars"):
        read(stars=[3] * 5)
    many = {"film": range(30), "critic": ["ann"] * 30, "stars": range(30)}
    with raises_about(DataError, "rating", "stars"):
        rt.Ratings.from_frame(many, **ROLES, levels=range(202))


def test_wide_tables_have_a_column_for_each_annotator() -> None:
    for table in (WIDE, pd.DataFrame(WIDE), pl.DataFrame(WIDE)):
        ratings = rt.Ratings.from_wide(table, item="prompt")
        assert ratings.annotators == ("gpt", "claude")
        assert ratings.levels == (7, 8, 9)
        assert ratings.num_ratings == 4
        assert ratings.answers_by("annotator").tolist() == [[1, 0, 1], [1, 1, 0]]
    some = rt.Ratings.from_wide(WIDE, item="prompt", columns=["cl*"])
    assert some.annotators == ("claude",)
    with raises_about(DataError, "columns"):
        rt.Ratings.from_wide({"prompt": [1], "gpt": [None]}, item="prompt")


def test_repeats_and_counts_are_put_together() -> None:
    twice = rt.Ratings.from_frame({k: [*v, *v] for k, v in LONG.items()}, **ROLES)
    counted = rt.Ratings.from_frame(LONG | {"n": [2] * 5}, **ROLES, count="n")
    for name in ("item", "annotator", "rating", "count"):
        np.testing.assert_array_equal(getattr(twice, name), getattr(counted, name))
    assert twice.num_ratings == 10
    table = twice.to_frame()
    assert list(table.columns) == ["item", "annotator", "rating", "count"]
    again = rt.Ratings.from_frame(
        table, item="item", annotator="annotator", rating="rating", count="count"
    )
    np.testing.assert_array_equal(again.rating, twice.rating)


def test_warnings_name_who_uses_one_level_and_who_shares_no_item() -> None:
    table = {
        "film": [*range(6), *range(6), 7, 8],
        "critic": ["ann"] * 6 + ["bob"] * 6 + ["eve"] * 2,
        "stars": [1, 2, 3, 1, 2, 3, 2, 2, 2, 2, 2, 2, 1, 3],
    }
    ratings = rt.Ratings.from_frame(table, **ROLES)
    with pytest.warns(DataWarning) as caught:
        ratings.warn()
    text = " ".join(str(one.message) for one in caught)
    assert "on one level, which tells no item from another: bob" in text
    assert "fall into 2 parts that share no item: ann, bob; eve" in text


def test_graded_responses_are_read_alike() -> None:
    table = {"who": ["ann", "bob"], "calm": ["no", "yes"], "kind": ["perhaps", None]}
    levels = ["no", "perhaps", "yes"]
    wide = rt.GradedResponses.from_wide(table, person="who", levels=levels)
    assert wide.items == ("calm", "kind")
    assert wide.response.tolist() == [0, 1, 2]
    assert wide.num_responses == 3
    long = wide.to_frame()
    again = rt.GradedResponses.from_frame(
        long, person="person", item="item", response="response", levels=levels
    )
    np.testing.assert_array_equal(again.response, wide.response)
    with pytest.warns(DataWarning, match="answered alike by all"):
        again.warn()

"""Mistakes that users made with tables of choices, rankings and ratings, each with its advice."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.cli.columns import read, source_of
from raters.errors import ConvergenceWarning, DataError, DataWarning
from tests.refusals import raises_about

TRIPS = pd.DataFrame(
    {
        "trip": [1, 1, 1, 2, 2, 3, 3],
        "mode": ["car", "bus", "train", "car", "bus", "bus", "train"],
        "taken": [1, 0, 0, 0, 1, 0, 1],
        "price": [3.0, 1.0, 2.0, 3.5, 1.5, 2.5, 2.0],
        "income": [5, 5, 5, 2, 2, 3, 3],
    }
)
ROLES = {"set": "trip", "alternative": "mode", "chosen": "taken"}


@pytest.mark.parametrize("column", ["taken", "price", "mode"])
def test_sets_lose_no_row(column, tmp_path) -> None:
    """A set without one of its rows would be another set."""
    path = tmp_path / "trips.csv"
    table = TRIPS.astype(object)
    table.loc[1, column] = ""
    table.to_csv(path, index=False)
    given = {role: [name] for role, name in ROLES.items()} | {"features": ["price"]}
    with pytest.raises(DataError):
        read(source_of(path, given))
    choices, notes = read(source_of(path, given), drop_bad_rows=True)
    assert choices.sets == ("2", "3")
    assert notes[-1] == "left out 3 of 7 rows with a missing value"


@pytest.mark.parametrize("column", ["taken", "price"])
def test_lines_to_write_leave_out_whole_sets(column) -> None:
    frame = TRIPS.assign(**{column: TRIPS[column].astype(float)})
    frame.loc[1, column] = np.nan
    with pytest.raises(DataError) as caught:
        rt.Choices.from_frame(frame, **ROLES, features=["price"])
    line = str(caught.value).partition("frame = ")[2]
    assert sorted(eval(line, {"frame": frame})["trip"].unique()) == [2, 3]


def test_new_sets_are_said_to_need_those_that_were_fitted() -> None:
    fitted = rt.Choices.from_frame(TRIPS, **ROLES, choosers=["income"])
    one = {"set": "trip", "alternative": "mode", "choosers": ["income"]}
    with raises_about(DataError, "choosers"):
        rt.Choices.from_frame(TRIPS[:3], **one)
    tram = TRIPS[:3].replace("train", "tram")
    with raises_about(DataError, "alternative"):
        rt.Choices.from_frame(tram, **one, like=fitted)
    with raises_about(DataError, "choosers"):
        rt.Choices.from_frame(TRIPS, **(one | {"choosers": "income"}))


@pytest.mark.parametrize("rank", [0, -1])
def test_ranks_below_1_are_no_places(rank) -> None:
    """A driver who did not finish would be the first."""
    races = pd.DataFrame(
        {"race": [1, 1, 1], "driver": ["ann", "bob", "eve"], "finish": [1, 2, rank]}
    )
    roles = {"ranking": "race", "item": "driver", "rank": "finish", "unranked": "below"}
    with raises_about(DataError, "rank") as caught:
        rt.Rankings.from_frame(races, **roles)
    line = str(caught.value).partition("write ")[2]
    exec(line, {"frame": races})
    assert rt.Rankings.from_frame(races, **roles).place.tolist() == [[1, 2, 0]]


WIDE = {"essay": range(30), "ann": [1, 2, 3] * 10, "bob": [2, 3, 1] * 10, "eve": [3, 3, 2] * 10}


@pytest.mark.parametrize("kind", [rt.Ratings, rt.GradedResponses])
@pytest.mark.parametrize("column", [list(range(30)), ["long", *"ab" * 14, "c"]])
def test_columns_that_are_no_ratings_are_named(kind, column) -> None:
    role = "item" if kind is rt.Ratings else "person"
    with pytest.raises(DataError) as caught:
        kind.from_wide(pd.DataFrame(WIDE | {"length": column}), **{role: "essay"})
    assert caught.value.value == "length"


def test_words_without_an_order_are_no_mistake_of_one_column() -> None:
    words = {name: ["good", "bad", "fair"] * 10 for name in ("ann", "bob", "eve")}
    with raises_about(DataError, "columns"):
        rt.Ratings.from_wide(WIDE | words, item="essay")


def test_levels_that_nobody_used_are_warned_of() -> None:
    with pytest.warns(DataWarning, match=r"level\(s\) 3 .*levels=range\(1, 6\)"):
        rt.Ratings.from_wide({"essay": [1, 2], "ann": [1, 5], "bob": [2, 4]}, item="essay")
    with pytest.warns(DataWarning, match=r"levels=range\(0, 21, 5\)"):
        rt.Ratings.from_wide({"essay": [1, 2], "ann": [0, 5], "bob": [20, 10]}, item="essay")


@pytest.mark.parametrize("levels", [(1, 2, 3), (10, 20, 30), (1, 10, 100), (0.5, 1.0, 3.0), (2, 7)])
def test_scales_without_a_gap_are_not_warned_of(levels) -> None:
    rt.Ratings.from_frame({"i": range(len(levels)), "r": levels}, item="i", rating="r")


def test_right_and_wrong_are_said_to_be_responses() -> None:
    ratings = rt.Ratings.from_wide({"q": [1, 2, 3], "m1": [0, 1, 0], "m2": [1, 1, 0]}, item="q")
    with pytest.warns(DataWarning, match=r"Responses\.from_frame"):
        ratings.warn()


def test_choosers_without_parameters_may_be_anybody() -> None:
    choices = rt.Choices.from_frame(TRIPS, **ROLES, features=["price"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = rt.fit(rt.MultinomialLogit(), choices, rt.PGEM(draws=100), seed=0, progress=False)
    asked = TRIPS[:3].assign(who="Zoe")
    roles = {"set": "trip", "alternative": "mode", "features": ["price"], "like": choices}
    new = rt.Choices.from_frame(asked, **roles, annotator="who")
    known = rt.predict(rt.MultinomialLogit(), result).values[..., :3]
    own = rt.predict(rt.MultinomialLogit(), result, new).values
    np.testing.assert_allclose(own, known, rtol=1e-4)

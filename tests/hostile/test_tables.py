"""Bad tables, columns, names and features for the readers, and bad parts of judgements."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import raters as rt
from raters.errors import DataError, RatersError, SettingError
from tests.hostile.table import (
    HALF,
    HUGE,
    NO_FLAG,
    NO_LIST,
    NO_OBJECT,
    NO_SEED,
    TABLE,
    THING,
    check_refused,
    rows,
    without,
)
from tests.refusals import raises_about

FRAME = pd.DataFrame(
    {
        "w": [*"abc"],
        "l": [*"bca"],
        "k": [*"xyx"],
        "n": [1, 2, 1],
        "f": [1.0, 2, 3],
        "g": [2.0, 2, 1],
        "who": [*"wll"],
    }
)
READ = {"frame": FRAME, "winner": "w", "loser": "l"}
TURN = {"frame": FRAME, "first": "w", "second": "l", "outcome": "who"}
RATED = {"frame": {"i": [*"abab"], "k": [*"xxyy"], "r": [1, 2, 2, 1]}, "item": "i", "rating": "r"}
SAID = pd.DataFrame(
    {"i": [*"aabb"], "k": [*"xyxy"], "l": [*"pqqq"], "n": [1, 1, 2, 1], "t": ["p", "p", None, None]}
)
VOTES = rt.Comparisons.from_frame(FRAME, winner="w", loser="l", annotator="k")
LABELS = rt.Labels.from_frame(SAID, item="i", annotator="k", label="l")

NO_NAME = (None, 3, ["w"], np.array(["w"]), THING, b"w", pd.DataFrame())
NAMES = (
    *NO_LIST[1:],
    b"ab",
    ["a", None],
    ["a", ""],
    ["a", float("nan")],
    [["a"]],
    [{}],
    ["a\0"],
    [HALF],
    [THING],
)
VOTE_READERS = [
    *rows(
        rt.Comparisons.from_frame,
        READ,
        DataError,
        winner=without(NO_NAME, None),
        loser=("nope", 3, ["l"]),
    ),
    *rows(
        rt.Comparisons.from_frame,
        TURN,
        DataError,
        first=without(NO_NAME, None),
        outcome=("nope", ["who"], 3),
    ),
    *rows(
        rt.Comparisons.from_frame,
        READ,
        DataError,
        annotator=(*without(NO_NAME, None), "nope", "K"),
        count=(3, "nope", [1, 2, 1]),
    ),
    *rows(rt.Comparisons.from_frame, READ, SettingError, ties=(None, 3, "x", [])),
    *rows(rt.Comparisons.from_frame, READ, SettingError, aggregate=NO_FLAG),
    *rows(
        rt.Comparisons.from_frame,
        READ,
        DataError,
        items=(*NAMES, ["a", "b"], ["a", "a", "b", "c"], []),
    ),
    *rows(
        rt.Comparisons.from_frame,
        TURN | {"ties": "half"},
        DataError,
        outcomes=(3, [], {"first": 1}, "x", {"one": 1, "two": 2}),
    ),
    *rows(
        rt.Comparisons.from_ratings,
        RATED,
        DataError,
        item=(*NO_NAME, "nope"),
        rating=(*NO_NAME, "nope"),
    ),
]

PARTS = [
    *rows(VOTES.without_judges, {}, DataError, names=(*NAMES, ["zz"], ["x", "y"])),
    *rows(
        VOTES.take,
        {},
        SettingError,
        units=(None, True, 1.5, "x", [3], [0.5], [True], [[0]], np.array(1), [0, [1]], THING),
    ),
    *rows(VOTES.padded, {}, SettingError, rows=(None, 1, "x", HUGE)),
    *rows(VOTES.shuffled, {}, SettingError, seed=NO_SEED),
    *rows(VOTES.judgements_by, {}, SettingError, axis=("items", None, 3, [])),
    *rows(VOTES.joined, {}, SettingError, more=(*NO_OBJECT, LABELS)),
    *rows(VOTES.asked_of, {}, SettingError, like=(None, LABELS)),
    *rows(VOTES.recoded, {"like": VOTES}, SettingError, axes=(3, "item", ["x"])),
    *rows(
        VOTES.answered,
        {},
        DataError,
        outcomes=(None, 3, "abc", [1], [[1, 0, 1]], ["a", "b", "c"], THING),
    ),
    *rows(VOTES.words_of, {"outcome": 1.0}, SettingError, row=(None, 3, -1, "x", 1.5)),
    *rows(VOTES.words_of, {"row": 0}, SettingError, outcome=("first", None, [])),
    *rows(
        VOTES.with_features,
        {},
        DataError,
        features=(3, "abc", [1, 2, 3], [[1], [2]], [["a"], ["b"], ["c"]], [[1], [1, 2], [3]]),
        about="features",
    ),
    *rows(rt.Comparisons.from_result, {}, DataError, result=(*NO_OBJECT, FRAME, VOTES)),
]


@pytest.mark.parametrize(TABLE, [*VOTE_READERS, *PARTS])
def test_tables(function, arguments, kind, parameter):
    check_refused(function, arguments, kind, parameter)


def test_numbers_as_names_of_columns():
    frame = pd.DataFrame({0: ["a", "b"], 1: ["b", "c"]})
    votes = rt.Comparisons.from_frame(frame, winner="0", loser="1")
    assert votes.items == ("a", "b", "c")
    with raises_about(RatersError, "winner"):
        rt.Comparisons.from_frame(frame, winner=0, loser=1)


# ---------------------------------------------------------------- every reader, by chance

GRID = rt.MDP.grid(1, 3)
COLUMNS = {
    "a": ["x", "y", "z", "x"],
    "b": ["y", "z", "x", "z"],
    "c": ["z", "x", "y", "y"],
    "who": ["p", "q", "p", "q"],
    "set": [1, 1, 2, 2],
    "n": [1, 2, 1, 3],
    "bit": [1, 0, 1, 0],
    "mark": [1, 2, 3, 2],
    "f": [0.5, 1.5, 2.0, 4.0],
    "at": ["(0, 0)", "(0, 1)", "(0, 2)", "(0, 1)"],
    "do": ["left", "right", "left", "right"],
    "t": ["x", None, None, "x"],
}
SPARE = ("a", "who", "n", "f")
LABELLED_ITEMS = rt.Labels.from_frame(COLUMNS, item="a", annotator="who", label="c")
# Each reader with columns that it reads, and other arguments.
READERS = {
    "votes": (
        rt.Comparisons.from_frame,
        {"winner": "a", "loser": "b", "annotator": "who", "count": "n", "stratum": "c"},
        {"features": {"f": ("f", "mark")}},
    ),
    "sides": (
        rt.Comparisons.from_frame,
        {"first": "a", "second": "b", "outcome": "bit", "annotator": "who"},
        {"ties": "keep"},
    ),
    "pairs of ranks": (rt.Comparisons.from_rankings, {"annotator": "who"}, {"places": ["a", "b"]}),
    "pairs of marks": (
        rt.Comparisons.from_ratings,
        {"item": "a", "rating": "mark", "annotator": "who"},
        {},
    ),
    "labels": (
        rt.Labels.from_frame,
        {"item": "a", "annotator": "who", "label": "c", "count": "n", "truth": "t"},
        {},
    ),
    "truth": (LABELLED_ITEMS.with_truth, {"item": "a", "truth": "t"}, {}),
    "record": (
        LABELLED_ITEMS.with_record,
        {"annotator": "who", "truth": "a", "label": "c", "count": "n"},
        {},
    ),
    "ratings": (
        rt.Ratings.from_frame,
        {"item": "a", "annotator": "who", "rating": "mark", "count": "n"},
        {"levels": [1, 2, 3]},
    ),
    "wide ratings": (rt.Ratings.from_wide, {"item": "a"}, {"columns": ["mark", "set"]}),
    "grades": (
        rt.GradedResponses.from_frame,
        {"person": "who", "item": "a", "response": "mark", "count": "n"},
        {},
    ),
    "wide grades": (rt.GradedResponses.from_wide, {"person": "who"}, {"columns": ["mark", "n"]}),
    "responses": (
        rt.Responses.from_frame,
        {"person": "who", "item": "a", "correct": "bit", "count": "n"},
        {},
    ),
    "wide responses": (rt.Responses.from_wide, {"person": "who"}, {"columns": ["bit"]}),
    "rankings": (
        rt.Rankings.from_frame,
        {"ranking": "set", "item": "a", "rank": "f"},
        {"unranked": "not offered"},
    ),
    "wide rankings": (
        rt.Rankings.from_wide,
        {"annotator": "who", "count": "n"},
        {"places": ["a", "b"], "unranked": "below"},
    ),
    "best and worst": (
        rt.Rankings.from_best_worst,
        {"best": "t", "worst": "at"},
        {"offered": ["a", "b", "c"]},
    ),
    "choices": (
        rt.Choices.from_frame,
        {"set": "set", "alternative": "a", "chosen": "bit"},
        {"features": ["f"], "choosers": []},
    ),
    "wide choices": (
        rt.Choices.from_wide,
        {"choice": "a", "annotator": "who"},
        {
            "alternatives": ["x", "y", "z"],
            "features": {"f": {"x": "f", "y": "mark", "z": "n"}},
            "available": {"z": "one"},
        },
    ),
    "demonstrations": (
        rt.Demonstrations.from_frame,
        {"state": "at", "action": "do", "annotator": "who", "count": "n"},
        {"mdp": GRID},
    ),
    "process": (
        rt.MDP.from_frame,
        {"state": "a", "action": "do", "next_state": "b", "probability": "one"},
        {"features": ["f"], "start": "x"},
    ),
}
# Those whose columns above are no good table: their good one.
GOOD = {
    "rankings": {"f": [1, 2, 1, 2]},
    "best and worst": {"t": ["x", "y", "z", "x"], "at": ["y", "z", "x", "z"]},
    "wide choices": {"f": [1.0, 2.5, 3.0, 1.0]},
    "process": {"do": ["left", "right", "left", "right"]},
}
BAD_CELLS = st.sampled_from(
    [None, "", np.nan, HUGE, -HUGE, 2**63, 2**64, -1, 0, 1.5, np.inf, True, HALF, "a\0", b"x",
     b"\xff", ["a"], {"a": 1}, (), THING, 1j, np.zeros(2), pd.NaT, pd.NA, print, "nan", "1_0"]
)  # fmt: skip
BAD_ARGUMENTS = st.sampled_from(
    [3, np.nan, ["a"], np.array(["a", "b"]), b"a", HALF, "nope", "a*", "", {}, {"a": ["b"]}, (),
     THING, [None], [np.nan], [["a"]], {"a"}, pd.DataFrame(), True, [HUGE], 1j, [HALF]]
)  # fmt: skip
FORMS = {
    "dict": dict,
    "object arrays": lambda table: {
        name: pd.Series(values, dtype=object).to_numpy() for name, values in table.items()
    },
    "pandas": lambda table: pd.DataFrame(
        {name: pd.Series(values, dtype=object) for name, values in table.items()}
    ),
    "guessed": pd.DataFrame,
    "polars": lambda table: pl.DataFrame(table, strict=False),
    "arrow": pa.table,
}


@st.composite
def readings(draw):
    """A reader, its arguments and a table, good but for some cells, a column or an argument."""
    name = draw(st.sampled_from(sorted(READERS)))
    reader, roles, others = READERS[name]
    table = {key: list(values) for key, values in (COLUMNS | GOOD.get(name, {})).items()}
    table["one"] = [1, 1, 1, 1]
    arguments = {**roles, **others}
    damage = draw(st.sampled_from(["cell", "cells", "column", "length", "argument", "none"]))
    used = draw(st.sampled_from(sorted({*roles.values(), *SPARE})))
    if damage in ("cell", "cells"):
        for row in range(1 if damage == "cell" else 4):
            table[used][row] = draw(BAD_CELLS)
    elif damage == "column":
        table[used] = draw(st.sampled_from([[], None, "abcd", 3, [[1]] * 4, np.zeros((4, 2))]))
    elif damage == "length":
        table[used] = table[used][: draw(st.integers(0, 3))]
    elif damage == "argument":
        arguments[draw(st.sampled_from(sorted(arguments)))] = draw(BAD_ARGUMENTS)
    return name, damage, reader, arguments, table, draw(st.sampled_from(sorted(FORMS)))


def check_read_or_refused(reading):
    """A good table is read; any other is read too, or refused by an error of raters."""
    name, damage, reader, arguments, table, form = reading
    try:
        made = FORMS[form](table)
    except Exception:  # The library that makes the table refuses it.
        made = table
    refusal = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            reader(made, **arguments)
        except RatersError as error:
            refusal = error
    if refusal is not None:
        assert damage != "none", f"{name}: {refusal}"
        assert refusal.parameter, f"{name}: {refusal}"
        assert "\n" not in str(refusal)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(readings())
def test_a_table_is_read_or_refused(reading):
    check_read_or_refused(reading)


@pytest.mark.slow
@settings(max_examples=4000, deadline=None, suppress_health_check=list(HealthCheck))
@given(readings())
def test_four_thousand_tables_are_read_or_refused(reading):
    check_read_or_refused(reading)

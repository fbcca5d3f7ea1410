"""Bad tables, columns, names and features for the readers, and bad parts of judgements."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

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
LABELLED = {"frame": SAID, "item": "i", "annotator": "k", "label": "l"}
VOTES = rt.Comparisons.from_frame(FRAME, winner="w", loser="l", annotator="k")
LABELS = rt.Labels.from_frame(SAID, item="i", annotator="k", label="l")
FEATURES = np.arange(3.0)[:, None]

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
# A value in a column: what can be no name, no number and no count.
CELLS = (None, float("nan"), "", ["a"], {"a": 1}, HALF, "a\0", THING, np.zeros(2), b"\xff", print)
NUMBERS = (None, float("nan"), float("inf"), "x", "", "1,5", HUGE**20, 1j, ["a"], b"1x", pd.NaT)


def with_cell(column, value):
    """Read votes whose first row has another value in one column."""
    columns = {name: list(FRAME[name]) for name in FRAME}
    columns[column] = [value, *columns[column][1:]]
    return rt.Comparisons.from_frame(
        columns, winner="w", loser="l", annotator="k", count="n", features={"f": ("f", "g")}
    )


def label_cell(column, value):
    columns = {name: list(SAID[name]) for name in SAID}
    columns[column] = [value, *columns[column][1:]]
    return rt.Labels.from_frame(columns, item="i", annotator="k", label="l", count="n", truth="t")


def winners(cell):
    return with_cell("w", cell)


def annotators(cell):
    return with_cell("k", cell)


def counts(cell):
    return with_cell("n", cell)


def feature(cell):
    return with_cell("f", cell)


def outcome(cell):
    table = {"a": ["x", "y"], "b": ["y", "x"], "o": [cell, 1]}
    return rt.Comparisons.from_frame(table, first="a", second="b", outcome="o")


def rating(cell):
    table = {"i": ["a", "b"], "r": [cell, 1]}
    return rt.Comparisons.from_ratings(table, item="i", rating="r")


VOTE_READERS = [
    *rows(
        rt.Comparisons.from_frame,
        READ,
        DataError,
        "describe the votes|takes the name of a column|no column",
        winner=without(NO_NAME, None),
        loser=("nope", 3, ["l"]),
    ),
    *rows(
        rt.Comparisons.from_frame,
        TURN,
        DataError,
        "takes the name of a column|there is no column",
        first=without(NO_NAME, None),
        outcome=("nope", ["who"], 3),
    ),
    *rows(
        rt.Comparisons.from_frame,
        READ,
        DataError,
        "takes the name of a column|there is no column",
        annotator=(*without(NO_NAME, None), "nope", "K"),
        count=(3, "nope", [1, 2, 1]),
    ),
    *rows(
        rt.Comparisons.from_frame, READ, DataError, "write ties='error'", ties=(None, 3, "x", [])
    ),
    *rows(rt.Comparisons.from_frame, READ, SettingError, "aggregate=True or", aggregate=NO_FLAG),
    *rows(
        rt.Comparisons.from_frame,
        READ,
        DataError,
        "takes a list of names|names must be text|a name must be|has no name|add them|once",
        items=(*NAMES, ["a", "b"], ["a", "a", "b", "c"], []),
    ),
    *rows(
        rt.Comparisons.from_frame,
        READ | {"annotator": "k"},
        DataError,
        "takes a list of names|must be text|a name must be|has no name",
        annotators=NAMES,
    ),
    *rows(
        rt.Comparisons.from_frame,
        TURN | {"ties": "half"},
        DataError,
        "outcomes=",
        outcomes=(3, [], {"first": 1}, "x", {"one": 1, "two": 2}),
    ),
    *rows(
        rt.Comparisons.from_rankings,
        {"frame": FRAME, "places": ["w", "l"]},
        DataError,
        "lists the columns|takes the name|no column|comes twice",
        places=(None, "w", ["w"], 3, np.array(3), [None, "w"], ["w", "w"], [["w"], "l"]),
    ),
    *rows(
        rt.Comparisons.from_ratings,
        RATED,
        DataError,
        "takes the name of a column|there is no column",
        item=(*NO_NAME, "nope"),
        rating=(*NO_NAME, "nope"),
    ),
    *rows(rt.Comparisons.from_ratings, RATED, DataError, "write ties=", ties=(None, "all", {})),
]

LABEL_READERS = [
    *rows(
        rt.Labels.from_frame,
        LABELLED,
        DataError,
        "takes the name of a column|no column",
        item=NO_NAME,
        annotator=NO_NAME,
        label=(*NO_NAME, "nope"),
        truth=without(NO_NAME, None),
        count=(3, "nope"),
    ),
    *rows(
        rt.Labels.from_frame,
        LABELLED,
        DataError,
        "takes a list of names|must be text|a name must be|has no name|two or more",
        classes=(*NAMES, ["p"], []),
    ),
    *rows(
        rt.Labels.from_frame,
        LABELLED,
        DataError,
        r"write \w+=\['\w'\]",
        classes=({"p"}, frozenset("p")),
        items=({"a"},),
        annotators=({"x"},),
    ),
    *rows(
        rt.Candidates.pairs,
        {"items": ["a", "b"], "annotators": ["x"]},
        DataError,
        r"write \w+=\['\w'\]",
        items=({"a"},),
        annotators=({"x"},),
    ),
    *rows(
        rt.Labels.from_frame, LABELLED, DataError, "repeats='keep'", repeats=(None, "all", [], 3)
    ),
    *rows(rt.Labels.from_frame, LABELLED, SettingError, "aggregate=True", aggregate=NO_FLAG),
    *rows(
        LABELS.with_truth,
        {"known": {"a": "p"}},
        DataError,
        "takes the name of a column",
        item=without(NO_NAME),
        truth=without(NO_NAME, None),
    ),
    *rows(
        LABELS.with_features,
        {"features": [[1.0], [2.0]], "like": LABELS},
        SettingError,
        "labels with features",
        like=(3, "x", {}, VOTES),
    ),
    *rows(
        LABELS.with_features,
        {"features": [[1.0], [2.0]]},
        DataError,
        "takes a list of names|has no name|a name must be|once",
        names=(*NAMES[:6], ["a", "a"]),
    ),
]

CELL_TABLES = [
    *rows(
        winners,
        {},
        DataError,
        "leave those rows out|a name must be|must be|expected a name|every row must",
        cell=without(CELLS, None),
        about="winner",
    ),
    *rows(
        annotators,
        {},
        DataError,
        "leave those rows out|a name must be|must be|expected a name|every row must",
        cell=CELLS,
        about="annotator",
    ),
    *rows(
        counts,
        {},
        DataError,
        "numbers|leave those rows out|every row must",
        cell=(*NUMBERS, 0, -1, 1.5, 2**54),
        about="count",
    ),
    *rows(
        outcome,
        {},
        DataError,
        "outcome|every vote|expected",
        cell=("zz", 7, None, -1),
        about="outcome",
    ),
    *rows(rating, {}, DataError, "numbers|leave those rows out", cell=NUMBERS[:7], about="rating"),
]

PARTS = [
    *rows(
        VOTES.without_judges,
        {},
        DataError,
        "list of names|names of no annotator|names? must be|no name|at least one",
        names=(*NAMES, ["zz"], ["x", "y"]),
    ),
    *rows(
        VOTES.take,
        {},
        SettingError,
        "a slice, whole numbers below 3, or 3 flags",
        units=(None, True, 1.5, "x", [3], [0.5], [True], [[0]], np.array(1), [0, [1]], THING),
    ),
    *rows(LABELS.take, {}, SettingError, "a slice, whole", units=(None, 9, "a", [2], [[0]], {})),
    *rows(LABELS.rows, {}, SettingError, "a slice, whole", index=(None, [9], "a", 1.0)),
    *rows(
        VOTES.padded, {}, SettingError, "whole number|at least as many", rows=(None, 1, "x", HUGE)
    ),
    *rows(VOTES.shuffled, {}, SettingError, "whole number from 0", seed=NO_SEED),
    *rows(VOTES.judgements_by, {}, SettingError, "choose one of", axis=("items", None, 3, [])),
    *rows(VOTES.joined, {}, SettingError, "it must be comparisons", more=(*NO_OBJECT, LABELS)),
    *rows(LABELS.joined, {}, SettingError, "it must be labels", more=(None, VOTES, SAID)),
    *rows(VOTES.without, {}, SettingError, "it must be comparisons", more=(LABELS, 3)),
    *rows(VOTES.asked_of, {}, SettingError, "it must be comparisons", like=(None, LABELS)),
    *rows(VOTES.recoded, {"like": VOTES}, SettingError, "a list|one of", axes=(3, "item", ["x"])),
    *rows(
        VOTES.answered,
        {},
        DataError,
        "array of 3 outcomes",
        outcomes=(None, 3, "abc", [1], [[1, 0, 1]], ["a", "b", "c"], THING),
    ),
    *rows(VOTES.words_of, {"outcome": 1.0}, SettingError, "below 3", row=(None, 3, -1, "x", 1.5)),
    *rows(VOTES.words_of, {"row": 0}, SettingError, "finite number", outcome=("first", None, [])),
    *rows(VOTES.words_of, {"row": 0}, DataError, "must be one of", outcome=(7, 0.3)),
    *rows(
        VOTES.with_features,
        {},
        DataError,
        "expected two|one row|must hold numbers|differ in length|finite|which column",
        features=(3, "abc", [1, 2, 3], [[1], [2]], [["a"], ["b"], ["c"]], [[1], [1, 2], [3]]),
        about="features",
    ),
    *rows(
        rt.Comparisons.from_result,
        {},
        DataError,
        "pass a result",
        result=(*NO_OBJECT, FRAME, VOTES),
    ),
    *rows(rt.Labels.from_result, {}, DataError, "pass a result", result=(None, {}, "r.nc", LABELS)),
]


@pytest.mark.parametrize(TABLE, [*VOTE_READERS, *LABEL_READERS, *CELL_TABLES, *PARTS])
def test_tables(function, arguments, kind, parameter, remedy):
    check_refused(function, arguments, kind, parameter, remedy)


TABLES = {
    "none": None,
    "text": "votes.csv",
    "number": 3,
    "list": [("a", "b")],
    "one dimension": np.array(["a", "b"]),
    "empty": {"w": [], "l": []},
    "two lengths": {"w": ["a"], "l": ["b", "c"]},
    "a set": {"w": {"a"}, "l": {"b"}},
    "lists": {"w": [["a"], ["b"]], "l": ["c", "d"]},
    "ragged": {"w": [["a"], ["b", "c"]], "l": ["c", "d"]},
    "two dimensions": {"w": np.zeros((2, 2)), "l": ["c", "d"]},
    "missing": {"w": ["a", None], "l": ["b", "c"]},
    "not a number": {"w": [1.0, np.nan], "l": [2.0, 3.0]},
    "no column": {"w": ["a"]},
    "itself": {"w": ["a"], "l": ["a"]},
    "bytes": {"w": np.array([b"\xff"]), "l": ["b"]},
    "half a character": {"w": ["\ud800"], "l": ["b"]},
    "the character NUL": {"w": ["a\0"], "l": ["b"]},
    "true and one": {"w": np.array([True, 1], object), "l": ["b", "c"]},
    "one name twice": {"w": ["a"], "l": ["b"], 1: [1], "1": [2]},
    "equal columns": pd.DataFrame([["a", "b", "c"]], columns=["w", "l", "w"]),
    "dictionaries": {"w": [{"a": 1}], "l": ["b"]},
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_frames(table):
    with pytest.raises(RatersError) as caught:
        rt.Comparisons.from_frame(table, winner="w", loser="l")
    assert len(str(caught.value)) < 500
    assert "\n" not in str(caught.value)


def test_numbers_as_names_of_columns():
    frame = pd.DataFrame({0: ["a", "b"], 1: ["b", "c"]})
    votes = rt.Comparisons.from_frame(frame, winner="0", loser="1")
    assert votes.items == ("a", "b", "c")
    with pytest.raises(RatersError, match="takes the name of a column"):
        rt.Comparisons.from_frame(frame, winner=0, loser=1)

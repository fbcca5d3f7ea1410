"""Columns of any table to codes: what is read, and what is refused with which words."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import raters as rt
from raters.errors import DataError, DataWarning
from raters.judgements.reading.columns import read_columns
from tests import hand
from tests.refusals import raises_about

WINNERS, LOSERS = ["tea", "tea", "coffee"], ["coffee", "water", "water"]


def read(winner, loser, **options):
    return rt.Comparisons.from_frame({"w": winner, "l": loser}, winner="w", loser="l", **options)


# ------------------------------------------------------------------ kinds of table


@pytest.mark.parametrize(
    "make",
    [
        lambda table: {name: np.array(values) for name, values in table.items()},
        lambda table: {
            name: np.array(values, dtype=np.dtypes.StringDType()) for name, values in table.items()
        },
        lambda table: {name: np.array(values, dtype="S") for name, values in table.items()},
        lambda table: {name: tuple(values) for name, values in table.items()},
        lambda table: {name: pd.Series(values, index=[7, 7, 3]) for name, values in table.items()},
        lambda table: {name: pl.Series(values) for name, values in table.items()},
        lambda table: {name: pa.array(values) for name, values in table.items()},
        lambda table: {
            name: pa.chunked_array([values[:1], values[1:]]) for name, values in table.items()
        },
        lambda table: np.array(
            list(zip(*table.values(), strict=True)), dtype=[("w", "U9"), ("l", "U9")]
        ),
        lambda table: pd.DataFrame(table, index=[5, 5, 0]),
        lambda table: pd.DataFrame(table).convert_dtypes(dtype_backend="pyarrow"),
        lambda table: pl.DataFrame(table).with_columns(pl.all().cast(pl.Categorical)).to_arrow(),
    ],
)
def test_every_kind_of_table_reads_the_same(make):
    table = make({"w": WINNERS, "l": LOSERS})
    votes = rt.Comparisons.from_frame(table, winner="w", loser="l", aggregate=False)
    assert votes.items == ("coffee", "tea", "water")
    assert votes.first.tolist() == [1, 1, 0]
    assert votes.second.tolist() == [0, 2, 2]
    assert votes.annotators == ("all",)


# ------------------------------------------------------------------ which columns


def test_a_missing_column_is_named_with_the_nearest_one():
    table = {"winer": ["a", "b"], "loser": ["b", "c"]}
    with raises_about(DataError, "winner") as caught:
        rt.Comparisons.from_frame(table, winner="winner", loser="loser")
    assert "did you mean 'winer'?" in str(caught.value)


# ------------------------------------------------------------------ missing values

ROLES = {"winner": "w", "loser": "l", "annotator": "k", "count": "n"}
COMPLETE = {"w": ["a", "b", "a"], "l": ["b", "c", "c"], "k": ["x", "x", "y"], "n": [1, 2, 1]}
MISSING = {
    "NaN": lambda values: [*values[:2], float("nan")],
    "None": lambda values: [*values[:2], None],
    "pandas NA": lambda values: [*values[:2], pd.NA],
    "pandas NaT": lambda values: [*values[:2], pd.NaT],
    "empty text": lambda values: [*map(str, values[:2]), ""],
    "pandas series": lambda values: pd.Series([*values[:2], None]),
    "pandas nullable": lambda values: pd.Series([*values[:2], None]).convert_dtypes(),
    "pandas category": lambda values: pd.Series([*values[:2], None], dtype="category"),
    "polars null": lambda values: pl.Series([*values[:2], None]),
    "pyarrow null": lambda values: pa.array([*values[:2], None]),
    "masked": lambda values: np.ma.array(values, mask=[0, 0, 1]),
}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("kind", MISSING)
def test_a_missing_value_is_refused_in_every_role(role, kind):
    name = ROLES[role]
    table = COMPLETE | {name: MISSING[kind](COMPLETE[name])}
    with pytest.raises(DataError):
        rt.Comparisons.from_frame(table, **ROLES)


# ------------------------------------------------------------------ names


@pytest.mark.parametrize(
    ("winner", "loser", "names"),
    [
        ([1, 2], [2, 10], (1, 2, 10)),
        (np.array([1, 2], np.uint8), np.array([2, 3], np.int64), (1, 2, 3)),
        ([1.0, 2.0], [2, 3], (1, 2, 3)),  # integers that once stood beside a missing value
        ([1.5, 2.0], [2, 3], ("1.5", "2", "3")),
        ([1, 2], ["2", "3"], ("1", "2", "3")),
        ([1, "a"], ["b", 2], ("1", "2", "a", "b")),
        (np.array([1, "1"], object), ["b", "b"], ("1", "b")),
        ([True, True], [False, False], ("False", "True")),
        ([2**70, 1], [3, 2], ("1", "2", "3", "1180591620717411303424")),
        ([np.inf, 1], [2, 3], ("1", "2", "3", "inf")),
        ([datetime.date(2024, 1, 2)], [datetime.date(2024, 1, 1)], ("2024-01-01", "2024-01-02")),
        ([-3, 0], [0, 5], (-3, 0, 5)),
        ([10**12, 1], [2, 3], (1, 2, 3, 10**12)),
    ],
)
def test_names_are_whole_numbers_or_text(winner, loser, names):
    votes = read(winner, loser)
    assert votes.items == names
    assert all(type(name) in (int, str) for name in votes.items)


LARGE = [2**60, None, 2**60 + 1]
HELD = {
    "pyarrow table": lambda column: pa.table({"gold": column}),
    "polars": lambda column: pl.DataFrame({"gold": column}),
    "polars, 128 bits": lambda column: pl.DataFrame({"gold": pl.Series(column, dtype=pl.Int128)}),
    "lazy polars": lambda column: pl.LazyFrame({"gold": column}),
    "pandas": lambda column: pd.DataFrame({"gold": pd.array(column, "Int64")}),
    "arrow in pandas": lambda column: pa.table({"gold": column}).to_pandas(
        types_mapper=pd.ArrowDtype
    ),
    "pyarrow array": lambda column: {"gold": pa.array(column)},
    "chunks": lambda column: {"gold": pa.chunked_array([column[:1], column[1:]])},
    "polars series": lambda column: {"gold": pl.Series(column)},
    "wide series": lambda column: {"gold": pl.Series(column, dtype=pl.Int128)},
    "pandas array": lambda column: {"gold": pd.array(column, "Int64")},
    "masked array": lambda column: {
        "gold": np.ma.array([one or 0 for one in column], mask=[one is None for one in column])
    },
    "list": lambda column: {"gold": [np.nan if one is None else one for one in column]},
}


@pytest.mark.parametrize("make", HELD.values(), ids=HELD)
def test_whole_numbers_beside_gaps_keep_their_digits(make):
    table = make(LARGE)
    column = read_columns(table, empty=("truth",), truth="gold")["truth"]
    assert column.values == [2**60, 2**60 + 1]
    assert column.code.tolist() == [0, -1, 1]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("Yes", "yes"),
        ("yes", "yes "),
        ("é", "e\u0301"),
        ("yes", "y\u200bes"),
        ("STRASSE", "straße"),
    ],
)
def test_names_that_are_nearly_equal_are_named_in_one_warning(one, two):
    with pytest.warns(DataWarning, match="told apart by case, space or invisible") as caught:
        read([one, two, "tea"], ["tea", "water", "milk"])
    assert len(caught) == 1
    assert one in str(caught[0].message)


def test_one_column_in_two_roles_is_refused():
    with raises_about(DataError, "annotator", "a"):
        rt.Labels.from_frame({"a": [1, 2], "b": [1, 2]}, item="a", annotator="a", label="b")


def test_headings_among_the_rows_are_refused():
    table = {"w": ["tea", "w", "milk"], "l": ["milk", "l", "tea"]}
    with raises_about(DataError, "winner"):
        rt.Comparisons.from_frame(table, winner="w", loser="l")
    with raises_about(DataError, "places"):
        rt.Comparisons.from_rankings(table, places=["w", "l"])
    # An item may be called as its column.
    assert rt.Comparisons.from_frame(table | {"l": [*"abc"]}, winner="w", loser="l").num_votes == 3


@pytest.mark.parametrize(("one", "two"), [("1", "1.0"), ("01", "1"), ("1e1", "10"), ("TRUE", "1")])
def test_classes_that_are_one_number_are_named_in_a_warning(one, two):
    with pytest.warns(DataWarning, match="some classes are told apart by the spelling of a number"):
        labels = hand.labels((1, "x", one), (1, "y", two))
    assert labels.num_classes == 2

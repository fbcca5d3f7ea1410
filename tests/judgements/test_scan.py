"""Judgements from Parquet files, batch by batch, equal those of the whole table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.errors import DataError
from raters.judgements import scanned


def votes(number: int = 4000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 12, number)
    second = (first + rng.integers(1, 12, number)) % 12
    return pd.DataFrame(
        {
            "first": [f"item {code}" for code in first],
            "second": [f"item {code}" for code in second],
            "winner": rng.choice(["first", "second", "tie"], number),
            "who": rng.integers(0, 9, number),
            "times": rng.integers(1, 4, number),
            "time": rng.random(number),
        }
    )


_ROLES = {"first": "first", "second": "second", "outcome": "winner", "annotator": "who"}


def same(one: rt.Comparisons, other: rt.Comparisons) -> None:
    pd.testing.assert_frame_equal(one.to_frame(), other.to_frame())
    assert (one.items, one.annotators) == (other.items, other.annotators)


@pytest.mark.parametrize("folder", [False, True])
@pytest.mark.parametrize("count", [None, "times"])
def test_votes_are_those_of_the_whole_table(folder, count, tmp_path) -> None:
    table = votes()
    path = tmp_path if folder else tmp_path / "votes.parquet"
    if folder:
        for index, part in enumerate(np.array_split(np.arange(len(table)), 3)):
            table.iloc[part].to_parquet(tmp_path / f"part {index}.parquet", row_group_size=70)
    else:
        table.to_parquet(path, row_group_size=450)
    own = rt.Comparisons.scan(path, **_ROLES, ties="half", count=count)
    same(own, rt.Comparisons.from_frame(table, **_ROLES, ties="half", count=count))
    total = len(table) if count is None else table["times"].sum()
    assert own.num_votes == total


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        (rt.Labels, {"item": "first", "annotator": "who", "label": "winner"}),
        (rt.Ratings, {"item": "first", "annotator": "who", "rating": "times"}),
        (rt.GradedResponses, {"person": "who", "item": "first", "response": "times"}),
    ],
)
def test_other_kinds_are_those_of_the_whole_table(kind, columns, tmp_path) -> None:
    table = votes()
    table.to_parquet(tmp_path / "table.parquet")
    own = kind.scan(tmp_path / "table.parquet", **columns)
    pd.testing.assert_frame_equal(own.to_frame(), kind.from_frame(table, **columns).to_frame())


@pytest.mark.parametrize(
    "values", [pd.array([3, None, 2**60], "Int64"), [0.5, np.nan, 2.0], ["a", None, "b"]]
)
def test_values_of_any_type_stay_as_they_are(values, tmp_path) -> None:
    pd.DataFrame({"value": values, "other": [1, 1, 1]}).to_parquet(tmp_path / "table.parquet")
    table = scanned.grouped(tmp_path / "table.parquet", {"item": "value", "label": "other"})
    known = {value for value in list(values) if not pd.isna(value)}
    assert set(table["value"].dropna()) == known
    assert table["value"].isna().sum() == 1
    assert table["count"].tolist() == [1, 1, 1]


def test_a_column_named_count_may_be_read(tmp_path) -> None:
    pd.DataFrame({"count": ["a", "b", "a"]}).to_parquet(tmp_path / "table.parquet")
    table = scanned.grouped(tmp_path / "table.parquet", {"item": "count"})
    assert dict(zip(*(table[name] for name in table.columns), strict=True)) == {"a": 2, "b": 1}


@pytest.mark.parametrize(
    ("change", "settings"),
    [
        ({}, {"annotator": "whom"}),
        ({"times": 0}, {"count": "times"}),
        ({"times": 1.5}, {"count": "times"}),
        ({"winner": None}, {}),
        ({"who": [[1]] * 4000}, {}),
        ({}, {"nonsense": 3}),
    ],
)
def test_wrong_tables_are_refused(change, settings, tmp_path) -> None:
    votes().assign(**change).to_parquet(tmp_path / "table.parquet")
    with pytest.raises((DataError, TypeError)):
        rt.Comparisons.scan(tmp_path / "table.parquet", **(_ROLES | {"ties": "half"} | settings))

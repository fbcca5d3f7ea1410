"""Columns of rows beside the roles of comparisons."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import raters as rt
from raters.errors import DataError

TABLE = {
    "a": ["x", "x", "y", "z", "x"],
    "b": ["y", "y", "z", "x", "y"],
    "better": ["a", "b", "a", "b", "a"],
    "who": ["ann", "bob", "ann", "ann", "ann"],
    "nth": [1, 2, 3, 1, 1],
    "base": ["gpt", "llama", "gpt", "gpt", "gpt"],
}
ROLES = {"first": "a", "second": "b", "outcome": "better", "annotator": "who"}


@pytest.fixture
def votes() -> rt.Comparisons:
    return rt.Comparisons.from_frame(TABLE, **ROLES, columns=["nth", "base"])


def test_numbers_and_levels_are_read_and_keep_rows_apart(votes) -> None:
    votes.check()
    assert votes.num_rows == 4
    assert votes.levels("base") == ("gpt", "llama")
    assert votes.levels("nth") == ()
    table = votes.to_frame()
    assert table[["nth", "base"]].values.tolist()[:2] == [[1.0, "gpt"], [2.0, "llama"]]
    renamed = rt.Comparisons.from_frame(TABLE, **ROLES, columns={"place": "nth"})
    assert renamed.column("place").tolist() == votes.column("nth").tolist()
    with pytest.raises(DataError, match="nth"):
        renamed.column("nth")


def test_parts_codes_and_files_keep_them(votes) -> None:
    joined = votes.joined(votes).padded(10).take(slice(3, 6))
    assert joined.column("nth").tolist() == [1.0, 1.0, 2.0]
    again = rt.Comparisons.unpack(votes.packed(), votes.flags())
    np.testing.assert_array_equal(again.columns, votes.columns)
    assert again.levels("base") == votes.levels("base")
    turned = dataclasses.replace(votes, column_levels=("llama", "gpt"))
    assert votes.recoded(turned, ["item"]).column("base").tolist() == [1, 0, 1, 1]


def test_questions_without_them_have_the_usual_ones_of_each_judge(votes) -> None:
    asked = rt.Candidates.pairs(votes).recoded(votes, ["item", "annotator"])
    usual = dict(zip(asked.annotator, asked.column("nth"), strict=True))
    assert usual == {0: 1.0, 1: 2.0}

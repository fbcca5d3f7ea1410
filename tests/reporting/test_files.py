"""Text stays text in a spreadsheet."""

from __future__ import annotations

import csv

import pandas as pd
import pytest

from raters.reporting.files import for_people, unmarked, write_csv


@pytest.mark.parametrize("cell", ["=1+1", "@SUM(A1)", "+cmd", "-x", "-1+1", "\t=1", "\r=1", "'=1"])
def test_formulas_are_marked(cell):
    marked = for_people(pd.DataFrame({"a": [cell]}))["a"][0]
    assert marked == f"'{cell}"
    assert unmarked(marked) == cell


@pytest.mark.parametrize("cell", ["tea", "-1", "+1.5", "-.5", "'tea", "a=b", "", 3, 0.5, None])
def test_everything_else_stays(cell):
    (kept,) = for_people(pd.DataFrame({"a": [cell]}, dtype=object))["a"]
    assert kept is cell or kept == cell
    assert not isinstance(cell, str) or unmarked(cell) == cell


@pytest.mark.parametrize("name", ["a\rb", "a\r\nb", "a\nb", 'a"b', "a,b"])
def test_what_ends_a_row_stays_within_its_cell(name, tmp_path):
    write_csv(pd.DataFrame({"who": [name, "c"], "share": [0.5, 1.0]}), tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [["who", "share"], [name, "0.5"], ["c", "1.0"]]

"""Text stays text in a spreadsheet."""

from __future__ import annotations

import pandas as pd
import pytest

from raters.reporting.cells import for_people, unmarked


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

"""Numbers of the distinct rows of some columns."""

from __future__ import annotations

import numpy as np
import pytest

from raters.judgements.counts import ranks

RNG = np.random.default_rng(0)
COLUMNS = {
    "few codes": [RNG.integers(5, size=300), RNG.integers(3, size=300)],
    "wide codes": [RNG.integers(10**9, size=300) // 10**7, RNG.integers(-4, 4, size=(300, 2))],
    "numbers": [RNG.integers(3, size=300) / 2, RNG.normal(size=300).round(0)],
    "products beyond 64 bits": [RNG.integers(2**62, size=300) for _ in range(12)],
    "one row": [np.array([7])],
}


@pytest.mark.parametrize("columns", COLUMNS.values(), ids=COLUMNS.keys())
def test_numbers_are_those_of_sorted_rows(columns) -> None:
    table = np.column_stack([column.astype(float) for column in columns])
    _, expected = np.unique(table, axis=0, return_inverse=True)
    np.testing.assert_array_equal(ranks(columns), expected.ravel())

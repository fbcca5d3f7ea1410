"""Questions that the tests of calibration share, so that each kernel is compiled once."""

from __future__ import annotations

import pytest

import raters as rt


@pytest.fixture(scope="package")
def asked() -> rt.Labels:
    """Two labels for each of 4 items by 3 annotators, in 3 classes; a feature, and one item whose
    class is known."""
    return rt.datasets.label_crowd(4, 3, 2, 3, num_features=1, seed=1).labels.with_truth({0: 1})

"""Principal components of sparse tables."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from raters.terms import tastes as module
from raters.terms.tastes import components


@pytest.mark.parametrize("dense", [True, False])
def test_components_are_the_vectors_that_made_the_table(dense: bool, monkeypatch) -> None:
    """The sum of two products, the larger first; entries have a mean square of 1."""
    if not dense:
        monkeypatch.setattr(module, "_DENSE", 0)
    rng = np.random.default_rng(0)
    left, _ = np.linalg.qr(rng.normal(size=(30, 2)))
    right, _ = np.linalg.qr(rng.normal(size=(7, 2)))
    found = components(scipy.sparse.csr_array(left * [5.0, 2.0] @ right.T), 2)
    found = found * np.sign((found * left).sum(0))
    np.testing.assert_allclose(found, left * np.sqrt(30), atol=1e-6)

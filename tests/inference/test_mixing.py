"""Diagnostics of chains."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from raters.errors import ConvergenceWarning
from raters.inference.mixing import warn_unless_converged


@pytest.mark.parametrize(
    ("chains", "draws", "rhat", "ess"),
    [(1, 200, False, True), (2, 200, True, True), (2, 3, False, False), (4, 1, False, False)],
)
def test_diagnostics_say_nothing_where_they_cannot(chains, draws, rhat, ess):
    """Of one chain there is no R-hat, of fewer than four draws nothing at all."""
    values = {"reward": np.random.default_rng(0).normal(size=(chains, draws))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        numbers = warn_unless_converged(values)
    assert np.isfinite(numbers["max_rhat"]) == rhat
    assert (numbers["min_ess"] > 0) == ess
    if draws < 4:
        with pytest.warns(ConvergenceWarning, match="say nothing of its convergence"):
            warn_unless_converged(values)

"""Diagnostics of chains."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from arviz_stats.base import array_stats

from raters.errors import ConvergenceWarning
from raters.inference.mixing import mixing, times_longer, warn_unless_converged


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


def test_many_entries_at_once_are_as_arviz_has_each():
    """Also with ties and an odd number of draws; of draws that depend on each other, with the
    last pair of autocorrelations cut off otherwise."""
    draws = np.random.default_rng(0).normal(size=(4, 301, 60))
    for place in range(1, 301):
        draws[:, place] += np.linspace(0, 0.95, 60) * draws[:, place - 1]
    draws[..., ::3] = draws[..., ::3].round()
    found = mixing(draws)
    axes = {"chain_axis": 0, "draw_axis": 1}
    np.testing.assert_allclose(found.rhat, array_stats.rhat(draws, **axes), rtol=1e-12)
    np.testing.assert_allclose(found.ess, array_stats.ess(draws, method="bulk", **axes), rtol=0.05)


def test_chains_go_on_for_as_long_as_the_worst_entry_asks():
    good = np.random.default_rng(0).normal(size=(2, 1000, 3))
    slow = good.copy()
    for place in range(1, 1000):
        slow[:, place] += 0.99 * slow[:, place - 1]
    assert times_longer({"reward": good}) == 1
    number = times_longer({"reward": good, "scale": slow})
    assert 1.25 * 200 / mixing(slow).ess.min() <= number
    assert number < 100
    assert times_longer({"scale": slow[:, :60]}) == np.inf
    stuck = np.zeros((2, 500, 1)) + np.arange(2)[:, None, None]
    assert times_longer({"scale": stuck}) > 99

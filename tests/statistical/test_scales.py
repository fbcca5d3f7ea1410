"""The scale that PGEM finds on many votes, and its draws, against Gibbs sampling."""

from __future__ import annotations

import numpy as np
import pytest
from arviz_stats.base import array_stats

import raters as rt
from raters.inference.polya_gamma import scales

# Bounds of |z| with false-alarm rates below 1e-4: of one number, and of 300 together.
_ONE, _ALL = 4.0, 5.1
# Standard deviations by which the approximation itself may be off.
_OFF = 0.15


@pytest.mark.slow
def test_draws_of_many_votes_are_those_of_gibbs_sampling(monkeypatch, fit_quietly) -> None:
    """Means of the scale and of all rewards, in Monte-Carlo errors beyond the approximation's own;
    the spread of the scale within a seventh. With a scale a third too large it fails."""
    rng = np.random.default_rng(0)
    reward, first = rng.normal(size=300), rng.integers(300, size=40_000)
    second = (first + rng.integers(1, 300, size=40_000)) % 300
    right = rng.random(40_000) < 1 / (1 + np.exp(reward[second] - reward[first]))
    table = {"winner": np.where(right, first, second), "loser": np.where(right, second, first)}
    votes = rt.Comparisons.from_frame(table, winner="winner", loser="loser")
    used, fixed_point = [], scales.fixed_point

    def noted(*args):
        used.append(fixed_point(*args))
        return used[-1]

    monkeypatch.setattr(scales, "fixed_point", noted)
    fast = fit_quietly(rt.BTL(), votes, rt.PGEM(draws=4000))
    assert used[0] is not None
    exact = fit_quietly(rt.BTL(), votes, rt.PGGibbs(draws=400, warmup=100, chains=2))
    for name, bound in (("reward_scale", _ONE), ("reward", _ALL)):
        draws, other = (tree.posterior[name].values for tree in (fast, exact))
        flat = other.reshape(*other.shape[:2], -1)
        ess = np.asarray(array_stats.ess(flat, chain_axis=0, draw_axis=1, method="mean"))
        deviation = flat.std((0, 1))
        error = np.sqrt(1 / ess + 1 / fast.attrs["min_ess"])
        off = np.abs(draws.mean((0, 1)).ravel() - flat.mean((0, 1))) / deviation
        assert np.all(off < _OFF + bound * error), (name, off.max())
    scale, others = fast.posterior["reward_scale"].values, exact.posterior["reward_scale"].values
    assert 6 / 7 < scale.std() / others.std() < 7 / 6
    # The mode is not corrected by weights: here it is .3 standard deviations from the mean.
    assert abs(np.log(float(fast["mode"]["reward_scale"])) - np.log(others).mean()) < (
        np.log(others).std()
    )

"""Scales of normal priors at the mode of their marginal posterior, and what they are made of."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import raters as rt
from raters.inference.base import progress_bar
from raters.inference.polya_gamma import em, laplace, plans, scales
from raters.program import Program


@pytest.fixture(scope="module")
def votes() -> rt.Comparisons:
    """2,000 votes on 8 items."""
    return rt.datasets.separated(num_items=8, num_annotators=3, num_votes=2000, seed=0).votes


def planned(model, data) -> tuple[plans.Plan, dict[str, np.ndarray]]:
    """Plan of the model's sweep, and its mode."""
    with jax.enable_x64(True):
        start = {name: np.asarray(value, float) for name, value in model.start(data).items()}
        program = Program(model, data)
        plan, bar = plans.plan(program, start), progress_bar(1, "", False)
        climber = em._Climber(rt.PGEM(), program, plan, data, bar)
        return plan, climber.climb(start).values


def test_step_is_that_of_one_scale_by_hand(votes) -> None:
    """At the end of a step, the derivative of the expected log density in log σ vanishes:
    −N + Σ(x² + C)/σ² − log σ at the means x, the last part of the prior LogNormal(0, 1)."""
    plan, mode = planned(rt.BTL(), votes)
    with jax.enable_x64(True):
        marginal = scales._Marginal(plan, votes, lambda values: values, mode, 0)
        point, _, _ = marginal.ahead(marginal.start, mode)
        normal = laplace.information(plan, votes, mode)
        means = laplace.shifted(plan, votes, mode, normal.covariance())["reward"]
        variances = np.diag(normal.covariance())
    scale = np.exp(point[0])
    slope = -len(means) + (means**2 + variances).sum() / scale**2 - point[0]
    assert abs(slope) < 1e-3
    # Without the variances, or at the mode, it would be another.
    assert abs(slope - variances.sum() / scale**2) > 0.05
    assert abs((means**2 - mode["reward"] ** 2).sum() / scale**2) > 0.01


def test_shifted_mode_is_the_mean_of_two_items() -> None:
    """30 of 36 votes for one of two items, by quadrature over the difference of their rewards,
    whose prior is Normal(0, √2): the shift leaves a fifth at most of what the mode is off."""
    table = {"winner": ["a"] * 30 + ["b"] * 6, "loser": ["b"] * 30 + ["a"] * 6}
    data = rt.Comparisons.from_frame(table, winner="winner", loser="loser")
    plan, mode = planned(rt.BTL(reward_scale=1.0), data)
    with jax.enable_x64(True):
        normal = laplace.information(plan, data, mode)
        mean = laplace.shifted(plan, data, mode, normal.covariance())["reward"]
    grid = np.linspace(-4, 8, 20_001)
    log_density = -(grid**2) / 4 + 30 * grid - 36 * np.logaddexp(0, grid)
    weight = np.exp(log_density - log_density.max())
    exact = (weight * grid).sum() / weight.sum()
    off, left = (abs(at[0] - at[1] - exact) for at in (mode["reward"], mean))
    assert off > 0.03
    assert left < off / 5


@pytest.mark.slow
def test_rows_in_float32_have_the_sums_of_float64(monkeypatch) -> None:
    """In several pieces, from float64 on the device; with latent classes they stay in float64."""
    monkeypatch.setattr(laplace, "_NARROW_ROWS", 64)
    votes = rt.datasets.position_biased(12, 5, 2_000, seed=0).votes
    labels = rt.datasets.label_crowd(12, 4, 3, 2, seed=0).labels
    for model, data, error in ((rt.ExtendedBTL(), votes, 2e-3), (rt.DawidSkene(), labels, 0.0)):
        plan, start = planned(model, data)
        rng = np.random.default_rng(0)
        draws = {
            name: np.asarray(value) * rng.uniform(0.5, 1, (9, *np.shape(value)))
            for name, value in start.items()
        }
        with jax.enable_x64(True):
            placed = jax.device_put(data)
            wide = laplace.pass_over_rows(plan, placed, draws)
            with monkeypatch.context() as patch:
                patch.setattr(laplace, "MUCH_WORK", 0)
                narrow = laplace.pass_over_rows(plan, placed, draws)
        assert narrow.dtype == np.float64
        assert np.abs(narrow - wide).max() <= error
        assert (error == 0) or np.any(narrow != wide)

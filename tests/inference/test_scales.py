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
    −N + Σ(x² + C)/σ² − log σ at the mode x, the last part of the prior LogNormal(0, 1)."""
    plan, mode = planned(rt.BTL(), votes)
    with jax.enable_x64(True):
        marginal = scales._Marginal(plan, votes, lambda values: values, mode, 0)
        point, _, _ = marginal.ahead(marginal.start, mode)
        variances = laplace.information(plan, votes, mode).variances(np.random.default_rng(0), 1)
    scale = np.exp(point[0])
    slope = -len(variances) + (mode["reward"] ** 2 + variances).sum() / scale**2 - point[0]
    assert abs(slope) < 1e-3
    # Without the variances it would be another.
    assert abs(slope - variances.sum() / scale**2) > 0.05

"""Approximate draws against the posterior: what they are checked by, and how they are corrected.

The statistical tests compare means in units of their Monte-Carlo error, at most 4.5 of them: one
false alarm in 150,000 for each comparison.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate
from scipy.stats import norm

import raters as rt
from raters.errors import ConvergenceWarning
from raters.inference import importance
from raters.inference.base import Draws
from raters.inference.polya_gamma import plans
from raters.inference.polya_gamma.integrated import integrated
from raters.program import Program, log_prior
from tests import hand

VOTES = hand.votes(("a", "b", "x"), ("b", "c", "y"), ("c", "a", "x"))


def drawn(mean: float, deviation: float, number: int = 4000, dimensions: int = 3) -> Draws:
    """Independent normal draws, where the posterior is standard normal."""
    values = np.random.default_rng(0).normal(mean, deviation, (1, number, dimensions))
    return Draws(
        {"x": values},
        {
            "log_p": norm.logpdf(values).sum(-1) + 7,  # up to the evidence
            "log_q": norm.logpdf(values, mean, deviation).sum(-1),
        },
    )


def test_near_draws_are_corrected() -> None:
    found = importance.corrected(drawn(0.4, 1.1), np.random.default_rng(1))
    ess = found.facts["min_ess"]
    assert found.facts["pareto_k"] < importance.largest_k(4000) < 0.73
    assert 400 < ess < 4000
    assert found.values["x"].shape == (1, 4000, 3)
    mean, spread = found.values["x"].mean((0, 1)), found.values["x"].std((0, 1))
    assert np.abs(mean).max() < 4.5 / np.sqrt(ess)
    assert np.abs(spread - 1).max() < 4.5 / np.sqrt(ess)
    # They are draws from the posterior now, for whoever weighs them again.
    np.testing.assert_array_equal(found.stats["log_p"], found.stats["log_q"])
    expected = norm.logpdf(found.values["x"][0]).sum(-1) + 7
    np.testing.assert_allclose(found.stats["log_p"][0], expected, rtol=1e-9)


@pytest.mark.parametrize("draws", [drawn(0.0, 0.3), drawn(6.0, 1.0), drawn(0.0, 0.7, 1000, 60)])
def test_far_draws_stay_with_a_warning(draws) -> None:
    with pytest.warns(ConvergenceWarning, match=r"far from the posterior \(Pareto k̂ \d"):
        found = importance.corrected(draws, np.random.default_rng(1))
    np.testing.assert_array_equal(found.values["x"], draws.values["x"])
    assert "min_ess" not in found.facts


@pytest.mark.parametrize(
    ("draws", "said"),
    [
        (drawn(0, 1, 50), "50 draws are too few"),
        (drawn(0, 1)._replace(stats={}), r"not known \(3 parameters\)"),
        (drawn(0, 1)._replace(values={"x": np.full((1, 4000, 3), np.nan)}), "are not finite"),
        (drawn(0, 1)._replace(stats={"log_p": np.full((1, 4000), np.nan)} | {
            "log_q": np.zeros((1, 4000))}), "far from the posterior"),
        (drawn(0, 1)._replace(stats={"log_p": np.full((1, 4000), -np.inf)} | {
            "log_q": np.zeros((1, 4000))}), "far from the posterior"),
        (drawn(0, 1)._replace(stats={"log_p": np.minimum(np.linspace(0, 2, 4000), 1)[None]} | {
            "log_q": np.zeros((1, 4000))}), "far from the posterior"),  # Ties in the tail.
    ],
)  # fmt: skip
def test_what_cannot_be_checked_is_warned_of(draws, said) -> None:
    with pytest.warns(ConvergenceWarning, match=said):
        found = importance.corrected(draws, np.random.default_rng(0))
    assert "min_ess" not in found.facts or found.facts["min_ess"] == 0


# ---------------------------------------------------------------- hyper-parameters and orbits


def planned(model: rt.Model) -> tuple[plans.Plan, object]:
    """Plan and data of a model, for blocks of double precision."""
    program = Program(model, VOTES)
    start = {name: np.asarray(value, float) for name, value in model.start(VOTES).items()}
    return plans.plan(program, start), jax.tree.map(jnp.asarray, VOTES.take(slice(0, 1)))


@pytest.mark.slow
def test_the_integral_over_a_scale_is_that_of_quadrature() -> None:
    with jax.enable_x64(True):
        plan, row = planned(rt.BTL())
        rng = np.random.default_rng(0)
        rewards = rng.normal(0, [[0.2], [1.0], [3.0]], (3, 3))
        draws = {"reward": rewards, "reward_scale": np.array([1.0, 0.3, 2.0])}
        found, redrawn = integrated(plan, row, draws, rng)

        def density(log_scale: float, reward: np.ndarray) -> float:
            values = {"reward": reward, "reward_scale": np.exp(log_scale)}
            return float(np.exp(log_prior(plan.model, row, values) + log_scale))

        expected = [
            np.log(integrate.quad(density, -8, 8, (reward,), limit=200)[0]) for reward in rewards
        ]
        # Where 64 points are within .02, the first of the random numbers is no matter.
        np.testing.assert_allclose(found, expected, atol=0.03)
        np.testing.assert_array_equal(redrawn["reward"], rewards)

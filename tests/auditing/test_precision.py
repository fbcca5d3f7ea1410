"""Effective draws behind each judge, and the Monte-Carlo error of a probability."""

from __future__ import annotations

import numpy as np
import pytest

import raters as rt
from raters.auditing.verdicts import effective_draws, enough, margin_of_error
from tests import hand

VOTES = hand.votes(("a", "b", "x"), ("b", "a", "x"), ("a", "b", "y"), ("b", "a", "y"))
MODEL = rt.ExtendedBTL(competence="signed", reward_scale=1.0, competence_spread=1.0)


def fitted(**attrs: float):
    """400 independent draws of the rewards and of x; those of y come forty at a time."""
    rng = np.random.default_rng(0)
    competence = rng.normal(1, 0.3, (400, 2))
    competence[:, 1] = np.repeat(competence[::40, 1], 40)
    result = hand.result(VOTES, reward=rng.normal(size=(400, 2)), competence=competence)
    result.attrs |= attrs
    return rt.program.Program(MODEL, rt.Comparisons.from_result(result)), result


def test_each_judge_has_the_draws_of_their_own_entries() -> None:
    draws = effective_draws(*fitted())
    assert draws[0] > 300
    assert draws[1] < 20
    np.testing.assert_array_equal(enough(*fitted()), [True, False])


def test_a_corrected_approximation_has_no_more_than_its_weights_leave() -> None:
    """Resampled draws repeat others, which autocorrelation does not show."""
    draws = effective_draws(*fitted(pareto_k=0.5, min_ess=50.0))
    assert draws[0] == 50
    np.testing.assert_array_equal(enough(*fitted(pareto_k=0.5, min_ess=50.0)), [False, False])


def test_the_margin_holds_two_errors_of_independent_draws() -> None:
    """Of 2,000 estimates of .3 from 200 draws, about .95 lie within; the share is off by more than
    .02 with a probability of 1e-4."""
    estimates = np.random.default_rng(0).binomial(200, 0.3, 2000) / 200
    margin = margin_of_error(estimates, np.full(2000, 200.0))
    assert np.mean(np.abs(estimates - 0.3) <= margin) == pytest.approx(0.95, abs=0.02)
    assert margin_of_error(np.zeros(1), np.full(1, 100.0))[0] > 0.01

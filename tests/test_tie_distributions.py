"""Distributions of votes with ties: probabilities, limits, single precision, draws."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raters.distributions.ties import OUTCOMES, Davidson, RaoKupper

KINDS = (Davidson, RaoKupper)
logits = st.floats(-50, 50, width=32)
propensities = st.floats(-40, 5, width=32)


@pytest.mark.parametrize("kind", KINDS)
@given(x=logits, nu=propensities)
def test_probabilities_sum_to_one(kind, x, nu) -> None:
    assert float(jnp.exp(kind(x, nu).log_probs()).sum()) == pytest.approx(1, abs=2e-6)


@pytest.mark.parametrize("kind", KINDS)
@given(x=logits, nu=propensities, value=st.sampled_from(OUTCOMES))
def test_sides_that_change_places_change_the_outcome(kind, x, nu, value) -> None:
    one, other = kind(x, nu).log_prob(value), kind(-x, nu).log_prob(1 - value)
    assert float(one) == pytest.approx(float(other), rel=1e-5, abs=1e-6)


def test_rao_and_kupper_are_written_with_their_threshold() -> None:
    """The formulas as printed, at a threshold of 0.7 and log-odds of 0.4."""
    t, x = 0.7, 0.4
    votes = RaoKupper(x, np.log(np.expm1(t)))
    first, second = 1 / (1 + np.exp(t - x)), 1 / (1 + np.exp(t + x))
    expected = [first, np.expm1(2 * t) * first * second, second]
    np.testing.assert_allclose(jnp.exp(votes.log_probs()), expected, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("x", [-50.0, -1.0, 0.0, 50.0])
def test_without_ties_they_become_bernoulli_votes(kind, x) -> None:
    votes = kind(x, -40.0)
    for value in (0.0, 1.0):
        expected = dist.Bernoulli(logits=x).log_prob(value)
        assert float(votes.log_prob(value)) == pytest.approx(float(expected), abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_alike_votes_have_the_density_of_single_ones(kind) -> None:
    one = kind(jnp.array([0.3, 0.3]), -0.5).log_prob(jnp.array([0.5, 1.0]))
    several = kind(jnp.array([0.3, 0.3]), -0.5, jnp.array([3.0, 0.0]))
    expected = [3 * one[0], 0.0]
    np.testing.assert_allclose(several.log_prob(jnp.array([0.5, 1.0])), expected, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_draws_have_the_probabilities(kind) -> None:
    """Each share within 4 standard errors; false-alarm rate below 4e-4 in all, of a fixed key."""
    votes = kind(0.8, -0.3)
    drawn = np.asarray(votes.sample(jax.random.key(0), (20_000,)))
    for value, prob in zip(OUTCOMES, np.exp(np.asarray(votes.log_probs())), strict=True):
        error = np.sqrt(prob * (1 - prob) / len(drawn))
        assert abs((drawn == value).mean() - prob) < 4 * error

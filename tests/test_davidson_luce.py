"""Rankings with ties against enumeration, the law of two items, and the R package PlackettLuce."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.test_util import check_grads
from scipy.stats import chisquare

from raters.distributions.choices import PlackettLuce
from raters.distributions.ties import Davidson, DavidsonLuce

_NONE = -1e9


def orders_with_ties(size: int, depth: int) -> list[tuple[int, ...]]:
    """Every way to give `depth` of some items a place, equal ones with a gap behind them."""
    ranks = itertools.product(range(size + 1), repeat=size)
    found = {tuple((1 + sum(0 < q < p for q in one)) * (p > 0) for p in one) for one in ranks}
    return sorted(one for one in found if sum(p > 0 for p in one) == depth)


def by_hand(utility, propensity, place) -> float:
    """Log-probability of a ranking, by listing the sets that each stage chooses from."""
    left = [item for item in range(len(utility)) if utility[item] > _NONE]
    depth, given, total = sum(p > 0 for p in place), 0, 0.0
    prevalence = np.append(0.0, propensity)

    def score(chosen) -> float:
        return prevalence[len(chosen) - 1] + np.mean([utility[item] for item in chosen])

    while given < depth:
        sizes = range(1, min(len(prevalence), len(left), depth - given) + 1)
        sets = [one for size in sizes for one in itertools.combinations(left, size)]
        chosen = [item for item in left if place[item] == given + 1]
        total += score(chosen) - np.logaddexp.reduce([score(one) for one in sets])
        left, given = [item for item in left if item not in chosen], given + len(chosen)
    return total


@st.composite
def rankings(draw) -> tuple[list[float], list[float], tuple[int, ...]]:
    """Utilities, propensities of ties, and a ranking of some of up to five items."""
    size = draw(st.integers(1, 5))
    number = st.floats(-30, 30)
    utility = draw(st.lists(number, min_size=size, max_size=size))
    propensity = draw(st.lists(st.floats(-5, 5), min_size=size - 1, max_size=size - 1))
    place = draw(st.sampled_from(orders_with_ties(size, draw(st.integers(1, size)))))
    return utility, propensity, place


@settings(deadline=None, max_examples=60)
@given(rankings())
def test_the_likelihood_is_that_of_the_listed_sets(ranking) -> None:
    utility, propensity, place = ranking
    padded = jnp.array([*utility, _NONE, _NONE], float)
    with jax.enable_x64(True):
        law = DavidsonLuce(jnp.asarray(padded, float), jnp.asarray(propensity, float))
        ours = float(law.log_prob(jnp.array([*place, 0, 0])))
    single = np.asarray(padded, float)[: len(utility)]
    np.testing.assert_allclose(ours, by_hand(single, propensity, place), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_all_orders_of_four_items_have_probability_one(depth: int) -> None:
    every = orders_with_ties(4, depth)
    assert depth < 4 or len(every) == 75
    law = DavidsonLuce(jnp.array([0.3, -1.0, 2.0, 0.0]), jnp.array([-0.5, 0.7, 0.2]))
    assert jnp.exp(law.log_prob(jnp.array(every))).sum() == pytest.approx(1, abs=1e-5)


def test_two_items_are_a_vote_with_ties() -> None:
    """Davidson's law has the log-odds of the pair, and the same propensity."""
    pair, propensity = jnp.array([[0.4, -1.3]]), jnp.array([-0.6])
    places = jnp.array([[1, 2], [1, 1], [2, 1]])
    ours = DavidsonLuce(pair, propensity).log_prob(places)
    np.testing.assert_allclose(ours, Davidson(1.7, -0.6).log_probs(), rtol=1e-5)


def test_without_ties_it_is_plackett_luce() -> None:
    utility, place = jnp.array([0.3, -1.0, 0.8, 2.0]), jnp.array([2, 0, 1, -1])
    lowest = jnp.array([1])
    strict = PlackettLuce(utility[None], lowest=lowest).log_prob(place[None])
    ours = DavidsonLuce(utility[None], jnp.zeros(0), lowest=lowest).log_prob(place[None])
    np.testing.assert_allclose(ours, strict, rtol=1e-5)


def test_fruits_of_the_r_package() -> None:
    """Fitted probabilities and deviance of ``PlackettLuce(R)`` 0.4.4, at its coefficients: files
    tests/testthat/test-S3-methods.R and _snaps/S3-methods.md of github.com/hturner/PlackettLuce."""
    ranks = np.array([[1, 2, 0], [3, 1, 2], [2, 1, 1], [1, 2, 3], [2, 1, 1], [1, 0, 2]])
    ahead = (ranks[:, None] < ranks[..., None]) & (ranks[:, None] > 0)
    place = np.where(ranks > 0, 1 + ahead.sum(-1), 0)
    with jax.enable_x64(True):
        utility = jnp.where(ranks > 0, jnp.array([0.0, 0.2867987, -0.4636687]), _NONE)
        law = DavidsonLuce(utility, jnp.array([-1.0701129]))
        log_prob = np.asarray(law.log_prob(jnp.array(place)))
    single = [0.36656777, 0.33785994 * 0.33086831, 0.07962156, 0.2536189 * 0.58554515]
    fitted = [*single, 0.07962156, 0.52604625]
    np.testing.assert_allclose(np.exp(log_prob), fitted, rtol=1e-6)
    assert -2 * log_prob.sum() == pytest.approx(21.61, abs=0.005)


def test_far_apart_utilities_and_their_slopes() -> None:
    utility, propensity = jnp.array([300.0, -200.0, 0.0, 250.0, _NONE]), jnp.array([1.0, 2.0])
    place = jnp.array([1, 4, 3, 1, 0])

    def log_prob(utility, propensity) -> jax.Array:
        return DavidsonLuce(utility, propensity).log_prob(place)

    assert float(log_prob(utility, propensity)) == pytest.approx(-24, abs=1e-4)
    slopes = jax.grad(log_prob, (0, 1))(utility, propensity)
    np.testing.assert_allclose(slopes[0], [-0.5, 0, 0, 0.5, 0], atol=1e-5)
    assert np.isfinite(slopes[1]).all()
    near = jnp.array([0.3, -1.0, 0.8, 2.0, _NONE])
    with jax.enable_x64(True):
        check_grads(lambda nu: log_prob(near, nu), (jnp.array([0.3, -0.4]),), 2)


@pytest.mark.parametrize("depth", [4, 2])
def test_orders_are_drawn_as_often_as_they_are_probable(depth: int) -> None:
    """A chi-squared test of each case at a level of 1e-5."""
    utility = jnp.broadcast_to(jnp.array([0.3, -1.0, 1.0, 0.0, _NONE]), (20_000, 5))
    law = DavidsonLuce(utility, jnp.array([0.5, 0.2]), places=jnp.full(20_000, depth))
    drawn = np.asarray(jax.jit(law.sample)(jax.random.key(0)))
    every = np.array([[*one, 0] for one in orders_with_ties(4, depth)])
    probs = np.exp(np.asarray(law.log_prob(every[:, None]), float))[:, 0]
    number = (drawn[:, None] == every).all(-1).sum(0)
    assert number.sum() == 20_000  # no other order
    kept = probs > 0
    assert not number[~kept].any()
    assert chisquare(number[kept], 20_000 * probs[kept] / probs[kept].sum()).pvalue > 1e-5


def test_the_worst_of_the_rest_is_drawn_and_counts() -> None:
    utility = jnp.broadcast_to(jnp.array([0.3, -1.0, 1.0, 0.0]), (5_000, 4))
    one = jnp.ones(5_000, int)
    law = DavidsonLuce(utility, jnp.array([0.5]), 2.0 * one, one, one)
    drawn = law.sample(jax.random.key(0))
    assert ((drawn == 1).sum(1) == 1).all()
    assert ((drawn == -1).sum(1) == 1).all()
    share = float((drawn[drawn[:, 2] == 1, 1] == -1).mean())
    odds = np.exp(-np.array([0.3, -1.0, 0.0]))
    assert share == pytest.approx(odds[1] / odds.sum(), abs=0.05)  # over 4 standard errors
    place = jnp.array([0, -1, 1, 0])
    single = DavidsonLuce(utility, jnp.array([0.5]), None, one, one)
    np.testing.assert_allclose(law.log_prob(place), 2 * single.log_prob(place), rtol=1e-5)

"""Choices and rankings against enumeration and sums written out by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.test_util import check_grads
from scipy.stats import chisquare

from raters.distributions import GroupedMixture
from raters.distributions.choices import NOT_OFFERED, Choice, PlackettLuce

_SLIDES = jnp.array([0.0, 1.0, 2.0])  # utilities of the slides of CS329H, chapter 2


_NONE = 10 * NOT_OFFERED


def _one(utility, places, **options) -> float:
    law = PlackettLuce(jnp.asarray(utility, float)[None], **options)
    return float(jnp.exp(law.log_prob(jnp.asarray(places)[None]))[0])


def test_the_softmax_of_the_slides() -> None:
    choice = Choice(_SLIDES[None])
    probs = jnp.exp(choice.log_probs())[0]
    np.testing.assert_allclose(probs, [0.0900, 0.2447, 0.6652], atol=5e-5)
    chosen = jnp.exp(choice.log_prob(jnp.eye(3)))
    np.testing.assert_allclose(chosen, probs, rtol=1e-6)


def test_the_ranking_of_the_slides() -> None:
    assert _one(_SLIDES, [3, 2, 1]) == pytest.approx(0.4863, abs=5e-5)


def test_rows_in_any_order_and_rankings_of_any_size() -> None:
    utility = jnp.array([[0.3, -1.0, 0.8, _NONE], [_NONE] * 4, [2.0, _NONE, 0.1, 0.5]])
    places = jnp.array([[2, 3, 1, 0], [0, 0, 0, 0], [0, 0, 1, 2]])  # the second ranking is empty
    by_hand = [2 * np.log(_one(utility[0, :3], places[0, :3])), 0.0]
    by_hand.append(3 * np.log(_one(utility[2, jnp.array([0, 2, 3])], [0, 1, 2])))
    law = PlackettLuce(utility, jnp.array([2.0, 1.0, 3.0]))
    np.testing.assert_allclose(law.log_prob(places), by_hand, rtol=1e-5)


def test_counts_multiply_the_density_of_single_choices() -> None:
    utility = jnp.array([[0.3, -1.0, _NONE], [0.8, 2.0, 9.0]])
    one = Choice(utility)
    first, second = jnp.array([[1.0, 0, 0], [0, 1, 0]]), jnp.array([[0.0, 1, 0], [0, 1, 0]])
    both = Choice(utility, jnp.array([3.0, 3.0])).log_prob(2 * first + second)
    np.testing.assert_allclose(both, 2 * one.log_prob(first) + one.log_prob(second), rtol=1e-5)


def test_sets_that_pad_have_no_part() -> None:
    utility, value = jnp.array([[0.3, -1.0], [0.8, _NONE]]), jnp.array([[1.0, 0.0], [0.0, 0.0]])
    count, alone = jnp.array([1.0, 0.0]), Choice(utility[:1]).log_prob(value[:1])
    np.testing.assert_allclose(Choice(utility, count).log_prob(value), [alone[0], 0.0])
    slope = jax.grad(lambda u: Choice(u, count).log_prob(value).sum())(utility)
    assert np.isfinite(slope).all()
    assert (slope[1] == 0).all()


def test_choices_are_drawn_as_often_as_they_are_probable() -> None:
    # Chi-squared tests of 2 sets at a level of 1e-5 each.
    utility = jnp.array([[0.3, -1.0, _NONE], [0.8, 2.0, 0.1], [0.5, _NONE, _NONE]])
    number = jnp.array([3.0, 5.0, 0.0])
    single = np.asarray(Choice(utility).sample(jax.random.key(0), (4000,)).sum(0), float)
    counted = np.asarray(Choice(utility, number).sample(jax.random.key(1), (1000,)))
    np.testing.assert_array_equal(counted.sum(2), np.tile(number, (1000, 1)))
    assert single[0, 2] == counted[:, 0, 2].max() == 0
    probs = np.exp(np.asarray(Choice(utility).log_probs(), float))
    for row, size in ((0, 2), (1, 3)):
        for drawn in (single[row, :size], counted.sum(0).astype(float)[row, :size]):
            expected = probs[row, :size] / probs[row, :size].sum() * drawn.sum()
            assert chisquare(drawn, expected).pvalue > 1e-5


def test_types_choose_from_sets() -> None:
    utility = jnp.array([[[0.3, -1.0], [1.0, 0.5]], [[0.8, 2.0], [0.0, -1.0]]])  # set, type
    chooser, share = jnp.array([0, 0]), jnp.array([0.25, 0.75])
    chosen = jnp.array([[1.0, 0.0], [0.0, 1.0]])
    mixture = GroupedMixture(dist.Categorical(probs=share), Choice(utility), chooser, 1)
    softmax = np.exp(np.asarray(Choice(utility).log_probs()))
    by_hand = np.log((share * softmax[0, :, 0] * softmax[1, :, 1]).sum())
    assert float(mixture.log_prob(chosen)[0]) == pytest.approx(float(by_hand), rel=1e-5)


# ---------------------------------------------------------------- best and worst


def test_slopes_of_the_worst_are_those_of_finite_differences() -> None:
    value, there = jnp.array([[2, 0, 1, -1], [0, -1, 1, 0]]), jnp.array([4, 3])[:, None]

    def total(utility):
        utility = jnp.where(jnp.arange(4) < there, utility, _NONE)
        return PlackettLuce(utility, lowest=jnp.array([1, 1])).log_prob(value).sum()

    with jax.enable_x64(True):
        check_grads(total, (jnp.array([[0.3, -1.0, 0.8, 2.0], [0.1, 0.5, -0.4, 0.0]]),), 2)


def test_answers_are_drawn_as_often_as_they_are_probable() -> None:
    # A chi-squared test at a level of 1e-5; of the second ranking the worst is not asked for.
    utility = jnp.array([[0.3, -1.0, 0.8, 2.0], [0.5, 1.0, _NONE, _NONE]])
    depth, lowest = jnp.array([1, 1]), jnp.array([1, 0])
    law = PlackettLuce(utility, places=depth, lowest=lowest)
    drawn = np.asarray(law.sample(jax.random.key(0), (6000,)))
    assert (np.sort(drawn[:, 1], axis=1) == [0, 0, 0, 1]).all()
    kinds, number = np.unique(drawn[:, 0], axis=0, return_counts=True)
    assert len(kinds) == 12
    alone = PlackettLuce(utility[:1], lowest=lowest[:1])
    expected = np.exp(np.asarray(alone.log_prob(jnp.asarray(kinds)), float)) * 6000
    assert chisquare(number, expected * number.sum() / expected.sum()).pvalue > 1e-5


def _by_hand(utility: np.ndarray, places: np.ndarray) -> float:
    """Sum over the places, then over the worst of the rest, of one ranking; −∞ is not offered."""
    left, total = np.isfinite(utility), 0.0
    for place in range(1, int(places.max()) + 1):
        total += float(utility[places == place][0] - np.log(np.exp(utility[left]).sum()))
        left = left & (places != place)
    if (places < 0).any():
        total += float(-utility[places < 0][0] - np.log(np.exp(-utility[left]).sum()))
    return total


@st.composite
def _rankings(draw) -> tuple[np.ndarray, np.ndarray]:
    """Utilities of up to five items in any order, and places of some of them."""
    size, order = draw(st.integers(2, 5)), draw(st.permutations(range(5)))
    utility, places = np.full(5, -np.inf), np.zeros(5, int)
    utility[order[:size]] = draw(st.lists(st.floats(-4, 4), min_size=size, max_size=size))
    depth = draw(st.integers(1, size - 1))
    places[order[:depth]] = np.arange(1, depth + 1)
    places[order[depth]] = draw(st.sampled_from([0, -1]))
    return utility, places


@jax.jit
def _log_probs(utility, value, count):
    ones = jnp.ones(2, int)
    return PlackettLuce(utility, count, ones, ones).log_prob(value)


@given(_rankings(), _rankings(), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_any_answers_are_products_of_their_choices(one, other, count) -> None:
    """Whatever the order of the items; a count multiplies, as if the ranking were repeated."""
    parts = (one, other)
    utility = np.stack([np.maximum(part[0], _NONE) for part in parts])
    value = np.stack([part[1] for part in parts])
    with jax.enable_x64(True):
        found = _log_probs(utility, value, np.array([1.0, count]))
    expected = [_by_hand(*one), count * _by_hand(*other)]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)

"""Policies that match what is shown: features, the game of Syed and Schapire, and generative
adversarial imitation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import linprog

import raters as rt
from raters import imitation
from raters.errors import ConvergenceWarning
from raters.imitation.rollouts import sums_of
from raters.imitation.values import values_of
from tests.imitation.worlds import SETTINGS, features, world, worlds


def deterministic_features(mdp):
    """Feature expectations of all deterministic policies."""
    choices = itertools.product(*(np.flatnonzero(row) for row in mdp.allowed))
    return np.array([features(mdp, np.eye(mdp.num_actions)[list(codes)]) for codes in choices])


# ---------------------------------------------------------------- feature matching


@SETTINGS
@given(worlds)
def test_returns_differ_by_what_features_do(given_world):
    mdp, _, policy, other = given_world
    apart = features(mdp, other) - features(mdp, policy)
    for weights in np.random.default_rng(0).normal(size=(5, 3)):
        values = [values_of(mdp, mdp.reward(weights), of) for of in (policy, other)]
        gap = abs(mdp.start @ (values[1] - values[0]))
        assert gap == pytest.approx(abs(weights @ apart), abs=1e-9)
        assert gap <= np.abs(weights).sum() * np.abs(apart).max() + 1e-9


@pytest.mark.parametrize("ending", [False, True])
def test_features_are_matched(ending):
    mdp, _, policy, _ = world(2, ending=ending)
    target = features(mdp, policy)
    learned = imitation.feature_matching(mdp, imitation.occupancy(mdp, policy))
    distance = np.linalg.norm(features(mdp, learned.policy) - target)
    assert distance == pytest.approx(learned.value, abs=1e-8)
    assert learned.value < 1e-4 * np.linalg.norm(target)


def test_the_margin_where_no_policy_matches():
    mdp = world(1, discount=0.9).mdp
    corners = deterministic_features(mdp)
    target = 3 * corners[np.linalg.norm(corners, axis=1).argmax()]
    learned = imitation.feature_matching(mdp, target)
    assert np.linalg.norm(learned.weights) == pytest.approx(1)
    # The plane through the nearest point has all policies behind it.
    margin = (learned.weights @ (target - corners).T).min()
    assert margin == pytest.approx(learned.value, rel=1e-4)
    assert learned.gap < 1e-4 * learned.value


# ---------------------------------------------------------------- the game


def game_value(corners, target):
    """Value of the game over all deterministic policies, by a programme of its own."""
    gain = corners - target
    rows = np.hstack([-gain.T, np.ones((gain.shape[1], 1))])
    equal = np.append(np.ones(len(gain)), 0)[None]
    bounds = [(0, None)] * len(gain) + [(None, None)]
    objective = np.append(np.zeros(len(gain)), -1)
    return -linprog(objective, rows, np.zeros(len(rows)), equal, [1], bounds).fun


@pytest.mark.parametrize("seed", range(4))
def test_the_game_has_the_value_of_its_matrix(seed):
    mdp, _, policy, _ = world(seed, ending=seed % 2 == 0)
    target = features(mdp, policy)
    corners = deterministic_features(mdp)
    exact = imitation.syed_schapire(mdp, target)
    assert exact.value == pytest.approx(game_value(corners, target), abs=1e-7)
    assert exact.value >= -1e-9  # the demonstrator's own policy gains 0
    gained = features(mdp, exact.policy) - target
    assert gained.min() == pytest.approx(exact.value, abs=1e-7)
    # By the worst reward no policy gains more.
    assert (exact.weights @ (corners - target).T).max() == pytest.approx(exact.value, abs=1e-6)
    assert exact.weights.sum() == pytest.approx(1)


# ---------------------------------------------------------------- adversarial


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_gail_has_the_occupancy_of_the_demonstrator(discount):
    """The sum of an occupancy that is not discounted is the mean length of a walk."""
    ends = [(3, 3)] if discount == 1 else []
    mdp = rt.MDP.grid(4, 4, ends=ends, start=(0, 0), discount=discount)
    reward = np.random.default_rng(0).normal(-2, 0.5, mdp.allowed.shape)
    policy = imitation.optimal_policy(mdp, reward, temperature=1.0).policy
    shown = imitation.occupancy(mdp, policy)
    learned = imitation.gail(mdp, shown, steps=2000)
    assert learned.divergence < 1e-5
    assert (np.diff(learned.history) < 0).all()
    found, good = imitation.occupancy(mdp, learned.policy), shown / shown.sum()
    np.testing.assert_allclose(found / found.sum(), good, atol=0.003)
    # The best classifier has the ratio as its odds (equation 60 of Nalisnick (2024)).
    there = good > 0
    expected = np.log(good[there] / (found / found.sum())[there])
    np.testing.assert_allclose(learned.logits[there], expected, atol=1e-9)
    # Who only counts divides by another sum.
    again = imitation.gail(mdp, 7 * shown, steps=2000)
    np.testing.assert_allclose(again.policy, learned.policy, atol=1e-9)


def test_gail_of_episodes_that_got_to_an_end():
    """4,000 episodes give the policy within .1 where the demonstrator often was."""
    mdp, reward, _, _ = world(1, ending=True, discount=0.9)
    policy = imitation.optimal_policy(mdp, reward, temperature=0.5).policy
    walks = imitation.rollout(mdp, policy, episodes=4000, steps=200, seed=1)
    learned = imitation.gail(mdp, imitation.occupancy(mdp, walks))
    busy = sums_of(mdp, walks).sum(1) > 2000
    assert busy.sum() >= 2
    np.testing.assert_allclose(learned.policy[busy], policy[busy], atol=0.1)


# ---------------------------------------------------------------- warnings and bad input


def test_it_is_said_when_rounds_are_few():
    mdp, _, policy, _ = world(1, discount=0.9)
    shown = imitation.occupancy(mdp, policy)
    with pytest.warns(ConvergenceWarning):
        imitation.feature_matching(mdp, shown, rounds=1)
    with pytest.warns(ConvergenceWarning) as caught:
        imitation.gail(mdp, shown, steps=1)
    assert caught[0].filename == __file__

"""Feature matching, the game of Syed and Schapire, and the bound by feature expectations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import linprog

import raters as rt
from raters import imitation
from raters.errors import ConvergenceWarning, DataError, SettingError
from tests.imitation.worlds import SETTINGS, world, worlds
from tests.refusals import raises_about


def deterministic_features(mdp):
    """Feature expectations of all deterministic policies."""
    choices = itertools.product(*(np.flatnonzero(row) for row in mdp.allowed))
    tables = (np.eye(mdp.num_actions)[list(codes)] for codes in choices)
    return np.array([imitation.feature_expectations(mdp, table) for table in tables])


@SETTINGS
@given(worlds)
def test_returns_differ_by_what_features_do(given_world):
    mdp, _, own, other = given_world
    shown = imitation.occupancy(mdp, other)
    apart = imitation.feature_expectations(mdp, other) - imitation.feature_expectations(mdp, own)
    for weights in np.random.default_rng(0).normal(size=(5, 3)):
        found = imitation.return_gap(mdp, weights, own, shown)
        values = [imitation.state_values(mdp, weights, policy) for policy in (own, other)]
        assert found.gap == pytest.approx(abs(mdp.start @ (values[1] - values[0])), abs=1e-9)
        assert found.gap <= found.bound + 1e-12
        bounded = imitation.return_gap(mdp, weights / np.abs(weights).sum(), own, shown)
        assert bounded.bound <= np.linalg.norm(apart) + 1e-12


def test_the_squared_distance_is_no_bound():
    mdp = rt.MDP.from_arrays(np.ones((1, 2, 1)), features=[[[1.0], [0.0]]], discount=0.5)
    found = imitation.return_gap(mdp, [1.0], [[0.5, 0.5]], [1.1])
    assert found == pytest.approx((0.1, 0.1))
    assert found.gap > 0.1**2  # as equation 63 has it


# ---------------------------------------------------------------- feature matching


@pytest.mark.parametrize("seed", range(6))
def test_features_are_matched(seed):
    mdp, _, own, _ = world(seed, ending=seed % 2 == 0)
    target = imitation.feature_expectations(mdp, own)
    learned = imitation.feature_matching(mdp, imitation.occupancy(mdp, own))
    found = imitation.feature_expectations(mdp, learned.policy)
    assert np.linalg.norm(found - target) == pytest.approx(learned.value, abs=1e-8)
    assert learned.value < 1e-4 * np.linalg.norm(target)


@pytest.mark.parametrize("seed", range(3))
def test_the_margin_where_no_policy_matches(seed):
    mdp, _, own, _ = world(seed, discount=0.9)
    corners = deterministic_features(mdp)
    target = 3 * corners[np.linalg.norm(corners, axis=1).argmax()]
    learned = imitation.feature_matching(mdp, target)
    assert np.linalg.norm(learned.weights) == pytest.approx(1)
    # The plane through the nearest point has all policies behind it.
    margin = (learned.weights @ (target - corners).T).min()
    assert margin == pytest.approx(learned.value, rel=1e-4)
    assert learned.gap < 1e-4 * learned.value
    assert own.shape == learned.policy.shape


# ---------------------------------------------------------------- the game


def game_value(corners, target, signed):
    """Value of the game over all deterministic policies, by a programme of its own."""
    gain = corners - target
    gain = np.hstack([gain, -gain]) if signed else gain
    rows = np.hstack([-gain.T, np.ones((gain.shape[1], 1))])
    equal = np.append(np.ones(len(gain)), 0)[None]
    bounds = [(0, None)] * len(gain) + [(None, None)]
    objective = np.append(np.zeros(len(gain)), -1)
    return -linprog(objective, rows, np.zeros(len(rows)), equal, [1], bounds).fun


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_game_has_the_value_of_its_matrix(seed, signed):
    mdp, _, own, _ = world(seed, ending=seed % 2 == 0)
    target = imitation.feature_expectations(mdp, own)
    corners = deterministic_features(mdp)
    expected = game_value(corners, target, signed)
    exact = imitation.syed_schapire_programme(mdp, target, signed=signed)
    assert exact.value == pytest.approx(expected, abs=1e-7)
    assert exact.value >= -1e-9  # the demonstrator's own policy gains 0
    gained = imitation.feature_expectations(mdp, exact.policy) - target
    sides = np.append(gained, -gained) if signed else gained
    assert sides.min() == pytest.approx(exact.value, abs=1e-7)
    # By the worst reward no policy gains more.
    assert (exact.weights @ (corners - target).T).max() == pytest.approx(exact.value, abs=1e-6)
    assert np.abs(exact.weights).sum() <= 1 + 1e-9
    learned = imitation.syed_schapire(mdp, target, signed=signed)
    assert learned.value <= exact.value + 1e-9
    assert exact.value <= learned.value + learned.gap + 1e-9
    assert learned.gap <= 1e-2 * max(np.abs(corners - target).max(), np.abs(target).max())


def test_the_game_on_a_grid():
    grid = np.random.default_rng(0).random((4, 4, 3))
    mdp = rt.MDP.grid(4, 4, features=grid, start=(0, 0), discount=0.9)
    soft = imitation.soft_policy(mdp, [1.0, 0.0, 0.0]).policy
    exact = imitation.syed_schapire_programme(mdp, imitation.occupancy(mdp, soft))
    learned = imitation.syed_schapire(mdp, imitation.occupancy(mdp, soft))
    assert 0 <= exact.value - learned.value + 1e-9 <= learned.gap + 2e-9
    assert exact.value > 0.01  # more of all three than one who wants the first alone


def test_a_demonstrator_beyond_all_policies_has_a_game_that_is_lost():
    mdp = rt.MDP.grid(2, 2, start=(0, 0), discount=0.5)
    assert imitation.syed_schapire_programme(mdp, np.full(4, 9.0)).value < -8


def test_it_is_said_when_rounds_are_few():
    mdp, _, own, _ = world(0, discount=0.9)
    shown = imitation.occupancy(mdp, own)
    with pytest.warns(ConvergenceWarning, match="take more rounds"):
        imitation.feature_matching(mdp, shown, rounds=1)
    with pytest.warns(ConvergenceWarning, match="from the best one"):
        imitation.syed_schapire(mdp, shown, rounds=1)


@pytest.mark.parametrize(
    ("kind", "parameter", "options"),
    [
        (DataError, "demonstrator", {"demonstrator": [1.0, 2.0]}),
        (DataError, "demonstrator", {"demonstrator": [np.nan, 2.0, 1.0]}),
        (DataError, "demonstrator", {"demonstrator": np.ones((1, 1))}),
        (SettingError, "rounds", {"rounds": 0}),
        (SettingError, "tolerance", {"tolerance": 0.0}),
    ],
)
@pytest.mark.parametrize("call", [imitation.feature_matching, imitation.syed_schapire])
def test_what_does_not_fit_is_refused(call, kind, parameter, options):
    mdp = world(0).mdp
    with raises_about(kind, parameter):
        call(mdp, **{"demonstrator": np.zeros(3)} | options)


def test_weights_are_of_the_features():
    mdp, _, own, _ = world(0)
    with raises_about(DataError, "weights"):
        imitation.return_gap(mdp, [1.0], own, np.zeros(3))
    walking = rt.MDP.grid(1, 2, ends=[(0, 1)], discount=1.0, features=np.ones((1, 2, 1)))
    with raises_about(DataError, "demonstrator"):
        imitation.syed_schapire_programme(walking, [0.0])

"""Optimal and soft-optimal policies."""

from __future__ import annotations

import dataclasses
import importlib
import itertools

import numpy as np
import pytest
from hypothesis import given
from scipy.special import entr, logsumexp

import raters as rt
from raters import imitation
from raters.errors import DataError
from raters.imitation.values import values_of
from tests.imitation.worlds import SETTINGS, discounted_worlds, soft, world, worlds
from tests.refusals import raises_about


@SETTINGS
@given(worlds)
def test_no_policy_is_better_in_any_state(given_world):
    mdp, reward, _, _ = given_world
    plan = imitation.optimal_policy(mdp, reward)
    assert set(plan.policy.ravel()) <= {0, 1}
    values = values_of(mdp, reward, plan.policy)
    np.testing.assert_allclose(values, plan.state_values, atol=1e-9)
    choices = [np.flatnonzero(row) for row in mdp.allowed]
    for codes in itertools.islice(itertools.product(*choices), 100):
        other = np.eye(mdp.num_actions)[list(codes)]
        assert (values_of(mdp, reward, other) <= values + 1e-9).all()


@SETTINGS
@given(worlds)
def test_the_soft_policy_is_the_fixed_point(given_world):
    mdp, reward, _, _ = given_world
    for temperature in (0.1, 3.0):
        plan = imitation.optimal_policy(mdp, reward, temperature=temperature)
        gain = np.where(
            mdp.allowed, reward + mdp.discount * mdp.transition @ plan.state_values, -np.inf
        )
        expected = temperature * logsumexp(gain / temperature, 1)
        np.testing.assert_allclose(plan.state_values, expected, atol=1e-8)
        probs = np.exp((gain - expected[:, None]) / temperature)
        np.testing.assert_allclose(plan.policy, probs, atol=1e-8)


def test_the_reward_of_an_end_counts_for_nothing():
    """Nothing is discounted; by hand: V = log(2 exp(-3 + V / 2))."""
    mdp = rt.MDP.from_arrays([[[0.5, 0.5]] * 2, [[0, 1]] * 2], discount=1.0)
    for at_the_end in (0.0, 5.0):
        plan = soft(mdp, [[-3, -3], [at_the_end, at_the_end]])
        np.testing.assert_allclose(plan.state_values, [2 * (np.log(2) - 3), 0], atol=1e-9)
        np.testing.assert_allclose(plan.policy[0], 0.5)


@SETTINGS
@given(discounted_worlds)
def test_the_soft_policy_has_most_reward_and_entropy(given_world):
    mdp, reward, policy, other = given_world
    plan = imitation.optimal_policy(mdp, reward, temperature=0.7)

    def worth(table):
        return values_of(mdp, reward + 0.7 * entr(table).sum(1, keepdims=True), table)

    np.testing.assert_allclose(worth(plan.policy), plan.state_values, atol=1e-8)
    for table in (policy, other, 0.95 * plan.policy + 0.05 * policy):
        assert (worth(table) <= plan.state_values + 1e-9).all()


def test_with_the_value_without_entropy_the_policy_does_not_add_up():
    """As equations 12 and 13 of Nalisnick (2024) have it."""
    mdp, reward, _, _ = world(3)
    plan = soft(mdp, reward)
    gain = np.where(mdp.allowed, plan.action_values, 0)
    printed = np.exp(plan.action_values - (plan.policy * gain).sum(1)[:, None]).sum(1)
    # Off by λH, as the mistake is.
    np.testing.assert_allclose(np.log(printed), entr(plan.policy).sum(1), atol=1e-9)
    assert printed.max() > 1.5


def test_limits_of_the_soft_policy():
    mdp, reward, _, _ = world(11)
    cold = imitation.optimal_policy(mdp, reward, temperature=1e-3)
    np.testing.assert_allclose(cold.policy, imitation.optimal_policy(mdp, reward).policy, atol=1e-6)


# ---------------------------------------------------------------- nothing is discounted

GRID = rt.MDP.grid(3, 3, slip=0.1, ends=[(2, 2)], discount=1.0, start=(0, 0))
GOAL = np.eye(9)[8]


def test_without_discount_the_way_is_to_an_end():
    # The goal is had sooner or later, so that all ways to it tie; none may be a circle.
    plan = imitation.optimal_policy(GRID, GOAL)
    np.testing.assert_allclose(plan.state_values[:9], 1)
    np.testing.assert_allclose(values_of(GRID, GRID.reward(GOAL), plan.policy)[:9], 1)
    hurried = imitation.optimal_policy(GRID, GOAL - 0.1)
    near = dataclasses.replace(GRID, discount=1 - 1e-9)
    expected = imitation.optimal_policy(near, GOAL - 0.1).state_values
    np.testing.assert_allclose(hurried.state_values, expected, atol=1e-6)


def test_without_discount_circles_that_pay_have_no_optimum():
    # log 4 of entropy in each step costs more than .5, and less than 2.
    for call, reward in (
        (imitation.optimal_policy, GOAL + 0.1),
        (soft, GOAL + 0.1),
        (soft, GOAL - 0.5),
    ):
        with raises_about(DataError, "reward"):
            call(GRID, reward)
    assert soft(GRID, GOAL - 2.0).state_values[-1] == 0


# ---------------------------------------------------------------- known values


@pytest.mark.parametrize(
    ("name", "value"), [("FrozenLakeEnv", 14 / 17), ("TaxiEnv", 7.93), ("CliffWalkingEnv", -13.0)]
)
def test_the_best_returns_of_gymnasium(name, value):
    """The lake is crossed 14 times in 17; Taxi's best mean over its 300 starts; 13 steps of −1."""
    pytest.importorskip("gymnasium")
    env = getattr(importlib.import_module("gymnasium.envs.toy_text"), name)()
    mdp = rt.MDP.from_gymnasium(env, discount=1.0)
    plan = imitation.optimal_policy(mdp, [1.0])
    assert mdp.start @ plan.state_values == pytest.approx(value, abs=1e-9)
    by_visits = (imitation.occupancy(mdp, plan.policy) * mdp.reward([1.0])).sum()
    assert by_visits == pytest.approx(value, abs=1e-9)

"""Returns, values, occupancies and the performance-difference lemma, on random processes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import rel_entr

import raters as rt
from raters import imitation
from raters.errors import DataError, SettingError
from raters.imitation.rollouts import Rollout, rollout, sums_of
from raters.imitation.values import backed_up, uniform_policy, values_of
from tests.imitation.worlds import SETTINGS, beginning, discounted_worlds, world, worlds
from tests.refusals import raises_about


def advantages(mdp, reward, policy):
    values = values_of(mdp, reward, policy)
    return np.where(mdp.allowed, backed_up(mdp, reward, values) - values[:, None], 0)


@SETTINGS
@given(worlds)
def test_values_and_occupancies_agree(given_world):
    """The equation of Bellman, and two ways to the expected return."""
    mdp, reward, policy, _ = given_world
    gain = advantages(mdp, reward, policy)
    np.testing.assert_allclose((policy * gain).sum(1), 0, atol=1e-10)
    visits = imitation.occupancy(mdp, policy)
    by_values = mdp.start @ values_of(mdp, reward, policy)
    assert (visits * reward).sum() == pytest.approx(by_values, abs=1e-10)
    if mdp.discount < 1:
        assert visits.sum() == pytest.approx(1 / (1 - mdp.discount), rel=1e-10)


@SETTINGS
@given(discounted_worlds)
def test_occupancies_are_those_of_many_steps(given_world):
    mdp, _, policy, _ = given_world
    visits, here = np.zeros(mdp.num_states), np.asarray(mdp.start)
    after = np.einsum("sa,sat->st", policy, mdp.transition)
    for step in range(1200):
        visits = visits + mdp.discount**step * here
        here = here @ after
    found = imitation.occupancy(mdp, policy)
    np.testing.assert_allclose(found, visits[:, None] * policy, atol=1e-9)


@SETTINGS
@given(worlds)
def test_the_performance_difference_lemma(given_world):
    """Kakade and Langford (2002), lemma 6.1."""
    mdp, reward, policy, other = given_world
    gain = values_of(mdp, reward, other) - values_of(mdp, reward, policy)
    of_actions = advantages(mdp, reward, policy)
    for state in range(mdp.num_states):
        visits = imitation.occupancy(beginning(mdp, state), other)
        assert (visits * of_actions).sum() == pytest.approx(gain[state], abs=1e-10)


def test_with_the_stationary_distribution_the_lemma_is_false():
    """As equation 14 of Nalisnick (2024) has it."""
    mdp, reward, policy, other = world(4)
    after = np.einsum("sa,sat->st", other, mdp.transition)
    stationary = np.linalg.matrix_power(after, 10_000)[0]
    np.testing.assert_allclose(stationary @ after, stationary, atol=1e-9)
    of_actions = advantages(mdp, reward, policy)
    # The objective of equation 11 is of the reward of a step alone, whatever the discount.
    of_a_step = stationary @ (other * reward).sum(1)
    values = values_of(mdp, reward, other)
    assert stationary @ values == pytest.approx(of_a_step / (1 - mdp.discount), rel=1e-6)
    printed = stationary @ (other * of_actions).sum(1) / (1 - mdp.discount)
    gain = values - values_of(mdp, reward, policy)
    assert np.ptp(gain) > 0.1
    assert np.abs(gain - printed).max() > 0.05


def test_a_walk_that_ends_by_hand():
    # Each step costs 1 and ends the walk once in four times.
    mdp = rt.MDP.from_arrays([[[0.75, 0.25]], [[0, 1]]], discount=1.0)
    reward, policy = np.array([[-1], [0]]), np.array([[1], [1]])
    assert values_of(mdp, reward, policy).tolist() == pytest.approx([-4, 0])
    assert imitation.occupancy(mdp, policy).ravel().tolist() == pytest.approx([4, 0])


# ---------------------------------------------------------------- the divergence of walks


def walks(mdp, policy, steps):
    """Probability of each walk of so many steps, the state after the last one included."""
    table = np.asarray(mdp.start)
    for _ in range(steps):
        table = np.einsum("...s,sa,sat->...sat", table, policy, mdp.transition)
    return table.ravel()


def test_the_divergence_of_walks_is_the_loss_of_cloning():
    """Equations 53 to 55 of Nalisnick (2024): start and transitions cancel, and the divergence is
    the excess of the expected log loss of the actions."""
    mdp, _, policy, other = world(1, deterministic=True)
    once = dataclasses.replace(mdp, discount=0.0)
    by_walks = rel_entr(walks(once, policy, 1), walks(once, other, 1)).sum()
    visits = imitation.occupancy(once, policy)
    loss = [-(visits[mdp.allowed] * np.log(each[mdp.allowed])).sum() for each in (policy, other)]
    assert by_walks == pytest.approx(loss[1] - loss[0], rel=1e-9)


# ---------------------------------------------------------------- demonstrations


@pytest.mark.parametrize("steps", [3, 5])
def test_an_episode_that_ended_stays_in_the_end(steps):
    right = [[0, 1, 0, 0]] * 3 + [[1, 0, 0, 0]]
    for start in (0, 1, 2):
        mdp = beginning(rt.MDP.grid(1, 3, slip=0, ends=[(0, 2)], discount=0.5), start)
        shown = imitation.rollout(mdp, right, episodes=3, steps=steps, seed=0)
        found, expected = (imitation.occupancy(mdp, of).sum(1) for of in (shown, right))
        np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("discount", [1.0, 0.9])
@given(st.integers(0, 10))
@SETTINGS
def test_a_rollout_is_of_the_policy(discount, seed):
    mdp, _, policy, _ = world(seed, ending=True, discount=discount)
    shown = imitation.rollout(mdp, policy, episodes=4000, steps=200, seed=seed)
    again = imitation.rollout(mdp, policy, episodes=4000, steps=200, seed=seed)
    np.testing.assert_array_equal(shown.states, again.states)
    counts = sums_of(mdp, shown)
    assert (counts[~mdp.allowed] == 0).all()
    assert not counts[-1].any()  # nothing is done in an end
    # Means of 4,000 episodes, the number of visits of each with a standard deviation below 12,
    # within 5.5 standard errors; some 400 in all: a false alarm in 1e-5.
    found = imitation.occupancy(mdp, shown)
    np.testing.assert_allclose(found, imitation.occupancy(mdp, policy), atol=5.5 * 12 / 4000**0.5)
    total = counts.sum(1, keepdims=True)
    busy = np.flatnonzero(total[:, 0] > 2000)
    share = counts[busy] / total[busy]
    # Shares of over 2,000 within 5.5 standard deviations, some 200 in all: a false alarm in 1e-5.
    spread = np.sqrt(policy[busy] * (1 - policy[busy]) / total[busy])
    assert (np.abs(share - policy[busy]) <= 5.5 * spread + 1e-12).all()


# ---------------------------------------------------------------- bad input

TWO = rt.MDP.grid(1, 2)
ANY = uniform_policy(TWO)
ENDED = rt.MDP.grid(1, 2, ends=[(0, 1)])


@pytest.mark.parametrize(
    ("error", "parameter", "call"),
    [
        (DataError, "reward", lambda: imitation.optimal_policy(TWO, [1, 2, 3])),
        (DataError, "reward", lambda: imitation.optimal_policy(TWO, [[np.nan] * 4] * 2)),
        (SettingError, "mdp", lambda: imitation.optimal_policy(TWO.transition, [0, 1])),
        (
            SettingError,
            "temperature",
            lambda: imitation.optimal_policy(TWO, [0, 1], temperature=-1),
        ),
        (DataError, "policy", lambda: imitation.occupancy(TWO, ANY[:, :3])),
        (DataError, "policy", lambda: imitation.occupancy(TWO, 0.9 * ANY)),
        (DataError, "policy", lambda: imitation.occupancy(TWO, [[1.5, -0.5, 0, 0]] * 2)),
        (DataError, "policy", lambda: imitation.occupancy(ENDED, np.full((3, 4), 0.25))),
        (DataError, "rollout", lambda: imitation.occupancy(TWO, Rollout([[0]], [[0, 1]]))),
        (DataError, "rollout", lambda: imitation.clone(TWO, Rollout([[2]], [[0]]))),
        (DataError, "rollout", lambda: imitation.clone(TWO, Rollout([[0]], [[4]]))),
        (DataError, "rollout", lambda: imitation.clone(TWO, Rollout([[0.5]], [[1]]))),
        (DataError, "rollout", lambda: imitation.occupancy(TWO, Rollout([], []))),
        (DataError, "rollout", lambda: imitation.clone(ENDED, Rollout([[2]], [[1]]))),
        (SettingError, "episodes", lambda: rollout(TWO, ANY, episodes=0, steps=1, seed=0)),
        (SettingError, "seed", lambda: rollout(TWO, ANY, episodes=1, steps=1, seed=-1)),
    ],
)
def test_what_does_not_fit_is_refused(error, parameter, call):
    with raises_about(error, parameter):
        call()


def test_a_walk_that_never_ends_has_no_sum():
    mdp = rt.MDP.grid(1, 3, slip=0, ends=[(0, 2)], discount=1.0)
    with raises_about(DataError, "policy"):
        imitation.occupancy(mdp, np.eye(4)[[3, 3, 3, 0]])

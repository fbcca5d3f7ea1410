"""Returns, values, occupancies and the performance-difference lemma, on random processes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import raters as rt
from raters import imitation
from raters.errors import DataError, SettingError
from tests.imitation.worlds import SETTINGS, discounted_worlds, world, worlds
from tests.refusals import raises_about


def test_returns_begin_with_the_reward_of_the_step():
    rewards = np.random.default_rng(0).normal(size=(3, 50))
    found = imitation.returns(rewards, 0.9)
    expected = [sum(0.9**ahead * row[ahead] for ahead in range(50)) for row in rewards]
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-12)
    np.testing.assert_allclose(found[:, :-1], rewards[:, :-1] + 0.9 * found[:, 1:], rtol=1e-12)
    # With a reward of 1 for ever it is 1 / (1 - γ); a sum from 1 would be γ / (1 - γ).
    assert imitation.returns(np.ones(5000), 0.9)[0] == pytest.approx(10, rel=1e-12)
    assert imitation.returns([1, 2, 3], 1.0).tolist() == [6, 5, 3]
    assert imitation.returns([1, 2, 3], 0.0).tolist() == [1, 2, 3]


@SETTINGS
@given(worlds)
def test_values_fulfil_the_equation_of_bellman(given_world):
    mdp, reward, policy, _ = given_world
    values = imitation.state_values(mdp, reward, policy)
    of_actions = imitation.action_values(mdp, reward, policy)
    expected = reward + mdp.discount * mdp.transition @ values
    np.testing.assert_allclose(of_actions[mdp.allowed], expected[mdp.allowed], atol=1e-12)
    assert (of_actions[~mdp.allowed] == -np.inf).all()
    on_average = (policy * np.where(mdp.allowed, of_actions, 0)).sum(1)
    np.testing.assert_allclose(values, on_average, atol=1e-10)
    gain = imitation.advantage(mdp, reward, policy)
    np.testing.assert_allclose((policy * np.where(mdp.allowed, gain, 0)).sum(1), 0, atol=1e-10)


@SETTINGS
@given(worlds)
def test_two_ways_to_the_expected_return(given_world):
    mdp, reward, policy, _ = given_world
    visits = imitation.occupancy(mdp, policy)
    by_values = mdp.start @ imitation.state_values(mdp, reward, policy)
    assert (visits * reward).sum() == pytest.approx(by_values, abs=1e-10)
    expected = imitation.feature_expectations(mdp, policy)
    weights = np.array([1.0, -2.0, 0.5])
    by_features = mdp.start @ imitation.state_values(mdp, weights, policy)
    assert expected @ weights == pytest.approx(by_features, abs=1e-9)
    if mdp.discount < 1:
        assert visits.sum() == pytest.approx(1 / (1 - mdp.discount), rel=1e-10)
    assert imitation.occupancy(mdp, policy, normalised=True).sum() == pytest.approx(1)


@SETTINGS
@given(discounted_worlds)
def test_occupancies_are_those_of_many_steps(given_world):
    mdp, _, policy, _ = given_world
    endless = imitation.occupancy(mdp, policy, start=1)
    cut = imitation.occupancy(mdp, policy, start=np.eye(mdp.num_states)[1], steps=1200)
    np.testing.assert_allclose(cut, endless, atol=1e-9)
    here = np.eye(mdp.num_states)[1]
    after = here @ np.einsum("sa,sat->st", policy, mdp.transition)
    two = (here + mdp.discount * after)[:, None] * policy
    np.testing.assert_allclose(imitation.occupancy(mdp, policy, start=1, steps=2), two, atol=1e-12)


@SETTINGS
@given(worlds)
def test_the_performance_difference_lemma(given_world):
    mdp, reward, policy, other = given_world
    gain = imitation.performance_difference(mdp, reward, policy, other)
    values = [imitation.state_values(mdp, reward, of) for of in (policy, other)]
    np.testing.assert_allclose(gain, values[1] - values[0], rtol=0, atol=1e-10)
    advantages = np.where(mdp.allowed, imitation.advantage(mdp, reward, policy), 0)
    for state in range(mdp.num_states):
        visits = imitation.occupancy(mdp, other, start=state)
        assert (visits * advantages).sum() == pytest.approx(gain[state], abs=1e-10)


def test_with_the_stationary_distribution_the_lemma_is_false():
    mdp, reward, policy, other = world(4)
    after = np.einsum("sa,sat->st", other, mdp.transition)
    stationary = np.linalg.matrix_power(after, 10_000)[0]
    np.testing.assert_allclose(stationary @ after, stationary, atol=1e-9)
    advantages = np.where(mdp.allowed, imitation.advantage(mdp, reward, policy), 0)
    # The objective of equation 11 is of the reward of a step alone, whatever the discount.
    values = imitation.state_values(mdp, reward, other)
    of_a_step = stationary @ (other * reward).sum(1)
    assert stationary @ values == pytest.approx(of_a_step / (1 - mdp.discount), rel=1e-6)
    printed = stationary @ (other * advantages).sum(1) / (1 - mdp.discount)
    assert np.ptp(imitation.performance_difference(mdp, reward, policy, other)) > 0.1
    gain = imitation.performance_difference(mdp, reward, policy, other)
    assert np.abs(gain - printed).max() > 0.05


def test_values_of_a_walk_that_ends_by_hand():
    # Each step costs 1 and ends the walk once in four times.
    mdp = rt.MDP.from_arrays([[[0.75, 0.25]], [[0, 1]]], discount=1.0)
    assert imitation.state_values(mdp, [[-1], [0]], [[1], [1]]).tolist() == pytest.approx([-4, 0])
    assert imitation.occupancy(mdp, [[1], [1]]).ravel().tolist() == pytest.approx([4, 0])


@pytest.mark.parametrize("steps", [3, 5])
def test_an_episode_that_ended_stays_in_the_end(steps):
    mdp = rt.MDP.grid(1, 3, slip=0, ends=[(0, 2)], discount=0.5)
    right = [[0, 1, 0, 0]] * 3 + [[1, 0, 0, 0]]
    for start in (0, 1, 2):
        walks = imitation.rollout(mdp, right, episodes=3, steps=steps, seed=0, start=start)
        found = imitation.empirical_occupancy(mdp, walks).sum(1)
        np.testing.assert_allclose(found, imitation.occupancy(mdp, right, start=start).sum(1))


@pytest.mark.parametrize("discount", [1.0, 0.9])
@given(st.integers(0, 10))
@SETTINGS
def test_a_rollout_is_of_the_policy(discount, seed):
    mdp, _, policy, _ = world(seed, ending=True, discount=discount)
    walks = imitation.rollout(mdp, policy, episodes=4000, steps=200, seed=seed)
    again = imitation.rollout(mdp, policy, episodes=4000, steps=200, seed=seed)
    np.testing.assert_array_equal(walks.states, again.states)
    counts = imitation.action_counts(mdp, walks)
    assert (counts[~mdp.allowed] == 0).all()
    assert not counts[-1].any()  # nothing is done in an end
    # Means of 4,000 episodes, the number of visits of each with a standard deviation below 12,
    # within 5.5 standard errors; some 400 in all: a false alarm in 1e-5.
    found = imitation.empirical_occupancy(mdp, walks)
    np.testing.assert_allclose(found, imitation.occupancy(mdp, policy), atol=5.5 * 12 / 4000**0.5)
    total = counts.sum(1, keepdims=True)
    busy = np.flatnonzero(total[:, 0] > 2000)
    share = counts[busy] / total[busy]
    # Shares of over 2,000 within 5.5 standard deviations, some 200 in all: a false alarm in 1e-5.
    spread = np.sqrt(policy[busy] * (1 - policy[busy]) / total[busy])
    assert (np.abs(share - policy[busy]) <= 5.5 * spread + 1e-12).all()


# ---------------------------------------------------------------- bad input


TWO = rt.MDP.grid(1, 2)
ANY = imitation.uniform_policy(TWO)


@pytest.mark.parametrize(
    ("parameter", "call"),
    [
        ("reward", lambda: imitation.state_values(TWO, [1, 2, 3], ANY)),
        ("reward", lambda: imitation.state_values(TWO, [[np.nan] * 4] * 2, ANY)),
        ("policy", lambda: imitation.state_values(TWO, [0, 1], ANY[:, :3])),
        ("policy", lambda: imitation.state_values(TWO, [0, 1], 0.9 * ANY)),
        ("policy", lambda: imitation.state_values(TWO, [0, 1], np.array([[1.5, -0.5, 0, 0]] * 2))),
        ("other", lambda: imitation.performance_difference(TWO, [0, 1], ANY, ANY[:1])),
        ("start", lambda: imitation.occupancy(TWO, ANY, start=2)),
        ("start", lambda: imitation.occupancy(TWO, ANY, start=[0.5, 0.4])),
        ("start", lambda: imitation.occupancy(TWO, ANY, start=[1.0])),
        ("rewards", lambda: imitation.returns(3.0, 0.5)),
        ("rollout", lambda: imitation.action_counts(TWO, imitation.Rollout([[0]], [[0, 1]]))),
        ("rollout", lambda: imitation.action_counts(TWO, imitation.Rollout([[2]], [[0]]))),
        ("rollout", lambda: imitation.action_counts(TWO, imitation.Rollout([[0]], [[4]]))),
        ("rollout", lambda: imitation.action_counts(TWO, imitation.Rollout([[0.5]], [[1]]))),
        ("rollout", lambda: imitation.empirical_occupancy(TWO, imitation.Rollout([], []))),
    ],
)
def test_what_does_not_fit_is_refused(parameter, call):
    with raises_about(DataError, parameter):
        call()


@pytest.mark.parametrize(
    ("parameter", "call"),
    [
        ("mdp", lambda: imitation.state_values(TWO.transition, [0, 1], ANY)),
        ("discount", lambda: imitation.returns([1.0], 1.5)),
        ("steps", lambda: imitation.occupancy(TWO, ANY, steps=0)),
        ("episodes", lambda: imitation.rollout(TWO, ANY, episodes=0, steps=1, seed=0)),
        ("seed", lambda: imitation.rollout(TWO, ANY, episodes=1, steps=1, seed=-1)),
    ],
)
def test_settings_that_are_none_are_refused(parameter, call):
    with raises_about(SettingError, parameter):
        call()


def test_what_is_not_allowed_is_not_done():
    ended = rt.MDP.grid(1, 2, ends=[(0, 1)])
    wrong = np.full((3, 4), 0.25)
    with raises_about(DataError, "policy") as caught:
        imitation.occupancy(ended, wrong)
    assert "'right' in state 'end'" in str(caught.value)
    with raises_about(DataError, "rollout"):
        imitation.action_counts(ended, imitation.Rollout([[2]], [[1]]))


def test_a_walk_that_never_ends_has_no_sum():
    mdp = rt.MDP.grid(1, 3, slip=0, ends=[(0, 2)], discount=1.0)
    left = np.eye(4)[[3, 3, 3, 0]]
    for call in (imitation.state_values, imitation.advantage):
        with raises_about(DataError, "policy") as caught:
            call(mdp, [0, 0, 1], left)
        assert "(0, 0), (0, 1)" in str(caught.value)
    with raises_about(DataError, "policy"):
        imitation.occupancy(mdp, left)
    cut = imitation.occupancy(mdp, left, start=0, steps=7)
    assert cut[0, 3] == 7

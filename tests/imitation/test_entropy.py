"""Maximum-entropy inverse reinforcement learning, and walks weighed by their return."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

import raters as rt
from raters import imitation
from raters.errors import ConvergenceWarning, DataError, SettingError
from tests.imitation.worlds import SETTINGS, discounted_worlds, seeds, world
from tests.refusals import raises_about


def unrolled(mdp, weights, target, rounds=400):
    """The log-likelihood by value iteration, for JAX to differentiate."""
    penalty = jnp.where(mdp.allowed, 0.0, -jnp.inf)
    transition, features = jnp.asarray(mdp.transition), jnp.asarray(mdp.features)

    def back_up(values, _):
        gain = features @ weights + mdp.discount * transition @ values
        return jax.nn.logsumexp(gain + penalty, axis=1), None

    values, _ = jax.lax.scan(back_up, jnp.zeros(mdp.num_states), length=rounds)
    return weights @ target - mdp.start @ values


def test_the_gradient_is_what_autodiff_gives():
    with jax.enable_x64(True):
        for seed in range(3):
            mdp, _, own, _ = world(seed, discount=0.9)
            weights = np.random.default_rng(seed).normal(size=3)
            target = imitation.feature_expectations(mdp, own)
            found = imitation.maxent_objective(mdp, weights, target)
            value, gradient = jax.value_and_grad(unrolled, 1)(mdp, jnp.asarray(weights), target)
            assert found.value == pytest.approx(float(value), rel=1e-10)
            np.testing.assert_allclose(found.gradient, gradient, atol=1e-9)
            policy = imitation.soft_policy(mdp, weights).policy
            expected = target - imitation.feature_expectations(mdp, policy)
            np.testing.assert_allclose(found.gradient, expected, atol=1e-8)


@SETTINGS
@given(discounted_worlds)
def test_it_is_the_log_likelihood_of_the_demonstrator(given_world):
    mdp, _, own, _ = given_world
    weights = np.array([0.5, -1.0, 2.0])
    visits = imitation.occupancy(mdp, own)
    policy = imitation.soft_policy(mdp, weights).policy
    expected = (visits[mdp.allowed] * np.log(policy[mdp.allowed])).sum()
    found = imitation.maxent_objective(mdp, weights, visits)
    assert found.value == pytest.approx(expected, rel=1e-8)


@SETTINGS
@given(discounted_worlds, seeds, st.floats(0.05, 0.95))
def test_the_log_likelihood_is_concave(given_world, seed, share):
    mdp, _, own, _ = given_world
    target = imitation.feature_expectations(mdp, own)
    ends = np.random.default_rng(seed).normal(scale=2.0, size=(2, 3))
    between = share * ends[0] + (1 - share) * ends[1]
    values = [imitation.maxent_objective(mdp, at, target).value for at in (*ends, between)]
    assert values[2] >= share * values[0] + (1 - share) * values[1] - 1e-8


@pytest.mark.parametrize("seed", range(4))
def test_features_match_at_the_optimum(seed):
    mdp, _, own, _ = world(seed)
    target = imitation.feature_expectations(mdp, own)
    found = imitation.maxent_irl(mdp, imitation.occupancy(mdp, own))
    reached = imitation.feature_expectations(mdp, found.policy)
    np.testing.assert_allclose(reached, target, atol=1e-4 * np.abs(target).max())
    np.testing.assert_allclose(
        found.policy, imitation.soft_policy(mdp, found.weights).policy, atol=1e-9
    )
    # With the policy in proportion to Q, as printed, they do not match.
    gain = np.where(mdp.allowed, imitation.action_values(mdp, found.weights, found.policy), 0)
    shifted = np.where(mdp.allowed, gain - gain.min() + 1e-3, 0)
    printed = shifted / shifted.sum(1, keepdims=True)
    apart = imitation.feature_expectations(mdp, printed) - target
    assert np.abs(apart).max() > 1e-2 * np.abs(target).max()


@pytest.mark.parametrize("ending", [False, True])
def test_the_reward_of_a_soft_demonstrator_is_found(ending):
    mdp = (
        world(3).mdp
        if not ending
        else rt.MDP.grid(
            3,
            3,
            ends=[(2, 2)],
            discount=1.0,
            start=(0, 0),
            features={"step": np.ones((3, 3)), "mud": np.eye(3)[::-1]},
        )
    )
    weights = np.array([-3.0, -1.0]) if ending else np.array([1.0, -0.5, 2.0])
    shown = imitation.occupancy(mdp, imitation.soft_policy(mdp, weights).policy)
    found = imitation.maxent_irl(mdp, shown, tolerance=1e-9)
    np.testing.assert_allclose(found.weights, weights, atol=1e-4)
    shrunk = imitation.maxent_irl(mdp, shown, penalty=0.5)
    assert np.linalg.norm(shrunk.weights) < np.linalg.norm(found.weights)
    at = imitation.maxent_objective(mdp, shrunk.weights, shown)
    np.testing.assert_allclose(at.gradient, 0.5 * shrunk.weights, atol=1e-4)


def test_a_constant_is_not_identified_and_stays_out():
    mdp = rt.MDP.grid(2, 2)  # an indicator of each cell
    shown = imitation.occupancy(mdp, imitation.soft_policy(mdp, [5.0, 4.0, 5.0, 7.0]).policy)
    found = imitation.maxent_irl(mdp, shown, tolerance=1e-9)
    np.testing.assert_allclose(found.weights, [-0.25, -1.25, -0.25, 1.75], atol=1e-3)


def test_a_demonstrator_who_never_errs_needs_a_penalty():
    mdp = rt.MDP.grid(2, 2, start=(0, 0))
    best = imitation.optimal_policy(mdp, [0, 0, 0, 1]).policy
    shown = imitation.occupancy(mdp, best)
    with pytest.warns(ConvergenceWarning, match="grow without end.*penalty=0.01"):
        imitation.maxent_irl(mdp, shown)
    found = imitation.maxent_irl(mdp, shown, penalty=0.01)
    assert found.weights.argmax() == 3
    with pytest.warns(ConvergenceWarning, match="differ by"):
        imitation.maxent_irl(mdp, [100.0, 0, 0, 0], steps=3)


def test_of_equal_rewards_the_nearest_to_the_initial_ones():
    mdp = rt.MDP.grid(2, 2)
    shown = imitation.occupancy(mdp, imitation.soft_policy(mdp, [0.0, 0, 0, 2.0]).policy)
    found = imitation.maxent_irl(mdp, shown, initial=np.full(4, 3.0))
    np.testing.assert_allclose(found.weights, [2.5, 2.5, 2.5, 4.5], atol=1e-6)
    # Episodes that are cut lack a part of the constant, which changes nothing.
    cut = imitation.maxent_irl(mdp, 0.9 * shown).weights
    assert np.abs(cut).max() < 10


def test_without_discount_it_begins_where_circles_cost_something():
    features = {"step": np.ones((3, 3)), "mud": np.eye(3)[::-1]}
    mdp = rt.MDP.grid(3, 3, ends=[(2, 2)], discount=1.0, features=features)
    shown = imitation.occupancy(mdp, imitation.soft_policy(mdp, [-2.0, 0.5]).policy)
    own = imitation.maxent_irl(mdp, shown)
    given_start = imitation.maxent_irl(mdp, shown, initial=[-4.0, 0.0])
    np.testing.assert_allclose(own.weights, given_start.weights, atol=1e-6)
    with raises_about(DataError, "reward"):
        imitation.maxent_irl(mdp, shown, initial=[0.0, 0.0])
    mud_alone = rt.MDP.grid(3, 3, ends=[(2, 2)], discount=1.0, features={"mud": np.eye(3)[::-1]})
    with raises_about(DataError, "initial"):
        imitation.maxent_irl(mud_alone, [1.0])


def test_what_does_not_fit_is_refused():
    mdp = world(0).mdp
    with raises_about(DataError, "weights"):
        imitation.maxent_objective(mdp, [1.0], np.zeros(3))
    with raises_about(DataError, "demonstrator"):
        imitation.maxent_irl(mdp, np.zeros(2))
    with raises_about(SettingError, "penalty"):
        imitation.maxent_irl(mdp, np.zeros(3), penalty=-1.0)


# ---------------------------------------------------------------- walks weighed by their return


def all_walks(mdp, policies, reward):
    """Probability, return and log-ratio weight of each walk: by enumeration."""
    steps = len(policies)
    probs = np.asarray(mdp.start)
    total = np.zeros_like(probs)
    for step in range(steps):
        chance = policies[step][..., None] * mdp.transition
        probs = probs[..., None, None] * chance
        gain = mdp.discount**step * reward
        total = total[..., None, None] + gain[..., None] + np.zeros_like(chance)
    return probs.ravel(), total.ravel()


@pytest.mark.parametrize("seed", range(4))
def test_walks_of_the_optimum_are_tilted_by_their_return(seed):
    mdp, reward, base, _ = world(seed, deterministic=True)
    mdp = dataclasses.replace(mdp, start=np.eye(mdp.num_states)[0])
    tilted = imitation.kl_regularised(mdp, reward, steps=4, reference=base, beta=0.6)
    probs, total = all_walks(mdp, [base] * 4, reward)
    weight = probs * np.exp(total / 0.6)
    found, _ = all_walks(mdp, list(tilted.policies), reward)
    np.testing.assert_allclose(found, weight / weight.sum(), atol=1e-12)
    assert tilted.log_partition == pytest.approx(np.log(weight.sum()), rel=1e-10)
    assert tilted.values[0, 0] == pytest.approx(0.6 * tilted.log_partition, rel=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_no_policies_have_more_return_less_divergence(seed):
    mdp, reward, base, other = world(seed, discount=0.9)
    tilted = imitation.kl_regularised(mdp, reward, steps=3, reference=base, beta=0.6)

    def worth(policies):
        probs, total = all_walks(mdp, policies, reward)
        own, _ = all_walks(mdp, [base] * 3, reward)
        done = probs > 0
        return probs @ total - 0.6 * probs[done] @ np.log(probs[done] / own[done])

    best = worth(list(tilted.policies))
    assert best == pytest.approx(mdp.start @ tilted.values[0], rel=1e-9)
    mixed = [0.9 * policy + 0.1 * other for policy in tilted.policies]
    for policies in (mixed, [base] * 3, [other] * 3):
        assert worth(policies) < best
    # Transitions at random: the tilt would change them, which no policy can.
    probs, total = all_walks(mdp, [base] * 3, reward)
    partition = logsumexp(total / 0.6, b=probs)
    assert tilted.log_partition == pytest.approx(partition, rel=1e-10)
    assert 0.6 * partition > best


def test_settings_of_tilts():
    mdp, reward, _, _ = world(0)
    with raises_about(SettingError, "steps"):
        imitation.kl_regularised(mdp, reward, steps=0)
    with raises_about(SettingError, "beta"):
        imitation.kl_regularised(mdp, reward, steps=1, beta=0.0)
    with raises_about(DataError, "reference"):
        imitation.kl_regularised(mdp, reward, steps=1, reference=np.zeros(mdp.allowed.shape))

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
from raters.errors import ConvergenceWarning
from raters.imitation.entropy import maxent_objective
from tests.imitation.worlds import SETTINGS, discounted_worlds, features, seeds, soft, world


def unrolled(mdp, weights, target, rounds=400):
    """The log-likelihood by value iteration, for JAX to differentiate."""
    penalty = jnp.where(mdp.allowed, 0.0, -jnp.inf)
    transition, columns = jnp.asarray(mdp.transition), jnp.asarray(mdp.features)

    def back_up(values, _):
        gain = columns @ weights + mdp.discount * transition @ values
        return jax.nn.logsumexp(gain + penalty, axis=1), None

    values, _ = jax.lax.scan(back_up, jnp.zeros(mdp.num_states), length=rounds)
    return weights @ target - mdp.start @ values


def test_the_gradient_is_what_autodiff_gives():
    with jax.enable_x64(True):
        mdp, _, policy, _ = world(1, discount=0.9)
        weights = np.random.default_rng(1).normal(size=3)
        target = features(mdp, policy)
        found = maxent_objective(mdp, weights, target)
        value, gradient = jax.value_and_grad(unrolled, 1)(mdp, jnp.asarray(weights), target)
        assert found.value == pytest.approx(float(value), rel=1e-10)
        np.testing.assert_allclose(found.gradient, gradient, atol=1e-9)
        expected = target - features(mdp, soft(mdp, weights).policy)
        np.testing.assert_allclose(found.gradient, expected, atol=1e-8)


@SETTINGS
@given(discounted_worlds, seeds, st.floats(0.05, 0.95))
def test_it_is_the_concave_log_likelihood_of_the_demonstrator(given_world, seed, share):
    mdp, _, policy, _ = given_world
    visits, target = imitation.occupancy(mdp, policy), features(mdp, policy)
    ends = np.random.default_rng(seed).normal(scale=2.0, size=(2, 3))
    between = share * ends[0] + (1 - share) * ends[1]
    values = [maxent_objective(mdp, at, target).value for at in (*ends, between)]
    probs = soft(mdp, between).policy
    expected = (visits[mdp.allowed] * np.log(probs[mdp.allowed])).sum()
    assert values[2] == pytest.approx(expected, rel=1e-8)
    assert values[2] >= share * values[0] + (1 - share) * values[1] - 1e-8


@pytest.mark.parametrize("seed", range(2))
def test_features_match_at_the_optimum(seed):
    mdp, _, policy, _ = world(seed)
    target = features(mdp, policy)
    found = imitation.maxent_irl(mdp, imitation.occupancy(mdp, policy))
    near = 1e-4 * np.abs(target).max()
    np.testing.assert_allclose(features(mdp, found.policy), target, atol=near)
    plan = soft(mdp, found.weights)
    np.testing.assert_allclose(found.policy, plan.policy, atol=1e-9)
    # With the policy in proportion to Q, as printed, they do not match.
    gain = np.where(mdp.allowed, plan.action_values, 0)
    shifted = np.where(mdp.allowed, gain - gain.min() + 1e-3, 0)
    printed = features(mdp, shifted / shifted.sum(1, keepdims=True))
    assert np.abs(printed - target).max() > 1e-2 * np.abs(target).max()


STEPS = {"step": np.ones((3, 3)), "mud": np.eye(3)[::-1]}
ENDING = rt.MDP.grid(3, 3, ends=[(2, 2)], discount=1.0, start=(0, 0), features=STEPS)


@pytest.mark.parametrize(
    ("mdp", "weights"), [(ENDING, [-3.0, -1.0]), (world(3).mdp, [1.0, -0.5, 2.0])]
)
def test_the_reward_of_a_soft_demonstrator_is_found(mdp, weights):
    shown = imitation.occupancy(mdp, soft(mdp, weights).policy)
    found = imitation.maxent_irl(mdp, shown)
    np.testing.assert_allclose(found.weights, weights, atol=1e-4)
    shrunk = imitation.maxent_irl(mdp, shown, penalty=0.5)
    assert np.linalg.norm(shrunk.weights) < np.linalg.norm(found.weights)
    at = maxent_objective(mdp, shrunk.weights, np.tensordot(shown, mdp.features))
    np.testing.assert_allclose(at.gradient, 0.5 * shrunk.weights, atol=1e-4)


def test_a_constant_is_not_identified_and_stays_out():
    mdp = rt.MDP.grid(2, 2)  # an indicator of each cell
    shown = imitation.occupancy(mdp, soft(mdp, [5.0, 4.0, 5.0, 7.0]).policy)
    found = imitation.maxent_irl(mdp, shown)
    np.testing.assert_allclose(found.weights, [-0.25, -1.25, -0.25, 1.75], atol=1e-3)
    # Episodes that are cut lack a part of the constant, which changes nothing.
    assert np.abs(imitation.maxent_irl(mdp, 0.9 * shown).weights).max() < 10


def test_a_demonstrator_who_never_errs_needs_a_penalty():
    mdp = rt.MDP.grid(2, 2, start=(0, 0))
    best = imitation.optimal_policy(mdp, [0, 0, 0, 1]).policy
    shown = imitation.occupancy(mdp, best)
    with pytest.warns(ConvergenceWarning, match="grow without end"):
        imitation.maxent_irl(mdp, shown)
    assert imitation.maxent_irl(mdp, shown, penalty=0.01).weights.argmax() == 3
    with pytest.warns(ConvergenceWarning):
        imitation.maxent_irl(mdp, [100.0, 0, 0, 0])


# ---------------------------------------------------------------- walks weighed by their return


def all_walks(mdp, policies, reward):
    """Probability and return of each walk, by enumeration."""
    probs = np.asarray(mdp.start)
    total = np.zeros_like(probs)
    for step, policy in enumerate(policies):
        chance = policy[..., None] * mdp.transition
        probs = probs[..., None, None] * chance
        gain = mdp.discount**step * reward
        total = total[..., None, None] + gain[..., None] + np.zeros_like(chance)
    return probs.ravel(), total.ravel()


def test_walks_of_the_soft_optimum_are_tilted_by_their_return():
    """Equation 70 of Nalisnick (2024) where transitions are deterministic, with the product of the
    reference policy over a walk, which is printed as a sum."""
    mdp, reward, base, _ = world(0, deterministic=True)
    mdp = dataclasses.replace(mdp, start=np.eye(mdp.num_states)[0])
    values, policies = np.zeros(mdp.num_states), []
    for step in reversed(range(4)):
        logits = np.log(np.where(mdp.allowed, base, 1)) - np.where(mdp.allowed, 0, np.inf)
        logits += (mdp.discount**step * reward + mdp.transition @ values) / 0.6
        total = logsumexp(logits, 1)
        policies.insert(0, np.exp(logits - total[:, None]))
        values = 0.6 * total
    probs, total = all_walks(mdp, [base] * 4, reward)
    weight = probs * np.exp(total / 0.6)
    found, _ = all_walks(mdp, policies, reward)
    np.testing.assert_allclose(found, weight / weight.sum(), atol=1e-12)
    assert values[0] == pytest.approx(0.6 * np.log(weight.sum()), rel=1e-10)

"""Models of demonstrations: soft values and their derivatives, the identities of maximum entropy,
what is identified, and recovery."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import raters as rt
from raters.models.demonstrations import soft_policy
from raters.models.demonstrations.soft_policy import Dynamics, log_soft_policy, soft_values
from raters.program import pointwise_log_likelihood


def random_mdp(discount: float = 0.9, num_states: int = 6, seed: int = 0) -> rt.MDP:
    """Random transitions, some actions that are not allowed, and an end that is always near."""
    rng = np.random.default_rng(seed)
    transition = 0.8 * rng.dirichlet(np.full(num_states, 0.3), (num_states, 3))
    transition[..., -1] += 0.2
    transition[-1] = np.eye(num_states)[-1]
    allowed = rng.random((num_states, 3)) < 0.7
    allowed[:, 0] = True
    allowed[-1] = [True, False, False]
    features = rng.normal(size=(num_states, 3, 4))
    features[-1] = 0
    return rt.MDP.from_arrays(
        transition,
        features=features,
        allowed=allowed,
        discount=discount,
        start=np.eye(num_states)[0],
    )


def demonstrated(mdp: rt.MDP, policy: np.ndarray, weight: np.ndarray) -> rt.Demonstrations:
    """Each allowed action in each state, as often as `weight` says."""
    state, action = np.nonzero(mdp.allowed)
    table = {"state": [mdp.states[code] for code in state]}
    table["action"] = [mdp.actions[code] for code in action]
    data = rt.Demonstrations.from_frame(table, mdp=mdp, state="state", action="action")
    return dataclasses.replace(data, count=(weight[:, None] * policy)[state, action])


def policy_of(mdp: rt.MDP, reward: Any) -> np.ndarray:
    return np.exp(np.asarray(log_soft_policy(jnp.asarray(reward), Dynamics.of(mdp))))


def occupancy(mdp: rt.MDP, policy: np.ndarray) -> np.ndarray:
    """Discounted sum of the probabilities of each state, which is finite with a discount of 1
    except in the end."""
    moves = np.einsum("sa,sat->st", policy, mdp.transition)
    moves[mdp.ends] = 0
    return np.linalg.solve(np.eye(len(moves)) - mdp.discount * moves.T, mdp.start)


# ---------------------------------------------------------------- soft values


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_values_and_slopes_are_those_of_unrolled_iteration(discount: float) -> None:
    with jax.enable_x64(True):
        mdp = random_mdp(discount)
        dynamics = Dynamics.of(mdp)
        theta = jnp.array([0.4, -0.3, 0.2, 0.1])

        def implicit(theta):
            return soft_values(mdp.features @ theta, dynamics)

        def unrolled(theta):
            def step(values, _):
                each = mdp.features @ theta + dynamics.bonus + dynamics.transition @ values
                return jax.nn.logsumexp(each, -1), None

            return jax.lax.scan(step, jnp.zeros(6), None, length=600)[0]

        for of in (lambda f: f, jax.jacrev, jax.jacfwd):
            np.testing.assert_allclose(of(implicit)(theta), of(unrolled)(theta), atol=1e-12)
        curvature = jax.hessian(lambda theta: implicit(theta)[0])(theta)
        expected = jax.hessian(lambda theta: unrolled(theta)[0])(theta)
        np.testing.assert_allclose(curvature, expected, atol=1e-10)


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_values_in_single_precision(discount: float) -> None:
    mdp, theta = random_mdp(discount), np.array([0.4, -0.3, 0.2, 0.1])

    def slope():
        def values(theta):
            return soft_values(jnp.asarray(mdp.features, float) @ theta, Dynamics.of(mdp))

        return np.asarray(values(jnp.asarray(theta))), np.asarray(jax.jacrev(values)(theta))

    single = slope()
    with jax.enable_x64(True):
        double = slope()
    assert single[0].dtype == np.float32
    for one, other in zip(single, double, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)


def test_a_rationality_of_zero_acts_at_random() -> None:
    with jax.enable_x64(True):
        mdp = random_mdp()
        even = mdp.allowed / mdp.allowed.sum(1, keepdims=True)
        np.testing.assert_allclose(policy_of(mdp, np.zeros((6, 3))), even, atol=1e-12)


def test_a_reward_for_walking_on_has_no_values_without_a_discount() -> None:
    mdp = rt.MDP.grid(2, 2, ends=[(1, 1)], discount=1.0, slip=0.0)
    assert np.isfinite(soft_values(jnp.zeros((5, 4)), Dynamics.of(mdp))).all()
    pay = jnp.where(jnp.asarray(mdp.ends)[:, None], 0.0, 3.0) * jnp.ones((5, 4))
    assert np.isnan(soft_values(pay, Dynamics.of(mdp))).all()


# ---------------------------------------------------------------- maximum entropy


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_the_slope_is_the_gap_between_expected_features(discount: float) -> None:
    r"""With steps in their discounted frequencies under an expert, the gradient of the
    log-likelihood is :math:`\mu_E - E_\pi[\mu]` (001-35), and 0 where the expert's policy is that
    of the reward."""
    model = rt.MaxEntIRL()
    with jax.enable_x64(True):
        mdp = random_mdp(discount)
        rng = np.random.default_rng(1)
        theta, goal = rng.normal(size=(2, 4))
        expert = policy_of(mdp, mdp.reward(goal))
        data = demonstrated(mdp, expert, occupancy(mdp, expert))

        def slope(theta):
            def total(theta):
                values = {"coefficient": theta, "rationality": jnp.ones(1)}
                return pointwise_log_likelihood(model, data, values).sum()

            return np.asarray(jax.grad(total)(jnp.asarray(theta)))

        def expected_features(policy):
            visits = occupancy(mdp, policy)[:, None] * policy
            return np.einsum("sa,saf->f", visits, mdp.features)

        policy = policy_of(mdp, mdp.reward(theta))
        gap = expected_features(expert) - expected_features(policy)
        np.testing.assert_allclose(slope(theta), gap, atol=1e-10)
        assert np.abs(gap).max() > 0.1
        np.testing.assert_allclose(slope(goal), 0, atol=1e-10)


# ---------------------------------------------------------------- identification


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_directions_that_change_no_policy(discount: float) -> None:
    with jax.enable_x64(True):
        mdp, rng = random_mdp(discount), np.random.default_rng(0)
        assert len(soft_policy.unidentified(mdp)) == 0
        potential = rng.normal(size=6) * ~mdp.ends
        shaped = potential[:, None] - discount * mdp.transition @ potential
        # A combination of the features is a shaping of the reward.
        features = np.concatenate([mdp.features, shaped[..., None] + mdp.features[..., :1]], -1)
        mdp = dataclasses.replace(mdp, features=features, feature_names=tuple(range(5)))
        directions = soft_policy.unidentified(mdp)
        assert directions.shape == (1, 5)
        theta = rng.normal(size=5)
        policy = policy_of(mdp, mdp.reward(theta))
        moved = policy_of(mdp, mdp.reward(theta + 3 * directions[0]))
        np.testing.assert_allclose(moved, policy, atol=1e-10)
        shortest = soft_policy.without_unidentified(theta, mdp)
        np.testing.assert_allclose(policy_of(mdp, mdp.reward(shortest)), policy, atol=1e-10)
        assert np.abs(policy_of(mdp, mdp.reward(theta + np.eye(5)[1])) - policy).max() > 0.01


# ---------------------------------------------------------------- recovery


def test_cloning_finds_the_policy_and_who_follows_it() -> None:
    """Two states, one careless of four demonstrators: the mode within .1 of the truth, 5 standard
    deviations of 600 steps in each."""
    mdp = rt.MDP.from_arrays(np.full((2, 4, 2), 0.5), discount=0.9)
    policy = np.array([0.7, 0.3, 0.0, 0.0])
    each = [policy, policy, policy, np.full(4, 0.25)]
    data = rt.Demonstrations.rollouts(
        mdp, np.repeat(np.array(each)[:, None], 2, 1), trajectories=1, steps=400, seed=0
    )
    result = rt.fit(rt.models.BehaviouralCloning(), data, rt.PGEM(draws=0), seed=0, progress=False)
    mode = result["mode"]
    np.testing.assert_allclose(mode["policy"].values, [policy, policy], atol=0.1)
    assert mode["competence"].values[:3].min() > 0.85
    assert mode["competence"].values[3] < 0.15


def test_cloning_among_the_actions_of_a_state() -> None:
    """Where a state has some of the actions, the probability is that among them."""
    model = rt.models.BehaviouralCloning()
    with jax.enable_x64(True):
        mdp = random_mdp()
        data = demonstrated(mdp, 1.0 * mdp.allowed, np.ones(6))
        policy = np.random.default_rng(0).dirichlet(np.ones(3), 6)
        values = {"competence": jnp.array([0.8]), "policy": jnp.asarray(policy)}
        found = np.exp(np.asarray(pointwise_log_likelihood(model, data, values)))
        among = policy * mdp.allowed
        among = among / among.sum(1, keepdims=True)
        expected = 0.8 * among + 0.2 * mdp.allowed / mdp.allowed.sum(1, keepdims=True)
        np.testing.assert_allclose(found, expected[mdp.allowed], atol=1e-12)

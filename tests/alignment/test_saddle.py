"""One policy for all types: the linear programmes, the policy gradient, and posterior draws."""

from __future__ import annotations

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from scipy.optimize import minimize
from scipy.special import softmax

from raters.alignment import (
    linear_programme,
    minmax_policy,
    policy,
    policy_gradient,
    regrets,
    type_rewards,
)

RNG = np.random.default_rng(7)
REWARD = RNG.normal(size=(3, 4, 3))
DRAWS = REWARD + 0.7 * RNG.normal(size=(60, *REWARD.shape))


# ---------------------------------------------------------------- all policies, exactly


def test_the_least_of_all_policies_is_that_of_a_table_of_all_deterministic_ones():
    """Every policy is a mixture of those that give each prompt one response: a matrix for
    `linear_programme`, with a column for each."""
    answers = itertools.product(range(3), repeat=4)
    columns = [regrets(np.eye(3)[list(answer)], REWARD) for answer in answers]
    fair, table = minmax_policy(REWARD), linear_programme(np.array(columns).T)
    assert fair.value == pytest.approx(table.value, abs=1e-9)
    assert fair.value == pytest.approx(regrets(fair.policy, REWARD).max(), abs=1e-12)
    assert fair.gap < 1e-12


def test_one_prompt_is_the_linear_programme_of_its_regrets():
    for reward in RNG.normal(size=(20, 4, 5)):
        fair, table = minmax_policy(reward), linear_programme(reward.max(1, keepdims=True) - reward)
        assert fair.value == pytest.approx(table.value, abs=1e-9)
        assert fair.policy.shape == (5,)


def test_a_response_that_is_awful_for_one_type_is_not_given():
    """At all sizes of rewards."""
    fair = minmax_policy([[0, 0, -1e9], [1, 0, 0], [0, 1, 0]])
    np.testing.assert_allclose(fair.policy, [0.5, 0.5, 0], atol=1e-8)
    assert fair.value == pytest.approx(0.5, rel=1e-6)
    for trial in range(40):
        rng = np.random.default_rng(trial)
        reward = rng.normal(size=(3, 4, 3)) * 10 ** rng.uniform(-5, 5, (3, 4, 3))
        found = minmax_policy(reward)
        assert found.gap <= 1e-5 * abs(found.value)


# ---------------------------------------------------------------- policy gradient


def test_features_that_name_the_cells_are_free_policies():
    """Indicators of prompt and response, half of them turned and all on other scales: the natural
    gradient does not see it."""
    turn = np.linalg.qr(RNG.normal(size=(12, 12)))[0] * 10.0 ** RNG.uniform(-1, 1, 12)
    features = (np.eye(12) @ turn).reshape(4, 3, 12)
    for reward in (REWARD, DRAWS):
        found = policy_gradient(reward, features=features, steps=1500)
        least = minmax_policy(reward).value
        assert found.value == pytest.approx(least, abs=2e-2)
        assert found.value - found.gap <= least + 1e-9
        served = policy(features @ found.parameters)
        np.testing.assert_allclose(served, found.policy, atol=1e-9)
        np.testing.assert_allclose(found.history.min(0), [found.value, found.gap], atol=1e-9)


def test_the_units_of_features_change_nothing():
    """Nor what all responses to a prompt share."""
    rng = np.random.default_rng(0)
    features = rng.uniform(size=(40, 4, 2))
    reward = np.einsum("xyf,zf->zxy", features, [[-4, 1], [-1, 4]])
    one = policy_gradient(reward, features=features, steps=300)
    for unit, shared in ((1e4, 0.0), (1e-4, 0.0), (1e12, 0.0), (1.0, 1e4)):
        table = features * [unit, 1] + [shared, 0]
        found = policy_gradient(reward, features=table, steps=300)
        assert found.value == pytest.approx(one.value, rel=1e-6)
        np.testing.assert_allclose(found.parameters * [unit, 1], one.parameters, rtol=1e-5)
        np.testing.assert_allclose(policy(table @ found.parameters), found.policy, atol=1e-7)
    constant = np.concatenate([features, np.full((40, 4, 1), 0.1)], -1)
    found = policy_gradient(reward, features=constant, steps=300)
    assert found.value == pytest.approx(one.value, rel=1e-3)
    assert found.parameters[2] == pytest.approx(0.0)


def test_the_best_of_a_class_by_another_method():
    """Policies of two features on 30 prompts, in which nobody is served perfectly; Nelder–Mead from
    the end finds nothing better, nor from 5 other starts."""
    rng = np.random.default_rng(3)
    features = rng.normal(size=(30, 3, 2))
    reward = np.einsum("xyf,zf->zxy", features, rng.normal(size=(2, 2)))
    reward += rng.normal(size=(2, 30, 3))
    found = policy_gradient(reward, features=features, steps=2000)

    def of_parameters(parameters):
        return regrets(softmax(features @ parameters, -1), reward).max()

    assert of_parameters(found.parameters) == pytest.approx(found.value, rel=1e-9)
    starts = [found.parameters, *rng.normal(size=(5, 2))]
    options = {"xatol": 1e-6, "fatol": 1e-9, "maxiter": 2000}
    others = [minimize(of_parameters, one, method="Nelder-Mead", options=options) for one in starts]
    assert found.value < min(other.fun for other in others) + 2e-3
    free = minmax_policy(reward)
    assert found.value > free.value + 0.05
    assert found.gap >= found.value - free.value - 1e-9


def test_a_class_of_ones_own():
    """A network of one hidden layer, which has all policies of these few prompts."""
    rng = np.random.default_rng(1)
    prompts = rng.normal(size=(4, 2))

    def logits(weights):
        return jnp.tanh(prompts @ weights["in"] + weights["bias"]) @ weights["out"]

    start = {
        "in": rng.normal(size=(2, 12)),
        "bias": rng.normal(size=12),
        "out": 0.1 * rng.normal(size=(12, 3)),
    }
    found = policy_gradient(REWARD, logits=logits, start=start, steps=1500)
    assert found.value == pytest.approx(minmax_policy(REWARD).value, abs=0.02)
    assert found.parameters["in"].shape == (2, 12)
    np.testing.assert_allclose(softmax(logits(found.parameters), -1), found.policy, atol=1e-4)


# ---------------------------------------------------------------- draws


def test_regrets_of_draws_are_those_of_each():
    probs = RNG.dirichlet(np.ones(3), size=4)
    each = [regrets(probs, reward) for reward in DRAWS]
    np.testing.assert_allclose(regrets(probs, DRAWS), each, atol=1e-12)
    one = [regrets(probs[0], reward) for reward in DRAWS[:, :, 0]]
    np.testing.assert_allclose(regrets(probs[0], DRAWS[:, :, 0]), one, atol=1e-12)


def test_no_policy_has_a_smaller_expected_worst_regret():
    found = minmax_policy(DRAWS)
    expected = regrets(found.policy, DRAWS).max(1).mean()
    assert found.value == pytest.approx(expected, rel=1e-9)
    assert found.gap < 1e-9
    assert found.type_weights.shape == (60, 3)
    rng = np.random.default_rng(0)
    noise = rng.dirichlet(np.full(3, 0.5), size=(200, 4))
    others = [*(0.9 * found.policy + 0.1 * noise), minmax_policy(DRAWS.mean(0)).policy]
    assert all(regrets(other, DRAWS).max(1).mean() > found.value for other in others)
    # The least worst expected regret is smaller, and of another policy.
    assert regrets(found.policy, DRAWS).mean(0).max() < found.value
    # The numbers of the types mean nothing.
    turned = minmax_policy(np.stack([draw[rng.permutation(3)] for draw in DRAWS]))
    assert turned.value == pytest.approx(found.value, rel=1e-9)
    np.testing.assert_allclose(turned.policy, found.policy, atol=1e-6)


# ---------------------------------------------------------------- rewards of results


def fitted(**sites: tuple) -> xr.DataTree:
    """A result with these sites."""
    return xr.DataTree.from_dict({"posterior": xr.Dataset(sites)})


@pytest.mark.parametrize("site", ["reward", "worth"])
def test_rewards_of_results(site):
    reward = RNG.normal(size=(2, 15, 3, 2))
    result = fitted(**{site: (("chain", "draw", "item", "type"), reward)})
    found = type_rewards(result)
    assert found.dims == ("draw", "type", "response")
    centred = reward - reward.mean(2, keepdims=True)
    np.testing.assert_allclose(found, centred.reshape(30, 3, 2).transpose(0, 2, 1))
    few = type_rewards(result, draws=5, seed=1)
    assert few.shape == (5, 2, 3)
    assert all((draw == found.values).all((1, 2)).any() for draw in few.values)
    alone = fitted(**{site: (("chain", "draw", "item"), reward[..., 0])})
    np.testing.assert_allclose(type_rewards(alone), found[:, :1])


def test_draws_of_rewards_are_read_by_the_names_of_their_axes():
    """(draw, type, response) has as many axes as (type, prompt, response)."""
    reward = RNG.normal(size=(1, 30, 3, 2))
    names = {"item": ["tea", "milk", "rum"]}
    sites = xr.Dataset({"reward": (("chain", "draw", "item", "type"), reward)}, names)
    draws = type_rewards(xr.DataTree.from_dict({"posterior": sites}))
    assert list(draws["response"].values) == names["item"]
    exact = minmax_policy(draws)
    assert exact.policy.shape == (3,)
    assert exact.type_weights.shape == (30, 2)
    assert exact.value == pytest.approx(minmax_policy(draws.values[:, :, None]).value)
    assert minmax_policy(draws.mean("draw")).type_weights.shape == (2,)


def test_rewards_of_features():
    coefficient, features = RNG.normal(size=(1, 20, 4, 2)), RNG.normal(size=(5, 3, 4))
    result = fitted(coefficient=(("chain", "draw", "feature", "type"), coefficient))
    reward = np.einsum("xyf,sfk->skxy", features, coefficient[0])
    found = type_rewards(result, features)
    assert found.dims == ("draw", "type", "prompt", "response")
    np.testing.assert_allclose(found, reward - reward.mean(-1, keepdims=True), atol=1e-12)
    np.testing.assert_allclose(policy(found), policy(reward))

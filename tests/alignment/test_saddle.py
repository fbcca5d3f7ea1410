"""One policy for all types: the linear programmes, the policy gradient, and posterior draws."""

from __future__ import annotations

import itertools
import re

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from scipy.optimize import minimize
from scipy.special import softmax

from raters.alignment import (
    bayes_policy,
    ensemble,
    hedge,
    linear_programme,
    minmax_policy,
    policy,
    policy_gradient,
    regret_draws,
    regret_matrix,
    regrets,
    type_rewards,
)
from raters.errors import ConvergenceWarning, DataError, SettingError
from tests.refusals import raises_about

RNG = np.random.default_rng(7)
REWARD = RNG.normal(size=(3, 4, 3))
OFTEN = RNG.dirichlet(np.ones(4))
DRAWS = REWARD + 0.7 * RNG.normal(size=(60, *REWARD.shape))


def worst(probs: np.ndarray, reward: np.ndarray = REWARD, often: np.ndarray = OFTEN) -> float:
    return float(regrets(probs, reward, often).max())


# ---------------------------------------------------------------- all policies, exactly


def test_the_least_of_all_policies_is_that_of_a_table_of_all_deterministic_ones():
    """Every policy is a mixture of those that give each prompt one response: a matrix for
    `linear_programme`, with a column for each."""
    answers = itertools.product(range(3), repeat=4)
    columns = [regrets(np.eye(3)[list(answer)], REWARD, OFTEN) for answer in answers]
    fair, table = minmax_policy(REWARD, None, OFTEN), linear_programme(np.array(columns).T)
    assert fair.value == pytest.approx(table.value, abs=1e-9)
    assert fair.value == pytest.approx(worst(fair.policy), abs=1e-12)
    assert fair.gap < 1e-12
    assert fair.history is None


def test_one_prompt_is_the_linear_programme_of_its_regrets():
    for reward in RNG.normal(size=(20, 4, 5)):
        fair, table = minmax_policy(reward), linear_programme(reward.max(1, keepdims=True) - reward)
        assert fair.value == pytest.approx(table.value, abs=1e-9)
        assert fair.policy.shape == (5,)


def test_by_hand_with_the_sign_of_a_regret():
    """Two who each love one response, and one that both like. With the paper's sign the policy
    would be the worst one, of regret 4."""
    fair = minmax_policy([[4, 0, 3], [0, 4, 3]])
    np.testing.assert_allclose(fair.policy, [0, 0, 1], atol=1e-9)
    assert fair.value == pytest.approx(1)


def test_an_ensemble_is_never_better_and_types_may_compare_with_their_own():
    """Rewards from policies alone, as in the paper; against their own policies the least worst
    regret of an ensemble is that of its linear programme."""
    for reward in 2 * RNG.normal(size=(10, 3, 4, 3)):
        own = policy(reward)
        mixed = linear_programme(regret_matrix(own, prompt_weights=OFTEN)[1:])
        free = minmax_policy(np.log(own), own, OFTEN)
        assert free.value < mixed.value + 1e-9
        of_mixture = regret_draws(ensemble(own, mixed.weights), np.log(own)[None], OFTEN, own)
        assert of_mixture.max() == pytest.approx(mixed.value, abs=1e-9)


def test_a_response_that_is_awful_for_one_type_is_not_given():
    """At all sizes of rewards, against the best responses and against policies of the types."""
    fair = minmax_policy([[0, 0, -1e9], [1, 0, 0], [0, 1, 0]])
    np.testing.assert_allclose(fair.policy, [0.5, 0.5, 0], atol=1e-8)
    assert fair.value == pytest.approx(0.5, rel=1e-6)
    assert fair.gap < 1e-6
    for trial in range(40):
        rng = np.random.default_rng(trial)
        reward = rng.normal(size=(3, 4, 3)) * 10 ** rng.uniform(-5, 5, (3, 4, 3))
        own = rng.dirichlet(np.ones(3), (3, 4)) if trial % 2 else None
        found = minmax_policy(reward, own, OFTEN)
        assert found.gap <= 1e-5 * abs(found.value)


# ---------------------------------------------------------------- policy gradient


@pytest.mark.filterwarnings("ignore:the worst regret:raters.errors.ConvergenceWarning")
@pytest.mark.parametrize("steps", [30, 300, 3000])
def test_the_gradient_nears_the_linear_programme_as_one_over_steps(steps):
    """In units of the largest regret, at every scale of rewards; the gap bounds the distance."""
    for trial in range(8):
        rng = np.random.default_rng([steps, trial])
        types, prompts, responses = rng.integers(2, 6, size=3)
        reward = rng.normal(size=(types, prompts, responses)) * 10.0 ** rng.uniform(-6, 6)
        often = rng.dirichlet(np.ones(prompts))
        scale = np.ptp(reward, -1).max()
        found = policy_gradient(reward, None, often, steps=steps)
        distance = (found.value - minmax_policy(reward, None, often).value) / scale
        assert -1e-9 < distance <= found.gap / scale + 1e-9
        assert found.gap / scale < (2 * np.log(types * responses) + 1) / steps
        assert found.value == pytest.approx(worst(found.policy, reward, often), rel=1e-9)
        np.testing.assert_allclose(found.history[-1], [found.value, found.gap], atol=1e-9 * scale)
        assert steps < 3000 or distance < 2e-3


@pytest.mark.filterwarnings("ignore:the worst regret:raters.errors.ConvergenceWarning")
def test_for_one_prompt_it_is_optimistic_hedge():
    for reward in 100 * RNG.normal(size=(5, 3, 4)):
        found = policy_gradient(reward, steps=40)
        path = hedge(reward.max(1, keepdims=True) - reward, steps=40)
        np.testing.assert_allclose(found.policy, path.weights, rtol=1e-9)
        np.testing.assert_allclose(found.history[-1], [path.value, path.gap], rtol=1e-9)


def test_a_gap_is_warned_of():
    with pytest.warns(ConvergenceWarning, match="take more steps, or use minmax_policy"):
        policy_gradient(REWARD, steps=5)


def test_features_that_name_the_cells_are_free_policies():
    """Indicators of prompt and response, half of them turned and all on other scales: the natural
    gradient does not see it."""
    turn = np.linalg.qr(RNG.normal(size=(12, 12)))[0] * 10.0 ** RNG.uniform(-1, 1, 12)
    features = (np.eye(12) @ turn).reshape(4, 3, 12)
    found = policy_gradient(REWARD, None, OFTEN, features=features, steps=3000)
    assert found.value == pytest.approx(minmax_policy(REWARD, None, OFTEN).value, abs=2e-3)
    served = policy(features @ found.parameters)
    np.testing.assert_allclose(served, found.policy, atol=1e-9)


def test_the_units_of_features_change_nothing():
    """Nor what all responses to a prompt share; parameters are in the units of the features, the
    first ones too."""
    rng = np.random.default_rng(0)
    features = rng.uniform(size=(40, 4, 2))
    reward = np.einsum("xyf,zf->zxy", features, [[-4, 1], [-1, 4]])
    one = policy_gradient(reward, features=features, start=[-2.0, 1.0], steps=300)
    for unit, shared in ((1e4, 0.0), (1e-4, 0.0), (1e12, 0.0), (1.0, 1e4)):
        table, start = features * [unit, 1] + [shared, 0], [-2 / unit, 1.0]
        first = policy_gradient(reward, features=table, start=start, steps=1)
        np.testing.assert_allclose(first.parameters, start, rtol=1e-12)
        found = policy_gradient(reward, features=table, start=start, steps=300)
        assert found.value == pytest.approx(one.value, rel=1e-6)
        np.testing.assert_allclose(found.parameters * [unit, 1], one.parameters, rtol=1e-5)
        np.testing.assert_allclose(policy(table @ found.parameters), found.policy, atol=1e-7)
    constant = np.concatenate([features, np.full((40, 4, 1), 0.1)], -1)
    found = policy_gradient(reward, features=constant, start=[-2.0, 1.0, 3.0], steps=300)
    assert found.value == pytest.approx(one.value, rel=1e-3)
    assert found.parameters[2] == pytest.approx(3.0)


def test_the_best_of_a_class_by_another_method():
    """Policies of two features on 30 prompts, in which nobody is served perfectly; Nelder–Mead from
    the end finds nothing better, nor from 5 other starts."""
    rng = np.random.default_rng(3)
    features, often = rng.normal(size=(30, 3, 2)), np.full(30, 1 / 30)
    reward = np.einsum("xyf,zf->zxy", features, rng.normal(size=(2, 2)))
    reward += rng.normal(size=(2, 30, 3))
    found = policy_gradient(reward, features=features, steps=2000)

    def of_parameters(parameters):
        return worst(softmax(features @ parameters, -1), reward, often)

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
    found = policy_gradient(REWARD, None, OFTEN, logits=logits, start=start, steps=1500)
    assert found.value == pytest.approx(minmax_policy(REWARD, None, OFTEN).value, abs=0.02)
    assert found.parameters["in"].shape == (2, 12)
    np.testing.assert_allclose(softmax(logits(found.parameters), -1), found.policy, atol=1e-4)


# ---------------------------------------------------------------- draws


def test_regrets_of_draws_are_those_of_each():
    probs = RNG.dirichlet(np.ones(3), size=4)
    each = [regrets(probs, reward, OFTEN) for reward in DRAWS]
    np.testing.assert_allclose(regret_draws(probs, DRAWS, OFTEN), each, atol=1e-12)
    one = [regrets(probs[0], reward) for reward in DRAWS[:, :, 0]]
    np.testing.assert_allclose(regret_draws(probs[0], DRAWS[:, :, 0]), one, atol=1e-12)
    all_alike = regret_draws(probs[0], DRAWS, OFTEN)
    np.testing.assert_allclose(all_alike, regret_draws(np.tile(probs[0], (4, 1)), DRAWS, OFTEN))


def test_no_policy_has_a_smaller_expected_worst_regret():
    found = bayes_policy(DRAWS, None, OFTEN)
    expected = regret_draws(found.policy, DRAWS, OFTEN).max(1).mean()
    assert found.value == pytest.approx(expected, rel=1e-9)
    assert found.gap < 1e-9
    assert found.type_weights.shape == (60, 3)
    rng = np.random.default_rng(0)
    others = [
        0.9 * found.policy + 0.1 * rng.dirichlet(np.full(3, 0.5), size=4) for _ in range(200)
    ] + [minmax_policy(DRAWS.mean(0), None, OFTEN).policy]
    assert all(regret_draws(one, DRAWS, OFTEN).max(1).mean() > found.value for one in others)
    # The least worst expected regret is smaller, and of another policy.
    assert regret_draws(found.policy, DRAWS, OFTEN).mean(0).max() < found.value


def test_the_numbers_of_the_types_mean_nothing():
    rng = np.random.default_rng(0)
    turned = np.stack([draw[rng.permutation(3)] for draw in DRAWS])
    one, other = bayes_policy(DRAWS), bayes_policy(turned)
    assert one.value == pytest.approx(other.value, rel=1e-9)
    np.testing.assert_allclose(one.policy, other.policy, atol=1e-6)


def test_one_draw_is_the_point():
    one, point = bayes_policy(REWARD[None], None, OFTEN), minmax_policy(REWARD, None, OFTEN)
    assert one.value == pytest.approx(point.value, rel=1e-9)
    np.testing.assert_allclose(one.policy, point.policy, atol=1e-9)


def test_the_gradient_takes_draws():
    found = policy_gradient(DRAWS, None, OFTEN, steps=1500)
    assert found.value == pytest.approx(bayes_policy(DRAWS, None, OFTEN).value, abs=0.02)
    assert found.type_weights.shape == (60, 3)


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
    near, exact = policy_gradient(draws), bayes_policy(draws)
    assert near.policy.shape == (3,)
    assert near.type_weights.shape == (30, 2)
    assert exact.value <= near.value <= exact.value + near.gap + 1e-9
    with pytest.raises(DataError, match=r"reward.*has an axis of draws.*bayes_policy\(reward\)"):
        minmax_policy(draws)
    assert minmax_policy(draws.mean("draw")).policy.shape == (3,)


def test_rewards_of_features():
    coefficient, features = RNG.normal(size=(1, 20, 4, 2)), RNG.normal(size=(5, 3, 4))
    result = fitted(coefficient=(("chain", "draw", "feature", "type"), coefficient))
    reward = np.einsum("xyf,sfk->skxy", features, coefficient[0])
    found = type_rewards(result, features)
    assert found.dims == ("draw", "type", "prompt", "response")
    np.testing.assert_allclose(found, reward - reward.mean(-1, keepdims=True), atol=1e-12)
    np.testing.assert_allclose(policy(found), policy(reward))


# ---------------------------------------------------------------- what is refused

HALF = np.full((2, 3), 0.5)
FEATURES = np.zeros((4, 3, 2))
OF_ITEMS = fitted(reward=(("chain", "draw", "item"), np.zeros((1, 2, 3))))
OF_FEATURES = fitted(coefficient=(("chain", "draw", "feature"), np.zeros((1, 2, 3))))
HUGE = [[1e308, -1e308], [-1e308, 1e308]]
FAILED = fitted(reward=(("chain", "draw", "item"), np.full((1, 2, 3), np.nan)))


@pytest.mark.parametrize(
    ("call", "about"),
    [
        (lambda: minmax_policy([1.0, 2.0]), "reward"),
        (lambda: minmax_policy(DRAWS), "reward"),
        (lambda: minmax_policy([[np.nan, 1.0]]), "reward"),
        (lambda: minmax_policy(REWARD, HALF), "own"),
        (lambda: minmax_policy(REWARD, np.full((2, 4, 3), 1 / 3)), "own"),
        (lambda: minmax_policy(REWARD, None, [1.0, -1.0, 1.0, 1.0]), "prompt_weights"),
        (lambda: minmax_policy(REWARD, None, [1.0]), "prompt_weights"),
        (lambda: bayes_policy([[1.0, 2.0]]), "reward_draws"),
        (lambda: regret_draws(HALF, DRAWS), "policy"),
        (lambda: regret_draws(np.full((4, 2), 0.5), DRAWS), "policy"),
        (lambda: policy_gradient([1.0, 2.0]), "reward"),
        (lambda: policy_gradient(REWARD, features=FEATURES[:, :2]), "features"),
        (lambda: policy_gradient(REWARD, features=FEATURES, start=[1.0]), "start"),
        (lambda: policy_gradient(REWARD, logits=lambda one: one[:2], start=HALF), "logits"),
        (lambda: type_rewards(fitted(ability=(("chain", "draw"), np.zeros((1, 2))))), "result"),
        (lambda: type_rewards(FAILED), "result"),
        (lambda: type_rewards(None), "result"),
        (lambda: minmax_policy(HUGE), "reward"),
        (lambda: bayes_policy([HUGE]), "reward_draws"),
        (lambda: policy_gradient(HUGE), "reward"),
        (lambda: regrets([0.5, 0.5], HUGE), "reward"),
        (lambda: type_rewards(OF_ITEMS, FEATURES), "features"),
        (lambda: type_rewards(OF_FEATURES), "features"),
        (lambda: type_rewards(OF_FEATURES, FEATURES), "features"),
    ],
)
def test_bad_arrays(call, about):
    with raises_about(DataError, about):
        call()


@pytest.mark.parametrize(
    ("given", "about"),
    [
        ({"steps": 0}, "steps"),
        ({"steps": 1.5}, "steps"),
        ({"step_size": 0.0}, "step_size"),
        ({"step_size": np.nan}, "step_size"),
        ({"features": FEATURES, "logits": lambda one: one}, "logits"),
        ({"logits": lambda one: one}, "logits"),
        ({"logits": "linear", "start": HALF}, "logits"),
        ({"start": HALF}, "start"),
    ],
)
def test_bad_settings(given, about):
    with raises_about(SettingError, about):
        policy_gradient(REWARD, **given)


TWO = np.eye(2)


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (minmax_policy, {"reward": TWO, "own": np.full(2, 0.5)}),
        (minmax_policy, {"reward": REWARD, "own": np.full((4, 3), 1 / 3)}),
        (minmax_policy, {"reward": REWARD, "own": np.full(3, 1 / 3)}),
        (minmax_policy, {"reward": TWO, "own": "a"}),
        (minmax_policy, {"reward": [1.0, 2.0]}),
        (minmax_policy, {"reward": np.zeros((0, 3))}),
        (minmax_policy, {"reward": HUGE}),
        (minmax_policy, {"reward": REWARD, "prompt_weights": "a"}),
        (minmax_policy, {"reward": REWARD, "prompt_weights": []}),
        (bayes_policy, {"reward_draws": TWO}),
        (bayes_policy, {"reward_draws": np.zeros((0, 2, 3))}),
        (regret_draws, {"policy": "a", "reward_draws": DRAWS}),
        (regrets, {"policy": [], "reward": TWO}),
        (ensemble, {"policies": TWO, "weights": ["a", "b"]}),
        (regret_matrix, {"policies": [0.5, 0.5]}),
        (regret_matrix, {"policies": np.full((2, 4, 3), 1 / 3), "reference": "a"}),
        (policy_gradient, {"reward": TWO, "features": []}),
        (policy_gradient, {"reward": REWARD, "features": "a"}),
        (policy_gradient, {"reward": REWARD, "features": FEATURES, "start": "a"}),
        (type_rewards, {"result": OF_FEATURES, "features": []}),
    ],
)
def test_the_line_that_a_refusal_proposes_is_accepted(function, given):
    with pytest.raises(DataError, match=r": write \w+=") as caught:
        function(**given)
    proposed = re.search(r": write (\w+)=(.+?)( for one \w+)?$", str(caught.value))
    line = eval(proposed[2], {"np": np}, given)
    function(**given | {proposed[1]: line})

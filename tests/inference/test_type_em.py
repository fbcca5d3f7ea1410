"""EM of the models of types: the objective never falls, the end is an optimum, and several starts
are told apart."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_expit, logsumexp, softmax

import raters as rt
from tests.inference.test_label_em import mode, optimum

pytestmark = pytest.mark.slow

_MODELS = (
    rt.MixtureBTL(),
    rt.MixtureBTL(num_types=3, reward_scale=1.0),
    rt.MixtureBTL(num_types=3, concentration=0.1, reward_scale=1.0),
    rt.models.ContextualBTL(num_types=2, coefficient_scale=1.0),
)
_EM = {
    "accelerated": rt.PGEM(draws=0, starts=3),
    "plain": rt.PGEM(draws=0, starts=3, accelerate=False),
}


@pytest.mark.parametrize("variant", _EM)
@pytest.mark.parametrize("model", _MODELS, ids=repr)
def test_objective_never_falls_and_ends_at_an_optimum(
    model, variant, described, fit_quietly
) -> None:
    result = fit_quietly(model, described, _EM[variant])
    trace = result["optimisation"]["log_joint"].values
    assert np.diff(trace).min() > -1e-9 * (1 + np.abs(trace).max())
    with jax.enable_x64(True):
        reached, best = optimum(model, described, mode(result))
    assert reached == pytest.approx(result.attrs["log_joint"], abs=1e-6)
    # The tolerance is on the gain of a cycle, which EM repeats while it creeps.
    assert best - reached < (1e-3 if variant == "accelerated" else 1e-2)


@pytest.fixture(scope="module")
def tastes():
    """40 annotators of two tastes."""
    return rt.datasets.preference_types(5, 40, 15, 2, seed=4, weights=(0.7, 0.3))


def test_the_mode_is_that_of_a_mixture_written_by_hand(tastes, fit_quietly) -> None:
    """Log-likelihood, written again in NumPy, and maximised by L-BFGS from 20 random starts with
    the same prior."""
    votes = tastes.votes
    wins = np.asarray(votes.wins)
    count = np.ones(len(wins)) if votes.count is None else np.asarray(votes.count)
    first, second, annotator = (
        np.asarray(codes) for codes in (votes.first, votes.second, votes.annotator)
    )

    def loss(flat):
        reward, weight = flat[:10].reshape(5, 2), softmax(np.append(flat[10], 0))
        logits = reward[first] - reward[second]
        rows = wins[:, None] * log_expit(logits) + (count - wins)[:, None] * log_expit(-logits)
        joint = np.log(weight) + np.stack(
            [np.bincount(annotator, rows[:, k], 40) for k in range(2)], 1
        )
        return -logsumexp(joint, axis=1).sum() + (reward**2).sum() / 2 / 9

    rng = np.random.default_rng(0)
    best = min(minimize(loss, rng.normal(size=11), method="L-BFGS-B").fun for _ in range(20))
    result = fit_quietly(rt.MixtureBTL(reward_scale=3.0), votes, rt.PGEM(draws=0))
    reward, weight = result["mode"]["reward"].values, result["mode"]["type_weight"].values
    assert abs(loss(np.append(reward.ravel(), np.log(weight[0] / weight[1]))) - best) < 1e-4 * best
    assert result.attrs["starts"] == 10
    assert result.attrs["starts_at_best"] >= 5


def test_with_one_type_it_is_the_model_without_types(tastes, fit_quietly) -> None:
    """The same optimum by another road, and the same optimum as a reward model of indicators of the
    items."""
    votes = tastes.votes
    plain = fit_quietly(rt.BTL(reward_scale=2.0), votes, rt.PGEM(draws=0))["mode"]["reward"].values
    one = fit_quietly(rt.MixtureBTL(num_types=1, reward_scale=2.0), votes, rt.PGEM(draws=0))[
        "mode"
    ]["reward"].values
    indicators = votes.with_features(np.eye(5))
    linear = fit_quietly(
        rt.models.ContextualBTL(coefficient_scale=2.0), indicators, rt.PGEM(draws=0)
    )["mode"]["coefficient"].values
    np.testing.assert_allclose(one[:, 0], plain, atol=1e-4)
    np.testing.assert_allclose(linear[:, 0] - linear.mean(), plain, atol=1e-4)

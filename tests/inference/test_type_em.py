"""EM of a mixture of types against one that is written by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_expit, logsumexp, softmax

import raters as rt

pytestmark = pytest.mark.slow


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

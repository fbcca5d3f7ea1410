"""The BTL model with factors."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest
from numpyro.infer.util import log_density
from scipy.special import expit
from scipy.stats import lognorm, norm

import raters as rt

ITEMS, ANNOTATORS = 8, 40


@pytest.fixture(scope="module")
def votes() -> tuple[rt.Comparisons, np.ndarray]:
    """Thirty votes of each of 40 annotators, who never compare two of the items, and everybody's
    own rewards, shape (annotator, item)."""
    rng = np.random.default_rng(0)
    position, loading = rng.normal(size=ANNOTATORS), 2 * rng.normal(size=ITEMS)
    own = rng.normal(size=ITEMS) + position[:, None] * loading
    seen = np.stack([rng.permutation(ITEMS)[:-2] for _ in range(ANNOTATORS)])
    pairs = [rng.choice(row, 2, replace=False) for row in seen for _ in range(30)]
    first, second = np.array(pairs, np.int32).T
    who = np.repeat(np.arange(ANNOTATORS, dtype=np.int32), 30)
    wins = rng.random(len(who)) < expit(own[who, first] - own[who, second])
    names = tuple(range(ITEMS)), tuple(range(ANNOTATORS))
    return rt.Comparisons(first, second, who, wins.astype(float), None, *names), own


@pytest.fixture(scope="module")
def fitted(votes, fit_quietly):
    backend = rt.PGGibbs(draws=150, warmup=100, chains=2)
    return fit_quietly(rt.models.FactorBTL(), votes[0], backend)


def centred(own: np.ndarray) -> np.ndarray:
    return own - own.mean(1, keepdims=True)


def own_rewards(result) -> np.ndarray:
    draws = result["posterior"]
    own = draws["reward"] + (draws["position"] * draws["loading"]).sum("dimension")
    return centred(own.mean(("chain", "draw")).transpose("annotator", "item").values)


def test_density_is_the_one_written_down(votes) -> None:
    data, rng = votes[0], np.random.default_rng(1)
    values = {
        "reward": rng.normal(size=ITEMS),
        "reward_scale": 0.7,
        "position": rng.normal(size=(ANNOTATORS, 2)),
        "loading": rng.normal(size=(ITEMS, 2)),
        "loading_scale": 0.4,
    }
    with jax.enable_x64(True):
        found, _ = log_density(rt.models.FactorBTL(num_dimensions=2).generate, (data,), {}, values)
    first, second, who = data.first, data.second, data.annotator
    own = values["reward"] + values["position"] @ values["loading"].T
    prob = expit(own[who, first] - own[who, second])
    expected = np.log(np.where(data.wins == 1, prob, 1 - prob)).sum()
    expected += norm.logpdf(values["reward"], 0, 0.7).sum() + norm.logpdf(values["position"]).sum()
    expected += norm.logpdf(values["loading"], 0, 0.4).sum()
    expected += lognorm.logpdf(0.7, 1) + lognorm.logpdf(0.4, 1, scale=0.5)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.slow
def test_items_that_an_annotator_never_compared_are_predicted(votes, fitted, fit_quietly) -> None:
    """Tastes of single items know nothing of them."""
    data, own = votes
    unseen = np.ones((ANNOTATORS, ITEMS), bool)
    unseen[data.annotator, data.first] = unseen[data.annotator, data.second] = False
    assert unseen.sum() >= 2 * ANNOTATORS
    backend = rt.PGGibbs(draws=150, warmup=100, chains=2)
    single = fit_quietly(rt.HierarchicalBTL(), data, backend)["posterior"]
    by_item = centred(
        (single["reward"] + single["taste"])
        .mean(("chain", "draw"))
        .transpose("annotator", "item")
        .values
    )
    truth = centred(own)
    by_factors, by_tastes = (
        np.sqrt(np.mean((found - truth)[unseen] ** 2)) for found in (own_rewards(fitted), by_item)
    )
    assert by_factors < 0.6 * by_tastes


@pytest.mark.slow
def test_predictions_are_those_of_own_rewards(votes, fitted) -> None:
    asked = dataclasses.replace(votes[0], wins=None).take(slice(0, 20))
    prob = rt.predict(rt.models.FactorBTL(), fitted, asked).mean(("chain", "draw")).values
    own = own_rewards(fitted)[np.asarray(asked.annotator)]
    gap = own[np.arange(20), asked.first] - own[np.arange(20), asked.second]
    assert np.abs(prob - expit(gap)).max() < 0.1

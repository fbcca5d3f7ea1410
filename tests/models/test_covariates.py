"""Covariates of comparisons beside the rewards."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.judgements.connection import free_share, order_share

QUALITY = np.array([-0.8, -0.3, 0.2, 0.9])
LENGTH = np.array([1.5, 0.5, -0.5, -1.5])
LONGER = {"length": ("length_a", "length_b")}


@pytest.fixture(scope="module")
def swayed() -> rt.Comparisons:
    """600 votes of two judges who like long answers; the worse items write the longer ones."""
    rng = np.random.default_rng(0)
    first = rng.integers(4, size=600)
    second = (first + rng.integers(1, 4, size=600)) % 4
    one, other = (LENGTH[side] + rng.normal(size=600) for side in (first, second))
    logits = QUALITY[first] - QUALITY[second] + one - other
    won = rng.random(600) < 1 / (1 + np.exp(-logits))
    table = pd.DataFrame(
        {
            "a": first,
            "b": second,
            "length_a": one,
            "length_b": other,
            "won": np.where(won, "first", "second"),
            "who": rng.integers(2, size=600),
        }
    )
    return rt.Comparisons.from_frame(
        table, first="a", second="b", outcome="won", annotator="who", features=LONGER
    )


def rewards(fit, model, votes) -> np.ndarray:
    """Posterior means."""
    result = fit(model, votes, rt.PGEM(draws=0))
    return result.posterior["reward"].values[0, 0]


@pytest.mark.slow
def test_the_order_is_wrong_without_covariates_and_right_with_them(swayed, fit_quietly) -> None:
    without = rewards(fit_quietly, rt.BTL(), swayed.without_features())
    assert np.array_equal(np.argsort(without), [3, 2, 1, 0])
    for model in (rt.BTL(covariates=True), rt.ExtendedBTL(covariates=True)):
        assert np.array_equal(np.argsort(rewards(fit_quietly, model, swayed)), [0, 1, 2, 3])


@pytest.mark.slow
def test_questions_without_features_are_asked_at_equal_ones(swayed, fit_quietly) -> None:
    model = rt.BTL(covariates=True)
    result = fit_quietly(model, swayed, rt.PGEM(draws=20))
    ask = rt.Candidates.pairs(swayed)
    reward = result.posterior["reward"].values[0]
    expected = 1 / (1 + np.exp(reward[:, ask.second] - reward[:, ask.first]))
    np.testing.assert_allclose(rt.predict(model, result, ask).values[0], expected, atol=1e-5)
    chosen = rt.suggest(model, result, ask, target="everything", batch_size=2)
    assert chosen.sizes["suggestion"] == 2


def test_features_of_items_alone_are_said_to_be_imitated(swayed) -> None:
    of_items = swayed.without_features().with_features(LENGTH[:, None], names=["length"])
    assert free_share(of_items, np.asarray(of_items.features)[:, 0]) < 1e-6
    assert "the same in every comparison" in rt.BTL(covariates=True).warnings(of_items)[0]
    assert rt.BTL(covariates=True).warnings(swayed) == ()


def test_the_share_of_a_constant_is_that_of_the_order(swayed) -> None:
    ones = np.ones(swayed.num_rows)
    assert free_share(swayed, ones) == pytest.approx(order_share(swayed))

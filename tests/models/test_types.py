"""Models of preference types: one numbering, what is said of weak data, and every verb."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

import raters as rt
from raters.errors import SettingError
from raters.inference.base import Draws
from raters.inference.identification import identified
from tests.refusals import raises_about

MODEL = rt.MixtureBTL(reward_scale=2.0)


@pytest.fixture(scope="module")
def tastes():
    """30 annotators of two opposed tastes, 15 votes each on 5 items."""
    return rt.datasets.preference_types(5, 30, 15, 2, seed=4, weights=(0.7, 0.3))


@pytest.fixture(scope="module")
def fitted(tastes, fit_quietly):
    return fit_quietly(MODEL, tastes.votes, rt.PGEM(draws=50))


# ---------------------------------------------------------------------- one numbering


@pytest.fixture(scope="module")
def even(fit_quietly):
    """Two types of like size, so that which is the larger changes from draw to draw."""
    votes = rt.datasets.preference_types(5, 30, 15, 2, seed=4, weights=(0.5, 0.5)).votes
    return votes, fit_quietly(MODEL, votes, rt.PGEM(draws=50))


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_draws_under_any_numbering_come_out_under_one(even, seed) -> None:
    """Types exchanged in a random half of the draws: the same draws come back, by decreasing share
    on average."""
    votes, fitted = even
    larger = fitted["posterior"]["type_weight"].values[0].argmax(-1)
    assert 5 < larger.sum() < 45, "the share alone would number these draws"
    posterior = fitted["posterior"]
    values = {name: posterior[name].values for name in ("type_weight", "reward")}
    switched = np.random.default_rng(seed).random(values["type_weight"].shape[:2]) < 0.5
    moved = {
        name: np.where(
            np.expand_dims(switched, tuple(range(2, value.ndim))), value[..., ::-1], value
        )
        for name, value in values.items()
    }
    mode = {name: fitted["mode"][name].values[..., ::-1] for name in values}
    found = identified(rt.program.Program(MODEL, votes), Draws(moved, {}, mode=mode))
    for name, value in values.items():
        np.testing.assert_allclose(found.values[name], value, atol=1e-6)
        np.testing.assert_allclose(found.mode[name], fitted["mode"][name].values, atol=1e-6)
    share = found.values["type_weight"].mean((0, 1))
    assert share[0] >= share[1]


# ---------------------------------------------------------------------- warnings


def quiet_fit(model, votes, backend, **options):
    """A fit, and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = rt.fit(model, votes, backend, seed=0, progress=False, **options)
    return result, [(entry.category, str(entry.message)) for entry in caught]


# ---------------------------------------------------------------------- verbs


@pytest.mark.slow
def test_annotators_of_a_mixture_are_audited_by_their_type(fit_quietly, fitted) -> None:
    """Two opposed tastes, and two of each who guess: guessers are found, those of the other taste
    are not taken for them."""
    rng = np.random.default_rng(0)
    reward = np.array([[2.0, -2.0], [0.7, -0.7], [-0.7, 0.7], [-2.0, 2.0]])
    who, kind = np.repeat(np.arange(24), 40), np.arange(24) % 2
    skill = np.where(np.arange(24) < 4, 0.0, 1.0)
    first = rng.integers(4, size=len(who))
    second = (first + rng.integers(1, 4, size=len(who))) % 4
    logits = skill[who] * (reward[first, kind[who]] - reward[second, kind[who]])
    won = rng.random(len(who)) < expit(logits)
    table = {"w": np.where(won, first, second), "l": np.where(won, second, first), "who": who}
    votes = rt.Comparisons.from_frame(table, winner="w", loser="l", annotator="who")
    model = rt.MixtureBTL(competence="unit")
    found = rt.audit(
        model,
        fit_quietly(model, votes, rt.PGGibbs(draws=300, warmup=200, chains=2)),
        reference="crowd",
    )
    accuracy = found.table["accuracy"].values
    assert accuracy[:4].max() < accuracy[4:].min()
    assert float(found.table["agreement"][4:].min()) > 0.6
    result, _ = quiet_fit(model, votes, rt.PGEM(draws=20))
    assert np.isfinite(result["sample_stats"]["log_p"]).all()
    with raises_about(SettingError, "model"):
        rt.audit(MODEL, fitted, reference="crowd")


# ---------------------------------------------------------------------- features


@pytest.fixture(scope="module")
def bandit():
    return rt.datasets.preference_bandit(60, seed=0)


@pytest.mark.slow
def test_new_responses_are_judged_by_their_features(bandit, fit_quietly) -> None:
    """A model without parameters of items takes items that it has never seen."""
    model = rt.models.ContextualBTL(coefficient_scale=1.0)
    result = fit_quietly(model, bandit.votes, rt.PGEM(draws=20))
    asked = bandit.votes.take(slice(0, 5)).unanswered()
    renamed = dataclasses.replace(asked, items=("new 1", "new 2", "new 3"))
    chances = rt.predict(model, result, renamed)
    np.testing.assert_allclose(chances, rt.predict(model, result, asked), atol=1e-6)
    assert str(chances["first"].values[0]).startswith("new")

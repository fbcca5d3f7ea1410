"""Models of preference types: one numbering, what is said of weak data, and every verb."""

from __future__ import annotations

import dataclasses
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, xlogy

import raters as rt
from raters.acquisition import Posterior
from raters.acquisition.scores import Bald
from raters.distributions import StickBreaking
from raters.errors import BackendError, ConvergenceWarning, DataError, DataWarning, SettingError
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


# ---------------------------------------------------------------------- stick-breaking


@pytest.mark.slow
def test_broken_sticks_have_the_density_of_their_breaks() -> None:
    """With a = (1, 1) and b = (2, 1) this is Dirichlet(1, 1, 1); otherwise the integral over the
    simplex is 1."""
    share = jnp.array([0.2, 0.5, 0.3])
    flat = StickBreaking(jnp.ones(2), jnp.array([2.0, 1.0]))
    assert float(flat.log_prob(share)) == pytest.approx(np.log(2), abs=1e-5)
    stick = StickBreaking(jnp.array([1.5, 1.2]), jnp.array([2.0, 0.9]))
    points = np.random.default_rng(0).dirichlet(np.ones(3), 200_000)
    weight = np.exp(np.asarray(stick.log_prob(jnp.asarray(points)))) / 2
    assert weight.mean() == pytest.approx(1, abs=5 * weight.std() / np.sqrt(len(points)))
    drawn = np.asarray(stick.sample(jax.random.key(0), (100_000,)))
    np.testing.assert_allclose(drawn.mean(0), (weight[:, None] * points).mean(0), atol=0.01)
    np.testing.assert_allclose(drawn.sum(-1), 1, atol=1e-5)


# ---------------------------------------------------------------------- warnings


def quiet_fit(model, votes, backend, **options):
    """A fit, and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = rt.fit(model, votes, backend, seed=0, progress=False, **options)
    return result, [(entry.category, str(entry.message)) for entry in caught]


@pytest.mark.slow
def test_types_that_empty_are_named() -> None:
    """One taste, six types, and a prior that empties those that nobody needs."""
    votes = rt.datasets.preference_types(5, 40, 20, 1, seed=0).votes
    model = rt.MixtureBTL(num_types=6, concentration=0.01, reward_scale=2.0)
    result, said = quiet_fit(model, votes, rt.PGGibbs(draws=200, warmup=100, chains=2))
    assert float(result["posterior"]["type_weight"].isel(type=0).mean()) > 0.8
    sentence = next(
        text
        for category, text in said
        if category is ConvergenceWarning and "less than one annotator" in text
    )
    assert "type 5" in sentence
    assert "speak for" in sentence


@pytest.mark.slow
def test_types_that_votes_cannot_tell_apart_are_said_to_be_so() -> None:
    votes = rt.datasets.preference_types(5, 40, 2, 2, seed=0, reward_scale=0.5).votes
    _, said = quiet_fit(rt.MixtureBTL(reward_scale=0.5), votes, rt.PGEM(draws=50))
    assert any(
        category is ConvergenceWarning and "types are not separated" in text
        for category, text in said
    )


@pytest.mark.parametrize(("each", "words"), [(1, "every annotator has a single vote"), (2, None)])
def test_single_votes_tell_no_types(each, words) -> None:
    votes = rt.datasets.preference_types(4, 30, each, 2, seed=0).votes
    sentences = rt.MixtureBTL().data_warnings(votes)
    assert (words is None and not sentences) or words in sentences[0]
    assert rt.MixtureBTL(num_types=1).data_warnings(votes) == ()


def test_more_types_than_annotators_are_refused(tastes) -> None:
    with raises_about(BackendError, "num_types", 40):
        rt.fit(rt.MixtureBTL(num_types=40), tastes.votes, rt.PGEM(), seed=0, progress=False)


def test_without_annotators_there_are_no_types() -> None:
    votes = rt.Comparisons.from_frame({"w": ["a", "b"], "l": ["b", "c"]}, winner="w", loser="l")
    with raises_about(BackendError, "num_types", 2):
        rt.fit(rt.MixtureBTL(), votes, rt.PGEM(), seed=0, progress=False)


def test_mini_batches_of_votes_are_refused(tastes) -> None:
    with raises_about(BackendError, "batch_size", 10):
        rt.fit(MODEL, tastes.votes, rt.SVI(batch_size=10), seed=0, progress=False)


# ---------------------------------------------------------------------- verbs


def test_simulated_types_are_returned(tastes) -> None:
    drawn = rt.simulate(MODEL, tastes.votes, seed=0)
    assert drawn.truth["type"].shape == (30,)
    assert set(drawn.truth["type"]) <= {0, 1}


def test_the_score_of_a_question_is_its_mutual_information(tastes, fitted) -> None:
    """Enumerated over draws and types: what the answer tells of the annotator's type and the
    rewards together."""
    draws = {name: fitted["posterior"][name].values[0, :20] for name in ("type_weight", "reward")}
    asked = tastes.votes.take(slice(0, 6)).unanswered()
    weight = np.full((1, 20), 1 / 20, np.float32)
    posterior = Posterior(
        MODEL, tastes.votes, {name: value[None] for name, value in draws.items()}, weight
    )
    score, p_win = (
        Bald()(posterior, asked),
        np.asarray(posterior.answer_probs(asked).table[0, :, 0]).mean(0),
    )
    first, second, who = (
        np.asarray(codes) for codes in (asked.first, asked.second, asked.annotator)
    )
    chance = expit(draws["reward"][:, first] - draws["reward"][:, second])
    votes, share = tastes.votes, []
    for reward, weight in zip(draws["reward"], draws["type_weight"], strict=True):
        logits = reward[np.asarray(votes.first)] - reward[np.asarray(votes.second)]
        count = np.ones(len(logits)) if votes.count is None else np.asarray(votes.count)
        wins = np.asarray(votes.wins)[:, None]
        rows = wins * np.log(expit(logits)) + (count[:, None] - wins) * np.log(expit(-logits))
        joint = weight * np.exp(
            np.stack([np.bincount(np.asarray(votes.annotator), row) for row in rows.T], 1)
        )
        share.append(joint / joint.sum(1, keepdims=True))
    share = np.stack(share)[:, who]

    def entropy(p):
        return -(xlogy(p, p) + xlogy(1 - p, 1 - p)) / np.log(2)

    mean = (share * chance).sum(-1).mean(0)
    np.testing.assert_allclose(p_win, mean, atol=1e-5)
    np.testing.assert_allclose(
        score, entropy(mean) - (share * entropy(chance)).sum(-1).mean(0), atol=1e-5
    )
    best = rt.suggest(MODEL, fitted, rt.Candidates.pairs(tastes.votes), batch_size=3)
    assert best.sizes["suggestion"] == 3


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
    result, said = quiet_fit(model, votes, rt.PGEM(draws=20))
    assert any("entries of 'competence' may lie nearly anywhere" in text for _, text in said)
    assert np.isfinite(result["sample_stats"]["log_p"]).all()
    with raises_about(SettingError, "model"):
        rt.audit(MODEL, fitted, reference="crowd")


# ---------------------------------------------------------------------- features


@pytest.fixture(scope="module")
def bandit():
    return rt.datasets.preference_bandit(60, seed=0)


def test_features_are_needed(tastes) -> None:
    with raises_about(BackendError, "features"):
        rt.fit(rt.models.ContextualBTL(), tastes.votes, rt.PGEM(), seed=0, progress=False)


@pytest.mark.slow
def test_features_of_questions_are_matched_by_name(bandit, fit_quietly) -> None:
    model = rt.models.ContextualBTL(num_types=3, coefficient_scale=3.0)
    result = fit_quietly(model, bandit.votes, rt.PGEM(draws=20))
    asked = bandit.votes.take(slice(0, 5)).unanswered()
    turned = dataclasses.replace(
        asked, features=asked.features[:, ::-1], feature_names=asked.feature_names[::-1]
    )
    np.testing.assert_allclose(
        rt.predict(model, result, turned), rt.predict(model, result, asked), atol=1e-6
    )
    bare = dataclasses.replace(asked, features=None, feature_names=())
    with raises_about(DataError, "features"):
        rt.predict(model, result, bare)
    with raises_about(DataError, "features"):
        rt.suggest(model, result, bare)


def test_new_responses_are_judged_by_their_features(bandit, fit_quietly) -> None:
    """A model without parameters of items takes items that it has never seen."""
    model = rt.models.ContextualBTL(coefficient_scale=1.0)
    result = fit_quietly(model, bandit.votes, rt.PGEM(draws=20))
    asked = bandit.votes.take(slice(0, 5)).unanswered()
    renamed = dataclasses.replace(asked, items=("new 1", "new 2", "new 3"))
    chances = rt.predict(model, result, renamed)
    np.testing.assert_allclose(chances, rt.predict(model, result, asked), atol=1e-6)
    assert str(chances["first"].values[0]).startswith("new")


def test_features_that_say_little_are_warned_of(tiny) -> None:
    features = np.column_stack([np.ones(6), np.arange(6.0), 1000 * np.arange(6.0)])
    votes = tiny.with_features(features, names=["same", "rank", "price"])
    sentences = rt.models.ContextualBTL().data_warnings(votes)
    assert "'same'" in sentences[0]
    alike = votes.with_features(np.array([[0.0], [0.0], [1.0], [2.0], [3.0], [4.0]]))
    between = np.asarray((alike.first <= 1) & (alike.second <= 1)).sum()
    assert (
        f"{between} of {alike.num_comparisons} comparisons have the same features"
        in rt.models.ContextualBTL().data_warnings(alike)[0]
    )
    assert "'price' differs 1,000 times as much between the sides as 'rank'" in sentences[1]


@pytest.mark.slow
def test_items_that_are_never_compared_are_no_matter_where_features_speak(fit_quietly) -> None:
    """Each answer is shown once, so the graph of comparisons falls apart; the features hold it
    together."""
    rng = np.random.default_rng(0)
    table = {"a": [f"a{row}" for row in range(30)], "b": [f"b{row}" for row in range(30)]}
    table |= {"better": rng.choice(["a", "b"], 30), "who": rng.integers(4, size=30)}
    table |= {"x": rng.normal(size=30), "y": rng.normal(size=30)}
    votes = rt.Comparisons.from_frame(
        table,
        first="a",
        second="b",
        outcome="better",
        annotator="who",
        features={"length": ("x", "y")},
    )
    _, said = quiet_fit(rt.models.ContextualBTL(), votes, rt.PGEM(draws=20))
    assert not [text for category, text in said if category is DataWarning]

"""Models of rankings: warnings, limits, and what they have in common with models of votes."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import raters as rt
from raters.program import pointwise_log_likelihood

PAIRS = {"best": ["x", "y", "x"], "next": ["y", "z", "z"], "who": ["ann", "ann", "bob"]}


def test_rankings_of_two_are_votes() -> None:
    rankings = rt.Rankings.from_wide(
        PAIRS, places=["best", "next"], annotator="who", unranked="not offered", aggregate=False
    )
    votes = rt.Comparisons.from_frame(
        PAIRS, winner="best", loser="next", annotator="who", aggregate=False
    )
    worth, competence = np.array([0.3, -1.0, 0.6]), np.array([0.7, -0.4])
    ours = {"worth": worth, "competence": competence}
    theirs = {"reward": worth, "competence": competence}
    with jax.enable_x64(True):
        for model, other in (
            (rt.PlackettLuce(1.0), rt.BTL(1.0)),
            (
                rt.ExtendedPlackettLuce(worth_scale=1.0),
                rt.ExtendedBTL(competence="signed", reward_scale=1.0),
            ),
        ):
            one = pointwise_log_likelihood(model, rankings, ours)
            two = pointwise_log_likelihood(other, votes, theirs)
            np.testing.assert_allclose(one, two, rtol=1e-12)
        by_type, share = np.stack([worth, -worth], -1), {"type_weight": np.array([0.3, 0.7])}
        one = pointwise_log_likelihood(
            rt.models.MixturePlackettLuce(worth_scale=1.0), rankings, {"worth": by_type} | share
        )
        two = pointwise_log_likelihood(
            rt.MixtureBTL(reward_scale=1.0), votes, {"reward": by_type} | share
        )
        np.testing.assert_allclose(one, two, rtol=1e-12)


@pytest.mark.slow
def test_choices_of_the_stages_have_the_likelihood_of_the_rankings(ranked) -> None:
    """Of one type, and of two: the product over the places is a product over choices."""
    rng = np.random.default_rng(0)
    worth = rng.normal(size=(5, 2))
    choices = ranked.stages()
    with jax.enable_x64(True):
        own = np.stack(
            [
                pointwise_log_likelihood(rt.PlackettLuce(1.0), ranked, {"worth": each})
                for each in worth.T
            ],
            axis=1,
        )
        logit = rt.MultinomialLogit(features=False)
        one = pointwise_log_likelihood(logit, choices, {"constant": worth[:, 0]})
        np.testing.assert_allclose(one.sum(), own[:, 0].sum(), rtol=1e-10)
        share = np.array([0.3, 0.7])
        types = rt.models.LatentClassLogit(features=False)
        sites = {"constant": worth, "type_weight": share}
        mixed = pointwise_log_likelihood(types, choices, sites)
        sites = {"worth": worth, "type_weight": share}
        again = pointwise_log_likelihood(
            rt.models.MixturePlackettLuce(worth_scale=1.0), ranked, sites
        )
    of_annotator = np.zeros((3, 2))
    np.add.at(of_annotator, ranked.annotator, own)
    expected = np.logaddexp.reduce(of_annotator + np.log(share), axis=1)
    np.testing.assert_allclose(np.sort(mixed), np.sort(expected), rtol=1e-10)
    np.testing.assert_allclose(again, expected, rtol=1e-10)


def test_the_likelihood_of_a_small_table_by_hand() -> None:
    """softmax(βu) of the best times softmax(−βu) of the worst of the rest; the third row names the
    best alone."""
    table = {
        "a": ["x", "y", "z"],
        "b": ["y", "z", "x"],
        "c": ["z", "w", None],
        "d": ["w", None, None],
        "best": ["x", "z", "z"],
        "worst": ["w", "y", None],
        "who": ["ann", "bob", "bob"],
    }
    data = rt.Rankings.from_best_worst(
        table, offered=list("abcd"), best="best", worst="worst", annotator="who"
    )
    worth, competence = {"w": -1.0, "x": 0.5, "y": 0.2, "z": 0.3}, {"ann": 1.5, "bob": -0.5}

    def chosen(who: str, name: str, among: str, sign: int = 1) -> float:
        utility = {item: sign * competence[who] * worth[item] for item in among}
        return utility[name] - np.log(np.exp(list(utility.values())).sum())

    by_hand = {
        ("ann", 4): chosen("ann", "x", "wxyz") + chosen("ann", "w", "wyz", -1),
        ("bob", 3): chosen("bob", "z", "wyz") + chosen("bob", "y", "wy", -1),
        ("bob", 2): chosen("bob", "z", "xz"),
    }
    sites = {"worth": np.array([worth[name] for name in data.items])}
    sites["competence"] = np.array([competence[name] for name in data.annotators])
    with jax.enable_x64(True):
        log = pointwise_log_likelihood(rt.ExtendedPlackettLuce(worth_scale=1.0), data, sites)
    sizes = (data.offered >= 0).sum(1).tolist()
    for row, value in enumerate(np.asarray(log).tolist()):
        key = (data.annotators[data.annotator[row]], sizes[row])
        assert value == pytest.approx(by_hand[key], rel=1e-12)


def test_predictions_of_the_first_do_not_depend_on_the_worst(ranked_fit, ranked) -> None:
    asked = {"size": 3, "depth": 1, "annotators": ["who 1"], "again": True}
    one, other = (
        rt.predict(*ranked_fit, rt.Candidates.sets(ranked, **asked, lowest=lowest))
        for lowest in (False, True)
    )
    np.testing.assert_allclose(one, other, rtol=1e-6)


def test_predictions_are_of_the_first_place(ranked_fit, ranked) -> None:
    probability = rt.predict(*ranked_fit)
    assert probability.dims == ("chain", "draw", "answer", "ranking")
    assert probability["answer"].values.tolist() == list(ranked.items)
    np.testing.assert_allclose(probability.sum("answer"), 1, rtol=1e-5)
    offered = (ranked.offered[:, :, None] == np.arange(5)).any(1)
    assert (offered == (probability.values > 0).all((0, 1)).T).all()


def test_the_first_of_two_is_their_order(ranked_fit, ranked) -> None:
    """By the worths and competences of each draw."""
    model, result = ranked_fit
    pairs = rt.Candidates.sets(ranked, size=2, annotators=["who 1"], items=["item 3", "item 1"])
    found = rt.predict(model, result, pairs).sel(answer="item 3").isel(ranking=0)
    posterior = result["posterior"]
    ahead = posterior["worth"].sel(item="item 3") - posterior["worth"].sel(item="item 1")
    logits = posterior["competence"].sel(annotator="who 1") * ahead
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-logits)), rtol=1e-4)

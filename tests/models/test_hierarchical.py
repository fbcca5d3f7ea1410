"""Rewards of annotators' own: what is found, what is warned of, every verb, and the audit by
hand."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import kendalltau

import raters as rt
from tests import hand

pytestmark = pytest.mark.slow

QUICK = rt.PGGibbs(draws=200, warmup=100, chains=2)


def votes_of(own: np.ndarray, votes: list[int], seed: int) -> rt.Comparisons:
    """So many votes of each annotator on random pairs, by their own rewards (annotator, item)."""
    rng = np.random.default_rng(seed)
    num_annotators, num_items = own.shape
    who = np.repeat(np.arange(num_annotators), votes)
    first = rng.integers(num_items, size=len(who))
    second = (first + rng.integers(1, num_items, size=len(who))) % num_items
    wins = rng.random(len(who)) < expit(own[who, first] - own[who, second])
    columns = (column.astype(np.int32) for column in (first, second, who))
    names = tuple(range(num_items)), tuple(range(num_annotators))
    return rt.Comparisons(*columns, wins.astype(np.float32), None, *names).aggregate()


def beside_a_judge(judge_agrees: bool) -> tuple[rt.Comparisons, np.ndarray]:
    """20 people with 60 votes each on 8 items; a judge, three times as consistent, with 600."""
    rng = np.random.default_rng(1)
    crowd = np.linspace(-1.5, 1.5, 8)
    own = crowd + 0.3 * rng.normal(size=(20, 8))
    judge = crowd if judge_agrees else rng.permutation(crowd)
    return votes_of(np.vstack([own, 3 * judge]), [60] * 20 + [600], seed=2), crowd


def overrun() -> rt.Comparisons:
    """12 people with 40 votes each, and a judge with 4,000 and almost the reverse order."""
    crowd = np.linspace(1.5, -1.5, 8)
    judge = 3 * np.array([-0.5, -1.0, 0.2, 0.5, 1.5, 1.0, -1.5, -0.2])
    return votes_of(np.vstack([*[crowd] * 12, judge]), [40] * 12 + [4000], seed=1)


def sentences(model, votes, backend=QUICK) -> list[str]:
    """What a fit warns of an annotator who decides the ranking."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rt.fit(model, votes, backend, seed=0, progress=False, log_likelihood=False)
    said = [str(one.message) for one in caught]
    return [sentence for sentence in said if "the ranking follows" in sentence]


# ---------------------------------------------------------------------- a judge beside people


@pytest.fixture(scope="module")
def taken():
    return beside_a_judge(judge_agrees=False)


@pytest.fixture(scope="module")
def fitted(taken, fit_quietly):
    return fit_quietly(rt.HierarchicalBTL(), taken[0], QUICK)


def test_a_judge_does_not_become_the_scale(taken, fitted, fit_quietly) -> None:
    """The people's order comes out, where ExtendedBTL has the judge's."""
    votes, crowd = taken
    extended = fit_quietly(rt.ExtendedBTL(), votes, QUICK)
    by_tastes, by_scale = (
        kendalltau(result["posterior"]["reward"].mean(("chain", "draw")), crowd).statistic
        for result in (fitted, extended)
    )
    assert by_tastes > 0.8
    assert by_scale < by_tastes - 0.3


def test_extended_btl_warns_of_a_takeover(taken) -> None:
    (sentence,) = sentences(rt.ExtendedBTL(), taken[0])
    assert sentence.startswith("annotator 20 cast 33% of the votes and has ")
    assert "fit rt.HierarchicalBTL()" in sentence


def test_a_judge_who_agrees_takes_nothing_over() -> None:
    assert sentences(rt.ExtendedBTL(), beside_a_judge(judge_agrees=True)[0]) == []


# ---------------------------------------------------------------------- every verb


def test_predictions_follow_the_annotator(taken, fitted) -> None:
    votes, _ = taken
    prob = rt.predict(rt.HierarchicalBTL(), fitted, votes).mean(("chain", "draw")).values
    wins, count = np.asarray(votes.wins), np.asarray(votes.count)
    of_judge = np.asarray(votes.annotator) == 20
    agreement = np.where(prob > 0.5, wins, count - wins)[of_judge].sum() / count[of_judge].sum()
    assert agreement > 0.8


# ---------------------------------------------------------------------- the audit


VOTES = hand.votes(
    *[("a", "b", "ann")] * 3,
    *[("b", "c", "ann")] * 1,
    *[("b", "a", "bob")] * 5,
    annotators=["ann", "bob", "eve"],
)
REWARD = np.array([[1.0, 0.0, -1.0], [2.0, 0.0, -2.0]])
TASTE = np.array(
    [
        [[0.0, 0.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]],
        [[-1.0, 0.0, 1.0], [-2.0, 1.0, 1.0], [0.0, 0.0, 0.0]],
    ]
)


@pytest.fixture(scope="module")
def by_hand():
    model = rt.HierarchicalBTL(reward_scale=1.0, taste_spread=1.0)
    return rt.audit(
        model, hand.result(VOTES, enough=True, reward=REWARD, taste=TASTE), reference="crowd"
    ).table


def test_competence_is_the_slope_on_the_pairs_that_were_compared(by_hand) -> None:
    # ann: own differences equal the crowd's, then half of them. bob compared a and b only: own
    # differences −1 and −1 where the crowd's are 1 and 2. By coin flips the slope is 0.
    named = by_hand[["competence", "accuracy", "p_careless"]].to_dataframe()
    ann, bob = named.loc["ann"], named.loc["bob"]
    assert ann["competence"] == pytest.approx((1 - ann["p_careless"]) * (1 + 0.5) / 2, abs=0.03)
    assert bob["competence"] == pytest.approx((1 - bob["p_careless"]) * (-1 - 0.5) / 2, abs=0.03)
    assert bob["accuracy"] == pytest.approx(
        expit(-1) + bob["p_careless"] * (0.5 - expit(-1)), abs=0.01
    )
    assert float(by_hand["consistency"].sel(annotator="bob")) == pytest.approx((1 + 0.5) / 2)
    assert float(by_hand["taste_agreement"].sel(annotator="bob")) == pytest.approx(-1)
    assert float(by_hand["own_accuracy"].sel(annotator="bob")) == pytest.approx(expit(1))


def test_carelessness_is_the_weight_of_coin_flips(by_hand) -> None:
    # bob's own difference is −1 in both draws: five votes of log-probability log σ(1) each, without
    # variance, against log ½.
    gain = 5 * (np.log(expit(1)) - np.log(0.5))
    assert float(by_hand["p_careless"].sel(annotator="bob")) == pytest.approx(expit(-gain))
    assert float(by_hand["p_adversarial"].sel(annotator="bob")) == pytest.approx(expit(gain))
    assert float(by_hand["p_careless"].sel(annotator="eve")) == 0.5, "eve has not voted"

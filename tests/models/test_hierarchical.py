"""Rewards of annotators' own: what is found, what is warned of, every verb, and the audit by
hand."""

from __future__ import annotations

import warnings

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import kendalltau

import raters as rt
from raters.auditing import tastes
from raters.errors import SettingError
from raters.models.comparisons._takeover import takeover
from raters.program import log_joint, log_prior
from raters.reporting.facts import reason_of
from tests import hand

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


def test_a_takeover_is_seen_where_all_others_seem_careless() -> None:
    """The reverse of most of the judge's order has competences around 0, whose score of the rewards
    is next to nothing."""
    (sentence,) = sentences(rt.ExtendedBTL(competence="signed"), overrun())
    assert sentence.startswith("annotator 12 cast 89% of the votes and has ")


def test_a_judge_who_agrees_takes_nothing_over() -> None:
    assert sentences(rt.ExtendedBTL(), beside_a_judge(judge_agrees=True)[0]) == []


@pytest.mark.parametrize("generator", ["crowd", "separated"])
def test_no_takeover_in_an_ordinary_crowd(generator: str) -> None:
    votes = getattr(rt.datasets, generator)(
        num_items=8, num_annotators=5, num_votes=600, seed=0
    ).votes
    assert sentences(rt.ExtendedBTL(), votes, rt.PGEM(draws=100)) == []


def test_a_takeover_needs_both_information_and_dissent(taken) -> None:
    """The rewards of the judge, under the judge's competence and under an equal one."""
    votes, crowd = taken
    judge = np.random.default_rng(1)
    judge.normal(size=(20, 8))
    order = judge.permutation(crowd)

    def said(competence: np.ndarray, reward: np.ndarray) -> tuple[str, ...]:
        return takeover({"competence": competence[None, None], "reward": reward[None, None]}, votes)

    scale = np.append(np.full(20, 0.2), 3.0)
    assert len(said(scale, order)) == 1
    assert said(np.append(np.ones(20), 0.5), order) == (), "the judge has little information"
    people = votes.take(np.asarray(votes.annotator) == 20)
    draws = {"competence": scale[None, None], "reward": order[None, None]}
    assert takeover(draws, people) == (), "nobody else has voted"


# ---------------------------------------------------------------------- every verb


def test_predictions_follow_the_annotator(taken, fitted) -> None:
    votes, _ = taken
    prob = rt.predict(rt.HierarchicalBTL(), fitted, votes).mean(("chain", "draw")).values
    wins, count = np.asarray(votes.wins), np.asarray(votes.count)
    of_judge = np.asarray(votes.annotator) == 20
    agreement = np.where(prob > 0.5, wins, count - wins)[of_judge].sum() / count[of_judge].sum()
    assert agreement > 0.8


def test_the_report_has_the_columns_of_tastes(tmp_path, fitted) -> None:
    audit = rt.audit(rt.HierarchicalBTL(), fitted, reference="crowd")
    rt.report(rt.HierarchicalBTL(), fitted, audit).save(tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text()
    assert "P(careless)" in page
    assert "P(own taste)" in page
    row = audit.table.to_dataframe().loc[20].to_dict()
    assert row["p_different_taste"] > 0.8
    assert row["p_careless"] < 0.05
    assert reason_of(row | {"verdict": "drop"}, audit)["code"] == "own_taste"


# ---------------------------------------------------------------------- the audit


def test_a_different_taste_and_carelessness_are_two_findings(fit_quietly) -> None:
    """300 votes each; one guesser, one of another taste, one adversary, and seven of the crowd."""
    crowd = np.linspace(-2, 2, 8)
    other = crowd[[3, 7, 0, 4, 6, 1, 5, 2]]
    assert abs(np.corrcoef(crowd, other)[0, 1]) < 0.2
    own = np.stack([0 * crowd, other, -crowd] + [crowd] * 7)
    votes = votes_of(own, [300] * 10, seed=0)
    model = rt.HierarchicalBTL(competence="signed")
    result = fit_quietly(model, votes, rt.PGGibbs(draws=400, warmup=200, chains=2))
    audit = rt.audit(model, result, reference="crowd")
    table = audit.table.to_dataframe()
    guesser, taste, adversary = (table.loc[code] for code in (0, 1, 2))
    assert guesser["p_careless"] > 0.8 > 0.2 > guesser["p_different_taste"]
    assert taste["p_different_taste"] > 0.8 > 0.2 > taste["p_careless"]
    assert adversary["p_adversarial"] > 0.95
    rest = table.loc[3:, ["p_careless", "p_different_taste", "p_adversarial"]].to_numpy()
    assert rest.max() < 0.1
    rows = [row.to_dict() | {"verdict": "drop"} for row in (guesser, taste, adversary)]
    codes = [reason_of(row, audit)["code"] for row in rows]
    assert codes == ["careless", "own_taste", "adversarial"]


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


def test_many_pairs_of_an_annotator_are_sampled(monkeypatch) -> None:
    monkeypatch.setattr(tastes, "_PAIRS", 1)
    (ann, bob, eve) = tastes._pairs(VOTES, np.random.default_rng(0))
    assert [len(one.first) for one in (ann, bob, eve)] == [1, 1, 0]


# ---------------------------------------------------------------------- settings and warnings


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_only_own_rewards_count(seed: int) -> None:
    """The likelihood is that of r + d, whatever their division and the level of each annotator."""
    votes = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=30, seed=0).votes
    model = rt.HierarchicalBTL(reward_scale=1.0, taste_spread=0.5)
    rng = np.random.default_rng(seed)
    reward, taste = rng.normal(size=4), rng.normal(size=(3, 4))
    division, level = rng.normal(size=4), rng.normal(size=(3, 1))
    with jax.enable_x64(True):
        one, other = (
            float(log_joint(model, votes, values) - log_prior(model, votes, values))
            for values in (
                {"reward": reward, "taste": taste},
                {"reward": reward + division, "taste": taste - division + level},
            )
        )
    assert one == pytest.approx(other, rel=1e-9)


def test_two_spreads_are_refused() -> None:
    with pytest.raises(SettingError):
        rt.HierarchicalBTL(own_spread=True, taste_spread=0.5)


def test_what_the_data_cannot_tell_is_said() -> None:
    model = rt.HierarchicalBTL()
    alone = hand.votes(("a", "b", "ann"), ("b", "c", "ann"))
    assert "all votes are by one annotator" in model.data_warnings(alone)[0]
    once = hand.votes(("a", "b", "ann"), ("b", "c", "bob"))
    assert "no annotator voted twice" in model.data_warnings(once)[0]
    assert model.data_warnings(VOTES) == ()
    many = rt.datasets.separated(num_items=6000, num_annotators=100, num_votes=500, seed=0).votes
    assert "600,000 tastes" in model.data_warnings(many)[0]


def test_tastes_without_a_common_order_are_said() -> None:
    draws = {"taste_spread": np.full((1, 4), 2.5), "reward_scale": np.ones((1, 4))}
    (sentence,) = rt.HierarchicalBTL().fit_warnings(draws, None, VOTES)
    assert "one ranking does not describe them" in sentence
    draws["taste_spread"] = np.ones((1, 4))
    assert rt.HierarchicalBTL().fit_warnings(draws, None, VOTES) == ()

"""Questions that arrive one after another: the rule that asks or lets go, what it keeps in the
journal, and what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest

import raters as rt
from raters.acquisition import Policy, Random, Top
from raters.acquisition.campaign import ledger as stream
from raters.acquisition.campaign.campaign import Campaign
from raters.acquisition.campaign.journal import Journal
from raters.acquisition.scores import Bald
from raters.errors import DataError
from tests.acquisition import crowd

BY_CHANCE = Policy(score=Random(), batch=Top())
NAMES = {"items": ["tea", "milk", "beer"], "annotators": ["ann", "bob"]}
TEA = {"first": "tea", "second": "milk", "by": "ann"}


@pytest.fixture
def start(tmp_path):
    """A campaign that chooses at random, of six questions about three drinks."""

    def made(path="campaign.db", **given) -> Campaign:
        settings = {"policy": BY_CHANCE} | given
        return Campaign(tmp_path / path, rt.BTL(), rt.Candidates.pairs(**NAMES), **settings)

    return made


@pytest.fixture
def crowded(tmp_path, monkeypatch):
    """A campaign on the crowd whose draws are known: nothing is fitted."""
    monkeypatch.setattr(Campaign, "_posterior", lambda *_, **__: crowd.POSTERIOR)
    policy = Policy(score=Bald(), batch=Top())
    return Campaign(tmp_path / "crowd.db", crowd.MODEL, crowd.PAIRS, policy=policy)


def arrivals(pool: rt.Comparisons, number: int, seed: int = 0) -> list[dict]:
    rows = np.random.default_rng(seed).integers(pool.num_rows, size=number)
    names = pool.rows(rows).question_names()
    return [dict(zip(names, one, strict=True)) for one in zip(*names.values(), strict=True)]


# ---------------------------------------------------------------- the rule


def test_the_rank_is_that_of_the_p_value():
    rng = np.random.default_rng(0)
    for _ in range(500):
        score, lot = rng.integers(4, size=9).astype(float), rng.random(9)
        chance, level = rng.random(), rng.uniform(-0.2, 1.2)
        above = sum(other > (score[-1], lot[-1]) for other in zip(score, lot, strict=True))
        ask, threshold = stream.rank(score, lot, chance, level)
        assert ask == ((above + chance) / 9 <= level)
        if score[-1] != threshold:  # where they tie the lots decide
            assert ask == (score[-1] > threshold)


@pytest.mark.parametrize("rate", [0.04, 0.3])
@pytest.mark.parametrize("order", ["rising", "falling", "even", "random"])
def test_the_rate_is_kept_in_whatever_order_questions_come(order, rate):
    number, rng = 1500, np.random.default_rng(0)
    score = {
        "rising": np.arange(number),
        "falling": -np.arange(number),
        "even": np.zeros(number),
        "random": rng.normal(size=number),
    }[order].astype(float)
    level, asked, lot = rate, 0, rng.random(number)
    for place in range(number):
        lately = slice(max(0, place - stream.RECENT), place + 1)
        ask = stream.rank(score[lately], lot[lately], rng.random(), level)[0]
        level, asked = stream.next_level(level, rate, ask), asked + ask
        assert asked <= rate * (place + 1) + 1 / stream.STEP + 1
        assert asked >= rate * (place + 1) - (1 - rate) / (stream.STEP * rate) - 1
    if order in ("even", "random"):
        assert abs(asked / number - rate) < 0.03


def test_questions_of_high_scores_are_asked(crowded):
    score = Bald()(crowd.POSTERIOR, crowd.PAIRS)
    asked, left, seen = [], [], []
    for question in arrivals(crowd.PAIRS, 80):
        decision = crowded.consider(question, rate=0.2)
        row = crowded._ledger.row_of(question)
        seen += [] if math.isnan(decision.score) else [score[row]]
        assert math.isnan(decision.best) or decision.best == pytest.approx(max(seen), abs=1e-6)
        assert math.isnan(decision.best) == math.isnan(decision.score)
        if decision.ask:
            crowded.withdraw(decision.id)
        if not math.isnan(decision.score):
            (asked if decision.ask else left).append(score[row])
            assert decision.score == pytest.approx(score[row], abs=1e-6)
    assert 8 < len(asked) < 27
    assert np.quantile(asked[3:], 0.2) > np.quantile(left, 0.8)


# ---------------------------------------------------------------- the journal


def test_what_is_decided_is_kept(start):
    """A campaign that is opened anew before each question decides as one that is not."""
    one, other = start("one.db"), start("other.db")
    questions = arrivals(rt.Candidates.pairs(**NAMES), 60)
    for question in questions:
        first = one.consider(question, rate=0.3)
        again = Campaign.open(other.path).consider(question, rate=0.3)
        assert first._replace(id=None) == again._replace(id=None)
        for campaign, decision in ((one, first), (other, again)):
            if decision.ask:
                campaign.tell(decision.id, "first")
    kept = Campaign.open(one.path).considered
    assert kept.sizes["seen"] == 60
    assert kept["ask"].sum() == one.asked.sizes["id"] == one.data.num_votes > 5
    assert set(kept["id"].values) == {"", *one.asked["id"].values}
    assert set(kept["by"].values) == {"ann", "bob"}


def test_the_rate_stays_until_another_is_given(start):
    campaign = start()
    campaign.consider(TEA, rate=0.4)
    Campaign.open(campaign.path).consider(TEA)
    campaign.consider(TEA, rate=0.2)
    np.testing.assert_array_equal(campaign.considered["rate"], [0.4, 0.4, 0.2])
    assert Journal(campaign.path).read_seen(2).index.tolist() == [2, 3]
    state = stream.Stream.of(Journal(campaign.path), 0.7)
    assert (state.level, state.rate) == (0.7, 0.7)


def test_a_budget_is_never_passed(start):
    campaign = start(budget=5, policy=Policy(score=Random(), costs={"bob": 2.0}))
    for question in arrivals(rt.Candidates.pairs(**NAMES), 40):
        decision = campaign.consider(question, rate=0.9)
        if decision.ask:
            campaign.tell(decision.id, "second")
        assert campaign.spent <= 5
    assert campaign.spent == 5
    level = stream.Stream.of(Journal(campaign.path), None).level
    decision = campaign.consider(TEA)
    assert not decision.ask
    assert decision.reason.startswith("there is nothing more to ask: the budget is used up")
    assert math.isnan(decision.score)
    assert stream.Stream.of(Journal(campaign.path), None).level == level


def test_questions_that_cannot_be_asked(start):
    campaign = start(again=False, policy=Policy(score=Random(), quota={"bob": 0}))
    level = stream.Stream.of(Journal(campaign.path), 0.999).level
    decision = campaign.consider(TEA, rate=0.999)
    assert decision.ask
    assert campaign.consider(TEA).reason == "it waits for an answer already"
    campaign.tell(decision.id, "tea")
    turned = {"first": "milk", "second": "tea", "by": "ann"}
    assert campaign.consider(turned).reason == "it has been answered already"
    assert campaign.consider(TEA | {"by": "bob"}).reason == "the quota of bob is used up"
    # Each was one of the stream.
    assert stream.Stream.of(Journal(campaign.path), None).level > level
    dear = start("dear.db", budget=3, policy=Policy(score=Random(), costs={"bob": 4.0}))
    assert "costs 4, and 3" in dear.consider(TEA | {"by": "bob"}).reason


def test_an_annotator_gets_the_least_share(start):
    campaign = start(policy=Policy(score=Random(), least_share=0.4))
    for by in ("ann", "bob", "ann", "bob"):
        decision = campaign.consider(TEA | {"by": by}, rate=0.01)
        assert decision.ask
        assert decision.reason == f"{by} is short of the least share of the questions"
        campaign.tell(decision.id, "tea")
    # Two of five would be the least share.
    assert not campaign.consider(TEA).ask


def test_a_decision_is_written_with_its_question_or_not_at_all(start, monkeypatch):
    campaign = start()
    with monkeypatch.context() as patch:
        # The row of the decision, written after its question, is no number.
        patch.setattr(stream, "next_level", lambda *_: math.nan)
        with pytest.raises(DataError):
            campaign.consider(TEA, rate=0.999)
    again = Campaign.open(campaign.path)
    assert again.asked.sizes["id"] == again.considered.sizes["seen"] == 0
    assert again.consider(TEA, rate=0.999).ask


# ---------------------------------------------------------------- the question


def test_a_question_is_found_however_it_is_written(start):
    ledger = start()._ledger
    rows = {
        ledger.row_of(question)
        for question in (TEA, {"first": "milk", "second": "tea", "by": "ann"})
    }
    (row,) = rows
    names = {name: column[row] for name, column in ledger.pool.question_names().items()}
    assert ({names["first"], names["second"]}, names["by"]) == ({"tea", "milk"}, "ann")

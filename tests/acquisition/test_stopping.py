"""How sure draws are, by hand; and the rules that read it off a posterior."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.stats import kendalltau

import raters as rt
from raters.acquisition import ExpectedAccuracy, ExpectedTau, GainBelow, OrderIsRight, Posterior
from raters.acquisition.scores import Bald
from raters.errors import SettingError
from tests import hand
from tests.acquisition.crowd import MODEL, PAIRS, POSTERIOR, VOTES
from tests.refusals import raises_about

# Means 1.5, .75, .25: the order 0, 1, 2 is that of the first two draws; the third has 0 and 1 the
# other way round, the fourth 1 and 2.
DRAWS = np.array([[2.0, 1.0, 0.0], [1.0, 0.9, 0.0], [0.0, 0.1, -1.0], [3.0, 1.0, 2.0]])
WEIGHT = np.array([0.1, 0.2, 0.6, 0.1])  # means .7, .46, −.4


SURE = Posterior(
    MODEL, VOTES, {"reward": np.arange(6.0) + np.zeros((200, 1))}, np.full(200, 1 / 200)
)


# ------------------------------------------------------------------ rules on an order


def posterior_of(reward, weight=None) -> Posterior:
    """A posterior of these draws of rewards, of which each counts for many."""
    reward = np.asarray(reward, float)
    weight = np.full(len(reward), 1 / len(reward)) if weight is None else weight
    return dataclasses.replace(
        SURE, draws={"reward": reward}, weight=np.asarray(weight), independent=np.inf
    )


def share(rule, posterior) -> float:
    """The value of a rule without the further draw that disagrees."""
    number = posterior.effective_draws
    return rule.value(posterior) * (number + 1) / number


def test_the_probability_of_an_order_and_of_the_best():
    for weight, order, best in [(None, 0.5, 0.75), (WEIGHT, 0.3, 0.4)]:
        posterior = posterior_of(DRAWS, weight)
        assert share(OrderIsRight(0.5), posterior) == pytest.approx(order)
        assert share(OrderIsRight(0.5, top=1), posterior) == pytest.approx(best)
    assert share(OrderIsRight(0.5, top=2), posterior_of(DRAWS)) == pytest.approx(0.75)


def test_the_expected_share_of_right_pairs(monkeypatch):
    tau = ExpectedTau(0.5).value
    for draws, weight, right in [
        (DRAWS, None, 10 / 12),
        (DRAWS, WEIGHT, 1 - 0.7 / 3),
        ([[1.0, 1.0], [1.0, 0.0]], None, 0.75),  # a tie in a draw is half right
        ([[1.0, 0.0], [0.0, 1.0]], None, 0.5),  # equal means, too
    ]:
        assert tau(posterior_of(draws, weight)) == pytest.approx(2 * right - 1)
    reward = np.random.default_rng(0).normal(size=(100, 60)) + np.arange(60) / 20
    exact = np.mean([kendalltau(reward.mean(0), draw).statistic for draw in reward])
    assert tau(posterior_of(reward)) == pytest.approx(exact)
    monkeypatch.setattr("raters.acquisition.campaign.stopping._NUMBERS", 1000)
    assert tau(posterior_of(reward)) == pytest.approx(exact)
    monkeypatch.setattr("raters.acquisition.campaign.stopping._MOST_PAIRS", 1700)
    # 1,700 pairs with a standard deviation of at most .5: five standard errors.
    assert tau(posterior_of(reward)) == pytest.approx(exact, abs=0.12)


def test_draws_cannot_tell_more_than_their_number():
    for rule in (OrderIsRight(0.999), OrderIsRight(0.999, top=2)):
        with raises_about(SettingError, "at_least"):
            rule(SURE)  # all 200 draws agree, and that is not enough
        less = dataclasses.replace(rule, at_least=0.99)
        assert less.value(SURE) == pytest.approx(200 / 201)
        assert less.value(dataclasses.replace(SURE, independent=9.0)) == pytest.approx(0.9)
    assert ExpectedTau(0.99)(dataclasses.replace(SURE, independent=9.0))
    assert not ExpectedTau(0.99)(POSTERIOR)


# ------------------------------------------------------------------ rules


def test_gains_are_looked_for_among_what_can_be_asked():
    gain = Bald()(POSTERIOR, PAIRS, seed=0)
    few = np.array([3, 7, 8])
    some = dataclasses.replace(POSTERIOR, pool=PAIRS.take(few))
    assert GainBelow(0.1).value(some) == pytest.approx(gain[few].max(), rel=1e-5)
    assert GainBelow(0.1).value(dataclasses.replace(POSTERIOR, pool=PAIRS.take([]))) == 0
    who = np.asarray(PAIRS.annotator)[few]
    price = np.array([1.0, 2.0, 4.0, 8.0])
    priced = dataclasses.replace(some, cost=price)
    assert GainBelow(0.1).value(priced) == pytest.approx((gain[few] / price[who]).max(), rel=1e-5)


def test_rules_for_labels():
    """Two draws, two items, two annotators of whom the second labelled the first item only."""
    table = {"i": [0, 0, 1], "a": ["x", "y", "x"], "l": [0, 1, 1]}
    labels = rt.Labels.from_frame(table, item="i", annotator="a", label="l")
    right = np.array([[0.9, 0.6], [0.7, 0.8]])  # (draw, annotator)
    confusion = np.where(
        np.eye(2, dtype=bool), right[:, :, None, None], 1 - right[:, :, None, None]
    )
    draws = {"prevalence": np.full((2, 2), 0.5), "confusion": confusion}
    posterior = Posterior(rt.DawidSkene(), labels, draws, np.full(2, 0.5))
    first = np.mean([0.9 * 0.4 / (0.9 * 0.4 + 0.1 * 0.6), 0.7 * 0.2 / (0.7 * 0.2 + 0.3 * 0.8)])
    by_model = posterior.responsibility().max(-1).mean()
    assert by_model == pytest.approx((max(first, 1 - first) + 0.8) / 2, rel=1e-5)
    value = ExpectedAccuracy(0.5).value(posterior)
    assert value == pytest.approx(posterior.true_classes().max(-1).mean())
    assert ExpectedAccuracy(0.99 * value)(posterior)
    assert not ExpectedAccuracy(1.001 * value)(posterior)
    assert GainBelow(1e-9).value(posterior) > 0
    every = hand.labels((0, "x", 0), (0, "y", 1), (1, "x", 1), (1, "y", 0))
    assert GainBelow(1e-9)(dataclasses.replace(posterior, data=every))  # nothing left to ask
    with raises_about(SettingError, "at_least", 0.5):
        ExpectedAccuracy(0.5)(POSTERIOR)
    with raises_about(SettingError, "stop"):
        OrderIsRight(0.5)(posterior)
    types = dataclasses.replace(SURE, draws={"reward": np.zeros((200, 6, 2))})
    with raises_about(SettingError, "stop"):
        ExpectedTau(0.5)(types)

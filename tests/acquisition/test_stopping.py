"""How sure draws are, by hand; and the rules that read it off a posterior."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau

import raters as rt
from raters.acquisition import (
    AllOf,
    AnyOf,
    Bald,
    Budget,
    ExpectedAccuracy,
    ExpectedTau,
    GainBelow,
    OrderIsRight,
    Posterior,
    TopIsRight,
)
from raters.acquisition.scoring.certainty import (
    expected_share_of_right_pairs,
    probability_of_order,
    probability_of_top,
)
from raters.errors import SettingError
from tests.acquisition.crowd import MODEL, PAIRS, POSTERIOR, VOTES
from tests.refusals import raises_about

# Means 1.5, .75, .25: the order 0, 1, 2 is that of the first two draws; the third has 0 and 1 the
# other way round, the fourth 1 and 2.
DRAWS = np.array([[2.0, 1.0, 0.0], [1.0, 0.9, 0.0], [0.0, 0.1, -1.0], [3.0, 1.0, 2.0]])
WEIGHT = np.array([0.1, 0.2, 0.6, 0.1])  # means .7, .46, −.4


# ------------------------------------------------------------------ functions of draws


def test_the_probability_of_an_order():
    assert probability_of_order(DRAWS)[0] == 0.5
    found = probability_of_order(DRAWS, WEIGHT)
    assert found.probability == pytest.approx(0.3)
    assert found.estimate.tolist() == [0, 1, 2]
    likeliest = probability_of_order(DRAWS, WEIGHT, of="most_probable")
    assert likeliest.probability == pytest.approx(0.6)
    assert likeliest.estimate.tolist() == [1, 0, 2]


def test_the_probability_of_the_best():
    assert probability_of_top(DRAWS, k=1).probability == 0.75  # 0 in all but the third
    assert probability_of_top(DRAWS, k=2).probability == 0.75  # {0, 1} in all but the fourth
    assert probability_of_top(DRAWS, k=3) == (1.0, pytest.approx([0, 1, 2]))
    assert probability_of_top(DRAWS, WEIGHT, k=1).probability == pytest.approx(0.4)
    found = probability_of_top(DRAWS, WEIGHT, k=1, of="most_probable")
    assert (found.probability, found.estimate.tolist()) == (pytest.approx(0.6), [1])


def test_the_expected_share_of_right_pairs():
    assert expected_share_of_right_pairs(DRAWS) == pytest.approx(10 / 12)
    assert expected_share_of_right_pairs(DRAWS, WEIGHT) == pytest.approx(1 - 0.7 / 3)
    assert expected_share_of_right_pairs([[1.0, 1.0], [1.0, 0.0]]) == pytest.approx(
        0.75
    )  # a tie in a draw is half right
    assert expected_share_of_right_pairs([[1.0, 0.0], [0.0, 1.0]]) == 0.5  # equal means, too
    reward = np.random.default_rng(0).normal(size=(2, 50, 12)) + np.arange(12) / 4
    mean = reward.mean((0, 1))
    tau = np.mean([kendalltau(mean, draw).statistic for draw in reward.reshape(-1, 12)])
    assert 2 * expected_share_of_right_pairs(reward) - 1 == pytest.approx(tau)


def test_of_many_items_a_sample_of_pairs_will_do(monkeypatch):
    reward = np.random.default_rng(0).normal(size=(20, 60)) + np.arange(60) / 20
    exact = expected_share_of_right_pairs(reward)
    monkeypatch.setattr("raters.acquisition.scoring.certainty._NUMBERS", 1000)
    assert expected_share_of_right_pairs(reward) == pytest.approx(exact)
    monkeypatch.setattr("raters.acquisition.scoring.certainty._MOST_PAIRS", 1700)
    # 1,700 pairs with a standard deviation of at most .5: five standard errors.
    assert expected_share_of_right_pairs(reward) == pytest.approx(exact, abs=0.06)


def test_an_order_is_right_as_often_as_it_says():
    """Calibration: of truths drawn as the draws are, the share whose order the estimate has."""
    rng = np.random.default_rng(0)
    said, right = [], []
    for _ in range(400):
        centre = rng.normal(size=4)
        draws, truth = (centre + 0.4 * rng.normal(size=(number, 4)) for number in (200, 1))
        found = probability_of_order(draws)
        said.append(found.probability)
        right.append(np.array_equal(np.argsort(-truth[0]), found.estimate))
    assert np.mean(right) == pytest.approx(np.mean(said), abs=0.1)  # four standard errors of .025


@pytest.mark.parametrize(
    ("call", "about"),
    [
        (lambda: probability_of_top(DRAWS, k=4), ("k", 4)),
        (lambda: probability_of_top(DRAWS, k=0), ("k", 0)),
        (lambda: probability_of_order(DRAWS[0]), ("reward",)),
        (lambda: probability_of_order(DRAWS, WEIGHT[:2]), ("weight",)),
        (lambda: probability_of_order(DRAWS, 0 * WEIGHT), ("weight",)),
        (lambda: probability_of_order(DRAWS, of="median"), ("of", "median")),
        (lambda: expected_share_of_right_pairs([[1.0]]), ("reward",)),
        (lambda: OrderIsRight(95), ("probability", 95)),
        (lambda: TopIsRight(0, 0.9), ("k", 0)),
        (lambda: ExpectedTau(1.0), ("at_least", 1.0)),
        (lambda: GainBelow(0), ("bits_per_cost", 0)),
        (lambda: GainBelow(0.1, costs={"ann": -1}), ("costs", -1)),
        (lambda: Budget(-5), ("cost", -5)),
        (lambda: Budget(5) | 3, ("rules", 3)),
        (lambda: AnyOf(()), ("rules",)),
    ],
)
def test_what_cannot_be(call, about):
    with raises_about(SettingError, *about):
        call()


# ------------------------------------------------------------------ rules

SURE = Posterior(
    MODEL, VOTES, {"reward": np.arange(6.0) + np.zeros((1, 200, 1))}, np.full((1, 200), 1 / 200)
)


def test_rules_on_the_order():
    for rule, number in [
        (OrderIsRight(0.99), 200 / 201),
        (TopIsRight(2, 0.99), 200 / 201),
        (ExpectedTau(0.99), 1.0),
    ]:
        assert rule.value(SURE) == pytest.approx(number)
        assert rule(SURE)
        assert not rule(POSTERIOR)
    reward, weight = POSTERIOR.draws["reward"], POSTERIOR.weight
    assert ExpectedTau(0.1).value(POSTERIOR) == pytest.approx(
        2 * expected_share_of_right_pairs(reward, weight) - 1
    )
    assert TopIsRight(1, 0.5).value(POSTERIOR) == pytest.approx(
        probability_of_top(reward, weight, k=1)[0] * 200 / 201
    )


def test_draws_cannot_tell_more_than_their_number():
    assert not OrderIsRight(0.999)(SURE)  # all 200 draws agree, and that is not enough
    said = OrderIsRight(0.999).describe(SURE)
    assert (
        said
        == "the order of the 6 items is right with probability 0.995 (asked for 0.999; 200 draws"
        " tell at most 0.995): never met, use more draws"
    )
    assert (
        TopIsRight(2, 0.9)
        .describe(SURE)
        .startswith("the 2 best items are known with probability 0.995 (asked for 0.9;")
    )


def test_draws_that_depend_on_each_other_tell_less():
    slow = dataclasses.replace(SURE, independent=9.0)
    assert OrderIsRight(0.9).value(slow) == pytest.approx(0.9)
    assert (
        TopIsRight(1, 0.95)
        .describe(slow)
        .endswith("9 draws tell at most 0.9): never met, use more draws")
    )
    assert ExpectedTau(0.99)(slow)


def test_a_budget():
    votes = VOTES.judgements_by("annotator")
    assert Budget(60).value(POSTERIOR) == votes.sum() == 60
    assert Budget(60)(POSTERIOR)
    assert not Budget(61)(POSTERIOR)
    assert Budget(100, costs={1: 3.0}).value(POSTERIOR) == 60 + 2 * votes[1]
    assert not Budget(60, before=10.0)(POSTERIOR)
    assert Budget(61).describe(POSTERIOR) == "60 of 61 are spent"


def test_the_gain_of_the_best_question():
    best = float(np.max(Bald()(POSTERIOR, PAIRS, seed=0)))
    rule = GainBelow(0.1)
    assert rule.value(POSTERIOR) == pytest.approx(best, rel=1e-5)
    assert not rule(POSTERIOR)
    assert GainBelow(1.1 * best)(POSTERIOR)
    dear = GainBelow(0.1, costs=dict.fromkeys(range(4), 10.0))
    assert dear.value(POSTERIOR) == pytest.approx(best / 10, rel=1e-5)
    assert "stop below 0.1" in rule.describe(POSTERIOR)


def test_gains_are_looked_for_among_what_can_be_asked():
    gain = Bald()(POSTERIOR, PAIRS, seed=0)
    few = np.array([3, 7, 8])
    some = dataclasses.replace(POSTERIOR, pool=PAIRS.take(few))
    assert GainBelow(0.1).value(some) == pytest.approx(gain[few].max(), rel=1e-5)
    one = GainBelow(0.1, limit=1).value(some)
    assert np.isclose(gain[few], one, rtol=1e-5).any()
    assert GainBelow(0.1).value(dataclasses.replace(POSTERIOR, pool=PAIRS.take([]))) == 0
    who = np.asarray(PAIRS.annotator)[few]
    price = np.array([1.0, 2.0, 4.0, 8.0])
    priced = dataclasses.replace(some, cost=price)
    assert GainBelow(0.1).value(priced) == pytest.approx((gain[few] / price[who]).max(), rel=1e-5)
    own = GainBelow(0.1, costs=dict.fromkeys(range(4), 3.0))
    assert own.value(priced) == pytest.approx(gain[few].max() / 3, rel=1e-5)


def test_rules_together():
    either, both = OrderIsRight(0.99) | Budget(60) | Budget(70), OrderIsRight(0.99) & Budget(60)
    assert isinstance(either, AnyOf)
    assert isinstance(both, AllOf)
    assert len(either.rules) == 3  # no brackets within brackets
    assert (either(POSTERIOR), both(POSTERIOR)) == (True, False)
    assert (either(SURE), both(SURE)) == (True, True)
    assert both.describe(SURE).count("; and ") == 1


def test_the_text_of_a_rule_gives_it_back():
    """A campaign keeps its rule in its journal."""
    known = {
        kind.__name__: kind
        for kind in (AllOf, AnyOf, Budget, ExpectedAccuracy, ExpectedTau, GainBelow, OrderIsRight)
    }
    rules = [
        OrderIsRight(0.9),
        ExpectedTau(0.8),
        ExpectedAccuracy(0.9),
        Budget(100, {"ann": 2.0}),
        GainBelow(0.01, {3: 2.0}),
    ]
    for rule in [*rules, rules[0] & rules[1] | rules[3]]:
        again = eval(repr(rule), known)
        assert (again, hash(again)) == (rule, hash(rule))


def test_many_labels_that_agree_are_no_certainty():
    """Thirty labels that agree on each of 40 items: the model is sure of all, the rule is not."""
    rows = [(item, by, item % 2) for item in range(40) for by in range(30)]
    frame = pd.DataFrame(rows, columns=["i", "a", "l"])
    labels = rt.Labels.from_frame(frame, item="i", annotator="a", label="l")
    confusion = np.broadcast_to([[0.9, 0.1], [0.1, 0.9]], (1, 200, 30, 2, 2))
    draws = {"prevalence": np.full((1, 200, 2), 0.5), "confusion": confusion}
    posterior = Posterior(rt.DawidSkene(), labels, draws, np.full((1, 200), 1 / 200))
    assert posterior.responsibility().max(-1).mean() > 0.9999
    assert 0.8 < ExpectedAccuracy(0.5).value(posterior) < 0.995
    known = dict.fromkeys(range(0, 40, 2), 0) | dict.fromkeys(range(1, 40, 2), 1)
    told = dataclasses.replace(posterior, data=labels.with_truth({i: known[i] for i in range(30)}))
    rest = told.true_classes()[30:].max(-1).mean()
    assert rest > ExpectedAccuracy(0.5).value(posterior)
    assert told.true_classes()[:30].max(-1) == pytest.approx(1.0, abs=1e-5)


def test_rules_for_labels():
    """Two draws, two items, two annotators of whom the second labelled the first item only."""
    table = {"i": [0, 0, 1], "a": ["x", "y", "x"], "l": [0, 1, 1]}
    labels = rt.Labels.from_frame(table, item="i", annotator="a", label="l")
    right = np.array([[0.9, 0.6], [0.7, 0.8]])  # (draw, annotator)
    confusion = np.where(
        np.eye(2, dtype=bool), right[:, :, None, None], 1 - right[:, :, None, None]
    )[None]
    draws = {"prevalence": np.full((1, 2, 2), 0.5), "confusion": confusion}
    posterior = Posterior(rt.DawidSkene(), labels, draws, np.full((1, 2), 0.5))
    first = np.mean([0.9 * 0.4 / (0.9 * 0.4 + 0.1 * 0.6), 0.7 * 0.2 / (0.7 * 0.2 + 0.3 * 0.8)])
    by_model = posterior.responsibility().max(-1).mean()
    assert by_model == pytest.approx((max(first, 1 - first) + 0.8) / 2, rel=1e-5)
    value = ExpectedAccuracy(0.5).value(posterior)
    assert value == pytest.approx(posterior.true_classes().max(-1).mean())
    assert ExpectedAccuracy(0.99 * value)(posterior)
    assert not ExpectedAccuracy(1.001 * value)(posterior)
    assert "of the items' labels are expected to be right" in ExpectedAccuracy(0.5).describe(
        posterior
    )
    assert GainBelow(1e-9).value(posterior) > 0
    every = rt.Labels.from_frame(
        {"i": [0, 0, 1, 1], "a": [*"xyxy"], "l": [0, 1, 1, 0]}, item="i", annotator="a", label="l"
    )
    assert GainBelow(1e-9)(dataclasses.replace(posterior, data=every))  # nothing left to ask
    with raises_about(SettingError, "at_least", 0.5):
        ExpectedAccuracy(0.5)(POSTERIOR)
    with raises_about(SettingError, "stop"):
        OrderIsRight(0.5)(posterior)
    types = dataclasses.replace(SURE, draws={"reward": np.zeros((1, 200, 6, 2))})
    with raises_about(SettingError, "stop"):
        ExpectedTau(0.5)(types)

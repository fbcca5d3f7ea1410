"""The audit, against numbers computed by hand on a posterior of four draws."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import raters as rt
from raters.errors import DataError, SettingError
from tests import hand

MODEL = rt.ExtendedBTL(competence="signed", reward_scale=1.0, competence_spread=0.5)

# Two items, so the one pair is every random pair. Annotators: good, guess, bad, new.
VOTES = hand.votes(
    *[("a", "b", "good")] * 9,
    *[("b", "a", "good")] * 1,
    *[("a", "b", "guess")] * 3,
    *[("b", "a", "guess")] * 3,
    *[("b", "a", "bad")] * 8,
    *[("a", "b", "bad")] * 2,
    ("a", "b", "new"),
    annotators=["good", "guess", "bad", "new", "absent"],
)
GAP = np.array([2.0, 2.0, 2.0, 4.0])
REWARD = np.stack([GAP / 2, -GAP / 2], axis=1)
COMPETENCE = np.array(
    [
        [1.0, 0.0, -1.0, 0.5, 1.0],
        [1.2, 0.1, -0.8, 0.1, 1.0],
        [0.8, -0.1, -1.2, 0.9, 1.0],
        [1.0, 0.3, 0.1, 0.2, 1.0],
    ]
)
RESULT = hand.result(VOTES, reward=REWARD, competence=COMPETENCE)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


@pytest.fixture(scope="module")
def found() -> rt.Audit:
    return rt.audit(MODEL, RESULT)


def column(found: rt.Audit, name: str) -> dict:
    return dict(zip(found.table["annotator"].values.tolist(), found.table[name].values.tolist(), strict=True))


def test_votes(found):
    assert column(found, "votes") == {"good": 10, "guess": 6, "bad": 10, "new": 1, "absent": 0}


def test_competence_and_interval(found):
    assert column(found, "competence") == pytest.approx(
        {"good": 1.0, "guess": 0.075, "bad": -0.725, "new": 0.425, "absent": 1.0}
    )
    # Equal-tailed 90 %: the 5 % and 95 % quantiles of four draws, with linear interpolation.
    assert column(found, "competence_low")["good"] == pytest.approx(0.8 + 0.15 * 0.2)
    assert column(found, "competence_high")["good"] == pytest.approx(1.2 - 0.15 * 0.2)


def test_relative_competence_is_free_of_the_scale(found):
    expected = np.mean([row[0] / np.abs(row).mean() for row in COMPETENCE])
    assert column(found, "relative")["good"] == pytest.approx(expected)
    scaled = rt.audit(MODEL, hand.result(VOTES, reward=REWARD / 3, competence=COMPETENCE * 3))
    for name in ("relative", "accuracy", "accuracy_low", "accuracy_high", "p_guessing", "p_adversarial", "agreement"):
        assert column(scaled, name) == pytest.approx(column(found, name), nan_ok=True)


def test_accuracy(found):
    for name, competence in zip(VOTES.annotators, COMPETENCE.T, strict=True):
        expected = [sigmoid(beta * gap) for beta, gap in zip(competence, GAP, strict=True)]
        assert column(found, "accuracy")[name] == pytest.approx(np.mean(expected))
        assert column(found, "accuracy_low")[name] == pytest.approx(np.quantile(expected, 0.05))
        assert column(found, "accuracy_high")[name] == pytest.approx(np.quantile(expected, 0.95))


def test_probabilities(found):
    # σ(.1 · 2) = .5498 lies within .05 of ½; σ(.3 · 4) = .77 does not.
    assert column(found, "p_guessing") == {"good": 0.0, "guess": 0.75, "bad": 0.0, "new": 0.25, "absent": 0.0}
    assert column(found, "p_adversarial") == {"good": 0.0, "guess": 0.25, "bad": 0.75, "new": 0.0, "absent": 0.0}
    assert column(found, "p_below") == {"good": 0.0, "guess": 0.75, "bad": 1.0, "new": 0.5, "absent": 0.0}


def test_agreement_with_the_consensus(found):
    agreement = column(found, "agreement")
    assert math.isnan(agreement.pop("absent"))
    assert agreement == pytest.approx({"good": 0.9, "guess": 0.5, "bad": 0.2, "new": 1.0})


def test_verdicts(found):
    # keep costs p, drop 1 − p, review .2: p = 0 keep, .75 review (.25 > .2), 1 drop.
    assert column(found, "verdict") == {
        "good": "keep",
        "guess": "review",
        "bad": "drop",
        "new": "not enough votes",
        "absent": "not enough votes",
    }
    assert found.flagged == ["bad"]
    assert found.wrong_drops == 0.0
    assert "fewer than 5 votes" in found.rule
    assert "p = P(competence < 0.25): keep 1·p, drop 1·(1 − p), review 0.2" in found.rule


@pytest.mark.parametrize(
    ("costs", "verdict", "wrong"),
    [
        (rt.Costs(review=0.3), {"guess": "drop", "bad": "drop"}, (0.25 + 0.0) / 2),
        (rt.Costs(keep_bad=0.2, review=10.0), {"guess": "keep", "bad": "drop"}, 0.0),
        (rt.Costs(drop_good=100.0, review=0.5), {"guess": "review", "bad": "drop"}, 0.0),
        (rt.Costs(keep_bad=0.1, drop_good=3.0), {"guess": "keep", "bad": "drop"}, 0.0),
    ],
)
def test_costs_decide(costs, verdict, wrong):
    found = rt.audit(MODEL, RESULT, costs=costs)
    assert {name: column(found, "verdict")[name] for name in verdict} == verdict
    assert found.wrong_drops == pytest.approx(wrong)


def test_a_threshold_moves_verdicts():
    assert column(rt.audit(MODEL, RESULT, threshold=-10), "verdict")["bad"] == "keep"
    assert column(rt.audit(MODEL, RESULT, threshold=10), "verdict")["good"] == "drop"


def test_min_votes():
    assert column(rt.audit(MODEL, RESULT, min_votes=0), "verdict")["absent"] == "keep"
    assert set(column(rt.audit(MODEL, RESULT, min_votes=100), "verdict").values()) == {"not enough votes"}


def test_nobody_flagged():
    found = rt.audit(MODEL, RESULT, threshold=-10)
    assert found.flagged == []
    assert math.isnan(found.wrong_drops)
    assert "Nobody is dropped." in str(found)


def test_the_audit_prints_its_rule_and_risk(found):
    printed = str(found)
    assert found.rule in printed
    assert "Expected share of wrong drops: 0.0%." in printed
    assert all(name in printed for name in VOTES.annotators)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 0}, "level=0 is not possible; it must lie between 0 and 1"),
        ({"level": 90}, "level=90 is not possible"),
        ({"guess_margin": 1.5}, "guess_margin=1.5 is not possible"),
        ({"min_votes": -1}, "min_votes=-1 is not possible; it must be a whole number, at least 0"),
        ({"min_votes": 2.5}, "min_votes=2.5 is not possible"),
        ({"threshold": float("nan")}, "threshold=nan is not possible; it must be a finite number"),
        ({"threshold": "low"}, "threshold='low' is not possible; it must be a finite number"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(SettingError, match=re.escape(message)):
        rt.audit(MODEL, RESULT, **options)


@pytest.mark.parametrize("name", ["keep_bad", "drop_good", "review"])
@pytest.mark.parametrize("value", [0, -1.0, float("inf"), "much"])
def test_costs_out_of_range(name, value):
    with pytest.raises(SettingError, match=re.escape(f"{name}={value!r} is not possible; it must be a number above 0")):
        rt.Costs(**{name: value})


def test_a_model_without_competences_is_refused():
    with pytest.raises(SettingError, match=r"BTL\(.*has no competences to audit; fit ExtendedBTL\(\)"):
        rt.audit(rt.BTL(), hand.result(VOTES, reward=REWARD))
    with pytest.raises(SettingError, match=r"no competences to audit"):
        rt.audit(rt.BTL(), RESULT)
    with pytest.raises(SettingError, match=r"no draws of \['competence'\]"):
        rt.audit(MODEL, hand.result(VOTES, reward=REWARD))


def test_a_class_or_a_table_is_refused():
    with pytest.raises(SettingError, match=r"it is ExtendedBTL; write rt.ExtendedBTL\(\)"):
        rt.audit(rt.ExtendedBTL, RESULT)
    with pytest.raises(DataError, match=r"expected a result of rt.fit.*this is a Comparisons"):
        rt.audit(MODEL, VOTES)


def test_whole_numbers_as_names():
    votes = hand.votes(("a", "b", 7), ("a", "b", 11))
    found = rt.audit(MODEL, hand.result(votes, reward=REWARD, competence=COMPETENCE[:, [2, 0]]), min_votes=1)
    assert found.flagged == [7]


def test_drop_refits_without_the_flagged(found):
    result = rt.drop(MODEL, VOTES, found, rt.PGEM(draws=20, starts=1), seed=0, progress=False)
    assert result.posterior["annotator"].values.tolist() == ["good", "guess", "new", "absent"]
    assert rt.Comparisons.from_result(result).num_votes == VOTES.num_votes - 10


def test_dropping_everyone_is_refused():
    everyone = rt.audit(MODEL, RESULT, threshold=10, min_votes=0)
    with pytest.raises(DataError, match="would leave no vote"):
        rt.drop(MODEL, VOTES, everyone, rt.PGEM(draws=20, starts=1), seed=0, progress=False)

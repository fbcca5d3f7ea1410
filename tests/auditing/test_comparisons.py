"""The audit, against numbers computed by hand on a posterior of four draws."""

from __future__ import annotations

import math

import numpy as np
import pytest

import raters as rt
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
RESULT = hand.result(VOTES, enough=True, reward=REWARD, competence=COMPETENCE)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


@pytest.fixture(scope="module")
def audit() -> rt.auditing.Audit:
    return rt.audit(MODEL, RESULT, reference="crowd")


def column(audit: rt.auditing.Audit, name: str) -> dict:
    return dict(
        zip(
            audit.table["annotator"].values.tolist(), audit.table[name].values.tolist(), strict=True
        )
    )


def test_competence_and_interval(audit):
    assert column(audit, "competence") == pytest.approx(
        {"good": 1.0, "guess": 0.075, "bad": -0.725, "new": 0.425, "absent": 1.0}
    )
    # Equal-tailed 90 %: the 5 % and 95 % quantiles of four values, each a quarter of the draws.
    assert column(audit, "competence_low")["good"] == pytest.approx(0.8)
    assert column(audit, "competence_high")["good"] == pytest.approx(1.2)


def test_accuracy(audit):
    for name, competence in zip(VOTES.annotators, COMPETENCE.T, strict=True):
        expected = [sigmoid(beta * gap) for beta, gap in zip(competence, GAP, strict=True)]
        assert column(audit, "accuracy")[name] == pytest.approx(np.mean(expected))
        # Each of the four values is a quarter of the draws.
        assert column(audit, "accuracy_low")[name] == pytest.approx(min(expected))
        assert column(audit, "accuracy_high")[name] == pytest.approx(max(expected))


def test_probabilities(audit):
    # σ(.1 · 2) = .5498 lies within .05 of ½; σ(.3 · 4) = .77 does not.
    assert column(audit, "p_guessing") == {
        "good": 0.0,
        "guess": 0.75,
        "bad": 0.0,
        "new": 0.25,
        "absent": 0.0,
    }
    assert column(audit, "p_adversarial") == {
        "good": 0.0,
        "guess": 0.25,
        "bad": 0.75,
        "new": 0.0,
        "absent": 0.0,
    }
    assert column(audit, "p_below") == {
        "good": 0.0,
        "guess": 0.75,
        "bad": 1.0,
        "new": 0.5,
        "absent": 0.0,
    }


def test_agreement_with_the_consensus(audit):
    agreement = column(audit, "agreement")
    assert math.isnan(agreement.pop("absent"))
    assert agreement == pytest.approx({"good": 0.9, "guess": 0.5, "bad": 0.2, "new": 1.0})


def test_verdicts(audit):
    # keep costs p, drop 1 − p, review .2: p = 0 keep, .75 review (.25 > .2), 1 drop.
    assert column(audit, "verdict") == {
        "good": "keep",
        "guess": "review",
        "bad": "drop",
        "new": "too few judgements",
        "absent": "too few judgements",
    }
    assert audit.flagged == ["bad"]
    assert audit.wrong_drops == 0.0
    assert "fewer than 5 votes" in audit.rule
    assert "p = P(competence < 0.25): keep 1·p, drop 1·(1 − p), review 0.2" in audit.rule


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
    audit = rt.audit(MODEL, RESULT, costs=costs, reference="crowd")
    assert {name: column(audit, "verdict")[name] for name in verdict} == verdict
    assert audit.wrong_drops == pytest.approx(wrong)


def test_drop_refits_without_the_flagged(audit):
    result = rt.auditing.drop(
        MODEL, VOTES, audit, rt.PGEM(draws=0, starts=1), seed=0, progress=False
    )
    assert result.posterior["annotator"].values.tolist() == ["good", "guess", "new", "absent"]
    assert rt.Comparisons.from_result(result).num_votes == VOTES.num_votes - 10

"""Section of a report on position bias: its sentence, table, facts and figure."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import raters as rt
from raters.families.comparisons.position import bias
from raters.kinds import AuditContext
from raters.program import Program
from tests import hand
from tests.auditing.test_position import BIAS, MODEL, RESULT, REWARD, VOTES


def context(result=RESULT, model=MODEL, audited: bool = True) -> AuditContext:
    audit = rt.audit(model, result, reference="crowd") if audited else None
    return AuditContext(Program(model, VOTES), result, audit, 0.9)


def test_the_section_says_who_favours_the_first_most():
    section = bias(context())
    assert (section.key, section.title) == ("position_bias", "Position bias")
    assert section.sentence.startswith(
        "Between two equal items the one shown first is chosen 55% of the time (90% interval 50%"
        " to 63%), as a mean over the annotators. Of all votes, 50% are for the item shown first."
    )
    assert (
        "keen favours the item shown first most: of two equal items the first is chosen 8"
        in section.sentence
    )
    assert "late favours the item shown second most" in section.sentence
    assert section.sentence.endswith(
        "Of 3 annotators who voted, 1 is biased with 90% probability or more, by 0.05 or more from"
        " one half."
    )
    (table,) = section.tables
    assert [row["annotator"] for row in table.rows] == ["absent", "keen", "fair", "late"]
    assert set(section.files) == {"position_bias.png"}
    assert section.facts["observed_first_share"] == 0.5
    share = (1 / (1 + np.exp(-BIAS)))[:, :3].mean()
    assert section.facts["first_share"] == pytest.approx(share)


def test_nobody_is_said_to_favour_a_side_they_do_not():
    toward_second = hand.result(
        VOTES,
        enough=True,
        reward=REWARD,
        competence=np.ones((4, 4)),
        position_bias=-np.abs(BIAS) - 0.1,
        position_bias_mean=np.zeros(4),
        position_bias_spread=np.ones(4),
    )
    sentence = bias(context(toward_second)).sentence
    assert "shown first most" not in sentence
    assert "keen favours the item shown second most" in sentence


def test_a_bias_that_all_share_has_a_sentence_and_no_table():
    result = hand.result(VOTES, reward=REWARD, position_bias_mean=np.zeros(4))
    posterior = result["posterior"].to_dataset().drop_vars("position_bias_mean")
    posterior["position_bias"] = (("chain", "draw"), np.log([[3.0] * 4]))
    result["posterior"] = posterior
    model = rt.BTL(reward_scale=1.0, position_bias=True)
    section = bias(context(result, model, audited=False))
    assert section.sentence == (
        "Between two equal items the one shown first is chosen 75% of the time (90% interval 75%"
        " to 75%). Of all votes, 50% are for the item shown first. The model separates this bias"
        " from the rewards of the items."
    )
    assert section.tables == ()
    assert section.files == {}


def test_in_one_order_nothing_tells_the_bias_from_the_rewards():
    """Each item always on the same side of the same others, in place of the random order."""
    first, second = np.asarray(VOTES.first), np.asarray(VOTES.second)
    sides = {"first": np.minimum(first, second), "second": np.maximum(first, second)}
    votes = dataclasses.replace(VOTES, **sides)
    given = context()
    given = dataclasses.replace(given, program=Program(MODEL, votes))
    sentence = bias(given).sentence
    assert "cannot tell whether this is a bias" in sentence
    assert "separates" not in sentence
    assert "favours" not in sentence


def test_it_is_in_the_report_and_in_no_other():
    facts = rt.report(MODEL, RESULT, rt.audit(MODEL, RESULT, reference="crowd")).facts["sections"]
    assert list(facts) == ["items", "position_bias"]
    plain = rt.ExtendedBTL(competence="signed", reward_scale=1.0, competence_spread=0.5)
    result = hand.result(VOTES, enough=True, reward=REWARD, competence=np.ones((4, 4)))
    assert list(
        rt.report(plain, result, rt.audit(plain, result, reference="crowd")).facts["sections"]
    ) == ["items"]


def test_it_is_in_every_form_of_the_report():
    report = rt.report(MODEL, RESULT, rt.audit(MODEL, RESULT, reference="crowd"))
    assert "### Position bias" in report.to_markdown()
    assert "Between two equal items" in report.to_html()

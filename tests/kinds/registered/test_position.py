"""Section of a report on position bias: its finding, table and figure."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import raters as rt
from raters.kinds import AuditContext
from raters.kinds.comparisons.audit import position
from raters.program import Program
from tests import hand
from tests.auditing.test_position import BIAS, MODEL, RESULT, REWARD, VOTES
from tests.reporting.test_report import check_forms


def context(result=RESULT, model=MODEL, audited: bool = True) -> AuditContext:
    audit = rt.audit(model, result, reference="crowd") if audited else None
    return AuditContext(Program(model, VOTES), result, audit, 0.9)


def test_the_section_has_the_bias_of_the_crowd_and_of_each():
    section = position(context())
    crowd, judges = section.findings
    assert (crowd["code"], crowd["observed"]) == ("position", 0.5)
    assert crowd["first_share"] == pytest.approx((1 / (1 + np.exp(-BIAS)))[:, :3].mean())
    assert [round(crowd[f"first_share_{end}"], 2) for end in ("low", "high")] == [0.5, 0.63]
    assert judges["biased"] == 1
    assert section.table["annotator"].tolist() == ["absent", "keen", "fair", "late"]
    report = rt.report(MODEL, RESULT, rt.audit(MODEL, RESULT, reference="crowd"))
    assert list(report.facts["sections"]) == ["items", "position_bias", "leading_annotator"]
    check_forms(report)


def test_a_bias_that_all_share_has_no_table():
    result = hand.result(VOTES, reward=REWARD, position_bias_mean=np.zeros(4))
    posterior = result["posterior"].to_dataset().drop_vars("position_bias_mean")
    posterior["position_bias"] = (("chain", "draw"), np.log([[3.0] * 4]))
    result["posterior"] = posterior
    model = rt.BTL(reward_scale=1.0, position_bias=True)
    section = position(context(result, model, audited=False))
    assert section.findings[0]["first_share"] == pytest.approx(0.75)
    assert section.table is None


def test_in_one_order_nothing_tells_the_bias_from_the_rewards():
    """Each item always on the same side of the same others, in place of the random order."""
    first, second = np.asarray(VOTES.first), np.asarray(VOTES.second)
    sides = {"first": np.minimum(first, second), "second": np.maximum(first, second)}
    votes = dataclasses.replace(VOTES, **sides)
    given = dataclasses.replace(context(), program=Program(MODEL, votes))
    assert position(given).findings[0]["code"] == "one_order"

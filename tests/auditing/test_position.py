"""Position bias in an audit, against numbers computed by hand on a posterior of four draws."""

from __future__ import annotations

import math

import numpy as np
import pytest

import raters as rt
from tests import hand

MODEL = rt.ExtendedBTL(
    competence="signed", reward_scale=1.0, competence_spread=0.5, position_bias=True
)
VOTES = hand.ordered_votes(
    *[("a", "b", "first", "keen")] * 8,
    *[("b", "a", "second", "fair")] * 6,
    *[("a", "b", "second", "late")] * 2,
    annotators=["keen", "fair", "late", "absent"],
)
# σ(ln 3) = .75, σ(ln 9) = .9, σ(ln 11/9) = .55, σ(−ln 3) = .25.
BIAS = np.log(
    [[3.0, 1.0, 1 / 3, 9.0], [9.0, 1.0, 1.0, 9.0], [9.0, 1.0, 1 / 3, 9.0], [3.0, 1.3, 1 / 3, 9.0]]
)
REWARD = np.array([[1.0, -1.0]] * 4)
RESULT = hand.result(
    VOTES,
    enough=True,
    reward=REWARD,
    competence=np.ones((4, 4)),
    position_bias=BIAS,
    position_bias_mean=np.zeros(4),
    position_bias_spread=np.ones(4),
)


def column(audit: rt.auditing.Audit, name: str) -> list[float]:
    return audit.table[name].values.tolist()


def test_the_audit_has_the_bias_of_each_annotator():
    audit = rt.audit(MODEL, RESULT, reference="crowd")
    last = 1.3 / 2.3
    assert column(audit, "first_share") == pytest.approx(
        [(0.75 + 0.9) / 2, (3 * 0.5 + last) / 4, (3 * 0.25 + 0.5) / 4, 0.9]
    )
    assert column(audit, "position_bias") == pytest.approx(
        [math.log(27) / 2, math.log(1.3) / 4, -math.log(3) * 3 / 4, math.log(9)]
    )
    assert column(audit, "first_share_low") == pytest.approx([0.75, 0.5, 0.25, 0.9])
    assert column(audit, "first_share_high") == pytest.approx([0.9, last, 0.5, 0.9])
    assert column(audit, "position_bias_high")[0] == pytest.approx(math.log(9))
    assert column(audit, "p_position_bias") == [1.0, 0.25, 0.75, 1.0]
    assert "p_position_bias" in str(audit)

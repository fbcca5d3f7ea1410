"""Ranking of a report: the crowd's, or the true one where known orders tell of it."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import raters as rt
from raters.families.comparisons import sections
from raters.fitting.result import program_of
from raters.kinds import AuditContext
from tests.auditing.test_orders import MODEL, misled  # noqa: F401 - a fixture


def ranked(result, audit):
    context = AuditContext(program_of(MODEL, result), result, audit, 0.9)
    section = sections.ranking(context)
    rows = {row["item"]: row for row in section.tables[0].rows}
    return section, rows


@pytest.mark.slow
def test_ranking_is_the_true_one_where_orders_are_known(misled, tmp_path):  # noqa: F811
    _, result, truth = misled
    by_crowd, crowd = ranked(result, rt.audit(MODEL, result))
    anchored, true = ranked(result, rt.audit(MODEL, result, truth))
    assert "by this model" in by_crowd.sentence
    assert "errors that annotators share" in anchored.sentence
    assert "true reward" in anchored.tables[0].caption
    assert crowd[0]["rank"] < crowd[5]["rank"]
    assert true[0]["rank"] > true[5]["rank"]
    width = np.mean([row["reward_high"] - row["reward_low"] for row in crowd.values()])
    assert np.mean([row["reward_high"] - row["reward_low"] for row in true.values()]) > width
    anchored.files["rewards.png"](tmp_path / "rewards.png")
    height, wide = plt.imread(tmp_path / "rewards.png").shape[:2]
    assert min(height, wide) > 100

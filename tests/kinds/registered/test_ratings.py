"""Ratings in audits, agreement, reports, and questions."""

from __future__ import annotations

import numpy as np
import pytest

import raters as rt
from raters.auditing.verdicts import DIFFERS
from raters.fitting.result import program_of
from raters.kinds import AuditContext
from raters.kinds import ratings as family
from tests.reporting.test_report import check_forms

MODEL = rt.ManyFacet()


@pytest.fixture(scope="module")
def generated():
    return rt.datasets.rating_crowd(60, 8, 4, 4, seed=5, guessers=0.125, adversaries=0.125)


@pytest.fixture(scope="module")
def result(generated, fit_quietly):
    return fit_quietly(MODEL, generated.ratings, rt.PGEM(draws=300))


@pytest.fixture(scope="module")
def audit(result):
    return rt.audit(MODEL, result)


def test_nobody_is_dropped_for_disagreement_alone(audit, generated) -> None:
    table, kind = audit.table.to_dataframe(), np.asarray(generated.truth["kind"])
    assert audit.anchor.is_missing
    assert "nothing here tells whether the crowd is right" in audit.anchor.sentence
    assert not audit.flagged
    assert (table["verdict"][kind == "adversary"] == DIFFERS).all()
    assert (table["p_adversarial"][kind == "adversary"] > 0.9).all()
    assert not (table["verdict"][kind == "competent"] == DIFFERS).any()


@pytest.fixture(scope="module")
def anchored(result, generated):
    return rt.audit(MODEL, result, dict(enumerate(generated.truth["reward"][:20].tolist())))


def test_known_qualities_tell_who_is_wrong(anchored, generated) -> None:
    table, kind = anchored.table.to_dataframe(), np.asarray(generated.truth["kind"])
    assert anchored.anchor.sentence == "Annotators were measured against 190 known truths."
    assert set(np.flatnonzero(kind == "adversary")) <= set(anchored.flagged)
    assert (table["p_adversarial"][kind == "adversary"] > 0.9).all()
    assert (table["accuracy"][kind == "competent"] > 0.6).all()
    assert not (table["verdict"][kind == "competent"] == "drop").any()
    calibration = anchored.calibration
    order = np.argsort(generated.truth["reward"][:20])
    assert calibration.p_above(int(order[-1]), int(order[0])) > 0.95
    if anchored.settling is not None:
        assert set(anchored.settling.questions["item"]) <= set(range(20, 60))


def test_bias_is_in_levels_beside_the_average_annotator(audit, generated) -> None:
    table = audit.table.to_dataframe()
    assert float(table["bias"].mean()) == pytest.approx(0, abs=1e-6)
    competent = np.asarray(generated.truth["kind"]) == "competent"
    severity = generated.truth["severity"][competent]
    assert np.corrcoef(table["bias"][competent], severity)[0, 1] < -0.8
    assert table["correlation"].between(-1, 1).all()
    assert table["levels_used"].between(1, 4).all()


def test_fair_ratings_lie_on_the_scale(audit, generated) -> None:
    items = audit.tables["item_parameters"].to_dataframe()
    assert items["fair_rating_low"].min() >= 1
    assert items["fair_rating_high"].max() <= 4
    assert (items["fair_rating_low"] <= items["fair_rating"]).all()
    reward = generated.truth["reward"]
    fair, mean = (np.corrcoef(items[name], reward)[0, 1] for name in ("fair_rating", "mean_rating"))
    assert fair > mean
    shares = audit.tables["levels"]["share"]
    np.testing.assert_allclose(shares.sum("level"), 1)


def test_sections_rank_the_items_and_name_severe_annotators(audit, result) -> None:
    context = AuditContext(program_of(MODEL, result), result, audit, 0.9)
    ranking = family.ranking(context).table
    assert ranking["rank"].tolist() == list(range(1, 61))
    fair = audit.tables["item_parameters"]["fair_rating"].sel(item=ranking["item"].values)
    np.testing.assert_allclose(ranking["fair_rating"], fair)
    (severity,) = family.severity(context).findings
    bias = audit.table["bias"].to_series()
    assert (severity["severe"], severity["lenient"]) == (bias.idxmin(), bias.idxmax())
    check_forms(rt.report(MODEL, result, audit))

"""Ratings in audits, agreement, reports, and questions."""

from __future__ import annotations

import numpy as np
import pytest

import raters as rt
from raters.auditing.verdicts import DIFFERS
from raters.families import ratings as family
from raters.fitting.result import program_of
from raters.kinds import AuditContext
from tests.refusals import raises_about
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


def test_with_the_crowd_taken_to_be_right_adversaries_are_dropped(result, generated) -> None:
    audit = rt.audit(MODEL, result, reference="crowd")
    kind = np.asarray(generated.truth["kind"])
    assert set(np.flatnonzero(kind == "adversary")) <= set(audit.flagged)


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


@pytest.mark.exhaustive
def test_a_trusted_annotator_tells_the_order(result, generated) -> None:
    kind = np.asarray(generated.truth["kind"])
    good, bad = int(np.argmax(kind == "competent")), int(np.argmax(kind == "adversary"))
    audit = rt.audit(MODEL, result, reference=[good])
    assert audit.anchor.told == audit.anchor.known > 0
    assert audit.table["accuracy"].values[good] > 0.95
    assert audit.table["verdict"].values[bad] == "drop"


def test_truths_of_other_items_are_refused(result) -> None:
    with pytest.raises(rt.errors.DataError, match="items that were judged"):
        rt.audit(MODEL, result, {"no item": 3, 1: 2})
    with pytest.raises(rt.errors.DataError, match="holds no known truth"):
        rt.audit(MODEL, result, {1: 2})


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


def test_agreement_of_ratings_is_ordinal() -> None:
    ratings = rt.datasets.anesthesia("ratings")
    labels = rt.Labels.from_frame(
        rt.datasets.anesthesia(), item="patient", annotator="rater", label="rating"
    )
    found, plain = rt.agreement(ratings), rt.agreement(labels)
    assert list(found.index) == ["observed_agreement", "krippendorff_alpha"]
    alpha = rt.agreement(labels, metric="ordinal").loc["krippendorff_alpha", "estimate"]
    assert found.loc["krippendorff_alpha", "estimate"] == pytest.approx(alpha)
    assert found.loc["observed_agreement", "estimate"] == pytest.approx(
        plain.loc["observed_agreement", "estimate"]
    )
    assert len(rt.agreement(ratings, metric="nominal")) == 4


def test_predictions_and_questions(result, generated) -> None:
    ratings = generated.ratings
    predicted = rt.predict(MODEL, result, ratings.rows(slice(0, 5)))
    np.testing.assert_allclose(predicted.sum("answer"), 1, rtol=1e-5)
    pool = rt.Candidates.of(ratings, limit=50, seed=0)
    chosen = rt.suggest(MODEL, result, pool, target="reward", batch_size=2)
    assert chosen.sizes["suggestion"] == 2


def test_a_model_of_ratings_is_audited_as_such(fit_quietly) -> None:
    limits = rt.kinds.AuditLimits(0.25, 0.9, 0.05)
    from raters.auditing import ratings as auditing

    responses = rt.GradedResponses.from_wide(
        {"who": [1, 2, 3], "q1": [0, 1, 1], "q2": [0, 0, 1]}, person="who"
    )
    fitted = fit_quietly(rt.models.GradedResponse(), responses, rt.PGEM(draws=50))
    with raises_about(rt.errors.SettingError, "model"):
        auditing.quantities(program_of(rt.models.GradedResponse(), fitted), fitted, limits)
    audit = rt.audit(rt.models.GradedResponse(), fitted)
    items = audit.tables["item_parameters"]
    assert {"difficulty", "difficulty_1", "mean_level"} <= set(items)
    assert list(audit.table["mean_level"].values) == [0.0, 0.5, 1.0]

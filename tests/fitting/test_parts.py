"""Fits of several kinds of judgement, and each part as a result of its own model."""

from __future__ import annotations

import warnings

import arviz as az
import numpy as np
import pytest
import xarray as xr

import raters as rt
from tests.several import OF_LABELS, TIED, FromPrior, labelled, walks

SHORT = FromPrior()


@pytest.fixture(scope="module")
def both() -> rt.judgements.Together:
    return labelled()


@pytest.fixture(scope="module")
def result(both, quiet) -> xr.DataTree:
    return quiet(OF_LABELS, both, SHORT)


@pytest.fixture(scope="module")
def of_walks(quiet) -> xr.DataTree:
    return quiet(TIED, walks().together, SHORT)


@pytest.fixture(scope="module")
def quiet():
    """A fit that does not mind being short."""

    def fitted(model, data, backend, seed=0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return rt.fit(model, data, backend, seed=seed, progress=False)

    return fitted


@pytest.mark.slow
def test_draws_are_those_of_the_joint_posterior(result) -> None:
    model, labels = rt.fitting.part(OF_LABELS, result, "labels")
    assert model == rt.models.OneCoin()
    for name in ("accuracy", "prevalence"):
        np.testing.assert_array_equal(
            labels.posterior[name].values, result.posterior[f"labels.{name}"].values
        )
    assert labels.posterior["accuracy"].dims == ("chain", "draw", "annotator")
    assert labels.attrs["backend"] == result.attrs["backend"]


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")
def test_log_likelihoods_are_by_part(result) -> None:
    table = result["log_likelihood"]
    assert table["labels.label"].dims == ("chain", "draw", "item")
    assert table["votes.outcome"].dims == ("chain", "draw", "comparison")
    again = rt.log_likelihood(OF_LABELS, result)["log_likelihood"]
    np.testing.assert_array_equal(again["votes.outcome"], table["votes.outcome"])
    by = rt.log_likelihood(*rt.fitting.part(OF_LABELS, result, "votes"), by="annotator")
    np.testing.assert_allclose(
        by["log_likelihood"]["outcome"].sum("annotator"),
        table["votes.outcome"].sum("comparison"),
        rtol=1e-5,
    )
    assert np.isfinite(az.loo(result, var_name="labels.label").elpd)


def test_classes_are_those_of_the_part(result) -> None:
    part = rt.fitting.part(OF_LABELS, result, "labels")
    classes = part.result["classes"]["responsibility"]
    expected = rt.predict(*part).mean(("chain", "draw"))
    np.testing.assert_allclose(classes.values, expected.values, atol=1e-5)


@pytest.mark.slow
def test_a_file_has_all_of_it(result, both, tmp_path) -> None:
    result.to_netcdf(tmp_path / "both.nc")
    again = xr.open_datatree(tmp_path / "both.nc")
    model = rt.fitting.result.model_of(again)
    assert model == OF_LABELS
    rt.testing.check_result(again, model, both)
    before, after = (
        rt.predict(*rt.fitting.part(OF_LABELS, one, "votes")) for one in (result, again)
    )
    xr.testing.assert_equal(before, after)
    again.close()


def test_everybody_has_one_verdict(result) -> None:
    audit = rt.audit(OF_LABELS, result, min_judgements=0)
    table = audit.table
    assert table["verdict"].dims == ("annotator",)
    number, below = (
        np.stack([audit.tables[name][column].values for name in ("labels", "votes")])
        for column in ("judgements", "p_below")
    )
    assert table["judgements"].values.tolist() == number.sum(0).tolist()
    expected = 1 - (number * below).sum(0) / number.sum(0)
    np.testing.assert_allclose(table["p_above"].values, expected)
    np.testing.assert_allclose(table["p_below"].values, 1 - expected)
    assert {"labels", "votes", "labels.confusion"} <= set(audit.tables)
    assert "P(labels.competence < 0.25) and P(votes.competence < 0.25)" in audit.rule
    assert "verdict" in str(audit)


def test_the_parts_of_an_audit_are_audits_of_the_parts(of_walks) -> None:
    audit = rt.audit(TIED, of_walks, reference="crowd")
    own = rt.audit(*rt.fitting.part(TIED, of_walks, "shown"), reference="crowd")
    np.testing.assert_allclose(audit.tables["shown"]["rationality"], own.table["rationality"])
    np.testing.assert_allclose(audit.tables["shown"]["p_below"], own.table["p_below"])
    assert set(audit.table["verdict"].values) <= {"keep", "review", "drop", "too few draws"}

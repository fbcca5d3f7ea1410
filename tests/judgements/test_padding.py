"""Fits of padded data: the same draws as without padding, the prior where there is nothing else,
and no new compilation."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import raters as rt
from raters.fitting.result import data_of

SIGNED = rt.ExtendedBTL(competence="signed", reward_scale=1.0)
GIBBS = rt.PGGibbs(draws=3, warmup=2, chains=2)
MODE = rt.PGEM(draws=0, starts=1)


@pytest.fixture(scope="module")
def tastes():
    """100 votes of 10 annotators of two types."""
    return rt.datasets.preference_types(
        num_items=4, num_annotators=10, votes_each=10, num_types=2, seed=0
    ).votes


def counted(data):
    """With a count for each row: the samplers then take the same random numbers with padding and
    without."""
    return data if data.count is not None else data.padded(len(data.annotator))


CASES = {
    "ExtendedBTL": (SIGNED, "tiny"),
    "MixtureBTL": (rt.MixtureBTL(num_types=2), "tastes"),
    "DawidSkene": (rt.DawidSkene(), "labelled"),
}


@pytest.mark.slow
@pytest.mark.parametrize("backend", [GIBBS, MODE], ids=["PGGibbs", "PGEM"])
@pytest.mark.parametrize(
    "case", ["ExtendedBTL", pytest.param("MixtureBTL", marks=pytest.mark.exhaustive), "DawidSkene"]
)
def test_padding_changes_no_draw(case, backend, request, fit_quietly):
    model, name = CASES[case]
    data = counted(request.getfixturevalue(name))
    bare, padded = (fit_quietly(model, rows, backend) for rows in (data, data.padded(128)))
    for site in bare.posterior.data_vars:
        np.testing.assert_allclose(
            padded.posterior[site], bare.posterior[site], rtol=1e-4, atol=1e-6, err_msg=site
        )
    rows = len(data.annotator)
    log_likelihood = padded.log_likelihood[model.observed]
    expected = bare.log_likelihood[model.observed]
    np.testing.assert_allclose(log_likelihood[..., :rows], expected, rtol=1e-3, atol=1e-5)
    assert (
        log_likelihood.values[..., rows:] == 0
    ).all() or log_likelihood.shape == bare.log_likelihood[model.observed].shape
    again = data_of(padded)
    assert dataclasses.fields(again) == dataclasses.fields(data.padded(128))
    assert np.array_equal(again.count, data.padded(128).count)
    assert again.unpadded().num_units == data.num_units

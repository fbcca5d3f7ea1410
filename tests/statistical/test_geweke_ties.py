"""Geweke's joint test of the Gibbs kernels of votes with ties, covariates and strata, with errors
put in on purpose."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest

import raters as rt
from raters.distributions.ties import RaoKupper
from raters.inference.polya_gamma import conditionals
from raters.inference.polya_gamma.conditionals import Observation
from tests.statistical.joint import BOUND, cases, short, worst

_KERNELS = {
    "Rao and Kupper": rt.ExtendedBTL(competence="signed", ties="rao-kupper"),
    "Rao and Kupper, of annotators": rt.BTL(ties="rao-kupper", tie_propensity="annotator"),
}


@pytest.mark.parametrize("kernel", cases(_KERNELS, {"Rao and Kupper"}))
def test_kernel_of_ties_leaves_the_joint_distribution_invariant(kernel: str, singles) -> None:
    result = short(_KERNELS[kernel], singles.with_ties())
    assert worst(result) < BOUND, str(result["z"].to_series())


@pytest.mark.exhaustive
@pytest.mark.parametrize("term", ["covariates", "strata"])
def test_kernel_of_further_terms_leaves_the_joint_distribution_invariant(
    term: str, singles
) -> None:
    asked = singles.with_features(np.random.default_rng(0).normal(size=(4, 1)))
    code = (np.arange(singles.num_rows) % 2).astype(np.int32)
    asked = dataclasses.replace(asked, stratum=code, strata=("code", "talk"))
    model = rt.ExtendedBTL(competence="signed", **{term: True})
    result = short(model, asked)
    assert worst(result) < BOUND, str(result["z"].to_series())


def _ties_as_wins(fn: RaoKupper, value, classes=None) -> Observation:
    """A tie taken as a vote for the first side alone."""
    read = _READ(fn, value, classes)
    only = jax.numpy.stack([read.votes[0], read.votes[1] * (value == 0)])
    return read._replace(votes=only, kappa=only * jax.numpy.array([[0.5], [-0.5]]))


def _without_threshold(fn: RaoKupper, value, classes=None) -> Observation:
    """Both logistic likelihoods at the log-odds themselves."""
    read = _READ(fn, value, classes)
    return read._replace(shift=0 * read.shift)


_READ = conditionals.observation.dispatch(RaoKupper)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [_ties_as_wins, _without_threshold])
def test_injected_error_in_a_kernel_of_ties_is_caught(wrong, singles) -> None:
    conditionals.observation.register(RaoKupper, wrong)
    jax.clear_caches()
    try:
        result = short(_KERNELS["Rao and Kupper"], singles.with_ties(), chains=300)
    finally:
        conditionals.observation.register(RaoKupper, _READ)
        jax.clear_caches()
    assert worst(result) > BOUND

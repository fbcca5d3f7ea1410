"""Geweke's joint test of the Gibbs kernels of votes with ties, covariates and strata, with errors
put in on purpose."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest
import xarray as xr

import raters as rt
from raters.checking import geweke
from raters.distributions.ties import Davidson, RaoKupper
from raters.inference.polya_gamma import conditionals
from raters.inference.polya_gamma.conditionals import Observation

# False-alarm rate 1e-4 for each statistic under Student's t with 78 degrees of freedom.
_BOUND = 4.2
_KERNELS = {
    "Davidson": rt.BTL(ties="davidson", position_bias=True),
    "Davidson, of annotators": rt.ExtendedBTL(
        competence="unit", ties="davidson", tie_propensity="annotator"
    ),
    "Rao and Kupper": rt.ExtendedBTL(competence="signed", ties="rao-kupper"),
    "Rao and Kupper, of annotators": rt.BTL(ties="rao-kupper", tie_propensity="annotator"),
}

# Kernels of parts that others here have, and of sets, whose like runs at every change.
_EXHAUSTIVE = {
    "Davidson",
    "Davidson, of annotators",
    "Rao and Kupper, of annotators",
    "utilities twice as large",
}


def _cases(names) -> list:
    """The cases of a test, of which CI leaves some to `make test-all`."""
    return [
        pytest.param(name, marks=pytest.mark.exhaustive) if name in _EXHAUSTIVE else name
        for name in names
    ]


def _of_ties(kernel: str, singles: rt.Comparisons) -> xr.Dataset:
    """The test with as few and as short chains as it takes."""
    asked = singles.with_ties()
    return geweke(_KERNELS[kernel], asked, seed=1, chains=80, sweeps=15, prior_draws=30_000)


def _worst(result: xr.Dataset) -> float:
    return float(np.abs(result["z"]).max())


@pytest.mark.parametrize("kernel", _cases(_KERNELS))
def test_kernel_of_ties_leaves_the_joint_distribution_invariant(kernel: str, singles) -> None:
    result = _of_ties(kernel, singles)
    assert _worst(result) < _BOUND, str(result["z"].to_series())


@pytest.mark.exhaustive
@pytest.mark.parametrize("term", ["covariates", "strata"])
def test_kernel_of_further_terms_leaves_the_joint_distribution_invariant(
    term: str, singles
) -> None:
    asked = singles.with_features(np.random.default_rng(0).normal(size=(4, 1)))
    code = (np.arange(singles.num_rows) % 2).astype(np.int32)
    asked = dataclasses.replace(asked, stratum=code, strata=("code", "talk"))
    model = rt.ExtendedBTL(competence="signed", **{term: True})
    result = geweke(model, asked, seed=1, chains=80, sweeps=15, prior_draws=30_000)
    assert _worst(result) < _BOUND, str(result["z"].to_series())


def _ties_as_wins(fn: RaoKupper, value, classes=None) -> Observation:
    """A tie taken as a vote for the first side alone."""
    read = _READ[RaoKupper](fn, value, classes)
    only = jax.numpy.stack([read.votes[0], read.votes[1] * (value == 0)])
    return read._replace(votes=only, kappa=only * jax.numpy.array([[0.5], [-0.5]]))


def _without_threshold(fn: RaoKupper, value, classes=None) -> Observation:
    """Both logistic likelihoods at the log-odds themselves."""
    read = _READ[RaoKupper](fn, value, classes)
    return read._replace(shift=0 * read.shift)


def _whole_utilities(fn: Davidson, value, classes=None) -> Observation:
    """Utilities x and −x in place of x/2 and −x/2."""
    read = _READ[Davidson](fn, value, classes)
    return read._replace(logits=read.logits.at[:, ::2].multiply(2))


_READ = {kind: conditionals.observation.dispatch(kind) for kind in (Davidson, RaoKupper)}
_ERRORS = {
    "a tie is a win of the first side": ("Rao and Kupper", RaoKupper, _ties_as_wins),
    "no threshold": ("Rao and Kupper", RaoKupper, _without_threshold),
    "utilities twice as large": ("Davidson", Davidson, _whole_utilities),
}


@pytest.mark.parametrize("error", _cases(_ERRORS))
def test_injected_error_in_a_kernel_of_ties_is_caught(error: str, singles) -> None:
    kernel, kind, wrong = _ERRORS[error]
    conditionals.observation.register(kind, wrong)
    jax.clear_caches()
    try:
        result = _of_ties(kernel, singles)
    finally:
        conditionals.observation.register(kind, _READ[kind])
        jax.clear_caches()
    assert _worst(result) > _BOUND

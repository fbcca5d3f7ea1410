"""Geweke's joint test of the Gibbs kernels of votes with ties, covariates and strata, with errors
put in on purpose."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest

import raters as rt
from raters.distributions.ties import Davidson, RaoKupper
from raters.inference.polya_gamma import conditionals
from raters.inference.polya_gamma.conditionals import Observation
from tests.statistical.joint import BOUND, cases, short, worst

_KERNELS = {
    "Davidson": rt.BTL(ties="davidson", position_bias=True),
    "Davidson, of annotators": rt.ExtendedBTL(
        competence="unit", ties="davidson", tie_propensity="annotator"
    ),
    "Rao and Kupper": rt.ExtendedBTL(competence="signed", ties="rao-kupper"),
    "Rao and Kupper, of annotators": rt.BTL(ties="rao-kupper", tie_propensity="annotator"),
}

# Others are of parts that kernels here have, and of sets, whose like runs at every change.
_AT_EVERY_CHANGE = {"Rao and Kupper", "a tie is a win of the first side", "no threshold"}


@pytest.mark.parametrize("kernel", cases(_KERNELS, _AT_EVERY_CHANGE))
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


@pytest.mark.parametrize("error", cases(_ERRORS, _AT_EVERY_CHANGE))
def test_injected_error_in_a_kernel_of_ties_is_caught(error: str, singles) -> None:
    kernel, kind, wrong = _ERRORS[error]
    conditionals.observation.register(kind, wrong)
    jax.clear_caches()
    try:
        result = short(_KERNELS[kernel], singles.with_ties(), chains=300)
    finally:
        conditionals.observation.register(kind, _READ[kind])
        jax.clear_caches()
    assert worst(result) > BOUND

"""Ties of real votes, against numbers computed by L-BFGS on the likelihoods as printed."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.program import log_likelihoods
from tests.real import data_folder

# Log-likelihood at its maximum, and e to the propensity there: of Rao and Kupper e^t − 1.
MAXIMA = {"davidson": (-2886.8440, 0.860), "rao-kupper": (-2882.2605, np.expm1(0.6885))}


def human_votes(ties: str) -> rt.Comparisons:
    table = pd.read_csv(data_folder("mtbench_human") / "comparisons_human.csv")
    columns = {"first": "model_a", "second": "model_b", "outcome": "winner"}
    return rt.Comparisons.from_frame(table, **columns, ties=ties)


@pytest.mark.parametrize("law", MAXIMA)
def test_mode_under_flat_priors_is_the_maximum_of_the_likelihood(law) -> None:
    votes = human_votes("keep")
    assert votes.num_votes == 3355
    model = rt.BTL(reward_scale=100.0, ties=law)
    result = rt.fit(model, votes, rt.PGEM(draws=0), seed=0, progress=False)
    mode = {name: jnp.asarray(result.posterior[name].values[0]) for name in result.posterior}
    with jax.enable_x64(True):
        likelihood = float(np.asarray(log_likelihoods(model, votes, mode))[0])
    maximum, ratio = MAXIMA[law]
    assert likelihood == pytest.approx(maximum, abs=1e-3)
    assert float(np.exp(result.posterior["tie_propensity"].squeeze())) == pytest.approx(
        ratio, abs=2e-3
    )


def test_checks_see_ties_that_half_votes_hide(fit_quietly) -> None:
    halves, model = human_votes("half"), rt.BTL()
    fitted = fit_quietly(model, halves, rt.PGGibbs(draws=100, chains=2))
    ties = rt.check(model, fitted).table.sel(discrepancy="ties")
    assert ties["observed"] > ties["replicated_high"] == 0
    votes, model = human_votes("keep"), rt.BTL(ties="rao-kupper")
    fitted = fit_quietly(model, votes, rt.PGGibbs(draws=100, chains=2))
    ties = rt.check(model, fitted).table.sel(discrepancy="ties")
    assert ties["observed"] == pytest.approx(0.23, abs=0.02)
    assert ties["replicated_low"] < ties["observed"] < ties["replicated_high"]

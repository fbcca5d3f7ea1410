"""Dawid and Skene's table, fitted: what others published."""

from __future__ import annotations

import numpy as np
from arviz_stats.base import array_stats

import raters as rt


def test_em_under_the_flat_prior(fit_quietly) -> None:
    """.400 .422 .112 .067 and a log-likelihood of −190.73, by EM from the majority; Dawid and Skene
    (1979) print two digits."""
    labels = rt.datasets.anesthesia("labels")
    flat = rt.DawidSkene(diagonal=1.0, off_diagonal=1.0)
    result = fit_quietly(flat, labels, rt.PGEM(draws=0))
    np.testing.assert_allclose(
        result["mode"]["prevalence"], [0.400, 0.422, 0.112, 0.067], atol=6e-4
    )
    np.testing.assert_allclose(float(result["log_likelihood"]["label"].sum()), -190.73, atol=0.02)


def test_the_posterior_under_the_priors_of_rater(fit_quietly) -> None:
    """.376 .407 .143 .074, by Stan (the R package rater, its documentation).

    Tolerance: half a digit, and 4 Monte-Carlo errors of ours and of 2,000 draws of theirs
    (false-alarm rate 1e-4 each).
    """
    model = rt.DawidSkene(diagonal=4.8, off_diagonal=3.2 / 3, prevalence=3.0)
    draws = fit_quietly(model, rt.datasets.anesthesia("labels"), rt.PGGibbs(draws=2000, chains=2))[
        "posterior"
    ]["prevalence"]
    values = draws.values
    ess = array_stats.ess(values, chain_axis=0, draw_axis=1, method="mean")
    error = values.std((0, 1)) * np.sqrt(1 / ess + 1 / 2000)
    off = np.abs(values.mean((0, 1)) - [0.376, 0.407, 0.143, 0.074])
    assert (off < 0.0005 + 4 * error).all(), (values.mean((0, 1)), error)
    assert (error < 0.002).all()

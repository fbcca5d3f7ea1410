"""Scores against brute force, and their identities."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import xlogy
from scipy.stats import norm

from raters.acquisition.scores import (
    About,
    Bald,
    CommitteeDivergence,
    Entropy,
    Epig,
    LeastConfidence,
    OrderEntropy,
    TruthVariance,
    VarianceReduction,
    VoteEntropy,
    joint,
)
from tests.acquisition.crowd import chances, equal, wins


def bits(*probabilities: np.ndarray) -> np.ndarray:
    return -sum(xlogy(p, p) for p in probabilities) / np.log(2)


def table_of(seed: int, answers: int, draws: int = 30, questions: int = 7) -> np.ndarray:
    """Random chances, some draws sure of themselves."""
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.full(answers, 0.3), size=(draws, questions))
    return np.moveaxis(table, -1, -2)


def weight_of(seed: int, draws: int = 30) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(draws))


def test_bald_is_the_mutual_information():
    """I(y; θ) = Σ p(y, θ) log p(y, θ) / (p(y) p(θ)) over both answers and all draws."""
    p = wins()
    both = np.stack([p, 1 - p]) / len(p)
    independent = both.sum(1, keepdims=True) * both.sum(0, keepdims=True)
    expected = np.sum(xlogy(both, both / independent), axis=(0, 1)) / np.log(2)
    np.testing.assert_allclose(Bald.formula(chances(p), equal(p)), expected, atol=1e-5)


SURE, AGREED = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [[0.5, 0.3, 0.2]] * 2


@pytest.mark.parametrize(
    ("score", "committee", "expected"),
    [
        (LeastConfidence, SURE, 0.5),
        (LeastConfidence, AGREED, 0.5),
        (VoteEntropy, SURE, 1.0),
        (VoteEntropy, [[0.6, 0.4, 0.0], [0.1, 0.9, 0.0]], 1.0),
        (VoteEntropy, AGREED, 0.0),
        (CommitteeDivergence, AGREED, 0.0),
        (CommitteeDivergence, [[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]], np.log2(3) / 16),
    ],
)
def test_uncertainty_of_one_model_and_of_a_committee(score, committee, expected):
    table = np.asarray(committee)[:, :, None]
    assert score.formula(table, equal(table))[0] == pytest.approx(expected, abs=1e-6)


@given(st.integers(0, 1000), st.integers(2, 5))
@settings(max_examples=30, deadline=None)
def test_bounds(seed, answers):
    """0 ≤ BALD ≤ min(log C, H); EPIG ≤ H(y); information about some parameters ≤ about all."""
    with jax.enable_x64(True):
        table, weight = table_of(seed, answers), weight_of(seed)
        bald, entropy = (np.asarray(of(table, weight)) for of in (Bald.formula, Entropy.formula))
        assert (bald >= 0).all()
        assert (bald <= np.minimum(np.log2(answers), entropy) + 1e-9).all()
        epig = Epig.formula(table, table, weight, joint(table, table, weight))
        assert (np.asarray(epig) <= entropy + 1e-9).all()
        nested, of_all = table.reshape(5, 6, answers, -1), Bald.formula(table, np.full(30, 1 / 30))
        assert (np.asarray(About.formula(nested)) <= np.asarray(of_all) + 1e-9).all()


@pytest.mark.parametrize(
    ("mean", "variance", "known"), [(0, 1, 0.2789), (1, 0.5, 0.1327), (2, 4, 0.3801)]
)
def test_probit_gaussian(mean, variance, known):
    """A latent normal seen through Φ: the values that ERRATA row 001-22 of the sources gives, and
    quadrature.

    Houlsby et al. (2011), equation 3, come near with a closed form.
    """
    spread = variance**0.5

    def entropy(p):
        return bits(p, 1 - p)

    mean_entropy, _ = quad(lambda z: norm.pdf(z) * entropy(norm.cdf(mean + spread * z)), -10, 10)
    of_mean = entropy(norm.cdf(mean / np.sqrt(1 + variance)))
    c = np.sqrt(np.pi * np.log(2) / 2)
    closed_form = of_mean - c * np.exp(-(mean**2) / (2 * (variance + c**2))) / np.sqrt(
        variance + c**2
    )
    assert closed_form == pytest.approx(known, abs=2e-3)
    latent = mean + spread * norm.ppf((np.arange(4000) + 0.5) / 4000)
    score = Bald.formula(chances(norm.cdf(latent)[:, None]), equal(latent))
    assert score[0] == pytest.approx(of_mean - mean_entropy, abs=1e-4)
    assert score[0] == pytest.approx(known, abs=1e-3)  # which was found by Monte Carlo


# ------------------------------------------------------------------ what an answer would change


def updated(table: np.ndarray, question: int, answer: int) -> np.ndarray:
    """Weights of the draws once the question is answered."""
    weight = table[:, answer, question]
    return weight / weight.sum()


def test_epig_by_brute_force():
    table, targets = table_of(4, 3), table_of(5, 2, questions=4)
    gain = np.zeros(7)
    before = targets.mean(0)
    for question in range(7):
        for answer in range(3):
            chance = table[:, answer, question].mean()
            after = np.tensordot(updated(table, question, answer), targets, 1)
            gain[question] += chance * (bits(*before) - bits(*after)).mean()
    weight = equal(table)
    found = Epig.formula(table, targets, weight, joint(table, targets, weight))
    np.testing.assert_allclose(found, gain, atol=1e-5)


def test_variance_reduction_by_brute_force():
    table = table_of(6, 3)
    quantity = np.random.default_rng(6).normal(size=(30, 5))
    expected = np.full(7, quantity.var(0).sum())
    for question in range(7):
        for answer in range(3):
            weight = updated(table, question, answer)
            centred = quantity - weight @ quantity
            expected[question] -= table[:, answer, question].mean() * (weight @ centred**2).sum()
    np.testing.assert_allclose(
        VarianceReduction.formula(table, quantity[:, :, None], equal(table)), expected, rtol=1e-4
    )


def test_class_variance_reduction_by_brute_force():
    """One item, three classes, draws that differ about both the class and the annotator."""
    rng = np.random.default_rng(7)
    share, confusion = rng.dirichlet(np.ones(3), 20), rng.dirichlet(np.ones(3), (20, 3))
    both = (share[:, :, None] * confusion).mean(0)  # (class, label)
    expected = (both.sum(1) * (1 - both.sum(1))).sum()
    for label in range(3):
        truth = both[:, label] / both[:, label].sum()
        expected -= both[:, label].sum() * (truth * (1 - truth)).sum()
    weight = (share / 20).reshape(60, 1)
    found = TruthVariance.formula(confusion.reshape(60, 3, 1), weight)
    assert found[0] == pytest.approx(expected, rel=1e-4)


def test_items_that_all_draws_order_alike_have_no_entropy():
    """Ten shares of a tenth sum to more than 1 in single precision; an entropy that is no number
    would be asked first."""
    for draws in (np.ones((10, 3)), -np.ones((10, 3))):
        found = np.asarray(OrderEntropy.formula(draws.astype(np.float32), equal(draws)))
        np.testing.assert_allclose(found, 0.0, atol=1e-5)
    mixed = np.random.default_rng(0).normal(size=(7, 200)).astype(np.float32)
    assert np.isfinite(np.asarray(OrderEntropy.formula(mixed, equal(mixed)))).all()

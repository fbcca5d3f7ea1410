"""Calibrated statements: their equations, their draws, and what they say of crowds."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.special import logsumexp

import raters as rt
from raters.auditing.truth import slice_sampling
from raters.auditing.truth.annotator_accuracy import Marks, draw_accuracies
from raters.auditing.truth.true_classes import Evidence, draw_unknowns, true_class_probs
from tests.hand import label_table

MODEL = rt.DawidSkene()
FIT = rt.PGGibbs(draws=1000, chains=2)


@pytest.fixture(scope="module")
def crowd():
    """A crowd whose mistakes are independent, its fit, and its true classes by item."""
    labels, truth = rt.datasets.label_crowd(200, 12, 5, 2, seed=0)
    result = rt.fit(MODEL, labels, FIT, seed=0, progress=False)
    return labels, result, pd.Series(truth["true_class"], labels.items)


@pytest.fixture(scope="module")
def shared():
    """A crowd that is wrong together on a fifth of the items: 600 items, 9 annotators."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=600)
    seen = np.where(rng.random(600) < 0.2, 1 - truth, truth)
    labels = np.where(rng.random((600, 9)) < 0.9, seen[:, None], 1 - seen[:, None])
    data = label_table(labels)
    result = rt.fit(MODEL, data, FIT, seed=0, progress=False)
    return data, result, pd.Series(truth, data.items)


def evidence_of(chances, votes):
    return Evidence.of(np.array(chances, float), np.array(votes, float))


# ---------------------------------------------------------------- true classes


def test_probabilities_are_those_of_the_equations():
    chances, votes = (
        np.array([[0.9, 0.08, 0.02], [0.2, 0.3, 0.5]]),
        np.array([[3, 1, 0], [1, 1, 2]]),
    )
    unknowns = {"dependence": 0.5, "shared": 0.1, "by_vote": 0.25, "tilt": np.array([0.3, 0, -0.2])}
    evidence = evidence_of(chances, votes)
    # Written out by rows, from the module's docstring.
    for row in range(2):
        power = chances[row] ** (1 / (1 + 3 * 0.5))
        power /= power.sum()
        mixed = 0.9 * power + 0.1 * power @ evidence.confused
        shares = (votes[row] + 0.37) ** 2 / ((votes[row] + 0.37) ** 2).sum()
        tilted = (0.75 * mixed + 0.25 * shares) * np.exp(unknowns["tilt"])
        expected = tilted / tilted.sum()
        assert np.asarray(true_class_probs(evidence, unknowns))[row] == pytest.approx(
            expected, abs=1e-4
        )


def test_slice_sampling_finds_a_posterior_in_closed_form():
    """A normal prior times a normal likelihood: means and variances within 5 standard errors,
    by batches of draws; a false alarm in 1e-5 of runs."""
    rng = np.random.default_rng(0)
    precision, centre = np.array([4.0, 0.25, 25.0]), np.array([1.0, -2.0, 0.5])
    draws = slice_sampling.sample(
        lambda points: -0.5 * ((points - centre) ** 2 * precision).sum(1), 3, 20_000, rng
    )
    mean, variance = precision * centre / (1 + precision), 1 / (1 + precision)
    assert draws.shape == (20_000, 3)
    # Draws of one chain depend on each other: an effective tenth.
    error = np.sqrt(variance / 2000)
    assert (np.abs(draws.mean(0) - mean) < 5 * error).all()
    assert (np.abs(draws.var(0) / variance - 1) < 5 * np.sqrt(2 / 2000)).all()


@pytest.mark.parametrize("times", [0.2, 3])
def test_unknowns_given_known_classes_agree_with_importance_sampling(times):
    """Items are wrong more seldom than the model says, or thrice as often. The chance that mistakes
    are dependent, and means of the logarithms where they are, are within 5 standard errors of
    40,000 weighted draws from the prior."""
    rng = np.random.default_rng(1)
    votes = rng.multinomial(6, [0.7, 0.3], size=60).astype(float)
    chances = np.array([[0.97, 0.03]] * 30 + [[0.8, 0.2]] * 30)
    evidence, truth = (
        evidence_of(chances, votes),
        (rng.random(60) < times * chances[:, 1]).astype(int),
    )
    drawn = draw_unknowns(evidence, truth, 4000, np.random.default_rng(0))
    prior = draw_unknowns(evidence.at(np.arange(0)), truth[:0], 40_000, np.random.default_rng(2))
    log_weight = np.zeros(40_000)
    for place in range(60):
        one = evidence.at(np.array([place]))
        number = votes[place].sum()
        weight = 1 / (1 + (number - 1) * prior["dependence"])[:, None]
        power = np.exp(weight * one.log_chances)
        power /= power.sum(1, keepdims=True)
        mixed = power + prior["shared"][:, None] * (power @ one.confused - power)
        shares = (votes[place] + 0.37) ** 2
        mixed = mixed + prior["by_vote"][:, None] * (shares / shares.sum() - mixed)
        tilted = mixed * np.exp(prior["tilt"])
        log_weight += np.log(tilted[:, truth[place]] / tilted.sum(1))
    weight = np.exp(log_weight - logsumexp(log_weight))
    effective = 1 / (weight**2).sum()
    assert effective > 500
    together, by_draw = prior["shared"] > 0, drawn["shared"] > 0
    # Chains of 40 draws move seldom to independent mistakes and back.
    chance = weight @ together
    error = np.sqrt(chance * (1 - chance) * (1 / effective + 40 / 4000))
    assert abs(by_draw.mean() - chance) <= 5 * error
    if times == 0.2:
        assert 0.2 < chance < 0.8
    weight = weight * together / chance
    for name in ("dependence", "shared"):
        values, known = np.log(drawn[name][by_draw]), np.log(np.maximum(prior[name], 1e-30))
        mean = weight @ known
        error = np.sqrt(weight @ (known - mean) ** 2 * (1 / effective + 10 / by_draw.sum()))
        assert abs(values.mean() - mean) < 5 * error
    tilt = (drawn["tilt"][:, 1] - drawn["tilt"][:, 0])[by_draw]
    known = prior["tilt"][:, 1] - prior["tilt"][:, 0]
    error = np.sqrt(known.var() * (1 / effective + 10 / by_draw.sum()))
    assert abs(tilt.mean() - weight @ known) < 5 * error


# ---------------------------------------------------------------- accuracies


def marks_of(right, labels, credit, others, draws=400):
    credit = np.tile(np.array(credit, float), (draws, 1))
    return Marks(np.array(right, float), np.array(labels, float), credit, np.array(others, float))


def test_known_classes_move_an_accuracy_away_from_the_crowd():
    """One whom the crowd contradicts, and who is right where it can be checked."""
    agreeing, labels = [50.0] * 9 + [20.0], [60.0] * 10
    before = draw_accuracies(marks_of([0] * 10, [0] * 10, agreeing, labels), 0)
    after = draw_accuracies(marks_of([24] * 9 + [29], [30] * 10, agreeing, labels), 0)
    assert before.own[:, 9].mean() < 0.4
    assert after.own[:, 9].mean() > before.own[:, 9].mean() + 0.15


# ---------------------------------------------------------------- the verb


@pytest.mark.slow
def test_classes_that_the_fit_knew_are_looked_at_as_if_it_had_not(shared):
    data, result, truth = shared
    gold = truth.sample(60, random_state=1)
    known = rt.fit(MODEL, data.with_truth(gold), FIT, seed=0, progress=False)
    expected = rt.calibrate(MODEL, result, gold).expected_wrong
    assert rt.calibrate(MODEL, known).expected_wrong == pytest.approx(expected, rel=0.3)


@pytest.mark.slow
def test_an_audit_takes_the_calibration(crowd):
    _, result, truth = crowd
    gold = truth.sample(80, random_state=0)
    found = rt.calibrate(MODEL, result, gold)
    audit = rt.audit(MODEL, result, gold)
    assert audit.expected_wrong == found.expected_wrong
    assert audit.table["accuracy"].values == pytest.approx(
        found.annotators["accuracy"].values, abs=0.02
    )
    low, high = found.wrong_interval
    assert f"interval {low:.0f} to {high:.0f}" in str(audit)
    assert str(audit).startswith("Annotators were measured against 80 known truths.")
    assert (audit.confusion["mean"].sum("label") - 1 < 1e-6).all()
    xr.testing.assert_identical(audit.calibration.items, found.items)
    assert list(audit.items.dims) == ["item"]

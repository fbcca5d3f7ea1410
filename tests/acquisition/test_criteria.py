"""Criteria: what they read of a posterior, for every kind of model."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest
from scipy.special import expit

import raters as rt
from raters.acquisition import Posterior
from raters.acquisition.scores import (
    About,
    Bald,
    Epig,
    OrderVariance,
    TruthVariance,
    VarianceReduction,
)
from tests.acquisition.crowd import COMPETENCE, MODEL, PAIRS, POSTERIOR, REWARD, VOTES, wins


@pytest.fixture(scope="module")
def labels():
    return rt.datasets.label_crowd(12, 4, 3, 3, seed=0).labels


@pytest.fixture(scope="module")
def by_label(labels, fit_quietly):
    result = fit_quietly(rt.DawidSkene(), labels, rt.PGEM(draws=60))
    return result, Posterior.of(rt.DawidSkene(), result, draws=50)


def test_the_default_criterion_by_brute_force():
    """Expected fall of the variance of which of the two items is the better."""
    above = REWARD[:, PAIRS.first] > REWARD[:, PAIRS.second]
    p, expected = wins(), above.mean(0) * (1 - above.mean(0))
    for question in range(60):
        for chance in (p[:, question], 1 - p[:, question]):
            share = above[:, question] @ chance / chance.sum()
            expected[question] -= chance.mean() * share * (1 - share)
    np.testing.assert_allclose(OrderVariance()(POSTERIOR, PAIRS), expected, atol=1e-5)
    assert isinstance(rt.Policy().criterion(POSTERIOR), OrderVariance)


def test_the_fall_of_the_variance_of_ranks_by_brute_force():
    """Summed over the items."""
    rank = REWARD.argsort(1).argsort(1)
    p = wins()
    expected = np.full(60, float(rank.var(0).sum()))
    for question in range(60):
        for chance in (p[:, question], 1 - p[:, question]):
            weight = chance / chance.sum()
            expected[question] -= chance.mean() * (weight @ (rank - weight @ rank) ** 2).sum()
    np.testing.assert_allclose(VarianceReduction("rank")(POSTERIOR, PAIRS), expected, atol=1e-4)


@pytest.mark.slow
def test_information_about_some_parameters_is_part_of_that_about_all():
    """Draws of rewards and competences that are independent and on one scale, crossed in full: no
    approximation is left."""
    rng = np.random.default_rng(1)
    reward = rng.normal(size=(12, 6))
    reward /= np.sqrt((reward**2).mean(1, keepdims=True))
    competence = rng.random((12, 4))
    draws = {
        "reward": np.repeat(reward, 12, 0).astype(np.float32),
        "competence": np.tile(competence, (12, 1)).astype(np.float32),
    }
    posterior = Posterior(MODEL, VOTES, draws, np.full(144, 1 / 144, np.float32))
    p = expit(
        competence[None, :, PAIRS.annotator]
        * (reward[:, PAIRS.first] - reward[:, PAIRS.second])[:, None]
    )

    def bits(p):
        return -(p * np.log2(p) + (1 - p) * np.log2(1 - p))

    of_all, by_reward = bits(p.mean((0, 1))), bits(p.mean((0, 1))) - bits(p.mean(1)).mean(0)
    found = np.mean(
        [About("reward", draws=60)(posterior, PAIRS, seed=seed) for seed in range(30)], 0
    )
    np.testing.assert_allclose(found, by_reward, atol=0.01)
    np.testing.assert_allclose(Bald()(posterior, PAIRS), of_all - bits(p).mean((0, 1)), atol=1e-5)
    # The chain rule: what is told of both is told of the rewards, and of the competences once the
    # rewards are known.
    given_reward = bits(p.mean(1)).mean(0) - bits(p).mean((0, 1))
    np.testing.assert_allclose(by_reward + given_reward, Bald()(posterior, PAIRS), atol=1e-5)


def test_one_scale_before_draws_are_crossed():
    """Draws along the orbit of the scale predict the same; crossed as they are, they would not."""
    factor = np.exp(np.random.default_rng(2).normal(size=(200, 1)))
    draws = {
        "reward": (factor * REWARD[0]).astype(np.float32),
        "competence": (np.abs(COMPETENCE[0]) / factor).astype(np.float32),
    }
    posterior = Posterior(MODEL, VOTES, draws, np.full(200, 1 / 200, np.float32))
    np.testing.assert_allclose(About("reward")(posterior, PAIRS), 0.0, atol=1e-5)


@pytest.mark.slow
def test_chances_of_labels_by_hand(by_label, labels):
    """p(y | θ) = Σ_t p(t | labels, θ) π[t, y], and the same with the classes apart."""
    _, posterior = by_label
    questions = rt.Candidates.labels(labels, again=True)
    prevalence, confusion = (
        np.asarray(posterior.draws[name], float) for name in ("prevalence", "confusion")
    )
    truth = np.log(prevalence)[:, None, :].repeat(12, 1)
    for item, who, said in zip(labels.item, labels.annotator, labels.label, strict=True):
        truth[:, item] += np.log(confusion[:, who, :, said])
    truth = np.exp(truth - truth.max(-1, keepdims=True))
    truth /= truth.sum(-1, keepdims=True)
    p = confusion[:, np.asarray(questions.annotator)]  # (draw, question, class, label)
    share = truth[:, np.asarray(questions.item)]
    expected = np.einsum("sqc,sqcy->syq", share, p)
    np.testing.assert_allclose(posterior.answer_probs(questions).table, expected, atol=2e-5)

    def bits(p, axis):
        return -(p * np.log2(np.maximum(p, 1e-12))).sum(axis)

    bald = bits(expected.mean(0), 0) - np.einsum("sqc,sqc->q", share, bits(p, -1)) / 50
    np.testing.assert_allclose(Bald()(posterior, questions), bald, atol=1e-4)
    assert (TruthVariance()(posterior, questions) >= 0).all()


def weighted(posterior: Posterior) -> Posterior:
    """Draws of unequal weight, as within a batch of a campaign."""
    weight = np.random.default_rng(5).dirichlet(np.ones(posterior.weight.size)).astype(np.float32)
    return dataclasses.replace(posterior, weight=weight)


def epig_by_brute_force(
    weight, share: np.ndarray, chance: np.ndarray, unit: np.ndarray, targets: np.ndarray
) -> np.ndarray:
    """Bits about the answers to the targets (rows of the questions), from weights of the draws,
    shares of the classes, shape (draw, question, class), and chances given the class, shape (draw,
    question, class, answer), one pair of questions after the other."""
    found, weight = np.zeros(len(unit)), np.asarray(weight, float)
    answer = np.einsum("sqc,sqcy->sqy", share, chance)
    for row in range(len(unit)):
        for other in targets:
            if unit[row] == unit[other]:  # they share the class
                both = np.einsum(
                    "s,sc,scy,scz->yz", weight, share[:, row], chance[:, row], chance[:, other]
                )
            else:
                both = (weight[:, None] * answer[:, row]).T @ answer[:, other]
            apart = both.sum(1, keepdims=True) * both.sum(0, keepdims=True)
            found[row] += (both * np.log2(both / apart)).sum() / len(targets)
    return found


@pytest.fixture(scope="module")
def by_type(fit_quietly):
    """Votes of two types of annotators, and draws of a mixture."""
    votes = rt.datasets.preference_types(5, 6, 8, 2, seed=0).votes
    model = rt.MixtureBTL(num_types=2)
    result = fit_quietly(model, votes, rt.PGEM(draws=40))
    return rt.Candidates.pairs(votes), Posterior.of(model, result, draws=40)


@pytest.mark.slow
def test_what_a_vote_tells_of_the_votes_of_its_annotator(by_type, monkeypatch):
    """Through the annotator's type; in pieces and slices as at once, and of a sample of the
    candidates."""
    questions, posterior = by_type[0], weighted(by_type[1])
    reward = np.asarray(posterior.draws["reward"], float)
    win = expit(reward[:, questions.first] - reward[:, questions.second])
    share = np.asarray(posterior._responsibilities, float)[:, questions.annotator]
    who, everything = np.asarray(questions.annotator), np.arange(len(questions.annotator))
    expected = epig_by_brute_force(
        posterior.weight, share, np.stack([win, 1 - win], -1), who, everything
    )
    np.testing.assert_allclose(Epig()(posterior, questions), expected, atol=2e-5)
    few = np.sort(np.random.default_rng(3).choice(len(who), 7, replace=False))
    of_few = epig_by_brute_force(posterior.weight, share, np.stack([win, 1 - win], -1), who, few)
    monkeypatch.setattr(Epig, "most", 16)
    np.testing.assert_allclose(Epig(targets=7)(posterior, questions, seed=3), of_few, atol=2e-5)


def test_weights_after_further_answers_are_their_likelihood():
    names = VOTES.items, VOTES.annotators
    more = rt.Comparisons([0, 1], [5, 2], [0, 3], [1.0, 0.0], np.ones(2), *names)
    with jax.enable_x64(True):
        after = POSTERIOR.after(VOTES.joined(more))
    p = wins(more)
    likelihood = p[:, 0] * (1 - p[:, 1])
    np.testing.assert_allclose(after.weight, likelihood / likelihood.sum(), rtol=1e-3)
    assert after.effective_draws < POSTERIOR.effective_draws

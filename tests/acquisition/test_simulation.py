"""Simulated campaigns: common random numbers, answers as the truth has them, a record that is used
up once."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import kendalltau

import raters as rt
from raters.acquisition import Random, Top, simulate_campaign
from raters.acquisition.simulation import measures, probs_under, recorded, simulated
from raters.errors import SettingError
from tests.acquisition.crowd import Oracle
from tests.refusals import raises_about

TRUTH = {"reward": np.array([-1.5, -0.5, 0.0, 0.5, 1.5]), "competence": np.array([0.9, 0.2, 0.0])}
MODEL = rt.ExtendedBTL(competence_spread=10.0)
POOL = rt.Candidates.pairs(items=range(5), annotators=["ann", "bob", "eve"])
RANDOM = rt.Policy(score=Random(), batch=Top())
QUICK = rt.PGGibbs(draws=60, warmup=20, chains=1)


def simulate(policy, truth=TRUTH, model=MODEL, pool=POOL, **options):
    settings = {
        "backend": QUICK,
        "batch_size": 20,
        "batches": 3,
        "seed": 0,
        "progress": False,
    } | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return simulate_campaign(model, truth, pool, policy, **settings)


def test_answers_follow_the_truth():
    """3,000 answers to one question: the share is off by 5 standard errors with probability
    6e-7."""
    chances = probs_under(MODEL, TRUTH, POOL)
    gap = TRUTH["reward"][POOL.first] - TRUTH["reward"][POOL.second]
    expected = expit(TRUTH["competence"][POOL.annotator] * gap)
    np.testing.assert_allclose(chances, [expected, 1 - expected], atol=1e-6)
    answers = simulated(POOL, chances, seed=0)
    row = int(np.abs(gap * (POOL.annotator == 0)).argmax())
    share = np.mean([answers.outcome(row, number) for number in range(3000)])
    assert abs(share - expected[row]) < 5 * np.sqrt(expected[row] * (1 - expected[row]) / 3000)


def test_labels_and_types_are_answered_by_their_class():
    questions = rt.datasets.label_crowd(6, 3, 2, 2, seed=0).labels
    model = rt.DawidSkene()
    truth = rt.simulate(model, questions, seed=1).truth
    pool = rt.Candidates.labels(questions, again=True)
    found = probs_under(model, truth, pool)
    expected = truth["confusion"][pool.annotator, truth["true_class"][pool.item]]
    np.testing.assert_allclose(found.T, expected, atol=1e-6)
    with raises_about(SettingError, "truth"):
        probs_under(model, {"confusion": truth["confusion"]}, pool)
    votes = rt.datasets.preference_types(4, 5, 6, 2, seed=0).votes
    types = rt.MixtureBTL(num_types=2)
    truth = rt.simulate(types, votes, seed=1).truth
    pool = rt.Candidates.pairs(votes)
    reward = truth["reward"][:, truth["type"]]
    expected = expit(reward[pool.first, pool.annotator] - reward[pool.second, pool.annotator])
    np.testing.assert_allclose(probs_under(types, truth, pool)[0], expected, atol=1e-6)


@pytest.mark.slow
def test_curves_of_several_policies():
    curves = simulate(
        {
            "random": RANDOM,
            "ranking": rt.Policy(),
            "oracle": rt.Policy(score=Random(), annotator=Oracle((0.9, 0.2, 0.0))),
        }
    )
    assert curves["answers"].values.tolist()[0] == [20, 40, 60]
    assert curves["answers"].values[1, -1] == 30  # ten pairs, each once in a batch
    assert np.isfinite(curves["tau"]).all()
    assert ((curves["coverage"] >= 0) & (curves["coverage"] <= 1)).all()
    np.testing.assert_allclose(curves["competence_asked"].sel(policy="oracle"), 0.9)
    assert curves["competence_asked"].sel(policy="random").mean() < 0.6
    again = simulate({"random": RANDOM})
    np.testing.assert_array_equal(again["tau"].values[0], curves["tau"].sel(policy="random").values)


def test_measures_by_hand():
    posterior = rt.acquisition.Posterior.prior(MODEL, POOL, draws=300)
    found = measures(posterior, TRUTH)
    mean = posterior.draws["reward"].mean(0)
    assert found["tau"] == pytest.approx(kendalltau(mean, TRUTH["reward"]).statistic)
    gap = posterior.draws["reward"][:, :, None] - posterior.draws["reward"][:, None]
    real = TRUTH["reward"][:, None] - TRUTH["reward"][None]
    low, high = np.quantile(gap, [0.05, 0.95], axis=0)
    first, second = np.triu_indices(5, 1)
    assert found["coverage"] == pytest.approx(((low < real) & (real < high))[first, second].mean())


def test_ties_and_turned_rows_in_a_record():
    """A vote for the second of (b, a) is one for the first of (a, b); half a vote stays half."""
    wins, count = [0.5, 0.0, 2.0], [1.0, 1.0, 3.0]
    votes = rt.Comparisons([0, 1, 0], [1, 0, 2], [0, 0, 0], wins, count, "abc", "k")
    record = recorded(votes, seed=0)
    queues = []
    for row, most in enumerate(record.most.astype(int)):
        queues.append(sorted(record.outcome(row, number) for number in range(most)))
    assert sorted(queues) == [[0.0, 1.0, 1.0], [0.5, 1.0]]


@pytest.mark.slow
def test_intervals_hold_although_the_answers_chose_the_questions():
    """Two aims, two crowds of ten: 90 % intervals of differences of rewards hold about as often as
    they say.

    The 45 pairs of a crowd depend on one another: over crowds a share has a standard deviation of
    about .09, and the mean of four, each over three checkpoints, of less than .05. The bounds are
    three of these away.
    """
    rng = np.random.default_rng(4)
    aims = {"ranking": rt.Policy(), "competence": rt.Policy(target="competence")}
    pool = rt.Candidates.pairs(items=range(10), annotators=range(10))
    settings = {
        "pool": pool,
        "backend": rt.PGGibbs(draws=150, warmup=30, chains=1),
        "batch_size": 60,
        "batches": 4,
    }
    covered = []
    for seed in range(2):
        truth = {"reward": rng.uniform(0, 8, 10), "competence": rng.uniform(0, 1, 10)}
        covered.append(
            simulate(aims, truth, seed=seed, **settings)["coverage"].values[:, 1:].mean()
        )
    assert 0.75 < np.mean(covered) < 0.995

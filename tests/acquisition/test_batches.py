"""Batches: identities of BatchBALD, trees without circles, subsets that spread out."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import xlogy

from raters.acquisition import Policy, SpanningTree, Top
from raters.acquisition.batches import BatchBald, Power, Sequential, SparseSubset, Task, Unique
from raters.acquisition.scores import Bald, OrderVariance, VarianceReduction
from tests.acquisition.crowd import PAIRS, POSTERIOR, REWARD, wins

BALD = Bald()
SCORE = np.asarray(BALD(POSTERIOR, PAIRS))


def task(criterion=BALD, score=SCORE, posterior=POSTERIOR, questions=PAIRS) -> Task:
    return Task(criterion, score, posterior, questions, np.random.default_rng(0))


def choose(batch, number=6, candidates=PAIRS, posterior=POSTERIOR, seed=0):
    return Policy(score=Bald(), batch=batch).choose(posterior, candidates, number, seed=seed).rows


def joint_information(rows) -> float:
    """I(y_1, …, y_B; θ) by brute force, in bits."""
    p = wins()[:, list(rows)]
    each = -(xlogy(p, p) + xlogy(1 - p, 1 - p)).mean(0).sum()
    entropy = 0.0
    for answers in itertools.product([True, False], repeat=len(rows)):
        chance = np.where(answers, p, 1 - p).prod(1).mean()
        entropy -= xlogy(chance, chance)
    return (entropy - each) / np.log(2)


def test_unique_asks_about_each_pair_once():
    rows = choose(Unique(), 100)
    assert len(rows) == len(set(PAIRS.about()[rows])) == 15
    assert (np.diff(SCORE[rows]) <= 0).all()


def test_power_draws_in_proportion_to_the_score():
    """The first question of 600 batches; the largest of 60 shares is off by 5 standard errors with
    probability 4e-5."""
    first = np.bincount([choose(Power(), 1, seed=seed)[0] for seed in range(600)], minlength=60)
    share = SCORE / SCORE.sum()
    assert (np.abs(first / 600 - share) < 5 * np.sqrt(share * (1 - share) / 600) + 1e-9).all()
    assert choose(Power(exponent=1e6), 5).tolist() == choose(Unique(), 5).tolist()


def explained(wanted: np.ndarray, rows: list[int]) -> float:
    """Variance of quantities, shape (draw, quantity), that the best linear predictor from the
    answers to `rows` explains."""
    p = wins()[:, rows]
    answers = np.cov(p.T, bias=True).reshape(len(rows), len(rows))
    answers[np.diag_indices(len(rows))] = p.mean(0) * (1 - p.mean(0))
    both = (p - p.mean(0)).T @ (wanted - wanted.mean(0)) / len(p)
    return float(np.einsum("nq,nm,mq->", both, np.linalg.inv(answers), both))


def test_sequential_batches_add_to_the_best_linear_predictor():
    """Each next question raises what the answers explain of the ranks by what `gain` says, and by
    the most."""
    rank = REWARD.argsort(1).argsort(1).astype(float)
    criterion = VarianceReduction("rank")
    score = criterion(POSTERIOR, PAIRS)
    chooser = Sequential(once=False).chooser(task(criterion, score))
    rows: list[int] = []
    for _ in range(6):
        before = explained(rank, rows) if rows else 0.0
        open_rows = np.flatnonzero(chooser.open)
        gain = np.array([explained(rank, [*rows, row]) - before for row in open_rows])
        np.testing.assert_allclose(chooser.gain()[open_rows], gain, rtol=1e-3, atol=1e-5)
        row = chooser.best(np.ones(60, bool))
        assert gain[open_rows == row] >= gain.max() - 1e-4
        chooser.take(row)
        rows.append(row)


def test_costs_count_in_every_batch():
    """An annotator who is a thousand times as dear is asked last."""
    for batch, score in (
        (Sequential(), OrderVariance()),
        (BatchBald(), Bald()),
        (Unique(), Bald()),
        (Top(), Bald()),
    ):
        free = Policy(score=score, batch=batch).choose(POSTERIOR, PAIRS, 3, seed=0).rows
        who = int(PAIRS.annotator[free[0]])
        dear = (
            Policy(score=score, batch=batch, costs={who: 1000.0})
            .choose(POSTERIOR, PAIRS, 3, seed=0)
            .rows
        )
        assert who not in PAIRS.annotator[dear]


def test_batch_bald_is_greedy_on_the_joint_information():
    rows = choose(BatchBald(), 4).tolist()
    for number in range(1, 5):
        best = max(
            set(range(60)) - set(rows[: number - 1]),
            key=lambda row: joint_information([*rows[: number - 1], row]),
        )
        assert joint_information(rows[:number]) == pytest.approx(
            joint_information([*rows[: number - 1], best]), abs=1e-4
        )


def test_sampled_configurations_come_near_the_exact_ones():
    """With 4,096 sampled configurations of four answers the information of a fifth is within .01
    bits (5 standard errors)."""
    exact, sampled = (BatchBald(configurations=4096).chooser(task()) for _ in range(2))
    sampled.p_configuration, sampled.given = (
        np.full(4096, 1 / 4096),
        np.repeat(sampled.given, 4096, 1),
    )
    for row in choose(BatchBald(), 4):
        exact.take(row)
        sampled.take(row)
    assert len(sampled.p_configuration) == 4096
    np.testing.assert_allclose(sampled.gain(), exact.gain(), atol=0.01)


def test_a_spanning_tree_connects_all_items_before_it_closes_a_circle():
    rows = choose(SpanningTree(), 5)
    votes = replace(PAIRS.take(rows), wins=np.ones(5, np.float32))
    assert len(votes.components()) == 1
    assert choose(SpanningTree(), 5).tolist() == rows.tolist()
    assert len(choose(SpanningTree(), 12)) == 12  # and the next tree after it
    assert rows[0] == SCORE.argmax()


def test_a_sparse_subset_steps_where_the_rest_of_the_pool_is():
    """Each step of Frank and Wolfe lowers the distance to the sum of all questions."""
    chooser = SparseSubset().chooser(task())
    everything, distance = np.ones(60, bool), [np.linalg.norm(chooser.all)]
    for _ in range(8):
        chooser.take(chooser.best(everything))
        distance.append(np.linalg.norm(chooser.all - chooser.sum))
    assert (np.diff(distance) < 0).all()
    assert distance[-1] < 0.5 * distance[0]

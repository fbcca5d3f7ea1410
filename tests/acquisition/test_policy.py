"""Policies: what each target asks and whom, costs, quotas and least shares."""

from __future__ import annotations

import numpy as np
import pytest

import raters as rt
from raters.acquisition import BestMean, Entropy, OrderEntropy, Top
from raters.acquisition.scores import Bald
from raters.errors import DataError, SettingError
from tests.acquisition.crowd import COMPETENCE, MODEL, PAIRS, POSTERIOR, RESULT, Oracle
from tests.refusals import raises_about

WHO = np.asarray(PAIRS.annotator)


def choose(number=10, seed=0, asked=None, **settings):
    return rt.Policy(**settings).choose(POSTERIOR, PAIRS, number, seed=seed, asked=asked)


def test_entropy_asks_the_worst_annotators_and_the_default_does_not():
    """With the protocol's crowd: competences of .05 to .95 known to ±.05, rewards known to ±1."""
    rng = np.random.default_rng(0)
    competence = np.clip(np.linspace(0.05, 0.95, 10) + 0.05 * rng.normal(size=(200, 10)), 0, 1)
    reward = rng.uniform(0, 8, 20) + rng.normal(size=(200, 20))
    votes, _ = rt.datasets.paper(20, 10, 50, seed=0)
    draws = {"reward": reward.astype(np.float32), "competence": competence.astype(np.float32)}
    model = rt.ExtendedBTL(reward_scale=2.5, competence_spread=10.0)
    posterior = rt.acquisition.Posterior(model, votes, draws, np.full(200, 1 / 200, np.float32))
    pairs = rt.Candidates.pairs(votes)

    def asked(policy):
        rows = policy.choose(posterior, pairs, 19, seed=0).rows
        return np.linspace(0.05, 0.95, 10)[np.asarray(pairs.annotator)[rows]].mean()

    assert asked(rt.Policy(score=Entropy(), batch=Top())) < 0.4
    assert asked(rt.Policy()) > 0.8
    assert asked(rt.Policy(target="everything")) > 0.7


@pytest.mark.parametrize(
    "target", ["ranking", "reward", "top_k", "competence", "predictive", "everything"]
)
def test_every_target_chooses(target):
    rows, score, _ = choose(5, target=target, k=2 if target == "top_k" else 1)
    assert len(set(rows.tolist())) == 5
    assert np.isfinite(score).all()
    assert score[0] == max(score)
    assert not (WHO[rows] == 2).any()  # the guesser


def test_best_by_mean_and_by_oracle():
    mean = np.abs(COMPETENCE.mean(0)).argmax()
    for whom, expected in ((BestMean(), mean), (Oracle((0.1, 0.2, 0.9, 0.3)), 2)):
        rows = choose(8, score=OrderEntropy(), annotator=whom).rows
        assert set(WHO[rows].tolist()) == {expected}
        assert len(set(PAIRS.about()[rows].tolist())) == 8


def test_questions_that_wait_count_as_part_of_the_batch():
    """One at a time with the earlier ones waiting, or all at once: six different pairs, and for
    sequential batches the same."""
    once = choose(6).rows.tolist()
    one_by_one: list[int] = []
    for _ in range(6):
        rest = np.setdiff1d(np.arange(60), one_by_one)
        pending = PAIRS.take(np.array(one_by_one, int))
        chosen = rt.Policy().choose(POSTERIOR, PAIRS.take(rest), 1, seed=0, pending=pending)
        one_by_one.append(int(rest[chosen.rows[0]]))
    assert one_by_one == once
    # Every pair waits for annotator 0: others may still be asked.
    waiting, rest = (PAIRS.take(np.flatnonzero(mask)) for mask in (WHO == 0, WHO != 0))
    assert len(rt.Policy().choose(POSTERIOR, rest, 3, seed=0, pending=waiting).rows) == 3


def test_a_share_for_somebody_who_cannot_be_asked_more_stops_nobody():
    """Annotator 3 can judge one pair only, and is short of their share for ever."""
    rows = np.flatnonzero((WHO != 3) | (PAIRS.about() == PAIRS.about()[0]))
    few = PAIRS.take(rows)
    policy = rt.Policy(score=Bald(), least_share=0.25)
    assert len(policy.choose(POSTERIOR, few, 8, seed=0, asked=np.array([10, 10, 10, 0])).rows) == 8
    three = PAIRS.take(np.flatnonzero(WHO < 3))
    assert (
        len(rt.Policy(least_share=0.3).choose(POSTERIOR, three, 3, seed=0).rows) == 3
    )  # of those who are there


def test_quotas_count_what_was_asked():
    asked = np.array([5, 0, 0, 0])
    rows = choose(30, target="everything", batch=Top(), quota={0: 7, 1: 3}, asked=asked).rows
    count = np.bincount(WHO[rows], minlength=4)
    assert count[0] == 2
    assert count[1] == 3
    assert len(choose(60, quota=0, asked=asked).rows) == 0
    assert len(choose(60, batch=Top(), quota=6, asked=asked).rows) == 1 + 6 * 3


def test_everybody_gets_the_least_share():
    asked = np.array([90, 10, 0, 0])
    rows = choose(20, batch=Top(), least_share=0.05, asked=asked).rows
    count = asked + np.bincount(WHO[rows], minlength=4)
    assert (count >= 0.05 * (count.sum() - 1)).all()
    assert set(WHO[rows[:4]].tolist()) == {2, 3}  # those who are short come first


def test_what_only_the_crowd_can_say():
    with raises_about(SettingError, "least_share", 0.3):
        choose(3, least_share=0.3)
    with raises_about(DataError, "costs", "eve"):
        rt.suggest(MODEL, RESULT, PAIRS, policy=rt.Policy(costs={"eve": 2.0}))
    with raises_about(SettingError, "k", 6):
        choose(3, target="top_k", k=6)
    with raises_about(SettingError, "target"):
        choose(3, target="truth")
    with raises_about(DataError, "candidates"):
        rt.Policy().choose(POSTERIOR, PAIRS.take(slice(0, 0)), 3, seed=0)

"""Generators of votes: what they promise about the truth, the shares and the order."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

import raters as rt
from raters.errors import SettingError
from tests.refusals import raises_about

GENERATORS = [
    rt.datasets.paper,
    rt.datasets.separated,
    rt.datasets.crowd,
    rt.datasets.position_biased,
]


@pytest.mark.parametrize("generate", GENERATORS)
def test_sizes_names_and_seeds(generate):
    votes, truth = generate(7, 5, 300, seed=1)
    assert (votes.num_items, votes.num_annotators, votes.num_votes) == (7, 5, 300)
    assert (truth["reward"].shape, truth["competence"].shape) == ((7,), (5,))
    assert abs(truth["reward"].sum()) < 1e-9
    assert (np.asarray(votes.first) != np.asarray(votes.second)).all()
    again, other = generate(7, 5, 300, seed=1), generate(7, 5, 300, seed=2)
    assert np.array_equal(again.votes.wins, votes.wins)
    assert not np.array_equal(other.truth["competence"], truth["competence"])


@pytest.mark.parametrize("generate", GENERATORS)
def test_votes_follow_the_truth(generate):
    """The number of wins against its binomial mean; false alarm below 1e-6 at 5 standard
    deviations."""
    votes, truth = generate(6, 3, 20_000, seed=0)
    logits = truth["competence"][votes.annotator] * (
        truth["reward"][votes.first] - truth["reward"][votes.second]
    )
    if "position_bias" in truth:
        logits = logits + truth["position_bias"][votes.annotator]
    p = expit(logits)
    excess = ((votes.wins - votes.count * p) * np.sign(logits)).sum()
    assert abs(excess) < 5 * np.sqrt((votes.count * p * (1 - p)).sum())


def test_the_papers_design():
    _, truth = rt.datasets.paper(2000, 3000, 10, seed=0)
    for values in (truth["reward"] - truth["reward"].min(), truth["competence"]):
        assert 0 <= values.min() < 0.01 < 0.99 < values.max() <= 1
        assert values.std() == pytest.approx(12**-0.5, abs=0.01)


def test_a_crowd_has_the_shares_asked_for():
    _, truth = rt.datasets.crowd(num_annotators=50, seed=0, guessers=0.3, adversaries=0.1)
    kinds = {
        kind: truth["competence"][truth["kind"] == kind]
        for kind in ("competent", "guesser", "adversary")
    }
    assert {kind: len(values) for kind, values in kinds.items()} == {
        "competent": 30,
        "guesser": 15,
        "adversary": 5,
    }
    assert (kinds["guesser"] == 0).all()
    assert (kinds["adversary"] == -0.8).all()
    assert ((kinds["competent"] >= 0.6) & (kinds["competent"] <= 1.2)).all()


def test_only_a_biased_position_keeps_the_order():
    assert rt.datasets.position_biased(seed=0).votes.ordered
    assert not rt.datasets.separated(seed=0).votes.ordered


def test_a_position_bias_shows_in_the_votes():
    votes, _ = rt.datasets.position_biased(num_votes=20_000, seed=0, bias=1.5)
    assert votes.wins.sum() / votes.num_votes > 0.65


@pytest.mark.parametrize("generate", GENERATORS)
@pytest.mark.parametrize(
    "sizes",
    [
        {"num_items": 1},
        {"num_items": 2.0},
        {"num_annotators": 0},
        {"num_votes": 0},
        {"num_votes": "10"},
    ],
)
def test_sizes_that_cannot_be(generate, sizes):
    with raises_about(SettingError, *next(iter(sizes.items()))):
        generate(**sizes, seed=0)


@pytest.mark.parametrize(("guessers", "adversaries"), [(-0.1, 0), (0, -0.1), (0.6, 0.4), (1.0, 0)])
def test_shares_that_cannot_be(guessers, adversaries):
    with raises_about(SettingError, "guessers"):
        rt.datasets.crowd(seed=0, guessers=guessers, adversaries=adversaries)


@pytest.mark.parametrize("generate", GENERATORS)
def test_a_seed_is_asked_for(generate):
    with pytest.raises(TypeError, match="seed"):
        generate()

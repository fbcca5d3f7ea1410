"""Generators: judgements follow the truth that is handed out with them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, softmax
from scipy.stats import chi2

import raters as rt
from raters.checking.orders import OrderDraw

VOTES = [rt.datasets.paper, rt.datasets.separated, rt.datasets.crowd, rt.datasets.position_biased]
TYPES = [rt.datasets.preference_types, rt.datasets.preference_bandit]


@pytest.mark.parametrize("generate", VOTES)
def test_votes_follow_the_truth(generate):
    """The number of wins against its binomial mean; false alarm below 1e-6 at 5 standard
    deviations."""
    votes, truth = generate(6, 3, 20_000, seed=0)
    assert (votes.num_items, votes.num_annotators, votes.num_votes) == (6, 3, 20_000)
    assert abs(truth["reward"].sum()) < 1e-9
    assert votes.ordered == ("position_bias" in truth)
    gap = truth["reward"][votes.first] - truth["reward"][votes.second]
    logits = truth["competence"][votes.annotator] * gap
    if votes.ordered:
        logits = logits + truth["position_bias"][votes.annotator]
    p = expit(logits)
    excess = ((votes.wins - votes.count * p) * np.sign(logits)).sum()
    assert abs(excess) < 5 * np.sqrt((votes.count * p * (1 - p)).sum())


def test_a_seed_gives_the_same_votes():
    for generate in VOTES + TYPES:
        first, again, other = generate(seed=3), generate(seed=3), generate(seed=4)
        assert np.array_equal(first.votes.wins, again.votes.wins)
        for name, value in first.truth.items():
            assert np.array_equal(value, again.truth[name])
        assert not np.array_equal(first.votes.annotator, other.votes.annotator)


def test_a_crowd_has_the_shares_asked_for():
    _, truth = rt.datasets.crowd(num_annotators=50, seed=0, guessers=0.3, adversaries=0.1)
    kinds, counts = np.unique(truth["kind"].astype(str), return_counts=True)
    assert dict(zip(kinds, counts, strict=True)) == {"adversary": 5, "competent": 30, "guesser": 15}
    assert set(truth["competence"][truth["kind"] == "guesser"]) == {0}
    assert set(truth["competence"][truth["kind"] == "adversary"]) == {-0.8}


@pytest.mark.parametrize(
    ("generate", "options", "chances"),
    [
        (
            rt.datasets.preference_types,
            {"num_types": 3, "votes_each": 1, "weights": (1, 5, 4)},
            [0.1, 0.5, 0.4],
        ),
        (rt.datasets.preference_bandit, {}, [0.6, 0.3, 0.1]),
    ],
)
def test_types_have_the_probabilities_asked_for(generate, options, chances):
    """Pearson's statistic of 20,000 annotators; false alarm below 1e-6."""
    _, truth = generate(num_annotators=20_000, seed=0, **options)
    expected = 20_000 * np.array(chances)
    counts = np.bincount(truth["type"])
    assert np.array_equal(truth["type_weight"], counts / 20_000)
    assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(1e-6, len(chances) - 1)


def test_votes_follow_the_rewards_of_the_annotators_type():
    """Wins against their binomial mean; false alarm below 1e-6 at 5 standard deviations. Another's
    type does not fit."""
    votes, truth = rt.datasets.preference_types(6, 300, 60, 2, seed=0)
    assert np.abs(truth["reward"].sum(0)).max() < 1e-9
    for shift, fits in ((0, True), (1, False)):
        of_type = (truth["type"][votes.annotator] + shift) % 2
        logits = truth["reward"][votes.first, of_type] - truth["reward"][votes.second, of_type]
        p = expit(logits)
        excess = ((votes.wins - votes.count * p) * np.sign(logits)).sum()
        assert (abs(excess) < 5 * np.sqrt((votes.count * p * (1 - p)).sum())) == fits


def test_the_bandit_of_the_paper():
    """Two thirds of 20,000 draws are of two arms, and votes follow their chance; false alarm below
    1e-6 at 5 standard deviations."""
    votes, truth = rt.datasets.preference_bandit(num_annotators=2000, seed=0)
    assert votes.items == ("arm 1", "arm 2", "arm 3")
    assert votes.feature_names[:4] == ("x1 × arm 1", "x2 × arm 1", "x3 × arm 1", "x1 × arm 2")
    assert truth["reward"].tolist() == [[15, 0, 0], [0, 15, 0], [0, 0, 15]]
    assert abs(votes.num_votes - 20_000 * 2 / 3) < 5 * np.sqrt(20_000 * 2 / 9)
    of_type = truth["type"][votes.annotator]
    logits = np.take_along_axis(votes.features @ truth["coefficient"], of_type[:, None], 1)[:, 0]
    p = expit(logits)
    assert abs((votes.wins - p).sum()) < 5 * np.sqrt((p * (1 - p)).sum())
    by_arm = votes.features.reshape(-1, 3, 3)
    rows = np.arange(votes.num_comparisons)
    assert np.array_equal(by_arm[rows, votes.second], -by_arm[rows, votes.first])


def test_rankings_follow_the_truth() -> None:
    """Log-probabilities of the places against their expectation; false alarm below 1e-6 at 5
    standard deviations."""
    data, truth = rt.datasets.ranking_crowd(12, 6, 200, 4, 2, seed=0, guessers=0.2)
    data.check()
    assert data.depth.tolist() == [2] * 1200
    competence = truth["competence"][data.annotator][:, None]
    draw = OrderDraw(data.place, competence * truth["worth"][data.offered])
    surprise, variance = draw.surprise(np.ones(1200))
    assert abs(surprise.sum()) < 5 * np.sqrt(variance.sum())
    assert sorted(truth["kind"]) == ["adversary", *["competent"] * 4, "guesser"]


def test_the_best_and_the_worst_follow_the_truth() -> None:
    """As above, with the choices of the worst; false alarm below 1e-6 at 5 standard deviations."""
    data, truth = rt.datasets.ranking_crowd(12, 6, 200, 4, best_worst=True, seed=0)
    data.check()
    assert data.depth.tolist() == data.lowest.tolist() == [1] * 1200
    competence = truth["competence"][data.annotator][:, None]
    stages = OrderDraw(data.place, competence * truth["worth"][data.offered]).stages
    surprise, variance = stages.surprise[-1], stages.surprise_variance[-1]
    assert abs(surprise.sum()) < 5 * np.sqrt(variance.sum())


def test_choices_follow_the_truth() -> None:
    """Choices of each alternative against their expectation; false alarm below 1e-5 at 5 standard
    deviations of four."""
    choices, truth = rt.datasets.choice_crowd(200, 5, seed=0, available=0.6)
    frame = choices.to_frame()
    features = frame[["feature 0", "feature 1"]]
    utility = features @ truth["coefficient"] + truth["constant"][frame["alternative"]]
    probs = utility.groupby(frame["set"]).transform(softmax)
    excess = (frame["chosen"] - probs).groupby(frame["alternative"]).sum()
    spread = (probs * (1 - probs)).groupby(frame["alternative"]).sum() ** 0.5
    assert (excess.abs() < 5 * spread).all()
    assert set(frame.groupby("set").size()) == {2, 3, 4}


def test_responses_follow_the_truth() -> None:
    """Right responses against their expectation; false alarm below 1e-6 at 5 standard
    deviations."""
    data, truth = rt.datasets.response_crowd(100, 30, seed=0, asked=0.5, guessers=0.1)
    frame = data.to_frame()
    who, what = frame["person"].to_numpy(), frame["item"].to_numpy()
    logits = truth["discrimination"][what] * (truth["ability"][who] - truth["difficulty"][what])
    p = np.where(truth["kind"][who] == "guesser", 0.5, expit(logits))
    assert abs((frame["correct"] - p).sum()) < 5 * np.sqrt((p * (1 - p)).sum())
    assert 0.4 < len(frame) / 3000 < 0.6

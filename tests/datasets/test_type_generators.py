"""Generators of votes by annotators of several types: the shares drawn, the rewards, the draws that
say nothing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import chi2

import raters as rt
from raters.errors import SettingError
from tests.refusals import raises_about

GENERATORS = [rt.datasets.preference_types, rt.datasets.preference_bandit]


@pytest.mark.parametrize("generate", GENERATORS)
def test_a_seed_gives_the_same_votes(generate):
    one, again, other = generate(seed=3), generate(seed=3), generate(seed=4)
    for role in ("first", "second", "annotator", "wins"):
        assert np.array_equal(getattr(one.votes, role), getattr(again.votes, role))
    for name, value in one.truth.items():
        assert np.array_equal(value, again.truth[name])
    assert not np.array_equal(one.truth["type"], other.truth["type"])


@pytest.mark.parametrize("generate", GENERATORS)
def test_the_shares_are_those_that_were_drawn(generate):
    truth = generate(seed=0).truth
    counted = np.bincount(truth["type"], minlength=3) / len(truth["type"])
    assert np.array_equal(truth["type_weight"], counted)
    assert truth["type_weight"].sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("votes", "chances"),
    [
        (rt.datasets.preference_types(num_annotators=20_000, votes_each=1, seed=0), [1 / 3] * 3),
        (
            rt.datasets.preference_types(
                num_annotators=20_000, votes_each=1, weights=(1, 5, 4), seed=0
            ),
            [0.1, 0.5, 0.4],
        ),
        (
            rt.datasets.preference_bandit(num_annotators=20_000, votes_each=1, seed=0),
            [0.6, 0.3, 0.1],
        ),
        (
            rt.datasets.preference_bandit(
                num_annotators=20_000, votes_each=1, weights=(3, 1), seed=0
            ),
            [0.75, 0.25],
        ),
    ],
    ids=["equal", "weighted", "paper", "two arms"],
)
def test_types_have_the_probabilities_asked_for(votes, chances):
    """Pearson's statistic of 20,000 annotators; false alarm below 1e-6."""
    expected = 20_000 * np.array(chances)
    found = 20_000 * votes.truth["type_weight"]
    assert ((found - expected) ** 2 / expected).sum() < chi2.isf(1e-6, len(chances) - 1)


# ------------------------------------------------------------------ types with rewards


def test_sizes_and_names():
    votes, truth = rt.datasets.preference_types(
        num_items=7, num_annotators=12, votes_each=5, num_types=2, seed=1
    )
    assert (votes.items, votes.annotators) == (tuple(range(7)), tuple(range(12)))
    assert votes.judgements_by("annotator").tolist() == [5] * 12
    assert truth["reward"].shape == (7, 2)
    assert truth["type"].shape == (12,)
    assert np.abs(truth["reward"].sum(0)).max() < 1e-9
    assert (np.asarray(votes.first) < np.asarray(votes.second)).all()
    assert not votes.ordered


def test_rewards_have_the_scale_asked_for():
    truth = rt.datasets.preference_types(
        num_items=5000, num_types=2, reward_scale=0.5, seed=0
    ).truth
    assert truth["reward"].std(0) == pytest.approx(0.5, abs=0.03)


def test_votes_follow_the_rewards_of_the_annotators_type():
    """Wins against their binomial mean; false alarm below 1e-6 at 5 standard deviations. Another's
    type does not fit."""
    votes, truth = rt.datasets.preference_types(
        num_items=6, num_annotators=300, votes_each=60, num_types=2, seed=0
    )
    for shift, fits in ((0, True), (1, False)):
        of_type = (truth["type"][votes.annotator] + shift) % 2
        logits = truth["reward"][votes.first, of_type] - truth["reward"][votes.second, of_type]
        p, count = (
            expit(logits),
            np.ones(votes.num_comparisons) if votes.count is None else votes.count,
        )
        excess = ((votes.wins - count * p) * np.sign(logits)).sum() / np.sqrt(
            (count * p * (1 - p)).sum()
        )
        assert (abs(excess) < 5) == fits


def test_pairs_are_uniform():
    """Pearson's statistic of 20,000 pairs; false alarm below 1e-6."""
    votes, _ = rt.datasets.preference_types(num_items=5, num_annotators=1000, votes_each=20, seed=0)
    pair = np.asarray(votes.first) * 5 + np.asarray(votes.second)
    found = np.bincount(pair, votes.count)
    found = found[found > 0]
    assert len(found) == 10
    assert ((found - 2000) ** 2 / 2000).sum() < chi2.isf(1e-6, 9)


@pytest.mark.parametrize(
    ("options", "about"),
    [
        ({"num_items": 1}, ("num_items", 1)),
        ({"num_items": 2.5}, ("num_items", 2.5)),
        ({"num_annotators": 0}, ("num_annotators", 0)),
        ({"votes_each": -1}, ("votes_each", -1)),
        ({"num_types": "3"}, ("num_types", "3")),
        ({"reward_scale": 0.0}, ("reward_scale", 0.0)),
        ({"weights": (0.5, 0.5)}, (("weights", (0.5, 0.5)))),
        ({"weights": (1.0, 1.0, 0.0)}, ("weights", (1.0, 1.0, 0.0))),
        ({"weights": (1.0, 1.0, -1.0)}, ("weights", (1.0, 1.0, -1.0))),
        ({"weights": (1.0, 1.0, float("nan"))}, ("weights",)),
    ],
)
def test_types_that_cannot_be(options, about):
    with raises_about(SettingError, *about):
        rt.datasets.preference_types(**options, seed=0)


# ------------------------------------------------------------------ the bandit of the EM-DPO paper


def test_each_group_loves_its_own_arm():
    votes, truth = rt.datasets.preference_bandit(seed=0)
    assert votes.items == ("arm 1", "arm 2", "arm 3")
    assert truth["reward"].tolist() == [[15, 0, 0], [0, 15, 0], [0, 0, 15]]
    assert truth["coefficient"].shape == (9, 3)
    assert votes.feature_names[:4] == ("x1 × arm 1", "x2 × arm 1", "x3 × arm 1", "x1 × arm 2")


def test_expected_rewards_are_those_of_the_coefficients():
    """Contexts are uniform, with mean 1/2 in each of three directions."""
    truth = rt.datasets.preference_bandit(seed=0).truth
    context = np.full(3, 0.5)
    for arm in range(3):
        assert np.array_equal(
            truth["reward"][arm], context @ truth["coefficient"][3 * arm : 3 * arm + 3]
        )


def test_a_third_of_the_draws_says_nothing_and_is_left_out():
    """20,000 draws, of which 2/3 are expected; false alarm below 1e-6 at 5 standard deviations."""
    votes, _ = rt.datasets.preference_bandit(num_annotators=2000, seed=0)
    assert abs(votes.num_votes - 20_000 * 2 / 3) < 5 * np.sqrt(20_000 * 2 / 9)
    assert (np.asarray(votes.first) != np.asarray(votes.second)).all()
    assert votes.judgements_by("annotator").max() <= 10


def test_annotators_without_a_vote_are_in_the_names():
    votes, truth = rt.datasets.preference_bandit(num_annotators=100, votes_each=1, seed=0)
    assert votes.annotators == tuple(range(100))
    assert (votes.judgements_by("annotator") == 0).any()
    assert len(truth["type"]) == 100


def test_features_are_the_context_of_the_first_arm_less_that_of_the_second():
    votes, _ = rt.datasets.preference_bandit(seed=0)
    by_arm = votes.features.reshape(-1, 3, 3)
    rows = np.arange(votes.num_comparisons)
    context = by_arm[rows, votes.first]
    assert ((context >= 0) & (context <= 1)).all()
    assert np.array_equal(by_arm[rows, votes.second], -context)
    third = 3 - votes.first - votes.second
    assert not by_arm[rows, third].any()
    assert context.mean() == pytest.approx(0.5, abs=0.05)


def test_votes_for_the_arm_that_is_loved_are_nearly_certain():
    """Against the exact chance of each vote; between two arms that nobody loves it is a coin. 5
    standard deviations."""
    votes, truth = rt.datasets.preference_bandit(num_annotators=2000, seed=0)
    own = truth["type"][votes.annotator]
    logits = np.take_along_axis(votes.features @ truth["coefficient"], own[:, None], 1)[:, 0]
    p = expit(logits)
    assert abs((votes.wins - p).sum()) < 5 * np.sqrt((p * (1 - p)).sum())
    loved = (votes.first == own) | (votes.second == own)
    assert ((votes.wins == 1) == (votes.first == own))[loved].mean() > 0.99
    assert abs(votes.wins[~loved].mean() - 0.5) < 5 * 0.5 / np.sqrt((~loved).sum())


def test_as_many_arms_as_groups():
    votes, truth = rt.datasets.preference_bandit(weights=(1, 1, 1, 1), seed=0)
    assert (votes.num_items, votes.features.shape[1]) == (4, 12)
    assert truth["reward"].shape == (4, 4)


@pytest.mark.parametrize(
    ("options", "about"),
    [
        ({"num_annotators": 0}, ("num_annotators", 0)),
        ({"votes_each": 1.5}, ("votes_each", 1.5)),
        ({"weights": (0.6, 0.4, 0.0)}, (("weights", (0.6, 0.4, 0.0)))),
        ({"weights": (0.6, -0.4)}, ("weights", (0.6, -0.4))),
    ],
)
def test_bandits_that_cannot_be(options, about):
    with raises_about(SettingError, *about):
        rt.datasets.preference_bandit(**options, seed=0)

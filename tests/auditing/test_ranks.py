"""Ranks that hold at once, tiers, and further votes, where they are known."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy.special import expit
from scipy.stats import norm

import raters as rt
from raters.auditing.further_votes import information, votes_needed
from raters.auditing.intervals import joint_bounds, ranked, tiers
from raters.program import Program


def test_joint_bounds_hold_at_once_and_are_not_longer_than_needed() -> None:
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(4000, 8)) + np.arange(8) * 0.7
    ranks = np.argsort(np.argsort(-draws, axis=1), axis=1) + 1
    low, high = joint_bounds(ranks, 0.9)
    assert 0.9 <= ((ranks >= low) & (ranks <= high)).all(1).mean() < 0.93
    single = np.quantile(ranks, (0.05, 0.95), axis=0, method="nearest")
    assert (low <= single[0]).all()
    assert (high >= single[1]).all()
    # Of ranks that are all sure, and of a single draw.
    assert [end.tolist() for end in joint_bounds(ranks[:1], 0.9)] == [ranks[0].tolist()] * 2


def test_tiers_are_kept_apart_by_all_bounds() -> None:
    assert tiers(np.array([1, 2, 2, 4]), np.array([1, 3, 3, 4])).tolist() == [1, 2, 2, 3]
    assert tiers(np.array([1, 1, 3]), np.array([2, 3, 3])).tolist() == [1, 1, 1]
    assert tiers(np.array([1]), np.array([1])).tolist() == [1]


def test_a_table_has_the_best_first() -> None:
    values = np.tile([0.0, 2.0, 1.0], (1, 50, 1))
    draws = xr.DataArray(values, {"item": [*"abc"]}, ("chain", "draw", "item"), name="worth")
    table = ranked(draws, 0.9)
    assert table["item"].tolist() == ["b", "c", "a"]
    assert (
        table[["rank", "joint_low", "joint_high", "tier"]].to_numpy().T.tolist() == [[1, 2, 3]] * 4
    )
    assert table["worth"].tolist() == [2, 1, 0]


def test_votes_needed_are_those_of_normal_theory() -> None:
    rng = np.random.default_rng(1)
    mean, spread, per_vote = 0.0, 1.0, 0.25
    gap = rng.normal(mean, spread, (20_000, 1, 1))
    middle, low, high = votes_needed(gap, np.array([[per_vote]]), 0.9, rng)
    # With m votes the mean of the posterior is normal about 0: P(|mean| > z sd) by hand.
    count = np.geomspace(1, 1e6, 20_000)
    seen = spread**2 * count * per_vote / (1 + spread**2 * count * per_vote)
    z = norm.ppf(0.9) * np.sqrt(1 - seen) / np.sqrt(seen)
    share = 2 * norm.sf(z)
    by_hand = count[np.searchsorted(share, 0.5)]
    assert by_hand / 1.15 <= middle[0] <= by_hand * 1.15
    assert low[0] < middle[0] < high[0]
    told = votes_needed(gap / 10 + 1, np.array([[per_vote]]), 0.9, rng)
    assert [float(end[0]) for end in told] == [1, 1, 1]
    # A pair that is named twice is told apart with half the error, another one is no repeat.
    twice, other = np.tile(gap, 2), rng.normal(mean, spread, (20_000, 1, 2))
    both = np.full((1, 2), per_vote)
    same, more = (votes_needed(one, both, 0.9, rng)[0] for one in (twice, other))
    strict = votes_needed(gap, np.array([[per_vote]]), 0.95, rng)[0]
    assert same[0] == pytest.approx(strict[0], rel=0.15)
    assert more[0] > 2 * same[0]


@pytest.mark.parametrize("model", ["plain", "competences", "ties", "tastes"])
def test_information_of_a_vote(model: str) -> None:
    votes = rt.datasets.separated(num_items=3, num_annotators=4, num_votes=60, seed=0).votes
    gap, pair = np.full((5, 1, 1), 0.8), (np.array([[0]]), np.array([[1]]))
    chance = expit(0.8)
    if model == "plain":
        fitted, draws, expected = rt.BTL(), {}, chance * (1 - chance)
    elif model == "competences":
        fitted, draws = rt.ExtendedBTL(), {"competence": np.full((5, 4), 0.5)}
        expected = 0.25 * expit(0.4) * expit(-0.4)
    elif model == "ties":
        fitted, names = rt.BTL(ties="davidson"), {"winner": ["a"], "loser": ["b"]}
        votes = rt.Comparisons.from_frame(names, winner="winner", loser="loser").with_ties()
        draws = {"tie_propensity": np.full(5, -60.0)}
        expected = chance * (1 - chance)
    else:  # Opposite tastes: a vote of anybody tells less.
        fitted, taste = rt.HierarchicalBTL(), np.zeros((5, 4, 3))
        taste[:, :2, 0], taste[:, 2:, 0] = 3, -3
        draws, expected = {"taste": taste}, None
    found = float(information(Program(fitted, votes), draws, gap, *pair)[0, 0])
    if expected is None:
        assert found < 0.5 * chance * (1 - chance)
    else:
        assert found == pytest.approx(expected, rel=2e-3)

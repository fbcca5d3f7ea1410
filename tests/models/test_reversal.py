"""Warning of crowds whose halves contradict each other, where competences cannot be negative."""

import numpy as np
import pytest
from scipy.special import expit, log_expit, logsumexp
from scipy.stats import truncnorm

import raters as rt
from raters.models.comparisons.contradictions import reversal
from tests import hand


def two_groups(for_first: int, against: int, each: int) -> rt.Comparisons:
    """Annotator a is for item 0 in so many of their votes, b against it."""
    rows = [(0, 1, "a")] * for_first + [(1, 0, "a")] * (each - for_first)
    rows += [(1, 0, "b")] * against + [(0, 1, "b")] * (each - against)
    return hand.votes(*rows)


def exact(votes: rt.Comparisons, spread: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Grid of differences of two rewards of standard deviation 1, and its log density."""
    gap = np.linspace(-9, 9, 1801)
    competence = np.linspace(0, high, 801)[:, None]
    prior = truncnorm.logpdf(competence, -1 / spread, (high - 1) / spread, 1, spread)
    density = -(gap**2) / 4
    for who in range(votes.num_annotators):
        own = np.asarray(votes.annotator) == who
        sign = np.where(np.asarray(votes.first)[own] == 0, 1, -1)
        wins, number = (np.asarray(part)[own] for part in (votes.wins, votes.weight))
        total = sum(
            won * log_expit(side * competence * gap)
            + (all_votes - won) * log_expit(-side * competence * gap)
            for won, all_votes, side in zip(wins, number, sign, strict=True)
        )
        density = density + logsumexp(total + prior, axis=0)
    return gap, density - logsumexp(density)


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize(
    ("for_first", "against", "each"), [(40, 40, 40), (38, 37, 40), (58, 59, 60), (60, 57, 60)]
)
def test_probability_of_the_other_order_against_quadrature(for_first, against, each, side) -> None:
    # Of 32 draws its standard error was below .01 on these.
    votes = two_groups(for_first, against, each)
    gap, density = exact(votes, 0.5, 1.0)
    here = side * gap > 0
    rng = np.random.default_rng(0)
    share = np.exp(density[here] - logsumexp(density[here]))
    drawn = rng.choice(gap[here], 400, p=share)
    reward = drawn[:, None] * [0.5, -0.5] + rng.normal(size=(400, 1)) / np.sqrt(2)
    draws = {"reward": reward[None], "competence": np.full((1, 400, 2), 0.5)}
    other = float(np.exp(logsumexp(density[~here])))
    found = reversal(draws, votes, 1.0, 0.5, 1.0)
    assert found == pytest.approx(other, abs=0.04)
    # Draws that are of both orders in their shares say so themselves.
    mixed = np.where(np.arange(400)[:, None] < 400 * other, -reward, reward)
    assert reversal(draws | {"reward": mixed[None]}, votes, 1.0, 0.5, 1.0) < 0.01


def test_halves_that_do_not_mirror_each_other() -> None:
    """One half has the opposite order but for two items, and is the more consistent: the mode of
    the other half is then less probable, by the votes themselves."""
    rng, reward = np.random.default_rng(0), np.linspace(1.5, -1.5, 6)
    turned = -reward[[0, 1, 3, 2, 4, 5]]
    rows = []
    for who in range(20):
        own = reward if who < 10 else 1.2 * turned
        for _ in range(240):
            one, other = rng.choice(6, 2, replace=False)
            wins = rng.random() < expit(own[one] - own[other])
            rows.append((one, other, who) if wins else (other, one, who))
    votes = hand.votes(*rows)
    here, there = (
        {
            "reward": centre + 0.1 * rng.normal(size=(1, 200, 6)),
            "competence": np.full((1, 200, 20), 0.5),
        }
        for centre in (reward, turned)
    )
    assert reversal(here, votes, 1.0, 0.5, 1.0) > 0.95
    assert reversal(there, votes, 1.0, 0.5, 1.0) < 0.05


def test_nothing_is_said_of_crowds_that_agree_or_tell_nothing() -> None:
    rng = np.random.default_rng(0)
    reward = np.array([1.0, 0.0, -1.0])
    for scale in (0.0, 1.5):
        first = rng.integers(3, size=300)
        second = (first + rng.integers(1, 3, size=300)) % 3
        wins = rng.random(300) < expit(scale * (reward[first] - reward[second]))
        rows = zip(
            np.where(wins, first, second),
            np.where(wins, second, first),
            rng.integers(4, size=300),
            strict=True,
        )
        draws = {
            "reward": scale * reward + 0.2 * rng.normal(size=(1, 200, 3)),
            "competence": np.full((1, 200, 4), 0.7),
        }
        assert reversal(draws, hand.votes(*rows), 1.0, 0.5, 1.0) == 0

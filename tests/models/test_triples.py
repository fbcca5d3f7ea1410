"""What rankings of three say about types that single votes cannot: two mixtures with the same
probability of each pair."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import jax
import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.special import expit, logsumexp

import raters as rt
from raters.program import likelihood_of

PAIRS = np.array(list(itertools.combinations(range(4), 2)))
ORDERS = np.array(list(itertools.permutations(range(4), 3)))


class Mixture(NamedTuple):
    """Shares of two types, and the worths of four items for each."""

    weight: np.ndarray
    worth: np.ndarray

    def pairs(self) -> np.ndarray:
        """P(first before second) for each pair, shape (pair,)."""
        gap = self.worth[:, PAIRS[:, 0]] - self.worth[:, PAIRS[:, 1]]
        return self.weight @ expit(gap)

    def triples(self) -> np.ndarray:
        """Probability of each order of each three items, shape (order,)."""
        first, second, third = (self.worth[:, ORDERS[:, place]] for place in range(3))
        log_first = first - logsumexp([first, second, third], 0)
        return self.weight @ np.exp(log_first + second - np.logaddexp(second, third))

    def values(self, site: str) -> dict[str, np.ndarray]:
        """Values of a model's sites."""
        return {"type_weight": self.weight, site: self.worth.T}


def _of(parameters: np.ndarray) -> Mixture:
    share = expit(parameters[0])
    worth = np.concatenate([np.zeros((2, 1)), parameters[1:].reshape(2, 3)], 1)
    return Mixture(np.array([share, 1 - share]), worth)


def like(mixture: Mixture, seed: int) -> Mixture:
    """Another mixture with the same pairs: seven parameters, and six probabilities."""
    rng = np.random.default_rng(seed)

    def miss(parameters):
        return _of(parameters).pairs() - mixture.pairs()

    return _of(
        least_squares(miss, rng.normal(scale=2, size=7), xtol=1e-15, ftol=1e-15, gtol=1e-15).x
    )


# Those who like what the others dislike, in two ways: every pair is a coin flip in both.
STRONG, TWISTED = np.array([1.8, 0.6, -0.6, -1.8]), np.array([0.3, -2.2, 2.2, -0.3])
EVEN = [Mixture(np.full(2, 0.5), np.array([worth, -worth])) for worth in (STRONG, TWISTED)]
ONE = Mixture(np.array([0.65, 0.35]), np.array([[2.0, 0.5, 0.0, -1.0], [-1.5, 0.5, 1.5, 0.0]]))


def two() -> list[list[Mixture]]:
    """Two mixtures alike in their pairs: one by symmetry, one by search."""
    others = [like(ONE, seed) for seed in range(12)]
    same = [one for one in others if np.abs(one.pairs() - ONE.pairs()).max() < 1e-9]
    return [EVEN, [ONE, max(same, key=lambda one: np.abs(one.triples() - ONE.triples()).max())]]


TWO = two()


def rankings(mixture: Mixture, number: int, seed: int) -> rt.Rankings:
    """One ranking of three items by each of so many people."""
    probs = mixture.triples() / 4  # each three as often
    drawn = np.random.default_rng(seed).choice(len(ORDERS), number, p=probs)
    columns = {name: ORDERS[drawn, place] for place, name in enumerate("abc")}
    table = columns | {"who": np.arange(number)}
    return rt.Rankings.from_wide(table, places=list("abc"), annotator="who", unranked="not offered")


@pytest.mark.parametrize("pair", TWO, ids=["symmetric", "found"])
def test_equal_pairs_and_other_triples(pair):
    one, other = pair
    np.testing.assert_allclose(one.pairs(), other.pairs(), atol=1e-9)
    assert np.abs(one.triples() - other.triples()).max() > 0.04
    np.testing.assert_allclose(one.triples().reshape(4, -1).sum(), 4, atol=1e-9)


@pytest.mark.parametrize("pair", TWO, ids=["symmetric", "found"])
def test_single_votes_have_one_likelihood_and_rankings_of_three_two(pair):
    """By the models themselves: votes of one pair by each of 300 people, and rankings."""
    rng = np.random.default_rng(0)
    drawn = PAIRS[rng.integers(6, size=300)]
    columns = {"w": drawn[:, 0], "l": drawn[:, 1], "who": np.arange(300)}
    votes = rt.Comparisons.from_frame(columns, winner="w", loser="l", annotator="who")
    ranked = rankings(pair[0], 4000, seed=1)
    with jax.enable_x64(True):
        single = [
            float(likelihood_of(rt.MixtureBTL(), votes, one.values("reward"))) for one in pair
        ]
        threes = [
            float(likelihood_of(rt.models.MixturePlackettLuce(), ranked, one.values("worth")))
            for one in pair
        ]
    assert single[0] == pytest.approx(single[1], abs=1e-6)
    p, q = (one.triples() / 4 for one in pair)
    expected = 4000 * p @ np.log(p / q)
    assert expected > 30
    # Four standard deviations: a false alarm once in 16,000.
    spread = np.sqrt(4000 * (p @ np.log(p / q) ** 2 - (p @ np.log(p / q)) ** 2))
    assert abs(threes[0] - threes[1] - expected) < 4 * spread


@pytest.mark.slow
@pytest.mark.parametrize("pair", TWO, ids=["symmetric", "found"])
@pytest.mark.filterwarnings("ignore::raters.errors.DataWarning")
@pytest.mark.filterwarnings("ignore::raters.errors.ConvergenceWarning")
def test_the_mixture_of_rankings_tells_them_apart(pair):
    """The fit to 2,000 rankings has the triples of the mixture that made them, within .06 (about
    five standard errors of a fit of seven parameters), and not those of the other."""
    model = rt.models.MixturePlackettLuce(num_types=2)
    backend = rt.PGEM(draws=0, starts=4)
    result = rt.fit(model, rankings(pair[0], 2000, seed=2), backend, seed=0, progress=False)
    mode = result["mode"]
    worth = mode["worth"].transpose("type", "item").sel(item=range(4)).values
    found = Mixture(mode["type_weight"].values, worth)
    own, other = (np.abs(found.triples() - one.triples()).max() for one in pair)
    assert own < 0.06
    assert other > 0.1

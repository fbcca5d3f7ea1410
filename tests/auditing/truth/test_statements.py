"""Orders stated by rankings and ratings: which pairs, and as how many independent ones they
count."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import raters as rt
from raters.auditing.truth.statements import of_rankings, of_ratings


def ranking(order: str, depth: int | None = None) -> rt.Rankings:
    """One ranking of all of these items, the best first, of which `depth` have a place."""
    return rt.Rankings.from_wide(
        {f"p{place}": [item] for place, item in enumerate(order[:depth])},
        places=["p*"],
        unranked="below",
        items=sorted(order),
    )


def test_pairs_of_a_partial_ranking() -> None:
    stated = of_rankings(ranking("cab", 1))
    assert sorted(zip(stated.better.tolist(), stated.worse.tolist(), strict=True)) == [
        (2, 0),
        (2, 1),
    ]
    full = of_rankings(ranking("cab"))
    assert len(full.better) == 3
    assert full.number.tolist() == [1, 1, 1]


@pytest.mark.parametrize(("size", "depth"), [(2, 2), (4, 4), (5, 2), (4, 1)])
def test_pairs_count_as_many_independent_ones_as_their_variance_has(size, depth) -> None:
    """Right orders of a guesser: the variance over all orders of the items, by enumeration."""
    items = "abcde"[:size]
    numbers = []
    for order in itertools.permutations(items):
        stated = of_rankings(ranking("".join(order), depth))
        numbers.append((stated.better < stated.worse).sum())
    pairs = len(stated.better)
    assert np.mean(numbers) == pytest.approx(pairs / 2)
    assert stated.share[0] == pytest.approx(pairs / 4 / np.var(numbers))
    if depth == size:
        assert stated.share[0] == pytest.approx(9 / (2 * size + 5))


def named(order: str, depth: int = 1) -> rt.Rankings:
    """The best ones and the worst of these items, from their order."""
    asked = rt.Candidates.sets(items=sorted(order), annotators=["x"], depth=depth, lowest=True)
    names = [*order[:depth], order[-1]]
    return asked.answered(np.array([asked.outcome_of(0, names)]))


@pytest.mark.parametrize(("size", "depth"), [(2, 1), (3, 1), (4, 1), (5, 1), (5, 2)])
def test_pairs_with_the_worst_count_by_their_variance(size, depth) -> None:
    numbers = []
    for order in itertools.permutations("abcde"[:size]):
        stated = of_rankings(named("".join(order), depth))
        numbers.append((stated.better < stated.worse).sum())
    pairs = len(stated.better)
    assert np.mean(numbers) == pytest.approx(pairs / 2)
    assert stated.share[0] == pytest.approx(pairs / 4 / np.var(numbers))


@pytest.mark.parametrize("known", ["abcd", "ab", "ad", "acd"])
def test_known_pairs_count_by_their_own_variance(known) -> None:
    numbers, shares = [], []
    for order in itertools.permutations("abcde"):
        stated = of_rankings(ranking("".join(order)))
        codes = ["abcde".index(item) for item in known]
        both = np.isin(stated.better, codes) & np.isin(stated.worse, codes)
        sign = np.where(both, np.where(stated.better < stated.worse, 1, -1), 0)
        numbers.append((sign > 0).sum())
        shares.append(stated.known_share(sign, 5))
    pairs = int(both.sum())
    assert np.all(np.asarray(shares)[:, ~both] == 0) or both.all()
    for share in shares:
        assert share.sum() == pytest.approx(pairs * pairs / 4 / np.var(numbers))


def ratings() -> rt.Ratings:
    table = {
        "item": ["a", "b", "c", "a", "b"],
        "who": ["x", "x", "x", "y", "y"],
        "says": [1, 2, 2, 3, 1],
    }
    return rt.Ratings.from_frame(
        table, item="item", annotator="who", rating="says", levels=[1, 2, 3]
    )


def test_ratings_on_different_levels_are_orders() -> None:
    stated = of_ratings(ratings(), np.zeros(3, bool))
    found = zip(*(part.tolist() for part in stated[:3]), strict=True)
    assert sorted(found) == [(0, 1, 0), (0, 2, 0), (1, 0, 1)]
    assert stated.share.tolist() == pytest.approx([9 / 11, 1.0])

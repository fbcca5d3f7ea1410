"""The questions that there are: among some names, under masks and availability, sampled, before any
vote, and none."""

from __future__ import annotations

import dataclasses
import itertools
import tracemalloc

import numpy as np
import pytest

import raters as rt

ITEMS, ANNOTATORS = 6, 4
VOTES, _ = rt.datasets.separated(ITEMS, ANNOTATORS, 60, seed=0)
PAIRS = rt.Candidates.pairs(VOTES)
EVERY_PAIR = set(itertools.combinations(range(ITEMS), 2))


def asked(pool: rt.Comparisons) -> set[tuple]:
    """(first, second, annotator) by name, each of which comes once."""
    found = [
        (pool.items[i], pool.items[j], pool.annotators[k])
        for i, j, k in zip(pool.first, pool.second, pool.annotator, strict=True)
    ]
    assert len(set(found)) == len(found)
    return set(found)


# ------------------------------------------------------------------ pairs


def test_both_ways_where_the_order_counts():
    ordered = dataclasses.replace(VOTES, ordered=True)
    found = asked(
        rt.Candidates.pairs(ordered, items=[5, 2, 0], annotators=[3], mask=lambda i, j: j - i > 2)
    )
    assert found == {(0, 5, 3), (5, 0, 3), (2, 5, 3), (5, 2, 3)}
    assert rt.Candidates.pairs(ordered).num_comparisons == 2 * PAIRS.num_comparisons
    assert rt.Candidates.pairs(ordered, limit=7).num_comparisons == 7


# ------------------------------------------------------------------ masks


def test_annotators_are_asked_about_what_they_can_judge():
    can = {0: [1, 4, 2], 2: [], 3: None}  # 1 can judge all
    found = asked(rt.Candidates.pairs(VOTES, available=can))
    expected = {(*pair, who) for pair in EVERY_PAIR for who in (1, 3)} | {
        (1, 2, 0),
        (1, 4, 0),
        (2, 4, 0),
    }
    assert found == expected
    masked = asked(
        rt.Candidates.pairs(VOTES, available=can, mask=lambda i, j: (j - i == 3) | (i + j == 5))
    )
    assert {(1, 4, 0), (1, 4, 1), (0, 5, 3)} <= masked <= expected
    assert not {(0, 5, 0), (1, 4, 2)} & masked
    assert asked(rt.Candidates.pairs(VOTES, items=[1, 2], annotators=[0, 2], available=can)) == {
        (1, 2, 0)
    }


@pytest.mark.parametrize("kind", ["scanned", "drawn"])
def test_a_masked_sample_is_distinct_and_uniform(kind, monkeypatch):
    """One question in three of 100 × 99 / 2 × 10, of which 2,000 are wanted; by either way to
    sample."""
    if kind == "drawn":
        monkeypatch.setattr("raters.acquisition.questions.numbered._CHUNK", 1 << 10)
    options = {
        "items": range(100),
        "annotators": range(10),
        "mask": lambda first, second: (first + second) % 3 == 0,
        "available": {9: range(50)},
        "limit": 2000,
    }
    found = rt.Candidates.pairs(**options, seed=1)
    assert len(asked(found)) == found.num_comparisons == 2000
    assert ((found.first + found.second) % 3 == 0).all()
    number = np.bincount(found.annotator, minlength=10)
    assert found.second[found.annotator == 9].max() < 50
    # 1,650 of 15,265 questions are those of each of nine annotators: 216 ± 13; six deviations.
    assert np.abs(number[:9] - 216).max() < 80
    # Uniform over pairs: the mean of the larger code is 66 with standard deviation 24 / √1800.
    assert abs(found.second[found.annotator < 9].mean() - 66) < 3.5
    assert (
        asked(found)
        == asked(rt.Candidates.pairs(**options, seed=1))
        != asked(rt.Candidates.pairs(**options, seed=2))
    )


@pytest.mark.parametrize(
    "options",
    [
        {"mask": lambda first, second: (first + second) % 7 == 0},
        {"available": dict.fromkeys(range(5), range(0, 100_000, 2))},
        {},
    ],
    ids=["mask", "available", "all"],
)
def test_memory_is_that_of_the_sample_and_a_chunk(options):
    names = range(100_000), range(100)
    votes = rt.Comparisons(np.zeros(1, int), np.ones(1, int), np.zeros(1, int), None, None, *names)
    tracemalloc.start()
    found = rt.Candidates.pairs(votes, **options, limit=10_000)  # of 5e11
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.num_comparisons == 10_000
    assert peak < (60e6 if "available" in options else 20e6)  # the lists given are 5 × 50,000 names


# ------------------------------------------------------------------ labels


def rows(pool: rt.Labels) -> list[tuple]:
    return [
        (pool.items[i], pool.annotators[k]) for i, k in zip(pool.item, pool.annotator, strict=True)
    ]


def test_labels_that_are_not_there_yet():
    labels = rt.datasets.label_crowd(20, 5, 3, seed=0).labels
    there = set(rows(labels))
    every = set(itertools.product(range(20), range(5)))
    assert rows(rt.Candidates.labels(labels)) == sorted(every - there)
    assert rows(rt.Candidates.labels(labels, again=True)) == sorted(every)
    can = {0: range(10), 3: [], 4: None}
    allowed = {(item, who) for item, who in every if who not in (0, 3) or (who == 0 and item < 10)}
    assert rows(rt.Candidates.labels(labels, available=can)) == sorted(allowed - there)
    assert rows(
        rt.Candidates.labels(
            labels.padded(128), available=can, items=[3, 12], annotators=[0, 1], again=True
        )
    ) == sorted({(3, 0), (3, 1), (12, 1)})
    few = rows(rt.Candidates.labels(labels, available=can, limit=7, seed=1))
    assert len(set(few)) == 7
    assert set(few) <= allowed - there
    assert few == sorted(few)

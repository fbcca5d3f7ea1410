"""Agreement of ratings and of comparisons: against published numbers, the `krippendorff` package,
and counts by enumeration."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.auditing.disagreement import Answers, nominal, ordinal
from tests import hand
from tests.auditing.test_agreement import FIVE, FOUR, THREE, labels_of, repeated, rows_of


def answers_of(labels: rt.Labels) -> Answers:
    answers = Answers.of(labels)
    return answers.of_questions(answers.num_raters >= 2)


def alpha(labels: rt.Labels) -> float:
    """Krippendorff's α of classes in their order."""
    return 1 - ordinal(answers_of(labels)).value


# ---------------------------------------------------------------- published numbers, and a library


def test_published_alpha():
    # Krippendorff (2011), four observers, section E.
    assert alpha(labels_of(rows_of(FOUR))) == pytest.approx(0.815, abs=5e-4)


# krippendorff 0.9.0, alpha(reliability_data, level_of_measurement), to 12 digits.
@pytest.mark.parametrize(
    ("texts", "of_order"), [(FOUR, 0.815387503755), (THREE, 0.806721419941), (FIVE, 0.768685159486)]
)
def test_alphas_are_those_of_the_library(texts, of_order):
    assert alpha(labels_of(rows_of(texts))) == pytest.approx(of_order, abs=1e-11)


# ---------------------------------------------------------------- by enumeration


def enumerated(rows: list[tuple[int, int, int]], distance) -> float:
    """α from all pairs of different annotators of an item, and of different (item, annotator).

    An annotator's answers to an item are drawn from; with one answer each this is Krippendorff's
    coincidence matrix.
    """
    given = {(i, k): [c for j, m, c in rows if (j, m) == (i, k)] for i, k, _ in rows}
    by_item = {i: [k for j, k in given if j == i] for i, _ in given}
    by_item = {i: who for i, who in by_item.items() if len(who) >= 2}

    def apart(one, two):
        return np.mean([distance(a, b) for a, b in itertools.product(given[one], given[two])])

    within = [
        np.mean([apart((i, k), (i, m)) for k, m in itertools.permutations(who, 2)])
        for i, who in by_item.items()
    ]
    cells = [(i, k) for i, who in by_item.items() for k in who]
    chance = np.mean([apart(one, two) for one, two in itertools.permutations(cells, 2)])
    return 1 - np.average(within, weights=[len(who) for who in by_item.values()]) / chance


def shares(rows: list[tuple[int, int, int]]) -> np.ndarray:
    """Number of labels of each class, an annotator's repeated ones as one, of items with two."""
    given = {(i, k): [c for j, m, c in rows if (j, m) == (i, k)] for i, k, _ in rows}
    size = {i: sum(j == i for j, _ in given) for i, _ in given}
    return sum(np.eye(3)[labels].mean(0) for (i, _), labels in given.items() if size[i] >= 2)


@pytest.mark.parametrize("seed", range(5))
def test_distances_by_enumeration(seed):
    rows = repeated(seed)
    labels = labels_of(rows, num_items=12, num_classes=3)
    number = shares(rows)

    def by_rank(c, k):
        low, high = sorted((c, k))
        return (number[low : high + 1].sum() - (number[c] + number[k]) / 2) ** 2

    assert alpha(labels) == pytest.approx(enumerated(rows, by_rank))


# ---------------------------------------------------------------- intervals


def crowd(rng: np.random.Generator, items: int) -> rt.Labels:
    """Labels of four ordered classes, one to five for each item."""
    item, annotator = np.nonzero(np.arange(5) < rng.integers(1, 6, items)[:, None])
    middle = rng.normal(1.5, 1.0, items)[item]
    label = np.clip(np.rint(middle + rng.normal(0, 0.8, len(item))), 0, 3).astype(int)
    rows = np.stack([item, annotator, label], 1)
    return labels_of(rows, num_items=items, num_classes=4)


def ratios(labels: rt.Labels) -> dict:
    """Ratios of all statistics."""
    answers = answers_of(labels)
    return nominal(answers) | {"ordinal": ordinal(answers)}


def test_the_errors_are_those_of_the_jackknife():
    """Two estimates of one standard error: of 300 items they differ by a few per cent at most."""
    labels = crowd(np.random.default_rng(0), 300)
    full = ratios(labels)
    keep = np.flatnonzero(np.bincount(labels.item, minlength=300) >= 2)
    without = [ratios(labels.take(np.delete(keep, row))) for row in range(len(keep))]
    for name, ratio in full.items():
        values = np.array([one[name].value for one in without])
        jackknife = math.sqrt((len(keep) - 1) * np.var(values))
        error = math.sqrt(np.sum(ratio.influence**2) / (len(keep) * (len(keep) - 1)))
        assert error == pytest.approx(jackknife, rel=0.03), name


# ---------------------------------------------------------------- comparisons


def test_sides_without_an_order_are_equal_by_chance():
    votes = hand.votes(
        ("a", "b", "x"),
        ("a", "b", "y"),
        ("b", "a", "z"),
        ("c", "a", "x"),
        ("c", "a", "y"),
        ("b", "c", "x"),
    )
    table = rt.agreement(votes)
    # Of three pairs of annotators one agrees about a and b; the two agree about a and c.
    observed = (1 / 3 + 1) / 2
    by_answers = (3 * 1 / 3 + 2 * 1) / 5
    assert table["estimate"].tolist() == pytest.approx(
        [observed, 2 * by_answers - 1, 2 * observed - 1, 2 * observed - 1]
    )
    assert set(table["items"]) == {2}
    assert set(table["items_left_out"]) == {1}


def test_a_question_is_a_pair_in_its_order():
    rows = [
        ("p", "q", "first", "x"),
        ("p", "q", "first", "y"),
        ("q", "p", "first", "x"),
        ("q", "p", "second", "y"),
        ("q", "p", "first", "z"),
        ("p", "r", "second", "x"),
        ("r", "p", "first", "y"),
    ]
    votes = hand.ordered_votes(*rows)
    labels = hand.labels(*((first + second, who, side) for first, second, side, who in rows))
    pd.testing.assert_frame_equal(rt.agreement(votes), rt.agreement(labels))
    assert set(rt.agreement(votes)["items_left_out"]) == {2}
    either = rt.agreement(dataclasses.replace(votes, ordered=False))
    assert set(either["items"]) == {2}
    assert set(either["items_left_out"]) == {0}

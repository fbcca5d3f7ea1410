"""Agreement with distances of classes, on each class, and of comparisons: against published
numbers, the `krippendorff` package, and counts by enumeration."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.auditing.disagreement import Answers, nominal, of_class, ordinal, scored
from raters.errors import DataError, DataWarning
from tests import hand
from tests.auditing.test_agreement import FIVE, FLEISS, FOUR, THREE, labels_of, repeated, rows_of
from tests.refusals import raises_about


def alpha(labels: rt.Labels, metric: str) -> float:
    return float(rt.agreement(labels, metric=metric).loc["krippendorff_alpha", "estimate"])


# ---------------------------------------------------------------- published numbers, and a library


@pytest.mark.parametrize(
    ("texts", "metric", "value"),
    [
        # Krippendorff (2011), four observers, sections C and E.
        (FOUR, "nominal", 0.743),
        (FOUR, "ordinal", 0.815),
        (FOUR, "interval", 0.849),
        (THREE, "interval", 0.811),  # Wikipedia, "Krippendorff's alpha"
    ],
)
def test_published_alphas(texts, metric, value):
    assert alpha(labels_of(rows_of(texts)), metric) == pytest.approx(value, abs=5e-4)


# krippendorff 0.9.0, alpha(reliability_data, level_of_measurement), to 12 digits.
@pytest.mark.parametrize(
    ("texts", "of_order", "of_numbers"),
    [
        (FOUR, 0.815387503755, 0.849107142857),
        (THREE, 0.806721419941, 0.810844892812),
        (FIVE, 0.768685159486, 0.771864808776),
    ],
)
def test_alphas_are_those_of_the_library(texts, of_order, of_numbers):
    labels = labels_of(rows_of(texts))
    assert alpha(labels, "ordinal") == pytest.approx(of_order, abs=1e-11)
    assert alpha(labels, "interval") == pytest.approx(of_numbers, abs=1e-11)


def test_published_agreement_on_each_class():
    """Fleiss (1971), Table 2: κ of each diagnosis; as given by `kappam.fleiss(diagnoses,
    detail=TRUE)` of the R package irr."""
    table = rt.agreement(labels_of(rows_of(FLEISS)), by_class=True)
    kappa = table["estimate"].unstack("statistic")["fleiss_kappa"]
    assert kappa.tolist() == pytest.approx([0.245, 0.245, 0.520, 0.471, 0.566], abs=5e-4)


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

    assert alpha(labels, "ordinal") == pytest.approx(enumerated(rows, by_rank))
    values = dataclasses.replace(labels, classes=(1, 2, 7))
    between = enumerated(rows, lambda c, k: (values.classes[c] - values.classes[k]) ** 2)
    assert alpha(values, "interval") == pytest.approx(between)


def test_specific_agreement_by_enumeration():
    """Of those who give a class, the share of the others at the item who give it too."""
    rows = rows_of(FIVE)
    table = rt.agreement(labels_of(rows), by_class=True)["estimate"]
    for code in range(4):
        pairs = [
            c == code
            for (i, k, own), (j, m, c) in itertools.permutations(rows, 2)
            if i == j and k != m and own == code
        ]
        weights = [
            1 / (sum(i == j for j, _, _ in rows) - 1)
            for (i, k, own), (j, m, _) in itertools.permutations(rows, 2)
            if i == j and k != m and own == code
        ]
        expected = np.average(pairs, weights=weights)
        assert table[code, "specific_agreement"] == pytest.approx(expected)


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
    answers = Answers.of(labels)
    answers = answers.of_questions(answers.num_raters >= 2)
    of_two, _ = of_class(answers.against_the_rest(1))
    return nominal(answers) | {
        "ordinal": ordinal(answers),
        "interval": scored(answers, np.arange(4.0)),
        "specific": of_two["specific_agreement"],
    }


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


# ---------------------------------------------------------------- order and numbers


def test_the_order_of_the_classes():
    labels = labels_of(rows_of(FIVE))
    down = dataclasses.replace(labels, classes=(4, 3, 2, 1))
    assert alpha(down, "ordinal") == alpha(labels, "ordinal")
    with raises_about(DataError, "classes"):
        rt.agreement(dataclasses.replace(labels, classes=(1, 10, 2, 3)), metric="ordinal")
    with pytest.warns(DataWarning, match="that of the alphabet, fair < good < none < poor; where"):
        rt.agreement(
            dataclasses.replace(labels, classes=("fair", "good", "none", "poor")), metric="ordinal"
        )
    named = dataclasses.replace(labels, classes=("none", "poor", "fair", "good"))
    assert alpha(named, "ordinal") == alpha(labels, "ordinal")
    grades = dataclasses.replace(labels, classes=("A", "B", "C", "D"))
    assert alpha(grades, "ordinal") == alpha(labels, "ordinal")


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

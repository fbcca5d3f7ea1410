"""The packaged table against the printed one: Dawid and Skene (1979), Table 1."""

from __future__ import annotations

import csv
import re
from collections import Counter

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

import raters as rt
from tests.real import data_folder

# As printed: for each patient, observer 1 (three times) and observers 2 to 5.
PRINTED = """
 1 111 1111   2 333 4334   3 112 2122   4 222 3121   5 222 3222
 6 222 3322   7 112 2111   8 333 3433   9 222 2223  10 232 2223
11 444 4444  12 222 3343  13 111 1111  14 222 3212  15 121 1111
16 111 2111  17 111 1111  18 111 1111  19 222 2221  20 222 1322
21 222 2222  22 222 2221  23 222 3222  24 221 2222  25 111 1111
26 111 1111  27 232 2222  28 111 1111  29 111 1111  30 112 1121
31 111 1111  32 333 3233  33 111 1111  34 222 2222  35 222 3232
36 433 4343  37 221 2232  38 232 3233  39 333 3432  40 111 1111
41 111 1111  42 121 2111  43 232 2222  44 121 1111  45 222 2222
"""
TABLE = np.array(
    [
        [int(digit) for digit in first + rest]
        for first, rest in re.findall(r"\d+ (\d{3}) (\d{4})", PRINTED)
    ]
)
RATERS = [
    "observer 1, first time",
    "observer 1, second time",
    "observer 1, third time",
    "observer 2",
    "observer 3",
    "observer 4",
    "observer 5",
]


def packaged() -> np.ndarray:
    table = rt.datasets.anesthesia()
    found = np.zeros((45, 7), int)
    for patient, rater, rating in zip(
        table["patient"], table["rater"], table["rating"], strict=True
    ):
        assert found[patient - 1, RATERS.index(rater)] == 0
        found[patient - 1, RATERS.index(rater)] = rating
    return found


def test_every_cell_is_as_printed():
    assert TABLE.shape == (45, 7)
    assert np.array_equal(packaged(), TABLE)


def test_the_published_prevalence_comes_out():
    """Dawid and Skene's own EM, from the majority's opinion: they print the classes' prevalence as
    .40, .42, .11, .07."""
    table = rt.datasets.anesthesia()
    votes = np.zeros((45, 5, 4))
    np.add.at(votes, (table["patient"] - 1, table["observer"] - 1, table["rating"] - 1), 1)
    truth = votes.sum(1) / votes.sum((1, 2))[:, None]
    for _ in range(200):
        prevalence = truth.mean(0)
        confusion = np.einsum("ic,iol->ocl", truth, votes)
        confusion /= confusion.sum(2, keepdims=True)
        log_joint = np.log(prevalence) + np.einsum(
            "iol,ocl->ic", votes, np.log(np.maximum(confusion, 1e-300))
        )
        truth = softmax(log_joint, axis=1)
    np.testing.assert_allclose(prevalence, [0.40, 0.42, 0.11, 0.07], atol=0.005)
    assert logsumexp(log_joint, axis=1).sum() == pytest.approx(-190.73, abs=0.01)


def test_columns():
    table = rt.datasets.anesthesia()
    assert {name: values.shape for name, values in table.items()} == dict.fromkeys(table, (315,))
    assert Counter(zip(table["observer"].tolist(), table["occasion"].tolist(), strict=True)) == {
        (1, 1): 45, (1, 2): 45, (1, 3): 45, (2, 1): 45, (3, 1): 45, (4, 1): 45, (5, 1): 45,
    }  # fmt: skip


def test_the_same_counts_as_another_copy():
    path = data_folder("anesthesia") / "labels.csv"
    with path.open(encoding="utf-8", newline="") as file:
        other = Counter(
            (int(row["item"]), int(row["annotator"]), int(row["label"]))
            for row in csv.DictReader(file)
        )
    table = rt.datasets.anesthesia()
    ours = Counter(
        zip(*(table[name].tolist() for name in ("patient", "observer", "rating")), strict=True)
    )
    assert ours == other


def test_votes_are_all_pairs_of_patients():
    votes = rt.datasets.anesthesia("votes")
    assert votes.num_votes == votes.num_comparisons == 7 * 45 * 44 // 2
    assert (votes.num_items, votes.num_annotators) == (45, 7)
    told_apart = sum(int((np.subtract.outer(column, column) > 0).sum()) for column in TABLE.T)
    assert (votes.wins != 0.5).sum() == told_apart


@pytest.mark.parametrize("rater", range(7))
def test_the_worse_risk_wins_and_equal_ones_share(rater):
    votes = rt.datasets.anesthesia("votes")
    mine = votes.take(np.asarray(votes.annotator) == votes.annotators.index(RATERS[rater]))
    first, second = (np.array(votes.items)[side] - 1 for side in (mine.first, mine.second))
    difference = TABLE[first, rater] - TABLE[second, rater]
    assert np.array_equal(mine.wins, (np.sign(difference) + 1) / 2)

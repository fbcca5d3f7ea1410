"""Four ways to train on labels that may be wrong, and the simulation that compares them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import raters as rt
from tests import hand

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from noisy_labels import Inferred, crowd, simulate_labelling, truths

COLUMNS = {"item": "i", "annotator": "a", "label": "l"}
TABLE = {"i": [0, 0, 0, 1, 1], "a": [*"xyzxy"], "l": [0, 1, 1, 1, 0]}
LABELS = rt.Labels.from_frame(TABLE, **COLUMNS, items=[0, 1, 2])
INFERRED = Inferred(np.array([[0.7, 0.3], [0.1, 0.9], [0.6, 0.4]]), np.array([0.6, 0.9, 0.5]), {})
STEPS = {"labels_per_item": 5, "items_per_step": 28}


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ("majority", [1, 0, -1]),  # of equal votes the first class
        ("frozen", [1, 1, -1]),
        ("reinferred", [0, 1, -1]),
        ("best", [0, 1, -1]),
    ],
)
def test_ways_to_take_a_truth(way, expected) -> None:
    known = LABELS.with_truth({0: 0})  # which is not looked at
    before = np.array([1, -1, -1])
    assert truths(way, known, before, INFERRED).tolist() == expected


def test_what_is_inferred() -> None:
    """One who is always with the others, and one who never is."""
    table = [(i, a, (i % 2) ^ (a == "z")) for i in range(20) for a in "wxyz"]
    labels = hand.labels(*table)
    inferred = Inferred.of(labels, None)
    assert inferred.responsibility.argmax(1).tolist() == [i % 2 for i in range(20)]
    assert inferred.accuracy[:3].min() > 0.8 > 0.25 > inferred.accuracy[3]
    again = Inferred.of(labels, inferred)
    np.testing.assert_allclose(again.accuracy, inferred.accuracy, atol=0.01)


@pytest.mark.slow
def test_inferring_anew_beats_freezing_beats_the_majority() -> None:
    """Over 10 crowds the areas differed by .021 (inferred anew less frozen) and .061 (frozen less
    majority), with standard deviations of .013 and .033 from crowd to crowd: of 6 crowds, false
    alarm below 1e-4 for each, were seeds not fixed.
    """
    areas = []
    for seed in range(6):
        ways = ("majority", "frozen", "reinferred")
        curves = simulate_labelling(crowd(seed, 150), ways, **STEPS, seed=seed)
        assert curves["answers"].values.tolist() == [[50, 190, 330, 470, 610, 750]] * 3
        areas.append(curves["label_accuracy"].mean("step").values)
    majority, frozen, anew = np.mean(areas, 0)
    assert anew > frozen > majority


def test_the_best_labeller_labels_more_items_and_random_numbers_are_common() -> None:
    steps = STEPS | {"first_items": 38, "budget": 330, "seed": 0}
    curves = simulate_labelling(crowd(0, 150), ("majority", "best"), **steps)
    majority, best = (curves.sel(way=name) for name in ("majority", "best"))
    assert best["asked_accuracy"].values[1:5].min() > 0.9  # one of the five
    assert majority["asked_accuracy"].values[0] == best["asked_accuracy"].values[0] < 0.7
    assert best["items"].max() == 150
    assert majority["items"].max() == 66  # with the same 330 answers as 38 + 28 items take
    assert best["answers"].max() == 5 * 38 + 112
    alone = simulate_labelling(crowd(0, 150), ["majority"], **steps).isel(way=0)
    for name in alone.data_vars:
        steps_taken = majority[name].values[: alone.sizes["step"]]
        assert np.array_equal(alone[name].values, steps_taken)

"""Questions that the tests of calibration share, so that each kernel is compiled once."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import raters as rt


@pytest.fixture(scope="package")
def asked() -> rt.Labels:
    """Two labels for each of 4 items by 3 annotators, in 3 classes; a feature, one item whose class
    is known, and two annotators of one family."""
    labels = rt.datasets.label_crowd(4, 3, 2, 3, num_features=1, seed=1).labels.with_truth({0: 1})
    return dataclasses.replace(labels, family=np.array([0, 0, -1], np.int32), families=("A",))


@pytest.fixture(scope="package")
def with_features(singles: rt.Comparisons) -> rt.Comparisons:
    """Single votes on items with two features."""
    return singles.with_features(np.random.default_rng(0).normal(size=(4, 2)))


@pytest.fixture(scope="package")
def to_rank() -> rt.Rankings:
    """Five rankings of up to 3 of 4 items by two annotators, with items that get no place."""
    offered = np.array([[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 3, -1], [1, 2, 3, -1], [0, 2, -1, -1]])
    depth = np.array([1, 2, 3, 2, 1], np.int32)
    place = np.where(np.arange(1, 5) <= depth[:, None], np.arange(1, 5), 0)
    who = np.array([0, 1, 0, 1, 0], np.int32)
    return rt.Rankings(
        who, depth, None, offered.astype(np.int32), place, ("ann", "bob"), tuple("abcd")
    )


@pytest.fixture(scope="package")
def to_rank_with_ties(to_rank: rt.Rankings) -> rt.Rankings:
    """The same, where up to three items may share a place."""
    return dataclasses.replace(to_rank, most_tied=3)


@pytest.fixture(scope="package")
def to_rate() -> rt.Ratings:
    """Every one of three annotators rates four items on three levels, some of them twice."""
    item, annotator = (np.ravel(code).astype(np.int32) for code in np.indices((4, 3)))
    count = np.where(item == 0, 2, 1).astype(np.float32)
    rating = (item % 3).astype(np.int32)
    return rt.Ratings(item, annotator, rating, count, tuple("abcd"), ("x", "y", "z"), (1, 2, 3))


@pytest.fixture(scope="package")
def to_choose() -> rt.Choices:
    """Six sets of two or three of three alternatives, with a feature of both, by two choosers."""
    sets = [(0, 1, 2), (0, 1), (0, 1, 2), (1, 2), (0, 2), (0, 1, 2)]
    rng = np.random.default_rng(0)
    rows = [
        (number, code, number % 2, rng.normal(), number // 2)
        for number, offered in enumerate(sets)
        for code in offered
    ]
    group, alternative, who, price, age = (list(column) for column in zip(*rows, strict=True))
    table = {"set": group, "mode": alternative, "who": who, "price": price, "age": age}
    return rt.Choices.from_frame(
        table, set="set", alternative="mode", annotator="who", features=["price"], choosers=["age"]
    )


@pytest.fixture(scope="package")
def tested() -> rt.Responses:
    """Four items to three persons, one of the cells empty."""
    rows = np.delete(np.arange(12), 5)
    table = {"person": rows // 4, "item": rows % 4, "correct": rows % 2}
    return rt.Responses.from_frame(table, person="person", item="item", correct="correct")

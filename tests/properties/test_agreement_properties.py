"""What must hold for the agreement of any labels and any comparisons."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import raters as rt
from raters.errors import DataError, DataWarning
from tests.auditing.test_agreement import labels_of

SEED = st.integers(0, 2**32 - 1)
CELL = st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 2))
LABELS = st.lists(CELL, min_size=2, max_size=40)
VOTE = st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(0, 3), st.integers(0, 2))
VOTES = st.lists(VOTE, min_size=2, max_size=40)


def measured(data, **options) -> np.ndarray:
    """The table as numbers."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            table = rt.agreement(data, **options)
    except DataError:
        assume(False)
    return table.to_numpy(float)


def labels_from(rows) -> rt.Labels:
    return labels_of(rows, num_items=6, num_classes=3)


def votes_from(rows, *, ordered: bool) -> rt.Comparisons:
    """Votes of (one item, distance to the other, annotator, twice the votes for the first)."""
    first, apart, annotator, wins = np.array(rows).T
    return rt.Comparisons(
        first.astype(np.int32),
        ((first + apart) % 4).astype(np.int32),
        annotator.astype(np.int32),
        (wins / 2).astype(np.float32),
        np.ones(len(rows), np.float32),
        tuple("abcd"),
        tuple("wxyz"),
        ordered,
    )


@settings(max_examples=60, deadline=None)
@given(LABELS, SEED, st.sampled_from(["nominal", "ordinal", "interval"]))
def test_the_order_of_rows_items_and_annotators_has_no_effect(rows, seed, metric):
    rng = np.random.default_rng(seed)
    other = rng.permutation(np.array(rows))
    other[:, 0] = rng.permutation(6)[other[:, 0]]
    other[:, 1] = rng.permutation(4)[other[:, 1]]
    one, two = (measured(labels_from(part), metric=metric) for part in (rows, other))
    np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(LABELS, SEED)
def test_renaming_the_classes_permutes_their_agreement(rows, seed):
    order = np.random.default_rng(seed).permutation(3)
    other = np.array(rows)
    other[:, 2] = order[other[:, 2]]
    np.testing.assert_allclose(
        measured(labels_from(rows)), measured(labels_from(other)), rtol=1e-9, atol=1e-9
    )
    one, two = (measured(labels_from(part), by_class=True) for part in (rows, other))
    shape = (3, -1, one.shape[1])
    np.testing.assert_allclose(one.reshape(shape), two.reshape(shape)[order], rtol=1e-9, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(LABELS, st.sampled_from(["nominal", "ordinal", "interval"]))
def test_an_estimate_lies_in_its_interval_and_below_1(rows, metric):
    estimate, low, high = measured(labels_from(rows), metric=metric)[:, :3].T
    known = ~np.isnan(low)
    assert (estimate[known] <= 1 + 1e-9).all()
    assert (low[known] <= estimate[known] + 1e-9).all()
    assert (estimate[known] <= high[known] + 1e-9).all()


@settings(max_examples=60, deadline=None)
@given(VOTES, SEED, st.booleans())
def test_renaming_the_items_and_annotators_has_no_effect(rows, seed, ordered):
    rng = np.random.default_rng(seed)
    votes = votes_from(rows, ordered=ordered)
    item, annotator = rng.permutation(4).astype(np.int32), rng.permutation(4).astype(np.int32)
    other = dataclasses.replace(
        votes,
        first=item[votes.first],
        second=item[votes.second],
        annotator=annotator[votes.annotator],
    ).rows(rng.permutation(len(rows)))
    np.testing.assert_allclose(measured(votes), measured(other), rtol=1e-9, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(VOTES, SEED)
def test_turning_pairs_without_an_order_has_no_effect(rows, seed):
    votes = votes_from(rows, ordered=False)
    turn = np.random.default_rng(seed).random(len(rows)) < 0.5
    other = dataclasses.replace(
        votes,
        first=np.where(turn, votes.second, votes.first),
        second=np.where(turn, votes.first, votes.second),
        wins=np.where(turn, 1 - votes.wins, votes.wins),
    )
    np.testing.assert_allclose(measured(votes), measured(other), rtol=1e-9, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(VOTES)
@pytest.mark.parametrize("ordered", [False, True])
def test_aggregated_votes_agree_as_their_rows_do(ordered, rows):
    votes = votes_from(rows, ordered=ordered)
    np.testing.assert_allclose(measured(votes), measured(votes.aggregate()), rtol=1e-9, atol=1e-9)

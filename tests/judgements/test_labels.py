"""Labels: every kind of table, truths, features and records, what is refused with which words, and
parts of the data."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import raters as rt
from raters.errors import DataError, DataWarning
from raters.judgements.labels import Labels
from tests.refusals import raises_about

TABLE = {
    "page": [7, 7, 9, 9, 12],
    "who": ["ann", "bob", "ann", "bob", "ann"],
    "says": ["ham", "spam", "ham", "ham", "spam"],
}


def read(table=None, **options) -> Labels:
    return Labels.from_frame(
        TABLE if table is None else table, item="page", annotator="who", label="says", **options
    )


def rows(labels: Labels) -> dict:
    """(item, annotator, label) by name → how often."""
    found: dict = {}
    for item, who, said, count, *_ in labels.to_frame().itertuples(index=False):
        found[item, who, said] = found.get((item, who, said), 0) + count
    return found


# ------------------------------------------------------------------ reading


def test_a_table_of_labels_is_read():
    labels = read(TABLE | {"gold": ["ham"] * 2 + ["spam"] * 3}, truth="gold")
    assert (labels.items, labels.annotators, labels.classes) == (
        (7, 9, 12),
        ("ann", "bob"),
        ("ham", "spam"),
    )
    assert labels.item.tolist() == [0, 0, 1, 1, 2]
    assert labels.annotator.tolist() == [0, 1, 0, 1, 0]
    assert labels.label.tolist() == [0, 1, 0, 0, 1]
    assert labels.truth.tolist() == [0, 1, 1]
    assert labels.count is None
    assert (labels.num_labels, labels.num_units, labels.most) == (5, 3, 2)
    assert labels.votes().tolist() == [[1, 1], [2, 0], [0, 1]]
    assert {
        array.dtype
        for array in (labels.group, labels.annotator, labels.label, labels.unit_code, labels.truth)
    } == {np.dtype(np.int32)}


def test_a_truth_spelled_nearly_as_a_label_is_refused():
    table = {"item": [1, 1, 2, 2], "who": ["a", "b"] * 2, "says": ["yes", "no", "yes", "yes"]}
    columns = {"item": "item", "annotator": "who", "label": "says", "truth": "gold"}
    with raises_about(DataError, "truth"):
        rt.Labels.from_frame(table | {"gold": ["Yes", "Yes", None, None]}, **columns)
    with pytest.warns(DataWarning, match="some classes are told apart"):
        labels = rt.Labels.from_frame(
            table | {"gold": ["Yes", "Yes", None, None]}, **columns, classes=["Yes", "yes", "no"]
        )
    assert labels.truth.tolist() == [0, -1]


def test_names_given_fix_the_order_and_add_the_unseen():
    labels = read(
        classes=["spam", "phish", "ham"], items=[12, 10, 9, 7], annotators=["eve", "bob", "ann"]
    )
    assert labels.classes == ("spam", "phish", "ham")
    assert labels.item.tolist() == [0, 2, 2, 3, 3]
    assert labels.votes().tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 2], [1, 0, 1]]
    assert labels.judgements_by("annotator").tolist() == [0, 2, 3]
    with pytest.warns(DataWarning) as caught:
        labels.warn()
    messages = [str(warning.message) for warning in caught]
    assert [re.search(": (.*)", message)[1] for message in messages] == ["10", "eve", "phish"]


def test_one_class_only_is_refused_until_all_are_named():
    table = TABLE | {"says": ["ham"] * 5}
    with raises_about(DataError, "classes"):
        read(table)
    assert read(table, classes=["ham", "spam"]).num_classes == 2
    assert read(table | {"gold": ["spam"] * 5}, truth="gold").num_classes == 2


# ------------------------------------------------------------------ counts and repeats

REPEATED = {
    "page": [1, 1, 1, 1, 2],
    "who": ["ann", "ann", "bob", "ann", "ann"],
    "says": ["spam", "ham", "ham", "spam", "ham"],
}


def test_repeats_are_counted():
    labels = read(REPEATED)
    assert rows(labels) == {
        (1, "ann", "ham"): 1,
        (1, "ann", "spam"): 2,
        (1, "bob", "ham"): 1,
        (2, "ann", "ham"): 1,
    }
    assert labels.count.tolist() == [1, 2, 1, 1]
    assert (labels.num_rows, labels.num_labels, labels.most) == (4, 5, 3)


def test_repeats_are_dropped_after_the_first_row():
    labels = read(REPEATED, repeats="drop")
    assert rows(labels) == {(1, "ann", "spam"): 1, (1, "bob", "ham"): 1, (2, "ann", "ham"): 1}
    assert labels.count is None


def test_a_count_is_a_repeat():
    table = TABLE | {"n": [1, 1, 3, 1, 1]}
    assert read(table, count="n").votes().tolist() == [[1, 1], [4, 0], [0, 1]]
    assert read(table, count="n", repeats="drop").num_labels == 5
    with raises_about(DataError, "repeats"):
        read(table, count="n", repeats="error")


def test_the_true_classes_are_in_the_table_of_the_labels():
    labels = read(TABLE | {"gold": ["ham"] * 2 + [None] * 2 + ["spam"]}, truth="gold")
    frame = labels.to_frame()
    assert frame["truth"].tolist() == ["ham", "ham", None, None, "spam"]
    roles = {name: name for name in ("item", "annotator", "label", "count", "truth")}
    assert Labels.from_frame(frame, **roles).truth.tolist() == [0, -1, 1]


# ------------------------------------------------------------------ truth


@pytest.mark.parametrize(
    "known",
    [
        {7: "spam", 12: "ham"},
        {"7": "spam", "12": "ham", "9": None},
        {"item": [12, 7, 7], "truth": ["ham", "spam", None]},
        pd.DataFrame({"item": [12, 7, 9], "truth": ["ham", "spam", None]}),
    ],
)
def test_known_truth(known):
    labels = read()
    told = labels.with_truth(known)
    assert told.truth.tolist() == [1, -1, 0]
    assert labels.truth is None


def test_known_truth_from_other_columns_takes_the_place_of_that_before():
    labels = (
        read()
        .with_truth({7: "spam"})
        .with_truth({"page": [9], "gold": ["ham"]}, item="page", truth="gold")
    )
    assert labels.truth.tolist() == [-1, 0, -1]


@pytest.mark.parametrize(
    ("known", "parameter"),
    [
        ({7: "ham", 120: "ham", 13: "spam"}, "item"),
        ({7: "Ham"}, "truth"),
        ({"item": [7, None], "truth": ["ham", "spam"]}, "item"),
        ({}, "item"),
    ],
)
def test_truths_that_cannot_be_read_are_refused(known, parameter):
    with raises_about(DataError, parameter):
        read().with_truth(known)


# ------------------------------------------------------------------ features

VALUES = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 60.0]])


def test_features_are_centred_and_scaled_behind_an_intercept():
    labels = read().with_features(VALUES)
    assert labels.feature_names == ("intercept", "x1", "x2")
    assert labels.features[:, 0].tolist() == [1, 1, 1]
    np.testing.assert_allclose(labels.features[:, 1:].mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(labels.features[:, 1:].std(0), 1)
    assert (labels.centre[0], labels.scale[0]) == (0, 1)
    raw = labels.features * labels.scale + labels.centre
    np.testing.assert_allclose(raw[:, 1:], VALUES)


# ------------------------------------------------------------------ earlier records

PAST = {
    "annotator": ["bob", "bob", "ann", "bob"],
    "truth": ["ham", "ham", "spam", "spam"],
    "label": ["ham", "spam", "spam", "ham"],
}


def test_an_earlier_record_is_counted():
    record = read().with_record(PAST).record
    assert record.tolist() == [[[0, 0], [0, 1]], [[1, 1], [1, 0]]]
    assert record.dtype == np.float64


# ------------------------------------------------------------------ parts


def many() -> Labels:
    """40 items of very different numbers of labels, two of them without any, with truth and
    features."""
    rng = np.random.default_rng(0)
    table = {
        "page": rng.geometric(0.1, 300).clip(1, 38),
        "who": rng.integers(0, 9, 300),
        "says": rng.integers(0, 3, 300),
    }
    labels = read(table, items=range(1, 41)).with_features(rng.normal(size=(40, 2)))
    return labels.with_truth({item: item % 3 for item in range(1, 41, 2)})


@pytest.mark.parametrize(
    "units",
    [
        slice(3, 17),
        slice(None, None, -2),
        np.array([5, 0, 39, 2]),
        jnp.array([5, 2]),
        [7],
        [-1, -40, 3],
        np.arange(40) % 3 == 0,
        [],
    ],
)
def test_items_are_taken_with_their_labels(units):
    labels = many()
    part = labels.take(units)
    places = np.arange(40)[units]
    assert part.unit_code.tolist() == places.tolist()
    assert (part.items, part.annotators, part.classes) == (
        labels.items,
        labels.annotators,
        labels.classes,
    )
    names = {labels.items[place] for place in places}
    assert rows(part) == {key: count for key, count in rows(labels).items() if key[0] in names}
    np.testing.assert_array_equal(part.votes()[places], labels.votes()[places])
    np.testing.assert_array_equal(part.truth, labels.truth[places])
    np.testing.assert_array_equal(part.features, labels.features[places])
    assert np.all(np.diff(part.group) >= 0)
    assert rows(part.aggregate()) == rows(part)


def votes_of_units(part: Labels):
    """Number of times that each unit was given each label, traced or not."""
    return jnp.zeros((part.num_units, part.num_classes)).at[part.group, part.label].add(part.weight)


@pytest.mark.parametrize("outside", [True, False])
def test_items_taken_under_jit_are_padded_to_one_shape(outside):
    labels = many()
    shapes = set()

    @jax.jit
    def inside(labels, units):
        part = labels.take(units)
        shapes.add(part.group.shape)
        return part

    @jax.jit
    def closed_over(units):
        return inside(labels, units)

    for units in ([3, 0, 39, 7], [39, 38, 1, 1]):
        part = inside(labels, jnp.array(units)) if outside else closed_over(jnp.array(units))
        assert part.unit_code.tolist() == units
        np.testing.assert_array_equal(votes_of_units(part), labels.votes()[units])
        assert part.truth.tolist() == labels.truth[units].tolist()
        np.testing.assert_allclose(part.features, labels.features[units], rtol=1e-6)
    assert shapes == {(4 * labels.most,)}


@pytest.mark.parametrize("begin", [0, 3, 38])
def test_windows_hold_consecutive_items_counted_round(begin):
    labels = many()
    size = labels.window_rows(5)
    part = jax.jit(lambda labels, begin: labels.window(begin, 5, size))(labels, begin)
    units = [(begin + place) % 40 for place in range(5)]
    assert part.unit_code.tolist() == units
    np.testing.assert_array_equal(votes_of_units(part), labels.votes()[units])
    assert part.truth.tolist() == labels.truth[units].tolist()
    np.testing.assert_allclose(part.features, labels.features[units], rtol=1e-6)
    assert part.group.shape == (size,)


def test_leaving_annotators_out_leaves_the_others_alone():
    labels = read(TABLE, annotators=["eve", "ann", "bob"]).with_record(PAST)
    rest = labels.without_judges(["ann"])
    assert rest.annotators == ("eve", "bob")
    assert rest.items == labels.items
    assert rows(rest) == {key: count for key, count in rows(labels).items() if key[1] != "ann"}
    assert rest.record.tolist() == labels.record[[0, 2]].tolist()


# ------------------------------------------------------------------ what must hold for any table

ITEMS, PEOPLE, CLASSES = ["a", "b", "c", "d"], ["x", "y", "z"], ["no", "maybe", "yes"]
SETTINGS = settings(deadline=None, max_examples=60)
label_row = st.tuples(
    st.sampled_from(ITEMS), st.sampled_from(PEOPLE), st.sampled_from(CLASSES), st.integers(1, 3)
)
label_rows = st.lists(label_row, min_size=1, max_size=30)


def from_rows(given_rows, **options) -> Labels:
    table = dict(
        zip(("page", "who", "says", "n"), map(list, zip(*given_rows, strict=True)), strict=True)
    )
    return read(
        table, count="n", **{"items": ITEMS, "annotators": PEOPLE, "classes": CLASSES} | options
    )


def same(one: Labels, other: Labels) -> bool:
    leaves, others = jax.tree.leaves(one), jax.tree.leaves(other)
    return jax.tree.structure(one) == jax.tree.structure(other) and all(
        map(np.array_equal, leaves, others)
    )


@SETTINGS
@given(label_rows, st.booleans())
def test_votes_are_the_sums_of_the_counts(given_rows, aggregate):
    labels = from_rows(given_rows, aggregate=aggregate)
    expected = np.zeros((4, 3))
    for item, _, said, count in given_rows:
        expected[ITEMS.index(item), CLASSES.index(said)] += count
    assert np.array_equal(labels.votes(), expected)
    assert labels.judgements_by("item").tolist() == expected.sum(1).tolist()
    assert labels.judgements_by("annotator").tolist() == [
        sum(row[3] for row in given_rows if row[1] == who) for who in PEOPLE
    ]
    assert labels.num_labels == expected.sum()
    assert labels.most == max(1, np.bincount(labels.group).max())
    assert same(labels.aggregate(), from_rows(given_rows))
    assert same(labels.aggregate().aggregate(), labels.aggregate())


# ------------------------------------------------------------------ padding


@pytest.mark.parametrize("count", [None, [2, 3, 1, 1, 1]])
def test_padding_adds_rows_that_count_for_nothing(count):
    table = TABLE if count is None else TABLE | {"n": count}
    labels = read(table, count=count and "n", annotators=["ann", "bob", "eve"]).with_truth(
        {9: "ham"}
    )
    padded = labels.padded(64)
    assert padded.num_rows == 64
    assert np.count_nonzero(padded.count) == labels.num_rows
    assert padded.num_labels == labels.num_labels
    assert (np.diff(padded.group) >= 0).all()
    assert padded.votes().tolist() == labels.votes().tolist()
    assert padded.judgements_by("annotator").tolist() == labels.judgements_by("annotator").tolist()
    assert rows(padded) == rows(labels)
    for bare in (padded.unpadded(), padded.aggregate(), padded.padded(128).unpadded()):
        assert same(bare, labels)
    assert labels.unpadded() is labels

"""Choices read from long and wide tables, what is refused, and parts of sets."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import xarray as xr

import raters as rt
from raters.errors import DataError, DataWarning
from tests.refusals import raises_about

# Two choices of ann's and one of bob's, from sets of three, two and two.
LONG = {
    "trip": [1, 1, 1, 2, 2, 3, 3],
    "mode": ["car", "bus", "train", "bus", "car", "car", "train"],
    "taken": [1, 0, 0, 1, 0, 0, 1],
    "price": [9.0, 4.0, 6.0, 3.0, 8.0, 7.0, 5.0],
    "who": ["ann", "ann", "ann", "ann", "ann", "bob", "bob"],
    "income": [5, 5, 5, 5, 5, 2, 2],
}
ROLES = {"set": "trip", "alternative": "mode", "chosen": "taken"}
WIDE = {
    "took": ["car", "bus", "train"],
    "car.price": [9.0, 8.0, 7.0],
    "bus.price": [4.0, 3.0, None],
    "train.price": [6.0, None, 5.0],
    "bus_there": [1, 1, 0],
    "train_there": [1, 0, 1],
    "who": ["ann", "ann", "bob"],
    "income": [5, 5, 2],
}
WIDE_ROLES = {
    "choice": "took",
    "alternatives": ["bus", "car", "train"],
    "features": {"price": ["bus.price", "car.price", "train.price"]},
    "available": {"bus": "bus_there", "train": "train_there"},
}


def read(changes: dict | None = None, **options) -> rt.Choices:
    return rt.Choices.from_frame(LONG | (changes or {}), **ROLES | options)


def wide(changes: dict | None = None, **options) -> rt.Choices:
    return rt.Choices.from_wide(WIDE | (changes or {}), **WIDE_ROLES | options)


# ---------------------------------------------------------------- reading


def test_a_long_table_in_any_order() -> None:
    order = np.random.default_rng(0).permutation(7)
    shuffled = {name: [column[row] for row in order] for name, column in LONG.items()}
    options = {"annotator": "who", "features": ["price"], "choosers": ["income"]}
    one = rt.Choices.from_frame(LONG, **ROLES, **options)
    other = rt.Choices.from_frame(shuffled, **ROLES, **options)
    one.check()
    assert one.alternatives == ("bus", "car", "train")
    assert one.offered.tolist() == [[0, 1, 2], [0, 1, -1], [1, 2, -1]]
    assert one.chosen.tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 0]]
    assert (one.num_sets, one.num_choices, one.num_annotators) == (3, 3, 2)
    for name in ("offered", "chosen", "features", "chooser_features"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_a_wide_table_says_the_same_as_the_long_one() -> None:
    options = {"annotator": "who", "choosers": ["income"]}
    one = read(features=["price"], **options)
    other = wide(**options)
    for name in ("offered", "annotator", "chosen", "features", "scale", "centre"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name))
    np.testing.assert_allclose(one.chooser_features, other.chooser_features)
    by_name = {"price": {"train": "train.price", "bus": "bus.price", "car": "car.price"}}
    again = wide(features=by_name, **options)
    np.testing.assert_array_equal(other.features, again.features)


def test_codes_of_a_wide_table_may_have_names() -> None:
    codes = wide({"took": [2, 1, 3]}, alternatives={1: "bus", 2: "car", 3: "train"})
    assert codes.alternatives == ("bus", "car", "train")
    np.testing.assert_array_equal(codes.chosen, wide().chosen)


def test_features_are_scaled_within_sets() -> None:
    choices = read(features=["price"])
    price = np.array([4.0, 9.0, 6.0, 3.0, 8.0, 7.0, 5.0])
    raw = choices.features[choices.there, 0] * choices.scale[0] + choices.centre[0]
    np.testing.assert_allclose(raw, price)
    assert (choices.features[~choices.there] == 0).all()
    means = np.array([19 / 3] * 3 + [5.5] * 2 + [6.0] * 2)
    assert choices.scale[0] == pytest.approx(np.sqrt(((price - means) ** 2).sum() / 4))


def test_a_feature_may_have_a_coefficient_for_each_alternative() -> None:
    choices = read(features=["price"], specific=["price"])
    assert choices.feature_names == ("price:bus", "price:car", "price:train")
    raw = np.asarray(choices.features) * choices.scale + choices.centre
    np.testing.assert_allclose(raw[0, 0], [4, 0, 0], atol=1e-12)
    by_alternative = wide(features={"car price": {"car": "car.price"}})
    raw = np.asarray(by_alternative.features) * by_alternative.scale + by_alternative.centre
    np.testing.assert_allclose(raw[0, :, 0], [0, 9, 0], atol=1e-12)
    with raises_about(DataError, "specific", "speed"):
        read(features=["price"], specific=["speed"])


def test_equal_sets_are_put_together_where_there_are_no_features() -> None:
    twice = {name: [*column, *column] for name, column in LONG.items()}
    twice["trip"] = [1, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5, 5, 6, 6]
    choices = rt.Choices.from_frame(twice, **ROLES)
    choices.check()
    assert (choices.num_sets, choices.num_choices) == (3, 6)
    assert choices.chosen.tolist() == [[0, 2, 0], [2, 0, 0], [0, 2, 0]]
    assert choices.count.tolist() == [2] * 3
    assert choices.sets == (1, 2, 3)
    assert rt.Choices.from_frame(twice, **ROLES, aggregate=False).num_sets == 6
    assert rt.Choices.from_frame(twice, **ROLES, features=["price"]).num_sets == 6
    # Of two choosers, sets stay apart.
    assert rt.Choices.from_frame(twice, **ROLES, annotator="who").num_sets == 3
    twice["who"] = ["ann"] * 7 + ["bob"] * 7
    assert rt.Choices.from_frame(twice, **ROLES, annotator="who").num_sets == 6


def test_a_table_comes_back() -> None:
    options = {"annotator": "who", "features": ["price"], "choosers": ["income"]}
    choices = read(**options)
    table = choices.to_frame()
    roles = {name: name for name in ("set", "alternative", "chosen", "annotator")}
    again = rt.Choices.from_frame(
        table, **roles, features=["price"], choosers=["income"], counted=True
    )
    np.testing.assert_array_equal(again.chosen, choices.chosen)
    np.testing.assert_allclose(again.features, choices.features)
    assert table["income"].tolist() == [5] * 5 + [2] * 2
    assert "chosen" not in choices.unanswered().to_frame()


def test_a_result_that_was_stored_by_offers_is_read() -> None:
    """Choices had a row for each alternative of each set."""
    options = {"annotator": "who", "features": ["price"], "choosers": ["income"], "counted": True}
    choices = read({"taken": [3, 0, 1, 1, 0, 0, 2]}, **options)
    row, position = np.nonzero(choices.there)
    stored = choices.packed()
    long = {name: stored[name][row, position] for name in ("features", "chosen", "offered")}
    long |= {"annotator_code": choices.annotator[row], "count": choices.count[row]}
    long |= {"alternative_code": long.pop("offered"), "set_code": row}
    variables = {
        name: ([f"{name}_{axis}" for axis in range(one.ndim)], one)
        for name, one in (stored | long).items()
    }
    groups = {"observed_data": {"chosen": variables.pop("chosen")}, "constant_data": variables}
    result = xr.DataTree.from_dict({name: xr.Dataset(one) for name, one in groups.items()})
    result.attrs.update(choices.flags() | {"data": "raters.judgements.choices:Choices"})
    again = rt.Choices.from_result(result).packed()
    for name, column in stored.items():
        np.testing.assert_array_equal(again[name], column)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("chosen", np.zeros((3, 2), np.float32)),
        ("offered", np.array([[0, 1, 2], [0, -1, 1], [1, 2, -1]], np.int32)),
    ],
)
def test_columns_of_other_positions_are_refused(name: str, column) -> None:
    with raises_about(DataError, name):
        dataclasses.replace(read(), **{name: column}).check()


@pytest.mark.parametrize("axis", ["annotator", "alternative"])
def test_rows_of_several_outcomes_have_no_table_of_answers(axis: str) -> None:
    with raises_about(DataError, "axis", axis):
        read().answers_by(axis)


@pytest.mark.parametrize(
    ("changes", "parameter"),
    [
        ({"taken": [0, 0, 0, 1, 0, 0, 1]}, "set"),
        ({"taken": [1, 1, 0, 1, 0, 0, 1]}, "set"),
        ({"trip": [1, 1, 1, 2, 2, 3, 4]}, "set"),
        ({"mode": ["car", "bus", "bus", "bus", "car", "car", "train"]}, "alternative"),
        ({"taken": [2, 0, 0, 1, 0, 0, 1]}, "chosen"),
        ({"taken": ["yes", 0, 0, 1, 0, 0, 1]}, "chosen"),
        ({"who": ["ann", "bob", "ann", "ann", "ann", "bob", "bob"]}, "annotator"),
        ({"income": [5, 4, 5, 5, 5, 2, 2]}, "choosers"),
        ({"income": [5] * 7}, "choosers"),
        ({"price": [5, 5, 5, 3, 3, 2, 2]}, "features"),
        ({"price": ["a", 5, 5, 3, 3, 2, 2]}, "features"),
    ],
)
def test_a_bad_long_table_is_refused(changes, parameter) -> None:
    with raises_about(DataError, parameter):
        read(changes, annotator="who", features=["price"], choosers=["income"])


@pytest.mark.parametrize(
    ("changes", "options", "parameter"),
    [
        ({"took": ["car", "bike", "train"]}, {}, "choice"),
        ({"took": ["car", "train", "train"]}, {}, "available"),
        ({"train_there": [1, 2, 1]}, {}, "available"),
        ({}, {"available": {"bike": "bus_there"}}, "available"),
        ({}, {"features": {"price": ["car.price"]}}, "features"),
        ({}, {"features": ["car.price"]}, "features"),
        ({}, {"features": {"price": {"bus.price", "car.price", "train.price"}}}, "features"),
        ({}, {"alternatives": ["bus", "bus"]}, "alternatives"),
        ({"car.price": [None, 8, 7]}, {}, "features"),
    ],
)
def test_a_bad_wide_table_is_refused(changes, options, parameter) -> None:
    with raises_about(DataError, parameter):
        wide(changes, **options)


# ---------------------------------------------------------------- parts


def test_choices_are_counted_by_set_and_by_chooser() -> None:
    choices = read({"taken": [3, 0, 1, 1, 0, 0, 2]}, counted=True, annotator="who")
    assert choices.judgements_by("annotator").tolist() == [5, 2]
    assert choices.judgements_by("set").tolist() == [4, 1, 2]
    assert choices.judgements_by("alternative").tolist() == [5, 7, 6]


def test_single_choices_and_their_sum() -> None:
    choices = read({"taken": [3, 0, 1, 1, 0, 0, 2]}, counted=True, annotator="who")
    single = choices.single()
    single.check()
    assert (single.num_sets, single.count) == (7, None)
    again = single.aggregate()
    for name in ("offered", "annotator", "chosen", "count"):
        np.testing.assert_array_equal(getattr(again, name), getattr(choices, name))


def test_features_are_put_on_the_scale_of_a_fit() -> None:
    fitted = read(features=["price"], choosers=["income"])
    changes = {"price": [10 * value + 3 for value in LONG["price"]], "income": [9] * 5 + [1] * 2}
    new = read(changes, features=["price"], choosers=["income"]).features_of(fitted)
    raw = new.features[new.there, 0] * fitted.scale[0] + fitted.centre[0]
    np.testing.assert_allclose(raw, [43, 93, 63, 33, 83, 73, 53])
    with raises_about(DataError, "features"):
        read().features_of(fitted)
    assert fitted.features_of(read()).features is None


def test_new_sets_are_read_on_the_scale_of_a_fit() -> None:
    fitted = read(annotator="who", features=["price"], choosers=["income"])
    table = {name: column[3:5] for name, column in LONG.items() if name != "taken"}
    roles = {"set": "trip", "alternative": "mode", "annotator": "who"}
    options = {"features": ["price"], "choosers": ["income"], "like": fitted}
    new = rt.Choices.from_frame(table, **roles, **options)
    new.check()
    assert (new.num_sets, new.chosen, new.alternatives) == (1, None, fitted.alternatives)
    np.testing.assert_allclose(new.features, fitted.features[1:2, :2])
    np.testing.assert_allclose(new.chooser_features, np.asarray(fitted.chooser_features)[1:2])
    with raises_about(DataError, "features"):
        rt.Choices.from_frame(table, **roles, features=["price"], like=read())


def test_what_the_choices_cannot_tell_is_said() -> None:
    choices = read({"taken": [1, 0, 0, 0, 1, 1, 0]}, alternatives=["car", "bus", "train", "bike"])
    with pytest.warns(DataWarning) as caught:
        choices.warn()
    text = " | ".join(str(one.message) for one in caught)
    assert "1 alternative(s) were never offered: bike" in text
    assert "2 alternative(s) were never chosen" in text
    assert "1 alternative(s) were chosen whenever they were offered" in text

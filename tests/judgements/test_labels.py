"""Labels: every kind of table, truths, features and records, what is refused with which words, and
parts of the data."""

from __future__ import annotations

import dataclasses
import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import raters as rt
from raters.errors import DataError, DataWarning, SettingError
from raters.judgements.labels import Labels
from tests.real import data_folder
from tests.refusals import raises_about

TABLE = {
    "page": [7, 7, 9, 9, 12],
    "who": ["ann", "bob", "ann", "bob", "ann"],
    "says": ["ham", "spam", "ham", "ham", "spam"],
}


def refuses(*parts: str):
    """A DataError whose message has each part, in this order."""
    return pytest.raises(DataError)


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


@pytest.mark.parametrize(
    "make",
    [
        dict,
        lambda table: {name: np.array(values) for name, values in table.items()},
        lambda table: {name: pl.Series(values) for name, values in table.items()},
        lambda table: {name: pa.array(values) for name, values in table.items()},
        pd.DataFrame,
        lambda table: pd.DataFrame(table, index=[5, 5, 0, 1, 1]),
        lambda table: pd.DataFrame(table, dtype="category"),
        lambda table: pd.DataFrame(table).convert_dtypes(dtype_backend="pyarrow"),
        lambda table: pd.DataFrame(table).to_records(index=False),
        pl.DataFrame,
        pl.LazyFrame,
        lambda table: pl.DataFrame(table).with_columns(pl.col("who", "says").cast(pl.Categorical)),
        pa.table,
    ],
)
def test_every_kind_of_table_reads_the_same(make):
    labels = read(make(TABLE | {"gold": ["ham"] * 2 + ["spam"] * 3}), truth="gold")
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


@pytest.mark.parametrize(
    ("says", "classes"),
    [
        ([3, 1, 1, 2, 1], (1, 2, 3)),
        ([1.0, 0.0, 1.0, 1.0, 0.0], (0, 1)),
        (["2", "10", "2", "2", "2"], ("2", "10")),
        (["2", "010", "2", "2", "2"], ("010", "2")),
        ([True, False, True, True, True], ("False", "True")),
        (pd.Series([True, False, True, True, True], dtype="boolean"), ("False", "True")),
    ],
)
def test_classes_are_whole_numbers_or_text(says, classes):
    assert read(TABLE | {"says": says}).classes == classes


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


@pytest.mark.parametrize(
    ("labels", "gold"),
    [
        (["1", "2"], ["1.0", "2.0"]),
        ([1, 2], ["1.0", None]),
        (["1", "2"], ["01", None]),
        (["1", "2"], [" 2e0", None]),
        (["1", "0"], ["TRUE", "false"]),
        (["True", "False"], ["1", None]),
        (["9007199254740993", "2"], ["9007199254740993.0", None]),
    ],
)
def test_a_truth_of_a_number_written_otherwise_is_refused(labels, gold):
    table = {"item": [1, 2, 2], "who": ["a", "a", "b"], "says": [*labels, labels[1]]}
    columns = {"item": "item", "annotator": "who", "label": "says", "truth": "gold"}
    with raises_about(DataError, "truth"):
        rt.Labels.from_frame(table | {"gold": [*gold, None]}, **columns)


@pytest.mark.parametrize("gold", ["9007199254740992", "inf", "nan", "sNaN", "3.5"])
def test_a_truth_that_is_another_number_is_a_class_of_its_own(gold):
    table = {"item": [1, 2], "who": ["a", "b"], "says": ["9007199254740993", "2"]}
    columns = {"item": "item", "annotator": "who", "label": "says", "truth": "gold"}
    labels = rt.Labels.from_frame(table | {"gold": [gold, None]}, **columns)
    assert gold in labels.classes


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


def test_classes_given_as_text_match_numbers():
    assert read(TABLE | {"says": [1, 0, 1, 1, 0]}, classes=["1", "0"]).label.tolist() == [
        0,
        1,
        0,
        0,
        1,
    ]


@pytest.mark.parametrize(
    ("classes", "parts"),
    [
        (
            ["eggs", "spam"],
            (
                (
                    "column 'says' (for label=) holds 1 name(s) that are none of the classes"
                    " 'eggs', 'spam'"
                ),
                "'ham' in row 0",
            ),
        ),
        (
            ["Spam", "ham"],
            (
                "'spam' in row 1 (counted from 0); did you mean 'Spam'?",
                "name it in classes=[...] as well",
            ),
        ),
        (["ham", "spam", "ham"], ("'ham' comes twice",)),
        ("ham", ("classes= takes a list of names, such as classes=['no', 'yes'], not 'ham'",)),
        (2, ("classes= takes a list of names", "not 2")),
        (["ham"], ("one class only: 'ham'", "classes=['ham', ...]")),
        ([], ("one class only: none", "classes=[...]")),
    ],
)
def test_classes_given_wrongly_are_refused(classes, parts):
    with refuses(*parts):
        read(classes=classes)


def test_one_class_only_is_refused_until_all_are_named():
    table = TABLE | {"says": ["ham"] * 5}
    with refuses(
        "one class only: 'ham'",
        "Name all classes, also those that nobody said: classes=['ham', ...]",
    ):
        read(table)
    assert read(table, classes=["ham", "spam"]).num_classes == 2
    assert read(table | {"gold": ["spam"] * 5}, truth="gold").num_classes == 2


def test_scores_are_no_classes():
    number = np.arange(200)
    table = {"page": number, "who": number % 3, "says": number / 7}
    with refuses(
        "column 'says' holds 200 different labels in 200 rows",
        "scores or texts",
        "name them all: classes=[...]",
    ):
        read(table)


def test_an_annotator_column_that_numbers_the_rows_is_warned_of():
    number = np.arange(2000)
    with pytest.warns(
        DataWarning,
        match="'who' holds 2,000 different annotators in 2,000 rows.*is it a row number",
    ) as caught:
        read({"page": number % 7, "who": number, "says": number % 2})
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"items": [7, 9]}, ("1 item(s) in the table are not in the list items=", "12")),
        (
            {"annotators": ["ann"]},
            ("1 annotator(s) in the table are not in the list annotators=", "'bob'"),
        ),
        ({"truth": "gould"}, ("no column 'gould' (for truth=)", "did you mean truth='gold'?")),
        ({"truth": 3}, ("truth= takes the name of a column",)),
        ({"count": "n"}, ("no column 'n' (for count=)",)),
        ({"count": "nothing"}, ("column 'nothing' (for count=) must hold whole numbers", "row 1")),
    ],
)
def test_options_given_wrongly_are_refused(options, parts):
    with refuses(*parts):
        read(TABLE | {"gold": ["ham"] * 5, "nothing": [1, 0, 1, 1, 1]}, **options)


@pytest.mark.parametrize("role", ["item", "annotator", "label"])
def test_columns_that_cannot_be_left_out(role):
    roles = {"item": "page", "annotator": "who", "label": "says"} | {role: None}
    with refuses(
        f"{role}= takes the name of a column, such as {role}='{role}'; it cannot be left out"
    ):
        Labels.from_frame(TABLE, **roles)


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, ""])
@pytest.mark.parametrize(
    ("role", "name"), [("item", "page"), ("annotator", "who"), ("label", "says")]
)
def test_a_missing_value_is_refused(role, name, missing):
    with refuses(f"column '{name}' (for {role}=) has 1 missing value(s), first in row 4"):
        read(TABLE | {name: [*TABLE[name][:4], missing]})


def test_what_is_no_table_is_refused():
    with refuses("cannot read columns from a str", "read the file first"):
        read("labels.csv")


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


def test_repeats_are_refused():
    with refuses(
        "in row 1 (counted from 0) annotator 'ann' labels item 1 more than once: 'ham' after 'spam'"
        " in row 0 (2 such row(s))",
        "repeats='keep'",
        "repeats='drop'",
    ):
        read(REPEATED, repeats="error")
    assert read(repeats="error").num_labels == 5


def test_a_count_is_a_repeat():
    table = TABLE | {"n": [1, 1, 3, 1, 1]}
    assert read(table, count="n").votes().tolist() == [[1, 1], [4, 0], [0, 1]]
    assert read(table, count="n", repeats="drop").num_labels == 5
    with refuses(
        "in row 2 (counted from 0) annotator 'ann' labels item 9 more than once: its count is above"
        " 1 (1 such row(s))"
    ):
        read(table, count="n", repeats="error")


@pytest.mark.parametrize("repeats", ["first", None, True, ["keep"]])
def test_an_unknown_policy_is_refused(repeats):
    with raises_about(SettingError, "repeats", repeats):
        read(repeats=repeats)


@pytest.mark.parametrize("aggregate", [True, False])
def test_counts_of_one_are_left_out(aggregate):
    assert read(TABLE | {"n": [1] * 5}, count="n", aggregate=aggregate).count is None


def test_large_counts_are_summed_exactly():
    table = {"page": [1] * 3 + [2], "who": ["ann"] * 4, "says": [0, 0, 0, 1], "n": [2**24, 1, 1, 7]}
    assert read(table, count="n").num_labels == 2**24 + 2 + 7


def test_without_aggregating_the_rows_stay_and_are_sorted_by_item():
    table = {name: values[::-1] for name, values in REPEATED.items()}
    labels = read(table, aggregate=False)
    assert labels.num_rows == 5
    assert labels.group.tolist() == [0, 0, 0, 0, 1]
    assert [labels.classes[code] for code in labels.label] == ["spam", "ham", "ham", "spam", "ham"]
    assert labels.most == 4
    assert rows(labels.aggregate()) == rows(labels)


def test_questions_without_answers_are_aggregated_too():
    labels = read(REPEATED).unanswered().aggregate()
    assert labels.label is None
    assert not labels.has_answers
    assert labels.to_frame().to_dict("list") == {
        "item": [1, 1, 2],
        "annotator": ["ann", "bob", "ann"],
        "count": [3, 1, 1],
    }
    with refuses("no answers to count"):
        labels.votes()


def test_a_table_of_the_labels_is_read_back():
    labels = read(REPEATED)
    roles = {name: name for name in ("item", "annotator", "label", "count")}
    again = Labels.from_frame(labels.to_frame(), **roles)
    assert again.to_frame().equals(labels.to_frame())


def test_the_true_classes_are_in_the_table_of_the_labels():
    labels = read(TABLE | {"gold": ["ham"] * 2 + [None] * 2 + ["spam"]}, truth="gold")
    frame = labels.to_frame()
    assert frame["truth"].tolist() == ["ham", "ham", None, None, "spam"]
    roles = {name: name for name in ("item", "annotator", "label", "count", "truth")}
    assert Labels.from_frame(frame, **roles).truth.tolist() == [0, -1, 1]


# ------------------------------------------------------------------ truth


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, ""])
def test_a_truth_may_be_missing(missing):
    labels = read(TABLE | {"gold": [missing, "spam", missing, missing, "eggs"]}, truth="gold")
    assert labels.classes == ("eggs", "ham", "spam")
    assert labels.truth.tolist() == [2, -1, 0]


@pytest.mark.parametrize(
    "gold",
    [
        pd.Series([None, 1, None, None, 0]),
        pd.Series([None, 1, None, None, 0], dtype="Int64"),
        pd.Series([None, 1, None, None, 0], dtype="category"),
        pd.Series([None, "1", None, None, "0"], dtype="string"),
        pl.Series([None, 1, None, None, 0]),
        pa.array([None, 1, None, None, 0]),
        np.ma.array([5, 1, 5, 5, 0], mask=[1, 0, 1, 1, 0]),
        np.array([np.nan, 1, np.nan, np.nan, 0]),
    ],
)
def test_every_kind_of_missing_truth(gold):
    labels = read(TABLE | {"says": [0, 1, 0, 0, 1], "gold": gold}, truth="gold")
    assert [str(name) for name in labels.classes] == ["0", "1"]
    assert labels.truth.tolist() == [1, -1, 0]


def test_a_truth_that_is_nowhere_known_is_none():
    assert read(TABLE | {"gold": [None] * 5}, truth="gold").truth is None


def test_two_true_classes_of_an_item_are_refused():
    with refuses(
        "item 7 has two true classes: 'ham' in row 0 and 'spam' in row 1 (counted from 0; 1 such"
        " item(s))",
        "leave it empty",
    ):
        read(TABLE | {"gold": ["ham", "spam", None, None, None]}, truth="gold")


def test_two_true_classes_in_a_series_are_refused():
    known = pd.Series(["ham", "spam"], index=[7, 7])
    with raises_about(DataError, "truth"):
        read(TABLE).with_truth(known)


def test_a_truth_outside_the_classes_is_refused():
    with refuses(
        "column 'gold' (for truth=) holds 1 name(s)",
        "classes 'ham', 'spam': e.g. 'hamm' in row 2",
        "mean 'ham'?",
    ):
        read(
            TABLE | {"gold": ["ham", None, "hamm", None, None]},
            truth="gold",
            classes=["ham", "spam"],
        )


def test_a_truth_of_another_length_is_refused():
    with refuses("column 'gold' has 2 rows, the others 5"):
        read(TABLE | {"gold": ["ham", "spam"]}, truth="gold")


@pytest.mark.parametrize(
    "known",
    [
        {7: "spam", 12: "ham"},
        {"7": "spam", "12": "ham", "9": None},
        {"item": [12, 7, 7], "truth": ["ham", "spam", None]},
        pd.DataFrame({"item": [12, 7, 9], "truth": ["ham", "spam", None]}),
        pl.DataFrame({"item": [12, 7, 9], "truth": ["ham", "spam", None]}),
        pa.table({"item": ["12", "7"], "truth": ["ham", "spam"]}),
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


def test_known_truth_of_a_part():
    assert read().take([2, 0]).with_truth({7: "spam", 9: "ham"}).truth.tolist() == [-1, 1]


def test_known_truth_in_other_types():
    labels = read(TABLE | {"says": [True, False, True, True, False]})
    assert labels.with_truth({7: True, 9: np.bool_(False)}).truth.tolist() == [1, 0, -1]


@pytest.mark.parametrize(
    ("known", "parts"),
    [
        (
            {7: "ham", 120: "ham", 13: "spam"},
            (
                (
                    "the mapping of items to classes holds 2 name(s) that are none of the items 7,"
                    " 9, 12: e.g. 120 in entry 1"
                ),
                "did you mean '12'?",
                "name all items with items=[...] in from_frame",
            ),
        ),
        (
            {7: "Ham"},
            (
                "the mapping of items to classes",
                "'Ham' in entry 0 (counted from 0); did you mean 'ham'?",
                "all classes with classes=[...]",
            ),
        ),
        (
            {"item": [7, 7], "truth": ["ham", "spam"]},
            ("item 7 has two true classes: 'ham' in row 0 and 'spam' in row 1",),
        ),
        ({"page": [7], "truth": ["ham"]}, ("there is no column 'item' (for item=)",)),
        ({"item": [7], "gold": ["ham"]}, ("there is no column 'truth' (for truth=)",)),
        (
            {"item": [7, None], "truth": ["ham", "spam"]},
            ("column 'item' (for item=) has 1 missing value(s)",),
        ),
        ({}, ("the table is empty",)),
        ("truth.csv", ("'truth.csv' is no set of known classes", "read the file first")),
    ],
)
def test_truths_that_cannot_be_read_are_refused(known, parts):
    with refuses(*parts):
        read().with_truth(known)


def test_an_unknown_item_without_a_truth_does_no_harm():
    assert read().with_truth({7: "ham", 99: None}).truth.tolist() == [0, -1, -1]


# ------------------------------------------------------------------ features

VALUES = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 60.0]])


def test_features_are_centred_and_scaled_behind_an_intercept():
    labels = read().with_features(VALUES)
    assert labels.feature_names == ("intercept", "x1", "x2")
    assert labels.features[:, 0].tolist() == [1, 1, 1]
    np.testing.assert_allclose(labels.features[:, 1:].mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(labels.features[:, 1:].std(0), 1)
    assert (labels.centre[0], labels.scale[0]) == (0, 1)
    np.testing.assert_allclose(
        labels.features[:, 1:] * labels.scale[1:] + labels.centre[1:], VALUES
    )


@pytest.mark.parametrize(
    ("make", "dtype"),
    [
        (np.float16, np.float32),
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.int8, np.float64),
        (lambda values: values.tolist(), np.float64),
        (lambda values: values.astype(object), np.float64),
        (jnp.asarray, np.float32),
    ],
)
def test_every_kind_of_array(make, dtype):
    labels = read().with_features(make(VALUES), names=["age", "size"])
    assert labels.features.dtype == labels.centre.dtype == labels.scale.dtype == dtype
    assert labels.feature_names == ("intercept", "age", "size")
    np.testing.assert_allclose(labels.features, read().with_features(VALUES).features, rtol=1e-6)


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table])
def test_a_table_of_features_is_matched_by_name(make):
    table = {
        "size": [60.0, 10.0, 20.0],
        "text": [12, 7, 9],
        "age": [3, 1, 2],
        "note": ["a", "b", "c"],
    }
    labels = read().with_features(make(table), item="text", names=["age", "size"])
    assert labels.feature_names == ("intercept", "age", "size")
    np.testing.assert_allclose(labels.features, read().with_features(VALUES).features)


def test_all_other_columns_are_features():
    table = pd.DataFrame(VALUES)  # columns called 0 and 1
    table["text"] = ["7", "9", "12"]
    labels = read().with_features(table, item="text")
    assert labels.feature_names == ("intercept", "0", "1")
    np.testing.assert_allclose(labels.features, read().with_features(VALUES).features)


def test_booleans_are_numbers():
    table = pd.get_dummies(
        pd.DataFrame({"text": [7, 9, 12], "kind": ["news", "mail", "news"]}), columns=["kind"]
    )
    labels = read().with_features(table, item="text", names=["kind_mail"])
    np.testing.assert_allclose(labels.centre, [0, 1 / 3])


def test_features_of_a_part_are_those_of_its_items():
    whole = read().with_features(VALUES)
    part = read().take([2, 0]).with_features(VALUES)
    np.testing.assert_array_equal(part.features, whole.features[[2, 0]])


@pytest.mark.parametrize(
    ("features", "options", "parts"),
    [
        (
            VALUES[:2],
            {},
            ("features have 2 row(s) and the data 3 items", "in the order of .items", "item='...'"),
        ),
        (
            VALUES[:, 0],
            {},
            (
                "features have 1 dimension(s) (shape (3,))",
                "(item, feature) = (3, …)",
                "write features[:, None]",
            ),
        ),
        (VALUES[None], {}, ("features have 3 dimension(s) (shape (1, 3, 2))",)),
        (scipy.sparse.csr_array(VALUES), {}, ("features have 0 dimension(s)",)),
        ([[1, 2], [3], [4, 5]], {}, ("the rows of the features differ in length",)),
        (np.ones((3, 0)), {}, ("there is no feature",)),
        (
            pd.DataFrame(VALUES),
            {},
            ("say which column names the items: with_features(table, item='item')",),
        ),
        ({"page": [7, 9, 12]}, {}, ("say which column names the items",)),
        (pl.LazyFrame({"page": [7, 9, 12]}), {}, ("say which column names the items",)),
        (VALUES, {"item": "page"}, ("cannot read columns from a ndarray",)),
        (VALUES, {"names": ["age"]}, ("names= has 1 name(s) for 2 feature(s)",)),
        (VALUES, {"names": ["age", "age"]}, ("'age' comes twice in names=",)),
        (VALUES, {"names": "ab"}, ("names= takes a list of names", "not 'ab'")),
        (
            VALUES,
            {"names": ["age", "intercept"]},
            ("a feature is called 'intercept'; raters adds that itself",),
        ),
        (
            np.full((3, 2), "a"),
            {},
            ("feature 'x1' must hold numbers; it holds string values such as 'a'",),
        ),
        (np.full((3, 2), None), {}, ("feature 'x1' of item 7 is nan (6 such value(s))",)),
        (VALUES + 1j, {}, ("feature 'x1' must hold numbers; it holds complex values",)),
    ],
)
def test_arrays_of_features_that_are_refused(features, options, parts):
    with refuses(*parts):
        read().with_features(features, **options)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_feature_that_is_not_finite_is_refused_with_its_place(bad):
    values = VALUES.copy()
    values[1, 1] = bad
    with refuses(f"feature 'size' of item 9 is {bad} (1 such value(s))", "Fill it in"):
        read().with_features(values, names=["age", "size"])


def test_what_is_masked_is_missing():
    with refuses("feature 'x2' of item 12 is nan (1 such value(s))"):
        read().with_features(np.ma.array(VALUES, mask=[[0, 0], [0, 0], [0, 1]]))


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("age", [[1, None, 3], [1.5, None, 3.0], [True, None, False]])
def test_a_missing_value_in_a_table_is_refused_with_its_place(make, age):
    with refuses("feature 'age' of item 9 is nan (1 such value(s))"):
        read().with_features(make({"text": [7, 9, 12], "age": age}), item="text")


@pytest.mark.parametrize(
    ("change", "options", "parts"),
    [
        (
            {"text": [7, 9, 13]},
            {},
            (
                "column 'text' (for item=)",
                "none of the items 7, 9, 12: e.g. 13 in row 2",
                "name all items with items=[...]",
            ),
        ),
        (
            {"text": [7, 9, 7]},
            {},
            (
                (
                    "item 7 has 2 rows of features, the first two in rows 0 and 2 (counted from 0);"
                    " 1 such"
                ),
            ),
        ),
        (
            {"text": [7, 9], "age": [1, 2], "kind": [3, 4]},
            {},
            ("1 of the 3 items have no row in the table of features: 12",),
        ),
        ({"text": [7, None, 12]}, {}, ("column 'text' (for item=) has 1 missing value(s)",)),
        (
            {},
            {},
            (
                "feature 'kind' must hold numbers; it holds string values such as 'news'",
                "names=[...]",
                "pandas.get_dummies(table, columns=['kind'])",
            ),
        ),
        (
            {"kind": pd.to_datetime(["2024-01-01"] * 3)},
            {},
            ("feature 'kind' must hold numbers; it holds datetime64 values",),
        ),
        ({"kind": [1, 2, 3, 4]}, {}, ("column 'kind' and column 'text' differ in length",)),
        ({}, {"names": ["agee"]}, ("there is no column 'agee'", "'age'")),
        (
            {},
            {"item": "txt"},
            ("there is no column 'txt' (for item=)", "did you mean item='text'?"),
        ),
        ({}, {"names": []}, ("there is no feature",)),
    ],
)
def test_tables_of_features_that_are_refused(change, options, parts):
    table = {"text": [7, 9, 12], "age": [1, 2, 3], "kind": ["news", "mail", "news"]} | change
    with refuses(*parts):
        read().with_features(table, **{"item": "text"} | options)


def test_constant_features_are_refused_with_the_line_that_leaves_them_out():
    values = np.column_stack([np.full(3, 0.1), VALUES, np.zeros(3)])
    with raises_about(DataError, "features", "x1"):
        read().with_features(values)
    table = {"text": [7, 9, 12], "age": [1, 2, 3], "one": [1, 1, 1]}
    with raises_about(DataError, "features", "one") as caught:
        read().with_features(table, item="text")
    assert str(caught.value).endswith("write names=['age']")


# ------------------------------------------------------------------ earlier records

PAST = {
    "annotator": ["bob", "bob", "ann", "bob"],
    "truth": ["ham", "ham", "spam", "spam"],
    "label": ["ham", "spam", "spam", "ham"],
}


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_an_earlier_record_is_counted(make):
    record = read().with_record(make(PAST)).record
    assert record.tolist() == [[[0, 0], [0, 1]], [[1, 1], [1, 0]]]
    assert record.dtype == np.float64


def test_an_earlier_record_in_counts_and_other_columns():
    table = {"k": ["bob", "bob"], "gold": ["ham", "ham"], "says": ["ham", "ham"], "n": [3, 2**25]}
    record = read().with_record(table, annotator="k", truth="gold", label="says", count="n").record
    assert record[1].tolist() == [[3 + 2**25, 0], [0, 0]]


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (
            {"annotator": ["bob", "bobb", "ann", "eve"]},
            ("2 name(s) that are none of the annotators 'ann', 'bob'", "mean 'bob'?"),
        ),
        (
            {"truth": ["ham", "jam", "spam", "spam"]},
            ("(for truth=)", "none of the classes 'ham', 'spam'", "'jam' in row 1"),
        ),
        (
            {"label": ["ham", "ham", "SPAM", "spam"]},
            ("(for label=)", "'SPAM' in row 2", "did you mean 'spam'?", "classes=[...]"),
        ),
        (
            {"truth": ["ham", None, "spam", "spam"]},
            ("column 'truth' (for truth=) has 1 missing value(s)",),
        ),
    ],
)
def test_records_that_cannot_be_read_are_refused(change, parts):
    with refuses(*parts):
        read().with_record(PAST | change)


def test_a_record_without_a_column_is_refused():
    with refuses("there is no column 'annotator' (for annotator=)"):
        read().with_record({"who": ["ann"], "truth": ["ham"], "label": ["ham"]})
    with refuses("truth= takes the name of a column", "cannot be left out"):
        read().with_record(PAST, truth=None)


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
    """How often each unit was given each label, traced or not."""
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


def test_one_item_of_many_labels_makes_no_other_window_larger():
    """Parts of a traced index have as many rows for each item as the largest has."""
    sizes = np.full(1000, 2)
    sizes[7] = 500
    labels = Labels.of_all(
        np.repeat(np.arange(1000), sizes),
        {"annotator": np.zeros(2498, np.int32), "label": np.zeros(2498, np.int32), "count": None},
        **dict.fromkeys(("truth", "features", "centre", "scale", "record")),
        items=tuple(range(1000)),
        annotators=("ann",),
        classes=("no", "yes"),
    )
    assert labels.window_rows(10) == 520  # 500 and 2 · 9, as a multiple of 10
    assert labels.take(np.arange(1000)[::-1]).num_rows == 2498


def test_labels_are_a_pytree():
    labels = many()
    again = jax.tree.map(lambda column: column, labels)
    assert (again.items, again.feature_names, again.most) == (
        labels.items,
        labels.feature_names,
        labels.most,
    )
    assert rows(again) == rows(labels)


def test_leaving_annotators_out_leaves_the_others_alone():
    labels = read(TABLE, annotators=["eve", "ann", "bob"]).with_record(PAST)
    rest = labels.without_judges(["ann"])
    assert rest.annotators == ("eve", "bob")
    assert rest.items == labels.items
    assert rows(rest) == {key: count for key, count in rows(labels).items() if key[1] != "ann"}
    assert rest.record.tolist() == labels.record[[0, 2]].tolist()


@pytest.mark.parametrize(
    ("names", "about"),
    [(["eve"], ("names", ["eve"])), ("ann", ("names", "ann")), (["ann", "bob"], ("names",))],
)
def test_annotators_that_cannot_be_left_out(names, about):
    with raises_about(DataError, *about):
        read().without_judges(names)


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
@given(label_rows, st.data())
def test_the_order_of_rows_does_not_matter(given_rows, data):
    shuffled = data.draw(st.permutations(given_rows))
    assert same(from_rows(given_rows), from_rows(shuffled))


@SETTINGS
@given(label_rows, st.permutations(ITEMS), st.permutations(PEOPLE), st.permutations(CLASSES))
def test_the_order_of_names_does_not_matter(given_rows, items, annotators, classes):
    other = from_rows(given_rows, items=items, annotators=annotators, classes=classes)
    assert rows(other) == rows(from_rows(given_rows))
    assert (other.items, other.annotators, other.classes) == (
        tuple(items),
        tuple(annotators),
        tuple(classes),
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


@SETTINGS
@given(label_rows)
def test_dropping_repeats_keeps_the_first_of_each_pair(given_rows):
    first: dict = {}
    for item, who, said, _ in given_rows:
        first.setdefault((item, who), said)
    assert rows(from_rows(given_rows, repeats="drop")) == {
        (*pair, said): 1 for pair, said in first.items()
    }


# ------------------------------------------------------------------ public data


def public(name: str) -> tuple[Labels, float]:
    """The labels of a data set with its truth, and how often a majority (ties shared) is right."""
    folder = data_folder(name)
    labels = Labels.from_frame(
        pd.read_csv(folder / "labels.csv"), item="item", annotator="annotator", label="label"
    )
    labels = labels.with_truth(pd.read_csv(folder / "truth.csv"), truth="label")
    votes = labels.votes()
    top = votes == votes.max(1, keepdims=True)
    known = np.flatnonzero(labels.truth >= 0)
    return labels, float((top / top.sum(1, keepdims=True))[known, labels.truth[known]].mean())


@pytest.mark.parametrize(
    ("name", "size", "majority"),
    [
        ("rte", (8000, 164, 800, 2), 0.8969),
        ("d_product", (24_945, 176, 8315, 2), 0.8966),
        ("labelme", (2547, 59, 1000, 8), 0.766),
    ],
)
def test_public_labels(name, size, majority):
    labels, right = public(name)
    assert (labels.num_labels, labels.num_annotators, labels.num_items, labels.num_classes) == size
    assert (labels.truth >= 0).all()
    assert right == pytest.approx(majority, abs=5e-4)


def test_anesthesia_repeats_its_first_observer():
    frame = pd.read_csv(data_folder("anesthesia") / "labels.csv")
    roles = {"item": "item", "annotator": "annotator", "label": "label"}
    labels = rt.Labels.from_frame(frame, **roles)
    assert (labels.num_labels, labels.num_items, labels.num_annotators, labels.classes) == (
        315,
        45,
        5,
        (1, 2, 3, 4),
    )
    assert labels.judgements_by("annotator").tolist() == [135, 45, 45, 45, 45]
    assert (
        rt.Labels.from_frame(frame, **roles, repeats="drop").judgements_by("annotator").tolist()
        == [45] * 5
    )
    with refuses("annotator 1 labels item 1 more than once: 1 after 1 in row 0 (90 such row(s))"):
        rt.Labels.from_frame(frame, **roles, repeats="error")


def test_labelme_features():
    labels, _ = public("labelme")
    with np.load(data_folder("labelme") / "features_vgg512_train.npz") as file:
        features = file["X"]
        truth = file["z"]
    keep = features.max(0) > features.min(0)
    labels = labels.with_features(features[:, keep])
    assert labels.features.shape == (1000, 1 + keep.sum())
    assert labels.features.dtype == np.float32
    np.testing.assert_allclose(labels.features[:, 1:].std(0), 1, rtol=1e-4)
    # The file has the recorded classes beside the features: its rows are in the order of the items.
    assert np.array_equal(np.array(labels.classes)[labels.truth], truth)


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


def test_parts_of_padded_labels_have_one_shape():
    labels = many()
    full = labels.padded(512)
    assert full.most == 32  # a power of two, at least the most that an item has
    assert labels.most <= 32 < 2 * labels.most
    for units in (slice(0, 1), slice(3, 4), np.array([39])):
        part = full.take(units)
        assert (part.num_units, part.num_rows) == (1, 32)
        np.testing.assert_array_equal(part.votes()[part.unit_code], labels.votes()[part.unit_code])
    assert same(full.take(slice(None)).unpadded(), labels.padded(len(labels.group)).unpadded())


def test_padding_from_nothing():
    empty = dataclasses.replace(
        read(),
        group=np.zeros(0, np.int32),
        annotator=np.zeros(0, np.int32),
        label=np.zeros(0, np.int32),
        most=1,
    )
    padded = empty.padded(4)
    assert (padded.group.tolist(), padded.annotator.tolist(), padded.label.tolist()) == (
        [0] * 4,
        [0] * 4,
        [0] * 4,
    )
    assert (padded.num_labels, padded.votes().sum(), len(padded.to_frame())) == (0, 0.0, 0)
    assert padded.aggregate().num_rows == 0
    with pytest.warns(DataWarning) as caught:
        padded.warn()
    assert "3 item(s) have no label" in str(caught[0].message)


def test_padding_that_cannot_be():
    with raises_about(SettingError, "rows", 4):
        read().padded(4)
    nobody = dataclasses.replace(
        read(),
        **dict.fromkeys(("group", "annotator", "label"), np.zeros(0, np.int32)),
        annotators=(),
    )
    with refuses("padding without judgements needs names of 'item' and 'annotator'"):
        nobody.padded(4)
    with raises_about(DataError, "names"):
        read(annotators=["ann", "bob", "eve"]).padded(8).without_judges(["ann", "bob"])


def test_questions_lose_the_padding():
    assert same(read().padded(16).unanswered(), read().unanswered())


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("1ax 2ay 3ax", True),  # one annotator
        ("1ax 2by 3ax", True),  # two, who share no item
        ("1ax 1ay 2by", True),  # an item twice by one
        ("1ax 1by 2ay", False),
    ],
)
def test_labels_that_nothing_can_be_compared_with_are_warned_of(rows, said):
    item, who, label = zip(*rows.split(), strict=True)
    table = {"i": item, "a": who, "l": label, "gold": ["x", *[None] * (len(item) - 1)]}
    columns = {"item": "i", "annotator": "a", "label": "l"}
    for truth in (None, "gold"):
        labels = rt.Labels.from_frame(table, **columns, truth=truth)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            labels.warn()
        told = ["by two annotators" in str(entry.message) for entry in caught]
        assert sum(told) == (said and truth is None)

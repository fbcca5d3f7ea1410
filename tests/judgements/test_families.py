"""Families of annotators: read, kept by every part of the data, stored, and refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import raters as rt
from raters.errors import DataError
from raters.judgements.labels import Labels
from tests.refusals import raises_about

ROLES = {"item": "i", "annotator": "who", "label": "says", "family": "vendor"}
TABLE = {
    "i": [1, 1, 1, 2, 2, 3],
    "who": ["ann", "gpt-1", "gpt-2", "gpt-1", "ann", "gpt-2"],
    "says": ["no", "yes", "yes", "no", "no", "yes"],
    "vendor": [None, "gpt", "gpt", None, "", "gpt"],
}


def by_name(labels: Labels) -> dict:
    """Family of each annotator."""
    return {
        name: labels.families[code] if code >= 0 else None
        for name, code in zip(labels.annotators, labels.family, strict=True)
    }


EXPECTED = {"ann": None, "gpt-1": "gpt", "gpt-2": "gpt"}


def test_one_row_of_an_annotator_is_enough() -> None:
    labels = Labels.from_frame(TABLE, **ROLES)
    assert by_name(labels) == EXPECTED
    assert labels.num_families == 1
    assert labels.codes("family").tolist() == [-1, 0, 0, -1, 0, 0]
    assert labels.judgements_by("family").tolist() == [4]
    labels.check()


def test_without_a_family_there_is_no_column() -> None:
    none = TABLE | {"vendor": [None] * 6}
    for labels in (
        Labels.from_frame(none, **ROLES),
        Labels.from_frame(TABLE, item="i", annotator="who", label="says"),
    ):
        assert labels.family is None
        assert labels.families == ()
        assert labels.codes("family").tolist() == [-1] * 6
        assert "family" not in labels.to_frame()
        labels.check()


def test_two_families_of_an_annotator_are_refused_by_both_names() -> None:
    wrong = TABLE | {"vendor": [None, "gpt", "gpt", "palm", "", "gpt"]}
    with raises_about(DataError, "family", "vendor"):
        Labels.from_frame(wrong, **ROLES)


@pytest.mark.parametrize(
    "change",
    [
        {"family": np.array([0, 1, 0], np.int32)},
        {"family": np.array([0, 0], np.int32)},
        {"family": np.array([0.5, 0.0, 0.0])},
        {"families": ("gpt", "gpt")},
    ],
    ids=["code", "length", "number", "twice"],
)
def test_families_that_do_not_fit_are_refused(change) -> None:
    with pytest.raises(DataError):
        dataclasses.replace(Labels.from_frame(TABLE, **ROLES), **change).check()


def test_every_part_keeps_the_families() -> None:
    labels = Labels.from_frame(TABLE, **ROLES)
    parts = {
        "rows": labels.rows(slice(0, 2)),
        "take": labels.take(np.array([2, 0])),
        "padded": labels.padded(16),
        "unpadded": labels.padded(16).unpadded(),
        "aggregate": labels.joined(labels).aggregate(),
        "questions": labels.questions(),
        "unanswered": labels.unanswered(),
        "chunk": next(labels.chunks(1)),
        "truth": labels.with_truth({1: "no"}),
        "stored": Labels.unpack(labels.packed(), labels.flags()),
    }
    for name, part in parts.items():
        assert by_name(part) == EXPECTED, name
        part.check()
    assert by_name(labels.without_judges(["ann"])) == {"gpt-1": "gpt", "gpt-2": "gpt"}
    assert by_name(labels.without_judges(["gpt-1"])) == {"ann": None, "gpt-2": "gpt"}


def test_questions_in_other_codes_take_the_families_of_the_fit() -> None:
    labels = Labels.from_frame(TABLE, **ROLES)
    plain = {"i": [9, 9], "who": ["gpt-2", "ann"], "says": ["no", "yes"]}
    asked = Labels.from_frame(plain, item="i", annotator="who", label="says")
    coded = asked.recoded(labels, ["annotator", "label", "family"])
    assert by_name(coded) == EXPECTED
    assert sorted(coded.codes("family").tolist()) == [-1, 0]
    coded.check()


def test_a_table_is_read_back() -> None:
    labels = Labels.from_frame(TABLE | {"gold": ["no"] * 3 + [None] * 3}, **ROLES, truth="gold")
    table = labels.to_frame()
    assert list(table) == ["item", "annotator", "label", "count", "family", "truth"]
    again = Labels.from_frame(
        table, item="item", annotator="annotator", label="label", count="count", family="family"
    )
    assert by_name(again) == EXPECTED


names = st.one_of(
    st.none(),
    st.text(max_size=4),
    st.integers(-3, 3),
    st.sampled_from(["", " ", "nan", "é", "a,b"]),
)


@pytest.mark.filterwarnings("ignore:some families are told apart:raters.errors.DataWarning")
@settings(max_examples=40, deadline=None)
@given(st.lists(names, min_size=4, max_size=4))
def test_any_name_of_a_family_survives_the_table_and_the_store(given_names) -> None:
    """Or the column is refused with a sentence: text that no file can hold, names that are nearly
    equal."""
    who = [0, 1, 2, 3]
    table = pd.DataFrame(
        {"i": [1, 1, 2, 2], "who": who, "says": [0, 1, 0, 1], "vendor": given_names}, dtype=object
    )
    try:
        labels = Labels.from_frame(table, **ROLES)
    except DataError:
        return
    known = {
        place: name for place, name in enumerate(given_names) if name is not None and name != ""
    }
    found = (
        {name: family for name, family in by_name(labels).items() if family is not None}
        if (labels.family is not None)
        else {}
    )
    assert {name: str(family) for name, family in found.items()} == {
        name: str(family) for name, family in known.items()
    }
    stored = Labels.unpack(labels.packed(), labels.flags())
    assert stored.families == labels.families
    assert np.array_equal(stored.family, labels.family) or labels.family is None
    if labels.family is not None:
        columns = {role: role for role in ("item", "annotator", "label", "family")}
        assert by_name(Labels.from_frame(labels.to_frame(), **columns)) == by_name(labels)


def test_a_result_holds_the_families(tmp_path) -> None:
    import xarray as xr

    labels = Labels.from_frame(TABLE, **ROLES)
    result = rt.fit(rt.models.MajorityVote(), labels, rt.PGEM(draws=0), seed=0, progress=False)
    result.to_netcdf(tmp_path / "fit.nc")
    with xr.open_datatree(tmp_path / "fit.nc") as stored:
        assert by_name(Labels.from_result(stored)) == EXPECTED

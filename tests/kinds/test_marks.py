"""Marks of sentences, written outside the package: rows belong together in texts, stand for several
judgements, and ask about a number."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.auditing.disagreement import Answers, nominal
from raters.errors import DataError, SettingError
from raters.testing._blocks import densities
from tests.kinds.marks import Marks, Mild, table
from tests.refusals import raises_about

COLUMNS = {"text": "page", "reader": "who", "place": "sentence", "good": "good"}


@pytest.fixture(scope="module")
def marks() -> Marks:
    return Marks.from_frame(table(), **COLUMNS, count="times")


def read(**columns: list) -> Marks:
    return Marks.from_frame(columns, text="page", reader="who", place="sentence", good="good")


def test_equal_rows_are_added_up():
    once = {"page": ["t"] * 3, "who": ["r"] * 3, "sentence": [0] * 3}
    cells = read(**once, good=[1, 1, 0]).aggregate()
    assert (cells.num_rows, cells.count.tolist(), cells.good.tolist()) == (1, [3.0], [2.0])
    wide = read(**once, good=[0, 1, 1])
    point = {"quality": np.ones(1), "mildness": np.ones(1), "slope": np.array(0.3)}
    step = point | {"quality": np.zeros(1)}
    change = [
        float(densities(Mild(), data, point).pointwise.sum())
        - float(densities(Mild(), data, step).pointwise.sum())
        for data in (wide, wide.aggregate())
    ]
    np.testing.assert_allclose(*change, rtol=1e-5)


def test_columns_in_several_dimensions_are_put_together():
    data = read(page=["t", "t", "u"], who=["r"] * 3, sentence=[1, 1, 1], good=[1, 1, 0])
    wide = dataclasses.replace(data, place=np.array([[0.0, 1.0], [0.0, 1.0], [2.0, 1.0]]))
    assert wide.aggregate().place.tolist() == [[0.0, 1.0], [2.0, 1.0]]


def test_every_question_that_was_asked_is_put_to_every_reader(marks):
    pool = rt.Candidates.of(marks, again=True)
    frame = pool.to_frame()
    assert len(frame) == len(frame.drop_duplicates()) == 8 * 3 * 5
    assert set(frame["text"]) == set(marks.texts)
    some = rt.Candidates.of(marks, again=True, texts=["t1", "t2"], readers=["r0"])
    assert sorted(set(some.to_frame()["text"])) == ["t1", "t2"]
    assert some.num_rows == 2 * 3
    with raises_about(SettingError, "items"):
        rt.Candidates.of(marks, items=["t1"])
    with raises_about(DataError, "texts", "t99"):
        rt.Candidates.of(marks, texts=["t99"])
    with raises_about(DataError, "again"):
        rt.Candidates.of(marks)


def test_without_numbers_every_combination_is_a_question():
    data = read(page=["t", "u"], who=["r", "s"], sentence=[0, 0], good=[1, 0])
    pool = rt.Candidates.of(dataclasses.replace(data, place=None))
    assert pool.to_frame()[["text", "reader"]].to_numpy().tolist() == [["t", "s"], ["u", "r"]]


def test_agreement_is_about_the_same_question():
    """Two who answer alike agree, also where the answers to a text differ by place."""
    rows = [(page, who, place) for page in "tuv" for who in "rs" for place in range(4)]
    page, who, place = zip(*rows, strict=True)
    same = read(page=list(page), who=list(who), sentence=list(place), good=[n % 2 for n in place])
    assert nominal(Answers.of(same))["observed_agreement"].value == 0


def test_tables_hold_the_numbers_that_are_asked_about(marks):
    frame = marks.aggregate().to_frame()
    assert list(frame.columns) == ["text", "reader", "place", "good", "count"]
    assert frame["count"].sum() == marks.num_judgements
    good = frame.assign(good=(frame["good"] == "good").astype(int))
    again = Marks.from_frame(
        good, text="text", reader="reader", place="place", good="good", count="count"
    ).aggregate()
    pd.testing.assert_frame_equal(again.to_frame(), frame)


def test_predictions_of_rows_with_counts(marks, fit_quietly):
    result = fit_quietly(Mild(), marks, rt.PGEM(draws=20))
    probability = rt.predict(Mild(), result)
    assert probability.sizes["mark"] == marks.num_rows
    assert "place" in probability.coords


def test_a_campaign_fits_what_it_was_told(marks, tmp_path, fit_quietly):
    backend = rt.PGEM(draws=400)
    pool = rt.Candidates.of(marks, again=True)
    campaign = rt.Campaign(tmp_path / "a.db", Mild(), pool, data=marks, backend=backend, again=True)
    mine, theirs = (
        one.posterior["quality"].mean(("chain", "draw")).values
        for one in (fit_quietly(Mild(), marks, backend), campaign.result)
    )
    np.testing.assert_allclose(mine, theirs, atol=0.2)

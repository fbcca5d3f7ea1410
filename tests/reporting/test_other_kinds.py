"""Reports of kinds of judgement that are defined outside the package."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import raters as rt
from raters import kinds
from raters.errors import DataError
from raters.fitting.storage import to_json
from raters.judgements.names import names_array
from raters.judgements.stored import qualified_name
from raters.kinds import Column, Section
from tests.kinds import replies
from tests.refusals import raises_about
from tests.reporting.test_report import Page, check_forms

# The first passes everything by chance, the second and the third are good, the last has one answer.
PERSONS, ITEMS = ("guess", "good", "<b>fine</b>", "new"), ("addition", "division", "roots")
MODEL = replies.OwnTwoPL()


@pytest.fixture(autouse=True)
def registry(monkeypatch) -> None:
    """Registered kinds as they were before each test."""
    monkeypatch.setattr(kinds, "_KINDS", dict(kinds._KINDS))


def responses() -> replies.Replies:
    person = [*np.repeat([0, 1, 2], 8), 3]
    item = [0, 1, 2, 0, 1, 2, 0, 1] * 3 + [2]
    correct = [0, 1, 0, 1, 1, 0, 0, 1] + [1, 1, 1, 1, 0, 1, 1, 1] * 2 + [1]
    columns = (np.array(person, np.int32), np.array(item, np.int32), np.float32(correct), None)
    return replies.Replies(*columns, PERSONS, ITEMS)


def audited(**fields: Any) -> tuple[rt.Model, xr.DataTree, rt.auditing.Audit]:
    """An audit of `responses` by draws by hand, whose kind is registered with some fields."""
    rt.kinds.register(dataclasses.replace(replies.REPLIES, **fields))
    rng, data = np.random.default_rng(0), responses()
    draws = {
        "ability": ("person", rng.normal([-1.0, 1.0, 1.5, 0.2], 0.1, (160, 4))),
        "discrimination": ("item", rng.normal(1, 0.1, (160, 3))),
        "intercept": ("item", rng.normal(0, 0.1, (160, 3))),
    }
    posterior = {name: (("chain", "draw", axis), x[None]) for name, (axis, x) in draws.items()}
    coords = {axis: names_array(data.coords[axis]) for axis in ("person", "item")}
    groups = {"posterior": xr.Dataset(posterior, coords | {"chain": [0], "draw": range(160)})}
    groups |= {group: xr.Dataset(columns) for group, columns in data.groups().items()}
    result = xr.DataTree.from_dict(groups)
    about = {"data": qualified_name(type(data)), "model": to_json(MODEL)}
    result.attrs.update(data.flags() | about)
    return MODEL, result, rt.audit(MODEL, result, threshold=0.0, reference="crowd")


# ---------------------------------------------------------------- a kind without sections


def test_a_kind_without_sections_has_a_report():
    report = rt.report(*audited())
    facts = report.facts
    assert (facts["kind"], facts["judge"], facts["judged"]) == ("replies", "person", "ability")
    assert facts["answer"]["flagged"] == ["guess"]
    assert [column["name"] for column in facts["columns"]] == ["ability", "p_below"]
    reasons = {row["person"]: row["reason"]["code"] for row in facts["annotators"] if row["reason"]}
    assert reasons == {"guess": "below", "new": "few_judgements"}
    assert facts["sections"] == {}
    assert facts["asked"]["data"] == {"persons": 4, "items": 3, "responses": 25}
    assert facts["agreement"] is None
    with raises_about(DataError, "data"):
        rt.agreement(responses())
    check_forms(report)
    assert {"guess", "good", "<b>fine</b>", "new"} <= set(Page(report.to_html()).text("bdi"))


# ---------------------------------------------------------------- columns and sections


def difficulties(context: kinds.AuditContext) -> Section:
    """Items by difficulty, and a matrix."""
    draws = -context.result["posterior"]["intercept"].values.reshape(-1, 3)
    table = pd.DataFrame({"item": context.program.data.items, "difficulty": draws.mean(0)})
    table = table.assign(difficulty_low=draws.min(0), difficulty_high=draws.max(0))
    eye = {"rows": ["odd", "even"], "columns": ["wrong", "right"], "values": np.eye(2)}
    return Section(
        key="items",
        title="How difficult the items are",
        findings=({"text": f"The threshold was {context.audit.threshold:g}.", "number": 3},),
        columns=(Column("item", "name"), Column("difficulty", "interval")),
        table=table,
        matrices=({"title": "addition"} | eye,),
        limits=({"text": "That anybody is stupid."},),
    )


def test_columns_and_sections_are_those_of_the_kind(tmp_path):
    columns = (
        Column("ability", "interval", "skill", "Skill within {margin}.", marks=(0.0, 1.0)),
        Column("missing", "percent", "not in the table"),
        Column("p_below", "percent", "P(weak)"),
    )
    report = rt.report(*audited(columns=columns, sections=(difficulties, lambda context: None)))
    facts = report.facts
    assert [column["heading"] for column in facts["columns"]] == ["skill", "P(weak)"]
    section = facts["sections"]["items"]
    assert section["findings"][0]["number"] == 3
    assert [row["item"] for row in section["rows"]] == list(ITEMS)
    assert section["matrices"][0]["values"] == [[1.0, 0.0], [0.0, 1.0]]
    check_forms(report)
    html, markdown = report.to_html(), report.to_markdown()
    for text in ("How difficult the items are", "The threshold was 0.", "That anybody is stupid."):
        assert text in html
        assert text in markdown
    assert "Skill within 0.05." in html
    report.files["items.csv"](tmp_path / "items.csv")
    assert list(pd.read_csv(tmp_path / "items.csv")["item"]) == list(ITEMS)

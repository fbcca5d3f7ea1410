"""Families of annotators: read, kept by every part of the data, stored, and refused."""

from __future__ import annotations

import numpy as np

import raters as rt
from raters.judgements.labels import Labels

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


def test_a_result_holds_the_families(tmp_path) -> None:
    import xarray as xr

    labels = Labels.from_frame(TABLE, **ROLES)
    result = rt.fit(rt.models.MajorityVote(), labels, rt.PGEM(draws=0), seed=0, progress=False)
    result.to_netcdf(tmp_path / "fit.nc")
    with xr.open_datatree(tmp_path / "fit.nc") as stored:
        assert by_name(Labels.from_result(stored)) == EXPECTED

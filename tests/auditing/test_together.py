"""One verdict on each annotator, from audits of two kinds that are written by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import raters as rt
from raters.auditing.audit import Audit, combined, joint_anchor
from raters.auditing.truth.calibration import Anchor
from tests import hand
from tests.several import OF_LABELS

NAMES = ("ann", "bob", "eve", "new")
# Of ann, bob, eve and new.
LABELS, VOTES = np.array([8, 0, 2, 2]), np.array([2, 6, 8, 1])
BELOW = np.array([1.0, 0.0, 1.0, 0.0]), np.array([1.0, 1.0, 0.0, 1.0])


@pytest.fixture(scope="module")
def program() -> rt.program.Program:
    """Labels and votes of the same four, of whom bob has no label."""
    labels = {"item": [0, 1] * 3, "who": ["ann"] * 2 + ["eve"] * 2 + ["new"] * 2, "is": [0, 1] * 3}
    votes = hand.votes(*[(0, 1, who) for who in NAMES], (1, 0, "ann"))
    parts = {
        "labels": rt.Labels.from_frame(labels, item="item", annotator="who", label="is"),
        "votes": votes,
    }
    together = rt.judgements.Together.of(parts)
    assert tuple(together.coords["annotator"]) == ("ann", "eve", "new", "bob")
    return rt.program.Program(OF_LABELS, together)


def audited(number: np.ndarray, below: np.ndarray, verdict: str = "keep", **anchor) -> Audit:
    """An audit in which everybody has this verdict, in the order of the codes."""
    order = [0, 2, 3, 1]
    names = np.array(NAMES, object)[order]
    columns = {
        "judgements": number[order],
        "competence": 1 - below[order],
        "p_below": below[order],
        "verdict": np.full(4, verdict, object),
    }
    table = xr.Dataset({name: ("annotator", one) for name, one in columns.items()})
    return Audit(table.assign_coords(annotator=names), "", anchor=Anchor(**anchor))


def verdicts(
    program: rt.program.Program, labels: Audit, votes: Audit, least: int = 5
) -> dict[str, str]:
    table, _ = combined(program, {"labels": labels, "votes": votes}, rt.Costs(), least)
    return table["verdict"].to_series().to_dict()


def test_the_shares_of_the_judgements_decide(program) -> None:
    """Below the threshold with probability 1, 1 and .2: costs p of a keep, 1 - p of a drop."""
    known = {"known": 1000}
    labels, votes = audited(LABELS, BELOW[0], **known), audited(VOTES, BELOW[1], **known)
    found, _ = combined(program, {"labels": labels, "votes": votes}, rt.Costs(), 5)
    below = found["p_below"].to_series()
    assert below.to_dict() == pytest.approx({"ann": 1.0, "bob": 1.0, "eve": 0.2, "new": 1 / 3})
    assert found["p_above"].values == pytest.approx(1 - below.values)
    assert found["verdict"].to_series().to_dict() == {
        "ann": "drop",
        "bob": "drop",
        "eve": "keep",
        "new": "too few judgements",
    }


def test_a_part_without_judgements_of_somebody_has_no_say_on_them(program) -> None:
    """Nobody knows of what the labels are, or their draws are too few: bob has only votes."""
    known = audited(VOTES, BELOW[1], known=1000)
    by_crowd = verdicts(program, audited(LABELS, BELOW[0]), known)
    assert (by_crowd["ann"], by_crowd["bob"]) == ("differs from the crowd", "drop")
    few = audited(LABELS, BELOW[0], "too few draws", known=1000)
    assert {name for name, one in verdicts(program, few, known).items() if one != "drop"} == {
        "ann",
        "eve",
        "new",
    }


def test_only_what_all_parts_leave_to_the_prior_is_for_review(program) -> None:
    """The votes of one annotator agree with themselves; the labels tell annotators apart."""
    labels, votes = audited(LABELS, 0 * BELOW[0]), audited(VOTES, 0 * BELOW[1])
    data = {name: one.data for name, one in program.parts.items()}
    alone = {
        name: replace(one, annotator=np.zeros_like(one.annotator)) for name, one in data.items()
    }
    for parts, verdict in (({**data, "votes": alone["votes"]}, "keep"), (alone, "review")):
        both = rt.program.Program(OF_LABELS, rt.judgements.Together.of(parts))
        assert set(verdicts(both, labels, votes, 0).values()) == {verdict}


def test_the_anchor_of_each_part_is_said_and_one_that_is_missing_is_missing() -> None:
    truths, crowd = Anchor(known=1000, doubts=("They are few.",)), Anchor()
    both = joint_anchor({"labels": truths, "votes": crowd})
    assert both.is_missing
    assert both.sentence == f"labels: {truths.sentence} votes: {crowd.sentence}"
    assert both.doubts == ("labels: They are few.",)
    assert not joint_anchor({"labels": truths, "votes": truths}).is_missing
    assert joint_anchor({"labels": crowd, "votes": crowd}).sentence == crowd.sentence

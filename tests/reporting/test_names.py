"""Names of any kind on the page, in Markdown and in sentences; pages of many; mirrored worlds."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.judgements.display import display_name
from raters.kinds import AuditLimits
from raters.kinds.comparisons.audit import quantities
from tests import hand
from tests.reporting.test_report import Page

LONG = "the first of ten thousand letters " + "x" * 9_930 + " and the last"
HOSTILE = (
    LONG,
    "y" * 1_500,
    "\u202egpj.exe",
    "a\u2069b\u2066c",
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "$x^2$ and $y$",
    "👩\u200d👧",
    "\u200b\u200b",
    "new\nline",
    "tab\there",
    "\x1b[31mred\x1b[0m",
    " ends ",
    "שלום עולם",
    "محمد (أحمد) 12",
)
# What changes the direction of the text that follows, or cannot be seen.
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066\u2067]")
SIGNED = rt.ExtendedBTL(competence="signed", reward_scale=1.0, competence_spread=0.5)


@pytest.fixture(scope="module")
def hostile() -> rt.reporting.Report:
    """A report on annotators, and on items, of hostile names."""
    rows = [(HOSTILE[k], HOSTILE[k - 1], who) for k in range(len(HOSTILE)) for who in HOSTILE]
    votes = hand.votes(*rows)
    rng = np.random.default_rng(0)
    mean = np.linspace(0, 1.5, len(votes.annotators))
    result = hand.result(
        votes,
        reward=rng.normal(size=(40, len(votes.items))),
        competence=rng.normal(mean, 0.1, (40, len(mean))),
    )
    questions = {"first": HOSTILE[2:4], "second": HOSTILE[4:6], "by": HOSTILE[8:10]}

    audit = rt.audit(SIGNED, result, reference="crowd")
    return rt.report(SIGNED, result, audit, questions=pd.DataFrame(questions), title=HOSTILE[2])


def test_every_name_stands_apart_cut_and_whole_in_its_title(hostile):
    page = Page(hostile.to_html())
    shown = page.text("bdi")
    for name in HOSTILE:
        assert display_name(name).strip() in shown
    whole = {attrs["title"] for tag, attrs in page.tags if tag == "bdi" and "title" in attrs}
    assert "y" * 1_500 in whole
    assert display_name(LONG, 2_000) in whole
    assert max(len(words) for words in shown) <= 80
    # Right-to-left letters are nowhere else, but for attributes, where isolates hold them.
    for inside, words in page.words:
        assert inside == "bdi" or not re.search("[\u0590-\u06ff]", words)


def test_no_name_becomes_markup_or_steers_the_text(hostile):
    text = hostile.to_html()
    page = Page(text)
    assert not STEERING.search(text)
    assert {tag for tag, _ in page.tags} & {"script", "img"} == set()
    assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)
    for one in (hostile.to_markdown(), str(hostile)):
        assert not STEERING.search(one)
    assert text.count("\u2068") == text.count("\u2069")


# ---------------------------------------------------------------- mirrored worlds


def mirrored(share: float, **settings) -> tuple[rt.Model, object, rt.auditing.Audit]:
    """An audit of two whose judgements are opposed: in a share of the draws the world is
    mirrored."""
    votes = hand.votes(*[("a", "b", "ann"), ("b", "a", "bob"), ("b", "c", "ann")] * 8)
    rng = np.random.default_rng(0)
    side = np.where(np.arange(200) < 200 * share, -1.0, 1.0)[:, None]
    result = hand.result(
        votes,
        reward=side * rng.normal([1.0, 0.0, -1.0], 0.1, (200, 3)),
        competence=side * rng.normal([1.0, -0.8], 0.1, (200, 2)),
    )
    return SIGNED, result, rt.audit(SIGNED, result, **settings, reference="crowd")


def test_both_worlds_have_their_competences():
    _, result, audit = mirrored(0.3, level=0.8)
    worlds = audit.tables["worlds"]
    np.testing.assert_allclose(worlds["probability"], [0.7, 0.3])
    draws = result["posterior"]["competence"].values[0]
    np.testing.assert_allclose(
        worlds["competence"].values, [draws[60:].mean(0), draws[:60].mean(0)]
    )
    np.testing.assert_allclose(worlds["competence_low"][1], np.quantile(draws[:60], 0.1, axis=0))
    np.testing.assert_allclose(worlds["competence_high"][0], np.quantile(draws[60:], 0.9, axis=0))
    assert "worlds" not in mirrored(0.04)[2].tables
    # Where the prior tells the worlds apart, no symmetry says that there are two.
    positive = dataclasses.replace(SIGNED, competence="unit")
    program = rt.program.Program(positive, rt.Comparisons.from_result(result))
    assert quantities(program, result, AuditLimits(0.25, 0.9, 0.05)).tables == {}


def test_two_worlds_are_two_intervals_on_the_page():
    model, result, audit = mirrored(0.3)
    report = rt.report(model, result, audit)
    assert rt.reporting.Report(report.facts).to_html() == report.to_html()
    assert report.facts["worlds"] == pytest.approx([0.7, 0.3])
    worlds = {row["annotator"]: row["worlds"] for row in report.facts["annotators"]}
    assert [round(world["competence"]) for world in worlds["ann"]] == [1, -1]
    page = Page(report.to_html())
    bars = [attrs for tag, attrs in page.tags if attrs.get("class", "").startswith("bar ")]
    of_judges = [bar for bar in bars if bar["aria-label"].startswith("competence")]
    assert len(of_judges) == 4
    text = re.sub("<[^>]*>", "", report.to_html())
    assert text.count("]with 70%") == text.count("]with 30%") == 2
    other = worlds["ann"][1]
    assert f" or −{-other['competence']:.2f} " in report.to_markdown()

"""Figures of audits: drawn from the numbers that they claim to show."""

from __future__ import annotations

import dataclasses
import io
import warnings

import numpy as np
import pytest

import raters as rt
from raters import figures
from raters.errors import SettingError
from raters.figures.base import VERDICTS
from tests.figures.made import fitted, judged, judged_labels
from tests.refusals import raises_about

HOSTILE = {
    "$x^2$ and $y$": "$x^2$ and $y$",
    "z" * 10_000: "z" * 18 + "…" + "z" * 9,
    "new\nline": "new↵line",
    "\x1b[31mred": "[U+001B][31mred",
    "\u202egpj.exe": "[U+202E]gpj.exe",
    "_x": "_x",
    "שלום": "שלום",
}


def test_competences_hold_the_rows_that_are_drawn():
    plots = figures.competences(dataclasses.replace(judged(90), threshold=0.5, level=0.8))
    shown = [*range(40), *range(70, 90)]
    np.testing.assert_allclose(plots.data["competence"], np.linspace(-1, 2, 90)[shown])
    axes = plots.get_viz("plot")
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert [int(name.split()[1]) for name in names] == shown
    assert [text.get_text() for text in axes.texts] == ["… 30 of 90 not shown …"]
    assert plots.data.attrs == {"level": 0.8, "threshold": 0.5}
    assert [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "--"] == [0.5]


def test_each_verdict_has_its_colour_and_marker():
    plots = figures.competences(judged(12))
    lines = [line for line in plots.get_viz("plot").lines if len(line.get_xdata()) == 2]
    assert set(VERDICTS.values()) <= {(line.get_color(), line.get_marker()) for line in lines}
    texts = plots.get_viz("figure").legends[0].get_texts()
    assert [text.get_text() for text in texts] == [f"{verdict} (2)" for verdict in VERDICTS]


def test_the_auditor_lists_the_least_trusted_first():
    plots = figures.auditor(judged(40))
    axes = plots.get_viz("plot", column="trouble")
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert [int(label.split()[1]) for label in labels] == list(range(18))
    below = next(line for line in axes.lines if line.get_marker() == "s")
    np.testing.assert_allclose(below.get_xdata(), np.linspace(1, 0, 40)[:18])
    left, right = figures.auditor(judged_labels(5, ["no", "yes"])).viz["plot"].values
    assert left.get_xlabel() == "labels given"
    assert right.get_legend().get_texts()[1].get_text() == "spammer"


def test_those_who_favour_the_first_most_are_on_top():
    audit = judged(4)
    plots = figures.position_bias(audit)
    np.testing.assert_array_equal(plots.data["first_share"], audit.table["first_share"][::-1])
    assert plots.data.attrs == {"level": 0.9, "margin": 0.05, "mean": pytest.approx(0.6)}
    table = audit.table.assign(judgements=("annotator", [5, 0, 0, 0]))
    plots = figures.position_bias(dataclasses.replace(audit, table=table))
    assert plots.data.attrs["mean"] == pytest.approx(0.3)


def test_matrices_are_those_of_the_least_trusted():
    audit = judged_labels(30, ["no", "yes"])
    plots = figures.confusions(audit)
    panels = plots.viz["plot"].values.tolist()
    names = [axes.get_title(loc="left") for axes in panels]
    assert names[2].startswith("annotator 2")
    np.testing.assert_allclose(panels[2].images[0].get_array(), audit.confusion["mean"][2])
    assert plots.get_viz("plot", annotator=plots.data["annotator"].values[2]) is panels[2]
    np.testing.assert_allclose(plots.data["confusion"], audit.confusion["mean"][:12])
    assert panels[0]._left_title.get_color() == VERDICTS["too few draws"][0]


def test_certainty_is_the_running_mean_of_what_is_wrong():
    plots = figures.certainty(judged_labels(3, ["no", "yes"]).items)
    first, running = (line.get_ydata() for line in plots.get_viz("plot").lines)
    np.testing.assert_allclose(first, [0, 0.1, 0.2, 0.5])
    np.testing.assert_allclose(running, [0, 0.05, 0.1, 0.2])
    np.testing.assert_allclose(plots.data["share_wrong"], running)


def test_levels_are_shares_from_the_most_severe_on(fit_quietly):
    ratings = rt.datasets.rating_crowd(20, 5, 3, 4, seed=0).ratings
    result = fit_quietly(rt.ManyFacet(), ratings, rt.PGEM(draws=100))
    audit = rt.audit(rt.ManyFacet(), result)
    plots = figures.levels(audit)
    np.testing.assert_allclose(plots.data["share"].sum("level"), 1)
    bias = audit.table["bias"].to_series()
    assert list(plots.data["annotator"].values) == list(bias.sort_values(kind="stable").index)
    axes = figures.rewards(result).get_viz("plot")
    assert "standard deviations" in axes.get_xlabel()
    with raises_about(SettingError, "result"):
        figures.item_person_map(result)


def test_names_of_any_kind_are_drawn_as_they_are():
    audit = judged(len(HOSTILE))
    table = audit.table.assign_coords(annotator=np.array(list(HOSTILE), object))
    audit = dataclasses.replace(audit, table=table)
    plots = figures.competences(audit)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plots.savefig(io.BytesIO())
        figures.auditor(audit).savefig(io.BytesIO())
    labels = plots.get_viz("plot").get_yticklabels()
    drawn = [text._preprocess_math(text.get_text()) for text in labels]
    assert drawn == [(name, False) for name in HOSTILE.values()]


def test_what_cannot_be_drawn_is_refused():
    plain = dataclasses.replace(judged(3), table=judged(3).table[["judgements"]])
    for draw in (
        figures.competences,
        figures.auditor,
        figures.position_bias,
        figures.confusions,
        figures.levels,
    ):
        for wrong in (fitted(3), None, plain):
            with raises_about(SettingError, "audit"):
                draw(wrong)
    with raises_about(SettingError, "items"):
        figures.certainty(judged(3).items)

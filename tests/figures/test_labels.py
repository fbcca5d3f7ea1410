"""The figures of label audits: readable with 1 annotator and with 600, with 2 classes and with 8 of
long names."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from arviz_plots import PlotCollection
from matplotlib.text import Text

import raters as rt
from raters import figures
from raters.errors import SettingError
from raters.figures import labels as label_figures
from raters.figures.base import VERDICTS
from tests.figures import test_fits as test_figures
from tests.refusals import raises_about

LONG = [
    f"{word} of some very long class"
    for word in ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
]


def judged(annotators: int, classes: list[str]) -> rt.auditing.Audit:
    """An audit of labels with every verdict in it; the first annotator is the worst."""
    of_votes = test_figures.judged(annotators)
    table = of_votes.table.rename({"p_guessing": "p_spammer"})
    rng = np.random.default_rng(0)
    matrices = rng.dirichlet(np.ones(len(classes)), (annotators, len(classes)))
    axes = ("annotator", "true_class", "label")
    coords = {"annotator": table["annotator"].values, "true_class": classes, "label": classes}
    confusion = xr.Dataset(dict.fromkeys(("mean", "low", "high"), (axes, matrices)), coords=coords)
    items = xr.Dataset({"probability": ("item", np.array([0.5, 1.0, 0.9, 0.8]))})
    return rt.auditing.Audit(table, of_votes.rule, {"confusion": confusion, "items": items})


def certainty(found: rt.auditing.Audit) -> PlotCollection:
    return label_figures.certainty(found.items)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [["no", "yes"], ["no", "perhaps", "yes"], LONG], ids=len)
@pytest.mark.parametrize("number", [1, 5, 600])
@pytest.mark.parametrize(
    "draw", [label_figures.confusions, certainty, figures.competences, figures.auditor]
)
def test_nothing_is_clipped_or_covered(draw, number, classes):
    figure = test_figures.of(draw(judged(number, classes)))
    width, height = test_figures.pixels(figure)
    assert 1000 <= width <= 2000
    assert 300 <= height <= 2600
    texts = [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]
    for axes in figure.axes:
        assert not test_figures.overlaps([*axes.get_yticklabels(), axes.yaxis.label])
        assert not test_figures.overlaps(axes.get_xticklabels())
        assert not test_figures.overlaps(axes.texts)
    titles = [axes.title for axes in figure.axes] + (
        [] if figure._suptitle is None else [figure._suptitle]
    )
    assert not test_figures.overlaps(titles)
    assert not test_figures.overlaps(
        [
            *figure.axes[-1].get_xticklabels(),
            *[t for box in figure.legends for t in box.get_texts()],
        ]
    )
    if draw is label_figures.confusions:
        for text in texts:
            box = text.get_window_extent()
            assert box.x0 >= -1, text
            assert box.x1 <= figure.bbox.x1 + 1, text
            assert box.y0 >= -1, text
            assert box.y1 <= figure.bbox.y1 + 1, text


def test_matrices_are_those_of_the_least_trusted():
    found = judged(30, ["no", "yes"])
    plots = label_figures.confusions(found, most=4)
    panels = plots.viz["plot"].values.tolist()
    assert [int(axes.get_title().split()[1]) for axes in panels] == [0, 1, 2, 3]
    np.testing.assert_allclose(panels[2].images[0].get_array(), found.confusion["mean"][2])
    assert next(
        text.get_text() for text in panels[0].texts
    ) == f"{found.confusion['mean'].values[0, 0, 0]:.2f}".lstrip("0")
    assert plots.get_viz("plot", annotator=plots.data["annotator"].values[2]) is panels[2]
    np.testing.assert_allclose(plots.data["confusion"], found.confusion["mean"][:4])
    assert plots.data["verdict"].values.tolist() == found.table["verdict"].values[:4].tolist()
    assert (plots.viz["row_index"].values.tolist(), plots.viz["col_index"].values.tolist()) == (
        [0, 0, 0, 0],
        [0, 1, 2, 3],
    )
    assert panels[0].title.get_color() == VERDICTS["too few judgements"][0]


def test_certainty_is_the_running_mean_of_what_is_wrong():
    plots = label_figures.certainty(judged(3, ["no", "yes"]).items)
    axes = plots.get_viz("plot")
    one, all_so_far = (line.get_ydata() for line in axes.lines)
    np.testing.assert_allclose(one, [0, 0.1, 0.2, 0.5])
    np.testing.assert_allclose(all_so_far, [0, 0.05, 0.1, 0.2])
    np.testing.assert_allclose(plots.data["share_wrong"], all_so_far)
    np.testing.assert_allclose(plots.data["wrong"], one)
    assert (
        axes.get_title(loc="left")
        == "If labelling stops now: 0.8 of 4 item labels expected to be wrong"
    )


def test_labels_are_called_labels():
    found = judged(5, ["no", "yes"])
    left, right = figures.auditor(found).viz["plot"].values
    assert (left.get_xlabel(), right.get_legend().get_texts()[1].get_text()) == (
        "labels given",
        "spammer",
    )
    assert "0: spammer" in figures.competences(found).get_viz("plot").get_xlabel()
    assert "0: guesser" in figures.competences(test_figures.judged(5)).get_viz("plot").get_xlabel()


@pytest.mark.parametrize(
    ("draw", "parameter"), [(label_figures.confusions, "audit"), (certainty, "items")]
)
def test_an_audit_of_comparisons_is_refused(draw, parameter):
    with raises_about(SettingError, parameter):
        draw(test_figures.judged(3))


def test_what_is_no_audit_is_refused():
    with raises_about(SettingError, "audit"):
        label_figures.confusions(rt.BTL())


def test_figures_leave_no_global_state():
    before = plt.get_fignums()
    label_figures.confusions(judged(3, LONG))
    assert plt.get_fignums() == before

"""The figures of types: readable with 5 annotators and with 5,000, with 1 type and with 12, and
drawn from true numbers."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from matplotlib.text import Text

import raters as rt
from raters import alignment
from raters.errors import SettingError
from raters.figures import types as type_figures
from tests.figures import test_fits as test_figures
from tests.refusals import raises_about


def fitted(types: int, items: int = 8, annotators: int = 30, site: str = "reward") -> xr.DataTree:
    """Draws around known rewards, and responsibilities; figures need no more of a result."""
    rng = np.random.default_rng(0)
    axis = "item" if site == "reward" else "feature"
    means = 2 * rng.normal(size=(items, types))
    share = np.sort(rng.dirichlet(3 * np.ones(types)))[::-1]
    posterior = xr.Dataset(
        {
            site: (
                ("chain", "draw", axis, "type"),
                means + 0.3 * rng.normal(size=(2, 50, items, types)),
            ),
            "type_weight": (("chain", "draw", "type"), np.broadcast_to(share, (2, 50, types))),
        },
        coords={
            axis: [f"{axis} {number} of some very long name" for number in range(items)],
            "type": np.arange(types),
        },
    )
    who = [f"annotator {number} of the far too long names" for number in range(annotators)]
    chances = rng.dirichlet(0.3 * np.ones(types), annotators)
    known = xr.Dataset(
        {"responsibility": (("annotator", "type"), chances)},
        coords={"annotator": who, "type": np.arange(types)},
    )
    return xr.DataTree.from_dict({"posterior": posterior, "types": known})


def check_readable(plots) -> None:
    """Nothing runs into its neighbour or over the edge."""
    figure = test_figures.of(plots)
    width, height = test_figures.pixels(figure)
    assert 800 <= width <= 2000
    assert 300 <= height <= 2600
    for axes in figure.axes:
        assert not test_figures.overlaps([*axes.get_yticklabels(), axes.yaxis.label])
        assert not test_figures.overlaps(axes.get_xticklabels())
    titles = [axes.title for axes in figure.axes] + [axes._left_title for axes in figure.axes]
    assert not test_figures.overlaps(
        [*titles, *filter(None, [figure._suptitle, figure._supxlabel])]
    )
    for text in figure.findobj(Text):
        if (
            text.get_text()
            and text.get_visible()
            and text.figure is figure
            and text in [figure._suptitle, figure._supxlabel]
        ):
            assert text.get_window_extent().x1 <= figure.bbox.x1 + 1, text
            assert text.get_window_extent().x0 >= -1, text


@pytest.mark.slow
@pytest.mark.parametrize("site", ["reward", "coefficient"])
@pytest.mark.parametrize("items", [2, 5, 30, 200])
@pytest.mark.parametrize("types", [1, 2, 6, 12])
def test_profiles_stay_readable(types, items, site):
    check_readable(type_figures.profiles(fitted(types, items, site=site)))


@pytest.mark.slow
@pytest.mark.parametrize("annotators", [1, 5, 60, 5000])
@pytest.mark.parametrize("types", [1, 2, 6, 12])
def test_responsibilities_stay_readable(types, annotators):
    check_readable(type_figures.responsibilities(fitted(types, 3, annotators)))


def test_profiles_are_posterior_means_in_the_order_of_their_mean_over_annotators():
    result = fitted(2, 5)
    plots = type_figures.profiles(result)
    panels = plots.viz["plot"].values.tolist()
    means = result["posterior"]["reward"].mean(("chain", "draw")).values
    common = means @ result["posterior"]["type_weight"].values[0, 0]
    order = np.argsort(-common)
    for number, panel in enumerate(panels):
        lines = {line.get_marker(): line.get_xdata() for line in panel.lines}
        np.testing.assert_allclose(lines["o"], means[order, number])
        np.testing.assert_allclose(lines["|"], common[order])
    np.testing.assert_allclose(plots.data["reward"], means[order])
    np.testing.assert_allclose(plots.data["common"], common[order])
    assert plots.get_viz("plot", type=1) is panels[1]
    assert [text.get_text().split()[1] for text in panels[0].get_yticklabels()] == [
        str(number) for number in order
    ]
    share = result["posterior"]["type_weight"].values[0, 0]
    assert [panel.get_title(loc="left") for panel in panels] == [
        f"type {number}: {share[number]:.0%}" for number in range(2)
    ]


def test_of_many_items_those_are_shown_on_which_types_differ_most():
    result = fitted(2, 30)
    means = result["posterior"]["reward"].mean(("chain", "draw")).values
    figure = test_figures.of(type_figures.profiles(result, most=3))
    shown = {int(text.get_text().split()[1]) for text in figure.axes[0].get_yticklabels()}
    assert shown == set(np.argsort(-abs(means[:, 0] - means[:, 1]))[:3].tolist())
    assert "the 3 of 30 items that differ most" in figure._suptitle.get_text()


def test_responsibilities_are_sorted_and_stacked_to_one():
    result = fitted(3, 2, 200)
    table = result["types"]["responsibility"].values
    plots = type_figures.responsibilities(result)
    bands = plots.get_viz("plot").collections
    order = [int(name.split()[1]) for name in plots.data["annotator"].values]
    np.testing.assert_allclose(plots.data["responsibility"], table[order])
    assert plots.data["likeliest"].values.tolist() == sorted(table.argmax(1).tolist())
    heights = []
    for band in bands:
        box = band.get_paths()[0].get_extents()
        heights.append((box.y0, box.y1))
    assert heights[0][0] == 0
    assert heights[-1][1] == pytest.approx(1)
    labels = [text.get_text() for text in test_figures.of(plots).legends[0].get_texts()]
    members = np.bincount(table.argmax(1), minlength=3)
    assert labels == [f"type {number} ({members[number]})" for number in range(3)]


def test_types_beyond_the_most_are_put_together():
    figure = test_figures.of(type_figures.responsibilities(fitted(12, 2, 50), most_types=4))
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(labels) == 4
    assert labels[-1].startswith("9 more types (")


def test_weights_show_the_path_and_where_it_leads():
    regret = alignment.regret_matrix([[0.8, 0.1, 0.1], [0.2, 0.6, 0.2]])
    path, goal = (
        alignment.hedge(regret, steps=100).history,
        alignment.linear_programme(regret).weights,
    )
    plots = type_figures.weights(path, goal)
    check_readable(plots)
    lines = plots.get_viz("plot").lines
    np.testing.assert_allclose(plots.data["weight"], path)
    np.testing.assert_allclose(plots.data["solution"], goal)
    np.testing.assert_allclose(lines[0].get_ydata(), path[:, 0])
    np.testing.assert_allclose(lines[1].get_ydata(), goal[0])


def test_what_has_no_types_is_refused():
    plain = test_figures.fitted(3)
    for draw in (type_figures.profiles, type_figures.responsibilities):
        with raises_about(SettingError, "result"):
            draw(plain)
        with raises_about(SettingError, "result"):
            draw(rt.BTL())
    with raises_about(SettingError, "history"):
        type_figures.weights([0.5, 0.5], [0.5, 0.5])


def test_figures_leave_no_global_state():
    before = plt.get_fignums()
    type_figures.profiles(fitted(2))
    type_figures.responsibilities(fitted(2))
    assert plt.get_fignums() == before

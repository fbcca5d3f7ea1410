"""Figures: drawn from the numbers that they claim to show, and readable at any size."""

from __future__ import annotations

import dataclasses
import io
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from arviz_plots import PlotCollection

from raters import figures
from raters.checking.predictive import Check
from raters.figures.base import VERDICTS, rows_of, short
from raters.figures.fits import cell
from tests.figures.made import check_readable, curves, fitted, judged, judged_labels, typed

HOSTILE = {
    "$x^2$ and $y$": "$x^2$ and $y$",
    "z" * 10_000: "z" * 18 + "…" + "z" * 9,
    "new\nline": "new↵line",
    "\x1b[31mred": "[U+001B][31mred",
    "\u202egpj.exe": "[U+202E]gpj.exe",
    "_x": "_x",
    "שלום": "שלום",
}
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
LONG = [f"{word} of some very long class" for word in WORDS]

# ---------------------------------------------------------------- what is returned


def test_a_figure_is_arvizs_saved_at_the_size_asked_for(tmp_path):
    plots = figures.ranks(fitted(3))
    assert isinstance(plots, PlotCollection)
    assert repr(plots) == ("<Plots of probability, mean_rank, p_best, p_top (item: 3, rank: 3)>")
    assert not plt.get_fignums()
    plots.savefig(tmp_path / "a.png", dpi=50)
    assert int.from_bytes((tmp_path / "a.png").read_bytes()[16:20], "big") == 11 * 50
    assert plots.set_dpi(60) is plots
    assert int.from_bytes(plots._repr_png_()[16:20], "big") == 11 * 60


def test_names_of_any_kind_are_drawn_as_they_are():
    audit = judged(len(HOSTILE))
    table = audit.table.assign_coords(annotator=np.array(list(HOSTILE), object))
    plots = figures.competences(dataclasses.replace(audit, table=table))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plots.savefig(io.BytesIO())
    labels = plots.get_viz("plot").get_yticklabels()
    drawn = [text._preprocess_math(text.get_text()) for text in labels]
    assert drawn == [(name, False) for name in HOSTILE.values()]
    # Wide letters take the room of two.
    assert short("茶" * 14) == "茶" * 14
    assert short("茶" * 15) == "茶" * 8 + "…" + "茶" * 5


def test_both_ends_of_many_rows_are_shown():
    for number, most, head, expected in (
        (4, 4, None, ([0, 1, 2, 3], 4, 0)),
        (5, 4, None, ([0, 1, 3, 4], 2, 1)),
        (9, 3, 3, ([0, 1, 2], 3, 6)),
    ):
        rows = rows_of(np.arange(number), np.arange(number), most, head)
        assert (rows.shown.tolist(), rows.head, rows.left_out) == expected


# ---------------------------------------------------------------- audits


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
    assert {line.get_color() for line in axes.lines} >= {colour for colour, _ in VERDICTS.values()}
    texts = plots.get_viz("figure").legends[0].get_texts()
    assert [text.get_text() for text in texts] == [f"{verdict} (15)" for verdict in VERDICTS]


def test_matrices_are_those_of_the_least_trusted():
    audit = judged_labels(30, ["no", "yes"])
    plots = figures.confusions(audit)
    panels = plots.viz["plot"].values.tolist()
    np.testing.assert_allclose(panels[2].images[0].get_array(), audit.confusion["mean"][2])
    assert plots.get_viz("plot", annotator=plots.data["annotator"].values[2]) is panels[2]
    np.testing.assert_allclose(plots.data["confusion"], audit.confusion["mean"][:12])


# ---------------------------------------------------------------- curves and checks


def test_lines_are_means_over_replicates():
    given = curves(replicates=5)
    plots = figures.learning_curves(given)
    mean = given["tau"].mean("replicate").values
    np.testing.assert_allclose(plots.data["tau"], mean)
    for line, average in zip(plots.get_viz("plot").lines, mean, strict=True):
        np.testing.assert_allclose(line.get_ydata(), average)
    check_readable(plots)
    single = figures.learning_curves(given.isel(policy=0, replicate=0, drop=True))
    assert single.data["tau"].shape == (1, 6)
    given["tau"][0, 1, 4:] = np.nan  # one replicate of the first policy ends early
    missing = figures.learning_curves(given).data["tau"].isnull().values.tolist()
    assert missing == [[False] * 4 + [True] * 2, [False] * 6]


def test_policies_differ_in_colour_and_style_and_are_named_in_the_order_in_which_they_end():
    axes = figures.learning_curves(curves(20, 2, 30)).get_viz("plot")
    assert len({(line.get_color(), line.get_linestyle()) for line in axes.lines}) == 20
    last = {line.get_label(): line.get_ydata()[-1] for line in axes.lines}
    named = [text.get_text() for text in axes.get_legend().get_texts()]
    assert [last[name] for name in named] == sorted(last.values(), reverse=True)


def test_each_discrepancy_has_a_panel():
    rng = np.random.default_rng(0)
    names = [f"discrepancy_{place}" for place in range(5)]
    coords = {"discrepancy": names, "title": ("discrepancy", ["what is measured, in words"] * 5)}
    drawn, observed = rng.normal(size=(5, 200)), rng.normal(np.arange(5)[:, None], 0.1, (5, 200))
    axes = ("discrepancy", "draw")
    draws = xr.Dataset({"observed": (axes, observed), "replicated": (axes, drawn)}, coords)
    columns = {"p_adjusted": np.full(5, 0.01), "fails": np.arange(5) == 4}
    table = xr.Dataset({name: ("discrepancy", value) for name, value in columns.items()}, coords)
    plots = figures.checks(Check(table, draws, ()))
    for place, name in enumerate(names):
        panel = plots.get_viz("plot", discrepancy=name)
        assert panel.get_title(loc="right").endswith("fails") == (place == 4)
        assert panel.lines[0].get_xdata()[0] == pytest.approx(observed[place].mean())


# ---------------------------------------------------------------- fits


def test_ranks_are_counted_over_draws():
    # Orders: bac, bca, abc, bac. The mean ranks are 2, 1.25 and 2.75.
    draws = [[[2.0, 3.0, 1.0], [1.0, 3.0, 2.0], [3.0, 2.0, 1.0], [2.0, 3.0, 1.0]]]
    reward = xr.Dataset({"reward": (("chain", "draw", "item"), draws)}, {"item": list("abc")})
    plots = figures.ranks(xr.DataTree.from_dict({"posterior": reward}))
    data = plots.data
    assert data["item"].values.tolist() == ["b", "a", "c"]
    np.testing.assert_allclose(data["mean_rank"], [1.25, 2, 2.75])
    probs = [[0.75, 0.25, 0], [0.25, 0.5, 0.25], [0, 0.25, 0.75]]
    np.testing.assert_allclose(data["probability"], probs)
    np.testing.assert_allclose(data["p_top"], [1, 1, 1])
    cells, bars = (plots.get_viz("plot", column=name) for name in ("ranks", "best"))
    np.testing.assert_allclose(cells.collections[0].get_array(), probs)
    assert [bar.get_width() for bar in bars.patches] == [1, 1, 1, 0.75, 0.25, 0]
    shown = {0: "0", 1: "1", 0.001: "<.01", 0.996: ">.99", 0.05: ".05"}
    assert [cell(share) for share in shown] == list(shown.values())


def test_of_many_items_ranks_are_put_together_and_rows_left_out():
    plots = figures.ranks(fitted(301))
    data = plots.data
    assert dict(data.sizes) == {"item": 60, "rank": 51}
    assert [int(data[name][1]) for name in ("rank", "last_rank")] == [7, 12]
    np.testing.assert_allclose(data["probability"].sum("rank"), 1)
    draws = fitted(301)["posterior"]["reward"].values.reshape(200, 301)
    rank = np.argsort(np.argsort(-draws, axis=1), axis=1) + 1
    shown = [*range(40), *range(281, 301)]
    np.testing.assert_allclose(data["mean_rank"], np.sort(rank.mean(0))[shown])


def test_a_map_has_persons_above_items_from_the_hardest_on():
    rng = np.random.default_rng(0)
    difficulty = rng.normal(size=(2, 50, 4, 2)) + np.arange(4)[:, None]
    sites = {
        "ability": (("chain", "draw", "person"), rng.normal(size=(2, 50, 30))),
        "difficulty": (("chain", "draw", "item", "step"), difficulty),
    }
    posterior = xr.Dataset(sites, {"item": [*"abcd"], "step": ["1 | 2", "2 | 3"]})
    plots = figures.item_person_map(xr.DataTree.from_dict({"posterior": posterior}), most=3)
    assert plots.data["ability"].sizes == {"person": 30}
    assert plots.data["item"].values.tolist() == ["d", "c", "a"]
    np.testing.assert_allclose(
        plots.data["difficulty"], difficulty.mean((0, 1))[[3, 2, 0]], rtol=1e-6
    )


def test_profiles_are_posterior_means_in_the_order_of_their_mean_over_annotators():
    result = typed(2, 90)
    plots = figures.profiles(result)
    means = result["posterior"]["reward"].mean(("chain", "draw")).values
    share = result["posterior"]["type_weight"].values[0, 0]
    shown = np.argsort(-abs(means[:, 0] - means[:, 1]))[:40]
    order = shown[np.argsort(-(means @ share)[shown])]
    np.testing.assert_allclose(plots.data["reward"], means[order])
    for number, panel in enumerate(plots.viz["plot"].values):
        lines = {line.get_marker(): line.get_xdata() for line in panel.lines}
        np.testing.assert_allclose(lines["o"], means[order, number])
        np.testing.assert_allclose(lines["|"], (means @ share)[order])
        assert panel.get_title(loc="left") == f"type {number}: {share[number]:.0%}"


# ---------------------------------------------------------------- readable


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 60, 600])
def test_figures_of_any_number_of_rows_are_readable(number):
    check_readable(figures.ranks(fitted(number)))
    check_readable(figures.competences(judged(number)))
    for classes in (["no", "yes"], LONG):
        check_readable(figures.confusions(judged_labels(number, classes)))


@pytest.mark.slow
@pytest.mark.parametrize("types", [1, 6, 12])
def test_figures_of_any_number_of_types_are_readable(types):
    for items, site in ((2, "reward"), (30, "coefficient"), (200, "reward")):
        check_readable(figures.profiles(typed(types, items, site=site)))

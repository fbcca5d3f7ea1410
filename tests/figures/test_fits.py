"""Figures of fits and of types, and what every figure is: drawn from the right numbers."""

from __future__ import annotations

import io
import sys
import warnings
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from arviz_plots import PlotCollection
from matplotlib.figure import Figure

import raters as rt
from raters import figures
from raters.errors import DataError, DataWarning, SettingError
from raters.figures.fits import cell
from raters.figures.rows import ends, short
from tests.figures.made import fitted, judged, typed
from tests.refusals import raises_about

# ---------------------------------------------------------------- what is returned


def test_what_is_returned_is_arvizs_and_can_be_drawn_on():
    plots = figures.rewards(fitted(4), level=0.5)
    assert isinstance(plots, PlotCollection)
    mean = fitted(4)["posterior"]["reward"].mean(("chain", "draw"))
    np.testing.assert_allclose(plots.data["reward"], np.sort(mean)[::-1])
    assert plots.data.attrs == {"level": 0.5}
    plots.map(
        lambda da, target, **_: target.plot(np.asarray(da), np.arange(4))[0],
        "line",
        data=plots.data[["reward"]],
    )
    assert plots.get_viz("line", "reward") in plots.get_viz("plot").lines
    assert repr(plots) == "<Plots of reward, reward_low, reward_high (item: 4)>"
    assert not plt.get_fignums()


def test_it_is_saved_and_shown_at_the_size_asked_for(tmp_path):
    plots = figures.rewards(fitted(3))
    plots.savefig(tmp_path / "a.png", dpi=50)
    assert int.from_bytes((tmp_path / "a.png").read_bytes()[16:20], "big") == 8.5 * 50
    assert plots.set_dpi(60) is plots
    assert int.from_bytes(plots._repr_png_()[16:20], "big") == 8.5 * 60


def test_characters_that_the_font_lacks_are_said_once(monkeypatch):
    posterior = fitted(3)["posterior"].to_dataset().assign_coords(item=["茶", "牛奶", "c"])
    plots = figures.rewards(xr.DataTree.from_dict({"posterior": posterior}))
    with pytest.warns(DataWarning) as caught:
        plots.savefig(io.BytesIO())
    assert len(caught) == 1
    monkeypatch.setattr(Figure, "savefig", lambda *_, **__: warnings.warn("another", stacklevel=2))
    with pytest.warns(UserWarning, match="another"):
        plots.savefig(io.BytesIO())


def test_showing_it_needs_a_notebook(monkeypatch):
    plots, shown = figures.rewards(fitted(3)), []
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    with pytest.raises(SettingError):
        plots.show()
    display = SimpleNamespace(display=shown.append)
    notebook = SimpleNamespace(get_ipython=lambda: "a shell", display=display)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    plots.show()
    assert shown == [plots]


def test_both_ends_of_many_rows_are_shown():
    for number, most, head, expected in (
        (4, 4, None, ([0, 1, 2, 3], 4, 0)),
        (5, 4, None, ([0, 1, 3, 4], 2, 1)),
        (9, 3, None, ([0, 1, 8], 2, 6)),
        (9, 3, 3, ([0, 1, 2], 3, 6)),
    ):
        shown, first, left_out = ends(number, most, head)
        assert (shown.tolist(), first, left_out) == expected


def test_wide_letters_take_the_room_of_two():
    assert short("茶" * 14) == "茶" * 14
    assert short("茶" * 15) == "茶" * 8 + "…" + "茶" * 5


def test_cells_do_not_call_rare_impossible():
    cells = {0: "0", 1: "1", 0.001: "<.01", 0.996: ">.99", 0.05: ".05", 0.994: ".99", 0.006: ".01"}
    for share, text in cells.items():
        assert cell(share) == text


# ---------------------------------------------------------------- rewards and ranks


def test_rewards_are_drawn_from_the_top_down_with_their_intervals():
    result = fitted(5)
    axes = figures.rewards(result, level=0.5).get_viz("plot")
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == [f"item {number}" for number in range(5)]
    assert axes.yaxis_inverted()
    draws = result.posterior["reward"].values.reshape(-1, 5)
    segments = [segment[:, 0] for segment in axes.collections[0].get_segments()]
    np.testing.assert_allclose(segments, np.quantile(draws, (0.25, 0.75), axis=0).T)


def test_ranks_are_counted_over_draws():
    # Orders: bac, bca, abc, bac. The mean ranks are 2, 1.25 and 2.75.
    draws = [[[2.0, 3.0, 1.0], [1.0, 3.0, 2.0], [3.0, 2.0, 1.0], [2.0, 3.0, 1.0]]]
    reward = xr.Dataset({"reward": (("chain", "draw", "item"), draws)}, {"item": list("abc")})
    plots = figures.ranks(xr.DataTree.from_dict({"posterior": reward}), top=2)
    data = plots.data
    assert data["item"].values.tolist() == ["b", "a", "c"]
    np.testing.assert_allclose(data["mean_rank"], [1.25, 2, 2.75])
    probs = [[0.75, 0.25, 0], [0.25, 0.5, 0.25], [0, 0.25, 0.75]]
    np.testing.assert_allclose(data["probability"], probs)
    np.testing.assert_allclose(data["p_best"], [0.75, 0.25, 0])
    np.testing.assert_allclose(data["p_top"], [1, 0.75, 0.25])
    cells, bars = (plots.get_viz("plot", column=name) for name in ("ranks", "best"))
    np.testing.assert_allclose(cells.collections[0].get_array(), probs)
    assert [label.get_text() for label in cells.get_yticklabels()] == ["b", "a", "c"]
    assert [bar.get_width() for bar in bars.patches] == [1, 0.75, 0.25, 0.75, 0.25, 0]
    assert figures.ranks(fitted(2)).data["p_top"].values.tolist() == [1, 1]


def test_of_many_items_ranks_are_put_together_and_rows_left_out():
    plots = figures.ranks(fitted(301))
    data = plots.data
    assert dict(data.sizes) == {"item": 60, "rank": 51}
    assert [int(data["rank"][1]), int(data["last_rank"][1]), int(data["last_rank"][-1])] == [
        7,
        12,
        301,
    ]
    np.testing.assert_allclose(data["probability"].sum("rank"), 1)
    draws = fitted(301)["posterior"]["reward"].values.reshape(200, 301)
    rank = np.argsort(np.argsort(-draws, axis=1), axis=1) + 1
    shown = [*range(40), *range(281, 301)]
    np.testing.assert_allclose(data["mean_rank"], np.sort(rank.mean(0))[shown])
    above, below = plots.get_viz("plot", column="ranks").collections[:2]
    drawn = np.vstack([above.get_array(), below.get_array()])
    np.testing.assert_allclose(drawn, data["probability"])


def test_what_has_no_rewards_is_refused(tiny, fit_quietly):
    of_types = xr.Dataset({"reward": (("chain", "draw", "item", "type"), np.ones((1, 2, 3, 2)))})
    altered = fit_quietly(rt.BTL(), tiny, rt.PGEM(draws=20)).copy(deep=True)
    altered["posterior"]["reward"][0, 3, 1] = np.nan
    for draw in (figures.rewards, figures.ranks):
        for wrong in (rt.BTL(), judged(3), None, xr.DataTree(), typed(2)):
            with raises_about(SettingError, "result"):
                draw(wrong)
        with raises_about(SettingError, "result"):
            draw(xr.DataTree.from_dict({"posterior": of_types}))
        with pytest.raises(DataError):
            draw(altered)
    for top in (0, 4, 1.5):
        with raises_about(SettingError, "top", top):
            figures.ranks(fitted(3), top=top)


# ---------------------------------------------------------------- persons and items


def test_a_map_has_persons_above_items_from_the_hardest_on(fit_quietly) -> None:
    rng = np.random.default_rng(0)
    table = {f"q{item}": rng.integers(0, 3, 30) for item in range(4)} | {"who": range(30)}
    responses = rt.GradedResponses.from_wide(table, person="who")
    graded = fit_quietly(rt.models.GradedResponse(), responses, rt.PGEM(draws=50))
    plots = figures.item_person_map(graded, most=3)
    data = plots.data
    assert data["ability"].sizes == {"person": 30}
    assert data["difficulty"].sizes == {"item": 3, "step": 2}
    mean = data["difficulty"].mean("step").values
    assert (np.diff(mean) <= 0).all()
    assert (data["difficulty_low"] <= data["difficulty_high"]).all()
    everything = graded["posterior"]["difficulty"].mean(("chain", "draw", "step"))
    assert mean[0] == pytest.approx(float(everything.max()), rel=1e-6)
    above, items = plots.get_viz("figure").axes
    assert above.get_xlim() == items.get_xlim()
    with raises_about(SettingError, "audit"):
        figures.levels(rt.audit(rt.models.GradedResponse(), graded))


# ---------------------------------------------------------------- types


def test_profiles_are_posterior_means_in_the_order_of_their_mean_over_annotators():
    result = typed(2, 5)
    plots = figures.profiles(result)
    means = result["posterior"]["reward"].mean(("chain", "draw")).values
    share = result["posterior"]["type_weight"].values[0, 0]
    common = means @ share
    order = np.argsort(-common)
    for number, panel in enumerate(plots.viz["plot"].values):
        lines = {line.get_marker(): line.get_xdata() for line in panel.lines}
        np.testing.assert_allclose(lines["o"], means[order, number])
        np.testing.assert_allclose(lines["|"], common[order])
        assert panel.get_title(loc="left") == f"type {number}: {share[number]:.0%}"
    np.testing.assert_allclose(plots.data["reward"], means[order])


def test_of_many_items_those_are_shown_on_which_types_differ_most():
    result = typed(2, 90)
    means = result["posterior"]["reward"].mean(("chain", "draw")).values
    names = figures.profiles(result).data["item"].values
    shown = {int(name.split()[1]) for name in names}
    assert shown == set(np.argsort(-abs(means[:, 0] - means[:, 1]))[:40].tolist())


def test_responsibilities_are_sorted_and_stacked_to_one():
    result = typed(3, 2, 200)
    table = result["types"]["responsibility"].values
    plots = figures.responsibilities(result)
    order = [int(name.split()[1]) for name in plots.data["annotator"].values]
    np.testing.assert_allclose(plots.data["responsibility"], table[order])
    assert plots.data["likeliest"].values.tolist() == sorted(table.argmax(1).tolist())
    boxes = [band.get_paths()[0].get_extents() for band in plots.get_viz("plot").collections]
    assert (boxes[0].y0, boxes[-1].y1) == (0, pytest.approx(1))
    members = np.bincount(table.argmax(1), minlength=3)
    labels = [text.get_text() for text in plots.get_viz("figure").legends[0].get_texts()]
    assert labels == [f"type {number} ({members[number]})" for number in range(3)]
    many = figures.responsibilities(typed(12, 2, 50)).get_viz("figure").legends[0].get_texts()
    assert len(many) == 8
    assert many[-1].get_text().startswith("5 more types (")


def test_what_has_no_types_is_refused():
    for draw in (figures.profiles, figures.responsibilities):
        for wrong in (fitted(3), rt.BTL()):
            with raises_about(SettingError, "result"):
                draw(wrong)

"""The figures: readable with 3 annotators and with 600, and drawn from the numbers that they claim
to show."""

from __future__ import annotations

import dataclasses
import io
import re
import sys
import warnings
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from arviz_plots import PlotCollection
from matplotlib.figure import Figure
from matplotlib.text import Text

import raters as rt
from raters import figures
from raters.errors import DataError, DataWarning, SettingError
from raters.figures.base import VERDICTS, cell, ends, short
from tests.refusals import raises_about


def fitted(items: int, seed: int = 0) -> xr.DataTree:
    """Draws of rewards around known means, item 0 the highest; figures need no more of a result."""
    rng = np.random.default_rng(seed)
    means = np.linspace(3, -3, items)
    draws = means + 0.3 * rng.normal(size=(2, 100, items))
    names = [f"item {number}" for number in range(items)]
    posterior = xr.Dataset({"reward": (("chain", "draw", "item"), draws)}, coords={"item": names})
    return xr.DataTree.from_dict({"posterior": posterior})


def judged(annotators: int, seed: int = 0) -> rt.auditing.Audit:
    """An audit of so many annotators, the first the worst, with every verdict in it."""
    rng = np.random.default_rng(seed)
    competence = np.linspace(-1, 2, annotators)
    p_below = np.linspace(1, 0, annotators)
    accuracy = 0.5 + 0.15 * competence
    columns = {
        "judgements": rng.integers(1, 2000, annotators),
        "competence": competence,
        "competence_low": competence - 0.4,
        "competence_high": competence + 0.4,
        "accuracy": accuracy,
        "accuracy_low": accuracy - 0.05,
        "accuracy_high": accuracy + 0.05,
        "p_guessing": p_below * (1 - p_below),
        "p_adversarial": p_below**2,
        "p_below": p_below,
        "verdict": np.array(
            [list(VERDICTS)[::-1][len(VERDICTS) * row // annotators] for row in range(annotators)],
            dtype=object,
        ),
    }
    names = np.array(
        [f"annotator {number} of the far too long names" for number in range(annotators)],
        dtype=object,
    )
    table = xr.Dataset(
        {name: ("annotator", value) for name, value in columns.items()}, coords={"annotator": names}
    )
    return rt.auditing.Audit(table, "a rule")


def of(plots: PlotCollection) -> Figure:
    """The Matplotlib figure of what is returned."""
    return plots.get_viz("figure")


def pixels(figure: Figure) -> tuple[int, int]:
    """Width and height of the saved image; drawing it also settles the layout."""
    with io.BytesIO() as file:
        figure.savefig(file, format="png")
        head = file.getvalue()[16:24]
    return int.from_bytes(head[:4], "big"), int.from_bytes(head[4:], "big")


def overlaps(texts) -> list[tuple[str, str]]:
    """Pairs of visible texts whose boxes overlap by more than a hair."""
    boxes = [
        (text.get_text(), text.get_window_extent())
        for text in texts
        if text.get_text() and text.get_visible()
    ]
    return [
        (name, other)
        for row, (name, box) in enumerate(boxes)
        for other, against in boxes[row + 1 :]
        if min(box.x1, against.x1) - max(box.x0, against.x0) > 2
        and min(box.y1, against.y1) - max(box.y0, against.y0) > 2
    ]


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 5, 60, 600])
@pytest.mark.parametrize("what", ["rewards", "ranks", "competences", "auditor"])
def test_figures_stay_readable_at_every_size(what, number):
    draw = {
        "rewards": lambda: figures.rewards(fitted(number)),
        "ranks": lambda: figures.ranks(fitted(number)),
        "competences": lambda: figures.competences(judged(number)),
        "auditor": lambda: figures.auditor(judged(number)),
    }
    figure = of(draw[what]())
    width, height = pixels(figure)
    assert 1000 <= width <= 2000
    assert 300 <= height <= 2600
    for axes in figure.axes:
        assert not overlaps([*axes.get_yticklabels(), axes.yaxis.label])
        assert not overlaps(axes.get_xticklabels())
        assert not overlaps(axes.texts)
        words = {axes.get_title(loc="left"), axes.get_xlabel(), axes.get_ylabel()} - {""}
        named = [text for text in axes.findobj(Text) if text.get_text() in words]
        for text in [*axes.get_yticklabels(), *named]:
            box = text.get_window_extent()
            assert box.x0 >= figure.bbox.x0 - 1, text
            assert box.x1 <= figure.bbox.x1 + 1, text


def test_rewards_are_drawn_from_the_top_down():
    axes = figures.rewards(fitted(5)).get_viz("plot")
    points = next(line for line in axes.lines if line.get_marker() == "o")
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        f"item {number}" for number in range(5)
    ]
    assert np.all(np.diff(points.get_xdata()) < 0)
    assert axes.yaxis_inverted()


@pytest.mark.parametrize("level", [0.5, 0.99])
def test_intervals_have_the_level_asked_for(level):
    result = fitted(3)
    segments = figures.rewards(result, level=level).get_viz("plot").collections[0].get_segments()
    draws = result.posterior["reward"].values.reshape(-1, 3)
    low, high = np.quantile(draws, ((1 - level) / 2, (1 + level) / 2), axis=0)
    np.testing.assert_allclose(
        [segment[:, 0] for segment in segments], np.column_stack([low, high])
    )


def test_what_is_left_out_is_said():
    words = [
        text.get_text() for text in figures.rewards(fitted(100), most=10).get_viz("plot").texts
    ]
    assert words == ["… 90 of 100 not shown …"]
    labels = [
        label.get_text()
        for label in figures.rewards(fitted(100), most=10).get_viz("plot").get_yticklabels()
    ]
    assert labels == [f"item {number}" for number in (0, 1, 2, 3, 4, 95, 96, 97, 98, 99)]


def test_competences_show_more_of_the_worst():
    labels = [
        label.get_text()
        for label in figures.competences(judged(90), most=9).get_viz("plot").get_yticklabels()
    ]
    numbers = [int(label.split()[1]) for label in labels]
    assert numbers == [0, 1, 2, 3, 4, 5, 87, 88, 89]


def test_each_verdict_has_its_colour_and_marker():
    figure = of(figures.competences(judged(12)))
    drawn = {
        (line.get_color(), line.get_marker())
        for line in figure.axes[0].lines
        if len(line.get_xdata()) == 2
    }
    assert set(VERDICTS.values()) <= drawn
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        f"{verdict} (2)" for verdict in VERDICTS
    ]


def test_the_auditor_lists_the_least_trusted_first():
    axes = figures.auditor(judged(40), most=6).get_viz("plot", column="trouble")
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert [int(label.split()[1]) for label in labels] == list(range(6))
    below = next(line for line in axes.lines if line.get_marker() == "s")
    np.testing.assert_allclose(below.get_xdata(), np.linspace(1, 0, 40)[:6])


def test_figures_leave_no_global_state():
    before = plt.get_fignums()
    figures.rewards(fitted(3)).savefig(io.BytesIO())
    figures.ranks(fitted(3))
    figures.auditor(judged(3))
    assert plt.get_fignums() == before


@pytest.mark.parametrize(
    ("number", "most", "head", "expected"),
    [
        (3, 4, None, ([0, 1, 2], 3, 0)),
        (4, 4, None, ([0, 1, 2, 3], 4, 0)),
        (5, 4, None, ([0, 1, 3, 4], 2, 1)),
        (9, 3, None, ([0, 1, 8], 2, 6)),
        (9, 3, 3, ([0, 1, 2], 3, 6)),
    ],
)
def test_both_ends(number, most, head, expected):
    shown, first, left_out = ends(number, most, head)
    assert (shown.tolist(), first, left_out) == expected


# ---------------------------------------------------------------- what is returned


def test_what_is_returned_is_arvizs_and_can_be_drawn_on():
    plots = figures.rewards(fitted(4), level=0.5)
    assert isinstance(plots, PlotCollection)
    assert plots.backend == "matplotlib"
    np.testing.assert_allclose(
        plots.data["reward"],
        np.sort(fitted(4)["posterior"]["reward"].mean(("chain", "draw")))[::-1],
    )
    assert plots.data["item"].values.tolist() == [f"item {number}" for number in range(4)]
    assert plots.data.attrs == {"level": 0.5}
    plots.map(
        lambda da, target, **_: target.plot(np.asarray(da), np.arange(4))[0],
        "line",
        data=plots.data[["reward"]],
    )
    assert plots.get_viz("line", "reward") in plots.get_viz("plot").lines
    plots.add_title("mine")
    assert of(plots)._suptitle.get_text() == "mine"


def test_panels_are_picked_by_name():
    plots = figures.auditor(judged(5))
    assert plots.facet_dims == {"column"}
    assert [plots.get_viz("plot", column=name) for name in ("accuracy", "trouble")] == of(
        plots
    ).axes
    assert plots.data["p_below"].values.tolist() == sorted(
        plots.data["p_below"].values.tolist(), reverse=True
    )
    assert plots.data.attrs["threshold"] == 0.25


def test_competences_hold_the_rows_that_are_drawn():
    found = dataclasses.replace(judged(90), threshold=0.5, level=0.8)
    plots = figures.competences(found, most=9)
    data = plots.data
    np.testing.assert_allclose(
        data["competence"], np.linspace(-1, 2, 90)[[0, 1, 2, 3, 4, 5, 87, 88, 89]]
    )
    assert data.attrs == {"level": 0.8, "threshold": 0.5}
    (axes,) = of(plots).axes
    assert "80%" in axes.get_title(loc="left")
    assert "threshold 0.5" in axes.get_xlabel()
    assert [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "--"] == [0.5]
    trouble = figures.auditor(found).get_viz("plot", column="trouble")
    assert "competence below 0.5" in trouble.get_legend_handles_labels()[1]


def test_it_is_saved_and_shown_at_the_size_asked_for(tmp_path):
    plots = figures.rewards(fitted(3))
    plots.savefig(tmp_path / "a.png", dpi=50)
    wide, _ = (
        int.from_bytes((tmp_path / "a.png").read_bytes()[place : place + 4], "big")
        for place in (16, 20)
    )
    assert wide == 8.5 * 50
    assert plots.set_dpi(60) is plots
    assert int.from_bytes(plots._repr_png_()[16:20], "big") == 8.5 * 60
    plots.savefig(str(tmp_path / "a.svg"))
    plots.savefig(tmp_path / "b.PNG")
    plots.savefig(tmp_path / "c.zzz", format="pdf")
    assert b"<svg" in (tmp_path / "a.svg").read_bytes()


@pytest.mark.parametrize(
    ("name", "settings", "parameter", "says"),
    [
        ("none/x.png", {}, "filename", "cannot be written: No such file or directory; name a file"),
        ("file/x.png", {}, "filename", "cannot be written: Not a directory; name a file"),
        ("folder.png", {}, "filename", "cannot be written: Is a directory; name a file"),
        ("x.zzz", {}, "filename", r"no format that Matplotlib can write; it must be .*x\.png'\)$"),
        (
            "x.png",
            {"format": "zzz"},
            "format",
            "format='zzz' names no format .* write format='png'",
        ),
        (None, {}, "filename", r"must be a path, or a binary file: write savefig\('figure.png'\)"),
    ],
)
def test_a_figure_that_cannot_be_saved(name, settings, parameter, says, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder.png").mkdir()
    there = sorted(tmp_path.iterdir())
    with raises_about(SettingError, parameter) as caught:
        figures.rewards(fitted(3)).savefig(name and tmp_path / name, **settings)
    assert re.search(says, str(caught.value))
    assert sorted(tmp_path.iterdir()) == there


def test_characters_that_the_font_lacks_are_said_once():
    result = fitted(3)
    result = xr.DataTree.from_dict(
        {"posterior": result["posterior"].to_dataset().assign_coords(item=["茶", "牛奶", "c"])}
    )
    with pytest.warns(
        DataWarning, match="lacks characters of the names.*set font.family in matplotlibrc"
    ) as said:
        figures.rewards(result).savefig(io.BytesIO())
    assert len(said) == 1


HOSTILE = (
    "$x^2$ and $y$",
    "$\\frac{1}$",
    "cost \\$5 or $6",
    "z" * 10_000,
    "new\nline",
    "\x1b[31mred",
    "\u200b",
    "\u202egpj.exe",
    "_x",
    "שלום",
)


def test_names_of_any_kind_are_drawn_as_they_are():
    audit = judged(len(HOSTILE))
    named = audit.table.assign_coords(annotator=np.array(HOSTILE, object))
    audit = dataclasses.replace(audit, table=named)
    plots = figures.competences(audit)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plots.savefig(io.BytesIO())
        figures.auditor(audit).savefig(io.BytesIO())
    labels = plots.get_viz("plot").get_yticklabels()
    drawn = [text._preprocess_math(text.get_text()) for text in labels]
    assert not any(formula for _, formula in drawn)
    assert [text for text, _ in drawn] == [
        *HOSTILE[:3],
        "z" * 18 + "…" + "z" * 9,
        "new↵line",
        "[U+001B][31mred",
        "[U+200B]",
        "[U+202E]gpj.exe",
        "_x",
        "שלום",
    ]


def test_wide_letters_take_the_room_of_two():
    assert short("茶" * 14) == "茶" * 14
    assert short("茶" * 15) == "茶" * 8 + "…" + "茶" * 5


def test_other_warnings_of_matplotlib_stay(monkeypatch):
    monkeypatch.setattr(
        Figure,
        "savefig",
        lambda figure, *_, **__: warnings.warn("something else", UserWarning, stacklevel=2),
    )
    with pytest.warns(UserWarning, match="something else"):
        figures.rewards(fitted(3)).savefig(io.BytesIO())


def test_its_text_does_not_change_between_runs():
    assert (
        repr(figures.rewards(fitted(3))) == "<Plots of reward, reward_low, reward_high (item: 3)>"
    )


def test_showing_it_needs_a_notebook(monkeypatch):
    plots, shown = figures.rewards(fitted(3)), []
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    with pytest.raises(SettingError, match=re.escape("save it, such as .savefig('figure.png')")):
        plots.show()
    notebook = SimpleNamespace(
        get_ipython=lambda: "a shell", display=SimpleNamespace(display=shown.append)
    )
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    plots.show()
    assert shown == [plots]


# ---------------------------------------------------------------- ranks


def ranked(draws: list[list[float]]) -> xr.DataTree:
    """A result of these draws of the items a, b, c, …"""
    names = list("abcdefgh"[: len(draws[0])])
    posterior = xr.Dataset({"reward": (("chain", "draw", "item"), [draws])}, coords={"item": names})
    return xr.DataTree.from_dict({"posterior": posterior})


def test_ranks_are_counted_over_draws():
    # Orders: bac, bca, abc, bac. The mean ranks are 2, 1.25 and 2.75.
    plots = figures.ranks(ranked([[2, 3, 1], [1, 3, 2], [3, 2, 1], [2, 3, 1]]), top=2)
    data = plots.data
    assert data["item"].values.tolist() == ["b", "a", "c"]
    np.testing.assert_allclose(data["mean_rank"], [1.25, 2, 2.75])
    np.testing.assert_allclose(
        data["probability"], [[0.75, 0.25, 0], [0.25, 0.5, 0.25], [0, 0.25, 0.75]]
    )
    np.testing.assert_allclose(data["p_best"], [0.75, 0.25, 0])
    np.testing.assert_allclose(data["p_top"], [1, 0.75, 0.25])
    cells, bars = (plots.get_viz("plot", column=name) for name in ("ranks", "best"))
    np.testing.assert_allclose(cells.collections[0].get_array(), data["probability"])
    assert [text.get_text() for text in cells.texts] == [
        ".75",
        ".25",
        ".25",
        ".50",
        ".25",
        ".25",
        ".75",
    ]
    assert [label.get_text() for label in cells.get_yticklabels()] == ["b", "a", "c"]
    assert [bar.get_width() for bar in bars.patches] == pytest.approx(
        [1, 0.75, 0.25, 0.75, 0.25, 0]
    )
    assert [text.get_text() for text in bars.texts] == [
        "best",
        ".75",
        ".25",
        "top 2",
        "1",
        ".75",
        ".25",
    ]


def test_of_many_items_ranks_are_put_together_and_rows_left_out():
    plots = figures.ranks(fitted(301), most=9)
    data = plots.data
    assert dict(data.sizes) == {"item": 9, "rank": 51}
    assert (int(data["rank"][1]), int(data["last_rank"][1]), int(data["last_rank"][-1])) == (
        7,
        12,
        301,
    )
    np.testing.assert_allclose(data["probability"].sum("rank"), 1)
    rank = (
        np.argsort(
            np.argsort(-fitted(301)["posterior"]["reward"].values.reshape(200, 301), axis=1), axis=1
        )
        + 1
    )
    np.testing.assert_allclose(
        data["mean_rank"], np.sort(rank.mean(0))[[0, 1, 2, 3, 4, 5, 298, 299, 300]]
    )
    first = rank[:, int(data["item"].values[0].split()[1])]
    np.testing.assert_allclose(
        data["probability"][0, :2], [(first <= 6).mean(), ((first > 6) & (first <= 12)).mean()]
    )
    cells = plots.get_viz("plot", column="ranks")
    above, below = cells.collections[:2]
    np.testing.assert_allclose(
        np.vstack([above.get_array(), below.get_array()]), data["probability"]
    )
    assert above.norm is below.norm
    assert [text.get_text() for text in cells.texts] == ["… 292 of 301 not shown …"]


def test_of_few_items_all_are_the_top():
    assert figures.ranks(fitted(2)).data["p_top"].values.tolist() == [1, 1]


@pytest.mark.parametrize(("top", "about"), [(0, ("top", 0)), (4, ("top", 4)), (1.5, ("top", 1.5))])
def test_a_top_that_is_none_is_refused(top, about):
    with raises_about(SettingError, *about):
        figures.ranks(fitted(3), top=top)


@pytest.mark.parametrize("draw", [figures.rewards, figures.ranks])
def test_results_without_one_reward_an_item_are_refused(draw):
    labels = xr.DataTree.from_dict({"posterior": xr.Dataset({"confusion": ("draw", [1.0])})})
    with raises_about(SettingError, "result"):
        draw(labels)
    types = xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset(
                {"reward": (("chain", "draw", "item", "type"), np.ones((1, 2, 3, 2)))}
            )
        }
    )
    with raises_about(SettingError, "result"):
        draw(types)


@pytest.mark.parametrize("draw", [figures.rewards, figures.ranks])
@pytest.mark.parametrize("wrong", [rt.BTL(), "result.nc", judged(3), None, xr.DataTree()])
def test_what_is_no_result_is_refused(draw, wrong):
    with raises_about(SettingError, "result"):
        draw(wrong)


@pytest.mark.parametrize("draw", [figures.competences, figures.auditor])
@pytest.mark.parametrize("wrong", [fitted(3), rt.BTL(), None])
def test_what_is_no_audit_is_refused(draw, wrong):
    with raises_about(SettingError, "audit"):
        draw(wrong)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0"),
        (1, "1"),
        (0.001, "<.01"),
        (0.996, ">.99"),
        (0.05, ".05"),
        (0.994, ".99"),
        (0.006, ".01"),
    ],
)
def test_cells_do_not_call_rare_impossible(share, text):
    assert cell(share) == text


@pytest.mark.parametrize("draw", [rt.figures.rewards, rt.figures.ranks])
def test_draws_that_are_not_finite_are_refused(draw, tiny, fit_quietly):
    result = fit_quietly(rt.BTL(), tiny, rt.PGEM(draws=20)).copy(deep=True)
    result["posterior"]["reward"][0, 3, 1] = np.nan
    with pytest.raises(DataError, match=r"1 of .* values of 'reward' that are not finite"):
        draw(result)

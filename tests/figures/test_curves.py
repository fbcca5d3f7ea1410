"""Learning curves and reliability diagrams: drawn from the right numbers, readable with one line
and with many."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from scipy.stats import t as student

from raters import figures
from raters.errors import SettingError
from raters.figures.curves import _binned, _trials
from tests.figures.test_fits import of, overlaps, pixels
from tests.refusals import raises_about


def curves(policies: int = 2, replicates: int = 3, batches: int = 6, seed: int = 0) -> xr.Dataset:
    """Curves that rise, each policy slower than the one before."""
    rng = np.random.default_rng(seed)
    answers = np.broadcast_to(10.0 * np.arange(1, batches + 1), (policies, replicates, batches))
    tau = (
        1
        - np.exp(-answers / np.linspace(20, 80, policies)[:, None, None])
        + 0.05 * rng.normal(size=answers.shape)
    )
    axes = ("policy", "replicate", "batch")
    names = [f"policy {number} of the far too long names" for number in range(policies)]
    return xr.Dataset(
        {"tau": (axes, tau), "answers": (axes, answers), "cost": (axes, 2 * answers)},
        {"policy": names},
    )


# ---------------------------------------------------------------- learning curves


def test_lines_are_means_and_bands_students_intervals_of_them():
    given = curves(replicates=5)
    plots = figures.learning_curves(given, level=0.8)
    data, axes = plots.data, plots.get_viz("plot")
    mean = given["tau"].mean("replicate").values
    half = student.ppf(0.9, 4) * given["tau"].std("replicate", ddof=1).values / np.sqrt(5)
    np.testing.assert_allclose(data["tau"], mean)
    np.testing.assert_allclose(data["tau_low"], mean - half)
    np.testing.assert_allclose(data["tau_high"], mean + half)
    for line, band, average, wide in zip(axes.lines, axes.collections, mean, half, strict=True):
        np.testing.assert_allclose(line.get_ydata(), average)
        np.testing.assert_allclose(line.get_xdata(), 10 * np.arange(1, 7))
        box = band.get_paths()[0].get_extents()
        assert (box.y0, box.y1) == pytest.approx(((average - wide).min(), (average + wide).max()))
    assert "mean of 5 replicates and 80% interval" in of(plots)._suptitle.get_text()
    assert data.attrs == {"level": 0.8}


def test_policies_are_in_the_legend_whatever_they_are_called():
    given = curves().assign_coords(policy=["_ours", "$x^2$ and $y$"])
    legend = figures.learning_curves(given).get_viz("plot").get_legend()
    shown = {text._preprocess_math(text.get_text()) for text in legend.get_texts()}
    assert shown == {("_ours", False), ("$x^2$ and $y$", False)}


def test_intervals_of_the_mean_hold_it_as_often_as_they_say():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(1, 4, 4000))
    given = xr.Dataset(
        dict.fromkeys(("tau", "answers"), (("policy", "replicate", "batch"), values)),
        {"policy": ["a"]},
    )
    data = figures.learning_curves(given).data
    held = float(((data["tau_low"] < 0) & (data["tau_high"] > 0)).mean())
    assert abs(held - 0.9) < 4 * np.sqrt(0.09 / 4000)


def test_a_single_campaign_has_a_line_and_no_band():
    plots = figures.learning_curves(curves(1, 1).isel(policy=0, replicate=0, drop=True))
    assert len(plots.get_viz("plot").lines) == 1
    assert bool(plots.data["tau_low"].isnull().all())
    assert plots.get_viz("plot").get_legend() is None
    assert "replicates" not in of(plots)._suptitle.get_text()


def test_axes_of_any_name_are_replicates():
    given = curves(2, 6)
    split = (
        given.assign_coords(replicate=np.arange(6))
        .coarsen(replicate=3)
        .construct(replicate=("crowd", "seed"))
    )
    one, other = figures.learning_curves(given).data, figures.learning_curves(split).data
    for name in one:
        np.testing.assert_allclose(one[name], other[name])


def test_no_line_jumps_where_one_replicate_ends():
    given = curves(2, 3)
    given["tau"][0, 1, 4:] = np.nan  # one replicate of the first policy ends early
    given["tau"][1, :, 5:] = np.nan  # all of the second
    value = figures.learning_curves(given).data["tau"]
    assert value.isnull().values.tolist() == [[False] * 4 + [True] * 2, [False] * 5 + [True]]
    np.testing.assert_allclose(value[0, :4], given["tau"][0, :, :4].mean("replicate"))


def test_what_is_drawn_and_against_what():
    plots = figures.learning_curves(curves().rename(tau="coverage"), "coverage", against="cost")
    axes = plots.get_viz("plot")
    assert (axes.get_xlabel(), axes.get_ylabel()) == (
        "cost",
        "share of true differences inside 90 % intervals",
    )
    np.testing.assert_allclose(axes.lines[0].get_xdata(), 20 * np.arange(1, 7))
    assert list(plots.data) == ["coverage", "coverage_low", "coverage_high", "cost"]


def test_policies_differ_in_colour_and_style_and_are_named_in_the_order_in_which_they_end():
    axes = figures.learning_curves(curves(20, 2, 30)).get_viz("plot")
    assert len({(line.get_color(), line.get_linestyle()) for line in axes.lines}) == 20
    ends = {line.get_label(): line.get_ydata()[-1] for line in axes.lines}
    named = [text.get_text() for text in axes.get_legend().get_texts()]
    assert [ends[name] for name in named] == sorted(ends.values(), reverse=True)


@pytest.mark.parametrize("policies", [1, 2, 12])
@pytest.mark.parametrize("replicates", [1, 4])
def test_curves_stay_readable(policies, replicates):
    figure = of(figures.learning_curves(curves(policies, replicates)))
    width, height = pixels(figure)
    assert 1000 <= width <= 2000
    assert 300 <= height <= 2600
    axes = figure.axes[0]
    texts = axes.get_legend().get_texts()
    assert not overlaps([figure._suptitle, *texts])
    assert not overlaps(
        [*axes.get_xticklabels(), *axes.get_yticklabels(), axes.xaxis.label, axes.yaxis.label]
    )
    for text in [figure._suptitle, *texts]:
        assert text.get_window_extent().x0 >= -1
        assert text.get_window_extent().x1 <= figure.bbox.x1 + 1


@pytest.mark.parametrize(
    ("given", "options", "about"),
    [
        (xr.Dataset({"tau": ("draw", [1.0])}), {}, ("curves",)),
        ([1.0], {}, ("curves",)),
        (curves(), {"name": "accuracy"}, ("name", "accuracy")),
        (curves(), {"against": "time"}, ("against", "time")),
        (curves(), {"level": 90}, ("level", 90)),
    ],
)
def test_curves_that_are_none_are_refused(given, options, about):
    with raises_about(SettingError, *about):
        figures.learning_curves(given, **options)


# ---------------------------------------------------------------- reliability


def test_points_are_means_and_shares_of_bins():
    # Of ten bins, [.1, .2) holds two predictions of which one came true, [.9, 1] three of which all
    # did.
    plots = figures.reliability([0.1, 0.19, 0.9, 0.95, 1.0], [0, 1, 1, 1, 1])
    data = plots.data
    assert data["bin"].values.tolist() == [1, 9]
    np.testing.assert_allclose(data["predicted"], [0.145, 0.95])
    np.testing.assert_allclose(data["observed"], [0.5, 1])
    assert data["count"].values.tolist() == [2, 3]
    # Jeffreys: Beta(1.5, 1.5) is symmetric, and its 5 % quantile is that of no round number.
    assert float(data["observed_low"][0] + data["observed_high"][0]) == pytest.approx(1)
    assert float(data["observed_low"][0]) == pytest.approx(0.0972, abs=1e-3)
    assert float(data["observed_high"][1]) == 1
    assert data.attrs["calibration_error"] == pytest.approx((2 * 0.355 + 3 * 0.05) / 5)
    points = next(
        line for line in plots.get_viz("plot", row="reliability").lines if line.get_marker() == "o"
    )
    np.testing.assert_allclose(
        points.get_xydata(), np.column_stack([data["predicted"], data["observed"]])
    )
    bars = plots.get_viz("plot", row="histogram").patches
    assert [bar.get_height() for bar in bars] == [2, 3]
    np.testing.assert_allclose([bar.get_x() + bar.get_width() / 2 for bar in bars], [0.15, 0.95])
    assert "calibration error 0.172" in plots.get_viz("plot", row="reliability").get_title(
        loc="left"
    )


def test_intervals_hold_the_true_share_about_as_often_as_they_say():
    rng = np.random.default_rng(0)
    held = []
    for _ in range(300):
        data = binned(rng)
        held.append(
            (data["observed_low"] < data["predicted"]) & (data["observed_high"] > data["predicted"])
        )
    assert abs(np.mean(held) - 0.9) < 0.03


def binned(rng: np.random.Generator) -> xr.Dataset:
    """Bins of calibrated predictions."""
    chance = rng.random(500)
    return _binned(*_trials(chance, rng.random(500) < chance, None), 10, 0.9)


def test_the_error_that_chance_alone_makes_is_said():
    rng = np.random.default_rng(0)
    found = [binned(rng).attrs for _ in range(200)]
    by_chance = np.mean([one["expected_by_chance"] for one in found])
    assert by_chance == pytest.approx(
        np.mean([one["calibration_error"] for one in found]), rel=0.05
    )


def test_counts_are_the_same_predictions_written_once():
    rng = np.random.default_rng(0)
    chance, times = rng.random(40), rng.integers(1, 9, 40)
    true = rng.binomial(times, chance)
    one = figures.reliability(chance, true, count=times).data
    each = np.concatenate(
        [np.r_[np.ones(k), np.zeros(n - k)] for k, n in zip(true, times, strict=True)]
    )
    other = figures.reliability(np.repeat(chance, times), each).data
    xr.testing.assert_allclose(one, other)
    assert one.attrs == pytest.approx(other.attrs)


def test_arrays_of_any_shape_and_ties():
    table = np.array([[0.2, 0.8], [0.6, 0.4]])
    data = figures.reliability(xr.DataArray(table), [[0.5, 0.5], [True, False]], bins=2).data
    assert data["count"].values.tolist() == [2, 2]
    np.testing.assert_allclose(data["observed"], [0.25, 0.75])


@pytest.mark.parametrize("number", [1, 30, 200_000])
@pytest.mark.parametrize("bins", [1, 10, 40])
def test_reliability_stays_readable(number, bins):
    rng = np.random.default_rng(0)
    chance = rng.beta(0.3, 0.3, number)
    figure = of(figures.reliability(chance, rng.random(number) < chance, bins=bins))
    width, height = pixels(figure)
    assert 900 <= width <= 2000
    assert 300 <= height <= 2600
    upper, lower = figure.axes
    assert not overlaps([figure._suptitle, upper._left_title])
    assert not overlaps([*lower.texts])
    assert not overlaps([*lower.get_yticklabels(), lower.yaxis.label])
    for text in [
        upper._left_title,
        figure._suptitle,
        upper.yaxis.label,
        lower.yaxis.label,
        *lower.texts,
    ]:
        box = text.get_window_extent()
        assert box.x0 >= -1, text
        assert box.x1 <= figure.bbox.x1 + 1, text


@pytest.mark.parametrize(
    ("probability", "outcome", "options", "about"),
    [
        ([0.5, 0.5], [1], {}, ("outcome",)),
        (np.full((2, 3), 0.5), np.ones(3), {}, ("outcome",)),
        ([], [], {}, ("probability",)),
        ([1.5], [1], {}, ("probability", 1.5)),
        ([np.nan], [1], {}, ("probability", float("nan"))),
        ([0.5], [2], {}, ("outcome", 2.0)),
        ([0.5], [0.3], {}, ("outcome", 0.3)),
        ([0.5], [np.nan], {}, ("outcome", float("nan"))),
        ([0.5], [3], {"count": [2]}, ("outcome", 3.0)),
        ([0.5], [1], {"count": [1.5]}, ("count", 1.5)),
        ([0.5], [0], {"count": [0]}, ("probability",)),
        ([0.5], [1], {"bins": 0}, ("bins", 0)),
        ([0.5], [1], {"level": 1}, ("level", 1)),
    ],
)
def test_what_are_no_predictions_is_refused(probability, outcome, options, about):
    with raises_about(SettingError, *about):
        figures.reliability(probability, outcome, **options)


def test_figures_leave_no_global_state():
    before = plt.get_fignums()
    figures.learning_curves(curves())
    figures.reliability([0.5], [1])
    assert plt.get_fignums() == before

"""Learning curves, weights, reliability diagrams and checks: drawn from the right numbers."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy.stats import t as student

from raters import alignment, figures
from raters.checking.predictive import Check
from raters.errors import SettingError
from raters.figures.curves import _binned, _trials
from tests.figures.made import check_readable
from tests.refusals import raises_about


def curves(policies: int = 2, replicates: int = 3, batches: int = 6) -> xr.Dataset:
    """Curves that rise, each policy slower than the one before."""
    rng = np.random.default_rng(0)
    answers = np.broadcast_to(10.0 * np.arange(1, batches + 1), (policies, replicates, batches))
    pace = np.linspace(20, 80, policies)[:, None, None]
    tau = 1 - np.exp(-answers / pace) + 0.05 * rng.normal(size=answers.shape)
    axes = ("policy", "replicate", "batch")
    names = [f"policy {number} of the far too long names" for number in range(policies)]
    return xr.Dataset({"tau": (axes, tau), "answers": (axes, answers)}, {"policy": names})


def test_lines_are_means_and_bands_students_intervals_of_them():
    given = curves(replicates=5)
    plots = figures.learning_curves(given)
    data, axes = plots.data, plots.get_viz("plot")
    mean = given["tau"].mean("replicate").values
    half = student.ppf(0.95, 4) * given["tau"].std("replicate", ddof=1).values / np.sqrt(5)
    np.testing.assert_allclose(data["tau"], mean)
    np.testing.assert_allclose(data["tau_low"], mean - half)
    np.testing.assert_allclose(data["tau_high"], mean + half)
    for line, average in zip(axes.lines, mean, strict=True):
        np.testing.assert_allclose(line.get_ydata(), average)
        np.testing.assert_allclose(line.get_xdata(), 10 * np.arange(1, 7))
    check_readable(plots)


def test_a_single_campaign_has_a_line_and_no_band():
    plots = figures.learning_curves(curves(1, 1).isel(policy=0, replicate=0, drop=True))
    assert len(plots.get_viz("plot").lines) == 1
    assert bool(plots.data["tau_low"].isnull().all())
    assert plots.get_viz("plot").get_legend() is None


def test_axes_of_any_name_are_replicates():
    given = curves(2, 6)
    numbered = given.assign_coords(replicate=np.arange(6)).coarsen(replicate=3)
    split = numbered.construct(replicate=("crowd", "seed"))
    first, other = figures.learning_curves(given).data, figures.learning_curves(split).data
    for name in first:
        np.testing.assert_allclose(first[name], other[name])


def test_no_line_jumps_where_one_replicate_ends():
    given = curves(2, 3)
    given["tau"][0, 1, 4:] = np.nan  # one replicate of the first policy ends early
    given["tau"][1, :, 5:] = np.nan  # all of the second
    value = figures.learning_curves(given).data["tau"]
    assert value.isnull().values.tolist() == [[False] * 4 + [True] * 2, [False] * 5 + [True]]
    np.testing.assert_allclose(value[0, :4], given["tau"][0, :, :4].mean("replicate"))


def test_policies_differ_in_colour_and_style_and_are_named_in_the_order_in_which_they_end():
    axes = figures.learning_curves(curves(20, 2, 30)).get_viz("plot")
    assert len({(line.get_color(), line.get_linestyle()) for line in axes.lines}) == 20
    ends = {line.get_label(): line.get_ydata()[-1] for line in axes.lines}
    named = [text.get_text() for text in axes.get_legend().get_texts()]
    assert [ends[name] for name in named] == sorted(ends.values(), reverse=True)


def test_curves_that_are_none_are_refused():
    with raises_about(SettingError, "curves"):
        figures.learning_curves(xr.Dataset({"tau": ("draw", [1.0])}))
    with raises_about(SettingError, "name"):
        figures.learning_curves(curves(), "accuracy")


def test_weights_show_the_path_and_where_it_leads():
    regret = alignment.regret_matrix([[0.8, 0.1, 0.1], [0.2, 0.6, 0.2]])
    path = alignment.hedge(regret, steps=100).history
    goal = alignment.linear_programme(regret).weights
    plots = figures.weights(path, goal)
    lines = plots.get_viz("plot").lines
    np.testing.assert_allclose(lines[0].get_ydata(), path[:, 0])
    np.testing.assert_allclose(lines[1].get_ydata(), goal[0])
    with raises_about(SettingError, "history"):
        figures.weights([0.5, 0.5], [0.5, 0.5])


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
    bars = plots.get_viz("plot", row="histogram").patches
    assert [bar.get_height() for bar in bars] == [2, 3]
    np.testing.assert_allclose([bar.get_x() + bar.get_width() / 2 for bar in bars], [0.15, 0.95])
    check_readable(plots)


def test_intervals_and_the_error_by_chance_are_what_they_say():
    rng = np.random.default_rng(0)
    covered, errors, by_chance = [], [], []
    for _ in range(300):
        chance = rng.random(500)
        data = _binned(*_trials(chance, rng.random(500) < chance, None))
        low, high = data["observed_low"], data["observed_high"]
        covered.append((low < data["predicted"]) & (high > data["predicted"]))
        errors.append(data.attrs["calibration_error"])
        by_chance.append(data.attrs["expected_by_chance"])
    assert abs(np.mean(covered) - 0.9) < 0.03
    assert np.mean(by_chance) == pytest.approx(np.mean(errors), rel=0.05)


def test_counts_are_the_same_predictions_written_once():
    rng = np.random.default_rng(0)
    chance, times = rng.random(40), rng.integers(1, 9, 40)
    right = rng.binomial(times, chance)
    counted = figures.reliability(chance, right, count=times).data
    each = [np.arange(n) < k for k, n in zip(right, times, strict=True)]
    single = figures.reliability(np.repeat(chance, times), np.concatenate(each)).data
    xr.testing.assert_allclose(counted, single)
    tied = figures.reliability([[0.2, 0.8], [0.61, 0.4]], [[0.5, 0.5], [1, 0]]).data
    np.testing.assert_allclose(tied["observed"], [0.5, 0, 1, 0.5])


def test_what_are_no_predictions_is_refused():
    for probability, outcome, options, name in (
        ([0.5, 0.5], [1], {}, "outcome"),
        ([], [], {}, "probability"),
        ([1.5], [1], {}, "probability"),
        ([np.nan], [1], {}, "probability"),
        ([0.5], [0.3], {}, "outcome"),
        ([0.5], [3], {"count": [2]}, "outcome"),
        ([0.5], [1], {"count": [1.5]}, "count"),
        ([0.5], [0], {"count": [0]}, "probability"),
    ):
        with raises_about(SettingError, name):
            figures.reliability(probability, outcome, **options)


# ---------------------------------------------------------------- checks


def test_each_discrepancy_has_a_panel():
    rng = np.random.default_rng(0)
    names = [f"discrepancy_{place}" for place in range(5)]
    coords = {"discrepancy": names, "title": ("discrepancy", ["what is measured, in words"] * 5)}
    drawn, observed = rng.normal(size=(5, 200)), rng.normal(np.arange(5)[:, None], 0.1, (5, 200))
    observed[:1] = 3.0  # a value of the data alone
    axes = ("discrepancy", "draw")
    draws = xr.Dataset({"observed": (axes, observed), "replicated": (axes, drawn)}, coords)
    columns = {"p_adjusted": np.full(5, 0.01), "fails": np.arange(5) == 4}
    table = xr.Dataset({name: ("discrepancy", value) for name, value in columns.items()}, coords)
    plots = figures.checks(Check(table, draws, ()))
    for place, name in enumerate(names):
        panel = plots.get_viz("plot", discrepancy=name)
        assert panel.get_title(loc="right").endswith("fails") == (place == 4)
        (mark,) = panel.lines
        assert mark.get_xdata()[0] == pytest.approx(observed[place].mean())
        assert sum(bar.get_height() for bar in panel.containers[0]) == 200
    with raises_about(SettingError, "check"):
        figures.checks("a check")

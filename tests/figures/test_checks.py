"""The figure of checks: a panel for each discrepancy, drawn from the draws of the check."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import raters as rt
from raters import figures
from raters.errors import SettingError
from tests.refusals import raises_about


def check(number: int) -> rt.checking.Check:
    """A check of so many discrepancies, the last of which fails."""
    rng = np.random.default_rng(0)
    names = [f"discrepancy_{place}" for place in range(number)]
    titles = ["a very long explanation of what is measured and in which unit it is"] * number
    coords = {"discrepancy": names, "title": ("discrepancy", titles)}
    drawn = rng.normal(size=(number, 200))
    observed = rng.normal(np.arange(number)[:, None], 0.1, size=(number, 200))
    observed[:1] = 3.0  # a value of the data alone
    draws = {"observed": observed, "replicated": drawn}
    fails = np.arange(number) == number - 1
    return rt.checking.Check(
        xr.Dataset(
            {"p_adjusted": ("discrepancy", np.full(number, 0.01)), "fails": ("discrepancy", fails)},
            coords,
        ),
        xr.Dataset({name: (("discrepancy", "draw"), x) for name, x in draws.items()}, coords),
        (),
    )


@pytest.mark.parametrize("number", [1, 3, 5])
def test_each_discrepancy_has_a_panel(number, tmp_path):
    plots = figures.checks(check(number))
    for place in range(number):
        axes = plots.get_viz("plot", discrepancy=f"discrepancy_{place}")
        assert axes.get_title(loc="left") == f"discrepancy {place}"
        assert axes.get_title(loc="right").endswith("fails") == (place == number - 1)
        (mark,) = axes.lines
        expected = plots.data["observed"].isel(discrepancy=place).mean()
        assert mark.get_xdata()[0] == pytest.approx(float(expected))
        counts = sum(bar.get_height() for bar in axes.containers[0])
        assert counts == 200
    plots.savefig(tmp_path / "checks.png")
    assert (tmp_path / "checks.png").stat().st_size > 5000


def test_something_else_is_refused():
    with raises_about(SettingError, "found"):
        figures.checks("a check")
    with pytest.raises(SettingError, match="nothing"):
        figures.checks(check(0))

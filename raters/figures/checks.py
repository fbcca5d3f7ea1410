"""Figures of posterior predictive checks."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from raters.errors import SettingError, refuse
from raters.figures.base import GREY, VERDICTS, Plots, collected, new_figure, plain

if TYPE_CHECKING:
    from raters.checking.predictive import Check


def checks(check: Check) -> Plots:
    """Draw the replicated values of every discrepancy, with the observed one marked.

    Of discrepancies that depend on parameters, the mark is the mean over draws and the band beside
    it holds 95% of the observed values. The mark is red where the model fails.

    Parameters
    ----------
    check : Check
        From `raters.check`.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have ``observed`` and ``replicated`` (discrepancy, draw); panels are picked by
        ``discrepancy``.

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, seed=0, progress=False)
    >>> plots = rt.figures.checks(rt.check(rt.BTL(), result, replicates=400))
    >>> plots.get_viz("plot", discrepancy="agreement").get_title(loc="left")
    'agreement'
    """
    data, table = getattr(check, "draws", None), getattr(check, "table", None)
    if not isinstance(data, xr.Dataset) or not isinstance(table, xr.Dataset):
        instead = "rt.check(model, result)"
        refuse("check", check, expected="it must be a check", instead=instead)
    if not data.sizes.get("discrepancy"):
        raise SettingError("nothing of these data could be measured, so there is nothing to draw")
    names = data["discrepancy"].values.tolist()
    columns = min(3, len(names))
    lines = -(-len(names) // columns)
    figure = new_figure(3.9 * columns, 2.9 * lines)
    panels = list(figure.subplots(lines, columns, squeeze=False).flat)
    for panel, name in zip(panels, names, strict=False):
        _discrepancy(panel, data.sel(discrepancy=name), table.sel(discrepancy=name))
        panel.set_title(str(name).replace("_", " "), loc="left", fontsize=11)
    for panel in panels[len(names) :]:
        panel.set_axis_off()
    return collected(data, figure, panels[: len(names)], "discrepancy", names, columns)


def _discrepancy(axes: Axes, data: xr.Dataset, row: xr.Dataset) -> None:
    drawn, observed, fails = data["replicated"].values, data["observed"].values, bool(row["fails"])
    mark = VERDICTS["drop" if fails else "keep"][0]
    axes.hist(drawn, 40 if np.ptp(drawn) > 0 else 1, color="0.75", density=False)
    low, high = np.quantile(observed, (0.025, 0.975))
    if high > low:
        axes.axvspan(low, high, color=mark, alpha=0.15, linewidth=0)
    axes.axvline(observed.mean(), color=mark, linewidth=2)
    text = f"p = {float(row['p_adjusted']):.2g}" + (", fails" if fails else "")
    axes.set_title(text, loc="right", fontsize=9, color=mark if fails else GREY)
    axes.set_xlabel(textwrap.fill(str(row["title"].values), 44), fontsize=8)
    axes.set_yticks([])
    axes.tick_params(labelsize=8)
    plain(axes, "x")

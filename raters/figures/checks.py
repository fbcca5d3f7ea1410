"""Figure of posterior predictive checks."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from raters.errors import SettingError
from raters.figures.base import GREY, VERDICTS, Plots, collected_over, plain

if TYPE_CHECKING:
    from raters.checking.predictive import Check

# Panels in a row, letters in a line of a title, and bins of a histogram.
_COLUMNS, _LETTERS, _BINS = 3, 44, 40


def checks(found: Check) -> Plots:
    """Draw the replicated values of every discrepancy, with the observed one marked.

    Of discrepancies that depend on parameters, the mark is the mean over draws and the band beside
    it holds 95% of the observed values. The mark is red where the model fails.

    Parameters
    ----------
    found : Check
        From `raters.check`.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have ``observed`` and ``replicated`` (discrepancy, draw); panels are picked by
        ``discrepancy``.

    Raises
    ------
    SettingError
        When this is no check, or nothing was measured.

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, seed=0, progress=False)
    >>> plots = rt.figures.checks(rt.check(rt.BTL(), result, replicates=400))
    >>> plots.get_viz("plot", discrepancy="agreement").get_title(loc="left")
    'agreement'
    """
    data, table = _parts(found)
    names = data["discrepancy"].values.tolist()
    columns = min(_COLUMNS, len(names))
    lines = -(-len(names) // columns)
    figure = Figure(figsize=(3.9 * columns, 2.9 * lines), layout="constrained", dpi=150)
    panels = list(figure.subplots(lines, columns, squeeze=False).flat)
    for panel, name in zip(panels, names, strict=False):
        _panel(panel, data.sel(discrepancy=name), table.sel(discrepancy=name))
        panel.set_title(str(name).replace("_", " "), loc="left", fontsize=11)
    for panel in panels[len(names) :]:
        panel.set_axis_off()
    return collected_over(data, figure, panels[: len(names)], "discrepancy", names, columns)


def _parts(found: Any) -> tuple[xr.Dataset, xr.Dataset]:
    """Draws and table of a check."""
    data, table = getattr(found, "draws", None), getattr(found, "table", None)
    if not isinstance(data, xr.Dataset) or not isinstance(table, xr.Dataset):
        raise SettingError(
            parameter="found",
            value=found,
            expected="it must be a check",
            instead="rt.check(model, result)",
        )
    if not data.sizes.get("discrepancy"):
        raise SettingError("nothing of these data could be measured, so there is nothing to draw")
    return data, table


def _panel(axes: Axes, data: xr.Dataset, row: xr.Dataset) -> None:
    """Draw one discrepancy."""
    drawn, observed = data["replicated"].values, data["observed"].values
    mark = VERDICTS["drop" if bool(row["fails"]) else "keep"][0]
    axes.hist(drawn, _BINS if np.ptp(drawn) > 0 else 1, color="0.75", density=False)
    low, high = np.quantile(observed, (0.025, 0.975))
    if high > low:
        axes.axvspan(low, high, color=mark, alpha=0.15, linewidth=0)
    axes.axvline(observed.mean(), color=mark, linewidth=2)
    p_value = float(row["p_adjusted"])
    text = f"p = {p_value:.2g}" + (", fails" if bool(row["fails"]) else "")
    axes.set_title(text, loc="right", fontsize=9, color=mark if bool(row["fails"]) else GREY)
    axes.set_xlabel(textwrap.fill(str(row["title"].values), _LETTERS), fontsize=8)
    axes.set_yticks([])
    axes.tick_params(labelsize=8)
    plain(axes, "x")

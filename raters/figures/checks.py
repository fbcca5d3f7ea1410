"""Figures of posterior predictive checks, and of shared mistakes."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from raters.errors import SettingError, refuse
from raters.figures.base import (
    FAINT,
    GREY,
    VERDICTS,
    Plots,
    collected,
    collected_over,
    new_figure,
    plain,
    short,
)
from raters.judgements.names import plural

if TYPE_CHECKING:
    from raters.checking.dependence import Dependence
    from raters.checking.predictive import Check

# Largest number of judges whose correlations are drawn.
_MOST = 40


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
    return collected_over(data, figure, panels[: len(names)], "discrepancy", names, columns)


def _discrepancy(axes: Axes, data: xr.Dataset, row: xr.Dataset) -> None:
    """Draw one discrepancy."""
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


def dependence(dependence: Dependence) -> Plots:
    """Draw the correlation of the mistakes of each pair of judges, those who err together side by
    side; of more than 40 judges, those with most answers in common with others.

    Parameters
    ----------
    dependence : Dependence
        From `raters.checking.dependence`.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` are the ``correlation`` that is drawn, in the order in which it is. Pairs
        without a question in common are grey.

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> labels, _ = rt.datasets.label_crowd(100, 10, 5, 2, seed=0)
    >>> result = rt.fit(rt.models.OneCoin(), labels, seed=0, progress=False)
    >>> plots = rt.figures.dependence(rt.checking.dependence(rt.models.OneCoin(), result))
    >>> list(plots.data), plots.data["correlation"].shape
    (['correlation'], (10, 10))
    """
    table = getattr(dependence, "correlation", None)
    if not isinstance(table, xr.Dataset) or "questions" not in table:
        instead = "rt.checking.dependence(model, result)"
        refuse("dependence", dependence, expected="it must be a dependence", instead=instead)
    judge, other = table["correlation"].dims
    common = table["questions"].values - np.diag(np.diag(table["questions"].values))
    chosen = np.sort(np.argsort(-common.sum(1), kind="stable")[:_MOST])
    data = table[["correlation"]].isel({judge: chosen, other: chosen})
    order = _side_by_side(data["correlation"].values)
    data = data.isel({judge: order, other: order})
    size = 2.6 + 0.21 * len(order)
    figure = new_figure(size + 0.9, size)
    axes = figure.subplots()
    axes.set_facecolor(FAINT)
    shades = axes.imshow(
        data["correlation"], cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest"
    )
    names = [short(name, 18) for name in data[judge].values]
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=8)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    low, high = dependence.effective_interval
    judges = f"{dependence.judges:,} {plural(dependence.judge)}"
    title = f"{judges} as {dependence.effective:.3g} independent ones ({low:.3g} to {high:.3g})"
    axes.set_title(title, fontsize=10, loc="left")
    label = "correlation of mistakes" if dependence.of_truth else "correlation"
    figure.colorbar(shades, ax=axes, shrink=0.6, label=label)
    return collected(data, figure, axes)


def _side_by_side(correlation: Float[np.ndarray, "judge judge"]) -> Int[np.ndarray, " judge"]:
    """Order in which those who err together are neighbours, by average linkage."""
    if len(correlation) < 3:
        return np.arange(len(correlation))
    distance = 1 - np.nan_to_num(correlation)
    np.fill_diagonal(distance, 0)
    distance = squareform((distance + distance.T) / 2, checks=False)
    order: Int[np.ndarray, " judge"] = leaves_list(
        linkage(distance, "average", optimal_ordering=True)
    )
    return order

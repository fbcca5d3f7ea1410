"""Figure of shared mistakes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from jaxtyping import Float, Int
from matplotlib.figure import Figure
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from raters.errors import SettingError
from raters.errors.validation import whole
from raters.figures.base import FAINT, Plots, collected, short
from raters.judgements.names import plural

if TYPE_CHECKING:
    from raters.checking.dependence import Dependence


def dependence(found: Dependence, *, most: int = 40) -> Plots:
    """Draw the correlation of the mistakes of each pair of judges, those who err together side by
    side.

    Parameters
    ----------
    found : Dependence
        From `raters.checking.dependence`.
    most : int
        Judges to draw; of more, those with most answers in common with others.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` are the ``correlation`` that is drawn, in the order in which it is. Pairs
        without a question in common are grey.

    Raises
    ------
    SettingError
        When this is no dependence.

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> labels, _ = rt.datasets.label_crowd(100, 10, 5, 2, seed=0)
    >>> result = rt.fit(rt.models.OneCoin(), labels, seed=0, progress=False)
    >>> plots = rt.figures.dependence(rt.checking.dependence(rt.models.OneCoin(), result))
    >>> list(plots.data), plots.data["correlation"].shape
    (['correlation'], (10, 10))
    """
    table = getattr(found, "correlation", None)
    if not isinstance(table, xr.Dataset) or "questions" not in table:
        raise SettingError(
            parameter="found",
            value=found,
            expected="it must be a dependence",
            instead="rt.checking.dependence(model, result)",
        )
    whole("most", most, least=2)
    own, other = table["correlation"].dims
    common = table["questions"].values - np.diag(np.diag(table["questions"].values))
    chosen = np.sort(np.argsort(-common.sum(1), kind="stable")[:most])
    data = table[["correlation"]].isel({own: chosen, other: chosen})
    order = _side_by_side(data["correlation"].values)
    data = data.isel({own: order, other: order})
    values = data["correlation"].values
    size = 2.6 + 0.21 * len(values)
    figure = Figure(figsize=(size + 0.9, size), layout="constrained", dpi=150)
    axes = figure.subplots()
    axes.set_facecolor(FAINT)
    shades = axes.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
    names = [short(name, 18) for name in data[own].values]
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=8)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    low, high = found.effective_interval
    axes.set_title(
        f"{found.judges:,} {plural(found.judge)} as {found.effective:.3g} independent ones"
        f" ({low:.3g} to {high:.3g})",
        fontsize=10,
        loc="left",
    )
    figure.colorbar(
        shades,
        ax=axes,
        shrink=0.6,
        label="correlation of mistakes" if found.of_truth else "correlation",
    )
    return collected(data, figure, axes)


def _side_by_side(correlation: Float[np.ndarray, "judge judge"]) -> Int[np.ndarray, " judge"]:
    """Order in which those who err together are neighbours, by average linkage."""
    if len(correlation) < 3:
        return np.arange(len(correlation))
    distance = 1 - np.nan_to_num(correlation)
    np.fill_diagonal(distance, 0)
    distance = squareform((distance + distance.T) / 2, checks=False)
    tree = linkage(distance, "average", optimal_ordering=True)
    order: Int[np.ndarray, " judge"] = leaves_list(tree)
    return order

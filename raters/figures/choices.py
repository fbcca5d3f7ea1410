"""Figure of choices: shares of the alternatives by what was offered."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from raters.errors import SettingError
from raters.errors.validation import checked
from raters.figures.base import COLOURS, FAINT, Plots, collected, ends, plain, short

_COLUMNS = ("observed", "expected", "low", "high", "choices", "menu", "alternative")


@checked
def choice_shares(shares: xr.Dataset, *, most: int = 40) -> Plots:
    """Draw observed shares of the alternatives beside those of a model, menu by menu.

    Points that lie outside of their intervals, for some menus above and for others below, say that
    what else is offered matters in a way that the model does not have.

    Parameters
    ----------
    shares : xarray.Dataset
        From `raters.auditing.choice_shares`.
    most : int
        Largest number of shares to show; of more, those of the menus with most choices and with
        fewest.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` are the shares.

    Raises
    ------
    SettingError
        When these are no shares.

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> table = {"trip": [1, 1, 2, 2], "mode": ["car", "bus"] * 2, "taken": [1, 0, 0, 1]}
    >>> choices = rt.Choices.from_frame(table, set="trip", alternative="mode", chosen="taken")
    >>> model, nuts = rt.MultinomialLogit(features=False), rt.NUTS(500, 300, chains=2)
    >>> result = rt.fit(model, choices, nuts, seed=0, progress=False)
    >>> plots = rt.figures.choice_shares(rt.auditing.choice_shares(model, result))
    >>> plots.get_viz("plot").get_xlabel()
    'share of the choices'
    """
    _check(shares)
    shown, _, gap = ends(shares.sizes["cell"], most)
    data = shares.isel(cell=shown)
    menu = data["menu"].values
    begins = np.append(True, menu[1:] != menu[:-1])
    position = np.arange(len(menu)) + np.cumsum(begins) - 1.0
    figure = Figure(
        figsize=(8.5, 1.6 + 0.24 * (len(menu) + int(begins.sum()))), layout="constrained", dpi=150
    )
    axes = figure.subplots()
    plain(axes, "y")
    axes.hlines(position, data["low"], data["high"], color=FAINT, linewidth=7)
    axes.plot(data["expected"], position, "|", color="0.4", markersize=9, label="model")
    axes.plot(data["observed"], position, "o", color=COLOURS[0], markersize=5, label="observed")
    for row in np.flatnonzero(begins):
        text = f"{short(menu[row], 60)} ({int(data['choices'][row]):,} choices)"
        axes.text(
            0.0,
            position[row] - 0.75,
            text,
            fontsize=8,
            color="0.35",
            transform=axes.get_yaxis_transform(),
            va="center",
        )
    axes.set_yticks(position, [short(name) for name in data["alternative"].values], fontsize=9)
    axes.set_ylim(position[-1] + 0.7, -1.4)
    axes.set_xlim(left=0.0)
    more = f" ({gap} more not shown)" if gap else ""
    axes.set_xlabel(f"share of the choices{more}")
    axes.legend(loc="lower right", fontsize=8, frameon=False)
    return collected(data, figure, axes)


def _check(shares: Any) -> None:
    """`SettingError` unless these are shares."""
    names = () if not isinstance(shares, xr.Dataset) else (*shares.data_vars, *shares.coords)
    if not set(_COLUMNS) <= set(names) or not shares.sizes.get("cell"):
        raise SettingError(
            parameter="shares",
            value=shares,
            expected="it must be shares of choices",
            instead="rt.auditing.choice_shares(model, result)",
        )

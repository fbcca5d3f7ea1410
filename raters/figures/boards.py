"""Figure of a leaderboard: scores and ranks with their intervals."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from raters.errors import refuse
from raters.errors.validation import checked, share
from raters.figures import base
from raters.figures.base import COLOURS, GREY, Plots

_NEEDED = ("rank", "score", "score_low", "score_high", "joint_low", "joint_high", "tier")


@checked
def leaderboard(table: pd.DataFrame, *, level: float = 0.9) -> Plots:
    """Draw the scores of a leaderboard, and the ranks that are possible.

    A row is an entry, the best on top; rows of one tier have one colour. On the left its score with
    the interval; on the right the ranks, thick where they hold for this entry alone, thin where
    they hold for all entries at once. Of more than 60 entries, the first 40 and the last 20 are
    shown.

    Parameters
    ----------
    table : pandas.DataFrame
        That of one board: the ``table`` of `raters.leaderboard`, or its rows of one category.
    level : float
        Probability of the intervals, for the labels.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have the columns that are drawn.

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, rt.PGEM(), seed=0, progress=False)
    >>> plots = rt.figures.leaderboard(rt.leaderboard(result).table)
    >>> plots.data["rank"].values.tolist()
    [1, 2, 3, 4]
    >>> plots.savefig("board.png")        # doctest: +SKIP
    """
    share("level", level)
    axis = next((name for name in ("item", "person") if name in table), "")
    if not axis or not set(_NEEDED) <= set(table) or table["rank"].duplicated().any():
        problem = "is not the table of one board"
        refuse("table", problem=problem, expected="pass that of a leaderboard, or of one category")
    names = table[axis].to_numpy()
    rows = base.rows_of(names, np.arange(len(table)), head=40)
    shown = table.iloc[rows.shown]
    data = shown.set_index(axis)[[*_NEEDED, "rank_low", "rank_high"]].to_xarray()
    figure = base.new_figure(9, rows.height)
    left, right = figure.subplots(1, 2, width_ratios=(1.4, 1), sharey=True)
    for place, row in zip(rows.position, shown.to_dict("records"), strict=True):
        colour = COLOURS[(row["tier"] - 1) % 2]
        left.hlines(place, row["score_low"], row["score_high"], color=colour, linewidth=1.6)
        left.plot(row["score"], place, "o", color=colour, markersize=5)
        right.hlines(place, row["joint_low"], row["joint_high"], color=colour, linewidth=1.2)
        right.hlines(place, row["rank_low"], row["rank_high"], color=colour, linewidth=5)
        right.plot(row["rank"], place, "o", color=GREY, markersize=4)
    base.name_rows(left, rows)
    left.set_xlabel(f"score, with its {level:.0%} interval")
    right.set_xlabel(f"rank (1: best); thin: all at once ({level:.0%})")
    right.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, nbins=12))
    right.set_xlim(0.5, len(table) + 0.5)
    for axes in (left, right):
        base.plain(axes, "x")
        axes.tick_params(axis="y", length=0)
    return base.collected(data, figure, [left, right], "column", ["score", "ranks"], 2)

"""Figures of a fit: rewards and ranks of the items."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Float, Int, Shaped
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from raters.errors import SettingError
from raters.errors.validation import at_most, checked, share, whole
from raters.figures.base import (
    FAINT,
    GREY,
    VERDICTS,
    Plots,
    Rows,
    cell,
    check_draws,
    collected,
    collected_over,
    forest,
    height,
    name_rows,
    plain,
    rows_of,
)

# Up to so many items, numbers fit into the cells of the ranks; with more ranks than the second,
# neighbours are merged.
_NUMBERED_RANKS, _MOST_RANKS = 12, 60
# Points between axes and title, for the heads of the columns of numbers.
_ABOVE = 18


@checked
def rewards(result: xr.DataTree, *, level: float = 0.9, most: int = 60) -> Plots:
    """Draw a forest plot of the items' rewards, highest on top.

    Parameters
    ----------
    result : xarray.DataTree
        From `raters.fit`, of comparisons.
    level : float
        Posterior probability of the (equal-tailed) intervals.
    most : int
        Largest number of items to show; of more, the highest and the lowest.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have ``reward``, ``reward_low`` and ``reward_high`` (item), in logits.

    Raises
    ------
    SettingError
        When the result has no rewards, or has them for types of annotators.

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, rt.PGEM(), seed=0, progress=False)
    >>> rt.figures.rewards(result).savefig("rewards.png")        # doctest: +SKIP
    """
    share("level", level)
    draws, names = _best_first(result)
    rows = rows_of(names, most, (most + 1) // 2)
    draws = draws[rows.shown]
    low, high = np.quantile(draws, ((1 - level) / 2, (1 + level) / 2), axis=1)
    values = {"reward": draws.mean(1), "reward_low": low, "reward_high": high}
    data = xr.Dataset(
        {name: ("item", value) for name, value in values.items()},
        {"item": names[rows.shown]},
        {"level": level},
    )
    figure, axes = forest(rows)
    axes.hlines(rows.position, low, high, color=VERDICTS["keep"][0], linewidth=1.6)
    axes.plot(data["reward"], rows.position, "o", color=VERDICTS["keep"][0], markersize=4.5)
    axes.axvline(0, color=GREY, linewidth=0.8, linestyle=":", zorder=0)
    unit = "standard deviations" if "threshold" in result["posterior"] else "logits"
    axes.set_xlabel(f"reward ({unit}; 0 is the average item)")
    axes.set_title(f"Posterior mean reward and {level:.0%} interval", loc="left", fontsize=11)
    return collected(data, figure, axes)


def _best_first(
    result: xr.DataTree,
) -> tuple[Float[np.ndarray, "item sample"], Shaped[np.ndarray, " item"]]:
    """Return draws of the rewards, and the items' names, in the order of the mean reward."""
    check_draws(result)
    posterior = result["posterior"]
    if "reward" not in posterior:
        raise SettingError(
            parameter="result",
            problem=f"has no rewards to draw; it has {sorted(map(str, posterior))}",
            expected=(
                "fit comparisons; raters.figures.certainty and raters.figures.confusions draw"
                " audits of labels"
            ),
            instead="rt.fit(rt.BTL(), votes, seed=0)",
        )
    if "type" in posterior["reward"].dims:
        raise SettingError(
            parameter="result",
            problem="has rewards for each type of annotator",
            expected="draw the profiles of the types",
            instead="raters.figures.profiles(result)",
        )
    if posterior["reward"].dims != ("chain", "draw", "item") or (
        posterior["reward"].dtype.kind not in "iuf" or not posterior["reward"].size
    ):
        raise SettingError(
            parameter="result",
            problem="does not hold the draws of 'reward' as they were fitted",
            expected="pass a result, as fitted or as read back from its file",
            instead="rt.fit(rt.BTL(), votes, seed=0)",
        )
    reward = posterior["reward"].stack(sample=("chain", "draw")).transpose("item", "sample")
    order = np.argsort(-reward.values.mean(1), kind="stable")
    return reward.values[order], reward["item"].values[order]


@checked
def ranks(result: xr.DataTree, *, top: int | None = None, most: int = 60) -> Plots:
    """Draw the probability of every rank of each item, of being best, and of being in the `top`.

    A row is an item, the one with the best mean rank on top. A column is a rank, or several
    neighbouring ranks where there are many. The shade is the probability that the item has the
    rank: a narrow dark row is an item whose rank is certain, a wide pale row one whose rank is not.
    On the right, P(best) and P(among the `top`).

    Parameters
    ----------
    result : xarray.DataTree
        From `raters.fit`, of comparisons.
    top : int, optional
        Ranks that count as the top; 3 by default, or all of fewer.
    most : int
        Largest number of items to show; of more, the best (two thirds) and the worst.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have ``probability`` (item, rank), ``mean_rank``, ``p_best`` and ``p_top``
        (item). Where ranks are merged, ``rank`` is the first of them and ``last_rank`` the last.

    Raises
    ------
    SettingError
        When the result has no rewards, or has them for types of annotators, or `top` is not a
        number of its items.

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, rt.PGEM(), seed=0, progress=False)
    >>> plots = rt.figures.ranks(result, top=2)
    >>> plots.data["probability"].sizes["rank"], float(plots.data["p_best"].sum())
    (4, 1.0)
    >>> plots.savefig("ranks.png")        # doctest: +SKIP
    """
    draws, names = _best_first(result)
    top = min(3, len(names)) if top is None else top
    whole("top", top)
    at_most("top", top, len(names), "items")
    rank = np.argsort(np.argsort(-draws, axis=0, kind="stable"), axis=0) + 1
    order = np.argsort(rank.mean(1), kind="stable")
    rows = rows_of(names[order], most, 2 * most // 3)
    data = _rank_table(rank[order[rows.shown]], rows.names[rows.shown], len(names), top)
    figure = Figure(figsize=(11, height(rows)), layout="constrained", dpi=150)
    left, right = figure.subplots(1, 2, width_ratios=(2.2, 1), sharey=True)
    _rank_cells(figure, left, data, rows)
    _rank_bars(right, data, rows)
    left.set_title("Probability of each rank", loc="left", fontsize=11, pad=_ABOVE)
    return collected_over(data, figure, [left, right], "column", ["ranks", "best"], 2)


def _rank_table(
    rank: Int[np.ndarray, "shown sample"],
    names: Shaped[np.ndarray, " shown"],
    num_items: int,
    top: int,
) -> xr.Dataset:
    """Summarise draws of ranks as the probabilities that are drawn."""
    width = -(-num_items // _MOST_RANKS)
    first = np.arange(1, num_items + 1, width)
    probs = np.stack(
        [((rank - 1) // width == column).mean(1) for column in range(len(first))], axis=1
    )
    single = {
        "mean_rank": rank.mean(1),
        "p_best": (rank == 1).mean(1),
        "p_top": (rank <= top).mean(1),
    }
    return xr.Dataset(
        {"probability": (("item", "rank"), probs)}
        | {name: ("item", value) for name, value in single.items()},
        {
            "item": names,
            "rank": first,
            "last_rank": ("rank", np.minimum(first + width - 1, num_items)),
        },
        {"top": top, "items": num_items},
    )


def _rank_cells(figure: Figure, axes: Axes, data: xr.Dataset, rows: Rows) -> None:
    """Draw cells shaded by probability, with numbers for few items and a colour bar for many."""
    probs = data["probability"].values
    numbered = data.attrs["items"] <= _NUMBERED_RANKS
    edges = np.append(data["rank"], data["last_rank"][-1] + 1) - 0.5
    # One scale for both blocks of rows. Without numbers it is a power, so that small probabilities
    # remain visible beside large ones.
    scale = Normalize(0, 1) if numbered else PowerNorm(0.5, 0, probs.max())
    for part in filter(len, (np.arange(rows.head), np.arange(rows.head, len(probs)))):
        heights = np.append(rows.position[part], rows.position[part[-1]] + 1) - 0.5
        shades = axes.pcolormesh(edges, heights, probs[part], cmap="Blues", norm=scale)
    if numbered:
        for (row, column), prob in np.ndenumerate(probs):
            colour = "white" if prob > 0.55 else "black"
            if prob > 0:
                axes.text(
                    column + 1,
                    float(rows.position[row]),
                    cell(prob),
                    ha="center",
                    va="center",
                    fontsize=8,
                    color=colour,
                )
    else:
        event = (
            "rank"
            if len(probs.T) == data.attrs["items"]
            else f"one of {int(data['last_rank'][0])} ranks"
        )
        label = f"P({event})"
        figure.colorbar(
            shades, ax=axes, location="bottom", label=label, fraction=0.03, aspect=40, pad=0.01
        )
    name_rows(axes, rows)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, nbins=12))
    axes.set(xlabel="rank (1: best)", xlim=(edges[0], edges[-1]))
    axes.tick_params(axis="y", length=0)
    axes.spines[:].set_color(FAINT)


def _rank_bars(axes: Axes, data: xr.Dataset, rows: Rows) -> None:
    """Draw bars of P(best) inside P(among the top), with both as numbers."""
    dark, light = "#0072B2", "#A6D3EE"
    axes.barh(rows.position, data["p_top"], height=0.75, color=light)
    axes.barh(rows.position, data["p_best"], height=0.4, color=dark)
    columns = {
        "p_best": (1.14, "best", dark),
        "p_top": (1.34, f"top {data.attrs['top']}", "#3C7FA8"),
    }
    across = axes.get_yaxis_transform()
    for name, (x, title, colour) in columns.items():
        axes.text(
            x, 1, title, transform=axes.transAxes, ha="right", va="bottom", fontsize=9, color=colour
        )
        for y, prob in zip(rows.position, data[name].values, strict=True):
            if prob > 0:
                axes.text(
                    x,
                    y,
                    cell(prob),
                    transform=across,
                    ha="right",
                    va="center",
                    fontsize=8,
                    color=colour,
                )
    axes.set(xlim=(0, 1), xlabel="probability")
    axes.tick_params(axis="y", length=0)
    plain(axes, "x")
    axes.set_title(
        f"Best, and among the best {data.attrs['top']}", loc="left", fontsize=11, pad=_ABOVE
    )

"""Figures of a fit: ranks of the items, persons and items on one scale, and rewards of types."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Int
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from raters.errors import refuse
from raters.errors.validation import checked, share, whole
from raters.figures import base
from raters.figures.base import COLOURS, FAINT, GREY, Plots, Rows, Style
from raters.judgements.names import plural

# Up to so many items, numbers fit into the cells of the ranks; with more ranks than the second,
# neighbours are merged.
_NUMBERED_RANKS, _MOST_RANKS = 12, 60
# Points between axes and title, for the heads of the columns of numbers.
_ABOVE = 18
# Largest numbers of rows of a profile, and of its panels.
_MOST_ROWS, _MOST_PANELS = 40, 6


@checked
def ranks(result: xr.DataTree) -> Plots:
    """Draw the probability of every rank of each item, of being best, and among the best three.

    A row is an item, the one with the best mean rank on top. A column is a rank, or several
    neighbouring ranks where there are many. The shade is the probability that the item has the
    rank: a narrow dark row is an item whose rank is certain, a wide pale row one whose rank is not.
    On the right, P(best) and P(among the best three). Of more than 60 items, the best 40 and the
    worst 20 are shown.

    Parameters
    ----------
    result : xarray.DataTree
        From `raters.fit`, of comparisons.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have ``probability`` (item, rank), ``mean_rank``, ``p_best`` and ``p_top``
        (item). Where ranks are merged, ``rank`` is the first of them and ``last_rank`` the last.

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, rt.PGEM(), seed=0, progress=False)
    >>> plots = rt.figures.ranks(result)
    >>> plots.data["probability"].sizes["rank"], float(plots.data["p_best"].sum())
    (4, 1.0)
    >>> plots.savefig("ranks.png")        # doctest: +SKIP
    """
    base.check_draws(result)
    posterior = result["posterior"].dataset
    reward = posterior.get("reward", xr.DataArray())
    if reward.dims != ("chain", "draw", "item") or reward.dtype.kind not in "iuf":
        problem = f"has no one reward of each item to draw; it has {sorted(map(str, posterior))}"
        expected, instead = "fit comparisons, or draw profiles", "rt.figures.profiles(result)"
        refuse("result", problem=problem, expected=expected, instead=instead)
    count = reward.sizes["item"]
    # Items with equal rewards in a draw are ranked by their mean.
    reward = reward.isel(item=np.argsort(-reward.values.mean((0, 1)), kind="stable"))
    draws = reward.values.reshape(-1, count).T
    rank = np.argsort(np.argsort(-draws, axis=0, kind="stable"), axis=0) + 1
    order = np.argsort(rank.mean(1), kind="stable")
    rows = base.rows_of(reward["item"].values, order, head=40)
    data = _rank_table(rank[rows.shown], count)
    data = data.assign_coords(item=reward["item"].values[rows.shown])
    figure = base.new_figure(11, rows.height)
    left, right = figure.subplots(1, 2, width_ratios=(2.2, 1), sharey=True)
    _rank_cells(figure, left, data, rows)
    _rank_bars(right, data, rows)
    left.set_title("Probability of each rank", loc="left", fontsize=11, pad=_ABOVE)
    return base.collected(data, figure, [left, right], "column", ["ranks", "best"], 2)


def _rank_table(rank: Int[np.ndarray, "shown sample"], num_items: int) -> xr.Dataset:
    """Summarise draws of ranks as the probabilities that are drawn."""
    top = min(3, num_items)
    width = -(-num_items // _MOST_RANKS)
    first = np.arange(1, num_items + 1, width)
    columns = [((rank - 1) // width == column).mean(1) for column in range(len(first))]
    return xr.Dataset(
        {
            "probability": (("item", "rank"), np.stack(columns, axis=1)),
            "mean_rank": ("item", rank.mean(1)),
            "p_best": ("item", (rank == 1).mean(1)),
            "p_top": ("item", (rank <= top).mean(1)),
        },
        {"rank": first, "last_rank": ("rank", np.minimum(first + width - 1, num_items))},
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
        base.numbers(
            axes, data["rank"].values, rows.position, probs, lambda p: cell(p) if p else ""
        )
    else:
        width = int(data["last_rank"][0])
        label = "P(rank)" if width == 1 else f"P(one of {width} ranks)"
        style: Style = {"location": "bottom", "fraction": 0.03, "aspect": 40, "pad": 0.01}
        figure.colorbar(shades, ax=axes, label=label, **style)
    base.name_rows(axes, rows)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, nbins=12))
    axes.set(xlabel="rank (1: best)", xlim=(edges[0], edges[-1]))
    axes.tick_params(axis="y", length=0)
    axes.spines[:].set_color(FAINT)


def _rank_bars(axes: Axes, data: xr.Dataset, rows: Rows) -> None:
    """Draw bars of P(best) inside P(among the top), with both as numbers."""
    top = data.attrs["top"]
    axes.barh(rows.position, data["p_top"], height=0.75, color="#A6D3EE")
    axes.barh(rows.position, data["p_best"], height=0.4, color=COLOURS[0])
    columns = {"p_best": (1.14, "best", COLOURS[0]), "p_top": (1.34, f"top {top}", "#3C7FA8")}
    for name, (x, title, colour) in columns.items():
        style: Style = {"color": colour, "ha": "right"}
        axes.text(x, 1, title, transform=axes.transAxes, va="bottom", fontsize=9, **style)
        style |= {"transform": axes.get_yaxis_transform(), "va": "center", "fontsize": 8}
        for y, prob in zip(rows.position, data[name].values, strict=True):
            if prob > 0:
                axes.text(x, y, cell(prob), **style)
    axes.set(xlim=(0, 1), xlabel="probability")
    axes.tick_params(axis="y", length=0)
    base.plain(axes, "x")
    axes.set_title(f"Best, and among the best {top}", loc="left", fontsize=11, pad=_ABOVE)


def cell(prob: float) -> str:
    """Format a probability in at most four characters; only 0 and 1 themselves are so shown."""
    if prob in (0, 1):
        return f"{prob:.0f}"
    return "<.01" if prob < 0.005 else ">.99" if prob >= 0.995 else f"{prob:.2f}".lstrip("0")


@checked
def item_person_map(result: xr.DataTree, *, level: float = 0.9, most: int = 60) -> Plots:
    """Draw persons and items on one scale (a Wright map): a histogram of the abilities above the
    difficulties of the items, the hardest on top.

    An item tells most about persons whose ability is its difficulty. Where the histogram has
    persons and no item is near, their abilities are hardly told apart.

    Parameters
    ----------
    result : xarray.DataTree
        From `raters.fit`, of item responses, right or wrong or graded.
    level : float
        Posterior probability of the (equal-tailed) intervals.
    most : int
        Largest number of items to show; of more, the hardest and the easiest.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have ``ability`` (person), and ``difficulty``, ``difficulty_low`` and
        ``difficulty_high`` (item; of graded responses also step).

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> responses = rt.Responses.from_wide(
    ...     {"who": ["ann", "bob", "eve"], "q1": [1, 1, 0], "q2": [1, 0, 0]}, person="who")
    >>> result = rt.fit(rt.Rasch(), responses, rt.PGEM(), seed=0, progress=False)
    >>> rt.figures.item_person_map(result).savefig("map.png")        # doctest: +SKIP
    """
    share("level", level)
    whole("most", most, least=2)
    base.check_draws(result)
    posterior = result["posterior"].dataset
    if not {"ability", "difficulty"} <= set(posterior):
        problem = f"has no abilities and difficulties; it has {sorted(map(str, posterior))}"
        refuse("result", problem=problem, expected="fit item responses")
    data = base.summary(posterior["difficulty"], level)
    steps = data["difficulty"].dims[1:]
    order = np.argsort(-data["difficulty"].mean(steps).values, kind="stable")
    rows = base.rows_of(data["item"].values, order, most)
    data = data.isel(item=rows.shown).assign(ability=posterior["ability"].mean(("chain", "draw")))
    ability = data["ability"].values
    figure = base.new_figure(8.5, 1.6 + rows.height)
    ratios = [1.4, max(rows.height - 0.5, 1.0)]
    above, axes = figure.subplots(2, sharex=True, height_ratios=ratios)
    for panel in (above, axes):
        base.plain(panel, "y")
    above.hist(ability, bins=min(30, max(5, len(ability) // 3)), color=GREY, alpha=0.7)
    above.set_ylabel("persons")
    base.name_rows(axes, rows)
    flat = data.stack(each=steps, create_index=False) if steps else data.expand_dims("each", -1)
    for step in range(flat.sizes["each"]):
        base.intervals(axes, rows.position, flat.isel(each=step), "difficulty")
    if steps:
        names = ", ".join(map(str, data[steps[0]].values[:6]))
        axes.set_title(f"steps into {names}, from left to right", loc="right", fontsize=9)
    axes.set_xlabel("ability of a person · difficulty of an item")
    title = f"Abilities, and difficulties with {level:.0%} intervals"
    above.set_title(title, loc="left", fontsize=11)
    return base.collected(data, figure, [above, axes], "panel", ["persons", "items"], 1)


@checked
def profiles(result: xr.DataTree) -> Plots:
    """Draw the rewards (worths, coefficients) of each type with intervals, types side by side.

    Rows are in the order of the mean over annotators, which a grey tick marks in each panel: a
    reward far from its tick distinguishes the type. The largest six types are shown, and the 40
    items (or features) on which types differ most.

    Parameters
    ----------
    result : xarray.DataTree
        From `raters.fit`, of `MixtureBTL`, `ContextualBTL` or `MixturePlackettLuce`.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have ``reward`` (``worth``, ``coefficient``) with ``_low`` and ``_high`` (item,
        type), their mean over annotators ``common`` (item), and ``type_weight`` (type).

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> votes, _ = rt.datasets.preference_types(num_items=4, num_annotators=30, votes_each=20,
    ...                                         num_types=2, seed=0)
    >>> result = rt.fit(rt.MixtureBTL(), votes, rt.PGEM(), seed=0, progress=False)
    >>> rt.figures.profiles(result).savefig("profiles.png")        # doctest: +SKIP
    """
    base.check_draws(result)
    if "types" not in result.children:
        expected = "fit a model with types of annotators"
        refuse("result", problem="has no types", expected=expected, instead="rt.MixtureBTL()")
    posterior = result["posterior"].dataset
    site = next(name for name in ("reward", "worth", "coefficient") if name in posterior)
    axis = "feature" if site == "coefficient" else "item"
    data = base.summary(posterior[site], 0.9).transpose(axis, "type")
    weight = posterior["type_weight"].mean(("chain", "draw"))
    data["common"] = (data[site] * weight).sum("type")
    data["type_weight"] = weight
    variance = ((data[site] - data["common"]) ** 2 * weight).sum("type").values
    chosen = np.sort(np.argsort(-variance, kind="stable")[:_MOST_ROWS])
    chosen = chosen[np.argsort(-data["common"].values[chosen], kind="stable")]
    shown = data.isel({axis: chosen, "type": slice(_MOST_PANELS)})
    types, names = shown["type"].values, [base.short(name) for name in shown[axis].values]
    width = 0.9 + 0.075 * max(map(len, names)) + max(1.6 * len(types), 6.0)
    figure = base.new_figure(min(width, 13.0), 1.6 + 0.22 * max(len(names), 5))
    panels = figure.subplots(1, len(types), sharex=True, sharey=True, squeeze=False)[0].tolist()
    rows = np.arange(len(names))
    panels[0].set_yticks(rows, names, fontsize=9)
    panels[0].set_ylim(len(names) - 0.3, -0.7)
    style: Style = {"color": "#8C8C8C", "markersize": 9, "markeredgewidth": 1.4, "zorder": 1}
    for index, (panel, name) in enumerate(zip(panels, types, strict=True)):
        of_type = shown.isel(type=index)
        panel.axvline(0, color=GREY, linewidth=0.8, linestyle=":", zorder=0)
        panel.plot(shown["common"], rows, "|", **style)
        base.intervals(panel, rows, of_type, site, color=COLOURS[index % len(COLOURS)])
        title = f"type {name}: {float(of_type['type_weight']):.0%}"
        panel.set_title(title, fontsize=10, loc="left")
        base.plain(panel, "y")
        panel.tick_params(axis="y", length=0)
    zero = "per unit of the feature" if axis == "feature" else "0 is the type's average item"
    figure.supxlabel(f"{site} (logits; {zero}); grey: mean over annotators", fontsize=9)
    title = f"{plural(site).capitalize()} of each type: posterior mean and 90% interval"
    if len(types) < data.sizes["type"]:
        title += f", the {len(types)} largest of {data.sizes['type']} types"
    if len(names) < data.sizes[axis]:
        title += f", the {len(names)} of {data.sizes[axis]} {plural(axis)} that differ most"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return base.collected(shown, figure, panels, "type", types, len(types))


# Columns of the table of a board.
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

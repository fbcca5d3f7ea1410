"""Figures of a fit, its audit, campaigns and calibration.

Each returns an ArviZ ``PlotCollection``: ``.savefig(path)`` saves it, ``.data`` is the dataset that is drawn, and
``.get_viz("figure")`` the Matplotlib figure, which belongs to nobody. As the last expression of a notebook's cell it shows
itself; ``.set_dpi(70)`` makes it smaller.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

from raters._check import whole
from raters._curves import learning_curves, reliability
from raters._plots import (
    FAINT,
    GREY,
    VERDICTS,
    Plots,
    Rows,
    cell,
    check_draws,
    collected,
    collected_over,
    height,
    name_rows,
    plain,
    rows_of,
    short,
)
from raters.audit import Audit, check_audit
from raters.errors import SettingError

__all__ = ["auditor", "competences", "learning_curves", "ranks", "reliability", "rewards"]

# Up to so many annotators, intervals in the scatter can be told apart.
_FEW = 60
# Up to so many items, the numbers fit into the cells of the ranks; more ranks than these are put together.
_NUMBERED_RANKS, _MOST_RANKS = 12, 60
# Points between the ranks and their titles, for the heads of the columns of numbers.
_ABOVE = 18


def rewards(result: xr.DataTree, *, level: float = 0.9, most: int = 60) -> Plots:
    """Forest of the items' rewards, highest on top.

    Parameters
    ----------
    result : xarray.DataTree
        From `raters.fit`.
    level : float
        Posterior probability of the (equal-tailed) intervals.
    most : int
        Items to show; of more, the highest and the lowest.

    Returns
    -------
    arviz_plots.PlotCollection

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, rt.PGEM(), seed=0, progress=False)
    >>> rt.figures.rewards(result).savefig("rewards.png")        # doctest: +SKIP
    """
    draws, names = _best_first(result)
    rows = rows_of(names, most, (most + 1) // 2)
    draws = draws[rows.shown]
    low, high = np.quantile(draws, ((1 - level) / 2, (1 + level) / 2), axis=1)
    values = {"reward": draws.mean(1), "reward_low": low, "reward_high": high}
    data = xr.Dataset({name: ("item", value) for name, value in values.items()}, {"item": names[rows.shown]}, {"level": level})
    figure, axes = _forest(rows)
    axes.hlines(rows.place, low, high, color=VERDICTS["keep"][0], linewidth=1.6)
    axes.plot(data["reward"], rows.place, "o", color=VERDICTS["keep"][0], markersize=4.5)
    axes.axvline(0, color=GREY, linewidth=0.8, linestyle=":", zorder=0)
    axes.set_xlabel("reward (logits; 0 is the average item)")
    axes.set_title(f"Which items are preferred: posterior mean reward and {level:.0%} interval", loc="left", fontsize=11)
    return collected(data, figure, axes)


def _best_first(result: xr.DataTree) -> tuple[np.ndarray, np.ndarray]:
    """Draws of the rewards, shape (item, sample), and the items' names, the highest on average first."""
    check_draws(result)
    posterior = result["posterior"]
    if "reward" not in posterior:
        raise SettingError(
            f"there are no rewards to draw; this result has {sorted(map(str, posterior))}. "
            "Fit comparisons, such as rt.fit(rt.BTL(), votes, seed=0); label_figures draws audits of labels"
        )
    if "type" in posterior["reward"].dims:
        raise SettingError("this result has rewards for each type of annotator; write type_figures.profiles(result)")
    reward = posterior["reward"].stack(sample=("chain", "draw")).transpose("item", "sample")
    order = np.argsort(-reward.values.mean(1), kind="stable")
    return reward.values[order], reward["item"].values[order]


def ranks(result: xr.DataTree, *, top: int | None = None, most: int = 60) -> Plots:
    """Where each item stands: the probability of every rank, of being the best, and of being among the `top`.

    A row is an item, the best on average (over the draws) on top; a column is a rank, or, of many, some ranks that follow one
    another; the shade is the probability that the item has it. A dark narrow row is an item whose place is settled, a pale
    wide one may stand anywhere in it. On the right, P(best) and P(among the `top`).

    Parameters
    ----------
    result : xarray.DataTree
        From `raters.fit`, of comparisons.
    top : int, optional
        Ranks that count as the top; 3 by default, or all of fewer.
    most : int
        Items to show; of more, the best (two thirds) and the worst.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have ``probability`` (item, rank), ``mean_rank``, ``p_best`` and ``p_top`` (item). Where ranks are put
        together, ``rank`` is the first of them and ``last_rank`` the last.

    Raises
    ------
    SettingError
        When the result has no rewards, or has them for types of annotators, or `top` is not a number of its items.

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
    if top > len(names):
        raise SettingError(f"top={top} is not possible; there are {len(names)} items, such as top={min(3, len(names))}")
    place = np.argsort(np.argsort(-draws, axis=0, kind="stable"), axis=0) + 1
    order = np.argsort(place.mean(1), kind="stable")
    rows = rows_of(names[order], most, 2 * most // 3)
    data = _rank_table(place[order[rows.shown]], rows.names[rows.shown], len(names), top)
    figure = Figure(figsize=(11, height(rows)), layout="constrained", dpi=150)
    left, right = figure.subplots(1, 2, width_ratios=(2.2, 1), sharey=True)
    _rank_cells(figure, left, data, rows)
    _rank_bars(right, data, rows)
    left.set_title("Who stands where: the probability of each rank", loc="left", fontsize=11, pad=_ABOVE)
    return collected_over(data, figure, [left, right], "column", ["ranks", "best"], 2)


def _rank_table(place: np.ndarray, names: np.ndarray, number: int, top: int) -> xr.Dataset:
    """What is drawn, from ranks of shape (item, sample)."""
    width = -(-number // _MOST_RANKS)
    first = np.arange(1, number + 1, width)
    share = np.stack([((place - 1) // width == column).mean(1) for column in range(len(first))], axis=1)
    single = {"mean_rank": place.mean(1), "p_best": (place == 1).mean(1), "p_top": (place <= top).mean(1)}
    return xr.Dataset(
        {"probability": (("item", "rank"), share)} | {name: ("item", value) for name, value in single.items()},
        {"item": names, "rank": first, "last_rank": ("rank", np.minimum(first + width - 1, number))},
        {"top": top, "items": number},
    )


def _rank_cells(figure: Figure, axes: Axes, data: xr.Dataset, rows: Rows) -> None:
    """Cells shaded by probability; with few items also numbered, with many with a scale of shades."""
    share = data["probability"].values
    numbered = data.attrs["items"] <= _NUMBERED_RANKS
    edges = np.append(data["rank"], data["last_rank"][-1] + 1) - 0.5
    # One scale for both blocks; without numbers, such that what is spread over many ranks is seen beside what is settled.
    scale = Normalize(0, 1) if numbered else PowerNorm(0.5, 0, share.max())
    for part in filter(len, (np.arange(rows.head), np.arange(rows.head, len(share)))):
        heights = np.append(rows.place[part], rows.place[part[-1]] + 1) - 0.5
        shades = axes.pcolormesh(edges, heights, share[part], cmap="Blues", norm=scale)
    if numbered:
        for (row, column), one in np.ndenumerate(share):
            colour = "white" if one > 0.55 else "black"
            if one > 0:
                axes.text(column + 1, float(rows.place[row]), cell(one), ha="center", va="center", fontsize=8, color=colour)
    else:
        of = "rank" if len(share.T) == data.attrs["items"] else f"one of {int(data['last_rank'][0])} ranks"
        figure.colorbar(shades, ax=axes, location="bottom", label=f"P({of})", fraction=0.03, aspect=40, pad=0.01)
    name_rows(axes, rows)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, nbins=12))
    axes.set(xlabel="rank (1: best)", xlim=(edges[0], edges[-1]))
    axes.tick_params(axis="y", length=0)
    axes.spines[:].set_color(FAINT)


def _rank_bars(axes: Axes, data: xr.Dataset, rows: Rows) -> None:
    """P(best) inside P(among the top), and both as numbers."""
    dark, light = "#0072B2", "#A6D3EE"
    axes.barh(rows.place, data["p_top"], height=0.75, color=light)
    axes.barh(rows.place, data["p_best"], height=0.4, color=dark)
    columns = {"p_best": (1.14, "best", dark), "p_top": (1.34, f"top {data.attrs['top']}", "#3C7FA8")}
    across = axes.get_yaxis_transform()
    for name, (where, title, colour) in columns.items():
        axes.text(where, 1, title, transform=axes.transAxes, ha="right", va="bottom", fontsize=9, color=colour)
        for place, one in zip(rows.place, data[name].values, strict=True):
            if one > 0:
                axes.text(where, place, cell(one), transform=across, ha="right", va="center", fontsize=8, color=colour)
    axes.set(xlim=(0, 1), xlabel="probability")
    axes.tick_params(axis="y", length=0)
    plain(axes, "x")
    axes.set_title(f"Best, and among the best {data.attrs['top']}", loc="left", fontsize=11, pad=_ABOVE)


def competences(found: Audit, *, most: int = 60) -> Plots:
    """Forest of the annotators' competences, least competent on top, coloured by verdict.

    Parameters
    ----------
    found : Audit
        From `raters.audit`.
    most : int
        Annotators to show; of more, the least competent (two thirds) and the most competent.

    Returns
    -------
    arviz_plots.PlotCollection

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> votes, _ = rt.datasets.crowd(num_annotators=10, num_votes=3000, seed=0)
    >>> model = rt.ExtendedBTL(competence="signed")
    >>> found = rt.audit(model, rt.fit(model, votes, rt.PGEM(), seed=0, progress=False))
    >>> rt.figures.competences(found).savefig("competences.png")        # doctest: +SKIP
    """
    check_audit(found, "the first argument")
    table = found.table.isel(annotator=np.argsort(found.table["competence"].values, kind="stable"))
    names = table["annotator"].values
    rows = rows_of(names, most, 2 * most // 3)
    figure, axes = _forest(rows)
    data = table[["competence", "competence_low", "competence_high", "verdict"]].isel(annotator=rows.shown)
    data = data.assign_attrs(level=found.level, threshold=found.threshold)
    for verdict, (colour, marker) in VERDICTS.items():
        of = data["verdict"].values == verdict
        part, place = data.isel(annotator=of), rows.place[of]
        axes.hlines(place, part["competence_low"], part["competence_high"], color=colour, linewidth=1.6)
        axes.plot(part["competence"], place, marker, color=colour, markersize=6, linestyle="none")
    axes.axvline(0, color=GREY, linewidth=0.8, linestyle=":", zorder=0)
    axes.axvline(found.threshold, color=GREY, linewidth=1, linestyle="--", zorder=0)
    ends_of_scale = "1: reference, 0: guesser" if found.confusion is None else "1: always right, 0: spammer"
    axes.set_xlabel(f"competence ({ends_of_scale}, below 0: adversary; dashed: threshold {found.threshold:g})", fontsize=9)
    axes.set_title(f"Who can be trusted: posterior mean competence and {found.level:.0%} interval", loc="left", fontsize=11)
    _legend(figure, found)
    return collected(data, figure, axes)


def auditor(found: Audit, *, most: int = 18) -> Plots:
    """What an auditor decides on: accuracy against the number of votes, and what is wrong with the least trusted.

    On the left, how often each annotator would choose the better of two random items (of labels: how often they are right),
    against the number of votes that says so: trouble in the lower right is established, trouble on the left may be chance. On
    the right, the least trusted one by one: guessing or spam (drop them) told from an adversary (whose votes can be turned).

    Parameters
    ----------
    found : Audit
        From `raters.audit`.
    most : int
        Annotators to show on the right.

    Returns
    -------
    arviz_plots.PlotCollection

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> votes, _ = rt.datasets.crowd(num_annotators=10, num_votes=3000, seed=0)
    >>> model = rt.ExtendedBTL(competence="signed")
    >>> found = rt.audit(model, rt.fit(model, votes, rt.PGEM(), seed=0, progress=False))
    >>> rt.figures.auditor(found).savefig("auditor.png")        # doctest: +SKIP
    """
    check_audit(found, "the first argument")
    worst_first = np.lexsort((found.table["competence"].values, -found.table["p_below"].values))
    table = found.table.isel(annotator=worst_first)
    figure = Figure(figsize=(11.5, 5.8), layout="constrained", dpi=150)
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    _accuracy_by_votes(left, table)
    _kinds_of_trouble(right, table.isel(annotator=slice(most)), found.threshold)
    count = table.sizes["annotator"]
    few = f"the {most} least trusted" if count > most else "all, least trusted first"
    right.set_title(f"What is wrong: {few}", loc="left", fontsize=11)
    figure.suptitle(f"Audit of {count} annotators", x=0.01, ha="left", fontsize=12)
    _legend(figure, found)
    return collected_over(
        table.assign_attrs(threshold=found.threshold), figure, [left, right], "column", ["accuracy", "trouble"], 2
    )


def _accuracy_by_votes(axes: Axes, table: xr.Dataset) -> None:
    """Points by verdict; with few annotators also their intervals, and names where there is room."""
    votes, accuracy, verdicts = (table[name].values for name in ("votes", "accuracy", "verdict"))
    for depth, (verdict, (colour, marker)) in enumerate(VERDICTS.items()):
        rows = verdicts == verdict
        axes.scatter(
            votes[rows], accuracy[rows], s=32, color=colour, marker=marker, alpha=0.75, linewidths=0, zorder=2 + depth % 3
        )
    if len(votes) <= _FEW:
        colours = [VERDICTS[verdict][0] for verdict in verdicts]
        axes.vlines(votes, table["accuracy_low"], table["accuracy_high"], colors=colours, linewidth=1, alpha=0.6)
    if votes.min() > 0 and votes.max() > 4 * votes.min():
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    of_labels = "p_spammer" in table
    if of_labels:
        axes.set(xlabel="labels given", ylabel="accuracy (probability that a label is right)")
    else:
        axes.axhline(0.5, color=GREY, linewidth=1, linestyle="--", zorder=0)
        axes.set(xlabel="votes", ylabel="probability of choosing the better item (dashed: a coin)")
    axes.set_title(f"How good, and from how many {'labels' if of_labels else 'votes'}", loc="left", fontsize=11)
    plain(axes)
    _name_points(axes, [row for row in range(len(votes)) if verdicts[row] in ("drop", "review")], table)


def _name_points(axes: Axes, rows: list[int], table: xr.Dataset) -> None:
    """Names beside the points of `rows`, the first ones first, where they run into no other name or point."""
    to_share = axes.transData + axes.transAxes.inverted()
    at = to_share.transform(np.column_stack([table["votes"].values, table["accuracy"].values]))
    occupied = at.copy()
    for row in rows:
        name, (x, y) = short(table["annotator"].values[row]), at[row]
        width, on_right = 0.012 + 0.013 * len(name), x < 0.85
        low = x + 0.012 if on_right else x - 0.012 - width
        inside = (occupied[:, 0] > low - 0.006) & (occupied[:, 0] < low + width + 0.006) & (abs(occupied[:, 1] - y) < 0.03)
        if not inside.any():
            occupied = np.vstack([occupied, [[low, y], [low + width / 2, y], [low + width, y]]])
            shift, side = (6, "left") if on_right else (-6, "right")
            point = (table["votes"].values[row], table["accuracy"].values[row])
            axes.annotate(name, point, xytext=(shift, -3), textcoords="offset points", fontsize=8, ha=side)


def _kinds_of_trouble(axes: Axes, table: xr.Dataset, threshold: float) -> None:
    """Three probabilities for each annotator, one row each."""
    place = np.arange(table.sizes["annotator"])
    idle = ("p_spammer", "spammer") if "p_spammer" in table else ("p_guessing", "guessing")
    kinds = {
        "p_below": (f"competence below {threshold:g}", "#000000", "s"),
        idle[0]: (idle[1], "#56B4E9", "o"),
        "p_adversarial": ("adversarial", "#CC79A7", "^"),
    }
    axes.hlines(place, 0, np.max([table[name].values for name in kinds], axis=0), color=FAINT, linewidth=2)
    for name, (label, colour, marker) in kinds.items():
        axes.plot(table[name].values, place, marker, color=colour, markersize=6, label=label, clip_on=False, alpha=0.9)
    axes.set_yticks(place, [short(name) for name in table["annotator"].values], fontsize=9)
    for text, verdict in zip(axes.get_yticklabels(), table["verdict"].values, strict=True):
        text.set_color(VERDICTS[verdict][0])
    axes.set(xlim=(0, 1.02), ylim=(max(place[-1], 5) + 0.7, -0.7), xlabel="posterior probability (names coloured by verdict)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.11), ncols=3, frameon=False)


def _forest(rows: Rows) -> tuple[Figure, Axes]:
    """A canvas with the rows named."""
    figure = Figure(figsize=(8.5, height(rows)), layout="constrained", dpi=150)
    axes = figure.subplots()
    plain(axes, "y")
    name_rows(axes, rows)
    return figure, axes


def _legend(figure: Figure, found: Audit, place: Any = "outside lower center") -> None:
    verdicts, number = np.unique(found.table["verdict"].values.astype(str), return_counts=True)
    count = dict(zip(verdicts.tolist(), number.tolist(), strict=True))
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="none", label=f"{verdict} ({count[verdict]})")
        for verdict, (colour, marker) in VERDICTS.items()
        if verdict in count
    ]
    figure.legend(
        handles=handles,
        title="verdict (number of annotators)",
        fontsize=9,
        title_fontsize=9,
        ncols=4,
        loc=place,
    )

"""Figures of a fit and its audit. Each returns a Matplotlib figure that belongs to nobody: save it, or show it."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

from raters.audit import Audit

# Okabe and Ito's palette, told apart under every common colour blindness; markers differ as well.
_VERDICTS = {
    "keep": ("#0072B2", "o"),
    "review": ("#E69F00", "s"),
    "drop": ("#D55E00", "X"),
    "not enough votes": ("#8C8C8C", "."),
}
_GREY, _FAINT = "#595959", "#E5E5E5"
# Up to so many annotators, intervals in the scatter can be told apart.
_FEW = 60
_NAME_LENGTH = 28


def rewards(result: xr.DataTree, *, level: float = 0.9, most: int = 60) -> Figure:
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
    matplotlib.figure.Figure

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, rt.PGEM(), seed=0, progress=False)
    >>> rt.figures.rewards(result).savefig("rewards.png")        # doctest: +SKIP
    """
    reward = result["posterior"]["reward"].stack(sample=("chain", "draw")).transpose("item", "sample")
    order = np.argsort(-reward.values.mean(1), kind="stable")
    draws, names = reward.values[order], reward["item"].values[order]
    low, high = np.quantile(draws, ((1 - level) / 2, (1 + level) / 2), axis=1)
    figure, axes, shown, place = _forest(names, most, (most + 1) // 2)
    centre = draws.mean(1)
    axes.hlines(place, low[shown], high[shown], color=_VERDICTS["keep"][0], linewidth=1.6)
    axes.plot(centre[shown], place, "o", color=_VERDICTS["keep"][0], markersize=4.5)
    axes.axvline(0, color=_GREY, linewidth=0.8, linestyle=":", zorder=0)
    axes.set_xlabel("reward (logits; 0 is the average item)")
    axes.set_title(f"Which items are preferred: posterior mean reward and {level:.0%} interval", loc="left", fontsize=11)
    return figure


def competences(found: Audit, *, threshold: float = 0.25, level: float = 0.9, most: int = 60) -> Figure:
    """Forest of the annotators' competences, least competent on top, coloured by verdict.

    Parameters
    ----------
    found : Audit
        From `raters.audit`.
    threshold, level : float
        Those of the audit; they are drawn and named.
    most : int
        Annotators to show; of more, the least competent (two thirds) and the most competent.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> votes, _ = rt.datasets.crowd(num_annotators=10, num_votes=3000, seed=0)
    >>> model = rt.ExtendedBTL(competence="signed")
    >>> found = rt.audit(model, rt.fit(model, votes, rt.PGEM(), seed=0, progress=False))
    >>> rt.figures.competences(found).savefig("competences.png")        # doctest: +SKIP
    """
    table = found.table.isel(annotator=np.argsort(found.table["competence"].values, kind="stable"))
    names = table["annotator"].values
    figure, axes, shown, place = _forest(names, most, 2 * most // 3)
    part = {name: table[name].values[shown] for name in ("competence", "competence_low", "competence_high", "verdict")}
    for verdict, (colour, marker) in _VERDICTS.items():
        rows = part["verdict"] == verdict
        axes.hlines(place[rows], part["competence_low"][rows], part["competence_high"][rows], color=colour, linewidth=1.6)
        axes.plot(part["competence"][rows], place[rows], marker, color=colour, markersize=6, linestyle="none")
    axes.axvline(0, color=_GREY, linewidth=0.8, linestyle=":", zorder=0)
    axes.axvline(threshold, color=_GREY, linewidth=1, linestyle="--", zorder=0)
    ends_of_scale = "1: reference, 0: guesser" if found.confusion is None else "1: always right, 0: spammer"
    axes.set_xlabel(f"competence ({ends_of_scale}, below 0: adversary; dashed: threshold {threshold:g})", fontsize=9)
    axes.set_title(f"Who can be trusted: posterior mean competence and {level:.0%} interval", loc="left", fontsize=11)
    _legend(figure, found)
    return figure


def auditor(found: Audit, *, threshold: float = 0.25, most: int = 18) -> Figure:
    """What an auditor decides on: accuracy against the number of votes, and what is wrong with the least trusted.

    On the left, how often each annotator would choose the better of two random items (of labels: how often they are right),
    against the number of votes that says so: trouble in the lower right is established, trouble on the left may be chance. On
    the right, the least trusted one by one: guessing or spam (drop them) told from an adversary (whose votes can be turned).

    Parameters
    ----------
    found : Audit
        From `raters.audit`.
    threshold : float
        That of the audit; it is named.
    most : int
        Annotators to show on the right.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> votes, _ = rt.datasets.crowd(num_annotators=10, num_votes=3000, seed=0)
    >>> model = rt.ExtendedBTL(competence="signed")
    >>> found = rt.audit(model, rt.fit(model, votes, rt.PGEM(), seed=0, progress=False))
    >>> rt.figures.auditor(found).savefig("auditor.png")        # doctest: +SKIP
    """
    worst_first = np.lexsort((found.table["competence"].values, -found.table["p_below"].values))
    table = found.table.isel(annotator=worst_first)
    figure = Figure(figsize=(11.5, 5.8), layout="constrained", dpi=150)
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    _accuracy_by_votes(left, table)
    _kinds_of_trouble(right, table.isel(annotator=slice(most)), threshold)
    count = table.sizes["annotator"]
    few = f"the {most} least trusted" if count > most else "all, least trusted first"
    right.set_title(f"What is wrong: {few}", loc="left", fontsize=11)
    figure.suptitle(f"Audit of {count} annotators", x=0.01, ha="left", fontsize=12)
    _legend(figure, found)
    return figure


def _accuracy_by_votes(axes: Axes, table: xr.Dataset) -> None:
    """Points by verdict; with few annotators also their intervals, and names where there is room."""
    votes, accuracy, verdicts = (table[name].values for name in ("votes", "accuracy", "verdict"))
    for depth, (verdict, (colour, marker)) in enumerate(_VERDICTS.items()):
        rows = verdicts == verdict
        axes.scatter(
            votes[rows], accuracy[rows], s=32, color=colour, marker=marker, alpha=0.75, linewidths=0, zorder=2 + depth % 3
        )
    if len(votes) <= _FEW:
        colours = [_VERDICTS[verdict][0] for verdict in verdicts]
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
        axes.axhline(0.5, color=_GREY, linewidth=1, linestyle="--", zorder=0)
        axes.set(xlabel="votes", ylabel="probability of choosing the better item (dashed: a coin)")
    axes.set_title(f"How good, and from how many {'labels' if of_labels else 'votes'}", loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=_FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    _name_points(axes, [row for row in range(len(votes)) if verdicts[row] in ("drop", "review")], table)


def _name_points(axes: Axes, rows: list[int], table: xr.Dataset) -> None:
    """Names beside the points of `rows`, the first ones first, where they run into no other name or point."""
    to_share = axes.transData + axes.transAxes.inverted()
    at = to_share.transform(np.column_stack([table["votes"].values, table["accuracy"].values]))
    occupied = at.copy()
    for row in rows:
        name, (x, y) = _short(table["annotator"].values[row]), at[row]
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
    axes.hlines(place, 0, np.max([table[name].values for name in kinds], axis=0), color=_FAINT, linewidth=2)
    for name, (label, colour, marker) in kinds.items():
        axes.plot(table[name].values, place, marker, color=colour, markersize=6, label=label, clip_on=False, alpha=0.9)
    axes.set_yticks(place, [_short(name) for name in table["annotator"].values], fontsize=9)
    for text, verdict in zip(axes.get_yticklabels(), table["verdict"].values, strict=True):
        text.set_color(_VERDICTS[verdict][0])
    axes.set(xlim=(0, 1.02), ylim=(max(place[-1], 5) + 0.7, -0.7), xlabel="posterior probability (names coloured by verdict)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.11), ncols=3, frameon=False)


def ends(number: int, most: int, head: int | None = None) -> tuple[np.ndarray, int, int]:
    """Positions of the first and last rows to show, how many of them come first, and how many rows that leaves out.

    Parameters
    ----------
    number, most : int
        Rows there are, and rows to show.
    head : int, optional
        Of those to show, how many from the top; half of them by default.

    Examples
    --------
    >>> ends(10, 4)
    (array([0, 1, 8, 9]), 2, 6)
    """
    if number <= most:
        return np.arange(number), number, 0
    head = (most + 1) // 2 if head is None else head
    return np.r_[:head, number - (most - head) : number], head, number - most


def _forest(names: np.ndarray, most: int, head: int) -> tuple[Figure, Axes, np.ndarray, np.ndarray]:
    """A canvas with a row for each name to show, which rows those are, and how high each stands."""
    shown, head, gap = ends(len(names), most, head)
    place = np.arange(len(shown), dtype=float)
    place[head:] += 1  # a blank row stands for those left out
    figure = Figure(figsize=(8.5, 1.9 + 0.21 * (len(shown) + bool(gap))), layout="constrained", dpi=150)
    axes = figure.subplots()
    axes.set_yticks(place, [_short(name) for name in names[shown]], fontsize=9)
    axes.set_ylim(place[-1] + 0.7, -0.7)
    axes.grid(axis="y", color=_FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if gap:
        axes.axhspan(head - 0.5, head + 0.5, color="#F0F0F0", zorder=0)
        words = f"… {gap} of {len(names)} not shown …"
        axes.text(0.5, head, words, transform=axes.get_yaxis_transform(), ha="center", va="center", fontsize=9)
    return figure, axes, shown, place


def _legend(figure: Figure, found: Audit, place: Any = "outside lower center") -> None:
    verdicts, number = np.unique(found.table["verdict"].values.astype(str), return_counts=True)
    count = dict(zip(verdicts.tolist(), number.tolist(), strict=True))
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="none", label=f"{verdict} ({count[verdict]})")
        for verdict, (colour, marker) in _VERDICTS.items()
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


def _short(name: Any) -> str:
    text = str(name)
    return text if len(text) <= _NAME_LENGTH else text[: _NAME_LENGTH - 1] + "…"

"""Figures of a fit and its audit. Each returns a Matplotlib figure that belongs to nobody: save it, or show it."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from raters.audit import Audit

# Okabe and Ito's palette, told apart under every common colour blindness; markers differ as well.
_VERDICTS = {
    "keep": ("#0072B2", "o"),
    "review": ("#E69F00", "s"),
    "drop": ("#D55E00", "X"),
    "not enough votes": ("#8C8C8C", "."),
}
_GREY = "#595959"
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
    shown, gap = _ends(len(names), most)
    figure, axes = _forest_canvas(names, shown, gap)
    place = _places(len(shown), gap)
    centre = draws.mean(1)
    axes.hlines(place, low[shown], high[shown], color=_VERDICTS["keep"][0], linewidth=1.6)
    axes.plot(centre[shown], place, "o", color=_VERDICTS["keep"][0], markersize=4.5)
    axes.axvline(0, color=_GREY, linewidth=0.8, linestyle=":", zorder=0)
    axes.set_xlabel("reward (logits; 0 is the average item)")
    _title(axes, f"Which items are preferred: posterior mean reward and {level:.0%} interval", "items", shown, gap)
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
        Annotators to show; of more, the least and the most competent.

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
    shown, gap = _ends(len(names), most)
    figure, axes = _forest_canvas(names, shown, gap)
    place = _places(len(shown), gap)
    part = {name: table[name].values[shown] for name in ("competence", "competence_low", "competence_high", "verdict")}
    for verdict, (colour, marker) in _VERDICTS.items():
        rows = part["verdict"] == verdict
        axes.hlines(place[rows], part["competence_low"][rows], part["competence_high"][rows], color=colour, linewidth=1.6)
        axes.plot(part["competence"][rows], place[rows], marker, color=colour, markersize=6, linestyle="none")
    axes.axvline(0, color=_GREY, linewidth=0.8, linestyle=":", zorder=0)
    axes.axvline(threshold, color=_GREY, linewidth=1, linestyle="--", zorder=0)
    axes.set_xlabel(
        f"competence (below 0: adversary; dotted 0: guesser; dashed: threshold {threshold:g}; 1: reference annotator)"
    )
    _title(axes, f"Who can be trusted: posterior mean competence and {level:.0%} interval", "annotators", shown, gap)
    _legend(axes, found)
    return figure


def auditor(found: Audit, *, most_names: int = 12) -> Figure:
    """What an auditor decides on: accuracy against the number of votes, and what kind of trouble the worst ones are.

    On the left, how often each annotator would choose the better of two random items, against the number of votes that says
    so: trouble in the lower right is established, trouble in the lower left may be chance. On the right, the probability of
    guessing against that of voting for the worse item on purpose: guessers should be dropped, an adversary's votes can be
    turned round.

    Parameters
    ----------
    found : Audit
        From `raters.audit`.
    most_names : int
        The least trusted annotators to name, of those that are not kept.

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
    figure = Figure(figsize=(11, 5.4), layout="constrained", dpi=150)
    left, right = figure.subplots(1, 2)
    table = {name: found.table[name].values for name in found.table.data_vars}
    _scatter(left, table["votes"], table["accuracy"], table)
    if len(table["votes"]) <= 60:
        colours = [_VERDICTS[verdict][0] for verdict in table["verdict"]]
        left.vlines(table["votes"], table["accuracy_low"], table["accuracy_high"], colors=colours, linewidth=1, alpha=0.6)
    left.axhline(0.5, color=_GREY, linewidth=1, linestyle="--", zorder=0)
    if (table["votes"] > 0).all() and table["votes"].max() > 3 * table["votes"].min():
        left.set_xscale("log")
    left.set_xlabel("votes")
    left.set_ylabel("probability of choosing the better item (dashed: coin)")
    left.set_title("How good, and how sure", loc="left", fontsize=11)
    _scatter(right, table["p_guessing"], table["p_adversarial"], table)
    right.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xlabel="P(guessing)", ylabel="P(adversarial): votes for the worse item")
    right.set_title("Which kind of trouble", loc="left", fontsize=11)
    names = found.table["annotator"].values
    troubled = [row for row in np.argsort(-table["p_below"], kind="stable") if table["verdict"][row] in ("drop", "review")]
    for axes, x, y in ((left, "votes", "accuracy"), (right, "p_guessing", "p_adversarial")):
        _name(axes, [(_short(names[row]), table[x][row], table[y][row]) for row in troubled[:most_names]])
    named = f"; the {most_names} least trusted of {len(troubled)} are named" if len(troubled) > most_names else ""
    figure.suptitle(f"Audit of {len(names)} annotators: whom to drop or review{named}", x=0.01, ha="left", fontsize=12)
    _legend(right, found)
    return figure


def _ends(number: int, most: int) -> tuple[np.ndarray, int]:
    """Positions to show, and how many that leaves out between the two halves."""
    if number <= most:
        return np.arange(number), 0
    head = (most + 1) // 2
    return np.r_[:head, number - (most - head) : number], number - most


def _places(shown: int, gap: int) -> np.ndarray:
    """Heights of the rows; a blank row stands for those left out."""
    place = np.arange(shown, dtype=float)
    if gap:
        place[(shown + 1) // 2 :] += 1
    return place


def _forest_canvas(names: np.ndarray, shown: np.ndarray, gap: int) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(8.5, 1.7 + 0.21 * (len(shown) + bool(gap))), layout="constrained", dpi=150)
    axes = figure.subplots()
    place = _places(len(shown), gap)
    axes.set_yticks(place, [_short(name) for name in names[shown]], fontsize=9)
    axes.set_ylim(place[-1] + 0.7, -0.7)
    axes.grid(axis="y", color="#E5E5E5", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if gap:
        half = (len(shown) + 1) // 2
        axes.axhspan(half - 0.5, half + 0.5, color="#F0F0F0", zorder=0)
        axes.text(0.5, half, f"… {gap} not shown …", transform=axes.get_yaxis_transform(), ha="center", va="center", fontsize=9)
    return figure, axes


def _title(axes: Axes, text: str, what: str, shown: np.ndarray, gap: int) -> None:
    part = f"\nboth ends of {len(shown) + gap} {what}: {gap} between them not shown" if gap else ""
    axes.set_title(text + part, loc="left", fontsize=11)


def _legend(axes: Axes, found: Audit) -> None:
    verdicts, number = np.unique(found.table["verdict"].values.astype(str), return_counts=True)
    count = dict(zip(verdicts.tolist(), number.tolist(), strict=True))
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="none", label=f"{verdict} ({count[verdict]})")
        for verdict, (colour, marker) in _VERDICTS.items()
        if verdict in count
    ]
    axes.legend(handles=handles, title="verdict", fontsize=9, title_fontsize=9, loc="best", framealpha=0.9)


def _scatter(axes: Axes, x: np.ndarray, y: np.ndarray, table: dict[str, np.ndarray]) -> None:
    """Points by verdict; what is kept lies below what is not."""
    for depth, (verdict, (colour, marker)) in enumerate(_VERDICTS.items()):
        rows = table["verdict"] == verdict
        axes.scatter(x[rows], y[rows], s=32, color=colour, marker=marker, alpha=0.75, linewidths=0, zorder=2 + depth % 3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#E5E5E5", linewidth=0.6)
    axes.set_axisbelow(True)


def _name(axes: Axes, points: list[tuple[str, float, float]]) -> None:
    """Names beside points."""
    for name, x, y in points:
        axes.annotate(name, (x, y), xytext=(5, 3), textcoords="offset points", fontsize=8)


def _short(name: Any) -> str:
    text = str(name)
    return text if len(text) <= _NAME_LENGTH else text[: _NAME_LENGTH - 1] + "…"

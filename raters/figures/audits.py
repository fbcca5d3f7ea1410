"""Figures of an audit: competences, the evidence behind the verdicts, and position bias."""

from __future__ import annotations

from collections import Counter
from typing import Literal

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

from raters.auditing.audit import Audit, check_audit
from raters.auditing.verdicts import IN_QUESTION
from raters.errors import SettingError
from raters.errors.validation import checked, whole
from raters.figures.base import (
    FAINT,
    GREY,
    VERDICTS,
    Plots,
    Rows,
    collected,
    collected_over,
    forest,
    plain,
    rows_of,
    short,
)
from raters.judgements.names import plural

# Columns that the figure of an auditor shows.
AUDITED = frozenset({"competence", "accuracy", "accuracy_low", "accuracy_high", "p_adversarial"})
# Up to so many annotators, the intervals in the scatter plot do not overlap too much.
_FEW = 60


@checked
def competences(audit: Audit, *, most: int = 60) -> Plots:
    """Draw a forest plot of the annotators' competences, lowest on top, coloured by verdict.

    Where two mirrored worlds are possible, each annotator has a competence in either: that of the
    less probable world is pale.

    Parameters
    ----------
    audit : Audit
        From `raters.audit`.
    most : int
        Largest number of annotators to show; of more, the least competent (two thirds) and the
        most competent.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have ``competence``, ``competence_low``, ``competence_high`` and ``verdict``
        (annotator); where two worlds are possible, the first three have the axis world too, and
        there is the ``probability`` of each.

    Raises
    ------
    SettingError
        When `audit` is not an audit.

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> votes, _ = rt.datasets.crowd(num_annotators=10, num_votes=3000, seed=0)
    >>> model = rt.ExtendedBTL(competence="signed")
    >>> audit = rt.audit(model, rt.fit(model, votes, rt.PGEM(), seed=0, progress=False))
    >>> rt.figures.competences(audit).savefig("competences.png")        # doctest: +SKIP
    """
    check_audit(audit, "the first argument")
    judge, judged = audit.judge, audit.judged
    table = audit.table
    if f"{judged}_low" not in table:
        raise SettingError(
            parameter="audit",
            value=audit,
            problem="is of several kinds of judgement, whose quantities have no scale in common",
            expected="draw the audit of one part at a time",
            instead="rt.figures.competences(rt.audit(*rt.fitting.part(model, result, 'votes')))",
        )
    if (worlds := audit.tables.get("worlds")) is not None:
        table = worlds.assign(verdict=table["verdict"])
    first = table[judged] if worlds is None else table[judged].isel(world=0)
    order = np.argsort(first.values, kind="stable")
    table = table.isel({judge: order})
    rows = rows_of(table[judge].values, most, 2 * most // 3)
    figure, axes = forest(rows)
    data = table.isel({judge: rows.shown}).assign_attrs(
        level=audit.level, threshold=audit.threshold
    )
    columns = [judged, f"{judged}_low", f"{judged}_high", "verdict"]
    data = data[columns if worlds is None else [*columns, "probability"]]
    _verdict_intervals(axes, data if worlds is None else data.isel(world=0), judged, rows)
    if worlds is not None:
        _verdict_intervals(axes, data.isel(world=1), judged, rows, 0.4)
    axes.axvline(0, color=GREY, linewidth=0.8, linestyle=":", zorder=0)
    axes.axvline(audit.threshold, color=GREY, linewidth=1, linestyle="--", zorder=0)
    # What the ends of the scale mean is known of competences alone.
    ends = "1: reference, 0: guesser" if audit.confusion is None else "1: always right, 0: spammer"
    scale = f"{ends}, below 0: adversary; " if judged == "competence" else ""
    axes.set_xlabel(f"{judged} ({scale}dashed: threshold {audit.threshold:g})", fontsize=9)
    title = f"Posterior mean {judged} and {audit.level:.0%} interval"
    if worlds is not None:
        shares = [f"{share:.0%}" for share in worlds["probability"].values]
        title += f"\nin two worlds that are possible (probability {shares[0]}; pale: {shares[1]})"
    axes.set_title(title, loc="left", fontsize=11)
    legend(figure, audit)
    return collected(data, figure, axes)


def _verdict_intervals(
    axes: Axes, data: xr.Dataset, judged: str, rows: Rows, alpha: float = 1.0
) -> None:
    """Draw means and intervals, coloured by verdict."""
    (judge,) = data["verdict"].dims
    for verdict, (colour, marker) in VERDICTS.items():
        mask = data["verdict"].values == verdict
        part, y = data.isel({judge: mask}), rows.position[mask]
        low, high = part[f"{judged}_low"], part[f"{judged}_high"]
        axes.hlines(y, low, high, color=colour, linewidth=1.6, alpha=alpha)
        axes.plot(
            part[judged], y, marker, color=colour, markersize=6, linestyle="none", alpha=alpha
        )


@checked
def auditor(audit: Audit, *, most: int = 18) -> Plots:
    """Draw accuracy against the number of votes, and what is wrong with the least trusted.

    On the left, each annotator's probability of choosing the better of two random items (of labels:
    of giving the right label), against the number of votes behind it: low accuracy from many votes
    is certain, from few it may be chance. On the right, for each of the least trusted, the
    probability of guessing or spam (drop them) and of being an adversary (reverse their votes).

    Parameters
    ----------
    audit : Audit
        From `raters.audit`.
    most : int
        Largest number of annotators to show on the right.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` are the table of the audit, the least trusted first.

    Raises
    ------
    SettingError
        When `audit` is not an audit, or one without competences and accuracies.

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> votes, _ = rt.datasets.crowd(num_annotators=10, num_votes=3000, seed=0)
    >>> model = rt.ExtendedBTL(competence="signed")
    >>> audit = rt.audit(model, rt.fit(model, votes, rt.PGEM(), seed=0, progress=False))
    >>> rt.figures.auditor(audit).savefig("auditor.png")        # doctest: +SKIP
    """
    whole("most", most)
    check_audit(audit, "the first argument")
    if lacking := sorted(AUDITED - set(audit.table.data_vars)):
        raise SettingError(
            f"this audit has no {' and no '.join(lacking)}, which the figure shows; draw"
            " rt.figures.competences(audit)",
            parameter="audit",
        )
    worst_first = np.lexsort((audit.table["competence"].values, -audit.table["p_below"].values))
    table = audit.table.isel(annotator=worst_first)
    figure = Figure(figsize=(11.5, 5.8), layout="constrained", dpi=150)
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    _accuracy_by_votes(left, table)
    _trouble_probs(right, table.isel(annotator=slice(most)), audit.threshold)
    count = table.sizes["annotator"]
    few = f"the {most} least trusted" if count > most else "all, least trusted first"
    right.set_title(f"Probability of each trouble: {few}", loc="left", fontsize=11)
    figure.suptitle(f"Audit of {count} annotators", x=0.01, ha="left", fontsize=12)
    legend(figure, audit)
    return collected_over(
        table.assign_attrs(threshold=audit.threshold),
        figure,
        [left, right],
        "column",
        ["accuracy", "trouble"],
        2,
    )


def _accuracy_by_votes(axes: Axes, table: xr.Dataset) -> None:
    """Draw accuracies by verdict; with few annotators also intervals, and names where they fit."""
    number, accuracy, verdicts = (
        table[name].values for name in ("judgements", "accuracy", "verdict")
    )
    for depth, (verdict, (colour, marker)) in enumerate(VERDICTS.items()):
        rows = verdicts == verdict
        axes.scatter(
            number[rows],
            accuracy[rows],
            s=32,
            color=colour,
            marker=marker,
            alpha=0.75,
            linewidths=0,
            zorder=2 + depth % 3,
        )
    if len(number) <= _FEW:
        colours = [VERDICTS[verdict][0] for verdict in verdicts]
        axes.vlines(
            number,
            table["accuracy_low"],
            table["accuracy_high"],
            colors=colours,
            linewidth=1,
            alpha=0.6,
        )
    if number.min() > 0 and number.max() > 4 * number.min():
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
    axes.set_title(
        f"How good, and from how many {'labels' if of_labels else 'votes'}", loc="left", fontsize=11
    )
    plain(axes)
    _name_points(axes, [row for row in range(len(number)) if verdicts[row] in IN_QUESTION], table)


def _name_points(axes: Axes, rows: list[int], table: xr.Dataset) -> None:
    """Write names beside the points of `rows`, in that order, where they overlap no other."""
    to_axes = axes.transData + axes.transAxes.inverted()
    points = to_axes.transform(
        np.column_stack([table["judgements"].values, table["accuracy"].values])
    )
    occupied = points.copy()
    for row in rows:
        name, (x, y) = short(table["annotator"].values[row]), points[row]
        width, on_right = 0.012 + 0.013 * len(name), x < 0.85
        low = x + 0.012 if on_right else x - 0.012 - width
        overlaps = (
            (occupied[:, 0] > low - 0.006)
            & (occupied[:, 0] < low + width + 0.006)
            & (abs(occupied[:, 1] - y) < 0.03)
        )
        if not overlaps.any():
            occupied = np.vstack([occupied, [[low, y], [low + width / 2, y], [low + width, y]]])
            shift, side = (6, "left") if on_right else (-6, "right")
            point = (table["judgements"].values[row], table["accuracy"].values[row])
            axes.annotate(
                name, point, xytext=(shift, -3), textcoords="offset points", fontsize=8, ha=side
            )


def _trouble_probs(axes: Axes, table: xr.Dataset, threshold: float) -> None:
    """Draw the probability of each kind of trouble, one row for each annotator."""
    rows = np.arange(table.sizes["annotator"])
    kinds = {
        "p_below": (f"competence below {threshold:g}", "#000000", "s"),
        "p_spammer": ("spammer", "#56B4E9", "o"),
        "p_guessing": ("guessing", "#56B4E9", "o"),
        "p_careless": ("careless", "#56B4E9", "o"),
        "p_different_taste": ("different taste", "#009E73", "D"),
        "p_adversarial": ("adversarial", "#CC79A7", "^"),
    }
    kinds = {name: drawn for name, drawn in kinds.items() if name in table}
    axes.hlines(
        rows, 0, np.max([table[name].values for name in kinds], axis=0), color=FAINT, linewidth=2
    )
    for name, (label, colour, marker) in kinds.items():
        axes.plot(
            table[name].values,
            rows,
            marker,
            color=colour,
            markersize=6,
            label=label,
            clip_on=False,
            alpha=0.9,
        )
    axes.set_yticks(rows, [short(name) for name in table["annotator"].values], fontsize=9)
    for text, verdict in zip(axes.get_yticklabels(), table["verdict"].values, strict=True):
        text.set_color(VERDICTS[verdict][0])
    axes.set(
        xlim=(0, 1.02),
        ylim=(max(rows[-1], 5) + 0.7, -0.7),
        xlabel="posterior probability (names coloured by verdict)",
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.11), ncols=3, frameon=False)


@checked
def position_bias(audit: Audit, *, most: int = 60) -> Plots:
    r"""Draw a forest plot of the probabilities of choosing the first of two equal items.

    Each annotator k has :math:`\sigma(\gamma_k)`, with :math:`\gamma_k` the position bias in
    logits: ½, the dashed line, without a bias. Those who favour the first most are on top. Shares
    within the audit's margin of ½, the shaded band, are no bias; the triangle at the bottom is the
    mean over the annotators with votes.

    Parameters
    ----------
    audit : Audit
        From `raters.audit`, of a model with a position bias of each annotator.
    most : int
        Largest number of annotators to show; of more, those of both ends.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have ``first_share``, ``first_share_low``, ``first_share_high``,
        ``p_position_bias`` and ``verdict`` (annotator), and the attribute ``mean``.

    Raises
    ------
    SettingError
        When `audit` is not an audit, or one without position biases.

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> votes, _ = rt.datasets.position_biased(num_items=5, num_annotators=4, seed=0)
    >>> model = rt.ExtendedBTL(position_bias=True)
    >>> audit = rt.audit(model, rt.fit(model, votes, rt.PGEM(), seed=0, progress=False))
    >>> rt.figures.position_bias(audit).savefig("position_bias.png")        # doctest: +SKIP
    """
    check_audit(audit, "the first argument")
    if "first_share" not in audit.table:
        raise SettingError(
            parameter="audit",
            value=audit,
            problem="has no position biases of the annotators",
            expected="audit a model that fits them",
            instead="rt.ExtendedBTL(position_bias=True)",
        )
    judge, table = audit.judge, audit.table
    voted = table["judgements"].values > 0
    mean = float(table["first_share"].values[voted if voted.any() else slice(None)].mean())
    table = table.isel({judge: np.argsort(-table["first_share"].values, kind="stable")})
    rows = rows_of(table[judge].values, most, (most + 1) // 2)
    figure, axes = forest(rows)
    columns = ["first_share", "first_share_low", "first_share_high", "p_position_bias", "verdict"]
    data = table.isel({judge: rows.shown})[columns]
    data = data.assign_attrs(level=audit.level, margin=audit.margin, mean=mean)
    axes.axvspan(0.5 - audit.margin, 0.5 + audit.margin, color=FAINT, linewidth=0, zorder=0)
    axes.axvline(0.5, color=GREY, linewidth=1, linestyle="--", zorder=0)
    _verdict_intervals(axes, data, "first_share", rows)
    bottom = axes.get_xaxis_transform()
    axes.plot([mean], [0], "^", color="#000000", markersize=8, transform=bottom, clip_on=False)
    axes.set_xlim(-0.02, 1.02)
    axes.set_xlabel(
        "probability of choosing the first of two equal items"
        f" (dashed: no bias; triangle: mean, {mean:.2f})",
        fontsize=9,
    )
    title = f"Position bias: posterior mean and {audit.level:.0%} interval"
    axes.set_title(title, loc="left", fontsize=11)
    legend(figure, audit)
    return collected(data, figure, axes)


def legend(
    figure: Figure,
    audit: Audit,
    location: Literal["lower center", "outside lower center"] = "outside lower center",
) -> None:
    """Draw a legend of the verdicts, each with its number of judges."""
    count = Counter(map(str, audit.table["verdict"].values))
    handles = [
        Line2D(
            [],
            [],
            color=colour,
            marker=marker,
            linestyle="none",
            label=f"{verdict} ({count[verdict]})",
        )
        for verdict, (colour, marker) in VERDICTS.items()
        if verdict in count
    ]
    figure.legend(
        handles=handles,
        title=f"verdict (number of {plural(audit.judge)})",
        fontsize=9,
        title_fontsize=9,
        ncols=4,
        loc=location,
    )

"""Figures of an audit: competences, the evidence behind the verdicts, position bias, confusion
matrices, the certainty of labels, and the use of a scale."""

from __future__ import annotations

from collections import Counter

import numpy as np
import xarray as xr
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

from raters.auditing.audit import Audit, check_audit
from raters.auditing.verdicts import IN_QUESTION
from raters.errors import refuse
from raters.errors.validation import checked
from raters.figures.base import (
    FAINT,
    GREY,
    VERDICTS,
    Plots,
    Style,
    collected,
    collected_over,
    forest,
    intervals,
    new_figure,
    plain,
)
from raters.figures.rows import AUDITED, Rows, rows_of, short
from raters.judgements.names import plural

# Up to so many annotators, the intervals in the scatter plot do not overlap too much; on its right
# are so many.
_FEW, _LISTED = 60, 18
# Largest number of confusion matrices; up to so many classes, numbers fit into their cells.
_MATRICES, _NUMBERED = 12, 5
# Words, colour and marker of each trouble.
_TROUBLES = {
    "p_below": ("competence below {:g}", "#000000", "s"),
    "p_spammer": ("spammer", "#56B4E9", "o"),
    "p_guessing": ("guessing", "#56B4E9", "o"),
    "p_careless": ("careless", "#56B4E9", "o"),
    "p_different_taste": ("different taste", "#009E73", "D"),
    "p_adversarial": ("adversarial", "#CC79A7", "^"),
}


@checked
def competences(audit: Audit) -> Plots:
    """Draw a forest plot of the annotators' competences, lowest on top, coloured by verdict.

    Where two mirrored worlds are possible, each annotator has a competence in either: that of the
    less probable world is pale. Of more than 60, the 40 lowest and the 20 highest are shown.

    Parameters
    ----------
    audit : Audit
        From `raters.audit`.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have ``competence``, ``competence_low``, ``competence_high`` and ``verdict``
        (annotator); where two worlds are possible, the first three have the axis world too, and
        there is the ``probability`` of each.

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
    table, worlds = audit.table, audit.tables.get("worlds")
    if f"{judged}_low" not in table:
        refuse(
            "audit",
            audit,
            "is of several kinds of judgement, whose quantities have no scale in common",
            "draw the audit of one part at a time",
            instead="rt.figures.competences(rt.audit(*rt.fitting.part(model, result, 'votes')))",
        )
    columns = [judged, f"{judged}_low", f"{judged}_high", "verdict"]
    if worlds is not None:
        table = worlds.assign(verdict=table["verdict"])
        columns.append("probability")
    each = [table] if worlds is None else [table.isel(world=world) for world in (0, 1)]
    order = np.argsort(each[0][judged].values, kind="stable")
    rows = rows_of(table[judge].values, order, head=40)
    figure, axes = forest(rows)
    for shown, alpha in zip(each, (1.0, 0.4), strict=False):
        _by_verdict(axes, shown.isel({judge: rows.shown}), judged, rows, alpha)
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
    _legend(figure, audit)
    data = table.isel({judge: rows.shown})[columns]
    return collected(data.assign_attrs(level=audit.level, threshold=audit.threshold), figure, axes)


def _by_verdict(axes: Axes, data: xr.Dataset, name: str, rows: Rows, alpha: float = 1.0) -> None:
    """Draw means and intervals, coloured by verdict."""
    (judge,) = data["verdict"].dims
    for verdict, (colour, marker) in VERDICTS.items():
        mask = data["verdict"].values == verdict
        part = data.isel({judge: mask})
        intervals(axes, rows.position[mask], part, name, colour, marker, alpha)


def _legend(figure: Figure, audit: Audit) -> None:
    """Draw a legend of the verdicts, each with its number of judges."""
    count = Counter(map(str, audit.table["verdict"].values))
    handles = []
    for verdict, (colour, marker) in VERDICTS.items():
        if verdict in count:
            label = f"{verdict} ({count[verdict]})"
            style: Style = {"color": colour, "marker": marker, "linestyle": "none"}
            handles.append(Line2D([], [], label=label, **style))
    title = f"verdict (number of {plural(audit.judge)})"
    figure.legend(
        handles=handles,
        title=title,
        fontsize=9,
        title_fontsize=9,
        ncols=4,
        loc="outside lower center",
    )


def _least_trusted(audit: Audit) -> Int[np.ndarray, " annotator"]:
    """Order of the annotators, the least trusted first."""
    return np.lexsort((audit.table["competence"].values, -audit.table["p_below"].values))


@checked
def auditor(audit: Audit) -> Plots:
    """Draw accuracy against the number of votes, and what is wrong with the least trusted.

    On the left, each annotator's probability of choosing the better of two random items (of labels:
    of giving the right label), against the number of votes behind it: low accuracy from many votes
    is certain, from few it may be chance. On the right, for each of the 18 least trusted, the
    probability of guessing or spam (drop them) and of being an adversary (reverse their votes).

    Parameters
    ----------
    audit : Audit
        From `raters.audit`.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` are the table of the audit, the least trusted first.

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> votes, _ = rt.datasets.crowd(num_annotators=10, num_votes=3000, seed=0)
    >>> model = rt.ExtendedBTL(competence="signed")
    >>> audit = rt.audit(model, rt.fit(model, votes, rt.PGEM(), seed=0, progress=False))
    >>> rt.figures.auditor(audit).savefig("auditor.png")        # doctest: +SKIP
    """
    check_audit(audit, "the first argument")
    if lacking := sorted(AUDITED - set(audit.table.data_vars)):
        problem = f"has no {' and no '.join(lacking)}, which the figure shows"
        instead = "rt.figures.competences(audit)"
        refuse("audit", audit, problem, "draw the competences", instead=instead)
    table = audit.table.isel(annotator=_least_trusted(audit))
    figure = new_figure(11.5, 5.8)
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    _accuracy_by_votes(left, table)
    _trouble_probs(right, table.isel(annotator=slice(_LISTED)), audit.threshold)
    count = table.sizes["annotator"]
    few = f"the {_LISTED} least trusted" if count > _LISTED else "all, least trusted first"
    right.set_title(f"Probability of each trouble: {few}", loc="left", fontsize=11)
    figure.suptitle(f"Audit of {count} annotators", x=0.01, ha="left", fontsize=12)
    _legend(figure, audit)
    data = table.assign_attrs(threshold=audit.threshold)
    return collected_over(data, figure, [left, right], "column", ["accuracy", "trouble"], 2)


def _accuracy_by_votes(axes: Axes, table: xr.Dataset) -> None:
    """Draw accuracies by verdict; with few annotators also intervals, and names where they fit."""
    number, accuracy = table["judgements"].values, table["accuracy"].values
    verdicts = table["verdict"].values
    for depth, (verdict, (colour, marker)) in enumerate(VERDICTS.items()):
        mask = verdicts == verdict
        style: Style = {"s": 32, "alpha": 0.75, "linewidths": 0, "zorder": 2 + depth % 3}
        axes.scatter(number[mask], accuracy[mask], color=colour, marker=marker, **style)
    if len(number) <= _FEW:
        colours = [VERDICTS[verdict][0] for verdict in verdicts]
        low, high = table["accuracy_low"], table["accuracy_high"]
        axes.vlines(number, low, high, colors=colours, linewidth=1, alpha=0.6)
    if number.min() > 0 and number.max() > 4 * number.min():
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    unit = "labels" if "p_spammer" in table else "votes"
    if unit == "labels":
        axes.set(xlabel="labels given", ylabel="accuracy (probability that a label is right)")
    else:
        axes.axhline(0.5, color=GREY, linewidth=1, linestyle="--", zorder=0)
        axes.set(xlabel="votes", ylabel="probability of choosing the better item (dashed: a coin)")
    axes.set_title(f"How good, and from how many {unit}", loc="left", fontsize=11)
    plain(axes)
    _name_points(axes, np.flatnonzero(np.isin(verdicts, list(IN_QUESTION))), table)


def _name_points(axes: Axes, rows: Int[np.ndarray, " row"], table: xr.Dataset) -> None:
    """Write names beside the points of `rows`, in that order, where they overlap no other."""
    points = np.column_stack([table["judgements"].values, table["accuracy"].values])
    placed = (axes.transData + axes.transAxes.inverted()).transform(points)
    occupied = placed.copy()
    for row in rows:
        name, (x, y) = short(table["annotator"].values[row]), placed[row]
        width, on_right = 0.012 + 0.013 * len(name), x < 0.85
        low = x + 0.012 if on_right else x - 0.012 - width
        near = abs(occupied[:, 1] - y) < 0.03
        beside = (occupied[:, 0] > low - 0.006) & (occupied[:, 0] < low + width + 0.006)
        if not (near & beside).any():
            occupied = np.vstack([occupied, [[low, y], [low + width / 2, y], [low + width, y]]])
            style: Style = {"textcoords": "offset points", "fontsize": 8}
            style["ha"] = "left" if on_right else "right"
            axes.annotate(name, points[row], (6 if on_right else -6, -3), **style)


def _trouble_probs(axes: Axes, table: xr.Dataset, threshold: float) -> None:
    """Draw the probability of each kind of trouble, one row for each annotator."""
    rows = np.arange(table.sizes["annotator"])
    names = [name for name in _TROUBLES if name in table]
    largest = np.max([table[name].values for name in names], axis=0)
    axes.hlines(rows, 0, largest, color=FAINT, linewidth=2)
    for name in names:
        label, colour, marker = _TROUBLES[name]
        style: Style = {"color": colour, "markersize": 6, "clip_on": False, "alpha": 0.9}
        axes.plot(table[name].values, rows, marker, label=label.format(threshold), **style)
    axes.set_yticks(rows, [short(name) for name in table["annotator"].values], fontsize=9)
    for text, verdict in zip(axes.get_yticklabels(), table["verdict"].values, strict=True):
        text.set_color(VERDICTS[verdict][0])
    axes.set(xlim=(0, 1.02), ylim=(max(rows[-1], 5) + 0.7, -0.7))
    axes.set_xlabel("posterior probability (names coloured by verdict)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.11), ncols=3, frameon=False)


@checked
def position_bias(audit: Audit) -> Plots:
    r"""Draw a forest plot of the probabilities of choosing the first of two equal items.

    Each annotator k has :math:`\sigma(\gamma_k)`, with :math:`\gamma_k` the position bias in
    logits: ½, the dashed line, without a bias. Those who favour the first most are on top. Shares
    within the audit's margin of ½, the shaded band, are no bias; the triangle at the bottom is the
    mean over the annotators with votes. Of more than 60, 30 of each end are shown.

    Parameters
    ----------
    audit : Audit
        From `raters.audit`, of a model with a position bias of each annotator.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have ``first_share``, ``first_share_low``, ``first_share_high``,
        ``p_position_bias`` and ``verdict`` (annotator), and the attribute ``mean``.

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> votes, _ = rt.datasets.position_biased(num_items=5, num_annotators=4, seed=0)
    >>> model = rt.ExtendedBTL(position_bias=True)
    >>> audit = rt.audit(model, rt.fit(model, votes, rt.PGEM(), seed=0, progress=False))
    >>> rt.figures.position_bias(audit).savefig("position_bias.png")        # doctest: +SKIP
    """
    check_audit(audit, "the first argument")
    judge, table = audit.judge, audit.table
    if "first_share" not in table:
        instead = "rt.ExtendedBTL(position_bias=True)"
        problem = "has no position biases of the annotators"
        refuse("audit", audit, problem, "audit a model that fits them", instead=instead)
    share = table["first_share"].values
    voted = table["judgements"].values > 0
    mean = float(share[voted if voted.any() else slice(None)].mean())
    rows = rows_of(table[judge].values, np.argsort(-share, kind="stable"))
    figure, axes = forest(rows)
    columns = ["first_share", "first_share_low", "first_share_high", "p_position_bias", "verdict"]
    data = table.isel({judge: rows.shown})[columns]
    axes.axvspan(0.5 - audit.margin, 0.5 + audit.margin, color=FAINT, linewidth=0, zorder=0)
    axes.axvline(0.5, color=GREY, linewidth=1, linestyle="--", zorder=0)
    _by_verdict(axes, data, "first_share", rows)
    bottom = axes.get_xaxis_transform()
    axes.plot([mean], [0], "^", color="#000000", markersize=8, transform=bottom, clip_on=False)
    axes.set_xlim(-0.02, 1.02)
    label = "probability of choosing the first of two equal items"
    axes.set_xlabel(f"{label} (dashed: no bias; triangle: mean, {mean:.2f})", fontsize=9)
    title = f"Position bias: posterior mean and {audit.level:.0%} interval"
    axes.set_title(title, loc="left", fontsize=11)
    _legend(figure, audit)
    data = data.assign_attrs(level=audit.level, margin=audit.margin, mean=mean)
    return collected(data, figure, axes)


@checked
def levels(audit: Audit) -> Plots:
    """Draw the share of each annotator's ratings on each level of the scale, the most severe on
    top; of more than 40, the 20 most severe and the 20 most lenient.

    Parameters
    ----------
    audit : Audit
        Of ratings.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have ``share`` (annotator, level).

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> ratings = rt.datasets.rating_crowd(20, 4, 3, seed=0).ratings
    >>> result = rt.fit(rt.ManyFacet(), ratings, rt.PGEM(), seed=0, progress=False)
    ... # doctest: +SKIP
    >>> rt.figures.levels(rt.audit(rt.ManyFacet(), result)).savefig("levels.png")
    ... # doctest: +SKIP
    """
    check_audit(audit, "audit")
    if "levels" not in audit.tables:
        instead = "rt.audit(rt.ManyFacet(), result)"
        refuse("audit", audit, "has no shares of levels", "audit ratings", instead=instead)
    table = audit.tables["levels"]
    order = np.argsort(audit.table["bias"].values, kind="stable")
    rows = rows_of(table["annotator"].values, order, most=40)
    data = table.isel(annotator=rows.shown)
    figure, axes = forest(rows)
    left, number = np.zeros(len(rows.shown)), data.sizes["level"]
    for place, level in enumerate(data["level"].values):
        wide = data["share"].values[:, place]
        shade = str(0.92 - 0.75 * place / max(number - 1, 1))
        axes.barh(rows.position, wide, left=left, color=shade, label=str(level))
        left += wide
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of the annotator's ratings")
    style: Style = {"title": "level", "fontsize": 8, "frameon": False, "ncols": min(number, 10)}
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), **style)
    return collected(data, figure, axes)


@checked
def confusions(audit: Audit) -> Plots:
    """Draw the confusion matrices of the 12 least trusted annotators, one panel each.

    A row is a true class, a column the label given, and the shade its posterior mean probability;
    right labels lie on the outlined diagonal. A spammer's rows are all alike; an adversary's dark
    cells lie beside the diagonal.

    Parameters
    ----------
    audit : Audit
        From `raters.audit`, of labels.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have ``confusion`` (annotator, true_class, label) and ``verdict`` (annotator).

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> labels, _ = rt.datasets.label_crowd(num_items=60, num_annotators=5, num_classes=2, seed=0)
    >>> result = rt.fit(rt.DawidSkene(), labels, seed=0, progress=False)
    >>> audit = rt.audit(rt.DawidSkene(), result)
    >>> rt.figures.confusions(audit).savefig("confusions.png")        # doctest: +SKIP
    """
    check_audit(audit, "the first argument")
    if audit.confusion is None:
        instead = "rt.figures.competences(audit)"
        expected = "draw the quantity that the verdicts are about"
        refuse("audit", audit, "has no confusion matrices", expected, instead=instead)
    order = _least_trusted(audit)[:_MATRICES]
    mean = audit.confusion["mean"].transpose("annotator", "true_class", "label")
    data = xr.Dataset({"confusion": mean, "verdict": audit.table["verdict"]}).isel(annotator=order)
    names, verdicts = data["annotator"].values, data["verdict"].values
    classes = [short(name, 14) for name in audit.confusion["label"].values]
    columns = min(len(order), 6 if len(classes) <= 3 else 4 if len(classes) <= _NUMBERED else 3)
    lines = -(-len(order) // columns)
    side = min(10.0 / columns, 2.7)
    margin = 0.08 * max(map(len, classes))
    figure = new_figure(max(columns * side + margin + 1.0, 8.0), lines * side + margin + 1.5)
    panels = figure.subplots(lines, columns, squeeze=False).ravel().tolist()
    ticks, values = np.arange(len(classes)), data["confusion"].values
    for index, (axes, name, verdict) in enumerate(zip(panels, names, verdicts, strict=False)):
        shades = _matrix(axes, values[index])
        title = short(name, int(side / 0.09))
        colour = VERDICTS[verdict][0]
        axes.set_title(title, fontsize=9, color=colour, fontweight="bold", loc="left")
        # Where the last line is not full, the panels above it have the names.
        below = classes if index + columns >= len(order) else []
        axes.set_xticks(ticks, below, rotation=90, fontsize=8)
        axes.set_yticks(ticks, classes if index % columns == 0 else [], fontsize=8)
    for axes in panels[len(order) :]:
        axes.set_axis_off()
    figure.colorbar(shades, ax=panels, label="P(label | true class)", shrink=0.8)
    which = f"{len(order)} of {audit.table.sizes['annotator']} annotators, least trusted first"
    title = f"Labels (columns) given to items of each true class (rows): {which}"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    _legend(figure, audit)
    panels = panels[: len(order)]
    return collected_over(data, figure, panels, "annotator", names, columns)


def _matrix(axes: Axes, matrix: Float[np.ndarray, "true_class label"]) -> AxesImage:
    """Draw cells shaded by probability, with the diagonal outlined; numbers for few classes."""
    shades = axes.imshow(matrix, cmap="Blues", vmin=0, vmax=1, aspect="equal")
    for code in range(len(matrix)):
        corner = (code - 0.45, code - 0.45)
        axes.add_patch(Rectangle(corner, 0.9, 0.9, fill=False, edgecolor=GREY, linewidth=1))
    if len(matrix) <= _NUMBERED:
        for (row, column), prob in np.ndenumerate(matrix):
            style: Style = {"ha": "center", "va": "center", "fontsize": 8}
            style["color"] = "white" if prob > 0.55 else "black"
            axes.text(column, row, f"{prob:.2f}".lstrip("0"), **style)
    axes.tick_params(length=0)
    axes.spines[:].set_color(FAINT)
    return shades


@checked
def certainty(items: xr.Dataset | None) -> Plots:
    """Draw the error probability of the item labels, from the most certain to the least.

    A second line is the expected share of wrong labels among all items up to that one, which tells
    how many of the labels can be used as they are.

    Parameters
    ----------
    items : xarray.Dataset
        From `Audit.items` of an audit of labels.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have ``wrong`` and ``share_wrong`` (item).

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> labels, _ = rt.datasets.label_crowd(num_items=60, num_annotators=5, num_classes=2, seed=0)
    >>> result = rt.fit(rt.DawidSkene(), labels, seed=0, progress=False)
    >>> audit = rt.audit(rt.DawidSkene(), result)
    >>> rt.figures.certainty(audit.items).savefig("certainty.png")        # doctest: +SKIP
    """
    if items is None or "probability" not in items:
        expected = "give an audit of labels; of comparisons draw the rewards"
        instead = "rt.figures.rewards(result)"
        refuse("items", items, "is missing: this audit labels no items", expected, instead=instead)
    order = np.argsort(-items["probability"].values, kind="stable")
    ordered = items[["probability"]].isel(item=order)
    wrong = 1 - ordered["probability"].values
    rank = np.arange(1, len(wrong) + 1)
    columns = {"wrong": ("item", wrong), "share_wrong": ("item", np.cumsum(wrong) / rank)}
    data = ordered.assign(columns).drop_vars("probability")
    figure = new_figure(8.5, 4.5)
    axes = figure.subplots()
    axes.plot(rank, wrong, color=VERDICTS["review"][0], label="probability that this one is wrong")
    label = "expected share that is wrong of all up to here"
    axes.plot(rank, data["share_wrong"], color=VERDICTS["keep"][0], label=label)
    axes.set(xlim=(0, len(wrong)), ylim=(0, None))
    axes.set(xlabel="items, the most certain first", ylabel="wrong")
    count = f"{wrong.sum():.1f} of {len(wrong)}"
    title = f"If labelling stops now: {count} item labels expected to be wrong"
    axes.set_title(title, loc="left", fontsize=11)
    plain(axes)
    axes.legend(fontsize=9, frameon=False, loc="upper left")
    return collected(data, figure, axes)

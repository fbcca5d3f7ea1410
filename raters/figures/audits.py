"""Figures of audits, of posterior predictive checks, and of simulated campaigns."""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from raters.auditing.audit import Audit
from raters.errors import SettingError, refuse
from raters.errors.validation import checked, one_of
from raters.figures import base
from raters.figures.base import COLOURS, FAINT, GREY, VERDICTS, Plots, Style
from raters.judgements.names import plural

if TYPE_CHECKING:
    from raters.checking.predictive import Check


# Largest number of confusion matrices; up to so many classes, numbers fit into their cells.
_MATRICES, _NUMBERED = 12, 5


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
    >>> audit = rt.audit(model, rt.fit(model, votes, seed=0, progress=False))
    >>> rt.figures.competences(audit).savefig("competences.png")        # doctest: +SKIP
    """
    judge, judged = audit.judge, audit.judged
    table, worlds = audit.table, audit.tables.get("worlds")
    if f"{judged}_low" not in table:
        instead = "rt.figures.competences(rt.audit(*rt.fitting.part(model, result, 'votes')))"
        refuse("audit", audit, "is of several kinds", "draw one part at a time", instead=instead)
    columns = [judged, f"{judged}_low", f"{judged}_high", "verdict"]
    if worlds is not None:
        table = worlds.assign(verdict=table["verdict"])
        columns.append("probability")
    each = [table] if worlds is None else [table.isel(world=world) for world in (0, 1)]
    order = np.argsort(each[0][judged].values, kind="stable")
    rows = base.rows_of(table[judge].values, order, head=40)
    figure = base.new_figure(8.5, rows.height)
    axes = figure.subplots()
    base.plain(axes, "y")
    base.name_rows(axes, rows)
    for shown, alpha in zip(each, (1.0, 0.4), strict=False):
        for verdict, (colour, marker) in VERDICTS.items():
            mask = table["verdict"].values[rows.shown] == verdict
            part = shown.isel({judge: rows.shown[mask]})
            style: Style = {"color": colour, "alpha": alpha}
            base.intervals(axes, rows.position[mask], part, judged, marker, **style)
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
    data = data.assign_attrs(level=audit.level, threshold=audit.threshold)
    return base.collected(data, figure, [axes])


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
    sizes: Style = {"fontsize": 9, "title_fontsize": 9, "ncols": 4}
    figure.legend(handles=handles, title=title, loc="outside lower center", **sizes)


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
    if audit.confusion is None:
        instead = "rt.figures.competences(audit)"
        refuse("audit", audit, "has no confusion matrices", "draw competences", instead=instead)
    table = audit.table
    order = np.lexsort((table["competence"].values, -table["p_below"].values))[:_MATRICES]
    mean = audit.confusion["mean"].transpose("annotator", "true_class", "label")
    data = xr.Dataset({"confusion": mean, "verdict": table["verdict"]}).isel(annotator=order)
    names, verdicts = data["annotator"].values, data["verdict"].values
    classes = [base.short(name, 14) for name in audit.confusion["label"].values]
    columns = min(len(order), 6 if len(classes) <= 3 else 4 if len(classes) <= _NUMBERED else 3)
    lines = -(-len(order) // columns)
    side = min(10.0 / columns, 2.7)
    margin = 0.08 * max(map(len, classes))
    figure = base.new_figure(max(columns * side + margin + 1.0, 8.0), lines * side + margin + 1.5)
    panels = base.grid(figure, len(order), columns)
    ticks, values = np.arange(len(classes)), data["confusion"].values
    for index, (axes, name, verdict) in enumerate(zip(panels, names, verdicts, strict=True)):
        shades = _matrix(axes, values[index])
        title = base.short(name, int(side / 0.09))
        colour = VERDICTS[verdict][0]
        axes.set_title(title, fontsize=9, color=colour, fontweight="bold", loc="left")
        # Where the last line is not full, the panels above it have the names.
        below = classes if index + columns >= len(order) else []
        axes.set_xticks(ticks, below, rotation=90, fontsize=8)
        axes.set_yticks(ticks, classes if index % columns == 0 else [], fontsize=8)
    figure.colorbar(shades, ax=panels, label="P(label | true class)", shrink=0.8)
    which = f"{len(order)} of {table.sizes['annotator']} annotators, least trusted first"
    title = f"Labels (columns) given to items of each true class (rows): {which}"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    _legend(figure, audit)
    return base.collected(data, figure, panels, "annotator", names, columns)


def _matrix(axes: Axes, matrix: Float[np.ndarray, "true_class label"]) -> AxesImage:
    """Draw cells shaded by probability, with the diagonal outlined; numbers for few classes."""
    shades = axes.imshow(matrix, cmap="Blues", vmin=0, vmax=1, aspect="equal")
    for code in range(len(matrix)):
        corner = (code - 0.45, code - 0.45)
        axes.add_patch(Rectangle(corner, 0.9, 0.9, fill=False, edgecolor=GREY, linewidth=1))
    if len(matrix) <= _NUMBERED:
        places = np.arange(len(matrix))
        base.numbers(axes, places, places, matrix, lambda prob: f"{prob:.2f}".lstrip("0"))
    axes.tick_params(length=0)
    axes.spines[:].set_color(FAINT)
    return shades


# ---------------------------------------------------------------- posterior predictive checks


def checks(check: Check) -> Plots:
    """Draw the replicated values of every discrepancy, with the observed one marked.

    Of discrepancies that depend on parameters, the mark is the mean over draws and the band beside
    it holds 95% of the observed values. The mark is red where the model fails.

    Parameters
    ----------
    check : Check
        From `raters.check`.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have ``observed`` and ``replicated`` (discrepancy, draw); panels are picked by
        ``discrepancy``.

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, seed=0, progress=False)
    >>> plots = rt.figures.checks(rt.check(rt.BTL(), result, replicates=400))
    >>> plots.get_viz("plot", discrepancy="agreement").get_title(loc="left")
    'agreement'
    """
    data, table = getattr(check, "draws", None), getattr(check, "table", None)
    if not isinstance(data, xr.Dataset) or not isinstance(table, xr.Dataset):
        refuse("check", check, expected="give a check", instead="rt.check(model, result)")
    if not data.sizes.get("discrepancy"):
        raise SettingError("nothing of these data could be measured, so there is nothing to draw")
    names = data["discrepancy"].values.tolist()
    columns = min(3, len(names))
    figure = base.new_figure(3.9 * columns, 2.9 * -(-len(names) // columns))
    panels = base.grid(figure, len(names), columns)
    for panel, name in zip(panels, names, strict=True):
        _discrepancy(panel, data.sel(discrepancy=name), table.sel(discrepancy=name))
        panel.set_title(str(name).replace("_", " "), loc="left", fontsize=11)
    return base.collected(data, figure, panels, "discrepancy", names, columns)


def _discrepancy(axes: Axes, data: xr.Dataset, row: xr.Dataset) -> None:
    drawn, observed, fails = data["replicated"].values, data["observed"].values, bool(row["fails"])
    mark = VERDICTS["drop" if fails else "keep"][0]
    axes.hist(drawn, 40 if np.ptp(drawn) > 0 else 1, color="0.75", density=False)
    low, high = np.quantile(observed, (0.025, 0.975))
    if high > low:
        axes.axvspan(low, high, color=mark, alpha=0.15, linewidth=0)
    axes.axvline(observed.mean(), color=mark, linewidth=2)
    text = f"p = {float(row['p_adjusted']):.2g}" + (", fails" if fails else "")
    axes.set_title(text, loc="right", fontsize=9, color=mark if fails else GREY)
    axes.set_xlabel(textwrap.fill(str(row["title"].values), 44), fontsize=8)
    axes.set_yticks([])
    axes.tick_params(labelsize=8)
    base.plain(axes, "x")


# ---------------------------------------------------------------- campaigns

_STYLES = ("-", "--", ":", "-.")
# Axis labels of the measures of `simulate_campaign`.
_WORDS = {
    "tau": "Kendall's τ with the true rewards",
    "coverage": "share of true differences inside 90 % intervals",
    "competence_correlation": "correlation with the true competences",
    "competence_asked": "true competence of those asked, mean of the batch",
    "accuracy": "share of items whose class is right",
}


@checked
def learning_curves(curves: xr.Dataset, name: str = "tau") -> Plots:
    """Draw a measure of simulated campaigns against the number of answers, one line per policy.

    Parameters
    ----------
    curves : xarray.Dataset
        From `raters.acquisition.simulate_campaign` or `replay_campaign`: axes ``policy`` and
        ``batch``. Over other axes, as of ``xr.concat([simulate_campaign(..., seed=s) for s in
        seeds], "replicate")``, the mean is drawn.
    name : str
        Variable to draw, such as ``tau``.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have, with axes ``policy`` and ``batch``, the mean under its own name, and that
        of ``answers``. Batches that some replicates did not reach are left out, so that no line
        jumps where a replicate ends.

    Examples
    --------
    >>> import raters as rt, raters.figures, xarray as xr
    >>> votes, truth = rt.datasets.paper(num_items=5, num_annotators=3, num_votes=30, seed=0)
    >>> runs = [rt.acquisition.simulate_campaign(
    ...             rt.ExtendedBTL(), truth, rt.Candidates.pairs(votes), {"ours": rt.Policy()},
    ...             batch_size=5, batches=2, seed=seed, progress=False) for seed in (0, 1)]
    >>> plots = rt.figures.learning_curves(xr.concat(runs, "replicate"))
    >>> list(plots.data), plots.data["tau"].shape
    (['tau', 'answers'], (1, 2))
    >>> plots.savefig("curves.png")        # doctest: +SKIP
    """
    if "batch" not in curves.dims or "answers" not in curves:
        refuse("curves", curves, "is no campaign's", "pass what `simulate_campaign` returned")
    one_of("name", name, map(str, curves))
    several = curves if "policy" in curves.dims else curves.expand_dims(policy=["policy"])
    extra = [axis for axis in several.dims if axis not in ("policy", "batch")]
    data = several[[name, "answers"]].mean(extra, skipna=False).transpose("policy", "batch")
    figure = base.new_figure(8.5, 4.8)
    axes = figure.subplots()
    for index, policy in enumerate(data["policy"].values):
        curve = data.isel(policy=index)
        # Each of up to 32 policies has its own pair of colour and style.
        colour = COLOURS[index % len(COLOURS)]
        style = _STYLES[(index + index // len(COLOURS)) % len(_STYLES)]
        label, x = base.short(policy), curve["answers"]
        axes.plot(x, curve[name], color=colour, linestyle=style, linewidth=1.8, label=label)
    axes.set(xlabel="answers", ylabel=_WORDS.get(name, name))
    over = f", mean over {', '.join(map(str, extra))}" if extra else ""
    figure.suptitle(f"Quality by number of answers{over}", x=0.01, ha="left", fontsize=11)
    base.plain(axes)
    if "policy" in curves.dims:
        # In the order in which the lines end.
        last = [np.append(-np.inf, line[np.isfinite(line)])[-1] for line in data[name].values]
        handles = [axes.get_lines()[index] for index in np.argsort(-np.array(last), kind="stable")]
        beside: Style = {"loc": "upper left", "bbox_to_anchor": (1.01, 1), "frameon": False}
        axes.legend(handles=handles, fontsize=9, handlelength=3, **beside)
    return base.collected(data, figure, [axes])

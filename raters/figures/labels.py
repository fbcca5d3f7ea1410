"""Figures of an audit of labels: confusion matrices, and the certainty of the item labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from raters.auditing.audit import Audit, check_audit
from raters.errors import SettingError
from raters.errors.validation import checked, whole
from raters.figures.audits import legend
from raters.figures.base import (
    FAINT,
    GREY,
    VERDICTS,
    Plots,
    collected,
    collected_over,
    plain,
    short,
)

# Up to so many classes, numbers fit into the cells.
_NUMBERED = 5
_CLASS_LENGTH = 14
# In inches: width of the figure, gap between its panels, height of a panel's title and of the
# legend, and width of a letter of a title.
_WIDTH, _GAP, _TITLE, _LEGEND, _LETTER = 11.0, 0.12, 0.28, 0.62, 0.088


@checked
def confusions(audit: Audit, *, most: int = 12) -> Plots:
    """Draw the confusion matrices of the least trusted annotators, one panel each.

    A row is a true class, a column the label given, and the shade its posterior mean probability;
    right labels lie on the outlined diagonal. A spammer's rows are all alike; an adversary's dark
    cells lie beside the diagonal.

    Parameters
    ----------
    audit : Audit
        From `raters.audit`, of labels.
    most : int
        Largest number of annotators to show.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have ``confusion`` (annotator, true_class, label) and ``verdict`` (annotator).

    Raises
    ------
    SettingError
        When `audit` is not an audit of labels.

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> labels, _ = rt.datasets.label_crowd(num_items=60, num_annotators=5, num_classes=2, seed=0)
    >>> result = rt.fit(rt.DawidSkene(), labels, seed=0, progress=False)
    >>> audit = rt.audit(rt.DawidSkene(), result)
    >>> rt.figures.confusions(audit).savefig("confusions.png")        # doctest: +SKIP
    """
    whole("most", most)
    check_audit(audit, "the first argument")
    if audit.confusion is None:
        raise SettingError(
            parameter="audit",
            problem="has no confusion matrices",
            expected="draw the quantity that the verdicts are about",
            instead="raters.figures.competences(audit)",
        )
    order = np.lexsort((audit.table["competence"].values, -audit.table["p_below"].values))[:most]
    mean = (
        audit.confusion["mean"].transpose("annotator", "true_class", "label").isel(annotator=order)
    )
    data = xr.Dataset({"confusion": mean, "verdict": audit.table["verdict"].isel(annotator=order)})
    names, verdicts = data["annotator"].values, data["verdict"].values
    classes = [short(name, _CLASS_LENGTH) for name in audit.confusion["label"].values]
    figure, panels, colour_bar, columns = _panels(len(order), classes)
    shades: Any = None
    for index, (axes, name, verdict) in enumerate(zip(panels, names, verdicts, strict=True)):
        shades = _matrix(axes, mean.values[index])
        letters = int(axes.get_position().width * figure.get_figwidth() / _LETTER)
        axes.set_title(
            short(name, letters), fontsize=9, color=VERDICTS[verdict][0], fontweight="bold"
        )
        ticks = np.arange(len(classes))
        axes.set_xticks(
            ticks, classes if index + columns >= len(order) else [], rotation=90, fontsize=8
        )
        axes.set_yticks(ticks, classes if index % columns == 0 else [], fontsize=8)
    figure.colorbar(shades, cax=colour_bar, label="P(label | true class)")
    num_annotators = audit.table.sizes["annotator"]
    which = (
        f"the {len(order)} least trusted of {num_annotators}"
        if num_annotators > len(order)
        else f"all {num_annotators}, least trusted first"
    )
    title = f"Labels (columns) given to items of each true class (rows): {which}"
    figure.suptitle(
        title, x=0.01, y=1 - 0.1 / figure.get_figheight(), ha="left", va="top", fontsize=11
    )
    legend(figure, audit, "lower center")
    return collected_over(data, figure, panels, "annotator", names, columns)


def _panels(num_panels: int, classes: list[str]) -> tuple[Figure, list[Axes], Axes, int]:
    """Lay out square panels in rows, and axes for the colour bar; return also the columns."""
    columns = min(num_panels, 6 if len(classes) <= 3 else 4 if len(classes) <= _NUMBERED else 3)
    rows, names = -(-num_panels // columns), 0.15 + 0.073 * max(map(len, classes))
    side = min((_WIDTH - names - 1.2) / columns - _GAP, 2.6)
    step = side + _GAP + _TITLE
    # Where the last row is not full, the panels above it have the names.
    width = max(names + columns * (side + _GAP) + 1.2, 8.0)
    height = 0.35 + rows * step + names + _LEGEND
    figure = Figure(figsize=(width, height), dpi=150)

    def axes_at(left: float, top: float, wide: float, high: float) -> Axes:
        return figure.add_axes(
            (left / width, 1 - (top + high) / height, wide / width, high / height)
        )

    panels = [
        axes_at(names + column * (side + _GAP), 0.35 + _TITLE + row * step, side, side)
        for row, column in (divmod(index, columns) for index in range(num_panels))
    ]
    colour_bar = axes_at(
        names + columns * (side + _GAP) + 0.1,
        0.35 + _TITLE,
        0.18,
        min(rows * step - _TITLE - _GAP, 4.0),
    )
    return figure, panels, colour_bar, columns


def _matrix(axes: Axes, matrix: Float[np.ndarray, "true_class label"]) -> AxesImage:
    """Draw cells shaded by probability, with the diagonal outlined; numbers for few classes."""
    shades = axes.imshow(matrix, cmap="Blues", vmin=0, vmax=1, aspect="equal")
    for code in range(len(matrix)):
        axes.add_patch(
            Rectangle((code - 0.45, code - 0.45), 0.9, 0.9, fill=False, edgecolor=GREY, linewidth=1)
        )
    if len(matrix) <= _NUMBERED:
        for (row, column), prob in np.ndenumerate(matrix):
            colour = "white" if prob > 0.55 else "black"
            axes.text(
                column,
                row,
                f"{prob:.2f}".lstrip("0"),
                ha="center",
                va="center",
                fontsize=8,
                color=colour,
            )
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

    Raises
    ------
    SettingError
        When `items` is None, as for an audit of comparisons.

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> labels, _ = rt.datasets.label_crowd(num_items=60, num_annotators=5, num_classes=2, seed=0)
    >>> result = rt.fit(rt.DawidSkene(), labels, seed=0, progress=False)
    >>> audit = rt.audit(rt.DawidSkene(), result)
    >>> rt.figures.certainty(audit.items).savefig("certainty.png")        # doctest: +SKIP
    """
    if items is None or "probability" not in items:
        raise SettingError(
            parameter="items",
            problem="is missing: this audit labels no items",
            expected="give an audit of labels; of comparisons draw the rewards",
            instead="raters.figures.rewards(result)",
        )
    ordered = items[["probability"]].isel(
        item=np.argsort(-items["probability"].values, kind="stable")
    )
    wrong = 1 - ordered["probability"].values
    rank = np.arange(1, len(wrong) + 1)
    data = ordered.assign(
        wrong=("item", wrong), share_wrong=("item", np.cumsum(wrong) / rank)
    ).drop_vars("probability")
    figure = Figure(figsize=(8.5, 4.5), layout="constrained", dpi=150)
    axes = figure.subplots()
    axes.plot(rank, wrong, color=VERDICTS["review"][0], label="probability that this one is wrong")
    axes.plot(
        rank,
        data["share_wrong"],
        color=VERDICTS["keep"][0],
        label="expected share that is wrong of all up to here",
    )
    axes.set(
        xlabel="items, the most certain first", ylabel="wrong", xlim=(0, len(wrong)), ylim=(0, None)
    )
    axes.set_title(
        f"If labelling stops now: {wrong.sum():.1f} of {len(wrong)} item labels expected to be"
        " wrong",
        loc="left",
        fontsize=11,
    )
    plain(axes)
    axes.legend(fontsize=9, frameon=False, loc="upper left")
    return collected(data, figure, axes)

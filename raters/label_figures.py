"""Figures of an audit of labels. Each returns an ArviZ ``PlotCollection``, as those of `raters.figures` do."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from raters._plots import FAINT, GREY, VERDICTS, Plots, collected, collected_over, plain, short
from raters.audit import Audit, check_audit
from raters.errors import SettingError
from raters.figures import _legend

# Up to so many classes, the numbers fit into the cells.
_NUMBERED = 5
_CLASS_LENGTH = 14
# In inches: the figure, what lies between its panels, room for a panel's title and for the legend, and a letter of a title.
_WIDTH, _GAP, _TITLE, _LEGEND, _LETTER = 11.0, 0.12, 0.28, 0.62, 0.088


def confusions(found: Audit, *, most: int = 12) -> Plots:
    """Confusion matrices of the least trusted annotators, one small picture each.

    A row is a true class, a column the label given, and the shade its posterior mean probability; right labels lie on the
    outlined diagonal. A spammer's rows are all alike; an adversary's dark cells lie beside the diagonal.

    Parameters
    ----------
    found : Audit
        From `raters.audit`, of labels.
    most : int
        Annotators to show.

    Returns
    -------
    arviz_plots.PlotCollection

    Examples
    --------
    >>> import raters as rt, raters.label_figures
    >>> labels, _ = rt.datasets.label_crowd(num_items=60, num_annotators=5, num_classes=2, seed=0)
    >>> found = rt.audit(rt.DawidSkene(), rt.fit(rt.DawidSkene(), labels, rt.PGEM(), seed=0, progress=False))
    >>> rt.label_figures.confusions(found).savefig("confusions.png")        # doctest: +SKIP
    """
    check_audit(found, "the first argument")
    if found.confusion is None:
        raise SettingError("there are no confusion matrices: this is an audit of comparisons; figures.auditor(found) draws it")
    order = np.lexsort((found.table["competence"].values, -found.table["p_below"].values))[:most]
    mean = found.confusion["mean"].transpose("annotator", "true_class", "label").isel(annotator=order)
    data = xr.Dataset({"confusion": mean, "verdict": found.table["verdict"].isel(annotator=order)})
    names, verdicts = data["annotator"].values, data["verdict"].values
    classes = [short(name, _CLASS_LENGTH) for name in found.confusion["label"].values]
    figure, panels, beside, columns = _panels(len(order), classes)
    shades: Any = None
    for place, (axes, name, verdict) in enumerate(zip(panels, names, verdicts, strict=True)):
        shades = _matrix(axes, mean.values[place])
        letters = int(axes.get_position().width * figure.get_figwidth() / _LETTER)
        axes.set_title(short(name, letters), fontsize=9, color=VERDICTS[verdict][0], fontweight="bold")
        ticks = np.arange(len(classes))
        axes.set_xticks(ticks, classes if place + columns >= len(order) else [], rotation=90, fontsize=8)
        axes.set_yticks(ticks, classes if place % columns == 0 else [], fontsize=8)
    figure.colorbar(shades, cax=beside, label="P(label | true class)")
    number = found.table.sizes["annotator"]
    who = f"the {len(order)} least trusted of {number}" if number > len(order) else f"all {number}, least trusted first"
    title = f"What annotators say (columns) of each true class (rows): {who}"
    figure.suptitle(title, x=0.01, y=1 - 0.1 / figure.get_figheight(), ha="left", va="top", fontsize=11)
    _legend(figure, found, "lower center")
    return collected_over(data, figure, panels, "annotator", names, columns)


def _panels(number: int, classes: list[str]) -> tuple[Figure, list[Axes], Axes, int]:
    """Square panels in rows and a place for the scale, set by hand and in inches, so that names have the room they need."""
    columns = min(number, 6 if len(classes) <= 3 else 4 if len(classes) <= _NUMBERED else 3)
    rows, names = -(-number // columns), 0.15 + 0.073 * max(map(len, classes))
    side = min((_WIDTH - names - 1.2) / columns - _GAP, 2.6)
    step = side + _GAP + _TITLE
    # In a row that is not full, the panels above have their names in its place.
    width, height = max(names + columns * (side + _GAP) + 1.2, 8.0), 0.35 + rows * step + names + _LEGEND
    figure = Figure(figsize=(width, height), dpi=150)

    def at(left: float, top: float, wide: float, high: float) -> Axes:
        return figure.add_axes((left / width, 1 - (top + high) / height, wide / width, high / height))

    places = [divmod(place, columns) for place in range(number)]
    panels = [at(names + column * (side + _GAP), 0.35 + _TITLE + row * step, side, side) for row, column in places]
    beside = at(names + columns * (side + _GAP) + 0.1, 0.35 + _TITLE, 0.18, min(rows * step - _TITLE - _GAP, 4.0))
    return figure, panels, beside, columns


def _matrix(axes: Axes, matrix: np.ndarray) -> Any:
    """Cells shaded by probability, the diagonal outlined; with few classes also numbered."""
    shades = axes.imshow(matrix, cmap="Blues", vmin=0, vmax=1, aspect="equal")
    for place in range(len(matrix)):
        axes.add_patch(Rectangle((place - 0.45, place - 0.45), 0.9, 0.9, fill=False, edgecolor=GREY, linewidth=1))
    if len(matrix) <= _NUMBERED:
        for (row, column), share in np.ndenumerate(matrix):
            colour = "white" if share > 0.55 else "black"
            axes.text(column, row, f"{share:.2f}".lstrip("0"), ha="center", va="center", fontsize=8, color=colour)
    axes.tick_params(length=0)
    axes.spines[:].set_color(FAINT)
    return shades


def certainty(items: xr.Dataset | None) -> Plots:
    """How many item labels can be used as they are: items from the most certain to the least, and how many are wrong.

    Parameters
    ----------
    items : xarray.Dataset
        Those of an audit of labels.

    Returns
    -------
    arviz_plots.PlotCollection

    Examples
    --------
    >>> import raters as rt, raters.label_figures
    >>> labels, _ = rt.datasets.label_crowd(num_items=60, num_annotators=5, num_classes=2, seed=0)
    >>> found = rt.audit(rt.DawidSkene(), rt.fit(rt.DawidSkene(), labels, rt.PGEM(), seed=0, progress=False))
    >>> rt.label_figures.certainty(found.items).savefig("certainty.png")        # doctest: +SKIP
    """
    if items is None:
        raise SettingError("there are no item labels: this is an audit of comparisons; figures.rewards(result) ranks its items")
    surest = items[["probability"]].isel(item=np.argsort(-items["probability"].values, kind="stable"))
    wrong = 1 - surest["probability"].values
    kept = np.arange(1, len(wrong) + 1)
    data = surest.assign(wrong=("item", wrong), share_wrong=("item", np.cumsum(wrong) / kept)).drop_vars("probability")
    figure = Figure(figsize=(8.5, 4.5), layout="constrained", dpi=150)
    axes = figure.subplots()
    axes.plot(kept, wrong, color=VERDICTS["review"][0], label="probability that this one is wrong")
    axes.plot(kept, data["share_wrong"], color=VERDICTS["keep"][0], label="expected share that is wrong of all up to here")
    axes.set(xlabel="items, the most certain first", ylabel="wrong", xlim=(0, len(wrong)), ylim=(0, None))
    axes.set_title(
        f"If labelling stops now: {wrong.sum():.1f} of {len(wrong)} item labels expected to be wrong",
        loc="left",
        fontsize=11,
    )
    plain(axes)
    axes.legend(fontsize=9, frameon=False, loc="upper left")
    return collected(data, figure, axes)

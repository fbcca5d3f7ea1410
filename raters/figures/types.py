"""Figures of preference types: profiles and responsibilities."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from raters.errors import refuse
from raters.errors.validation import checked, share
from raters.figures.base import (
    COLOURS,
    GREY,
    Plots,
    Style,
    check_draws,
    collected,
    collected_over,
    intervals,
    new_figure,
    plain,
    summary,
)
from raters.figures.rows import short
from raters.judgements.names import plural

# Up to so many annotators, their names fit below the bars.
_NAMED = 60
# Largest numbers of rows of a profile, of its panels, and of colours of responsibilities.
_MOST_ROWS, _MOST_PANELS, _MOST_COLOURS = 40, 6, 8


@checked
def profiles(result: xr.DataTree, *, level: float = 0.9) -> Plots:
    """Draw the rewards (worths, coefficients) of each type with intervals, types side by side.

    Rows are in the order of the mean over annotators, which a grey tick marks in each panel: a
    reward far from its tick distinguishes the type. The largest six types are shown, and the 40
    items (or features) on which types differ most.

    Parameters
    ----------
    result : xarray.DataTree
        From `raters.fit`, of `MixtureBTL`, `ContextualBTL` or `MixturePlackettLuce`.
    level : float
        Posterior probability of the (equal-tailed) intervals.

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
    share("level", level)
    _check_types(result)
    posterior = result["posterior"].dataset
    site = next(name for name in ("reward", "worth", "coefficient") if name in posterior)
    axis = "feature" if site == "coefficient" else "item"
    data = summary(posterior[site], level).transpose(axis, "type")
    weight = posterior["type_weight"].mean(("chain", "draw"))
    data["common"] = (data[site] * weight).sum("type")
    data["type_weight"] = weight
    variance = ((data[site] - data["common"]) ** 2 * weight).sum("type").values
    chosen = np.sort(np.argsort(-variance, kind="stable")[:_MOST_ROWS])
    chosen = chosen[np.argsort(-data["common"].values[chosen], kind="stable")]
    shown = data.isel({axis: chosen, "type": slice(_MOST_PANELS)})
    types, names = shown["type"].values, [short(name) for name in shown[axis].values]
    width = 0.9 + 0.075 * max(map(len, names)) + max(1.6 * len(types), 6.0)
    figure = new_figure(min(width, 13.0), 1.6 + 0.22 * max(len(names), 5))
    panels = figure.subplots(1, len(types), sharex=True, sharey=True, squeeze=False)[0].tolist()
    rows = np.arange(len(names))
    panels[0].set_yticks(rows, names, fontsize=9)
    panels[0].set_ylim(len(names) - 0.3, -0.7)
    style: Style = {"color": "#8C8C8C", "markersize": 9, "markeredgewidth": 1.4, "zorder": 1}
    for index, (panel, name) in enumerate(zip(panels, types, strict=True)):
        of_type = shown.isel(type=index)
        panel.axvline(0, color=GREY, linewidth=0.8, linestyle=":", zorder=0)
        panel.plot(shown["common"], rows, "|", **style)
        intervals(panel, rows, of_type, site, COLOURS[index % len(COLOURS)])
        title = f"type {name}: {float(of_type['type_weight']):.0%}"
        panel.set_title(title, fontsize=10, loc="left")
        plain(panel, "y")
        panel.tick_params(axis="y", length=0)
    zero = "per unit of the feature" if axis == "feature" else "0 is the type's average item"
    figure.supxlabel(f"{site} (logits; {zero}); grey: mean over annotators", fontsize=9)
    title = f"{plural(site).capitalize()} of each type: posterior mean and {level:.0%} interval"
    if len(types) < data.sizes["type"]:
        title += f", the {len(types)} largest of {data.sizes['type']} types"
    if len(names) < data.sizes[axis]:
        title += f", the {len(names)} of {data.sizes[axis]} {plural(axis)} that differ most"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return collected_over(shown, figure, panels, "type", types, len(types))


@checked
def responsibilities(result: xr.DataTree) -> Plots:
    """Draw the probability of each type for each annotator, as stacked bars.

    Annotators are sorted by their likeliest type, and within it from the most certain to the least:
    where types are well separated the edges between colours are sharp, elsewhere they slope. Of
    more than eight types, the smallest are merged.

    Parameters
    ----------
    result : xarray.DataTree
        From `raters.fit`, of `MixtureBTL`, `ContextualBTL` or `MixturePlackettLuce`.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have ``responsibility`` (annotator, type) and ``likeliest`` (annotator).

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> votes, _ = rt.datasets.preference_types(num_items=4, num_annotators=30, votes_each=20,
    ...                                         num_types=2, seed=0)
    >>> result = rt.fit(rt.MixtureBTL(), votes, rt.PGEM(), seed=0, progress=False)
    >>> rt.figures.responsibilities(result).savefig("who.png")        # doctest: +SKIP
    """
    _check_types(result)
    probs = result["types"]["responsibility"].transpose("annotator", "type")
    table, labels = probs.values, [f"type {name}" for name in probs["type"].values]
    likeliest, certainty = table.argmax(1), table.max(1)
    if (more := table.shape[1] - _MOST_COLOURS + 1) > 1:
        labels = [*labels[: _MOST_COLOURS - 1], f"{more} more types"]
        table = np.column_stack([table[:, :-more], table[:, -more:].sum(1)])
    order = np.lexsort((-certainty, likeliest))
    names = probs["annotator"].values[order]
    shown = [short(name) for name in names] if len(names) <= _NAMED else []
    figure = new_figure(10.0, 3.2 + 0.075 * max(map(len, shown), default=4))
    axes = figure.subplots()
    _stack(axes, table[order], shown)
    members = np.bincount(np.minimum(likeliest, len(labels) - 1), minlength=len(labels))
    handles = []
    for index, label in enumerate(labels):
        colour = COLOURS[index % len(COLOURS)]
        handles.append(Patch(color=colour, label=f"{label} ({members[index]})"))
    style: Style = {"title": "likeliest type of so many", "fontsize": 9, "title_fontsize": 9}
    figure.legend(handles=handles, loc="outside right upper", **style)
    mean = f"{certainty.mean():.2f} on average"
    title = f"Types of {len(names)} annotators; probability of the likeliest {mean}"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    data = xr.Dataset({"responsibility": probs[order]})
    data["likeliest"] = ("annotator", probs["type"].values[likeliest[order]])
    return collected(data, figure, axes)


def _stack(axes: Axes, table: Float[np.ndarray, "annotator type"], names: list[str]) -> None:
    """Draw the rows of a table as stacked bars, with names below them where there are some."""
    count = len(table)
    edges, top = np.arange(count + 1) - 0.5, np.zeros(count + 1)
    for index, column in enumerate(table.T):
        above = top + np.append(column, column[-1])
        colour = COLOURS[index % len(COLOURS)]
        axes.fill_between(edges, top, above, step="post", color=colour, linewidth=0)
        top = above
    if names:
        axes.set_xticks(np.arange(count), names, rotation=90, fontsize=8)
        axes.vlines(edges[1:-1], 0, 1, color="white", linewidth=0.6)
    else:
        axes.set_xlabel("annotators, by likeliest type and certainty", fontsize=9)
    axes.set(xlim=(edges[0], edges[-1]), ylim=(0, 1), ylabel="probability")
    axes.spines[:].set_visible(False)


def _check_types(result: xr.DataTree) -> None:
    """Check that a result has types of annotators."""
    check_draws(result)
    if "types" not in result.children:
        expected = "fit a model with types of annotators"
        refuse("result", problem="has no types", expected=expected, instead="rt.MixtureBTL()")

"""Figures of preference types: profiles, responsibilities, and weights of their policies."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import ArrayLike

from raters.errors import SettingError
from raters.errors.validation import checked, numbers, share, whole
from raters.figures.base import (
    COLOURS,
    GREY,
    Plots,
    check_draws,
    collected,
    collected_over,
    plain,
    short,
)
from raters.judgements.names import plural

# Up to so many annotators, their names fit below the bars.
_NAMED = 60


@checked
def profiles(
    result: xr.DataTree, *, level: float = 0.9, most: int = 40, most_types: int = 6
) -> Plots:
    """Draw the rewards (worths, coefficients) of each type with intervals, types side by side.

    Rows are in the order of the mean over annotators, which a grey tick marks in each panel: a
    reward far from its tick distinguishes the type.

    Parameters
    ----------
    result : xarray.DataTree
        From `raters.fit`, of `MixtureBTL`, `ContextualBTL` or `MixturePlackettLuce`.
    level : float
        Posterior probability of the (equal-tailed) intervals.
    most : int
        Largest number of items (or features) to show; of more, those on which types differ most.
    most_types : int
        Largest number of types to show; of more, the largest.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have ``reward`` (``worth``, ``coefficient``) with ``_low`` and ``_high`` (item,
        type), their mean over annotators ``common`` (item), and ``type_weight`` (type).

    Raises
    ------
    SettingError
        When the result has no types.

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> votes, _ = rt.datasets.preference_types(num_items=4, num_annotators=30, votes_each=20,
    ...                                         num_types=2, seed=0)
    >>> result = rt.fit(rt.MixtureBTL(), votes, rt.PGEM(), seed=0, progress=False)
    >>> rt.figures.profiles(result).savefig("profiles.png")        # doctest: +SKIP
    """
    share("level", level)
    whole("most", most)
    whole("most_types", most_types)
    _check_types(result)
    posterior = result["posterior"]
    site = next(name for name in ("reward", "worth", "coefficient") if name in posterior)
    axis = "feature" if site == "coefficient" else "item"
    draws = posterior[site].stack(sample=("chain", "draw")).transpose("sample", axis, "type")
    weight = np.asarray(posterior["type_weight"].mean(("chain", "draw")))
    low, high = np.quantile(draws.values, ((1 - level) / 2, (1 + level) / 2), axis=0)
    mean = draws.values.mean(0)
    common = mean @ weight
    variance = ((mean - common[:, None]) ** 2) @ weight
    shown = np.sort(np.argsort(-variance, kind="stable")[:most])
    shown = shown[np.argsort(-common[shown], kind="stable")]
    types = draws["type"].values[:most_types]
    summaries = {site: mean, f"{site}_low": low, f"{site}_high": high}
    data = xr.Dataset(
        {name: ((axis, "type"), values[shown, :most_types]) for name, values in summaries.items()}
        | {"common": (axis, common[shown]), "type_weight": ("type", weight[:most_types])},
        {axis: draws[axis].values[shown], "type": types},
        {"level": level},
    )
    figure, panels = _panels(len(types), [short(name) for name in data[axis].values])
    for index, (panel, name) in enumerate(zip(panels, types, strict=True)):
        _profile(panel, data.isel(type=index), site, COLOURS[index % len(COLOURS)])
        panel.set_title(f"type {name}: {weight[index]:.0%}", fontsize=10, loc="left")
    unit = (
        "logits per unit of the feature"
        if site == "coefficient"
        else "logits; 0 is the type's average item"
    )
    figure.supxlabel(f"{site} ({unit}); grey: mean over annotators", fontsize=9)
    which = f", the {len(types)} largest of {len(weight)} types" if len(types) < len(weight) else ""
    which += (
        f", the {len(shown)} of {len(common)} {plural(axis)} that differ most"
        if len(shown) < len(common)
        else ""
    )
    figure.suptitle(
        f"{plural(site).capitalize()} of each type: posterior mean and {level:.0%} interval{which}",
        x=0.01,
        ha="left",
        fontsize=11,
    )
    return collected_over(data, figure, panels, "type", types, len(types))


def _panels(num_panels: int, names: list[str]) -> tuple[Figure, list[Axes]]:
    """Lay out panels side by side, with the names on the left of the first."""
    width = 0.9 + 0.075 * max(map(len, names)) + max(1.6 * num_panels, 6.0)
    figure = Figure(
        figsize=(min(width, 13.0), 1.6 + 0.22 * max(len(names), 5)), layout="constrained", dpi=150
    )
    panels = figure.subplots(1, num_panels, sharex=True, sharey=True, squeeze=False)[0].tolist()
    panels[0].set_yticks(np.arange(len(names)), names, fontsize=9)
    panels[0].set_ylim(len(names) - 0.3, -0.7)
    return figure, panels


def _profile(axes: Axes, data: xr.Dataset, site: str, colour: str) -> None:
    """Draw the means and intervals of one type, with ticks at the mean over annotators."""
    rows = np.arange(len(data[site]))
    axes.axvline(0, color=GREY, linewidth=0.8, linestyle=":", zorder=0)
    axes.plot(
        data["common"], rows, "|", color="#8C8C8C", markersize=9, markeredgewidth=1.4, zorder=1
    )
    axes.hlines(rows, data[f"{site}_low"], data[f"{site}_high"], color=colour, linewidth=1.8)
    axes.plot(data[site], rows, "o", color=colour, markersize=4.5)
    plain(axes, "y")
    axes.tick_params(axis="y", length=0)


@checked
def responsibilities(result: xr.DataTree, *, most_types: int = 8) -> Plots:
    """Draw the probability of each type for each annotator, as stacked bars.

    Annotators are sorted by their likeliest type, and within it from the most certain to the least:
    where types are well separated the edges between colours are sharp, elsewhere they slope.

    Parameters
    ----------
    result : xarray.DataTree
        From `raters.fit`, of `MixtureBTL`, `ContextualBTL` or `MixturePlackettLuce`.
    most_types : int
        Largest number of colours; of more types, the smallest are merged.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have ``responsibility`` (annotator, type) and ``likeliest`` (annotator).

    Raises
    ------
    SettingError
        When the result has no types.

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> votes, _ = rt.datasets.preference_types(num_items=4, num_annotators=30, votes_each=20,
    ...                                         num_types=2, seed=0)
    >>> result = rt.fit(rt.MixtureBTL(), votes, rt.PGEM(), seed=0, progress=False)
    >>> rt.figures.responsibilities(result).savefig("who.png")        # doctest: +SKIP
    """
    whole("most_types", most_types)
    _check_types(result)
    probs = result["types"]["responsibility"].transpose("annotator", "type")
    table, labels = probs.values, [f"type {name}" for name in probs["type"].values]
    likeliest, certainty = table.argmax(1), table.max(1)
    if table.shape[1] > most_types:
        labels = [*labels[: most_types - 1], f"{table.shape[1] - most_types + 1} more types"]
        table = np.column_stack([table[:, : most_types - 1], table[:, most_types - 1 :].sum(1)])
    order = np.lexsort((-certainty, likeliest))
    count = len(order)
    data = xr.Dataset(
        {
            "responsibility": probs[order],
            "likeliest": ("annotator", probs["type"].values[likeliest[order]]),
        }
    )
    names = [short(name) for name in probs["annotator"].values[order]] if count <= _NAMED else []
    below = 0.075 * max(map(len, names), default=4)
    figure = Figure(figsize=(10.0, 3.2 + below), layout="constrained", dpi=150)
    axes = figure.subplots()
    _stack(axes, table[order], names)
    members = np.bincount(np.minimum(likeliest, len(labels) - 1), minlength=len(labels))
    handles = [
        Patch(color=COLOURS[index % len(COLOURS)], label=f"{label} ({members[index]})")
        for index, label in enumerate(labels)
    ]
    figure.legend(
        handles=handles,
        title="likeliest type of so many",
        fontsize=9,
        title_fontsize=9,
        loc="outside right upper",
    )
    mean = f"{certainty.mean():.2f} on average"
    title = f"Types of {count} annotators; probability of the likeliest {mean}"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return collected(data, figure, axes)


def _stack(axes: Axes, table: Float[np.ndarray, "annotator type"], names: list[str]) -> None:
    """Draw the rows of a table as stacked bars, with names below them where there are some."""
    count = len(table)
    edges, top = np.arange(count + 1) - 0.5, np.zeros(count + 1)
    for index, column in enumerate(table.T):
        above = top + np.append(column, column[-1])
        axes.fill_between(
            edges, top, above, step="post", color=COLOURS[index % len(COLOURS)], linewidth=0
        )
        top = above
    if names:
        axes.set_xticks(np.arange(count), names, rotation=90, fontsize=8)
        axes.vlines(edges[1:-1], 0, 1, color="white", linewidth=0.6)
    else:
        axes.set_xlabel("annotators, by likeliest type and certainty", fontsize=9)
    axes.set(xlim=(edges[0], edges[-1]), ylim=(0, 1), ylabel="probability")
    axes.spines[:].set_visible(False)


@checked
def weights(history: ArrayLike, solution: ArrayLike) -> Plots:
    """Draw the averaged weights of Hedge after each step, and those of the linear programme.

    Parameters
    ----------
    history : array (step, type)
        From `raters.alignment.hedge`.
    solution : array (type,)
        Weights from `raters.alignment.linear_programme`.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have ``weight`` (step, type) and ``solution`` (type).

    Raises
    ------
    SettingError
        When the shapes do not match.

    Examples
    --------
    >>> from raters import alignment, figures
    >>> regret = alignment.regret_matrix([[0.8, 0.1, 0.1], [0.2, 0.6, 0.2]])
    >>> figure = figures.weights(alignment.hedge(regret).history,
    ...                          alignment.linear_programme(regret).weights)
    >>> figure.savefig("weights.png")        # doctest: +SKIP
    """
    path, exact = numbers("history", history), numbers("solution", solution)
    if path.ndim != 2 or exact.shape != path.shape[1:]:
        raise SettingError(
            parameter="history",
            problem=f"has shape {path.shape}, and `solution` {exact.shape}",
            expected="they must be (step, type) and (type,)",
            instead="weights(hedge(regret).history, linear_programme(regret).weights)",
        )
    figure = Figure(figsize=(6.5, 3.8), layout="constrained", dpi=150)
    axes = figure.subplots()
    steps = np.arange(1, len(path) + 1)
    data = xr.Dataset(
        {"weight": (("step", "type"), path), "solution": ("type", exact)},
        {"step": steps, "type": np.arange(len(exact))},
    )
    for code, (line, level) in enumerate(zip(path.T, exact, strict=True)):
        colour = COLOURS[code % len(COLOURS)]
        axes.plot(steps, line, color=colour, label=f"type {code}")
        axes.axhline(level, color=colour, linewidth=1, linestyle="--")
    axes.set(
        xscale="log",
        xlim=(1, max(len(path), 2)),
        ylim=(0, None),
        xlabel="steps averaged",
        ylabel="weight of the policy",
    )
    axes.spines[["top", "right"]].set_visible(False)
    handles, _ = axes.get_legend_handles_labels()
    dashed = Line2D([], [], color=GREY, linestyle="--", linewidth=1, label="linear programme")
    figure.legend(handles=[*handles, dashed], fontsize=9, loc="outside right upper", frameon=False)
    axes.set_title("Averaged weights of Hedge", loc="left", fontsize=11)
    return collected(data, figure, axes)


def _check_types(result: xr.DataTree) -> None:
    """Check that a result has types of annotators."""
    check_draws(result)
    if "types" not in result.children:
        raise SettingError(
            parameter="result",
            problem="has no types",
            expected="fit a model with types of annotators",
            instead="rt.MixtureBTL(num_types=...), rt.models.ContextualBTL(num_types=...) or"
            " rt.models.MixturePlackettLuce(num_types=...)",
        )

"""Figures of preference types. Each returns an ArviZ ``PlotCollection``, as those of `raters.figures` do."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import ArrayLike

from raters._plots import COLOURS, GREY, Plots, check_draws, collected, collected_over, plain, short
from raters.errors import SettingError

# Up to so many annotators, their names fit below the bars.
_NAMED = 60


def profiles(result: xr.DataTree, *, level: float = 0.9, most: int = 40, most_types: int = 6) -> Plots:
    """What each type prefers: its rewards (or coefficients) with intervals, types side by side.

    Rows are in the order of the mean over annotators, which a grey tick marks in each panel: what lies far from its tick is
    what sets a type apart.

    Parameters
    ----------
    result : xarray.DataTree
        Of `MixtureBTL` or `ContextualBTL`.
    level : float
        Posterior probability of the (equal-tailed) intervals.
    most : int
        Items (or features) to show; of more, those on which types differ most.
    most_types : int
        Types to show; of more, the largest.

    Returns
    -------
    arviz_plots.PlotCollection

    Examples
    --------
    >>> import raters as rt, raters.type_figures
    >>> votes, _ = rt.datasets.preference_types(num_items=4, num_annotators=30, votes_each=20, num_types=2, seed=0)
    >>> result = rt.fit(rt.MixtureBTL(), votes, rt.PGEM(), seed=0, progress=False)
    >>> rt.type_figures.profiles(result).savefig("profiles.png")        # doctest: +SKIP
    """
    _check(result)
    posterior = result["posterior"]
    site = "reward" if "reward" in posterior else "coefficient"
    axis = "item" if site == "reward" else "feature"
    draws = posterior[site].stack(sample=("chain", "draw")).transpose("sample", axis, "type")
    share = np.asarray(posterior["type_weight"].mean(("chain", "draw")))
    low, high = np.quantile(draws.values, ((1 - level) / 2, (1 + level) / 2), axis=0)
    centre = draws.values.mean(0)
    common = centre @ share
    apart = ((centre - common[:, None]) ** 2) @ share
    shown = np.sort(np.argsort(-apart, kind="stable")[:most])
    shown = shown[np.argsort(-common[shown], kind="stable")]
    types = draws["type"].values[:most_types]
    parts = {site: centre, f"{site}_low": low, f"{site}_high": high}
    data = xr.Dataset(
        {name: ((axis, "type"), part[shown, :most_types]) for name, part in parts.items()}
        | {"common": (axis, common[shown]), "type_weight": ("type", share[:most_types])},
        {axis: draws[axis].values[shown], "type": types},
        {"level": level},
    )
    figure, panels = _panels(len(types), [short(name) for name in data[axis].values])
    for panel, (number, name) in zip(panels, enumerate(types), strict=True):
        _profile(panel, data.isel(type=number), site, COLOURS[number % len(COLOURS)])
        panel.set_title(f"type {name}: {share[number]:.0%}", fontsize=10, loc="left")
    unit = "logits; 0 is the type's average item" if site == "reward" else "logits per unit of the feature"
    figure.supxlabel(f"{site} ({unit}); grey: mean over annotators", fontsize=9)
    part = f", the {len(types)} largest of {len(share)} types" if len(types) < len(share) else ""
    part += f", the {len(shown)} of {len(common)} {axis}s that differ most" if len(shown) < len(common) else ""
    figure.suptitle(f"What each type prefers: posterior mean and {level:.0%} interval{part}", x=0.01, ha="left", fontsize=11)
    return collected_over(data, figure, panels, "type", types, len(types))


def _panels(number: int, names: list[str]) -> tuple[Figure, list[Axes]]:
    """Panels side by side with one list of names, on the left."""
    wide = 0.9 + 0.075 * max(map(len, names)) + max(1.6 * number, 6.0)
    figure = Figure(figsize=(min(wide, 13.0), 1.6 + 0.22 * max(len(names), 5)), layout="constrained", dpi=150)
    panels = figure.subplots(1, number, sharex=True, sharey=True, squeeze=False)[0].tolist()
    panels[0].set_yticks(np.arange(len(names)), names, fontsize=9)
    panels[0].set_ylim(len(names) - 0.3, -0.7)
    return figure, panels


def _profile(axes: Axes, of: xr.Dataset, site: str, colour: str) -> None:
    place = np.arange(len(of[site]))
    axes.axvline(0, color=GREY, linewidth=0.8, linestyle=":", zorder=0)
    axes.plot(of["common"], place, "|", color="#8C8C8C", markersize=9, markeredgewidth=1.4, zorder=1)
    axes.hlines(place, of[f"{site}_low"], of[f"{site}_high"], color=colour, linewidth=1.8)
    axes.plot(of[site], place, "o", color=colour, markersize=4.5)
    plain(axes, "y")
    axes.tick_params(axis="y", length=0)


def responsibilities(result: xr.DataTree, *, most_types: int = 8) -> Plots:
    """Who is of which type: the probability of each type for each annotator, as columns of colour.

    Annotators come by their likeliest type, and within it from the most certain to the least: a sharp edge between colours
    says that types are told apart, a slope that they are not.

    Parameters
    ----------
    result : xarray.DataTree
        Of `MixtureBTL` or `ContextualBTL`.
    most_types : int
        Types with a colour; of more, the smallest are put together in black.

    Returns
    -------
    arviz_plots.PlotCollection

    Examples
    --------
    >>> import raters as rt, raters.type_figures
    >>> votes, _ = rt.datasets.preference_types(num_items=4, num_annotators=30, votes_each=20, num_types=2, seed=0)
    >>> result = rt.fit(rt.MixtureBTL(), votes, rt.PGEM(), seed=0, progress=False)
    >>> rt.type_figures.responsibilities(result).savefig("who.png")        # doctest: +SKIP
    """
    _check(result)
    chances = result["types"]["responsibility"].transpose("annotator", "type")
    table, labels = chances.values, [f"type {name}" for name in chances["type"].values]
    likeliest, sure = table.argmax(1), table.max(1)
    if table.shape[1] > most_types:
        labels = [*labels[: most_types - 1], f"{table.shape[1] - most_types + 1} more types"]
        table = np.column_stack([table[:, : most_types - 1], table[:, most_types - 1 :].sum(1)])
    order = np.lexsort((-sure, likeliest))
    number = len(order)
    data = xr.Dataset({"responsibility": chances[order], "likeliest": ("annotator", chances["type"].values[likeliest[order]])})
    names = [short(name) for name in chances["annotator"].values[order]] if number <= _NAMED else []
    below = 0.075 * max(map(len, names), default=4)
    figure = Figure(figsize=(10.0, 3.2 + below), layout="constrained", dpi=150)
    axes = figure.subplots()
    edges, top = np.arange(number + 1) - 0.5, np.zeros(number + 1)
    for place, column in enumerate(table[order].T):
        above = top + np.append(column, column[-1])
        axes.fill_between(edges, top, above, step="post", color=COLOURS[place % len(COLOURS)], linewidth=0)
        top = above
    if names:
        axes.set_xticks(np.arange(number), names, rotation=90, fontsize=8)
        axes.vlines(edges[1:-1], 0, 1, color="white", linewidth=0.6)
    else:
        axes.set_xlabel("annotators, by likeliest type and certainty", fontsize=9)
    axes.set(xlim=(edges[0], edges[-1]), ylim=(0, 1), ylabel="probability")
    axes.spines[:].set_visible(False)
    members = np.bincount(np.minimum(likeliest, len(labels) - 1), minlength=len(labels))
    handles = [
        Patch(color=COLOURS[place % len(COLOURS)], label=f"{label} ({members[place]})") for place, label in enumerate(labels)
    ]
    figure.legend(handles=handles, title="likeliest type of so many", fontsize=9, title_fontsize=9, loc="outside right upper")
    title = f"Who is of which type: {number} annotators, of their likeliest with probability {sure.mean():.2f} on average"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return collected(data, figure, axes)


def weights(history: ArrayLike, solution: ArrayLike) -> Plots:
    """How the averaged weights of `raters.alignment.hedge` approach those of the linear programme.

    Parameters
    ----------
    history : array (step, type)
        Of `raters.alignment.hedge`.
    solution : array (type,)
        The weights of `raters.alignment.linear_programme`.

    Returns
    -------
    arviz_plots.PlotCollection

    Examples
    --------
    >>> from raters import alignment, type_figures
    >>> regret = alignment.regret_matrix([[0.8, 0.1, 0.1], [0.2, 0.6, 0.2]])
    >>> figure = type_figures.weights(alignment.hedge(regret).history, alignment.linear_programme(regret).weights)
    >>> figure.savefig("weights.png")        # doctest: +SKIP
    """
    path, goal = np.asarray(history, float), np.asarray(solution, float)
    if path.ndim != 2 or goal.shape != path.shape[1:]:
        raise SettingError(
            f"history has shape {path.shape} and solution {goal.shape}; expected (step, type) and (type,), such as "
            "weights(hedge(regret).history, linear_programme(regret).weights)"
        )
    figure = Figure(figsize=(6.5, 3.8), layout="constrained", dpi=150)
    axes = figure.subplots()
    steps = np.arange(1, len(path) + 1)
    data = xr.Dataset(
        {"weight": (("step", "type"), path), "solution": ("type", goal)}, {"step": steps, "type": np.arange(len(goal))}
    )
    for number, (line, level) in enumerate(zip(path.T, goal, strict=True)):
        colour = COLOURS[number % len(COLOURS)]
        axes.plot(steps, line, color=colour, label=f"type {number}")
        axes.axhline(level, color=colour, linewidth=1, linestyle="--")
    axes.set(xscale="log", xlim=(1, max(len(path), 2)), ylim=(0, None), xlabel="steps averaged", ylabel="weight of the policy")
    axes.spines[["top", "right"]].set_visible(False)
    handles, _ = axes.get_legend_handles_labels()
    dashed = Line2D([], [], color=GREY, linestyle="--", linewidth=1, label="linear programme")
    figure.legend(handles=[*handles, dashed], fontsize=9, loc="outside right upper", frameon=False)
    axes.set_title("Averaged weights of Hedge", loc="left", fontsize=11)
    return collected(data, figure, axes)


def _check(result: xr.DataTree) -> None:
    check_draws(result)
    if "types" not in result.children:
        raise SettingError("this result has no types; fit rt.MixtureBTL(num_types=...) or rt.ContextualBTL(num_types=...)")

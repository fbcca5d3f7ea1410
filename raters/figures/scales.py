"""Figures of item responses and ratings: persons and items on one scale, and the use of the
levels."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from raters.auditing.audit import Audit, check_audit
from raters.errors import SettingError
from raters.errors.validation import checked, share, whole
from raters.figures.base import (
    GREY,
    VERDICTS,
    Plots,
    Rows,
    check_draws,
    collected,
    collected_over,
    forest,
    height,
    name_rows,
    plain,
    rows_of,
)

_BINS = 30


@checked
def item_person_map(result: xr.DataTree, *, level: float = 0.9, most: int = 60) -> Plots:
    """Draw persons and items on one scale (a Wright map): a histogram of the abilities above the
    difficulties of the items, the hardest on top.

    An item tells most about persons whose ability is its difficulty. Where the histogram has
    persons and no item is near, their abilities are hardly told apart.

    Parameters
    ----------
    result : xarray.DataTree
        From `raters.fit`, of item responses, right or wrong or graded.
    level : float
        Posterior probability of the (equal-tailed) intervals.
    most : int
        Largest number of items to show; of more, the hardest and the easiest.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have ``ability`` (person), and ``difficulty``, ``difficulty_low`` and
        ``difficulty_high`` (item; of graded responses also step).

    Raises
    ------
    SettingError
        When the result has no abilities and difficulties.

    Examples
    --------
    >>> import raters as rt, raters.figures
    >>> responses = rt.Responses.from_wide(
    ...     {"who": ["ann", "bob", "eve"], "q1": [1, 1, 0], "q2": [1, 0, 0]}, person="who")
    >>> result = rt.fit(rt.Rasch(), responses, rt.PGEM(), seed=0, progress=False)
    >>> rt.figures.item_person_map(result).savefig("map.png")        # doctest: +SKIP
    """
    share("level", level)
    whole("most", most, least=2)
    check_draws(result)
    posterior = result["posterior"].dataset
    if not {"ability", "difficulty"} <= set(posterior):
        raise SettingError(
            parameter="result",
            problem=f"has no abilities and difficulties; it has {sorted(map(str, posterior))}",
            expected="fit item responses",
            instead="rt.fit(rt.Rasch(), responses, seed=0)",
        )
    difficulty = posterior["difficulty"]
    steps = tuple(map(str, difficulty.dims[3:]))
    mean = difficulty.mean(("chain", "draw"))
    order = np.argsort(-(mean.mean(steps) if steps else mean).values, kind="stable")
    rows = rows_of(mean["item"].values[order], most, (most + 1) // 2)
    shown = {"item": order[rows.shown]}
    tails = ((1 - level) / 2, (1 + level) / 2)
    low, high = (difficulty.quantile(tail, ("chain", "draw")) for tail in tails)
    data = xr.Dataset(
        {
            "ability": posterior["ability"].mean(("chain", "draw")),
            "difficulty": mean.isel(shown),
            "difficulty_low": low.isel(shown).drop_vars("quantile"),
            "difficulty_high": high.isel(shown).drop_vars("quantile"),
        },
        attrs={"level": level},
    )
    figure = Figure(figsize=(8.5, 1.6 + height(rows)), layout="constrained", dpi=150)
    parts = {"height_ratios": [1.4, max(height(rows) - 0.5, 1.0)]}
    above, axes = figure.subplots(2, sharex=True, gridspec_kw=parts)
    _histogram(above, data["ability"].values)
    plain(axes, "y")
    name_rows(axes, rows)
    _difficulties(axes, rows, data, steps)
    axes.set_xlabel("ability of a person · difficulty of an item")
    above.set_title(
        f"Abilities, and difficulties with {level:.0%} intervals", loc="left", fontsize=11
    )
    names = ["persons", "items"]
    return collected_over(data, figure, [above, axes], "panel", names, 1)


def _histogram(axes: Axes, ability: np.ndarray) -> None:
    """Draw the posterior means of the abilities."""
    plain(axes, "y")
    axes.hist(ability, bins=min(_BINS, max(5, len(ability) // 3)), color=GREY, alpha=0.7)
    axes.set_ylabel("persons")


def _difficulties(axes: Axes, rows: Rows, data: xr.Dataset, steps: tuple[str, ...]) -> None:
    """Draw the difficulties, those of the steps of an item in one row."""
    colour = VERDICTS["keep"][0]
    of = {
        name: data[name].values.reshape(len(rows.shown), -1)
        for name in ("difficulty", "difficulty_low", "difficulty_high")
    }
    for step in range(of["difficulty"].shape[1]):
        low, high = of["difficulty_low"][:, step], of["difficulty_high"][:, step]
        axes.hlines(rows.position, low, high, color=colour, linewidth=1.6, alpha=0.8)
        axes.plot(of["difficulty"][:, step], rows.position, "o", color=colour, markersize=4.5)
    if steps:
        names = ", ".join(map(str, data[steps[0]].values[:6]))
        axes.set_title(f"steps into {names}, from left to right", loc="right", fontsize=9)


@checked
def levels(audit: Audit, *, most: int = 40) -> Plots:
    """Draw the share of each annotator's ratings on each level of the scale, the most severe on
    top.

    Parameters
    ----------
    audit : Audit
        Of ratings.
    most : int
        Largest number of annotators to show; of more, the most severe and the most lenient.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have ``share`` (annotator, level).

    Raises
    ------
    SettingError
        When the audit is not of ratings.

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
    whole("most", most, least=2)
    if "levels" not in audit.tables:
        raise SettingError(
            parameter="audit",
            problem=f"has no shares of levels; its tables are {sorted(audit.tables)}",
            expected="audit a fit of ratings",
            instead="rt.audit(rt.ManyFacet(), result)",
        )
    table = audit.tables["levels"]
    order = np.argsort(audit.table["bias"].values, kind="stable")
    names = table["annotator"].values[order]
    rows = rows_of(names, most, (most + 1) // 2)
    data = table.isel(annotator=order[rows.shown])
    figure, axes = forest(rows)
    left = np.zeros(len(rows.shown))
    shares = data["share"].values
    number = shares.shape[1]
    for place, level in enumerate(data["level"].values):
        shade = str(0.92 - 0.75 * place / max(number - 1, 1))
        axes.barh(rows.position, shares[:, place], left=left, color=shade, label=str(level))
        left += shares[:, place]
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of the annotator's ratings")
    axes.legend(
        title="level",
        ncols=min(number, 10),
        fontsize=8,
        loc="lower left",
        bbox_to_anchor=(0, 1.0),
        frameon=False,
    )
    return collected(data, figure, axes)

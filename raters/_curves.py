"""Figures of what is known from outside: how fast campaigns learn, and whether probabilities come true."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from numpy.typing import ArrayLike
from scipy.special import stdtrit
from scipy.stats import beta

from raters._check import share, whole
from raters._plots import COLOURS, GREY, Plots, collected, collected_over, plain, short
from raters.errors import SettingError

_STYLES = ("-", "--", ":", "-.")
# What the measures of `simulate_campaign` are called on an axis.
_WORDS = {
    "tau": "Kendall's τ with the true rewards",
    "coverage": "share of true differences inside 90 % intervals",
    "competence_correlation": "correlation with the true competences",
    "competence_asked": "true competence of those asked, mean of the batch",
    "accuracy": "share of items whose class is right",
}
_NEXT = "pass what rt.acquisition.simulate_campaign returned"


def learning_curves(curves: xr.Dataset, name: str = "tau", *, against: str = "answers", level: float = 0.9) -> Plots:
    """How fast each policy learns: what a simulated campaign measures, against the answers that it took.

    Parameters
    ----------
    curves : xarray.Dataset
        From `raters.acquisition.simulate_campaign` or `replay_campaign`: axes ``policy`` and ``batch``. Other axes are
        replicates, as of ``xr.concat([simulate_campaign(..., seed=s) for s in seeds], "replicate")``.
    name : str
        What is drawn: one of its variables.
    against : str
        What it is drawn against: ``answers`` or ``cost``.
    level : float
        Of replicates the mean is drawn, with a band that holds the mean over all replicates that could be with this
        probability (Student's t). Of a single one there is no band.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have, with axes ``policy`` and ``batch``, the mean under its own name, ``NAME_low``, ``NAME_high``, and the
        mean of `against`. Batches that some replicates of a policy did not reach are left out, so that no line jumps where
        one ends.

    Raises
    ------
    SettingError
        When `curves` have no such variables or no batches.

    Examples
    --------
    >>> import raters as rt, raters.figures, xarray as xr
    >>> votes, truth = rt.datasets.paper(num_items=5, num_annotators=3, num_votes=30, seed=0)
    >>> runs = [rt.acquisition.simulate_campaign(rt.ExtendedBTL(), truth, rt.Candidates.pairs(votes), {"ours": rt.Policy()},
    ...                                          batch_size=5, batches=2, seed=seed, progress=False) for seed in (0, 1)]
    >>> plots = rt.figures.learning_curves(xr.concat(runs, "replicate"))
    >>> list(plots.data), plots.data["tau"].shape
    (['tau', 'tau_low', 'tau_high', 'answers'], (1, 2))
    >>> plots.savefig("curves.png")        # doctest: +SKIP
    """
    data, number = _averaged(_checked(curves, name, against), name, against, level)
    figure = Figure(figsize=(8.5, 4.8), layout="constrained", dpi=150)
    axes = figure.subplots()
    for place, policy in enumerate(data["policy"].values):
        one = data.isel(policy=place)
        # Of 32 policies no two have both the colour and the style.
        colour, style = COLOURS[place % len(COLOURS)], _STYLES[(place + place // len(COLOURS)) % len(_STYLES)]
        axes.plot(one[against], one[name], color=colour, linestyle=style, linewidth=1.8, label=short(policy))
        axes.fill_between(one[against], one[f"{name}_low"], one[f"{name}_high"], color=colour, alpha=0.15, linewidth=0)
    axes.set(xlabel=against, ylabel=_WORDS.get(name, name))
    band = f", mean of {number} replicates and {level:.0%} interval of it" if number > 1 else ""
    figure.suptitle(f"What is learned from so many {against}{band}", x=0.01, ha="left", fontsize=11)
    plain(axes)
    _name_lines(axes, data[name])
    return collected(data, figure, axes)


def _checked(curves: xr.Dataset, name: str, against: str) -> xr.Dataset:
    """The two variables, with axes ``policy`` and ``batch``."""
    if not isinstance(curves, xr.Dataset) or "batch" not in curves.dims:
        what = (
            f"have axes {sorted(map(str, curves.dims))}" if isinstance(curves, xr.Dataset) else f"are {type(curves).__name__}"
        )
        raise SettingError(f"curves {what}; expected a dataset with axes 'policy' and 'batch': {_NEXT}")
    for role, variable in (("name", name), ("against", against)):
        if variable not in curves:
            raise SettingError(f"{role}={variable!r} is not among the curves; write one of {sorted(map(str, curves))}")
    both = curves[[name, against]]
    return both if "policy" in both.dims else both.expand_dims(policy=["policy"])


def _averaged(curves: xr.Dataset, name: str, against: str, level: float) -> tuple[xr.Dataset, int]:
    """Means over replicates with their intervals, and how many replicates there are."""
    share("level", level)
    extra = [axis for axis in curves.dims if axis not in ("policy", "batch")]
    curves = curves.stack(_of=extra) if extra else curves.expand_dims("_of")
    value, x = (curves[variable].transpose("policy", "batch", "_of") for variable in (name, against))
    there = value.notnull().sum("_of")
    whole_batch = there == there.max("batch")
    mean = value.mean("_of").where(whole_batch)
    number = there.max("batch")
    error = value.std("_of", ddof=1) / np.sqrt(number) if curves.sizes["_of"] > 1 else xr.full_like(mean, np.nan)
    half = error * stdtrit(np.maximum(number - 1, 1), (1 + level) / 2)
    data = {name: mean, f"{name}_low": mean - half, f"{name}_high": mean + half, against: x.mean("_of").where(whole_batch)}
    kept = xr.Dataset({key: one.drop_vars("_of", errors="ignore") for key, one in data.items()}, attrs={"level": level})
    return kept.transpose("policy", "batch"), int(number.max())


def _name_lines(axes: Axes, value: xr.DataArray) -> None:
    """The names of the lines beside them, in the order in which the lines end."""
    if value.sizes["policy"] == 1 and value["policy"].item() == "policy":
        return
    handles, _ = axes.get_legend_handles_labels()
    reached = [np.append(-np.inf, line[np.isfinite(line)])[-1] for line in value.transpose("policy", "batch").values]
    handles = [handles[place] for place in np.argsort(-np.array(reached), kind="stable")]
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=9, frameon=False, handlelength=3)


def reliability(
    probability: ArrayLike, outcome: ArrayLike, *, count: ArrayLike | None = None, bins: int = 10, level: float = 0.9
) -> Plots:
    """Do probabilities come true: predicted probability against observed frequency, and how often each was predicted.

    Predictions are sorted into `bins` of equal width. A point lies at the mean prediction of its bin and at the share that came
    true, with Jeffreys' interval for that share; on the dashed line the two are equal. The expected calibration error is the
    distance from the line, averaged over predictions; what it would be on average if every prediction were right is written
    beside it, because it is never 0 in a finite sample.

    Parameters
    ----------
    probability : array
        Predictions between 0 and 1, of any shape: of votes ``rt.predict(model, result, asked).mean(("chain", "draw"))``, of
        item labels the probability of the label, of annotators P(adversarial).
    outcome : array
        Of the same shape: 1 where it came true, 0 where not, ½ for ties. With `count`, how often it came true.
    count : array, optional
        How often each was tried, of the same shape; once by default.
    bins : int
    level : float
        Posterior probability of the intervals, which take the outcomes to be independent.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have, with axis ``bin``, ``predicted`` and ``observed`` with ``observed_low`` and ``observed_high``, and
        ``count``; bins without predictions are missing. ``data.attrs`` have ``calibration_error`` and ``expected_by_chance``.

    Raises
    ------
    SettingError
        When shapes differ, or values are none that they can have.

    References
    ----------
    Brown, L. D., Cai, T. T. and DasGupta, A. (2001). Interval estimation for a binomial proportion. Statistical Science,
    16(2), 101–133. Guo, C., Pleiss, G., Sun, Y. and Weinberger, K. Q. (2017). On calibration of modern neural networks.
    Proceedings of the 34th International Conference on Machine Learning, 1321–1330.

    Examples
    --------
    >>> import numpy as np, raters.figures as figures
    >>> rng = np.random.default_rng(0)
    >>> probability = rng.random(2000)
    >>> plots = figures.reliability(probability, rng.random(2000) < probability)
    >>> round(plots.data.attrs["calibration_error"], 2), round(plots.data.attrs["expected_by_chance"], 2)
    (0.03, 0.02)
    >>> plots.savefig("reliability.png")        # doctest: +SKIP

    The probability of the first side of each vote, against the votes that it got:

    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, rt.PGEM(), seed=0, progress=False)
    >>> chance = rt.predict(rt.BTL(), result).mean(("chain", "draw"))
    >>> int(figures.reliability(chance, votes.wins, count=votes.count).data["count"].sum())
    200
    """
    whole("bins", bins)
    share("level", level)
    data = _binned(*_tried(probability, outcome, count), bins, level)
    figure = Figure(figsize=(6.6, 7.4), layout="constrained", dpi=150)
    upper, lower = figure.subplots(2, 1, height_ratios=(4, 1), sharex=True)
    _against_the_line(upper, data)
    _histogram(lower, data, bins)
    many = data.attrs["predictions"]
    title = f"Do probabilities come true: {many:,} prediction{'s' * (many != 1)}"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return collected_over(data, figure, [upper, lower], "row", ["reliability", "histogram"], 1)


def _tried(probability: ArrayLike, outcome: ArrayLike, count: ArrayLike | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predictions, how often each came true, and how often it was tried, flat."""
    chance, true = np.asarray(probability, float), np.asarray(outcome, float)
    times = np.ones(chance.shape) if count is None else np.asarray(count, float)
    for name, value in (("outcome", true), ("count", times)):
        if value.shape != chance.shape:
            raise SettingError(
                f"{name} has shape {value.shape} and probability {chance.shape}; they must be equal. Of draws pass the mean, "
                'such as rt.predict(model, result).mean(("chain", "draw"))'
            )
    if not chance.size or not times.sum() > 0:
        raise SettingError("there are no predictions; give arrays of probabilities and of outcomes")
    if wrong := chance[~((chance >= 0) & (chance <= 1))].tolist():
        raise SettingError(f"probability has {wrong[0]:g}; probabilities lie between 0 and 1 (swap the arguments?)")
    if wrong := times[~((times >= 0) & (times % 1 == 0))].tolist():
        raise SettingError(f"count has {wrong[0]:g}; it must hold whole numbers, how often each was tried")
    if wrong := true[~((true >= 0) & (true <= times) & (2 * true % 1 == 0))].tolist():
        most = "1" if count is None else "its count"
        raise SettingError(
            f"outcome has {wrong[0]:g}; it says how often each came true, from 0 to {most}, a tie as half. "
            "Of labels write label == truth"
        )
    return chance.ravel(), true.ravel(), times.ravel()


def _binned(chance: np.ndarray, true: np.ndarray, times: np.ndarray, bins: int, level: float) -> xr.Dataset:
    """One row for each bin with predictions in it."""
    of = np.minimum((chance * bins).astype(int), bins - 1)
    number, came_true, sure, spread = (
        np.bincount(of, weight, bins) for weight in (times, true, times * chance, times * chance * (1 - chance))
    )
    filled = np.flatnonzero(number)
    number, came_true, sure, spread = (part[filled] for part in (number, came_true, sure, spread))
    tails = np.array([[(1 - level) / 2], [(1 + level) / 2]])
    low, high = beta.ppf(tails, came_true + 0.5, number - came_true + 0.5)
    columns = {
        "predicted": sure / number,
        "observed": came_true / number,
        # An interval that leaves out a share of 0 or of 1 that was observed would be no interval for it.
        "observed_low": np.where(came_true == 0, 0, low),
        "observed_high": np.where(came_true == number, 1, high),
        "count": number.astype(int),
    }
    error = np.abs(came_true - sure).sum() / number.sum()
    # Were each prediction right, the sum over a bin would be about normal: its mean distance from its mean is √(2 v / π).
    by_chance = np.sqrt(2 * spread / np.pi).sum() / number.sum()
    facts = {"calibration_error": float(error), "expected_by_chance": float(by_chance), "level": level}
    return xr.Dataset(
        {name: ("bin", value) for name, value in columns.items()},
        {"bin": filled},
        facts | {"predictions": int(number.sum())},
    )


def _against_the_line(axes: Axes, data: xr.Dataset) -> None:
    colour = COLOURS[0]
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--", zorder=1)
    axes.vlines(data["predicted"], data["observed_low"], data["observed_high"], color=colour, linewidth=1.8)
    axes.plot(data["predicted"], data["observed"], "o", color=colour, markersize=6, clip_on=False)
    words = (
        f"expected calibration error {data.attrs['calibration_error']:.3f} "
        f"({data.attrs['expected_by_chance']:.3f} on average if all probabilities were right)"
    )
    axes.set_title(words, loc="left", fontsize=9)
    axes.set(xlim=(0, 1), ylim=(0, 1), ylabel=f"observed frequency, with {data.attrs['level']:.0%} interval")
    plain(axes)


def _histogram(axes: Axes, data: xr.Dataset, bins: int) -> None:
    number = data["count"].values
    middle = (data["bin"].values + 0.5) / bins
    axes.bar(middle, number, width=0.9 / bins, color=COLOURS[4])
    if bins <= 12:
        for x, one in zip(middle, number.tolist(), strict=True):
            words = f"{one:,}" if one < 10_000 else f"{one / 1000:,.0f}k"
            axes.annotate(words, (x, one), xytext=(0, 2), textcoords="offset points", ha="center", fontsize=8)
    axes.set(xlabel="predicted probability", ylabel="predictions", ylim=(0, 1.25 * number.max()))
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    plain(axes)

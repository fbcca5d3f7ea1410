"""Figures of learning curves and of calibration, which need known truths."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from numpy.typing import ArrayLike
from scipy.special import stdtrit
from scipy.stats import beta

from raters.errors import SettingError
from raters.errors.validation import checked, numbers, share, whole
from raters.figures.base import COLOURS, GREY, Plots, collected, collected_over, plain, short

_STYLES = ("-", "--", ":", "-.")
# Axis labels of the measures of `simulate_campaign`.
_WORDS = {
    "tau": "Kendall's τ with the true rewards",
    "coverage": "share of true differences inside 90 % intervals",
    "competence_correlation": "correlation with the true competences",
    "competence_asked": "true competence of those asked, mean of the batch",
    "accuracy": "share of items whose class is right",
}
_NEXT = "pass what rt.acquisition.simulate_campaign returned"


@checked
def learning_curves(
    curves: xr.Dataset, name: str = "tau", *, against: str = "answers", level: float = 0.9
) -> Plots:
    """Draw a measure of simulated campaigns against the number of answers, one line per policy.

    Parameters
    ----------
    curves : xarray.Dataset
        From `raters.acquisition.simulate_campaign` or `replay_campaign`: axes ``policy`` and
        ``batch``. Other axes are replicates, as of ``xr.concat([simulate_campaign(..., seed=s) for
        s in seeds], "replicate")``.
    name : str
        Variable to draw, such as ``tau``.
    against : str
        Variable of the horizontal axis: ``answers`` or ``cost``.
    level : float
        Coverage of the band around the mean over replicates, a confidence interval by Student's t.
        A single replicate has no band.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have, with axes ``policy`` and ``batch``, the mean under its own name,
        ``NAME_low``, ``NAME_high``, and the mean of `against`. Batches that some replicates of a
        policy did not reach are left out, so that no line jumps where a replicate ends.

    Raises
    ------
    SettingError
        When `curves` have no such variables or no batches.

    Examples
    --------
    >>> import raters as rt, raters.figures, xarray as xr
    >>> votes, truth = rt.datasets.paper(num_items=5, num_annotators=3, num_votes=30, seed=0)
    >>> runs = [rt.acquisition.simulate_campaign(
    ...             rt.ExtendedBTL(), truth, rt.Candidates.pairs(votes), {"ours": rt.Policy()},
    ...             batch_size=5, batches=2, seed=seed, progress=False) for seed in (0, 1)]
    >>> plots = rt.figures.learning_curves(xr.concat(runs, "replicate"))
    >>> list(plots.data), plots.data["tau"].shape
    (['tau', 'tau_low', 'tau_high', 'answers'], (1, 2))
    >>> plots.savefig("curves.png")        # doctest: +SKIP
    """
    data, num_replicates = _averaged(_checked(curves, name, against), name, against, level)
    figure = Figure(figsize=(8.5, 4.8), layout="constrained", dpi=150)
    axes = figure.subplots()
    for index, policy in enumerate(data["policy"].values):
        curve = data.isel(policy=index)
        # Each of up to 32 policies has its own pair of colour and style.
        colour = COLOURS[index % len(COLOURS)]
        style = _STYLES[(index + index // len(COLOURS)) % len(_STYLES)]
        axes.plot(
            curve[against],
            curve[name],
            color=colour,
            linestyle=style,
            linewidth=1.8,
            label=short(policy),
        )
        axes.fill_between(
            curve[against],
            curve[f"{name}_low"],
            curve[f"{name}_high"],
            color=colour,
            alpha=0.15,
            linewidth=0,
        )
    axes.set(xlabel=against, ylabel=_WORDS.get(name, name))
    band = (
        f", mean of {num_replicates} replicates and {level:.0%} interval of it"
        if num_replicates > 1
        else ""
    )
    figure.suptitle(f"Quality by number of {against}{band}", x=0.01, ha="left", fontsize=11)
    plain(axes)
    _name_lines(axes, data[name])
    return collected(data, figure, axes)


def _checked(curves: xr.Dataset, name: str, against: str) -> xr.Dataset:
    """Return the two variables, with axes ``policy`` and ``batch``."""
    if not isinstance(curves, xr.Dataset) or "batch" not in curves.dims:
        description = (
            f"has axes {sorted(map(str, curves.dims))}"
            if isinstance(curves, xr.Dataset)
            else f"is of type {type(curves).__name__}"
        )
        raise SettingError(
            parameter="curves",
            problem=description,
            expected=f"it must have axes 'policy' and 'batch'; {_NEXT}",
        )
    for role, variable in (("name", name), ("against", against)):
        if variable not in curves:
            raise SettingError(
                parameter=role,
                value=variable,
                problem="is not among the curves",
                expected=f"choose one of {sorted(map(str, curves))}",
            )
    both = curves[[name, against]]
    return both if "policy" in both.dims else both.expand_dims(policy=["policy"])


def _averaged(curves: xr.Dataset, name: str, against: str, level: float) -> tuple[xr.Dataset, int]:
    """Return means over replicates with their intervals, and the number of replicates."""
    share("level", level)
    extra = [axis for axis in curves.dims if axis not in ("policy", "batch")]
    curves = curves.stack(_of=extra) if extra else curves.expand_dims("_of")
    value, x = (
        curves[variable].transpose("policy", "batch", "_of") for variable in (name, against)
    )
    reached = value.notnull().sum("_of")
    count = reached.max("batch")
    complete = reached == count
    mean = value.mean("_of").where(complete)
    error = (
        value.std("_of", ddof=1) / np.sqrt(count)
        if curves.sizes["_of"] > 1
        else xr.full_like(mean, np.nan)
    )
    half = error * stdtrit(np.maximum(count - 1, 1), (1 + level) / 2)
    data = {
        name: mean,
        f"{name}_low": mean - half,
        f"{name}_high": mean + half,
        against: x.mean("_of").where(complete),
    }
    averaged = xr.Dataset(
        {key: values.drop_vars("_of", errors="ignore") for key, values in data.items()},
        attrs={"level": level},
    )
    return averaged.transpose("policy", "batch"), int(count.max())


def _name_lines(axes: Axes, value: xr.DataArray) -> None:
    """Draw a legend beside the lines, in the order in which the lines end."""
    if value.sizes["policy"] == 1 and value["policy"].item() == "policy":
        return
    handles = axes.get_lines()
    last = [
        np.append(-np.inf, line[np.isfinite(line)])[-1]
        for line in value.transpose("policy", "batch").values
    ]
    handles = [handles[index] for index in np.argsort(-np.array(last), kind="stable")]
    axes.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(1.01, 1),
        fontsize=9,
        frameon=False,
        handlelength=3,
    )


@checked
def reliability(
    probability: ArrayLike,
    outcome: ArrayLike,
    *,
    count: ArrayLike | None = None,
    bins: int = 10,
    level: float = 0.9,
) -> Plots:
    """Draw a reliability diagram: predicted probability against observed frequency.

    Predictions are sorted into `bins` of equal width. A point lies at the mean prediction of its
    bin and at the share that came true, with Jeffreys' interval for that share; on the dashed line
    the two are equal. Below is a histogram of the predictions.

    The expected calibration error is the distance from the line, averaged over predictions. It is
    never 0 in a finite sample, so its expectation under perfect calibration is written beside it.

    Parameters
    ----------
    probability : array
        Predictions between 0 and 1, of any shape: of votes ``rt.predict(model, result,
        asked).mean(("chain", "draw"))``, of item labels the probability of the label, of annotators
        P(adversarial).
    outcome : array
        Of the same shape: 1 where the event happened, 0 where not, ½ for ties. With `count`, the
        number of times that it happened.
    count : array, optional
        Number of trials of each prediction, of the same shape; 1 by default.
    bins : int
        Number of bins.
    level : float
        Posterior probability of the intervals, which treat outcomes as independent.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have, with axis ``bin``, ``predicted`` and ``observed`` with ``observed_low``
        and ``observed_high``, and ``count``; bins without predictions are missing. ``data.attrs``
        have ``calibration_error`` and ``expected_by_chance``.

    Raises
    ------
    SettingError
        When shapes differ, or values lie outside of their range.

    References
    ----------
    Brown, L. D., Cai, T. T. and DasGupta, A. (2001). Interval estimation for a binomial proportion.
    Statistical Science, 16(2), 101–133. Guo, C., Pleiss, G., Sun, Y. and Weinberger, K. Q. (2017).
    On calibration of modern neural networks. Proceedings of the 34th International Conference on
    Machine Learning, 1321–1330.

    Examples
    --------
    >>> import numpy as np, raters.figures as figures
    >>> rng = np.random.default_rng(0)
    >>> probability = rng.random(2000)
    >>> plots = figures.reliability(probability, rng.random(2000) < probability)
    >>> plots.data.attrs["calibration_error"], plots.data.attrs["expected_by_chance"]
    (0.03, 0.02)
    >>> plots.savefig("reliability.png")        # doctest: +SKIP

    The probability of the first side of each vote, against the votes that it got:

    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, rt.PGEM(), seed=0, progress=False)
    >>> p_first = rt.predict(rt.BTL(), result).mean(("chain", "draw"))
    >>> int(figures.reliability(p_first, votes.wins, count=votes.count).data["count"].sum())
    200
    """
    whole("bins", bins)
    share("level", level)
    data = _binned(*_trials(probability, outcome, count), bins, level)
    figure = Figure(figsize=(6.6, 7.4), layout="constrained", dpi=150)
    upper, lower = figure.subplots(2, 1, height_ratios=(4, 1), sharex=True)
    _calibration_points(upper, data)
    _histogram(lower, data, bins)
    count = data.attrs["predictions"]
    title = f"Do probabilities come true: {count:,} prediction{'s' * (count != 1)}"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return collected_over(data, figure, [upper, lower], "row", ["reliability", "histogram"], 1)


def _trials(
    probability: ArrayLike, outcome: ArrayLike, count: ArrayLike | None
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Check and flatten predictions, numbers of events, and numbers of trials."""
    probs, events = numbers("probability", probability), numbers("outcome", outcome)
    trials = np.ones(probs.shape) if count is None else numbers("count", count)
    for name, value in (("outcome", events), ("count", trials)):
        if value.shape != probs.shape:
            raise SettingError(
                parameter=name,
                problem=f"has shape {value.shape}, and `probability` {probs.shape}",
                expected="they must be equal; of draws pass the mean",
                instead='rt.predict(model, result).mean(("chain", "draw"))',
            )
    if not probs.size or not trials.sum() > 0:
        raise SettingError(
            parameter="probability",
            problem="holds no predictions",
            expected="give arrays of probabilities and of outcomes",
        )
    if wrong := probs[~((probs >= 0) & (probs <= 1))].tolist():
        raise SettingError(
            parameter="probability",
            value=wrong[0],
            expected="probabilities lie between 0 and 1 (are the arguments swapped?)",
        )
    if wrong := trials[~((trials >= 0) & (trials % 1 == 0))].tolist():
        raise SettingError(
            parameter="count",
            value=wrong[0],
            expected="it must hold whole numbers, how often each was tried",
        )
    if wrong := events[~((events >= 0) & (events <= trials) & (2 * events % 1 == 0))].tolist():
        most = "1" if count is None else "its count"
        raise SettingError(
            parameter="outcome",
            value=wrong[0],
            expected=f"it says how often each came true, from 0 to {most}, a tie as half",
            instead="label == truth for labels",
        )
    return probs.ravel(), events.ravel(), trials.ravel()


def _binned(
    probs: Float[np.ndarray, " n"],
    events: Float[np.ndarray, " n"],
    trials: Float[np.ndarray, " n"],
    bins: int,
    level: float,
) -> xr.Dataset:
    """Summarise the predictions of each bin that has any."""
    index = np.minimum((probs * bins).astype(int), bins - 1)
    count, observed, expected, variance = (
        np.bincount(index, weight, bins)
        for weight in (trials, events, trials * probs, trials * probs * (1 - probs))
    )
    filled = np.flatnonzero(count)
    count, observed, expected, variance = (
        sums[filled] for sums in (count, observed, expected, variance)
    )
    tails = np.array([[(1 - level) / 2], [(1 + level) / 2]])
    low, high = beta.ppf(tails, observed + 0.5, count - observed + 0.5)
    columns = {
        "predicted": expected / count,
        "observed": observed / count,
        # Jeffreys' interval would exclude an observed share of 0 or 1.
        "observed_low": np.where(observed == 0, 0, low),
        "observed_high": np.where(observed == count, 1, high),
        "count": count.astype(int),
    }
    error = np.abs(observed - expected).sum() / count.sum()
    # Under perfect calibration the sum over a bin is about normal, with mean absolute deviation
    # √(2 v / π).
    by_chance = np.sqrt(2 * variance / np.pi).sum() / count.sum()
    facts = {
        "calibration_error": float(error),
        "expected_by_chance": float(by_chance),
        "level": level,
    }
    return xr.Dataset(
        {name: ("bin", value) for name, value in columns.items()},
        {"bin": filled},
        facts | {"predictions": int(count.sum())},
    )


def _calibration_points(axes: Axes, data: xr.Dataset) -> None:
    """Draw observed against predicted frequencies, with the line on which they are equal."""
    colour = COLOURS[0]
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--", zorder=1)
    axes.vlines(
        data["predicted"], data["observed_low"], data["observed_high"], color=colour, linewidth=1.8
    )
    axes.plot(data["predicted"], data["observed"], "o", color=colour, markersize=6, clip_on=False)
    title = (
        f"expected calibration error {data.attrs['calibration_error']:.3f} "
        f"({data.attrs['expected_by_chance']:.3f} on average if all probabilities were right)"
    )
    axes.set_title(title, loc="left", fontsize=9)
    axes.set(
        xlim=(0, 1),
        ylim=(0, 1),
        ylabel=f"observed frequency, with {data.attrs['level']:.0%} interval",
    )
    plain(axes)


def _histogram(axes: Axes, data: xr.Dataset, bins: int) -> None:
    """Draw the number of predictions in each bin."""
    counts = data["count"].values
    middle = (data["bin"].values + 0.5) / bins
    axes.bar(middle, counts, width=0.9 / bins, color=COLOURS[4])
    if bins <= 12:
        for x, count in zip(middle, counts.tolist(), strict=True):
            text = f"{count:,}" if count < 10_000 else f"{count / 1000:,.0f}k"
            axes.annotate(
                text, (x, count), xytext=(0, 2), textcoords="offset points", ha="center", fontsize=8
            )
    axes.set(xlabel="predicted probability", ylabel="predictions", ylim=(0, 1.25 * counts.max()))
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    plain(axes)

"""Figures of learning curves, of the weights of policies, and of calibration."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from numpy.typing import ArrayLike
from scipy.special import stdtrit
from scipy.stats import beta

from raters.errors import refuse
from raters.errors.validation import checked, numbers
from raters.figures.base import (
    COLOURS,
    GREY,
    Plots,
    Style,
    collected,
    collected_over,
    new_figure,
    plain,
)
from raters.figures.rows import short

_STYLES = ("-", "--", ":", "-.")
# Coverage of all bands and intervals, and number of bins of predictions.
_LEVEL, _BINS = 0.9, 10
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

    Around the mean over replicates lies a 90 % confidence interval by Student's t.

    Parameters
    ----------
    curves : xarray.Dataset
        From `raters.acquisition.simulate_campaign` or `replay_campaign`: axes ``policy`` and
        ``batch``. Other axes are replicates, as of ``xr.concat([simulate_campaign(..., seed=s) for
        s in seeds], "replicate")``.
    name : str
        Variable to draw, such as ``tau``.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have, with axes ``policy`` and ``batch``, the mean under its own name,
        ``NAME_low``, ``NAME_high``, and the mean of ``answers``. Batches that some replicates of a
        policy did not reach are left out, so that no line jumps where a replicate ends.

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
    if "batch" not in curves.dims or "answers" not in curves:
        expected = "pass what rt.acquisition.simulate_campaign returned"
        refuse("curves", curves, "is no campaign's", expected)
    if name not in curves:
        expected = f"choose one of {sorted(map(str, curves))}"
        refuse("name", name, "is not among the curves", expected)
    data, replicates = _averaged(curves[[name, "answers"]], name)
    figure = new_figure(8.5, 4.8)
    axes = figure.subplots()
    for index, policy in enumerate(data["policy"].values):
        curve = data.isel(policy=index)
        # Each of up to 32 policies has its own pair of colour and style.
        colour = COLOURS[index % len(COLOURS)]
        style = _STYLES[(index + index // len(COLOURS)) % len(_STYLES)]
        label, x = short(policy), curve["answers"]
        axes.plot(x, curve[name], color=colour, linestyle=style, linewidth=1.8, label=label)
        low, high = curve[f"{name}_low"], curve[f"{name}_high"]
        axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.set(xlabel="answers", ylabel=_WORDS.get(name, name))
    band = f", mean of {replicates} replicates and 90% interval of it" if replicates > 1 else ""
    figure.suptitle(f"Quality by number of answers{band}", x=0.01, ha="left", fontsize=11)
    plain(axes)
    if "policy" in curves.dims:
        _name_lines(axes, data[name])
    return collected(data, figure, axes)


def _averaged(curves: xr.Dataset, name: str) -> tuple[xr.Dataset, int]:
    """Return means over replicates with their intervals, and the number of replicates."""
    if "policy" not in curves.dims:
        curves = curves.expand_dims(policy=["policy"])
    extra = [axis for axis in curves.dims if axis not in ("policy", "batch")]
    value = curves[name]
    complete = value.notnull().sum(extra)
    count = complete.max("batch")
    complete = complete == count
    mean = value.mean(extra).where(complete)
    several = value.sizes.keys() - {"policy", "batch"}
    error = value.std(extra, ddof=1) / np.sqrt(count) if several else xr.full_like(mean, np.nan)
    half = error * stdtrit(np.maximum(count - 1, 1), (1 + _LEVEL) / 2)
    answers = curves["answers"].mean(set(extra) & set(curves["answers"].dims)).where(complete)
    columns = {name: mean, f"{name}_low": mean - half, f"{name}_high": mean + half}
    averaged = xr.Dataset(columns | {"answers": answers}, attrs={"level": _LEVEL})
    return averaged.transpose("policy", "batch"), int(count.max())


def _name_lines(axes: Axes, value: xr.DataArray) -> None:
    """Draw a legend beside the lines, in the order in which the lines end."""
    lines = value.transpose("policy", "batch").values
    last = [np.append(-np.inf, line[np.isfinite(line)])[-1] for line in lines]
    order = np.argsort(-np.array(last), kind="stable")
    axes.legend(
        handles=[axes.get_lines()[index] for index in order],
        loc="upper left",
        bbox_to_anchor=(1.01, 1),
        fontsize=9,
        frameon=False,
        handlelength=3,
    )


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
        problem = f"has shape {path.shape}, and `solution` {exact.shape}"
        refuse("history", problem=problem, expected="they must be (step, type) and (type,)")
    figure = new_figure(6.5, 3.8)
    axes = figure.subplots()
    data = xr.Dataset(
        {"weight": (("step", "type"), path), "solution": ("type", exact)},
        {"step": np.arange(1, len(path) + 1), "type": np.arange(len(exact))},
    )
    for code, (line, level) in enumerate(zip(path.T, exact, strict=True)):
        colour = COLOURS[code % len(COLOURS)]
        axes.plot(data["step"], line, color=colour, label=f"type {code}")
        axes.axhline(level, color=colour, linewidth=1, linestyle="--")
    axes.set(xscale="log", xlim=(1, max(len(path), 2)), ylim=(0, None))
    axes.set(xlabel="steps averaged", ylabel="weight of the policy")
    axes.spines[["top", "right"]].set_visible(False)
    handles, _ = axes.get_legend_handles_labels()
    dashed = Line2D([], [], color=GREY, linestyle="--", linewidth=1, label="linear programme")
    figure.legend(handles=[*handles, dashed], fontsize=9, loc="outside right upper", frameon=False)
    axes.set_title("Averaged weights of Hedge", loc="left", fontsize=11)
    return collected(data, figure, axes)


@checked
def reliability(
    probability: ArrayLike, outcome: ArrayLike, *, count: ArrayLike | None = None
) -> Plots:
    """Draw a reliability diagram: predicted probability against observed frequency.

    Predictions are sorted into ten bins of equal width. A point lies at the mean prediction of its
    bin and at the share that came true, with Jeffreys' 90 % interval for that share; on the dashed
    line the two are equal. Below is a histogram of the predictions.

    The expected calibration error is the distance from the line, averaged over predictions. It is
    never 0 in a finite sample, so its expectation under perfect calibration is written beside it.

    Parameters
    ----------
    probability : array
        Predictions between 0 and 1, of any shape, such as of votes ``rt.predict(model, result,
        asked).mean(("chain", "draw"))``.
    outcome : array
        Of the same shape: 1 where the event happened, 0 where not, ½ for ties. With `count`, the
        number of times that it happened.
    count : array, optional
        Number of trials of each prediction, of the same shape; 1 by default.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``data`` have, with axis ``bin``, ``predicted`` and ``observed`` with ``observed_low``
        and ``observed_high``, and ``count``; bins without predictions are missing. ``data.attrs``
        have ``calibration_error`` and ``expected_by_chance``.

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
    """
    data = _binned(*_trials(probability, outcome, count))
    figure = new_figure(6.6, 7.4)
    upper, lower = figure.subplots(2, 1, height_ratios=(4, 1), sharex=True)
    _calibration_points(upper, data)
    _histogram(lower, data)
    title = f"Do probabilities come true: {data.attrs['predictions']:,} predictions"
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
            problem = f"has shape {value.shape}, and `probability` {probs.shape}"
            refuse(name, problem=problem, expected="they must be equal; of draws pass the mean")
    if not probs.size or not trials.sum() > 0:
        refuse("probability", problem="holds no predictions", expected="give probabilities")
    for name, values, right, expected in (
        ("probability", probs, (probs >= 0) & (probs <= 1), "probabilities lie between 0 and 1"),
        ("count", trials, (trials >= 0) & (trials % 1 == 0), "it must hold whole numbers"),
        (
            "outcome",
            events,
            (events >= 0) & (events <= trials) & (2 * events % 1 == 0),
            "it says how often each came true, at most as often as it was tried, a tie as half",
        ),
    ):
        if not right.all():
            refuse(name, values[~right].tolist()[0], expected=expected)
    return probs.ravel(), events.ravel(), trials.ravel()


def _binned(
    probs: Float[np.ndarray, " n"], events: Float[np.ndarray, " n"], trials: Float[np.ndarray, " n"]
) -> xr.Dataset:
    """Summarise the predictions of each bin that has any."""
    index = np.minimum((probs * _BINS).astype(int), _BINS - 1)
    sums = [trials, events, trials * probs, trials * probs * (1 - probs)]
    table = np.stack([np.bincount(index, values, _BINS) for values in sums])
    filled = np.flatnonzero(table[0])
    count, observed, expected, variance = table[:, filled]
    tails = np.array([[(1 - _LEVEL) / 2], [(1 + _LEVEL) / 2]])
    low, high = beta.ppf(tails, observed + 0.5, count - observed + 0.5)
    columns = {
        "predicted": expected / count,
        "observed": observed / count,
        # Jeffreys' interval would exclude an observed share of 0 or 1.
        "observed_low": np.where(observed == 0, 0, low),
        "observed_high": np.where(observed == count, 1, high),
        "count": count.astype(int),
    }
    # Under perfect calibration the sum over a bin is about normal, with mean absolute deviation
    # √(2 v / π).
    by_chance = np.sqrt(2 * variance / np.pi).sum() / count.sum()
    attrs = {
        "calibration_error": float(np.abs(observed - expected).sum() / count.sum()),
        "expected_by_chance": float(by_chance),
        "predictions": int(count.sum()),
    }
    variables = {name: ("bin", value) for name, value in columns.items()}
    return xr.Dataset(variables, {"bin": filled}, attrs)


def _calibration_points(axes: Axes, data: xr.Dataset) -> None:
    """Draw observed against predicted frequencies, with the line on which they are equal."""
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--", zorder=1)
    low, high = data["observed_low"], data["observed_high"]
    axes.vlines(data["predicted"], low, high, color=COLOURS[0], linewidth=1.8)
    style: Style = {"color": COLOURS[0], "markersize": 6, "clip_on": False}
    axes.plot(data["predicted"], data["observed"], "o", **style)
    error, by_chance = data.attrs["calibration_error"], data.attrs["expected_by_chance"]
    right = f"{by_chance:.3f} on average if all probabilities were right"
    axes.set_title(f"expected calibration error {error:.3f} ({right})", loc="left", fontsize=9)
    axes.set(xlim=(0, 1), ylim=(0, 1), ylabel="observed frequency, with 90% interval")
    plain(axes)


def _histogram(axes: Axes, data: xr.Dataset) -> None:
    """Draw the number of predictions in each bin."""
    counts = data["count"].values
    middle = (data["bin"].values + 0.5) / _BINS
    axes.bar(middle, counts, width=0.9 / _BINS, color=COLOURS[4])
    style: Style = {"textcoords": "offset points", "ha": "center", "fontsize": 8}
    for x, count in zip(middle, counts.tolist(), strict=True):
        text = f"{count:,}" if count < 10_000 else f"{count / 1000:,.0f}k"
        axes.annotate(text, (x, count), (0, 2), **style)
    axes.set(xlabel="predicted probability", ylabel="predictions", ylim=(0, 1.25 * counts.max()))
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    plain(axes)

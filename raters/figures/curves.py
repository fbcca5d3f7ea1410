"""Learning curves of simulated campaigns."""

from __future__ import annotations

import numpy as np
import xarray as xr

from raters.errors import refuse
from raters.errors.validation import checked, one_of
from raters.figures.base import COLOURS, Plots, Style, collected, new_figure, plain, short

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
    figure = new_figure(8.5, 4.8)
    axes = figure.subplots()
    for index, policy in enumerate(data["policy"].values):
        curve = data.isel(policy=index)
        # Each of up to 32 policies has its own pair of colour and style.
        colour = COLOURS[index % len(COLOURS)]
        style = _STYLES[(index + index // len(COLOURS)) % len(_STYLES)]
        label, x = short(policy), curve["answers"]
        axes.plot(x, curve[name], color=colour, linestyle=style, linewidth=1.8, label=label)
    axes.set(xlabel="answers", ylabel=_WORDS.get(name, name))
    over = f", mean over {', '.join(map(str, extra))}" if extra else ""
    figure.suptitle(f"Quality by number of answers{over}", x=0.01, ha="left", fontsize=11)
    plain(axes)
    if "policy" in curves.dims:
        # In the order in which the lines end.
        last = [np.append(-np.inf, line[np.isfinite(line)])[-1] for line in data[name].values]
        handles = [axes.get_lines()[index] for index in np.argsort(-np.array(last), kind="stable")]
        beside: Style = {"loc": "upper left", "bbox_to_anchor": (1.01, 1), "frameon": False}
        axes.legend(handles=handles, fontsize=9, handlelength=3, **beside)
    return collected(data, figure, [axes])

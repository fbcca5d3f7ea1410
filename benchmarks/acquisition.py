"""Answers that a policy saves: Kendall's τ against answers, for ten annotators and for one.

Ten: 20 items, rewards uniform on [0, 8], competences uniform on [0, 1], 40 batches of 19 questions,
Extended-BTL by Gibbs with priors of that width. One: rewards Normal(0, 1.5²), 50 batches of 19, BTL
with that prior. Every policy gets the same crowds and common random numbers: the n-th answer to the
same question by the same annotator is the same.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from _common import RESULTS, in_processes, options, report, table
from scipy.stats import bootstrap

import raters as rt
from raters.acquisition import (
    BestMean,
    Entropy,
    OrderEntropy,
    Random,
    SpanningTree,
    Top,
    simulate_campaign,
)
from raters.acquisition.policy import AnnotatorRule
from raters.acquisition.posterior import Posterior
from raters.acquisition.scores import About

ITEMS, ANNOTATORS, BATCH = 20, 10, 19
BATCHES = {"ten": 40, "one": 50}
TITLE = {"ten": "ten annotators", "one": "one annotator"}
BACKEND = rt.PGGibbs(draws=300, warmup=40, chains=1)
ENOUGH = 0.85
# What others measured under this protocol; gain in the area over random.
REFERENCE = {
    "ten": (
        {"order entropy, best annotator": 0.074, "I(y; r), trees": 0.062, "BALD, trees": 0.061}
        | {"order entropy, oracle": 0.125}
    ),
    "one": {"entropy": 0.041, "order entropy": 0.040, "BALD, trees": 0.037},
}
NOTE = """\
*Gain*: area under the curve of τ (its mean over the batches) less that of random questions to
random annotators, paired; bootstrap (BCa) over replicates. *Published*: what was measured elsewhere
under this protocol. *Saved ×*: answers that random needs to τ = .85, over those that the policy
needs. *Correlation*: of estimated and true competences after the last batch. *Competence asked*:
mean true competence of who was asked. *Coverage*: share of pairs whose true difference of rewards
lies in its 90 % interval, the least and the largest over the batches (means over replicates)."""


@dataclass(frozen=True)
class Oracle(AnnotatorRule):
    """The annotator of most true competence, by code."""

    competence: tuple[float, ...]

    def preference(self, posterior: Posterior) -> np.ndarray:
        """True competences."""
        return np.asarray(self.competence)


def policies(crowd: str, competence: np.ndarray, everything: bool) -> dict[str, rt.Policy]:
    """Policies to compare, by name; random first."""
    tree, top = SpanningTree(), Top()
    compared = {
        "random": rt.Policy(score=Random(), batch=top),
        "target='ranking' (default)": rt.Policy(target="ranking"),
    }
    if crowd == "one":
        compared |= {"order entropy": rt.Policy(score=OrderEntropy())}
        more = {
            "entropy": rt.Policy(score=Entropy()),
            "BALD, trees": rt.Policy(target="everything", batch=tree),
        }
    else:
        oracle = Oracle(tuple(competence.tolist()))
        compared |= {
            "order entropy, best annotator": rt.Policy(score=OrderEntropy(), annotator=BestMean()),
            "target='competence'": rt.Policy(target="competence"),
            "order entropy, oracle": rt.Policy(score=OrderEntropy(), annotator=oracle),
        }
        more = {
            "BALD, trees": rt.Policy(target="everything", batch=tree),
            "I(y; r), trees": rt.Policy(score=About("reward"), batch=tree),
            "entropy of triplets": rt.Policy(score=Entropy(), batch=top),
            "target='ranking', least share .05": rt.Policy(target="ranking", least_share=0.05),
        }
    return compared | more if everything else compared


def replicate(crowd: str, seed: int, batches: int, everything: bool) -> xr.Dataset:
    """All policies on one crowd."""
    rng = np.random.default_rng([seed, crowd == "one"])
    if crowd == "one":
        truth: dict[str, Any] = {"reward": rng.normal(0, 1.5, ITEMS)}
        model: Any = rt.BTL(reward_scale=1.5)
    else:
        truth = {"reward": rng.uniform(0, 8, ITEMS), "competence": rng.uniform(0, 1, ANNOTATORS)}
        model = rt.ExtendedBTL(
            reward_scale=2.3, competence_spread=10.0
        )  # on [0, 1], as good as uniform
    pool = rt.Candidates.pairs(
        items=range(ITEMS), annotators=range(1 if crowd == "one" else ANNOTATORS)
    )
    chosen = policies(crowd, truth.get("competence", np.ones(1)), everything)
    settings = {
        "backend": BACKEND,
        "batch_size": BATCH,
        "batches": batches,
        "seed": seed,
        "progress": False,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return simulate_campaign(model, truth, pool, chosen, **settings)


def to_enough(tau: np.ndarray) -> float:
    """Answers until the mean curve reaches τ = .85."""
    curve = tau.mean(0)
    if curve.max() < ENOUGH:
        return float("nan")
    later = int((curve >= ENOUGH).argmax())
    before = 0.0 if later == 0 else curve[later - 1]
    return BATCH * (later + (ENOUGH - before) / (curve[later] - before))


def section(crowd: str, curves: xr.Dataset) -> str:
    """One table: gains with bootstrap intervals over replicates, paired with random."""
    area = curves["tau"].mean("batch")
    base = area.sel(policy="random")
    enough = {
        name: to_enough(curves["tau"].sel(policy=name).values) for name in curves["policy"].values
    }
    rows = []
    for name in curves["policy"].values:
        gain = (area.sel(policy=name) - base).values
        low = high = float("nan")
        if name != "random":
            bounds = bootstrap(
                (gain,), np.mean, n_resamples=2000, rng=np.random.default_rng(0)
            ).confidence_interval
            low, high = bounds.low, bounds.high
        one = curves.sel(policy=name)
        interval = "" if name == "random" else f"{low:+.3f} to {high:+.3f}"
        row = [name, f"{gain.mean():+.4f}", interval, REFERENCE[crowd].get(name, float("nan"))]
        row += [enough[name], enough["random"] / enough[name], one["tau"].values[:, -1].mean()]
        if crowd == "ten":
            covered = one["coverage"].mean("replicate").values
            row += [
                one["competence_correlation"].values[:, -1].mean(),
                one["competence_asked"].values.mean(),
            ]
            row += [f"{covered.min():.2f} to {covered.max():.2f}"]
        rows.append(row)
    header = [
        "policy",
        "gain",
        "95 % interval",
        "published",
        f"answers to τ = {ENOUGH}",
        "saved ×",
        "last τ",
    ]
    header += ["last correlation", "competence asked", "coverage of 90 %"] if crowd == "ten" else []
    return table(header, rows)


def draw(crowd: str, curves: xr.Dataset) -> None:
    """The curves."""
    figure, axis = plt.subplots(figsize=(7, 5), layout="constrained")
    for name in curves["policy"].values:
        style = (
            {"color": "black", "ls": "--"}
            if name == "random"
            else {"lw": 2.5}
            if "default" in name
            else {"lw": 1}
        )
        axis.plot(
            curves["answers"].sel(policy=name)[0],
            curves["tau"].sel(policy=name).mean("replicate"),
            label=name,
            **style,
        )
    axis.set(
        title=TITLE[crowd],
        xlabel="answers",
        ylabel="Kendall's τ with the true order",
        ylim=(0.35, 0.98),
    )
    axis.legend(fontsize=8, frameon=False, loc="lower right")
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(RESULTS / f"acquisition_{crowd}.png", dpi=110)


def main() -> None:
    """Run a crowd after the other."""
    arguments = options(
        __doc__ or "",
        replicates=(20, "crowds of each kind"),
        crowd=("both", "which", "both", "ten", "one"),
        policies=("some", "how many", "some", "all"),
        processes=(2, "replicates at a time"),
    )
    number = 2 if arguments.quick else arguments.replicates
    for crowd, batches in BATCHES.items():
        if arguments.crowd not in ("both", crowd):
            continue
        begin = time.perf_counter()
        one = partial(
            replicate,
            crowd,
            batches=5 if arguments.quick else batches,
            everything=arguments.policies == "all",
        )
        seeds = range(arguments.seed, arguments.seed + number)
        curves = xr.concat(in_processes(one, seeds, arguments.processes, "crowds"), "replicate")
        summary = f"{number} crowds, {time.perf_counter() - begin:.0f} s"
        if not arguments.quick:
            draw(crowd, curves)
        title = f"What to ask next, {TITLE[crowd]}: answers saved"
        report(
            f"acquisition_{crowd}", title, [summary, section(crowd, curves), NOTE], arguments.quick
        )


if __name__ == "__main__":
    main()

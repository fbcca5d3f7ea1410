"""Replay of recorded answers (reading difficulty, 12,726 votes by 624 workers): answers that each
policy needs.

Every recorded answer can be had once. Kendall's τ of the posterior means with the grade levels,
after every batch of 200 answers; answers until 90, 95 and 98 % of the best τ that any policy
reaches. The data are looked for as by reading_level.py.
"""

from __future__ import annotations

import time
import warnings

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from _common import RESULTS, options, report, table
from reading_level import load
from scipy.stats import kendalltau

import raters as rt
from raters.acquisition import (
    BestMean,
    OrderEntropy,
    Posterior,
    Random,
    SpanningTree,
    Top,
    replay_campaign,
)

BACKEND = rt.PGGibbs(draws=120, warmup=40, chains=1)
POLICIES = {
    "random": rt.Policy(score=Random(), batch=Top()),
    "target='ranking' (default)": rt.Policy(target="ranking"),
    "BALD": rt.Policy(target="everything"),
    "BALD, trees": rt.Policy(target="everything", batch=SpanningTree()),
    "order entropy, best annotator": rt.Policy(score=OrderEntropy(), annotator=BestMean()),
    "target='competence'": rt.Policy(target="competence"),
}
SHARES = (0.9, 0.95, 0.98)


def tau(posterior: Posterior, truth) -> dict[str, float]:
    """Order of the texts against their grade levels (which have ties: τ-b)."""
    mean = np.tensordot(posterior.weight, posterior.draws["reward"], 2)
    return {"tau": float(kendalltau(mean, truth["grade"]).statistic)}


def run(votes: rt.Comparisons, grade: np.ndarray, batches: int, seed: int) -> xr.Dataset:
    """All policies on one order of the record."""
    model = rt.ExtendedBTL(competence="signed")
    settings = {
        "backend": BACKEND,
        "batch_size": 200,
        "batches": batches,
        "measure": tau,
        "seed": seed,
        "progress": True,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return replay_campaign(model, votes, POLICIES, truth={"grade": grade}, **settings)


def main() -> None:
    """Replay, and count."""
    arguments = options(__doc__ or "", batches=(40, "of 200 answers each"))
    frame, grades, _ = load()
    votes = rt.Comparisons.from_frame(frame, winner="winner", loser="loser", annotator="annotator")
    grade = grades.loc[list(votes.items)].to_numpy(float)
    begin = time.perf_counter()
    curves = run(votes, grade, 3 if arguments.quick else arguments.batches, arguments.seed)
    smooth = curves["tau"].rolling(batch=3, min_periods=1).mean()
    best = float(smooth.max())
    rows = []
    for name in curves["policy"].values:
        curve, answers = smooth.sel(policy=name).values, curves["answers"].sel(policy=name).values
        reached = [
            answers[(curve >= share * best).argmax()] if (curve >= share * best).any() else np.nan
            for share in SHARES
        ]
        rows.append(
            [name, *reached, float(curves["tau"].sel(policy=name).mean()), float(curve[-1])]
        )
    header = [
        "policy",
        *(f"answers to {share:.0%} of best" for share in SHARES),
        "mean τ",
        "last τ",
    ]
    note = (
        f"Best τ {best:.3f} (means of three batches in a row); {int(curves['answers'].max()):,}"
        f" answers of {votes.num_votes:,} asked at most; {time.perf_counter() - begin:.0f} s for"
        " all policies. One order of the record: differences of .01 are chance."
    )
    if not arguments.quick:
        RESULTS.mkdir(exist_ok=True)
        figure, axis = plt.subplots(figsize=(7.5, 5), layout="constrained")
        for name in curves["policy"].values:
            style = (
                {"color": "black", "ls": "--"}
                if name == "random"
                else {"lw": 2.5}
                if "default" in name
                else {"lw": 1}
            )
            axis.plot(
                curves["answers"].sel(policy=name), smooth.sel(policy=name), label=name, **style
            )
        axis.set(
            xlabel="answers",
            ylabel="Kendall's τ with grade levels",
            title="Reading difficulty, recorded answers",
        )
        axis.legend(fontsize=8, frameon=False, loc="lower right")
        axis.spines[["top", "right"]].set_visible(False)
        figure.savefig(RESULTS / "acquisition_replay.png", dpi=110)
    report(
        "acquisition_replay",
        "What to ask next: a replay of recorded answers",
        [table(header, rows), note],
        arguments.quick,
    )


if __name__ == "__main__":
    main()

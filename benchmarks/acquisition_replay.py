"""Replay of recorded answers (reading difficulty, 12,726 votes by 624 workers): answers that each
policy needs.

Every recorded answer can be had once. Kendall's τ of the posterior means with the grade levels,
after every batch of 200 answers. With one order (the default) answers until 90, 95 and 98 % of the
best τ that any policy reaches, by means of three batches in a row. With `--orders 20` the curves
are means over so many random orders (of the record, the first questions and the sampler), random
questions are asked until the record is used up, and the answers until 90 and 95 % of the best τ
have intervals. The data are looked for as by reading_level.py.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr
from _common import RESULTS, in_processes, options, report, table
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
DEFAULT, BEST_MEAN = "target='ranking' (default)", "order entropy, best annotator"
POLICIES = {
    "random": rt.Policy(score=Random(), batch=Top()),
    DEFAULT: rt.Policy(target="ranking"),
    "BALD": rt.Policy(target="everything"),
    "BALD, trees": rt.Policy(target="everything", batch=SpanningTree()),
    BEST_MEAN: rt.Policy(score=OrderEntropy(), annotator=BestMean()),
    "target='competence'": rt.Policy(target="competence"),
}
SEVERAL = (DEFAULT, "random", BEST_MEAN)
SHARES = (0.9, 0.95, 0.98)
BATCH, RANDOM_BATCH, RESAMPLES = 200, 400, 2000
NOTE = """\
Means over the orders, and 95 % intervals by the bootstrap over orders, all policies of an order
together. *Best*: the highest τ of the mean curve of any policy; in each resample its own. *Saved*:
1 less the answers of the policy over those of random questions, until the same τ, by the mean
curves, between batches by a straight line. Random questions are asked in batches of 400 until the
record is used up; where they do not reach a τ, the size of the record counts, so that the part
saved is larger still. An answer count of ∞ is a τ that the policy does not reach."""


class Job(NamedTuple):
    """One policy on one order of the record."""

    policy: str
    seed: int
    batches: int
    batch: int = BATCH


class Curve(NamedTuple):
    """Kendall's τ after as many answers."""

    answers: np.ndarray
    tau: np.ndarray


def tau(posterior: Posterior, truth) -> dict[str, float]:
    """Order of the texts against their grade levels (which have ties: τ-b)."""
    mean = posterior.weight @ posterior.draws["reward"]
    return {"tau": float(kendalltau(mean, truth["grade"]).statistic)}


def run(job: Job) -> xr.Dataset:
    """Curve of a policy on an order of the record."""
    frame, grades, _ = load()
    votes = rt.Comparisons.from_frame(frame, winner="winner", loser="loser", annotator="annotator")
    grade = grades.loc[list(votes.items)].to_numpy(float)
    settings = {
        "backend": BACKEND,
        "batch_size": job.batch,
        "batches": job.batches,
        "measure": tau,
        "seed": job.seed,
        "progress": False,
    }
    policy, model = {job.policy: POLICIES[job.policy]}, rt.ExtendedBTL(competence="signed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return replay_campaign(model, votes, policy, truth={"grade": grade}, **settings)


def curve(replay: xr.Dataset) -> Curve:
    """The curve of a replay, from no answers (no order: τ = 0) on."""
    answers, values = replay["answers"].values[0], replay["tau"].values[0]
    return Curve(np.concatenate([[0.0], answers]), np.concatenate([[0.0], values]))


# ---------------------------------------------------------------- one order


def one_order(seed: int, batches: int, processes: int, quick: bool, out: str | None) -> None:
    """All policies on one order of the record."""
    begin = time.perf_counter()
    jobs = [Job(name, seed, batches) for name in POLICIES]
    curves = xr.concat(in_processes(run, jobs, processes), "policy", join="outer")
    smooth = curves["tau"].rolling(batch=3, min_periods=1).mean()
    best = float(smooth.max())
    rows = []
    for name in curves["policy"].values:
        line, answers = smooth.sel(policy=name).values, curves["answers"].sel(policy=name).values
        reached = [
            answers[(line >= share * best).argmax()] if (line >= share * best).any() else np.nan
            for share in SHARES
        ]
        rows.append([name, *reached, float(curves["tau"].sel(policy=name).mean()), float(line[-1])])
    note = (
        f"Best τ {best:.3f} (means of three batches in a row); {int(curves['answers'].max()):,}"
        f" answers asked at most; {time.perf_counter() - begin:.0f} s for all policies. One order"
        " of the record: differences of .01 are chance."
    )
    if not quick:
        draw(curves, smooth)
    reached = [f"answers to {share:.0%} of best" for share in SHARES]
    parts = [table(["policy", *reached, "mean τ", "last τ"], rows), note]
    title = "What to ask next: a replay of recorded answers"
    report("acquisition_replay", title, parts, quick, out)


def draw(curves: xr.Dataset, smooth: xr.DataArray) -> None:
    """The curves, as a picture."""
    import matplotlib  # Not with the module: a machine that only counts need not have it.

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

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
        axis.plot(curves["answers"].sel(policy=name), smooth.sel(policy=name), label=name, **style)
    axis.set(
        xlabel="answers",
        ylabel="Kendall's τ with grade levels",
        title="Reading difficulty, recorded answers",
    )
    axis.legend(fontsize=8, frameon=False, loc="lower right")
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(RESULTS / "acquisition_replay.png", dpi=110)


# ---------------------------------------------------------------- several orders


def until(line: Curve, level: float) -> float:
    """Answers until the curve is at this τ for the first time; infinite where it never is."""
    above = line.tau >= level
    if not above.any():
        return float("inf")
    place = int(above.argmax())
    if place == 0:
        return float(line.answers[0])
    low, high = line.tau[place - 1 : place + 1]
    step = line.answers[place] - line.answers[place - 1]
    return float(line.answers[place - 1] + step * (level - low) / (high - low))


def mean_curves(curves: dict[str, list[Curve]], orders: np.ndarray) -> dict[str, Curve]:
    """Means over these orders, for each policy."""
    return {
        name: Curve(own[0].answers, np.mean([own[order].tau for order in orders], 0))
        for name, own in curves.items()
    }


def counted(curves: dict[str, list[Curve]], orders: np.ndarray, shares: tuple[float, ...]) -> dict:
    """Best τ, and for each policy the answers until each share of it and the part saved."""
    means = mean_curves(curves, orders)
    best = max(float(line.tau.max()) for line in means.values())
    counts: dict = {"best": best}
    for share in shares:
        needed = {name: until(line, share * best) for name, line in means.items()}
        most = min(needed["random"], float(means["random"].answers[-1]))
        for name, answers in needed.items():
            counts[name, share] = answers
            counts[name, share, "saved"] = max(1 - answers / most, -1.0)
    return counts


def save(curves: dict[str, list[Curve]], out: str | None) -> None:
    """Write the curves into the folder, where one is given."""
    if out is not None:
        each = {
            name: [[line.tolist() for line in own] for own in all] for name, all in curves.items()
        }
        Path(out).mkdir(parents=True, exist_ok=True)
        (Path(out) / "acquisition_replay_orders.json").write_text(json.dumps(each))


def several_orders(given: argparse.Namespace, batches: int) -> None:
    """Some policies on several orders of the record."""
    orders, names = given.orders, SEVERAL[: given.policies]
    whole = 3 if given.quick else 32  # 32 batches of 400 use the record up
    jobs = []
    for name in names:
        size = (whole, RANDOM_BATCH) if name == "random" else (batches, BATCH)
        jobs += [Job(name, given.seed + order, *size) for order in range(orders)]
    replays = in_processes(run, jobs, given.processes, "replays")
    curves: dict[str, list[Curve]] = {name: [] for name in names}
    for job, replay in zip(jobs, replays, strict=True):
        curves[job.policy].append(curve(replay))
    save(curves, None if given.quick else given.out)
    shares = SHARES[:2]
    rng, every = np.random.default_rng(0), np.arange(orders)
    whole_sample = counted(curves, every, shares)
    resampled = [counted(curves, rng.choice(every, orders), shares) for _ in range(RESAMPLES)]

    def cell(key, form: str) -> str:
        values = np.sort([one[key] for one in resampled])
        low, high = values[int(0.025 * RESAMPLES)], values[int(0.975 * RESAMPLES)]
        return f"{whole_sample[key]:{form}} [{low:{form}}, {high:{form}}]"

    rows = []
    for name, own in curves.items():
        row = [name]
        for share in shares:
            row.append(cell((name, share), ",.0f"))
            row.append("–" if name == "random" else cell((name, share, "saved"), ".0%"))
        rows.append([*row, float(np.mean([line.tau[-1] for line in own]))])
    header = ["policy"]
    for share in shares:
        header += [f"answers to {share:.0%} of best", "saved"]
    last = {name: int(own[0].answers[-1]) for name, own in curves.items()}
    sizes = (
        f"{orders} orders. Best τ {cell('best', '.3f')}. Most answers: {last['random']:,} at"
        f" random, {last[DEFAULT]:,} by the other policies."
    )
    title = "Recorded answers in several random orders: answers saved"
    parts = [sizes, table([*header, "last τ"], rows), NOTE]
    report("acquisition_replay_orders", title, parts, given.quick, given.out)


def main() -> None:
    """Replay, and count."""
    given = options(
        __doc__ or "",
        batches=(40, "of 200 answers each"),
        orders=(1, "random orders of the record"),
        policies=(2, "of several orders: the default and random, and order entropy", 2, 3),
        processes=(1, "replays at a time"),
        out=(None, "folder of the table; results/ by default"),
    )
    batches = 3 if given.quick else given.batches
    if given.orders == 1:
        one_order(given.seed, batches, given.processes, given.quick, given.out)
    else:
        several_orders(given, batches)


if __name__ == "__main__":
    main()

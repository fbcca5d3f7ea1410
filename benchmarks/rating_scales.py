"""Ratings by their own model beside votes made of them, and ManyFacet on a million ratings.

Of two items the probability of the more probable order is what a fit states; it is right where
that order is the true one. Simulated crowds, under the model of the ratings with other scales of
severity and thresholds than its priors have. The large table is one whole call, from a data frame
to draws, in a process of its own.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np
from _common import options, report, table

import raters as rt

BINS = (0.5, 0.8, 0.95, 0.99, 1.0001)
NAMES = ("50–80 %", "80–95 %", "95–99 %", "above 99 %")


def orders(result: Any, reward: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Stated probability of the more probable order of each pair, and whether it is true."""
    draws = result.posterior["reward"].stack(sample=("chain", "draw")).transpose("sample", "item")
    one, other = np.triu_indices(len(reward), 1)
    above = (draws.values[:, one] > draws.values[:, other]).mean(0)
    return np.maximum(above, 1 - above), (above > 0.5) == (reward[one] > reward[other])


def compared(crowds: int, seed: int) -> list[list[Any]]:
    """Rows of the table on orders."""
    parts: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {"ratings": [], "votes": []}
    for crowd in range(crowds):
        ratings, truth = rt.datasets.rating_crowd(
            60, 8, 4, seed=seed + crowd, guessers=0.125, adversaries=0.125
        )
        votes = rt.Comparisons.from_ratings(
            ratings.to_frame(),
            item="item",
            rating="rating",
            annotator="annotator",
            items=ratings.items,
        )
        nuts = rt.NUTS(draws=500, warmup=500, chains=2)
        own = rt.fit(rt.ManyFacet(), ratings, nuts, seed=0, progress=False)
        model = rt.ExtendedBTL(competence="signed")
        made = rt.fit(model, votes, rt.PGGibbs(draws=500, chains=2), seed=0, progress=False)
        for name, result in {"ratings": own, "votes": made}.items():
            parts[name].append(orders(result, truth["reward"]))
    rows = []
    for name, found in parts.items():
        stated, right = (np.concatenate(part) for part in zip(*found, strict=True))
        place = np.digitize(stated, BINS) - 1
        for code, label in enumerate(NAMES):
            some = place == code
            rows.append([name, label, int(some.sum()), stated[some].mean(), right[some].mean()])
    return rows


def large(ratings: int, annotators: int, seed: int) -> dict[str, float]:
    """Seconds and memory of one call, printed by a process of its own."""
    command = [sys.executable, __file__, "--large", f"{ratings},{annotators},{seed}"]
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))


def one_call(ratings: int, annotators: int, seed: int) -> dict[str, float]:
    """Fit a simulated table of this size, draws included."""
    rng = np.random.default_rng(seed)
    items, levels = ratings // 50, 10
    item, who = np.repeat(np.arange(items), 50), rng.integers(0, annotators, items * 50)
    reward, competence = rng.normal(size=items), rng.normal(1, 0.3, annotators)
    severity = rng.normal(0, 0.5, annotators)
    below = np.concatenate([[0], np.cumsum(np.linspace(-2, 2, levels - 1))])
    rating = np.empty(len(item), int)
    for begin in range(0, len(item), 100_000):
        some = slice(begin, begin + 100_000)
        location = competence[who[some]] * reward[item[some]] - severity[who[some]]
        utility = np.arange(levels) * location[:, None] - below
        rating[some] = np.argmax(utility + rng.gumbel(size=utility.shape), 1)
    frame = {"item": item, "annotator": who, "rating": rating}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    wall, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rt.errors.ConvergenceWarning)
        data = rt.Ratings.from_frame(frame, item="item", annotator="annotator", rating="rating")
        result = rt.fit(rt.ManyFacet(), data, rt.PGEM(), seed=0, progress=False)
    mode = result["mode"]["severity"].values
    return {
        "seconds": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "before": before,
        "correlation": float(np.corrcoef(mode, severity)[0, 1]),
    }


def main() -> None:
    arguments = options(
        __doc__ or "", large=(None, "ratings,annotators,seed of one call, whose costs are printed")
    )
    if arguments.large:
        print(json.dumps(one_call(*map(int, arguments.large.split(",")))))
        return
    rows = compared(1 if arguments.quick else 6, arguments.seed)
    orders_table = table(["read as", "stated", "pairs", "mean stated", "right"], rows)
    sizes = [(50_000, 100)] if arguments.quick else [(50_000, 100), (1_000_000, 1000)]
    costs = []
    for ratings, annotators in sizes:
        cost = large(ratings, annotators, arguments.seed)
        costs.append([ratings, annotators, *cost.values()])
    header = ["ratings", "annotators", "s", "CPU s", "GB at most", "GB before", "corr. severity"]
    parts = [
        orders_table,
        "Orders of pairs of items under fits of the ratings (`ManyFacet`, NUTS) and of votes made"
        " of them (`ExtendedBTL`, Gibbs).",
        table(header, costs),
        "The whole call, from a data frame to 1,000 draws by `PGEM`, compilation included.",
    ]
    report("rating_scales", "Ratings on a scale", parts, arguments.quick)


if __name__ == "__main__":
    main()

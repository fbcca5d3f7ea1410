"""Probability that the order of two items is right, on public crowds whose true order is known: by
the model, and after a calibration that allows for errors that annotators share.

Reads country_population and reading_level from the folder named by --data. The size of the shared
errors, relative to the spread of the rewards, has the shipped prior, or one about the size on the
other crowd; known orders of random pairs update it.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from _common import options, report, table
from scipy.sparse import csr_array
from scipy.stats import norm

import raters as rt
from raters.auditing.truth.statements import KnownOrders, of_comparisons
from raters.auditing.truth.true_orders import SIZE, draw_true_rewards

# Column of the known value of each crowd, and its sign.
CROWDS = {"country_population": ("true_rank", -1), "reading_level": ("grade_level", 1)}
KNOWN, REPEATS, DRAWS, PAIRS, MOST = (0, 10, 30), 20, 400, 2000, 5000
_SIZES = np.exp(np.linspace(np.log(0.05), np.log(5), 60))


class Crowd(NamedTuple):
    """Draws of the rewards, scores of single annotators, and the pairs of items whose true values
    differ, the better first."""

    name: str
    items: tuple[Any, ...]
    reward: np.ndarray
    scores: csr_array
    better: np.ndarray
    worse: np.ndarray


def fitted(folder: Path, seed: int, quick: bool) -> Crowd:
    """A crowd, fitted by signed Extended-BTL and the default back-end."""
    column, sign = CROWDS[folder.name]
    votes = pd.read_csv(folder / "comparisons.csv", dtype=str).query("winner != loser")
    value = pd.read_csv(folder / "items.csv", dtype={"item": str}).set_index("item")[column] * sign
    data = rt.Comparisons.from_frame(votes, winner="winner", loser="loser", annotator="annotator")
    backend = rt.PGEM() if quick else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = rt.ExtendedBTL(competence="signed")
        result = rt.fit(model, data, backend, seed=seed, progress=False, log_likelihood=False)
    reward = result.posterior["reward"].values
    truth = value.reindex(list(data.items)).to_numpy(float)
    better, worse = np.nonzero(truth[:, None] > truth)
    if len(better) > MOST:
        some = np.random.default_rng(seed).choice(len(better), MOST, replace=False)
        better, worse = better[some], worse[some]
    scores = of_comparisons(data).scores(np.zeros(0, int), len(truth))
    return Crowd(folder.name, data.items, reward.reshape(-1, len(truth)), scores, better, worse)


def best_size(crowd: Crowd) -> float:
    """Size of shared errors under which the known orders are the most probable, as if pairs were
    independent."""
    gap = crowd.reward[:, crowd.better] - crowd.reward[:, crowd.worse]
    mean, variance = gap.mean(0), gap.var(0)
    spread = crowd.reward.std(axis=1).mean()
    losses = [
        -norm.logcdf(mean / np.sqrt(variance + 2 * (size * spread) ** 2)).mean() for size in _SIZES
    ]
    return float(_SIZES[int(np.argmin(losses))])


def scored(
    crowd: Crowd, known: int, size: tuple[float, float] | None, rng: np.random.Generator
) -> tuple[float, float]:
    """Mean stated probability of the more probable order, and share that is right, of pairs that
    are not known; without a size, by the model."""
    told = rng.choice(len(crowd.better), known, replace=False)
    rest = np.setdiff1d(np.arange(len(crowd.better)), told)
    rest = rng.choice(rest, min(len(rest), PAIRS), replace=False)
    if size is None:
        truth = crowd.reward
    else:
        pairs = [
            (crowd.items[one], crowd.items[other])
            for one, other in zip(crowd.better[told], crowd.worse[told], strict=True)
        ]
        orders = KnownOrders.read(pairs, crowd.items)
        truth, _ = draw_true_rewards(crowd.reward, orders, DRAWS, rng, size, crowd.scores)
    right = (truth[:, crowd.better[rest]] > truth[:, crowd.worse[rest]]).mean(0)
    return float(np.maximum(right, 1 - right).mean()), float((right > 0.5).mean())


def main() -> None:
    """Fit both crowds, state orders with and without known ones, and report."""
    given = options(__doc__, data=("../shared/data", "folder with the crowds"))
    crowds = [fitted(Path(given.data) / name, given.seed, given.quick) for name in CROWDS]
    sizes = [best_size(crowd) for crowd in crowds]
    rows = []
    for place, crowd in enumerate(crowds):
        others = np.log([size for other, size in enumerate(sizes) if other != place])
        priors = {"model": None, "shipped": SIZE, "of the other": (others.mean(), SIZE[1])}
        for name, size in priors.items():
            for known in KNOWN if size is not None else (0,):
                rng = np.random.default_rng(given.seed)
                repeats = (2 if given.quick else REPEATS) if known else 1
                found = np.array([scored(crowd, known, size, rng) for _ in range(repeats)])
                stated, right = found.mean(0)
                apart = np.sqrt(((found[:, 0] - found[:, 1]) ** 2).mean())
                rows.append([crowd.name, name, known, stated, right, stated - right, apart])
    header = ["crowd", "prior", "known pairs", "stated", "right", "difference", "rms of one draw"]
    text = "Most probable size of shared errors: " + ", ".join(
        f"{size:.2f} on {crowd.name}" for size, crowd in zip(sizes, crowds, strict=True)
    )
    shipped = f"; shipped: {np.exp(SIZE[0]):.2f} (log spread {SIZE[1]:.2f})."
    parts = [table(header, rows), text + shipped]
    report("order_calibration", "Orders of items on public crowds", parts, given.quick)


if __name__ == "__main__":
    main()

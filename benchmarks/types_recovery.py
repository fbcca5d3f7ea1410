"""Votes needed to tell types apart: the likeliest types of MixtureBTL against the true
ones.

100 annotators of 2 or 4 equally common types, 6 items, rewards normal with standard deviation 2; 1
to 50 votes by each annotator, five data sets each. PGEM at the mode, with as many types as there
are. The adjusted Rand index (scikit-learn) is 1 for the true types and 0 by chance. The oracle
knows the rewards and the shares.
"""

from __future__ import annotations

import warnings
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from _common import RESULTS, options, report, table
from sklearn.metrics import adjusted_rand_score

import raters as rt

VOTES, TYPES = (1, 2, 5, 10, 20, 50), (2, 4)


def agreement(number: int, votes_each: int, seed: int) -> tuple[float, float]:
    """The adjusted Rand index of the likeliest types, and of the oracle's."""
    votes, truth = rt.datasets.preference_types(6, 100, votes_each, number, seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = rt.fit(
            rt.MixtureBTL(num_types=number), votes, rt.PGEM(draws=0), seed=seed, progress=False
        )
    likeliest = result["types"]["responsibility"].values.argmax(1)
    return adjusted_rand_score(truth["type"], likeliest), adjusted_rand_score(
        truth["type"], oracle(votes, truth)
    )


def oracle(votes: rt.Comparisons, truth: dict[str, np.ndarray]) -> np.ndarray:
    """The likeliest types under the true rewards and shares."""
    margin = truth["reward"][votes.first] - truth["reward"][votes.second]
    count = (
        np.ones(votes.num_comparisons) if votes.count is None else np.asarray(votes.count, float)
    )
    given = np.tile(np.log(truth["type_weight"]), (votes.num_annotators, 1))
    np.add.at(
        given,
        votes.annotator,
        np.asarray(votes.wins)[:, None] * margin - count[:, None] * np.logaddexp(0, margin),
    )
    return given.argmax(1)


def draw(found: dict[tuple[int, int], np.ndarray]) -> None:
    """The index by votes: means, and each data set."""
    figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
    for number in TYPES:
        values = np.array([found[number, each] for each in VOTES])  # votes, seed, (found, oracle)
        line = axis.plot(VOTES, values[..., 0].mean(1), "o-", label=f"{number} types")[0]
        axis.plot(VOTES, values[..., 0], ".", color=line.get_color(), markersize=3)
        axis.plot(
            VOTES,
            values[..., 1].mean(1),
            ":",
            color=line.get_color(),
            label=f"{number} types, rewards known",
        )
    axis.set(
        xscale="log",
        xticks=VOTES,
        xticklabels=VOTES,
        xlabel="votes by each annotator",
        ylabel="adjusted Rand index",
    )
    axis.minorticks_off()
    axis.legend()
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / "types_recovery.png", dpi=120)
    plt.close(figure)


def main() -> None:
    """Measure and report."""
    settings = options(__doc__ or "")
    seeds = range(settings.seed, settings.seed + (1 if settings.quick else 5))
    found: dict[tuple[int, int], Any] = {}
    for number in TYPES:
        for each in VOTES:
            found[number, each] = np.array([agreement(number, each, seed) for seed in seeds])
            print(number, each, found[number, each].mean(0), flush=True)
    if not settings.quick:
        draw(found)
    rows = [
        [
            number,
            each,
            values[:, 0].mean(),
            values[:, 0].min(),
            values[:, 0].max(),
            values[:, 1].mean(),
        ]
        for (number, each), values in found.items()
    ]
    header = [
        "types",
        "votes each",
        "adjusted Rand index, mean",
        "least",
        "most",
        "rewards known, mean",
    ]
    parts = [
        (__doc__ or "").strip().split("\n\n")[1],
        table(header, rows),
        "![by votes](types_recovery.png)",
    ]
    report("types_recovery", "How many votes it takes to tell types apart", parts, settings.quick)


if __name__ == "__main__":
    main()

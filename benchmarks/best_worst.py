"""Orders of items from best–worst answers: the usual count score beside the models.

The score of an item is the number of times that it was named as the best less that as the worst,
over the number of times that it was shown. Crowds are simulated under the sequential best–worst
model, with sets of four items; in some, one annotator in ten guesses and one in five swaps the best
and the worst.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from _common import options, report, table
from scipy.stats import spearmanr

import raters as rt

ITEMS, ANNOTATORS = 40, 20
MODELS = {"PlackettLuce": rt.PlackettLuce(), "ExtendedPlackettLuce": rt.ExtendedPlackettLuce()}


def scores(data: rt.Rankings) -> np.ndarray:
    """Count score of each item."""
    there, count = data.offered >= 0, np.asarray(data.weight)[:, None]
    named = np.select([data.place == 1, data.place < 0], [1.0, -1.0]) * count
    total, shown = (
        np.bincount(data.offered[there], values[there], data.num_items)
        for values in (named, np.broadcast_to(count, there.shape))
    )
    return total / np.maximum(shown, 1)


def correlations(answers: int, careless: bool, seed: int) -> list[float]:
    """Spearman's correlation of the true worths with the scores, and with each model's worths."""
    shares = {"guessers": 0.1, "adversaries": 0.2} if careless else {}
    data, truth = rt.datasets.ranking_crowd(
        ITEMS,
        ANNOTATORS,
        answers // ANNOTATORS,
        4,
        best_worst=True,
        seed=seed,
        **{"guessers": 0.0, "adversaries": 0.0} | shares,
    )
    found = [scores(data)]
    for model in MODELS.values():
        result = rt.fit(model, data, rt.PGEM(draws=0), seed=0, progress=False)
        found.append(result["mode"]["worth"].values)
    return [float(spearmanr(truth["worth"], values).statistic) for values in found]


def row(answers: int, careless: bool, crowds: int, seed: int) -> list[Any]:
    """Means over crowds, and the standard error of the gain of the last model."""
    each = np.array([correlations(answers, careless, seed + crowd) for crowd in range(crowds)])
    gain = each[:, -1] - each[:, 0]
    name = "with guessers and adversaries" if careless else "of competent annotators"
    return [name, answers, *each.mean(0).tolist(), float(gain.std(ddof=1) / np.sqrt(crowds))]


def main() -> None:
    chosen = options(__doc__ or "")
    warnings.simplefilter("ignore")
    crowds, sizes = (2, (160,)) if chosen.quick else (20, (160, 640))
    rows = [
        row(answers, careless, crowds, chosen.seed)
        for careless in (False, True)
        for answers in sizes
    ]
    header = ["crowd", "answers", "count score", *MODELS, "standard error"]
    report(
        "best_worst",
        "Orders of items from best–worst answers",
        [
            table(header, rows),
            f"Spearman's correlation with the true worths of {ITEMS} items, over {crowds} crowds of"
            f" {ANNOTATORS} annotators; the standard error is that of the difference between the"
            " last column and the count score. Worths at the mode.",
        ],
        chosen.quick,
    )


if __name__ == "__main__":
    main()

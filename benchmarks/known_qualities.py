"""Accuracies of annotators of ratings and rankings from known qualities of some items.

An accuracy is the share of the pairs of items that an annotator put in order, and that have a true
order, which are in it. An interval holds if it contains the accuracy on all items. Simulated crowds
are under the model; the crowd of the folder `web` of `--data` is real: relevance of web pages on
five grades, with grades by experts as the truth.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _common import options, report, table

import raters as rt
from raters.auditing.truth.statements import StatedOrders, of_rankings, of_ratings

LEVEL = 0.9


def true_accuracy(stated: StatedOrders, quality: np.ndarray, number: int) -> np.ndarray:
    """Share of right orders of each annotator, over pairs of different quality."""
    gap = quality[stated.better] - quality[stated.worse]
    weight = np.where(np.abs(gap) > 0, stated.number, 0.0)
    right, total = (
        np.bincount(stated.annotator, values, number) for values in (weight * (gap > 0), weight)
    )
    return right / np.where(total > 0, total, np.nan)


def row(
    name: str, fits: list[tuple[Any, Any, Any, Mapping[Any, float], np.ndarray]], known: int
) -> list[Any]:
    """Coverage of the intervals, with so many known items of each crowd."""
    held, width, apart, judged = [], [], [], 0
    for seed, (model, data, result, quality, accuracy) in enumerate(fits):
        names = np.random.default_rng(seed).permutation(list(quality))[:known]
        gold = {one: quality[one] for one in names.tolist()}
        found = rt.calibrate(model, result, gold, level=LEVEL).annotators
        low, high = found["accuracy_low"].values, found["accuracy_high"].values
        some = ~np.isnan(accuracy) & (np.asarray(data.judgements_by("annotator")) >= 10)
        held.append(((low <= accuracy) & (accuracy <= high))[some])
        width.append((high - low)[some])
        apart.append((found["accuracy"].values - accuracy)[some])
        judged += int(some.sum())
    return [
        name,
        known,
        judged,
        float(np.concatenate(held).mean()),
        float(np.concatenate(width).mean()),
        float(np.concatenate(apart).mean()),
    ]


def simulated(crowds: int, seed: int) -> dict[str, list[Any]]:
    """Fits of simulated crowds of both kinds."""
    fits: dict[str, list[Any]] = {"ratings, simulated": [], "rankings, simulated": []}
    for crowd in range(crowds):
        ratings, truth = rt.datasets.rating_crowd(
            60, 8, 4, seed=seed + crowd, guessers=0.125, adversaries=0.125
        )
        stated = of_ratings(ratings, np.zeros(ratings.num_items, bool))
        model = rt.ManyFacet()
        nuts = rt.NUTS(draws=500, warmup=500, chains=2)
        result = rt.fit(model, ratings, nuts, seed=0, progress=False)
        fits["ratings, simulated"].append(fit_of(model, ratings, result, truth["reward"], stated))
        rankings, truth = rt.datasets.ranking_crowd(seed=seed + crowd)
        ranker = rt.ExtendedPlackettLuce()
        result = rt.fit(ranker, rankings, seed=0, progress=False)
        fits["rankings, simulated"].append(
            fit_of(ranker, rankings, result, truth["worth"], of_rankings(rankings))
        )
    return fits


def fit_of(model: Any, data: Any, result: Any, quality: np.ndarray, stated: StatedOrders) -> Any:
    """A fit, the qualities by name, and the accuracies."""
    by_name = {
        name: float(one) for name, one in zip(data.items, quality, strict=True) if one == one
    }
    accuracy = true_accuracy(stated, np.nan_to_num(quality), data.num_annotators)
    return model, data, result, by_name, accuracy


def real(folder: Path) -> Any:
    """The fit of the real crowd, on the pages that have a grade."""
    labels, truth = (pd.read_csv(folder / f"{name}.csv") for name in ("labels", "truth"))
    ratings = rt.Ratings.from_frame(
        labels[labels["item"].isin(truth["item"])],
        item="item",
        annotator="annotator",
        rating="label",
    )
    grade = truth.set_index("item")["label"].reindex(list(map(int, ratings.items)))
    result = rt.fit(rt.ManyFacet(), ratings, rt.PGEM(draws=500), seed=0, progress=False)
    stated = of_ratings(ratings, np.zeros(ratings.num_items, bool))
    return fit_of(rt.ManyFacet(), ratings, result, grade.to_numpy(float), stated)


def main() -> None:
    chosen = options(
        __doc__ or "", data=("", "folder of the public data, with web; else simulated crowds alone")
    )
    warnings.simplefilter("ignore")
    rows = [
        row(name, fits, known)
        for name, fits in simulated(2 if chosen.quick else 8, chosen.seed).items()
        for known in (8, 15)
    ]
    if chosen.data:
        web = real(Path(chosen.data) / "web")
        # The same fit with other pages known.
        rows += [row("ratings, web", [web] * 3, known) for known in (30, 100)]
    header = ["crowd", "known items", "annotators", "intervals that hold", "width", "mean error"]
    report(
        "known_qualities",
        "Accuracies from known qualities",
        [
            table(header, rows),
            "Intervals of 90 %; annotators with ten judgements or more, of all crowds together. The"
            " error is the mean of the calibrated accuracies less the true ones.",
        ],
        chosen.quick,
    )


if __name__ == "__main__":
    main()

"""Number of independent annotators that public crowds are worth: without known truths, by 50 random
ones, and by all.

The number by all truths is what 50 are compared with. Each crowd is fitted once by `DawidSkene`.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _common import options, report, table

import raters as rt
from raters.checking.dependence import Dependence

CROWDS = (
    "bluebird",
    "rte",
    "dog_spectral",
    "weather_sentiment_cf",
    "sentence_polarity_500_amt",
    "zencrowd_us",
    "llmbar_judges",
)
GOLD, REPEATS = 50, 20


def read(folder: Path) -> tuple[rt.Labels, pd.Series]:
    """Labels, and the true class of items."""
    if (folder / "judgments.csv.gz").exists():
        said = pd.read_csv(folder / "judgments.csv.gz", dtype=str).query("winner in ('1', '2')")
        said["item"] = said["pair"] + "/" + said["swapped"]
        best = pd.read_csv(folder / "pairs.csv", dtype=str).set_index("pair")["gold_winner"]
        data = rt.Labels.from_frame(said, item="item", annotator="annotator", label="winner")
        return data, pd.Series({item: best[item.split("/")[0]] for item in data.items})
    said, known = (pd.read_csv(folder / f"{name}.csv", dtype=str) for name in ("labels", "truth"))
    classes = sorted(set(said["label"]) | set(known["label"]))
    data = rt.Labels.from_frame(
        said, item="item", annotator="annotator", label="label", classes=classes
    )
    known = known[known["item"].isin(set(data.items))]
    return data, known.set_index("item")["label"]


def shown(found: Dependence) -> str:
    """The number with its interval."""
    low, high = found.effective_interval
    return f"{found.effective:.3g} [{low:.3g}, {high:.3g}]"


def main() -> None:
    """Fit, measure, and report."""
    given = options(__doc__, data=("../shared/data", "folder with the data sets"))
    rows = []
    for name in CROWDS[:1] if given.quick else CROWDS:
        data, truth = read(Path(given.data) / name)
        model = rt.DawidSkene()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = rt.fit(
                model, data, rt.PGEM(), seed=given.seed, progress=False, log_likelihood=False
            )
        blind, whole = (
            rt.checking.dependence(model, result),
            rt.checking.dependence(model, result, truth),
        )
        parts = [
            rt.checking.dependence(model, result, truth.sample(GOLD, random_state=seed))
            for seed in range(3 if given.quick else REPEATS)
        ]
        numbers = np.array([part.effective for part in parts])
        held = [part.mean_interval[0] <= whole.mean <= part.mean_interval[1] for part in parts]
        pair = whole.pairs()
        rows.append(
            [
                name,
                data.num_annotators,
                shown(blind),
                float(np.median(numbers)),
                float(np.mean(held)),
                shown(whole),
                float((pair["correlation_low"] > 0.3).mean()) if len(pair) else np.nan,
            ]
        )
        print(rows[-1], flush=True)
    header = [
        "crowd",
        "annotators",
        "without truths",
        "50 truths, median",
        "their 90 % interval of the correlation holds",
        "all truths",
        "share of pairs with a correlation above .3, with 95 % probability",
    ]
    report("shared_mistakes", "Independent annotators", [table(header, rows)], given.quick)


if __name__ == "__main__":
    main()

"""Ratings by their own model beside votes made of them, and ManyFacet on a million ratings.

Of two items the probability of the more probable order is what a fit states; it is right where
that order is the true one. Simulated crowds are under the model of the ratings, with other scales
of severity and thresholds than its priors have. The crowd of the folder `web` of `--data` is real:
relevance of web pages on five grades, with grades by experts as the truth. The large table is one
whole call, from a data frame to draws, in a process of its own.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
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
    return binned(parts)


def binned(parts: dict[str, list[tuple[np.ndarray, np.ndarray]]]) -> list[list[Any]]:
    """Mean stated probability and share of right orders, by what is stated."""
    rows = []
    for name, found in parts.items():
        stated, right = (np.concatenate(part) for part in zip(*found, strict=True))
        place = np.digitize(stated, BINS) - 1
        for code, label in enumerate(NAMES):
            some = place == code
            rows.append([name, label, int(some.sum()), stated[some].mean(), right[some].mean()])
    return rows


def of_real(folder: Path, pairs: int, seed: int) -> tuple[list[list[Any]], str]:
    """Rows of the table on orders of a real crowd, and what is right of its audit."""
    table_of = {name: pd.read_csv(folder / f"{name}.csv") for name in ("labels", "truth")}
    columns = {"item": "item", "annotator": "annotator", "rating": "label"}
    ratings = rt.Ratings.from_frame(table_of["labels"], **columns)
    grade = table_of["truth"].set_index("item")["label"].reindex(list(map(int, ratings.items)))
    result = rt.fit(rt.ManyFacet(), ratings, rt.PGEM(draws=500), seed=0, progress=False)
    rng, truth = np.random.default_rng(seed), grade.to_numpy(float)
    one, other = rng.choice(np.flatnonzero(~np.isnan(truth)), (2, 4 * pairs))
    one, other = (side[truth[one] != truth[other]][:pairs] for side in (one, other))
    draws = result.posterior["reward"].stack(s=("chain", "draw")).transpose("s", "item").values
    ordered = zip(one, other, strict=True)
    above = np.array([(draws[:, i] > draws[:, j]).mean() for i, j in ordered])
    right = (above > 0.5) == (truth[one] > truth[other])
    of_audit = audited(rt.audit(rt.ManyFacet(), result), table_of["labels"], grade)
    return binned({"ratings": [(np.maximum(above, 1 - above), right)]}), of_audit


def audited(audit: Any, labels: pd.DataFrame, grade: pd.Series) -> str:
    """Correlation of bias and competence with the mistakes of annotators, and of fair ratings with
    the grades."""
    apart = (labels["label"] - labels["item"].map(grade)).groupby(labels["annotator"])
    mistakes = pd.DataFrame({"mean": apart.mean(), "size": apart.apply(lambda x: x.abs().mean())})
    mistakes = mistakes[apart.count() >= 30]
    annotators = audit.table.to_dataframe().rename(index=int).loc[mistakes.index]
    items = audit.tables["item_parameters"].to_dataframe().rename(index=int)
    of_items = [
        items[name].corr(grade.rename(index=int)) for name in ("fair_rating", "mean_rating")
    ]
    return (
        f"Of {len(mistakes)} annotators of `web` with 30 ratings or more, bias correlates"
        f" {annotators['bias'].corr(mistakes['mean']):.2f} with the mean mistake, and the"
        f" correlation with the rewards {annotators['correlation'].corr(mistakes['size']):.2f} with"
        f" the mean size of mistakes. Fair ratings correlate {of_items[0]:.3f} with the grades,"
        f" mean ratings {of_items[1]:.3f}."
    )


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
        __doc__ or "",
        large=(None, "ratings,annotators,seed of one call, whose costs are printed"),
        data=("", "folder of the public data, with web; without it simulated crowds alone"),
    )
    if arguments.large:
        print(json.dumps(one_call(*map(int, arguments.large.split(",")))))
        return
    rows = compared(1 if arguments.quick else 6, arguments.seed)
    titles = ["read as", "stated", "pairs", "mean stated", "right"]
    orders_table = table(titles, rows)
    sizes = [(50_000, 100)] if arguments.quick else [(50_000, 100), (1_000_000, 1000)]
    costs = []
    for ratings, annotators in sizes:
        cost = large(ratings, annotators, arguments.seed)
        costs.append([ratings, annotators, *cost.values()])
    header = ["ratings", "annotators", "s", "CPU s", "GB at most", "GB before", "corr. severity"]
    real: list[str] = []
    if arguments.data:
        number = 2000 if arguments.quick else 40_000
        real_rows, of_audit = of_real(Path(arguments.data) / "web", number, arguments.seed)
        real = [
            table(titles, real_rows),
            "The same of a real crowd, `web`, by `PGEM`: pairs of pages of different grades.",
            of_audit,
        ]
    parts = [
        orders_table,
        "Orders of pairs of items under fits of the ratings (`ManyFacet`, NUTS) and of votes made"
        " of them (`ExtendedBTL`, Gibbs).",
        *real,
        table(header, costs),
        "The whole call, from a data frame to 1,000 draws by `PGEM`, compilation included.",
    ]
    report("rating_scales", "Ratings on a scale", parts, arguments.quick)


if __name__ == "__main__":
    main()

"""Predictions of votes by tastes in few dimensions: german_parties2009, 15 comparisons of six
choices by each of 192 respondents.

Reads german_parties2009 from the folder named by --data. Of each respondent one item is drawn, and
all their votes on it are left out; the models predict these from the other ten votes of the
respondent and from those of everybody else. Score: mean log probability of a vote, in nats (that of
a coin is -.693), and its difference from `HierarchicalBTL`, whose tastes of single items know
nothing of an item that a respondent never compared, with the standard error over respondents.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _common import options, report, table, timed
from types_real import read

import raters as rt

MODELS = {
    "BTL": rt.BTL(),
    "HierarchicalBTL": rt.HierarchicalBTL(),
    "FactorBTL, 1 dimension": rt.models.FactorBTL(),
    "FactorBTL, 2 dimensions": rt.models.FactorBTL(num_dimensions=2),
    "MixtureBTL, 2 types": rt.MixtureBTL(num_types=2),
    "MixtureBTL, 3 types": rt.MixtureBTL(num_types=3),
}


def left_out(votes: rt.Comparisons, seed: int) -> np.ndarray:
    """True for the votes on one item of each respondent."""
    item = np.random.default_rng(seed).integers(votes.num_items, size=votes.num_annotators)
    own = item[np.asarray(votes.annotator)]
    return (np.asarray(votes.first) == own) | (np.asarray(votes.second) == own)


def scores(model: Any, votes: rt.Comparisons, out: np.ndarray, quick: bool) -> np.ndarray:
    """Mean log probability of the votes of each respondent that were left out."""
    backend = rt.PGGibbs(draws=100 if quick else 1000, warmup=100 if quick else 500, chains=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = rt.fit(model, votes.take(~out), backend, seed=0, progress=False)
    asked = votes.take(out)
    prob = rt.predict(model, result, asked).mean(("chain", "draw")).values
    log_prob = np.log(np.where(np.asarray(asked.wins) == 1, prob, 1 - prob))
    number = np.bincount(asked.annotator, minlength=votes.num_annotators)
    return np.bincount(asked.annotator, log_prob, votes.num_annotators) / number


def main() -> None:
    """Every model on the same votes."""
    given = options(__doc__ or "", data=("../shared/data", "folder of the data sets"))
    votes = read(Path(given.data))
    out = left_out(votes, given.seed)
    runs = {
        name: timed(lambda model=model: scores(model, votes, out, given.quick), most=1)
        for name, model in MODELS.items()
    }
    base, rows = runs["HierarchicalBTL"].value, []
    for name, run in runs.items():
        more = run.value - base
        error = more.std(ddof=1) / np.sqrt(len(more))
        rows.append([name, f"{run.value.mean():.3f}", f"{more.mean():+.3f} ± {error:.3f}", run.cpu])
    header = ["model", "log probability of a vote", "more than HierarchicalBTL", "CPU s"]
    sizes = f"{int(out.sum()):,} of {votes.num_rows:,} votes left out."
    report(
        "factors_real",
        "Votes on items that a respondent never compared",
        [sizes, table(header, rows)],
        given.quick,
    )


if __name__ == "__main__":
    main()

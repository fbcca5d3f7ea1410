"""Held-out votes of public crowds: BTL, signed Extended-BTL, and GuesserBTL, in which guessers and
adversaries are types.

Reads country_population, mtbench_human and reading_level from the folder named by --data. A fifth
of the votes of each is left out at random; the table gives the mean log predictive density of one
of them, its difference from signed Extended-BTL with the standard error over votes, and what
GuesserBTL learns of the crowd.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _common import options, report, table
from checks_real import COMPARISONS, votes_of

import raters as rt

MODELS = {
    "BTL()": rt.BTL(),
    'ExtendedBTL(competence="signed")': rt.ExtendedBTL(competence="signed"),
    "GuesserBTL()": rt.models.GuesserBTL(),
}
BASE = 'ExtendedBTL(competence="signed")'


def scored(model: Any, told: rt.Comparisons, held: rt.Comparisons, backend: Any, seed: int) -> Any:
    """Log predictive density of each vote that was left out, and the result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = rt.fit(model, told, backend, seed=seed, progress=False, log_likelihood=False)
    chance = rt.predict(model, result, held).mean(("chain", "draw")).values
    return np.log(np.where(np.asarray(held.wins) > 0.5, chance, 1 - chance)), result


def of_crowd(folder: Path, backend: Any, seed: int, quick: bool) -> tuple[list[Any], list[Any]]:
    """Rows of the two tables."""
    votes = votes_of(folder)
    rng = np.random.default_rng(seed)
    order = rng.permutation(votes.num_comparisons)[: 600 if quick else None]
    cut = len(order) // 5
    held, told = votes.rows(np.sort(order[:cut])), votes.rows(np.sort(order[cut:])).aggregate()
    found = {name: scored(model, told, held, backend, seed) for name, model in MODELS.items()}
    rows = []
    for name, (density, _) in found.items():
        apart = density - found[BASE][0]
        error = apart.std() / np.sqrt(len(apart)) if name != BASE else float("nan")
        rows.append([folder.name, name, len(density), density.mean(), apart.mean(), error])
    result = found["GuesserBTL()"][1]
    share = result["posterior"]["type_weight"].mean(("chain", "draw")).values
    spread = float(result["posterior"]["competence_spread"].median())
    probs = result["types"]["responsibility"].transpose("annotator", "type").values
    learned = [folder.name, votes.num_annotators, *share, spread, *(probs[:, 1:] > 0.5).sum(0)]
    print(f"  {folder.name}: done", flush=True)
    return rows, learned


def main() -> None:
    """Fit each model to each crowd."""
    given = options(__doc__ or "", data=("../shared/data", "folder with the crowds"))
    backend = rt.PGGibbs(draws=50 if given.quick else 200, warmup=100, chains=2)
    rows, learned = [], []
    for name in COMPARISONS:
        of_models, of_types = of_crowd(Path(given.data) / name, backend, given.seed, given.quick)
        rows += of_models
        learned.append(of_types)
    head = ["crowd", "model", "votes left out", "mean log density", f"less {BASE}", "its error"]
    types = ["crowd", "annotators", "competent", "guessers", "adversaries", "spread"]
    types += ["P(guesser) > ½", "P(adversary) > ½"]
    parts = [
        table(head, rows),
        "## Types that GuesserBTL learns",
        table(types, learned),
        f"A fifth of the votes left out; {backend!r}. Shares of the types are posterior means, the"
        " spread of the competences is a median.",
    ]
    report("guessers_real", "Guessers and adversaries in public crowds", parts, given.quick)


if __name__ == "__main__":
    main()

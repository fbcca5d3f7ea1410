"""Joint models by every back-end that fits them: effective sample sizes per CPU second, and how far
means are from those of long NUTS.

*labels and votes*: accuracies tied to signed competences, 20 people and 150 items, simulated.
*votes and rankings*: one worth of 50 items, simulated. *sushi*, with --data: 300 people's rankings
of ten sushi, and a pair from each ranking of 300 others. Seconds are of the CPU, of whole calls
with the settings that are given, after one call that is not counted and in which JAX compiles.
*Off*: largest distance of a mean from that of NUTS with four times the draws, in its standard
deviations, over all sites but the scales, which have long tails.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from _common import options, report, table, timed
from rankings import read
from scipy.special import expit

import raters as rt

ONE_WORTH = rt.models.JointModel(
    {"votes": rt.BTL(), "ranked": rt.PlackettLuce()},
    shared=[{"votes": "reward", "ranked": "worth"}],
)
BACKENDS = {"NUTS": rt.NUTS(), "PGGibbs": rt.PGGibbs(), "PGEM": rt.PGEM(), "SVI": rt.SVI()}


def votes_of(
    reward: np.ndarray, competence: np.ndarray, number: int, rng: np.random.Generator
) -> rt.Comparisons:
    """Votes on random pairs by random people."""
    items = len(reward)
    first = rng.integers(items, size=number)
    second = (first + rng.integers(1, items, size=number)) % items
    who = rng.integers(len(competence), size=number)
    wins = rng.random(number) < expit(competence[who] * (reward[first] - reward[second]))
    columns = {
        "winner": np.where(wins, first, second),
        "loser": np.where(wins, second, first),
        "who": who,
    }
    return rt.Comparisons.from_frame(columns, winner="winner", loser="loser", annotator="who")


def labels_and_votes(
    seed: int, share: float
) -> tuple[rt.models.JointModel, rt.judgements.Together]:
    """Labels and votes of the same items by the same people, of signed competences around 1."""
    rng, items = np.random.default_rng(seed), int(150 * share)
    labels = rt.datasets.label_crowd(items, 20, 10, 2, seed=seed).labels
    reward, competence = rng.normal(size=items), rng.normal(1.0, 1.0, size=20)
    both = {"labels": labels, "votes": votes_of(reward, competence, int(3000 * share), rng)}
    models = {"labels": rt.models.OneCoin(), "votes": rt.ExtendedBTL(competence="signed")}
    tied = [{"labels": "accuracy", "votes": "competence"}]
    return rt.models.JointModel(models, tied=tied), rt.judgements.Together.of(both)


def votes_and_rankings(
    seed: int, share: float
) -> tuple[rt.models.JointModel, rt.judgements.Together]:
    """Votes on items, and rankings of five of them."""
    rng, items = np.random.default_rng(seed), 50
    worth = rng.normal(size=items)
    votes = votes_of(worth, np.ones(1), int(2000 * share), rng)
    rows = []
    for ranking in range(int(400 * share)):
        offered = rng.permutation(items)[:5]
        order = offered[np.argsort(-(worth[offered] + rng.gumbel(size=5)))]
        rows += [(ranking, item, place + 1) for place, item in enumerate(order)]
    names = ("ranking", "item", "rank")
    frame = dict(zip(names, zip(*rows, strict=True), strict=True))
    roles = dict(zip(names, names, strict=True))
    rankings = rt.Rankings.from_frame(frame, **roles, unranked="not offered")
    return ONE_WORTH, rt.judgements.Together.of({"votes": votes, "ranked": rankings})


def of_sushi(
    folder: Path, seed: int, share: float
) -> tuple[rt.models.JointModel, rt.judgements.Together]:
    """Rankings of ten sushi by some people, and a random pair of the ranking of each of others."""
    rankings, orders = read(folder, "sushi10")
    rng, number = np.random.default_rng(seed), int(300 * share)
    pairs = [
        [order[place] for place in np.sort(rng.choice(10, 2, replace=False))]
        for order in orders[number : 2 * number]
    ]
    winner, loser = np.array(rankings.items)[np.array(pairs)].T
    votes = rt.Comparisons.from_frame(
        {"winner": winner, "loser": loser}, winner="winner", loser="loser"
    )
    ranked = rankings.take(slice(0, number))
    return ONE_WORTH, rt.judgements.Together.of({"votes": votes, "ranked": ranked})


def fitted(
    model: rt.models.JointModel, data: rt.judgements.Together, backend: Any, seed: int
) -> xr.DataTree:
    """A fit, whose warnings the table gives as numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rt.fit(model, data, backend, seed=seed, progress=False, log_likelihood=False)


def off(result: xr.DataTree, reference: xr.DataTree) -> float:
    """Largest distance of a mean from the reference, in its standard deviations."""
    over, worst = ("chain", "draw"), 0.0
    for name, draws in reference["posterior"].data_vars.items():
        if not str(name).endswith("scale"):
            gap = result["posterior"][name].mean(over) - draws.mean(over)
            worst = max(worst, float(np.abs(gap / draws.std(over)).max()))
    return worst


def rows_of(
    name: str, model: rt.models.JointModel, data: rt.judgements.Together, quick: bool, seed: int
) -> list[list[Any]]:
    """Rows of the table for one pair of kinds."""
    draws = 100 if quick else 4000
    long = rt.NUTS(draws=draws, warmup=min(draws, 1000))
    reference, rows = fitted(model, data, long, seed + 1), []
    for which, backend in BACKENDS.items():
        run = timed(lambda backend=backend: fitted(model, data, backend, seed), warm=True, most=1)
        facts = run.value.attrs
        ess = float(facts.get("min_ess", np.nan))
        k, distance = facts.get("pareto_k", np.nan), off(run.value, reference)
        rows.append([name, which, run.cpu, ess, ess / run.cpu, k, distance])
    return rows


def main() -> None:
    """All pairs of kinds, each by every back-end."""
    given = options(__doc__ or "", data=(None, "folder of the data sets, for sushi10"))
    share, rows = (0.1 if given.quick else 1.0), []
    crowds = {
        "labels and votes": labels_and_votes(given.seed, share),
        "votes and rankings": votes_and_rankings(given.seed, share),
    }
    if given.data is not None:
        crowds["sushi"] = of_sushi(Path(given.data), given.seed, share)
    for name, crowd in crowds.items():
        rows += rows_of(name, *crowd, given.quick, given.seed)
    header = ["kinds", "back-end", "CPU s", "smallest ESS", "ESS / CPU s", "k̂", "off"]
    report("several_kinds", "Joint models", [table(header, rows)], given.quick)


if __name__ == "__main__":
    main()

"""A judge with many consistent votes beside people: whose ranking comes out?

(1) Simulated: 60 people whose rewards scatter about the crowd's (standard deviation ½) cast 6,000
votes on 20 items; a judge whose rewards scatter twice as widely, and who is three times as
consistent, casts 2,000. (2) MT-bench: 65 people and GPT-4, whose votes are repeated 1, 3 and 10
times. Each ranking is compared with that of BTL on people's votes alone.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _common import options, report, table
from scipy.special import expit
from scipy.stats import kendalltau

import raters as rt
from raters.errors import ConvergenceWarning, DataWarning

ITEMS, PEOPLE, VOTES, JUDGED = 20, 60, 6000, 2000
MODELS = (
    rt.BTL(),
    rt.ExtendedBTL(),
    rt.ExtendedBTL(competence="signed"),
    rt.HierarchicalBTL(),
    rt.HierarchicalBTL(competence="signed"),
    rt.HierarchicalBTL(own_spread=True),
)
GIBBS = rt.PGGibbs(draws=300, warmup=150, chains=2)


def simulated(seed: int) -> tuple[rt.Comparisons, np.ndarray]:
    """Votes of the people and the judge, who is the last annotator, and the crowd's rewards."""
    rng = np.random.default_rng(seed)
    crowd = rng.normal(size=ITEMS)
    own = crowd + 0.5 * rng.normal(size=(PEOPLE, ITEMS))
    own = np.vstack([own, 3 * (crowd + rng.normal(size=ITEMS))])
    number = VOTES + JUDGED
    who = np.concatenate([rng.integers(PEOPLE, size=VOTES), np.full(JUDGED, PEOPLE)])
    first = rng.integers(ITEMS, size=number)
    second = (first + rng.integers(1, ITEMS, size=number)) % ITEMS
    wins = rng.random(number) < expit(own[who, first] - own[who, second])
    columns = (column.astype(np.int32) for column in (first, second, who))
    names = tuple(range(ITEMS)), tuple(range(PEOPLE + 1))
    return rt.Comparisons(*columns, wins.astype(np.float32), None, *names), crowd


def mtbench(folder: Path, times: int) -> rt.Comparisons:
    """People's votes, and GPT-4's so many times, from two tables."""
    people, judge = (pd.read_csv(folder / f"comparisons_{who}.csv") for who in ("human", "gpt4"))
    return rt.Comparisons.from_frame(
        pd.concat([people, *[judge] * times]),
        first="model_a",
        second="model_b",
        outcome="winner",
        annotator="annotator",
        ties="half",
    )


def fitted(model: Any, votes: rt.Comparisons, seed: int) -> tuple[np.ndarray, bool]:
    """Posterior mean rewards, and whether the fit warned of a takeover."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = rt.fit(
            model, votes.aggregate(), GIBBS, seed=seed, progress=False, log_likelihood=False
        )
    for entry in caught:
        assert issubclass(entry.category, (ConvergenceWarning, DataWarning)), entry.message
    warned = any("the ranking follows this" in str(entry.message) for entry in caught)
    return result["posterior"]["reward"].mean(("chain", "draw")).values, warned


def short(model: Any) -> str:
    """A model as it is written, without its defaults."""
    defaults = type(model)()
    changed = {
        name: value for name, value in vars(model).items() if value != getattr(defaults, name)
    }
    written = ", ".join(f"{name}={value!r}" for name, value in changed.items())
    return f"{type(model).__name__}({written})"


def simulations(seeds: range) -> list[list[Any]]:
    """For each model: mean Kendall's τ with the people-only ranking and with the truth, the least
    of the former, and how often the fit warned."""
    agreement: dict[Any, list[tuple[float, float, bool]]] = {model: [] for model in MODELS}
    alone = []
    for seed in seeds:
        votes, crowd = simulated(seed)
        people, _ = fitted(rt.BTL(), votes.take(np.asarray(votes.annotator) < PEOPLE), seed)
        alone.append(kendalltau(people, crowd).statistic)
        for model in MODELS:
            reward, warned = fitted(model, votes, seed)
            taus = (kendalltau(reward, other).statistic for other in (people, crowd))
            agreement[model].append((*taus, warned))
        print(f"  seed {seed}: done", flush=True)
    rows: list[list[Any]] = [["BTL() on people's votes alone", 1.0, 1.0, np.mean(alone), 0]]
    for model, of_seeds in agreement.items():
        with_people, with_truth, warned = (np.array(part) for part in zip(*of_seeds, strict=True))
        rows.append(
            [short(model), with_people.mean(), with_people.min(), with_truth.mean(), warned.sum()]
        )
    return rows


def on_mtbench(folder: Path, times: tuple[int, ...], seed: int) -> list[list[Any]]:
    """For each model and number of repetitions: Kendall's τ with the people-only ranking, and the
    correlation of the rewards; ties are half votes."""
    rows = []
    people, _ = fitted(rt.BTL(), mtbench(folder, 0), seed)
    for model in MODELS:
        cells: list[Any] = []
        for number in times:
            reward, warned = fitted(model, mtbench(folder, number), seed)
            tau = kendalltau(reward, people).statistic
            same = np.corrcoef(reward, people)[0, 1]
            cells.append(f"{tau:.2f}, {same:.3f}{', warns' if warned else ''}")
        rows.append([short(model), *cells])
        print(f"  MT-bench, {rows[-1]}", flush=True)
    return rows


def main() -> None:
    """Both parts; MT-bench where its tables are there."""
    data = os.environ.get("RATERS_DATA", "../shared/data")
    arguments = options(
        __doc__ or "", tables=(6, "simulated tables of votes"), data=(data, "folder of data sets")
    )
    number = 2 if arguments.quick else arguments.tables
    seeds = range(1000 * arguments.seed, 1000 * arguments.seed + number)
    header = ["model", "τ with people", "least", "τ with the truth", "fits that warn"]
    parts = [
        f"## Simulated takeover\n\nMeans over {number} tables; {GIBBS!r}.",
        table(header, simulations(seeds)),
    ]
    folder = Path(arguments.data) / "mtbench_human"
    if folder.is_dir():
        times = (1, 10) if arguments.quick else (1, 3, 10)
        header = ["model", *(f"GPT-4 × {number}" for number in times)]
        parts += [
            "## MT-bench\n\nSix models. Kendall's τ of their order with that by people alone (one"
            " exchange of neighbours makes .87), the correlation of the rewards, and whether the"
            " fit warned of a takeover.",
            table(header, on_mtbench(folder, times, arguments.seed)),
        ]
    title = "A judge beside people: whose ranking comes out?"
    report("takeover", title, parts, arguments.quick)


if __name__ == "__main__":
    main()

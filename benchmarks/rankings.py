"""Rankings: the mode of Plackett–Luce beside choix, and effective sample sizes beside NumPyro's
NUTS, on 36 races of 83 drivers and 5,000 rankings of ten sushi.

Every solver runs in this process on the same rankings; building its own form of them is not timed.
Seconds are of the CPU, after one call that is not counted and in which JAX compiles. The mode of
raters is that of a fit from the container to the result.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arviz as az
import choix
import jax
import numpy as np
import pandas as pd
import xarray as xr
from _common import options, report, table, timed

import raters as rt

# Those who came last in all of their races have no most likely worth (Hunter 2004).
_LAST = [84, 85, 86, 87]
_MAXIMA = {"nascar2002": -4191.0973, "sushi10": -71211.5992}
Table = tuple[rt.Rankings, list[tuple[int, ...]]]


def read(folder: Path, name: str) -> Table:
    """The rankings, and the codes of the items of each from the first to the last."""
    frame = pd.read_csv(folder / name / "rankings.csv")
    long = frame.melt(frame.columns[0], value_name="item").dropna()
    long["rank"] = long.pop("variable").str.removeprefix("pos").astype(int)
    long = long[~long["item"].isin(_LAST if name == "nascar2002" else [])]
    roles = {"ranking": frame.columns[0], "item": "item", "rank": "rank"}
    rankings = rt.Rankings.from_frame(long, **roles, unranked="not offered", aggregate=False)
    order = np.argsort(np.where(rankings.offered < 0, 999, rankings.place), axis=1)
    codes = np.take_along_axis(rankings.offered, order, axis=1)
    return rankings, [tuple(row[row >= 0].tolist()) for row in codes]


def log_likelihood(ordered: list[tuple[int, ...]], worth: np.ndarray) -> float:
    """In double precision."""
    total = 0.0
    for row in ordered:
        utility = worth[list(row)]
        total += utility.sum() - np.logaddexp.accumulate(utility[::-1]).sum()
    return total


def modes(data: Table) -> dict[str, Callable[[], np.ndarray]]:
    """Functions that give the most likely worths."""
    rankings, ordered = data
    model, items = rt.PlackettLuce(worth_scale=100.0), rankings.num_items

    def fitted() -> np.ndarray:
        result = rt.fit(model, rankings, rt.PGEM(draws=0), seed=0, progress=False)
        return result["mode"]["worth"].values

    return {
        "raters, PGEM": fitted,
        "choix, ilsr_rankings": lambda: choix.ilsr_rankings(items, ordered),
    }


def of_modes(name: str, data: Table) -> list[list[Any]]:
    """Rows of the table of modes."""
    rows = []
    for solver, solve in modes(data).items():
        run = timed(solve, warm=True)
        apart = _MAXIMA[name] - log_likelihood(data[1], run.value)
        rows.append([name, solver, run.cpu, apart])
    ilsr = rows[1][2]
    return [[*row, row[2] / ilsr] for row in rows]


def of_samplers(name: str, data: Table, draws: int) -> list[list[Any]]:
    """Rows of the table of samplers: smallest effective sample size of a centred worth."""
    rows = []
    hmc = rt.HMC(draws=draws // 4, warmup=200, chains=2)
    nuts = rt.NUTS(draws=max(draws // 10, 50), warmup=100, chains=2)
    fixed, learned = rt.PlackettLuce(worth_scale=1.0), rt.PlackettLuce()
    runs: list[tuple[rt.PlackettLuce, Any]] = [(fixed, hmc), (learned, hmc)]
    # On 50,000 places of sushi NUTS takes minutes for a few draws.
    for model, backend in runs + ([(fixed, nuts)] if name == "nascar2002" else []):
        program = rt.program.Program(model, data[0])
        backend.run(program, jax.random.key(1))
        begin = time.process_time()
        worth = backend.run(program, jax.random.key(0)).values["worth"]
        seconds = time.process_time() - begin
        centred = xr.Dataset(
            {"worth": (("chain", "draw", "item"), worth - worth.mean(-1, keepdims=True))}
        )
        least = float(az.ess(centred)["worth"].min())
        number = worth.shape[0] * worth.shape[1]
        scale = "fixed" if model.worth_scale else "learned"
        rows.append([name, scale, type(backend).__name__, seconds, least / number, least / seconds])
    return rows


def main() -> None:
    chosen = options(__doc__ or "", data=("../shared/data", "folder of the data sets"))
    warnings.simplefilter("ignore")
    tables = {name: read(Path(chosen.data), name) for name in _MAXIMA}
    draws = 200 if chosen.quick else 2000
    rows_of_modes = [row for name, data in tables.items() for row in of_modes(name, data)]
    rows_of_samplers = [
        row for name, data in tables.items() for row in of_samplers(name, data, draws)
    ]
    report(
        "rankings",
        "Plackett–Luce: modes and draws",
        [
            "## Mode under a flat prior",
            table(
                ["data", "solver", "CPU seconds", "nats below the maximum", "ratio to ilsr"],
                rows_of_modes,
            ),
            "The limit of raters is the fit around the mode: reading the program and storing the"
            " result take longer than the climb.",
            "## Smallest effective sample size of a worth",
            table(
                ["data", "scale", "back-end", "CPU seconds", "ESS per draw", "ESS per CPU second"],
                rows_of_samplers,
            ),
            "Warm-up included.",
        ],
        chosen.quick,
    )


if __name__ == "__main__":
    main()

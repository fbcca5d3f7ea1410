"""Choices: the mode of the multinomial logit beside xlogit, and effective sample sizes beside
NumPyro's NUTS, on intercity trips and a stated-preference survey.

Every solver runs in this process on the same sets; building its own form of them is not timed.
Seconds are of the CPU, after one call that is not counted and in which JAX compiles. The mode of
raters is that of a fit from the container to the result.
"""

from __future__ import annotations

import contextlib
import io
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arviz as az
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import xarray as xr
from _common import options, report, table, timed
from xlogit import MultinomialLogit

import raters as rt
from raters.program import pointwise_log_likelihood

_WIDE = {"coefficient_scale": 100.0, "constant_scale": 100.0}
_MAXIMA = {"mlogit_ModeCanada": -1951.3437, "swissmetro": -5331.2520}


def trips(folder: Path) -> rt.Choices:
    """Car, train and air of those who had all four modes, without those who took the bus."""
    frame = pd.read_csv(folder / "mlogit_ModeCanada" / "data.csv")
    frame = frame[(frame["noalt"] == 4) & (frame["alt"] != "bus")]
    frame = frame[frame.groupby("case")["choice"].transform("sum") == 1]
    return rt.Choices.from_frame(
        frame.assign(time=frame["ivt"] + frame["ovt"]),
        set="case",
        alternative="alt",
        chosen="choice",
        features=["cost", "freq", "time"],
        specific=["time"],
        choosers=["income"],
    )


def survey(folder: Path) -> rt.Choices:
    """Train, metro and car, as in Biogeme's examples."""
    frame = pd.read_csv(folder / "swissmetro" / "wide.csv.gz")
    frame = frame[frame["PURPOSE"].isin([1, 3]) & (frame["CHOICE"] != 0)].copy()
    modes = ("TRAIN", "SM", "CAR")
    for mode in modes:
        frame[f"{mode}_time"] = frame[f"{mode}_TT"] / 100
        frame[f"{mode}_cost"] = frame[f"{mode}_CO"] / 100 * (1 - (mode != "CAR") * frame["GA"])
    for mode in ("TRAIN", "CAR"):
        frame[f"{mode}_there"] = frame[f"{mode}_AV"] * (frame["SP"] != 0)
    return rt.Choices.from_wide(
        frame,
        choice="CHOICE",
        alternatives={1: "train", 2: "metro", 3: "car"},
        features={name: [f"{mode}_{name}" for mode in modes] for name in ("time", "cost")},
        available={"train": "TRAIN_there", "car": "CAR_there"},
        annotator="ID",
    )


def of_xlogit(choices: rt.Choices) -> Callable[[], float]:
    """Function that fits xlogit and gives its log-likelihood."""
    sets, modes = choices.num_sets, choices.num_alternatives
    place = (np.arange(sets)[:, None] * modes + choices.offered)[choices.there]
    raw = choices.features[choices.there] * choices.scale + choices.centre
    x = np.zeros((sets * modes, raw.shape[1]))
    x[place] = raw
    one = np.tile(np.eye(modes)[:, 1:], (sets, 1))
    parts = [x, one]
    if choices.chooser_features is not None:
        income = np.asarray(choices.chooser_features) * choices.chooser_scale
        parts.append(one * np.repeat(income, modes, axis=0))
    matrix = np.concatenate(parts, axis=1)
    there, taken = np.zeros(len(x)), np.zeros(len(x))
    there[place], taken[place] = 1.0, choices.chosen[choices.there]
    names = [f"x{number}" for number in range(matrix.shape[1])]
    ids, alts = np.repeat(np.arange(sets), modes), np.tile(np.arange(modes), sets)

    def fit() -> float:
        model = MultinomialLogit()
        with contextlib.redirect_stdout(io.StringIO()):
            model.fit(X=matrix, y=taken, varnames=names, ids=ids, alts=alts, avail=there)
        return float(model.loglikelihood)

    return fit


def mode_of(model: rt.Model, choices: rt.Choices) -> xr.DataTree:
    """Result with the mode, from the container."""
    backend = rt.PGEM(draws=0)
    return rt.fit(model, choices, backend, seed=0, progress=False, log_likelihood=False)


def log_likelihood(model: rt.Model, choices: rt.Choices, result: xr.DataTree) -> float:
    """Log-likelihood at the mode, in double precision."""
    mode = {name: np.asarray(value) for name, value in result["mode"].data_vars.items()}
    with jax.enable_x64(True):
        data = jax.tree.map(jnp.asarray, choices)
        return float(pointwise_log_likelihood(model, data, mode).sum())


def of_modes(name: str, model: rt.Model, choices: rt.Choices) -> list[list[Any]]:
    """Rows of the table of modes."""
    own = timed(lambda: mode_of(model, choices), warm=True, most=20)
    peer = timed(of_xlogit(choices), warm=True, most=20)
    # xlogit has its own at hand; raters stores it on request, and here it is for the table alone.
    reached = log_likelihood(model, choices, own.value)
    return [
        [name, "raters, PGEM", own.cpu, _MAXIMA[name] - reached, own.cpu / peer.cpu],
        [name, "xlogit", peer.cpu, _MAXIMA[name] - peer.value, 1.0],
    ]


def of_samplers(name: str, model: rt.Model, choices: rt.Choices, draws: int) -> list[list[Any]]:
    """Rows of the table of samplers: smallest bulk effective sample size of an entry."""
    rows = []
    hmc = rt.HMC(draws=draws, warmup=100, chains=2)
    nuts = rt.NUTS(draws=max(draws // 10, 50), warmup=100, chains=2, dense_mass=True)
    for backend in (hmc, nuts):
        program = rt.program.Program(model, choices)
        backend.run(program, jax.random.key(1))
        begin = time.process_time()
        values = backend.run(program, jax.random.key(0)).values
        seconds = time.process_time() - begin
        centred = {
            "coefficient": values["coefficient"],
            "constant": values["constant"] - values["constant"].mean(-1, keepdims=True),
        }
        least = min(
            float(az.ess(xr.Dataset({site: (("chain", "draw", "entry"), entries)}))[site].min())
            for site, entries in centred.items()
        )
        number = values["constant"].shape[0] * values["constant"].shape[1]
        own = type(backend).__name__
        rows.append([name, own, seconds, least / number, least / seconds])
    return [[*row, row[-1] / rows[-1][-1]] for row in rows]


def main() -> None:
    chosen = options(__doc__ or "", data=("../shared/data", "folder of the data sets"))
    warnings.simplefilter("ignore")
    folder, draws = Path(chosen.data), 500 if chosen.quick else 1000
    cases = {
        "mlogit_ModeCanada": (rt.MultinomialLogit(interactions=True, **_WIDE), trips(folder)),
        "swissmetro": (rt.MultinomialLogit(**_WIDE), survey(folder)),
    }
    modes = [row for name, case in cases.items() for row in of_modes(name, *case)]
    # Under priors of their usual width, with which NUTS takes fewer steps.
    usual = {
        "mlogit_ModeCanada": rt.MultinomialLogit(interactions=True),
        "swissmetro": rt.MultinomialLogit(),
    }
    samplers = [
        row
        for name, (_, choices) in cases.items()
        for row in of_samplers(name, usual[name], choices, draws)
    ]
    report(
        "choices",
        "Multinomial logit: modes and draws",
        [
            "## Mode under flat priors",
            table(
                ["data", "solver", "CPU seconds", "nats below the maximum", "ratio to xlogit"],
                modes,
            ),
            "## Draws, smallest bulk effective sample size of an entry",
            table(
                ["data", "back-end", "CPU seconds", "ESS per draw", "ESS per second", "to NUTS"],
                samplers,
            ),
        ],
        chosen.quick,
    )


if __name__ == "__main__":
    main()

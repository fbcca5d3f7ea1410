"""Mixed logit: the maximum of the likelihood beside xlogit with 200 draws, by either of its
optimisers, and effective sample sizes beside NumPyro's NUTS, on simulated panels and a
stated-preference survey.

The likelihood with everybody's coefficients integrated out is computed at all maxima by the same
importance sampling, with its standard error. Seconds are of the CPU, of a fit from the container to
the result, after one call that is not counted and in which JAX compiles; building the table of
xlogit is not timed, nor are its standard errors.
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
import numpy as np
import xarray as xr
from _common import options, report, table, timed
from choices import survey
from xlogit import MixedLogit

import raters as rt
from raters.inference.polya_gamma.panel_mode import log_likelihoods

_WIDE = {"coefficient_scale": 100.0, "constant_scale": 100.0, "spread_scale": 100.0}
_DRAWS = 200


def of_xlogit(choices: rt.Choices, method: str = "BFGS") -> Callable[[], Any]:
    """Function that fits xlogit, all coefficients normal and constants fixed."""
    sets, modes = choices.num_sets, choices.num_alternatives
    place = (np.arange(sets)[:, None] * modes + choices.offered)[choices.there]
    x = np.zeros((sets * modes, len(choices.feature_names)))
    x[place] = choices.features[choices.there] * choices.scale + choices.centre
    there, taken = np.zeros(len(x)), np.zeros(len(x))
    there[place], taken[place] = 1.0, choices.chosen[choices.there]
    random = [f"x{number}" for number in range(x.shape[1])]
    fixed = [f"c{number}" for number in range(1, modes)]
    matrix = np.concatenate([x, np.tile(np.eye(modes)[:, 1:], (sets, 1))], 1)
    who = np.asarray(choices.annotator)
    arguments = {
        "varnames": random + fixed,
        "ids": np.repeat(np.arange(sets), modes),
        "alts": np.tile(np.arange(modes), sets),
        "avail": there,
        "panels": np.repeat(who, modes),
        "randvars": dict.fromkeys(random, "n"),
        "n_draws": _DRAWS,
        "skip_std_errs": True,
        "optim_method": method,
        "verbose": 0,
    }

    def fit() -> Any:
        model = MixedLogit()
        with contextlib.redirect_stdout(io.StringIO()):
            model.fit(X=matrix, y=taken, **arguments)
        return model

    return fit


def at_xlogit(
    choices: rt.Choices, fitted: Any, mode: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Values of the sites at the maximum of xlogit."""
    own = dict(zip(fitted.coeff_names, fitted.coeff_, strict=True))
    names = [f"x{number}" for number in range(len(choices.feature_names))]
    values = mode | {
        "coefficient": np.array([own[name] for name in names]),
        "coefficient_spread": np.abs([own[f"sd.{name}"] for name in names]),
    }
    numbers = range(1, choices.num_alternatives)
    return values | {"constant": np.array([0.0, *(own[f"c{number}"] for number in numbers)])}


def of_maxima(name: str, choices: rt.Choices) -> list[list[Any]]:
    """Rows of the table of maxima."""
    model, backend = rt.MixedLogit(**_WIDE), rt.PGEM(draws=0)

    def fit() -> xr.DataTree:
        return rt.fit(model, choices, backend, seed=0, progress=False, log_likelihood=False)

    own = timed(fit, warm=True, most=3)
    mode = {
        site: np.asarray(own.value["mode"][site])
        for site in rt.program.Program(model, choices).sites
    }
    found = {"raters, PGEM": (own.cpu, own.value.attrs["marginal_log_likelihood"], mode)}
    for method in ("BFGS", "L-BFGS-B"):
        peer = timed(of_xlogit(choices, method), most=2)
        name_of_peer = f"xlogit, {method}{'' if peer.value.convergence else ', not converged'}"
        at = at_xlogit(choices, peer.value, mode)
        found[name_of_peer] = (peer.cpu, float(peer.value.loglikelihood), at)
    rows: list[list[Any]] = []
    for solver, (seconds, claim, point) in found.items():
        likelihood, error = log_likelihoods(
            rt.program.Program(model, choices), {site: value[None] for site, value in point.items()}
        )
        total = f"{likelihood.sum():,.1f} ± {error:.1f}"
        rows.append([name, solver, seconds, seconds / peer.cpu, f"{claim:,.1f}", total])
    return rows


def of_samplers(name: str, model: rt.Model, choices: rt.Choices, quick: bool) -> list[list[Any]]:
    """Rows of the table of samplers: smallest bulk effective sample size of an entry."""
    rows = []
    gibbs = rt.PGGibbs(draws=500 if quick else 1000, warmup=300, chains=2)
    nuts = rt.NUTS(draws=100 if quick else 300, warmup=200, chains=2)
    for backend in (gibbs, nuts):
        program = rt.program.Program(model, choices)
        type(backend)(draws=2, warmup=2, chains=2).run(program, jax.random.key(1))
        begin = time.process_time()
        values = backend.run(program, jax.random.key(0)).values
        seconds = time.process_time() - begin
        values["constant"] = values["constant"] - values["constant"].mean(-1, keepdims=True)
        sizes = {
            site: float(az.ess(xr.Dataset({"x": (("chain", "draw", "entry"), flat)}))["x"].min())
            for site, entries in values.items()
            for flat in [entries.reshape(*entries.shape[:2], -1)]
        }
        least = min(sizes.values())
        worst = min(sizes, key=lambda site: sizes[site])
        own = type(backend).__name__
        rows.append([name, own, seconds, worst, least, least / seconds])
    return [[*row, row[-1] / rows[-1][-1]] for row in rows]


def main() -> None:
    chosen = options(__doc__ or "", data=("../shared/data", "folder of the data sets"))
    warnings.simplefilter("ignore")
    people = 60 if chosen.quick else 361
    panel, _ = rt.datasets.choice_crowd(people, 12, 4, 6, available=1, spread=1.0, seed=0)
    cases = {"simulated": panel}
    if not chosen.quick:
        cases["swissmetro"] = survey(Path(chosen.data))
    maxima = [row for name, case in cases.items() for row in of_maxima(name, case)]
    few, _ = rt.datasets.choice_crowd(50, 5, 4, 2, available=1, spread=1.0, seed=0)
    samplers = [
        row
        for number, choices in ((people, panel), (50, few))
        for name, model in {
            "independent": rt.MixedLogit(),
            "correlated": rt.MixedLogit(correlated=True),
        }.items()
        for row in of_samplers(f"{name}, {number} people", model, choices, chosen.quick)
    ]
    header = ["data", "solver", "CPU seconds", "to xlogit, L-BFGS-B"]
    report(
        "mixed_logit",
        "Mixed logit: maxima and draws",
        [
            "## Maximum of the likelihood, independent coefficients",
            table([*header, "its own log-likelihood", "by importance sampling"], maxima),
            "## Draws on simulated panels, with warm-up: smallest bulk effective sample size",
            table(
                [
                    "coefficients",
                    "back-end",
                    "CPU seconds",
                    "worst",
                    "ESS",
                    "ESS per second",
                    "to NUTS",
                ],
                samplers,
            ),
        ],
        chosen.quick,
    )


if __name__ == "__main__":
    main()

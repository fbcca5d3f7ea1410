"""Mixed logit: effective sample sizes of HMC beside NumPyro's NUTS, on simulated panels.

Seconds are of the CPU, of a run with its warm-up, after one that is not counted and in which JAX
compiles.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import jax
from _common import options, report, table

import raters as rt
from raters.inference.mixing import worst
from raters.model import identify


def of_samplers(name: str, model: rt.Model, choices: rt.Choices, quick: bool) -> list[list[Any]]:
    """Rows of the table: largest R-hat, and smallest bulk effective sample size of an entry."""
    rows = []
    hmc = rt.HMC(draws=500 if quick else 1000)
    nuts = rt.NUTS(draws=100 if quick else 300, warmup=200, chains=2)
    for backend in (hmc, nuts):
        program = rt.program.Program(model, choices)
        type(backend)(draws=2, warmup=2, chains=2).run(program, jax.random.key(1))
        begin = time.process_time()
        values = backend.run(program, jax.random.key(0)).values
        seconds = time.process_time() - begin
        (rhat, _), (least, site) = worst(identify(model, values, 2))
        own = type(backend).__name__
        rows.append([name, own, seconds, f"{rhat:.3f}", site, least, least / seconds])
    return [[*row, row[-1] / rows[-1][-1]] for row in rows]


def main() -> None:
    """Print the table, and write it."""
    chosen = options(__doc__ or "")
    warnings.simplefilter("ignore")
    many = 60 if chosen.quick else 100
    rows = []
    for people, sets, features in ((many, 8, 3), (50, 5, 2)):
        panel, _ = rt.datasets.choice_crowd(
            people, sets, 4, features, available=1, spread=1.0, seed=0
        )
        for name, model in {
            "independent": rt.MixedLogit(),
            "correlated": rt.MixedLogit(correlated=True),
        }.items():
            rows += of_samplers(f"{name}, {people} people", model, panel, chosen.quick)
    head = "coefficients", "back-end", "CPU seconds", "R-hat", "worst", "ESS", "ESS per second"
    report(
        "mixed_logit",
        "Mixed logit: draws on simulated panels",
        [table([*head, "to NUTS"], rows)],
        chosen.quick,
    )


if __name__ == "__main__":
    main()

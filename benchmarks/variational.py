"""Means and spreads of PGVI against long Gibbs runs, beside PGEM and SVI, with CPU-seconds."""

from __future__ import annotations

import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from _common import options, report, simulated_votes, table
from arviz_stats.base import array_stats
from scipy.special import expit

import raters as rt
from raters.errors import ConvergenceWarning, DataWarning

BACKENDS = {"PGVI": rt.PGVI(), "PGEM": rt.PGEM(), "SVI": rt.SVI()}


class Case(NamedTuple):
    """A model on data, and the number of draws of each of the two chains of its reference."""

    name: str
    model: Any
    data: Any
    draws: int


def responses(persons: int, items: int, seed: int) -> rt.Responses:
    """Abilities of standard deviation 1.2, discriminations from 0.7 to 1.7."""
    rng = np.random.default_rng(seed)
    person, item = (grid.ravel() for grid in np.indices((persons, items)))
    slope, difficulty = np.linspace(0.7, 1.7, items), np.linspace(-1.5, 1.5, items)
    ability = 1.2 * rng.normal(size=persons)
    right = rng.random(person.size) < expit(slope[item] * (ability[person] - difficulty[item]))
    frame = {"who": person, "item": item, "right": right}
    return rt.Responses.from_frame(frame, person="who", item="item", correct="right")


def cases(quick: bool, seed: int) -> list[Case]:
    """Models and data."""
    size, draws = ((20, 5, 2000), 200) if quick else ((200, 10, 20_000), 1200)
    name = "{:,} × {:,} × {:,}".format(*size)
    plain, mixed = (simulated_votes(*size, seed, adversaries=few) for few in (0, 2))
    tastes = rt.datasets.position_biased(num_items=6, num_annotators=4, num_votes=600, seed=1)
    answers = responses(60 if quick else 300, 8, seed)
    return [
        Case(f"BTL, {name}", rt.BTL(), plain, draws),
        Case(f"ExtendedBTL, {name}", rt.ExtendedBTL(), plain, draws),
        Case(f"ExtendedBTL signed, {name}", rt.ExtendedBTL("signed"), mixed, draws),
        Case("ExtendedBTL, 6 × 4 × 600", rt.ExtendedBTL(), tastes.votes, 2 * draws),
        Case("HierarchicalBTL, 6 × 4 × 600", rt.HierarchicalBTL(), tastes.votes, 2 * draws),
        Case("Rasch, 300 × 8", rt.Rasch(), answers, draws),
        Case("TwoPL, 300 × 8", rt.TwoPL(), answers, draws),
    ]


def fitted(case: Case, backend: Any, seed: int) -> tuple[Any, float]:
    """A result, and the CPU-seconds of the second call."""
    result, seconds = None, 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DataWarning)
        for _ in range(1 if backend.exact else 2):
            begin = time.process_time()
            result = rt.fit(case.model, case.data, backend, seed=seed, progress=False)
            seconds = time.process_time() - begin
    return result, seconds


def draws_of(result: Any, scales: bool) -> np.ndarray:
    """Draws of all entries, shape (chain, draw, entry), or of the logarithms of scales."""
    parts = []
    for name in sorted(map(str, result.posterior.data_vars)):
        values = result.posterior[name]
        if name.endswith(("scale", "spread")) == scales:
            flat = np.asarray(values).reshape(*values.shape[:2], -1)
            parts.append(np.log(flat) if scales else flat)
    return np.concatenate(parts, axis=-1) if parts else np.zeros((1, 2, 0))


def measured(result: Any, exact: Any) -> list[float]:
    """Root mean square of the differences of means in standard deviations, beyond what the
    Monte-Carlo error of the reference explains, and mean ratio of spreads; of entries and of
    scales."""
    found = []
    for scales in (False, True):
        own, long = draws_of(result, scales), draws_of(exact, scales)
        if long.shape[-1] == 0:
            found += [float("nan")] * 2
            continue
        deviation = long.std((0, 1))
        ess = np.asarray(array_stats.ess(long, chain_axis=0, draw_axis=1, method="mean"))
        off = (own.mean((0, 1)) - long.mean((0, 1))) / deviation
        beyond = max(float((off**2).mean() - (1 / ess).mean()), 0.0)
        found += [np.sqrt(beyond), float((own.std((0, 1)) / deviation).mean())]
    return found


def million(quick: bool, seed: int) -> str:
    """Whole calls on many votes."""
    size = (100, 10, 20_000) if quick else (1000, 50, 1_000_000)
    data, rows = simulated_votes(*size, seed, adversaries=2), []
    for name in ("PGVI", "PGEM"):
        case = Case(name, rt.ExtendedBTL("signed"), data, 0)
        result, seconds = fitted(case, BACKENDS[name], seed)
        rows.append([name, seconds, result.attrs["sweeps"], result.attrs["pareto_k"]])
    return "{:,} × {:,} × {:,}, ExtendedBTL signed, `rt.fit`:\n\n".format(*size) + table(
        ["back-end", "CPU-s", "sweeps", "k̂"], rows
    )


NOTE = """\
Second call of `rt.fit` with default settings; reference: `PGGibbs` with two chains. *Off*: root
mean square over all entries of the difference of the posterior means, in standard deviations of the
reference, less what its Monte-Carlo error explains; a thousand independent draws alone have .03.
*Spread*: mean ratio of standard deviations. Scales (sites that end in scale or spread) by their
logarithms. k̂: of the importance weights; above .7 draws are not resampled, with a warning."""


def main() -> None:
    """Measure and tabulate."""
    arguments = options(__doc__ or "")
    rows: list[list[Any]] = []
    for case in cases(arguments.quick, arguments.seed):
        reference = rt.PGGibbs(draws=case.draws, warmup=500, chains=2)
        exact, long_seconds = fitted(case, reference, arguments.seed + 1)
        for name, backend in BACKENDS.items():
            result, seconds = fitted(case, backend, arguments.seed)
            k = float(result.attrs.get("pareto_k", float("nan")))
            rows.append([case.name, name, *measured(result, exact), k, seconds, long_seconds])
            print(f"  {case.name}, {name}: {rows[-1][2:]}", flush=True)
    header = ["model, data", "back-end", "off", "spread", "scales off", "scales spread", "k̂"]
    header += ["CPU-s", "Gibbs CPU-s"]
    parts = [table(header, rows), million(arguments.quick, arguments.seed), NOTE]
    report("variational", "Variational inference against Gibbs sampling", parts, arguments.quick)


if __name__ == "__main__":
    main()

"""Time and sweeps of PGEM to a gap of 1e-4 in the log-posterior of Extended-BTL, beside L-BFGS-B
with exact gradients.

At fixed hyper-parameters all are asked for the same mode: accelerated EM, plain EM, and scipy's
L-BFGS-B with bounds and gradients by JAX. With learned
hyper-parameters raters estimates these by empirical Bayes, and the time of all of it is given. The
gap of a sweep is its objective less the best end of all.
"""

from __future__ import annotations

import time
import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
import scipy.optimize
from _common import RESULTS, options, report, simulated_votes, table, timed

import raters as rt
from raters.errors import ConvergenceWarning

GAP = 1e-4
FIXED = {"reward_scale": 1.0, "competence_spread": 0.5}
VARIANTS = {"EM, accelerated": {}, "EM, plain": {"accelerate": False}}


class Path(NamedTuple):
    """Log-posterior after each sweep (or iteration), and the seconds of all of them."""

    objective: np.ndarray
    seconds: float


def run_em(votes: rt.Comparisons, settings: dict[str, Any], tolerance: float, most: int) -> Path:
    """PGEM from the model's own start, compiled."""
    model = rt.ExtendedBTL(**FIXED)
    backend = rt.PGEM(draws=0, starts=1, tolerance=tolerance, max_sweeps=most, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # cut off at `most`; the table says so
        found = timed(
            lambda: backend.run(rt.program.Program(model, votes), jax.random.key(0)),
            warm=True,
            most=3,
        )
    return Path(found.value.history["log_joint"], found.seconds)


def run_lbfgs(votes: rt.Comparisons) -> Path:
    """The same log-posterior, maximised from the same start with competences bounded to [0, 1]."""
    from raters.program import log_joint

    model = rt.ExtendedBTL(**FIXED)
    with jax.enable_x64(True):
        data = jax.tree.map(jnp.asarray, votes)
        start = model.start(votes)
        flat = np.concatenate(
            [np.asarray(start[name], np.float64) for name in ("reward", "competence")]
        )

        @jax.jit
        def negative(x: Any, data: Any) -> Any:
            sites = {"reward": x[: votes.num_items], "competence": x[votes.num_items :]}
            return -log_joint(model, data, sites)

        slope = jax.jit(jax.value_and_grad(negative))
        path: list[float] = []

        def value(x: np.ndarray) -> tuple[float, np.ndarray]:
            objective, gradient = slope(x, data)
            path.append(-float(objective))
            return float(objective), np.asarray(gradient)

        bounds = [(None, None)] * votes.num_items + [(0.0, 1.0)] * votes.num_annotators
        limits = {"maxiter": 5000, "maxfun": 10_000, "ftol": 1e-15, "gtol": 1e-6}
        value(flat)
        path.clear()
        begin = time.perf_counter()
        scipy.optimize.minimize(
            value, flat, jac=True, method="L-BFGS-B", bounds=bounds, options=limits
        )
        return Path(np.maximum.accumulate(path), time.perf_counter() - begin)


def to_gap(path: Path, best: float) -> tuple[float, float]:
    """Steps and seconds to the gap; NaN when it was not reached."""
    below = np.flatnonzero(best - path.objective <= GAP)
    if len(below) == 0:
        return float("nan"), float("nan")
    return float(below[0] + 1), path.seconds * (below[0] + 1) / len(path.objective)


def figure(paths: dict[str, Path], best: float) -> str:
    """Gap against time, as results/em_gap.png."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    axes = plt.subplots(figsize=(6, 4), layout="constrained")[1]
    for name, path in paths.items():
        seconds = path.seconds * np.arange(1, len(path.objective) + 1) / len(path.objective)
        axes.loglog(seconds, np.maximum(best - path.objective, 1e-8), label=name)
    axes.axhline(GAP, color="grey", linestyle=":", label="1e-4 nats")
    axes.set(xlabel="seconds", ylabel="gap in the log-posterior (nats)", ylim=(1e-7, None))
    axes.legend(loc="lower left")
    RESULTS.mkdir(exist_ok=True)
    axes.figure.savefig(RESULTS / "em_gap.png", dpi=150)
    return "![Gap against time](em_gap.png)"


def learned(votes: rt.Comparisons) -> list[list[Any]]:
    """Seconds of whole fits with learned hyper-parameters."""
    rows = []
    for draws in (0, 1000):
        backend = rt.PGEM(draws=draws)
        run = timed(
            lambda backend=backend: backend.run(
                rt.program.Program(rt.ExtendedBTL(), votes), jax.random.key(0)
            ),
            warm=True,
            most=3,
        )
        rows.append(
            [f"PGEM(draws={draws}), four starts", run.seconds, run.cpu, run.value.facts["sweeps"]]
        )
    return rows


NOTE = f"""\
Seconds by the clock, compiled, from the model's own start. *to 1e-4*: up to a gap of {GAP:g} nats
below the best end found by anyone, at an even price for each sweep; *whole run*: up to each one's
own stopping rule, planning included. A step is a sweep that was accepted, or an evaluation of
L-BFGS-B; leaps that were undone are in the seconds. A sweep of accelerated EM solves one linear
system for each block and judges the step before; L-BFGS-B's are evaluations. "–": not reached
within the sweeps allowed.

**The limit.** A sweep reads the votes once for each block. Each pass over 100,000 rows evaluates
one tanh and a logarithm (about 1 ms in float64 on one core) and assembles the precision by adding
up rows (about 0.2 ms for each diagonal and 1–2 ms for the item-by-item array); a Cholesky factor of
500 items costs 0.04 Gflop, some 2–4 ms. So about 10 ms a sweep."""


def main() -> None:
    """Measure, tabulate, draw."""
    arguments = options(__doc__ or "")
    sizes = (40, 8, 4_000) if arguments.quick else (500, 50, 100_000)
    votes = simulated_votes(*sizes, arguments.seed)
    paths = {}
    for name, settings in VARIANTS.items():
        paths[name] = run_em(votes, settings, 1e-9, 3000)
        print(f"  {name}: {paths[name].seconds:.2f} s", flush=True)
    paths["scipy L-BFGS-B, JAX gradients"] = run_lbfgs(votes)
    best = max(path.objective[-1] for path in paths.values())
    first = to_gap(paths["EM, accelerated"], best)[1]
    rows = []
    for name, path in paths.items():
        sweeps, seconds = to_gap(path, best)
        rows.append(
            [
                name,
                sweeps,
                seconds,
                seconds / first,
                len(path.objective),
                path.seconds,
                best - path.objective[-1],
            ]
        )
    header = [
        "optimiser",
        "steps to 1e-4",
        "seconds to 1e-4",
        "× accelerated",
        "steps in all",
        "whole run s",
        "gap at its end",
    ]
    size = "{:,} items × {:,} annotators × {:,} votes".format(*sizes)
    held = (
        "At fixed hyper-parameters"
        f" ({', '.join(f'{name}={value}' for name, value in FIXED.items())}), {size}:"
    )
    whole = table(
        ["with learned hyper-parameters", "seconds", "CPU-s", "steps of the best climb"],
        learned(votes),
    )
    parts = [held, table(header, rows), whole, figure(paths, best), NOTE]
    report("em_gap", "Extended-BTL: time to the mode", parts, arguments.quick)


if __name__ == "__main__":
    main()

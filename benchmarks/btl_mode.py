"""Mode of Bradley–Terry–Luce: raters' PGEM against choix, evalica, crowd-kit and scipy, by time,
optimum and memory.

Every solver sees the same votes in the form it takes natively (building that form is timed apart),
and is judged by the likelihood without penalty at its answer. raters has a proper prior on the
rewards; it is made as good as flat by a standard deviation of 30 logits. Each solver runs first in
a process of its own, for its memory and to see that it finishes; those that do are then timed one
after the other in this process.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse
from _common import child, options, peak_megabytes, report, table, timed
from scipy.special import expit

SIZES = ((100, 100_000), (1_000, 1_000_000), (10_000, 10_000_000))
QUICK_SIZES = ((50, 10_000), (300, 50_000))
WEAK = 30.0
Votes = tuple[int, np.ndarray, np.ndarray]  # items, winner of each vote, loser of each vote


def simulate(items: int, votes: int, seed: int) -> Votes:
    """Uniform pairs, rewards from the standard normal."""
    rng = np.random.default_rng(seed)
    reward = rng.normal(size=items)
    first = rng.integers(items, size=votes, dtype=np.int32)
    second = (first + rng.integers(1, items, size=votes, dtype=np.int32)) % np.int32(items)
    wins = rng.random(votes) < expit(reward[first] - reward[second])
    return items, np.where(wins, first, second), np.where(wins, second, first)


def log_likelihood(votes: Votes, reward: np.ndarray) -> float:
    """Without penalty; in pieces, so that it needs little memory."""
    _, winner, loser = votes
    total = 0.0
    for begin in range(0, len(winner), 1 << 20):
        rows = slice(begin, begin + (1 << 20))
        total -= np.logaddexp(0, reward[loser[rows]] - reward[winner[rows]]).sum()
    return float(total)


# ---------------------------------------------- solvers: votes → native form, native form → rewards


def raters_votes(votes: Votes) -> Any:
    """Comparisons, equal pairs put together."""
    import raters as rt

    items, winner, loser = votes
    names, one = tuple(range(items)), ("all",)
    who = np.zeros(len(winner), np.int32)
    return rt.Comparisons(
        winner, loser, who, np.ones(len(winner), np.float32), None, names, one
    ).aggregate()


def raters_mode(votes: Any) -> np.ndarray:
    """PGEM without draws."""
    import jax

    import raters as rt

    return (
        rt.PGEM(draws=0)
        .run(rt.program.Program(rt.BTL(reward_scale=WEAK), votes), jax.random.key(0))
        .mode["reward"]
    )


def as_tuples(votes: Votes) -> Any:
    """Input of choix."""
    return votes[0], list(zip(votes[1].tolist(), votes[2].tolist(), strict=True))


def as_lists(votes: Votes) -> Any:
    """Input of evalica."""
    import evalica
    import pandas as pd

    winners = [evalica.Winner.X] * len(votes[1])
    return votes[1].tolist(), votes[2].tolist(), winners, pd.Index(range(votes[0]))


def evalica_mode(name: str, **settings: Any) -> Callable[[Any], np.ndarray]:
    """One of evalica's solvers; it returns strengths, of which the logarithm is the reward."""

    def solve(data: Any) -> np.ndarray:
        import evalica

        xs, ys, winners, index = data
        scores = getattr(evalica, name)(xs, ys, winners, index=index, **settings).scores
        return np.log(np.maximum(scores.sort_index().to_numpy(), 1e-300))

    return solve


def choix_mode(name: str) -> Callable[[Any], np.ndarray]:
    """One of choix's solvers."""

    def solve(data: Any) -> np.ndarray:
        import choix

        return getattr(choix, name)(*data)

    return solve


def as_frame(votes: Votes) -> Any:
    """Input of crowd-kit."""
    import pandas as pd

    return pd.DataFrame({"worker": 0, "left": votes[1], "right": votes[2], "label": votes[1]})


def crowdkit_mode(frame: Any) -> np.ndarray:
    """crowd-kit's minorisation–maximisation. It compares an array with itself, so it always ends
    after two rounds."""
    from crowdkit.aggregation import BradleyTerry

    scores = BradleyTerry(n_iter=1000).fit_predict(frame).sort_index()
    return np.log(np.maximum(scores.to_numpy(), 1e-300))


def as_design(votes: Votes) -> Any:
    """A sparse ±1 design of winners and losers, one row for each vote."""
    items, winner, loser = votes
    number = len(winner)
    columns = np.stack([winner, loser], axis=1).ravel()
    values = np.tile(np.array([1.0, -1.0]), number)
    return scipy.sparse.csr_array(
        (values, columns, np.arange(0, 2 * number + 1, 2)), shape=(number, items)
    )


def lbfgs_mode(design: Any) -> np.ndarray:
    """scipy's L-BFGS-B on the logistic likelihood of the sparse design."""

    def negative(reward: np.ndarray) -> tuple[float, np.ndarray]:
        logits = design @ reward
        return float(np.logaddexp(0, -logits).sum()), -(design.T @ expit(-logits))

    settings = {"maxiter": 1000, "ftol": 1e-14, "gtol": 1e-3}
    return scipy.optimize.minimize(
        negative, np.zeros(design.shape[1]), jac=True, method="L-BFGS-B", options=settings
    ).x


SOLVERS: dict[str, tuple[Callable[[Votes], Any], Callable[[Any], np.ndarray]]] = {
    "raters PGEM": (raters_votes, raters_mode),
    "evalica newman": (as_lists, evalica_mode("newman")),
    "evalica bradley_terry": (as_lists, evalica_mode("bradley_terry")),
    "evalica bradley_terry, limit 10,000": (as_lists, evalica_mode("bradley_terry", limit=10_000)),
    "choix ilsr": (as_tuples, choix_mode("ilsr_pairwise")),
    "choix mm": (as_tuples, choix_mode("mm_pairwise")),
    "choix opt": (as_tuples, choix_mode("opt_pairwise")),
    "crowd-kit BradleyTerry": (as_frame, crowdkit_mode),
    "scipy L-BFGS-B, sparse": (as_design, lbfgs_mode),
}


def measure_child(name: str, path: str) -> None:
    """In a process of its own: peak memory before the solver, and with it."""
    import jax  # noqa: F401  every process carries the same imports, so that the peaks compare

    import raters  # noqa: F401

    with np.load(path) as saved:
        votes = (int(saved["items"]), saved["winner"], saved["loser"])
    convert, solve = SOLVERS[name]
    before = peak_megabytes()
    begin = time.perf_counter()
    native = convert(votes)
    solve(native)
    print(
        json.dumps(
            {"before": before, "peak": peak_megabytes(), "seconds": time.perf_counter() - begin}
        )
    )


def measure(
    items: int, number: int, seed: int, solvers: list[str]
) -> tuple[list[list[Any]], float]:
    """The rows of one size, and the seconds of `from_frame` on the same votes."""
    votes = simulate(items, number, seed)
    memory: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "votes.npz"
        np.savez(path, items=items, winner=votes[1], loser=votes[2])
        for name in solvers:
            memory[name] = child(["--child", name, "--path", str(path)])
            print(f"  {name}: {memory[name]}", flush=True)
    found = {name: measure_here(name, votes) for name in solvers if isinstance(memory[name], dict)}
    best = max(likelihood for *_, likelihood in found.values())
    ours = found["raters PGEM"][1]
    rows = []
    for name in solvers:
        if name not in found:
            rows.append([f"{items:,} × {number:,}", name, memory[name], *[float("nan")] * 6])
            continue
        convert, seconds, first, likelihood = found[name]
        above = memory[name]["peak"] - memory[name]["before"]
        row = [f"{items:,} × {number:,}", name, seconds, seconds / ours, first, convert]
        rows.append([*row, round(likelihood - best, 4), above, memory[name]["peak"]])
    return rows, frame_seconds(votes)


def measure_here(name: str, votes: Votes) -> tuple[float, float, float, float]:
    """Seconds to convert, to solve, to solve the first time (with compilation), and the
    log-likelihood reached."""
    convert, solve = SOLVERS[name]
    begin = time.perf_counter()
    native = convert(votes)
    converted = time.perf_counter() - begin
    first = timed(lambda: solve(native), most=1)
    again = first if first.seconds > 20 and name != "raters PGEM" else timed(lambda: solve(native))
    return (
        converted,
        min(first.seconds, again.seconds),
        first.seconds,
        log_likelihood(votes, again.value),
    )


def frame_seconds(votes: Votes) -> float:
    """Seconds of Comparisons.from_frame on integer names."""
    import raters as rt

    return timed(
        lambda: rt.Comparisons.from_frame({"w": votes[1], "l": votes[2]}, winner="w", loser="l"),
        most=1,
    ).seconds


NOTE = """\
Seconds: best of up to 5 runs, by the clock, votes already in the solver's own form and (raters)
compiled; *first* is the first run, compilation included; *convert* builds that form from arrays of
winners and losers (raters: `Comparisons(...)` and `.aggregate()`). *Short of the best*:
log-likelihood without penalty, less the best solver's. *Memory* (MB): growth of the largest
resident set over that of a process with all imports and the votes loaded, conversion included; *in
all*: the whole process, JAX, NumPyro and the votes included. "> 180 s" and "> 10 GB": stopped
there.

**The limit.** One pass over the aggregated cells reads 24 bytes a cell (two codes, wins, count, in
float32 and int32, and the logit) and does about 30 flops and one tanh or exp: at 9 million cells
and ~5 GB/s some 0.05 s a pass. A Newton step from a warm start needs one pass, one assembly and 2–3
products of conjugate gradients; 5 steps reach 1e-6."""


def main() -> None:
    """Measure all sizes."""
    arguments = options(
        __doc__ or "",
        child=(None, "(internal)"),
        path=(None, "(internal)"),
        size=(0, "only size 1, 2 or 3"),
    )
    if arguments.child:
        measure_child(arguments.child, arguments.path)
        return
    sizes = QUICK_SIZES if arguments.quick else SIZES
    rows, frames = [], []
    for items, number in sizes if not arguments.size else (sizes[arguments.size - 1],):
        print(f"{items:,} items, {number:,} votes", flush=True)
        found, seconds = measure(items, number, arguments.seed, list(SOLVERS))
        rows += found
        frames.append(f"{seconds:.2g} s at {number:,} votes")
    header = [
        "items × votes",
        "solver",
        "seconds",
        "× raters",
        "first",
        "convert",
        "short of the best",
        "memory MB",
        "in all MB",
    ]
    parts = [
        table(header, rows),
        NOTE,
        "`Comparisons.from_frame` on the same votes: " + ", ".join(frames) + ".",
    ]
    report(
        "btl_mode",
        "Bradley–Terry–Luce: time, optimum and memory of the mode",
        parts,
        arguments.quick or arguments.size > 0,
    )


if __name__ == "__main__":
    main()

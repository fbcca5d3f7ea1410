"""Scores (BALD) of a million questions with 200 posterior draws: seconds and peak memory.

The reference is the same score written down directly in NumPy, on the same candidates in pieces of the same size.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from _common import child, options, peak_megabytes, report, table, timed
from scipy.special import entr, expit

import raters as rt
from raters.acquisition import scores

DRAWS = 200


def problem(number: int, seed: int) -> tuple[rt.Comparisons, dict[str, np.ndarray]]:
    """Candidates over 500 items and 50 annotators, and draws about random values."""
    rng = np.random.default_rng(seed)
    first = rng.integers(500, size=number)
    second = (first + rng.integers(1, 500, size=number)) % 500
    who = rng.integers(50, size=number)
    columns = (column.astype(np.int32) for column in (first, second, who))
    candidates = rt.Comparisons(*columns, None, None, tuple(range(500)), tuple(range(50)))
    draws = {
        "reward": rng.normal(size=500) + 0.2 * rng.normal(size=(DRAWS, 500)),
        "competence": np.clip(rng.uniform(size=50) + 0.1 * rng.normal(size=(DRAWS, 50)), 0, 1),
        "reward_scale": np.ones(DRAWS),
        "competence_spread": np.full(DRAWS, 0.5),
    }
    return candidates, draws


def raters_scores(candidates: rt.Comparisons, draws: dict[str, np.ndarray]) -> np.ndarray:
    """raters' scores."""
    return scores(rt.ExtendedBTL(), draws, candidates)[0]


def numpy_scores(candidates: rt.Comparisons, draws: dict[str, np.ndarray]) -> np.ndarray:
    """The definition, in pieces."""
    found = []
    for begin in range(0, candidates.num_comparisons, 1 << 13):
        part = candidates.take(slice(begin, begin + (1 << 13)))
        gap = draws["reward"][:, part.first] - draws["reward"][:, part.second]
        p = expit(draws["competence"][:, part.annotator] * gap)
        mean = p.mean(0)
        found.append((entr(mean) + entr(1 - mean) - (entr(p) + entr(1 - p)).mean(0)) / np.log(2))
    return np.concatenate(found)


SCORERS = {"raters.acquisition.scores": raters_scores, "NumPy, as defined": numpy_scores}


def measure_child(name: str, number: int, seed: int) -> None:
    """Peak memory in a process of its own."""
    candidates, draws = problem(number, seed)
    before = peak_megabytes()
    SCORERS[name](candidates, draws)
    print(json.dumps({"before": before, "peak": peak_megabytes()}))


def main() -> None:
    """Measure both."""
    arguments = options(__doc__ or "", child=(None, "(internal)"), number=(0, "candidates"))
    number = arguments.number or (50_000 if arguments.quick else 1_000_000)
    if arguments.child:
        measure_child(arguments.child, number, arguments.seed)
        return
    memory: dict[str, Any] = {
        name: child(["--child", name, "--number", str(number), "--seed", str(arguments.seed)]) for name in SCORERS
    }
    candidates, draws = problem(number, arguments.seed)
    runs = {name: timed(lambda scorer=scorer: scorer(candidates, draws), warm=True) for name, scorer in SCORERS.items()}
    ours = runs["raters.acquisition.scores"]
    rows = []
    for name, run in runs.items():
        peak = memory[name]
        above = peak["peak"] - peak["before"] if isinstance(peak, dict) else float("nan")
        error = float(np.max(np.abs(run.value - runs["NumPy, as defined"].value)))
        rows.append([name, run.seconds, run.cpu, run.seconds / ours.seconds, above, error])
    note = f"""\
{number:,} candidates over 500 items × 50 annotators, {DRAWS} draws; seconds by the clock and of all cores, compiled,
best of up to 5. *Memory* (MB): growth of the largest resident set over that with imports and candidates, compilation
included. *Off*: largest difference from the definition in float64, in bits. Target: at most 2 s on two cores.

**The limit.** {number * DRAWS:,} logits, each with two gathers, one exponential, one division and one logarithm in
float32: at about 5 ns a logit on one core {number * DRAWS * 5e-9:.2g} s of CPU."""
    header = ["scorer", "seconds", "CPU-s", "× raters", "memory", "off"]
    report("bald", "BALD over many questions", [table(header, rows), note], arguments.quick)


if __name__ == "__main__":
    main()

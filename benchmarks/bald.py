"""Scores of a million questions with 200 posterior draws, and batches by BatchBALD: seconds and
peak memory.

The references are the same scores written down directly in NumPy, on the same candidates in pieces.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from _common import child, options, peak_megabytes, report, table, timed
from scipy.special import entr, expit

import raters as rt
from raters.acquisition import Posterior
from raters.acquisition.batches import BatchBald
from raters.acquisition.scores import Bald, VarianceReduction

DRAWS = 200


def problem(number: int, seed: int) -> tuple[rt.Comparisons, dict[str, np.ndarray]]:
    """Candidates over 500 items and 50 annotators, and draws about random values."""
    rng = np.random.default_rng(seed)
    first = rng.integers(500, size=number)
    second = (first + rng.integers(1, 500, size=number)) % 500
    annotator = rng.integers(50, size=number)
    columns = (column.astype(np.int32) for column in (first, second, annotator))
    candidates = rt.Comparisons(*columns, None, None, tuple(range(500)), tuple(range(50)))
    draws = {
        "reward": rng.normal(size=500) + 0.2 * rng.normal(size=(DRAWS, 500)),
        "competence": np.clip(rng.uniform(size=50) + 0.1 * rng.normal(size=(DRAWS, 50)), 0, 1),
        "reward_scale": np.ones(DRAWS),
        "competence_spread": np.full(DRAWS, 0.5),
    }
    return candidates, draws


def posterior_of(candidates: rt.Comparisons, draws: dict[str, np.ndarray]) -> Posterior:
    """Posterior of these draws."""
    fitted = candidates.take(slice(0, 1)).answered(np.ones(1, np.float32))
    values = {name: value.astype(np.float32) for name, value in draws.items()}
    return Posterior(rt.ExtendedBTL(), fitted, values, np.full(DRAWS, 1 / DRAWS, np.float32))


def raters_scores(candidates: rt.Comparisons, draws: dict[str, np.ndarray]) -> np.ndarray:
    """Scores by raters."""
    return Bald()(posterior_of(candidates, draws), candidates)


def raters_ranks(candidates: rt.Comparisons, draws: dict[str, np.ndarray]) -> np.ndarray:
    """Scores for the ranking: the reduction of the variances of 500 ranks."""
    return VarianceReduction("rank")(posterior_of(candidates, draws), candidates)


def numpy_scores(candidates: rt.Comparisons, draws: dict[str, np.ndarray]) -> np.ndarray:
    """Scores by the definition, in pieces."""
    parts = []
    for begin in range(0, candidates.num_comparisons, 1 << 13):
        part = candidates.take(slice(begin, begin + (1 << 13)))
        gap = draws["reward"][:, part.first] - draws["reward"][:, part.second]
        p = expit(draws["competence"][:, part.annotator] * gap)
        mean = p.mean(0)
        parts.append((entr(mean) + entr(1 - mean) - (entr(p) + entr(1 - p)).mean(0)) / np.log(2))
    return np.concatenate(parts)


def numpy_ranks(candidates: rt.Comparisons, draws: dict[str, np.ndarray]) -> np.ndarray:
    """Scores by the definition, in pieces, in float32 as raters computes them."""
    rank = draws["reward"].argsort(1).argsort(1).astype(np.float32)
    centred = (rank - rank.mean(0)) / DRAWS
    parts = []
    for begin in range(0, candidates.num_comparisons, 1 << 13):
        part = candidates.take(slice(begin, begin + (1 << 13)))
        gap = draws["reward"][:, part.first] - draws["reward"][:, part.second]
        p = expit((draws["competence"][:, part.annotator] * gap).astype(np.float32))
        mean = p.mean(0)
        parts.append(((p.T @ centred) ** 2).sum(1) / (mean * (1 - mean)))
    return np.concatenate(parts)


def raters_batch(candidates: rt.Comparisons, draws: dict[str, np.ndarray]) -> np.ndarray:
    """Ten of the candidates, by BatchBALD."""
    posterior = posterior_of(candidates, draws)
    return (
        rt.Policy(target="everything", batch=BatchBald())
        .choose(posterior, candidates, 10, seed=0)
        .rows
    )


def numpy_batch(candidates: rt.Comparisons, draws: dict[str, np.ndarray]) -> np.ndarray:
    """Greedy BatchBALD as in the paper, every joint entropy exact."""
    gap = draws["reward"][:, candidates.first] - draws["reward"][:, candidates.second]
    p = expit(draws["competence"][:, candidates.annotator] * gap)
    noise = (entr(p) + entr(1 - p)).mean(0)
    joint, rows = np.ones((DRAWS, 1)), []
    for _ in range(10):
        total = sum(entr(joint.T @ answer / DRAWS).sum(0) for answer in (p, 1 - p)) - noise
        total[rows] = -np.inf
        row = int(total.argmax())
        rows.append(row)
        joint = np.concatenate([joint * p[:, [row]], joint * (1 - p[:, [row]])], 1)
    return np.array(rows)


SCORERS = {
    "BALD, raters": raters_scores,
    "BALD, NumPy as defined": numpy_scores,
    "ranks, raters": raters_ranks,
    "ranks, NumPy as defined": numpy_ranks,
    "BatchBALD, raters": raters_batch,
    "BatchBALD, NumPy as defined": numpy_batch,
}
BATCH_CANDIDATES = 10_000


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
    sizes = {
        name: min(BATCH_CANDIDATES, number) if name.startswith("BatchBALD") else number
        for name in SCORERS
    }
    rows, values = [], {}
    for pair in zip(*[iter(SCORERS)] * 2, strict=True):
        runs = {}
        for name in pair:
            memory: Any = child(
                ["--child", name, "--number", str(sizes[name]), "--seed", str(arguments.seed)]
            )
            candidates, draws = problem(sizes[name], arguments.seed)
            runs[name] = (
                timed(lambda name=name, c=candidates, d=draws: SCORERS[name](c, d), warm=True),
                memory,
            )
            values[name] = runs[name][0].value
        for name, (run, peak) in runs.items():
            above = peak["peak"] - peak["before"] if isinstance(peak, dict) else float("nan")
            off: Any = (
                float(np.max(np.abs(run.value / values[pair[1]] - 1)))
                if pair[0].startswith("ranks")
                else ""
            )
            if pair[0].startswith("BALD"):
                off = float(np.max(np.abs(run.value - values[pair[1]])))
            elif pair[0].startswith("Batch"):
                off = f"{len(set(run.value) & set(values[pair[1]]))} of 10 the same"
            rows.append(
                [
                    name,
                    sizes[name],
                    run.seconds,
                    run.cpu,
                    run.seconds / runs[pair[0]][0].seconds,
                    above,
                    off,
                ]
            )
    note = f"""\
Candidates over 500 items × 50 annotators, {DRAWS} draws; seconds by the clock and of all cores,
compiled, best of up to 5. *× raters*: seconds over those of raters for the same. *Memory* (MB):
growth of the largest resident set over that with imports and candidates, compilation included.
*Off*: largest difference from the definition, in bits (BALD, float64) or as a ratio (ranks).
Target: at most 2 s for a million questions on two cores.

**The limit.** {number * DRAWS:,} logits, each with two gathers, one exponential, one division and
two logarithms in float32: at about 5 ns a logit on one core {number * DRAWS * 5e-9:.2g} s of CPU.
Ranks add {number * DRAWS * 500 * 4:.2g} flops."""
    header = ["score", "candidates", "seconds", "CPU-s", "× raters", "memory", "off"]
    report(
        "bald",
        "Scores of many questions, and BatchBALD",
        [table(header, rows), note],
        arguments.quick,
    )


if __name__ == "__main__":
    main()

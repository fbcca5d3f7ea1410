"""Table 1 of the Extended-BTL paper: its 54 cells over replicates, ours beside the paper's and the
base.

Design (§5): rewards and competences uniform on [0, 1], pairs and workers uniform. Accuracy: the
share of the observed pairs that the estimated rewards put in the true order; base: the share of
votes that agree with the true order. The paper's votes are one draw: in (50, 2) they agree with the
truth in 57 %, where the design's average is 54 %. Like is compared with like by drawing truths
whose votes are as good as the paper's (--match no: any truth). All replicates of a cell share one
shape (equal votes are put together up to a fixed number of rows), so each compiles once.
"""

from __future__ import annotations

import contextlib
import json
import warnings
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.sparse
from _common import in_processes, options, report, table, timed
from scipy.special import expit
from scipy.stats import spearmanr

import raters as rt
from raters.errors import ConvergenceWarning

VOTES = (100, 1_000, 5_000, 10_000, 20_000, 40_000, 60_000, 80_000, 100_000)
# As printed: (items, workers): accuracy of the paper's method, accuracy of the votes, for each
# number of votes.
PRINTED = {
    (10, 2): (
        (0.51, 0.71, 0.94, 0.94, 0.96, 0.96, 0.93, 0.96, 0.98),
        (0.54, 0.55, 0.55, 0.55, 0.55, 0.55, 0.55, 0.54, 0.55),
    ),
    (50, 2): (
        (0.62, 0.69, 0.88, 0.90, 0.92, 0.94, 0.94, 0.96, 0.96),
        (0.61, 0.56, 0.58, 0.57, 0.57, 0.57, 0.57, 0.57, 0.57),
    ),
    (50, 6): (
        (0.51, 0.57, 0.76, 0.78, 0.81, 0.91, 0.88, 0.89, 0.92),
        (0.64, 0.52, 0.53, 0.53, 0.53, 0.54, 0.53, 0.53, 0.53),
    ),
    (200, 10): (
        (0.46, 0.58, 0.68, 0.68, 0.72, 0.79, 0.83, 0.85, 0.86),
        (0.49, 0.55, 0.55, 0.53, 0.53, 0.53, 0.54, 0.54, 0.54),
    ),
    (200, 50): (
        (0.53, 0.58, 0.66, 0.71, 0.73, 0.81, 0.84, 0.86, 0.86),
        (0.54, 0.53, 0.54, 0.54, 0.54, 0.54, 0.54, 0.54, 0.54),
    ),
    (500, 50): (
        (0.61, 0.44, 0.61, 0.62, 0.67, 0.73, 0.76, 0.79, 0.81),
        (0.61, 0.52, 0.54, 0.54, 0.54, 0.54, 0.54, 0.54, 0.54),
    ),
}
DESIGN_SCALE = (1 / 12) ** 0.5
MODELS = {
    "extended": rt.ExtendedBTL(),
    "extended-fixed": rt.ExtendedBTL(reward_scale=DESIGN_SCALE),
    "btl": rt.BTL(),
}
BACKENDS = {
    "gibbs": rt.PGGibbs(draws=120, warmup=80, chains=1),
    "hmc": rt.HMC(draws=120, warmup=80, chains=1),
    "nuts": rt.NUTS(draws=120, warmup=80, chains=1, target_accept=0.8, max_tree_depth=5),
    "svi": rt.SVI(steps=2000, draws=200),
    "em": rt.PGEM(draws=0, starts=1, tolerance=1e-4),
}
MARGIN = 0.02


def parameters(
    items: int, workers: int, match: bool, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Rewards and competences; with `match`, drawn until the votes would be as good as those that
    the paper drew."""
    while True:
        reward, competence = rng.uniform(size=items), rng.uniform(size=workers)
        gap = np.abs(reward[:, None] - reward)[np.triu_indices(items, 1)]
        base = expit(competence[:, None] * np.quantile(gap, np.linspace(0.005, 0.995, 100))).mean()
        if (
            not match or abs(base - PRINTED[items, workers][1][-1]) < 0.005
        ):  # the paper rounds to two digits
            return reward, competence


def simulate(
    items: int, workers: int, number: int, match: bool, rng: np.random.Generator
) -> tuple[rt.Comparisons, np.ndarray, np.ndarray]:
    """Votes in their order, true rewards, true competences."""
    reward, competence = parameters(items, workers, match, rng)
    first = rng.integers(items, size=number)
    second = (first + rng.integers(1, items, size=number)) % items
    who = rng.integers(workers, size=number)
    wins = rng.random(number) < expit(competence[who] * (reward[first] - reward[second]))
    columns = (column.astype(np.int32) for column in (first, second, who))
    votes = rt.Comparisons(
        *columns, wins.astype(np.float32), None, tuple(range(items)), tuple(range(workers))
    )
    return votes, reward, competence


def gathered(votes: rt.Comparisons, rows: int) -> rt.Comparisons:
    """Equal votes put together, but for as many as it takes to have just `rows` rows, so that
    replicates share one shape."""
    low, high = np.minimum(votes.first, votes.second), np.maximum(votes.first, votes.second)
    cell = (low.astype(np.int64) * votes.num_items + high) * votes.num_annotators + votes.annotator
    earliest = np.unique(cell, return_index=True)[1]
    alone = np.zeros(len(cell), bool)
    alone[np.setdiff1d(np.arange(len(cell)), earliest)[: rows - len(earliest)]] = True
    parts = [votes.take(~alone).aggregate(), votes.take(alone)]
    counts = [
        np.ones(part.num_comparisons, np.float32) if part.count is None else part.count
        for part in parts
    ]
    columns = [
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("first", "second", "annotator", "wins")
    ]
    return rt.Comparisons(*columns, np.concatenate(counts), votes.items, votes.annotators)


def known_competences(votes: rt.Comparisons, competence: np.ndarray) -> np.ndarray:
    """Rewards at the posterior mode for one who knows the competences and the spread of the
    rewards: by Newton's method."""
    items, number = votes.num_items, votes.num_votes
    columns = np.stack([votes.first, votes.second], axis=1).ravel()
    values = np.stack([competence[votes.annotator], -competence[votes.annotator]], axis=1).ravel()
    design = scipy.sparse.csr_array(
        (values, columns, np.arange(0, 2 * number + 1, 2)), shape=(number, items)
    )
    reward = np.zeros(items)
    for _ in range(6):
        p = expit(design @ reward)
        precision = (design.T @ scipy.sparse.diags_array(p * (1 - p)) @ design).toarray() + np.eye(
            items
        ) / DESIGN_SCALE**2
        reward = reward + np.linalg.solve(
            precision, design.T @ (votes.wins - p) - reward / DESIGN_SCALE**2
        )
    return reward


def estimate(
    votes: rt.Comparisons, model: Any, backend: Any, seed: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Posterior mean or mode (EM) of rewards and competences."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = backend.run(rt.program.Program(model, votes), jax.random.key(seed))
    values = found.mode or {name: draws.mean((0, 1)) for name, draws in found.values.items()}
    return values["reward"], values.get("competence")


def score(
    votes: rt.Comparisons,
    truth: tuple[np.ndarray, np.ndarray],
    found: tuple[np.ndarray, np.ndarray | None],
) -> list[float]:
    """Accuracy, base, squared error of centred rewards as they are and best rescaled, rank
    correlation of competences."""
    reward, competence = (part - part.mean() for part in truth)
    estimated = found[0] - found[0].mean()
    true_gap = reward[votes.first] - reward[votes.second]
    accuracy = np.mean((estimated[votes.first] - estimated[votes.second]) * true_gap > 0)
    base = np.mean((np.asarray(votes.wins) == 1) == (true_gap > 0))
    factor = estimated @ reward / max(estimated @ estimated, 1e-300)
    errors = [float(np.mean((scale * estimated - reward) ** 2)) for scale in (1.0, factor)]
    ranks = float("nan")
    if found[1] is not None and np.ptp(found[1]) > 0:
        ranks = spearmanr(found[1], competence).statistic
    return [float(accuracy), float(base), *errors, float(ranks)]


def measure(
    cell: tuple[int, int, int], match: bool, replicates: int, model: Any, backend: Any, seed: int
) -> np.ndarray:
    """Scores of the replicates of a cell, shape (replicate, score)."""
    scored = []
    for rng in np.random.default_rng([seed, *cell]).spawn(replicates):
        votes, *truth = simulate(*cell, match, rng)
        rows = min(cell[2], cell[0] * (cell[0] - 1) // 2 * cell[1])
        found = score(votes, tuple(truth), estimate(gathered(votes, rows), model, backend, seed))
        ceiling = score(votes, tuple(truth), (known_competences(votes, truth[1]), None))
        scored.append([*found, ceiling[0]])
    return np.array(scored)


class Job(NamedTuple):
    """A cell of the table, and how it is measured."""

    items: int
    workers: int
    column: int
    match: bool
    replicates: int
    model: str
    backend: str
    seed: int


class Cell(NamedTuple):
    """A cell of the table: its scores, shape (replicate, score), and the seconds that they took."""

    items: int
    workers: int
    column: int
    scored: np.ndarray
    seconds: float


def cell_of(job: Job, keep: str | None = None) -> Cell:
    """Measure one cell, and write it to a file of measured cells."""
    model, backend = MODELS[job.model], BACKENDS[job.backend]
    cell = job.items, job.workers, VOTES[job.column]
    run = timed(lambda: measure(cell, job.match, job.replicates, model, backend, job.seed), most=1)
    if keep is not None:
        line = json.dumps([settings_of(job), run.value.tolist(), run.seconds])
        with Path(keep).open("a") as file:
            file.write("\n" + line)
    return Cell(job.items, job.workers, job.column, run.value, run.seconds)


def settings_of(job: Job) -> str:
    """All that the scores of a cell depend on."""
    return repr((job, MODELS[job.model], BACKENDS[job.backend]))


def measured_before(jobs: list[Job], keep: str | None) -> dict[Job, Cell]:
    """Cells that an earlier run with the same settings wrote to the file."""
    cells = {}
    lines = Path(keep).read_text().splitlines() if keep and Path(keep).exists() else []
    for line in lines:
        with contextlib.suppress(json.JSONDecodeError):  # Of a run that was stopped as it wrote.
            settings, scored, seconds = json.loads(line)
            cells[settings] = np.array(scored, float), seconds
    return {
        job: Cell(job.items, job.workers, job.column, *cells[settings_of(job)])
        for job in jobs
        if settings_of(job) in cells
    }


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """Mean and standard error."""
    size = len(values)
    return values.mean(), values.std(ddof=1) / np.sqrt(size) if size > 1 else float("nan")


def is_short(cell: Cell) -> bool:
    """True for a cell that falls short of the paper where it should not."""
    paper = PRINTED[cell.items, cell.workers][0][cell.column]
    return VOTES[cell.column] >= 5_000 and cell.scored[:, 0].mean() < paper - MARGIN


def row(cell: Cell) -> list[Any]:
    """A cell's row of the table."""
    paper, paper_base = (printed[cell.column] for printed in PRINTED[cell.items, cell.workers])
    scored, means = cell.scored, cell.scored.mean(0)
    known = np.isfinite(scored[:, 4])
    mean, error = mean_and_error(scored[:, 0])
    return [
        f"{cell.items}, {cell.workers}",
        VOTES[cell.column],
        f"{mean:.3f} ± {1.96 * error:.3f}",
        f"{paper:.2f}",
        f"{mean - paper:+.3f}",
        "{:.3f} ± {:.3f}".format(*np.multiply([1, 1.96], mean_and_error(scored[:, 5]))),
        f"{means[1]:.3f}",
        f"{paper_base:.2f}",
        "{:.2g} ± {:.2g}".format(*np.multiply([1, 1.96], mean_and_error(scored[:, 2]))),
        means[3],
        scored[known, 4].mean() if known.any() else float("nan"),
        "short" if is_short(cell) else "",
        cell.seconds,
    ]


def from_which(cells: list[Cell]) -> list[list[Any]]:
    """For each size, the least number of votes from which on the mean squared error of the rewards
    is below a constant's, and the errors before and from there on."""
    rows = []
    for items, workers in dict.fromkeys((cell.items, cell.workers) for cell in cells):
        own = [cell for cell in cells if (cell.items, cell.workers) == (items, workers)]
        errors = np.array([cell.scored[:, 2].mean() for cell in own])
        above = np.flatnonzero(errors >= 1 / 12)
        first = above[-1] + 1 if len(above) else 0
        rows.append(
            [
                f"{items}, {workers}",
                VOTES[own[first].column] if first < len(own) else "never",
                errors[first] if first < len(own) else float("nan"),
                errors[-1],
            ]
        )
    return rows


def main() -> None:
    """All cells."""
    arguments = options(
        __doc__ or "",
        replicates=(20, "replicates of each cell"),
        backend=("gibbs", "back-end", *BACKENDS),
        model=("extended", "model", *MODELS),
        match=(
            "yes",
            "whether to draw only truths whose votes are as good as the paper's",
            "yes",
            "no",
        ),
        processes=(1, "cells at a time"),
        keep=(None, "file of measured cells: a run that was stopped goes on from it"),
    )
    sizes, columns = (
        (list(PRINTED)[:2], (0, 1)) if arguments.quick else (list(PRINTED), range(len(VOTES)))
    )
    replicates = min(arguments.replicates, 3) if arguments.quick else arguments.replicates
    settings = (
        arguments.match == "yes", replicates, arguments.model, arguments.backend, arguments.seed
    )  # fmt: skip
    jobs = [Job(*size, column, *settings) for size in sizes for column in columns]
    # Those that take longest first.
    jobs.sort(key=lambda job: -VOTES[job.column] * job.items * job.workers)
    done = measured_before(jobs, arguments.keep)
    left = [job for job in jobs if job not in done]
    measure_one = partial(cell_of, keep=arguments.keep)
    cells = [*done.values(), *in_processes(measure_one, left, arguments.processes, "cells")]
    cells.sort(key=lambda cell: (sizes.index((cell.items, cell.workers)), cell.column))
    header = ["N, K", "votes", "ours", "paper", "ours − paper", "β known", "base", "paper's base"]
    header += ["MSE", "MSE rescaled", "ρ of β", "verdict", "s"]
    note = f"""\
{MODELS[arguments.model]!r} by {BACKENDS[arguments.backend]!r}, {replicates} replicates, with 95 %
intervals. {sum(map(is_short, cells))} of {len(cells)} cells fall short of the paper by more than
{MARGIN} at 5,000 votes or more. *β known*: accuracy of the posterior mode for one who knows the
competences and the spread of the rewards, on the same votes: about the most that any method can
average. *MSE*: of centred rewards; a constant's is 1/12 = {1 / 12:.4f}. Base matched to the
paper's: {arguments.match}. *rescaled*: after the best factor. *ρ of β*: Spearman's, of the
competences, over the replicates in which they differ (with two workers it is ±1). The paper's cells
are single draws: they scatter as one replicate of ours does, by some √{replicates} times our
standard error."""
    known = table(
        [
            "N, K",
            "votes from which on the MSE is below a constant's",
            "MSE there",
            "MSE at the most votes",
        ],
        from_which(cells),
    )
    name = "paper_table1" + ("" if arguments.backend == "gibbs" else "_" + arguments.backend)
    report(
        name,
        "Table 1 of the Extended-BTL paper",
        [table(header, [*map(row, cells)]), note, known],
        arguments.quick,
    )


if __name__ == "__main__":
    main()

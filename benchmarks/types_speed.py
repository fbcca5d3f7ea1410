"""Speed of the preference types: PGEM against a hand-written EM, PGGibbs against NumPyro's NUTS.

Ten items, 20 votes by each annotator, three types, rewards normal with standard deviation 3. EM:
the other is NumPy, for these data alone: dense tables of wins by annotator and pair, soft
responsibilities, and Newton's method for the rewards of each type, to the same tolerance of 1e-6.
Both compute the start, k-means of annotators, which is the same, and use one thread of BLAS;
compilation is left out, as are the checks of the plan, which a process makes once for a model and
data; the ratio is of CPU-seconds. PGEM finds out by itself that rows are the same few for all
annotators; NumPy is written for them, with two matrix products for the annotators. Log joint
densities are computed by one function, at both ends. Sampling: the smallest bulk effective sample
size over shares and rewards, types under one numbering, by CPU-seconds of all threads, warm-up
included. At the larger size the runs are very short, and tell the seconds of a draw only;
compilation, as measured at the smaller size, is taken off.
"""

from __future__ import annotations

import time
import warnings
from typing import Any, NamedTuple

import jax
import numpy as np
from _common import options, report, table, timed
from arviz_stats.base import array_stats
from scipy.special import expit, gammaln, logsumexp
from threadpoolctl import threadpool_limits

import raters as rt
from raters.inference import Backend
from raters.inference.identification import identified

MODEL = rt.MixtureBTL(num_types=3, reward_scale=3.0)


class Tables(NamedTuple):
    """Wins of the first item and votes, (annotator, pair); the items of each pair; and what
    binomial coefficients add."""

    wins: np.ndarray
    votes: np.ndarray
    first: np.ndarray
    second: np.ndarray
    constant: float


def tables(data: rt.Comparisons) -> Tables:
    """The votes as dense tables."""
    first, second = np.triu_indices(data.num_items, 1)
    pair_of = np.zeros((data.num_items, data.num_items), int)
    pair_of[first, second] = np.arange(len(first))
    cell = np.asarray(data.annotator), pair_of[data.first, data.second]
    wins, votes = np.zeros((2, data.num_annotators, len(first)))
    count = np.ones(data.num_comparisons) if data.count is None else np.asarray(data.count, float)
    np.add.at(wins, cell, np.asarray(data.wins, float))
    np.add.at(votes, cell, count)
    constant = gammaln(votes + 1) - gammaln(wins + 1) - gammaln(votes - wins + 1)
    return Tables(wins, votes, first, second, float(constant.sum()))


def responsible(counts: Tables, weight: np.ndarray, reward: np.ndarray) -> tuple[np.ndarray, float]:
    """Each annotator's types, and the log joint density."""
    margin = reward[counts.first] - reward[counts.second]
    given = counts.wins @ margin - counts.votes @ np.logaddexp(0, margin) + np.log(weight)
    total = logsumexp(given, axis=1)
    prior = -0.5 * np.sum((reward / MODEL.reward_scale) ** 2) - reward.size * np.log(
        MODEL.reward_scale * np.sqrt(2 * np.pi)
    )
    density = float(total.sum() + counts.constant + prior + gammaln(MODEL.num_types))
    return np.exp(given - total[:, None]), density


def newton(counts: Tables, wins: np.ndarray, votes: np.ndarray, reward: np.ndarray) -> np.ndarray:
    """The rewards of one type from its share of the counts of each pair."""
    design = np.zeros((len(wins), len(reward)))
    design[np.arange(len(wins)), counts.first] = 1
    design[np.arange(len(wins)), counts.second] = -1
    for _ in range(50):
        chance = expit(design @ reward)
        gradient = design.T @ (wins - votes * chance) - reward / MODEL.reward_scale**2
        information = (design.T * (votes * chance * (1 - chance))) @ design + np.eye(
            len(reward)
        ) / MODEL.reward_scale**2
        step = np.linalg.solve(information, gradient)
        reward = reward + step
        if np.abs(step).max() < 1e-8:
            break
    return reward


@threadpool_limits.wrap(limits=1, user_api="blas")
def by_hand(data: rt.Comparisons) -> tuple[np.ndarray, np.ndarray, int]:
    """EM in NumPy: shares, rewards, sweeps."""
    counts, start = tables(data), MODEL.start(data)
    weight, reward = (np.asarray(start[name], float) for name in ("type_weight", "reward"))
    before, sweeps = -np.inf, 0
    while sweeps < 2000:
        sweeps += 1
        soft, density = responsible(counts, weight, reward)
        if density - before < 1e-6:
            break
        before, weight = density, soft.mean(0)
        wins, votes = soft.T @ counts.wins, soft.T @ counts.votes
        reward = np.stack(
            [newton(counts, *both, old) for *both, old in zip(wins, votes, reward.T, strict=True)],
            1,
        )
    return weight, reward, sweeps


def by_raters(data: rt.Comparisons) -> tuple[np.ndarray, np.ndarray, int]:
    """PGEM: shares, rewards, sweeps."""
    found = rt.PGEM(draws=0, starts=1).run(rt.program.Program(MODEL, data), jax.random.key(0))
    return found.mode["type_weight"], found.mode["reward"], found.facts["sweeps"]


def em_rows(sizes: tuple[int, ...], seed: int) -> list[list[Any]]:
    """Seconds, sweeps and log joint density of both."""
    rows = []
    for size in sizes:
        data = rt.datasets.preference_types(10, size, 20, 3, seed=seed).votes
        with threadpool_limits(1, user_api="blas"):
            beginning = timed(lambda data=data: MODEL.start(data), warm=True).cpu
        other = np.nan
        for name, solve in (("NumPy", by_hand), ("raters PGEM", by_raters)):
            done = timed(lambda data=data, solve=solve: solve(data), warm=True)
            weight, reward, sweeps = done.value
            other = done.cpu if name == "NumPy" else other
            density = responsible(tables(data), weight, reward)[1]
            each = 1000 * (done.cpu - beginning) / sweeps
            rows.append(
                [
                    size,
                    name,
                    done.seconds,
                    done.cpu,
                    beginning,
                    done.cpu / other,
                    sweeps,
                    each,
                    f"{density:.4f}",
                ]
            )
            print(rows[-1], flush=True)
    return rows


def mixing(backend: Backend, data: rt.Comparisons, seed: int) -> tuple[float, float, float]:
    """CPU-seconds of a run, the smallest effective sample size and the largest R-hat."""
    begin = time.process_time()
    draws = backend.run(rt.program.Program(MODEL, data), jax.random.key(seed))
    spent = time.process_time() - begin
    values = identified(rt.program.Program(MODEL, data), draws).values
    flat = np.concatenate(
        [value.reshape(*value.shape[:2], -1) for value in values.values()], -1
    ).astype(float)
    ess = array_stats.ess(flat, chain_axis=0, draw_axis=1, method="bulk")
    rhat = array_stats.rhat(flat, chain_axis=0, draw_axis=1)
    return spent, float(np.min(ess)), float(np.max(rhat))


def sampling_rows(sizes: tuple[int, ...], seed: int) -> list[list[Any]]:
    """Effective draws by CPU-second of both samplers, warm-up included."""
    rows, compilation = [], {"raters PGGibbs": 0.0, "NumPyro NUTS": 0.0}
    for number, size in enumerate(sizes):
        data = rt.datasets.preference_types(10, size, 20, 3, seed=seed).votes
        short = number > 0
        runs: dict[str, Backend] = {
            "raters PGGibbs": rt.PGGibbs(
                draws=40 if short else 1000, warmup=10 if short else 100, chains=2
            ),
            "NumPyro NUTS": rt.NUTS(
                draws=10 if short else 200, warmup=20 if short else 200, chains=2, max_tree_depth=6
            ),
        }
        for name, backend in runs.items():
            first, ess, rhat = mixing(backend, data, seed)
            if short:
                spent = first - compilation[name]
            else:
                spent, ess, rhat = mixing(backend, data, seed)
                compilation[name] = max(first - spent, 0.0)
            steps = backend.chains * (backend.draws + backend.warmup)
            rows.append(
                [
                    size,
                    name,
                    2 * backend.draws,
                    ess,
                    f"{rhat:.3f}",
                    spent,
                    1000 * spent / steps,
                    ess / spent,
                ]
            )
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Measure and report."""
    settings = options(__doc__ or "")
    sizes = (50, 100) if settings.quick else (200, 20_000)
    em_sizes = sizes if settings.quick else (200, 2_000, 20_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        em, sampling = em_rows(em_sizes, settings.seed), sampling_rows(sizes, settings.seed)
    of_em = [
        "annotators",
        "EM",
        "seconds",
        "CPU s",
        "of them the start",
        "× NumPy",
        "sweeps",
        "CPU ms a sweep",
        "log joint density",
    ]
    of_sampling = [
        "annotators",
        "sampler",
        "draws",
        "smallest ESS",
        "R-hat",
        "CPU s",
        "ms a step",
        "ESS/CPU s",
    ]
    parts = [
        (__doc__ or "").strip().split("\n\n")[1],
        table(of_em, em),
        table(of_sampling, sampling),
    ]
    report("types_speed", "Preference types: speed", parts, settings.quick)


if __name__ == "__main__":
    main()

"""Asking to learn whom to ask later: what it could win over the default, and what it wins.

The protocol of `acquisition.py` for ten annotators (20 items, rewards uniform on [0, 8],
competences uniform on [0, 1], 40 batches of 19), written a second time in NumPy and without raters,
so that many crowds take minutes: Gibbs sampling with the same priors, 300 draws after 40, each run
from where the last one ended, for ten crowds at once.

First what could be won. An oracle knows who is the best annotator. Between it and the default are
*audits*: with every batch the competences are measured as well as by so many further questions of
known difference, all at the gap where an answer tells most of the competence (2.4 / β, or 8 where
that is more; Fisher information .44 / β²). They cost nothing, and tell nothing of the items. With
as many audits as questions a policy has twice the budget of any that could be built; where each
answer is also an audit of who gave it, it learns of the competences faster than any answer can
tell. "5 of 19 questions audits" pays for them with questions on the items.

Then what rules win that look ahead, or explore.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import NamedTuple
from zlib import crc32

import numpy as np
from _common import in_processes, options, report, table
from _gibbs_crowds import (
    ANNOTATORS,
    DRAWS,
    FIRST,
    ITEMS,
    PAIRS,
    SECOND,
    SIZE,
    Draws,
    Greedy,
    Sampler,
)
from scipy.special import expit
from scipy.stats import kendalltau

# Batches, and crowds whose Gibbs sweeps are one call.
BATCHES, TOGETHER = 40, 10
NOTE = """\
*Gain*: area under the curve of Kendall's τ (its mean over the batches) less that of random
questions to random annotators on the same crowds, and its standard error over crowds. *More than
the default*: the difference, paired. *Part*: that difference as a part of what the best annotator,
known, wins beyond the default, with its 95 % interval (bootstrap over crowds). *Competence asked*:
true competence of who was asked, in batches 1–5, 6–15 and 16–40. Audits are free, but for those of
"5 of 19". Plans share the answers; a plan's own random numbers differ."""


class Turn(NamedTuple):
    """Knowledge of a rule besides the draws: the batch, its random numbers, and, for oracles, who
    is the best."""

    batch: int
    rng: np.random.Generator
    best: int


Rule = Callable[[Draws, Turn], np.ndarray]
# From the draws of the competences and who is asked in this batch to the number of audits of each.
Audits = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]


# ---------------------------------------------------------------- rules


def at_random(draws: Draws, turn: Turn) -> np.ndarray:
    """Random questions to random annotators."""
    row = turn.rng.choice(PAIRS * ANNOTATORS, SIZE, replace=False)
    return np.stack([row % PAIRS, row // PAIRS], 1)


def default(draws: Draws, turn: Turn) -> np.ndarray:
    """Question and annotator by the score, one step ahead."""
    return Greedy(draws).choose()[0]


def of_best(draws: Draws, turn: Turn) -> np.ndarray:
    """All questions to the truly best annotator."""
    return Greedy(draws).choose(SIZE * (np.arange(ANNOTATORS) == turn.best))[0]


def even(number: int) -> np.ndarray:
    """Questions for each annotator, as even as can be; those of lower code get one more."""
    return number // ANNOTATORS + (np.arange(ANNOTATORS) < number % ANNOTATORS)


def even_first(draws: Draws, turn: Turn, batches: int) -> np.ndarray:
    """First batches to all annotators evenly, then the default."""
    quota = turn.rng.permutation(even(SIZE)) if turn.batch < batches else None
    return Greedy(draws).choose(quota)[0]


def thompson(draws: Draws, turn: Turn) -> np.ndarray:
    """Each question to the best annotator of a draw."""
    picked = turn.rng.choice(DRAWS, SIZE, replace=False)
    quota = np.bincount(draws.competence[picked].argmax(1), minlength=ANNOTATORS)
    return Greedy(draws).choose(quota)[0]


def weighted(draws: Draws, turn: Turn, weight: float) -> np.ndarray:
    """Information on the competences beside that on the order: for each annotator the fall of the
    variance of the worth, times the probability of being the best, the rest of the campaign, and a
    weight."""
    greedy = Greedy(draws)
    best = np.bincount(draws.competence.argmax(1), minlength=ANNOTATORS) / DRAWS
    rest = 1 - (turn.batch + 1) / BATCHES
    return greedy.choose(bonus=weight * rest * best / greedy.worth().mean(0).max())[0]


def ahead(draws: Draws, turn: Turn, horizon: int) -> np.ndarray:
    """The batch of most gain now and in the batches after it, which are put to whoever is then
    expected to be the best.

    Batches to compare: the default's; all to one annotator; half to one annotator and half as by
    default; evenly to all; by three Thompson draws. The worth of an annotator's answers, as it will
    be expected after the batch, is normal around today's mean, with the covariance that the best
    linear predictor from the answers explains.
    """
    greedy, noise = Greedy(draws), turn.rng.normal(size=(500, ANNOTATORS))
    worth, later = greedy.worth().mean(0), min(horizon, BATCHES - 1 - turn.batch)
    quotas: list[np.ndarray | None] = [None, turn.rng.permutation(even(SIZE))]
    for one in range(ANNOTATORS):
        quotas.append(SIZE * (np.arange(ANNOTATORS) == one))
    for _ in range(3):
        picked = turn.rng.choice(DRAWS, SIZE, replace=False)
        quotas.append(np.bincount(draws.competence[picked].argmax(1), minlength=ANNOTATORS))
    values, batches = [], []
    for quota in quotas:
        batch, gain, told = greedy.choose(quota)
        size, axis = np.linalg.eigh(told)
        change = noise * np.sqrt(np.maximum(size, 0.0)) @ axis.T
        values.append(gain + later * SIZE * float((worth + change).max(1).mean()))
        batches.append(batch)
    return batches[int(np.argmax(values))]


def fewer(draws: Draws, turn: Turn, audits: int) -> np.ndarray:
    """The default's questions but for so many, in whose place there are audits."""
    return default(draws, turn)[: SIZE - audits]


# ---------------------------------------------------------------- audits


def audit_the_asked(competence: np.ndarray, by: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One audit for each question, of who is asked it."""
    return np.bincount(by, minlength=ANNOTATORS).astype(float)


def audit_the_best(
    competence: np.ndarray, by: np.ndarray, rng: np.random.Generator, times: float
) -> np.ndarray:
    """So many audits for each question, to find the best: top-two Thompson sampling."""
    audits = np.zeros(ANNOTATORS)
    for _ in range(SIZE):
        leaders = competence[rng.choice(DRAWS, 30, replace=False)].argmax(1)
        others = leaders[leaders != leaders[0]]
        second = rng.random() < 0.5 and len(others)
        audits[others[0] if second else leaders[0]] += times
    return audits


class Plan(NamedTuple):
    """A rule, and the audits that it gets."""

    rule: Rule
    audits: Audits | None = None


RANDOM, DEFAULT, KNOWN = "random", "the default", "best annotator known"
PLANS = {
    RANDOM: Plan(at_random),
    DEFAULT: Plan(default),
    KNOWN: Plan(of_best),
    "as many audits as questions": Plan(default, partial(audit_the_best, times=1)),
    "4 × as many audits": Plan(default, partial(audit_the_best, times=4)),
    "10 × as many audits": Plan(default, partial(audit_the_best, times=10)),
    "each answer also an audit": Plan(default, audit_the_asked),
    "5 of 19 questions audits": Plan(
        partial(fewer, audits=5), partial(audit_the_best, times=5 / 19)
    ),
    "two steps ahead": Plan(partial(ahead, horizon=1)),
    "to the end": Plan(partial(ahead, horizon=BATCHES)),
    "information on competences beside": Plan(partial(weighted, weight=300.0)),
    "Thompson annotator": Plan(thompson),
    "evenly, 2 batches": Plan(partial(even_first, batches=2)),
}


# ---------------------------------------------------------------- campaigns


class Run(NamedTuple):
    """τ after each batch and the true competence asked in it, shape (crowd, batch)."""

    tau: np.ndarray
    asked: np.ndarray


def campaigns(job: tuple[str, int, int, int]) -> Run:
    """One plan on some crowds; the n-th answer of an annotator about a pair is the same for every
    plan."""
    name, seed, crowds, batches = job
    plan, every = PLANS[name], range(seed, seed + crowds)
    truth = [np.random.default_rng([one, 1]) for one in every]
    reward = np.array([rng.uniform(0, 8, ITEMS) for rng in truth])
    competence = np.array([rng.random(ANNOTATORS) for rng in truth])
    luck = np.array([rng.random((PAIRS, ANNOTATORS, 2 * BATCHES), np.float32) for rng in truth])
    rng = np.random.default_rng([seed, 2, crc32(name.encode())])
    sampler, index = Sampler(rng, crowds), np.arange(crowds)[:, None]
    times = np.zeros((crowds, PAIRS, ANNOTATORS), int)
    pair, who, won = (np.zeros((crowds, 0), kind) for kind in (int, int, float))
    draws, tau, of_asked = sampler.draws(pair, who, won), [], []
    for batch in range(batches):
        turns = [Turn(batch, rng, int(each.argmax())) for each in competence]
        chosen = np.array([plan.rule(own, turn) for own, turn in zip(draws, turns, strict=True)])
        new, by = chosen[..., 0], chosen[..., 1]
        gap = reward[index, FIRST[new]] - reward[index, SECOND[new]]
        chance = luck[index, new, by, times[index, new, by]]
        times[index, new, by] += 1
        answer = chance < expit(competence[index, by] * gap)
        pair, who, won = np.hstack([pair, new]), np.hstack([who, by]), np.hstack([won, answer])
        if plan.audits is not None:
            every_number = zip(draws, by, strict=True)
            number = [plan.audits(own.competence, asked, rng) for own, asked in every_number]
            measure(sampler, np.array(number), competence)
        draws = sampler.draws(pair, who, won)
        means = [own.reward.mean(0) for own in draws]
        tau.append([kendalltau(*both).statistic for both in zip(means, reward, strict=True)])
        of_asked.append(competence[index, by].mean(1))
    return Run(np.array(tau).T, np.array(of_asked).T)


def measure(sampler: Sampler, number: np.ndarray, competence: np.ndarray) -> None:
    """Audit the annotators: a normal measurement of each competence, at the best information."""
    gap = 2.4 / np.maximum(competence, 0.3)
    chance = expit(competence * gap)
    precision = number * gap**2 * chance * (1 - chance)
    noise = np.sqrt(precision) * sampler.rng.normal(size=precision.shape)
    sampler.audited += np.array([precision, precision * competence + noise])


def part(more: np.ndarray, most: np.ndarray) -> str:
    """Ratio of the means, and its 95 % interval by the bootstrap over crowds."""
    rows = np.random.default_rng(0).choice(len(more), (4000, len(more)))
    low, high = np.quantile(more[rows].mean(1) / most[rows].mean(1), [0.025, 0.975])
    return f"{more.mean() / most.mean():.0%} [{low:.0%}, {high:.0%}]"


def mean(values: np.ndarray) -> str:
    """Mean and standard error over crowds."""
    return f"{values.mean():+.4f} ± {values.std(ddof=1) / np.sqrt(len(values)):.4f}"


def audited(batches: int) -> str:
    """Standard deviation of a competence of .8, uniform on [0, 1] at first (variance 1/12), after
    so many batches of audits."""
    answers = batches * SIZE / ANNOTATORS
    return f"{(12 + 0.44 * answers / 0.8**2) ** -0.5:.2f} after {batches} batches"


def early(lost: np.ndarray) -> str:
    """Parts of what is lost in the first batches; a mean loss for each batch."""
    parts = [
        f"{lost[:until].sum() / lost.sum():.0%} in the first {until}"
        for until in (1, 5, 10, 20)
        if until < len(lost)
    ]
    return ", ".join(parts)


def rows_of(runs: dict[str, Run]) -> list[list]:
    """The table."""
    area, rows = {name: run.tau.mean(1) for name, run in runs.items()}, []
    for name, run in runs.items():
        more, most = area[name] - area[DEFAULT], area[KNOWN] - area[DEFAULT]
        asked = [
            f"{times.mean():.2f}" for times in np.split(run.asked, [5, 15], axis=1) if times.size
        ]
        row = [name, mean(area[name] - area[RANDOM])]
        row += ["", ""] if name in (DEFAULT, RANDOM) else [mean(more), part(more, most)]
        rows.append([*row, ", ".join(asked), float(run.tau[:, -1].mean())])
    return rows


def all_runs(given: argparse.Namespace, crowds: int, batches: int) -> dict[str, Run]:
    """Each plan on every crowd."""
    names = list(PLANS)
    if given.plans != "all":
        wanted = given.plans.split(",")
        names = [n for place, n in enumerate(names) if place < 3 or str(place) in wanted]
        if unknown := set(wanted) - set(map(str, range(len(PLANS)))):
            raise SystemExit(f"--plans {sorted(unknown)[0]} is no place in the table of plans")
    begins = range(given.seed, given.seed + crowds, TOGETHER)
    jobs = [
        (name, begin, min(TOGETHER, given.seed + crowds - begin), batches)
        for name in names
        for begin in begins
    ]
    done = in_processes(campaigns, jobs, given.processes, f"jobs of {TOGETHER} crowds")
    own: dict[str, list[Run]] = {name: [] for name in names}
    for (name, *_), run in zip(jobs, done, strict=True):
        own[name].append(run)
    return {
        name: Run(*(np.concatenate(each) for each in zip(*several, strict=True)))
        for name, several in own.items()
    }


def main() -> None:
    """Each plan on every crowd, and their table."""
    given = options(
        __doc__ or "",
        replicates=(40, "crowds"),
        plans=("all", "those beside the first three, by their places in the table: 8,9"),
        processes=(2, "processes"),
        out=(None, "folder of the table; results/ by default"),
    )
    crowds, batches = (20, 4) if given.quick else (given.replicates, BATCHES)
    runs = all_runs(given, crowds, batches)
    sizes = (
        f"{crowds} crowds. Of what the default loses to the best annotator, known:"
        f" {early((runs[KNOWN].tau - runs[DEFAULT].tau).mean(0))}."
        f" Standard deviation of a competence of .8: {12**-0.5:.2f} at first, and were all"
        f" answers audits, evenly of all annotators, {', '.join(map(audited, (5, 10, 20)))}."
    )
    header = ["", "gain", "more than the default", "part", "competence asked", "last τ"]
    title = "Asking to learn whom to ask later"
    parts = [sizes, table(header, rows_of(runs)), NOTE]
    report("acquisition_ahead", title, parts, given.quick, given.out)


if __name__ == "__main__":
    main()

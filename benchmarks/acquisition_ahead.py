"""Asking to learn whom to ask later: what it could win over the default, and what it wins.

The protocol of `acquisition.py` for ten annotators (20 items, rewards uniform on [0, 8],
competences uniform on [0, 1], 40 batches of 19), written a second time in NumPy and without raters,
so that many crowds take minutes: Gibbs sampling with the same priors, 300 draws after 40, each run
from where the last one ended, for ten crowds at once.

First what could be won. Two oracles know who is the best annotator, or all competences. In between
are *audits*: with every batch the competences are measured as well as by so many further questions
of known difference, all at the gap where an answer tells most of the competence (Fisher information
.44 / β² at a gap of 2.4 / β, at most 8). They cost nothing, and tell nothing of the items. With as
many audits as questions a policy has twice the budget of any that could be built; where each answer
is also an audit of who gave it, it learns of the competences faster than any answer can tell. "5 of
19 questions audits" pays for them with questions on the items.

Then what rules win that look ahead, or explore.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from _common import in_processes, options, report, table
from polyagamma import random_polyagamma
from scipy.special import expit, gammainc, gammaincinv, ndtr, ndtri
from scipy.stats import kendalltau

ITEMS, ANNOTATORS, SIZE, BATCHES, DRAWS, WARMUP, SCALE = 20, 10, 19, 40, 300, 40, 2.3
FIRST, SECOND = np.triu_indices(ITEMS, 1)
PAIRS = len(FIRST)
# Crowds whose Gibbs sweeps are one call, and candidates, the best by score, that a batch is from.
TOGETHER, SHORTLIST = 10, 400
NOTE = """\
*Gain*: area under the curve of Kendall's τ (its mean over the batches) less that of random
questions to random annotators on the same crowds, and its standard error over crowds. *More than
the default*: the difference, paired. *Part*: that difference as a part of what the best annotator,
known, wins beyond the default, with its 95 % interval (bootstrap over crowds). *Competence asked*:
true competence of who was asked, in batches 1–5, 6–15 and 16–40 (the best: as for the oracle).
Audits are free, but for those of "5 of 19"."""


class Draws(NamedTuple):
    """Draws of one crowd's posterior."""

    reward: np.ndarray
    competence: np.ndarray


class Turn(NamedTuple):
    """What a rule may know besides the draws: the batch, its random numbers, and, for oracles, who
    is the best."""

    batch: int
    rng: np.random.Generator
    best: int


Rule = Callable[[Draws, Turn], np.ndarray]
# From the draws of the competences and who is asked in this batch to the number of audits of each.
Audits = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]


# ---------------------------------------------------------------- the posterior, for several crowds


class Sampler:
    """Gibbs sampling of Extended-BTL for several crowds that have equally many answers."""

    def __init__(self, rng: np.random.Generator, known: np.ndarray, told: bool) -> None:
        self.rng, self.told, self.crowds = rng, told, len(known)
        self.reward = np.zeros((self.crowds, ITEMS))
        self.competence = known.copy() if told else np.full((self.crowds, ANNOTATORS), 0.5)
        # Of the audits: their precision, and the precision times what they measured.
        self.audited = np.zeros((2, self.crowds, ANNOTATORS))

    def draws(self, pair: np.ndarray, who: np.ndarray, won: np.ndarray) -> list[Draws]:
        """Draws after these answers, each of shape (crowd, answer)."""
        reward = np.empty((DRAWS, self.crowds, ITEMS))
        competence = np.empty((DRAWS, self.crowds, ANNOTATORS))
        crowd = np.arange(self.crowds)[:, None]
        sides = FIRST[pair] + ITEMS * crowd, SECOND[pair] + ITEMS * crowd
        flat = [each.ravel() for each in (*sides, who + ANNOTATORS * crowd, won - 0.5)]
        for sweep in range(-WARMUP, DRAWS):
            if pair.shape[1]:
                self._sweep(*flat)
            else:
                self.reward = self.rng.normal(0, SCALE, self.reward.shape)
                if not self.told:
                    self.competence = self.rng.random(self.competence.shape)
            if sweep >= 0:
                reward[sweep], competence[sweep] = self.reward, self.competence
        return [Draws(reward[:, one], competence[:, one]) for one in range(self.crowds)]

    def _sweep(self, first: np.ndarray, second: np.ndarray, who: np.ndarray, won: np.ndarray):
        """Pólya-Gamma variables, competences, rewards, and the scale that they share."""
        gap = self.reward.ravel()[first] - self.reward.ravel()[second]
        logit = self.competence.ravel()[who] * gap
        weight = random_polyagamma(1.0, logit, method="devroye", random_state=self.rng)
        if not self.told:
            self._draw_competence(gap, weight, who, won)
        own = self.competence.ravel()[who]
        self._draw_reward(first, second, weight * own * own, won * own)
        if not self.told:
            self._move_scale()

    def _draw_competence(self, gap, weight, who, won) -> None:
        """From a normal distribution within [0, 1]; of the prior, 0.5 ± 10, little is seen."""
        shape = self.competence.shape
        precision = np.bincount(who, weight * gap * gap, self.competence.size).reshape(shape)
        shift = np.bincount(who, won * gap, self.competence.size).reshape(shape)
        precision, shift = precision + 0.01 + self.audited[0], shift + 0.005 + self.audited[1]
        mean, spread = shift / precision, 1 / np.sqrt(precision)
        # From the tail on the far side of the interval, where probabilities are not near 1.
        side = np.where(mean > 0.5, -1.0, 1.0)
        near = side * (np.where(mean > 0.5, 1.0, 0.0) - mean) / spread
        low, high = ndtr(near), ndtr(near + 1 / spread)
        chance = np.clip(low + self.rng.random(shape) * (high - low), 1e-300, 1 - 1e-16)
        self.competence = np.clip(mean + side * spread * ndtri(chance), 0.0, 1.0)

    def _draw_reward(self, first, second, weight, shift) -> None:
        """From a normal distribution whose precision is a graph Laplacian plus the prior's."""
        size = self.crowds * ITEMS
        cells = np.bincount(first * ITEMS + second % ITEMS, weight, size * ITEMS)
        cells = cells.reshape(self.crowds, ITEMS, ITEMS)
        precision = -(cells + cells.transpose(0, 2, 1))
        diagonal = np.arange(ITEMS)
        precision[:, diagonal, diagonal] = SCALE**-2 - precision.sum(2)
        total = np.bincount(first, shift, size) - np.bincount(second, shift, size)
        root = np.linalg.cholesky(precision)
        half = np.linalg.solve(root, total.reshape(self.crowds, ITEMS, 1))
        half += self.rng.normal(size=half.shape)
        self.reward = np.linalg.solve(root.transpose(0, 2, 1), half)[..., 0]

    def _move_scale(self) -> None:
        """Rewards times c and competences over c, which answers do not see: c² is Gamma
        distributed, and no competence may be above 1. Audits see it, and decide on the proposal."""
        shape = (ITEMS - ANNOTATORS) / 2
        rate = (self.reward**2).sum(1) / (2 * SCALE**2)
        least = self.competence.max(1) ** 2
        low = gammainc(shape, least * rate)
        chance = np.minimum(low + self.rng.random(self.crowds) * (1 - low), 1 - 1e-14)
        scale = np.sqrt(np.maximum(gammaincinv(shape, chance) / rate, least))[:, None]
        precision, shift = self.audited
        new = self.competence / scale
        change = precision * (self.competence**2 - new**2) / 2 + shift * (new - self.competence)
        moves = np.log(self.rng.random(self.crowds)) < change.sum(1)
        self.reward = np.where(moves[:, None], self.reward * scale, self.reward)
        self.competence = np.where(moves[:, None], new, self.competence)


# ---------------------------------------------------------------- a batch


class Greedy:
    """Questions by the expected fall of the variance of their pair's order, each given the answers
    to those before it, as of `target="ranking"`."""

    def __init__(self, draws: Draws) -> None:
        gap = (draws.reward[:, FIRST] - draws.reward[:, SECOND]).astype(np.float32)
        self.gap, self.draws, self.root = gap, draws, np.float32(np.sqrt(len(gap)))
        self.order = self._centred((gap > 0).astype(np.float32))
        chance = expit(draws.competence[:, :, None].astype(np.float32) * gap[:, None])
        mean = chance.mean(0).ravel()
        self.answer = self._centred(chance).reshape(len(gap), -1)
        self.variance = np.maximum(mean * (1 - mean), 1e-9)
        own = np.einsum("skq,sq->kq", self.answer.reshape(chance.shape), self.order)
        self.own = own.ravel()
        self.pair = np.tile(np.arange(PAIRS), ANNOTATORS)
        self.who = np.repeat(np.arange(ANNOTATORS), PAIRS)

    def _centred(self, values: np.ndarray) -> np.ndarray:
        return (values - values.mean(0)) / self.root

    def choose(
        self,
        quota: np.ndarray | None = None,
        factor: np.ndarray | None = None,
        bonus: np.ndarray | None = None,
    ) -> tuple[np.ndarray, float, np.ndarray]:
        """Rows of (pair, annotator), the fall of the variances, and the covariance of what the
        competences are worth (see `worth`) after the answers.

        With a quota each annotator gets as many questions; a factor multiplies the scores of each;
        a bonus weighs the fall of the variance of each worth, and is added.
        """
        quota = np.full(ANNOTATORS, SIZE) if quota is None else quota.copy()
        factor = np.ones(ANNOTATORS) if factor is None else factor
        worth = self._centred(self.worth().astype(np.float32))
        bonus = np.zeros(ANNOTATORS, np.float32) if bonus is None else bonus.astype(np.float32)
        score = factor[self.who] * self.own**2 / self.variance
        if bonus.any():
            score = score + bonus @ ((worth.T @ self.answer) ** 2 / self.variance)
        near = np.flatnonzero(quota[self.who] > 0)
        near = near[np.argsort(-score[near])[:SHORTLIST]]
        answer, variance, own = self.answer[:, near], self.variance[near], self.own[near]
        pair, who = self.pair[near], self.who[near]
        of_worth = worth.T @ answer
        # Columns of a Cholesky factor: covariances of the chosen answers with all, and with orders.
        rows, orders = np.zeros((SIZE, len(near))), np.zeros((SIZE, PAIRS))
        told, gain, chosen, free = np.zeros((SIZE, ANNOTATORS)), 0.0, [], np.ones(len(near), bool)
        for place in range(min(SIZE, int(quota.sum()))):
            score = factor[who] * own**2 / variance + bonus @ (of_worth**2 / variance)
            best = int(np.where(free & (quota[who] > 0), score, -1.0).argmax())
            chosen.append((pair[best], who[best]))
            gain += own[best] ** 2 / variance[best]
            quota[who[best]] -= 1
            free &= pair != pair[best]
            root = np.sqrt(variance[best])
            before = rows[:place, best]
            told[place] = of_worth[:, best] / root
            rows[place] = (answer[:, best] @ answer - before @ rows[:place]) / root
            orders[place] = (answer[:, best] @ self.order - before @ orders[:place]) / root
            variance = np.maximum(variance - rows[place] ** 2, 1e-9)
            own = own - rows[place] * orders[place][pair]
            of_worth = of_worth - told[place][:, None] * rows[place]
        return np.array(chosen), gain, told.T @ told

    def worth(self) -> np.ndarray:
        """Worth of the next questions to each annotator under each draw of the competence: the mean
        of the highest 19 scores, were that competence known, shape (draw, annotator)."""
        if not hasattr(self, "_worth"):
            grid, best = np.linspace(0, 1, 11), []
            for competence in grid:
                chance = expit(np.float32(competence) * self.gap)
                mean = chance.mean(0)
                own = np.einsum("sq,sq->q", self._centred(chance), self.order)
                score = own**2 / np.maximum(mean * (1 - mean), 1e-9)
                best.append(np.sort(score)[-SIZE:].mean())
            self._worth = np.interp(self.draws.competence, grid, best)
        return self._worth


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


def upper(draws: Draws, turn: Turn, level: float) -> np.ndarray:
    """Scores times the square of an upper quantile of the competence over its mean."""
    high = np.quantile(draws.competence, level, axis=0) / draws.competence.mean(0)
    return Greedy(draws).choose(factor=high**2)[0]


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
    """A rule, the audits that it gets, and whether its fits know the competences."""

    rule: Rule
    audits: Audits | None = None
    told: bool = False


DEFAULT, KNOWN = "the default", "best annotator known"
PLANS = {
    "random": Plan(at_random),
    DEFAULT: Plan(default),
    KNOWN: Plan(of_best),
    "all competences known": Plan(default, told=True),
    "as many audits as questions": Plan(default, partial(audit_the_best, times=1)),
    "2 × as many audits": Plan(default, partial(audit_the_best, times=2)),
    "4 × as many audits": Plan(default, partial(audit_the_best, times=4)),
    "each answer also an audit": Plan(default, audit_the_asked),
    "each answer also an audit, to the end": Plan(partial(ahead, horizon=BATCHES), audit_the_asked),
    "each answer also an audit, Thompson": Plan(thompson, audit_the_asked),
    "5 of 19 questions audits": Plan(
        partial(fewer, audits=5), partial(audit_the_best, times=5 / 19)
    ),
    "two steps ahead": Plan(partial(ahead, horizon=1)),
    "to the end": Plan(partial(ahead, horizon=BATCHES)),
    "information on competences beside": Plan(partial(weighted, weight=300.0)),
    "upper quantile, .8": Plan(partial(upper, level=0.8)),
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
    rng = np.random.default_rng([seed, 2, list(PLANS).index(name)])
    sampler, index = Sampler(rng, competence, plan.told), np.arange(crowds)[:, None]
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
    precision = number * 0.44 / np.maximum(competence, 0.3) ** 2
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


def main() -> None:
    """Each plan on every crowd."""
    given = options(
        __doc__ or "",
        replicates=(100, "crowds"),
        plans=("all", "plans, by their places in the table, such as 0,1,2"),
        processes=(2, "processes"),
        out=(None, "folder of the table; results/ by default"),
    )
    crowds, batches = (20, 4) if given.quick else (given.replicates, BATCHES)
    names = list(PLANS)
    if given.plans != "all":
        names = [names[int(place)] for place in given.plans.split(",")]
    begins = range(given.seed, given.seed + crowds, TOGETHER)
    jobs = [
        (name, begin, min(TOGETHER, given.seed + crowds - begin), batches)
        for name in names
        for begin in begins
    ]
    done = in_processes(campaigns, jobs, given.processes, f"jobs of {TOGETHER} crowds")
    runs = {
        name: Run(*(np.concatenate(each) for each in zip(*own, strict=True)))
        for name, own in (
            (name, [run for job, run in zip(jobs, done, strict=True) if job[0] == name])
            for name in names
        )
    }
    area = {name: run.tau.mean(1) for name, run in runs.items()}
    rows = []
    for name, run in runs.items():
        more, most = area[name] - area[DEFAULT], area[KNOWN] - area[DEFAULT]
        asked = [
            f"{times.mean():.2f}" for times in np.split(run.asked, [5, 15], axis=1) if times.size
        ]
        row = [name, mean(area[name] - area["random"])]
        row += ["", ""] if name in (DEFAULT, "random") else [mean(more), part(more, most)]
        rows.append([*row, ", ".join(asked), float(run.tau[:, -1].mean())])
    lost = (runs[KNOWN].tau - runs[DEFAULT].tau).mean(0)
    early = ", ".join(
        f"{lost[:until].sum() / lost.sum():.0%} in the first {until}"
        for until in (1, 5, 10, 20)
        if until < batches
    )
    sizes = (
        f"{crowds} crowds. Of what the default loses to the best annotator, known: {early}."
        f" Standard deviation of a competence of .8: {12**-0.5:.2f} at first, and were all"
        f" answers audits, evenly of all annotators, {', '.join(map(audited, (5, 10, 20)))}."
    )
    header = ["", "gain", "more than the default", "part", "competence asked", "last τ"]
    title = "Asking to learn whom to ask later"
    report("acquisition_ahead", title, [sizes, table(header, rows), NOTE], given.quick, given.out)


if __name__ == "__main__":
    main()

"""Questions that arrive one after another, against a pool: Kendall's τ after as many answers.

10 items with rewards Normal(0, 3²), 6 annotators, of whom three guess (competence 0) and three
have competence 1; Extended-BTL. There are 120 votes on random questions to begin with. More
questions arrive at random from all triples of two items and an annotator; `Campaign.consider` asks
a share of them (the rate) until the answers are used up. *Pool*: `Campaign.ask(1)` chooses from all
triples, by the same policy. *Random*: the questions that arrive are asked, whatever they are. All
get the same answers: the n-th to a question by an annotator is the same for each. τ is that of the
posterior means with the true rewards, every 10 answers; beside it the τ that the posterior expects,
which has less noise of its own.
"""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _common import in_processes, options, report, table
from scipy.special import expit
from scipy.stats import bootstrap, kendalltau

import raters as rt
from raters.acquisition import ExpectedTau, Random, Top

ITEMS, ANNOTATORS, EARLIER, EACH = 10, 6, 120, 10
# Where syncing costs nothing.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
BACKEND = rt.PGGibbs(draws=200, warmup=40, chains=1)
BY_CHANCE = rt.Policy(score=Random(), batch=Top())
NOTE = """\
*Area*: mean of τ over the answers. *Regret*: area of the pool's curve less that of the row, paired
by replicate. *Kept*: part of the pool's gain over random that is left, by means of expected τ.
Brackets: 95 % intervals (bootstrap over replicates). *Asked*: share of the questions that
arrived."""


class Curve(NamedTuple):
    """τ every few answers, as it is and as it is expected, and the share of the stream that was
    asked."""

    tau: list[float]
    expected: list[float]
    asked: float


class Crowd:
    """Rewards, competences, and answers that are the same for every policy."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.seed, self.reward = seed, rng.normal(scale=3.0, size=ITEMS)
        self.competence = np.repeat([0.0, 1.0], ANNOTATORS // 2)
        self.asked: Counter[tuple[int, int, int]] = Counter()

    def answer(self, first: int, second: int, by: int) -> str:
        """The next answer to this question."""
        low, high = sorted((first, second))
        key = (low, high, by)
        chance = np.random.default_rng([self.seed, *key, self.asked[key]]).random()
        self.asked[key] += 1
        gap = self.competence[by] * (self.reward[low] - self.reward[high])
        return "first" if (chance < expit(gap)) == (first == low) else "second"

    def earlier(self) -> rt.Comparisons:
        """Votes on random questions, the same for every policy."""
        rng, rows = np.random.default_rng([self.seed, 2]), []
        for _ in range(EARLIER):
            first, second = rng.choice(ITEMS, 2, replace=False).tolist()
            by = int(rng.integers(ANNOTATORS))
            won = self.answer(first, second, by) == "first"
            rows.append((first, second, by) if won else (second, first, by))
        winner, loser, judge = zip(*rows, strict=True)
        return rt.Comparisons.from_frame(
            {"winner": winner, "loser": loser, "annotator": judge},
            winner="winner",
            loser="loser",
            annotator="annotator",
            items=range(ITEMS),
            annotators=range(ANNOTATORS),
        )


def campaign(policy: str, rate: float, answers: int, seed: int, folder: Path) -> Curve:
    """One campaign until the answers are used up."""
    crowd, rng = Crowd(seed), np.random.default_rng([seed, 1])
    pool = rt.Candidates.pairs(items=list(range(ITEMS)), annotators=list(range(ANNOTATORS)))
    votes = crowd.earlier()
    own = rt.Campaign(
        folder / f"{policy}-{rate}-{seed}.db",
        rt.ExtendedBTL(competence="positive"),
        pool,
        data=votes,
        backend=BACKEND,
        policy=BY_CHANCE if policy == "random" else rt.Policy(),
        batch_size=EACH,
        budget=answers,
        seed=seed,
    )
    tau: list[float] = []
    expected: list[float] = []
    arrived = count = 0
    names = list(
        zip(pool.first.tolist(), pool.second.tolist(), pool.annotator.tolist(), strict=True)
    )
    while count < answers:
        if policy == "stream":
            row = int(rng.integers(pool.num_rows))
            question = {name: of[row] for name, of in pool.question_names().items()}
            decision = own.consider(question, rate=rate)
            arrived += 1
            asked = [(decision.id, *names[row])] if decision.ask else []
        else:
            table = own.ask(1).to_dataframe()
            asked = [(one.Index, one.first, one.second, one.by) for one in table.itertuples()]
        for place, first, second, by in asked:
            better = (first, second)[crowd.answer(first, second, by) == "second"]
            own.tell(place, better)
            count += 1
            if count % EACH == 0:
                draws = own.posterior
                mean = draws.weight @ draws.draws["reward"]
                tau.append(float(kendalltau(mean, crowd.reward).statistic))
                expected.append(ExpectedTau(0.5).value(draws))
    return Curve(tau, expected, answers / arrived if arrived else float("nan"))


def replicate(job: tuple[int, int, tuple[float, ...]]) -> dict[str, Curve]:
    """All policies with one crowd."""
    seed, answers, rates = job
    with warnings.catch_warnings(), tempfile.TemporaryDirectory(dir=MEMORY) as name:
        warnings.simplefilter("ignore")
        folder = Path(name)
        curves = {one: campaign(one, 0.0, answers, seed, folder) for one in ("pool", "random")}
        for rate in rates:
            curves[f"stream, rate {rate:g}"] = campaign("stream", rate, answers, seed, folder)
    return curves


def interval(values: np.ndarray) -> str:
    """Mean, and its 95 % interval by the bootstrap."""
    found: Any = bootstrap((values,), np.mean, n_resamples=2000, rng=0)
    low, high = found.confidence_interval
    return f"{values.mean():.3f} [{low:.3f}, {high:.3f}]"


def kept(pool: np.ndarray, own: np.ndarray, random: np.ndarray) -> str:
    """Part of the pool's gain over random that is left, and its 95 % interval by the bootstrap."""

    def part(pool: np.ndarray, own: np.ndarray, random: np.ndarray, axis: int = -1) -> Any:
        return (own - random).mean(axis) / (pool - random).mean(axis)

    sizes: Any = {"n_resamples": 2000, "rng": 0, "method": "percentile"}
    low, high = bootstrap((pool, own, random), part, paired=True, **sizes).confidence_interval
    return f"{part(pool, own, random):.2f} [{low:.2f}, {high:.2f}]"


def main() -> None:
    """All crowds, and their table."""
    given = options(
        __doc__ or "",
        replicates=(16, "crowds"),
        answers=(40, "answers each"),
        rates=("0.1,0.2,0.5", "rates"),
        processes=(2, "crowds at a time"),
        out=(None, "folder of the table; results/ by default"),
    )
    replicates, answers = (3, 30) if given.quick else (given.replicates, given.answers)
    rates = tuple(float(rate) for rate in given.rates.split(","))
    jobs = [(given.seed + number, answers, rates) for number in range(replicates)]
    curves = in_processes(replicate, jobs, given.processes, "crowds")
    area = {name: np.array([np.mean(one[name].tau) for one in curves]) for name in curves[0]}
    sure = {name: np.array([np.mean(one[name].expected) for one in curves]) for name in curves[0]}
    rows = []
    for name in ("pool", *(f"stream, rate {rate:g}" for rate in rates), "random"):
        share = np.mean([one[name].asked for one in curves])
        lost, less = (
            interval(one["pool"] - one[name]) if name != "pool" else "–" for one in (area, sure)
        )
        left = kept(sure["pool"], sure[name], sure["random"]) if "rate" in name else "–"
        rows.append([name, interval(area[name]), lost, interval(sure[name]), less, left, share])
    heading = ["", "area of τ", "regret", "area of expected τ", "regret of it", "kept", "asked"]
    sizes = f"{replicates} crowds, {answers} answers each."
    title = "Questions that arrive against a pool"
    report("stream", title, [table(heading, rows), NOTE, sizes], given.quick, given.out)


if __name__ == "__main__":
    main()

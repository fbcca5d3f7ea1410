"""The cheapest panel of judges whose joint verdict reaches an accuracy."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from raters.reporting.judges.verdicts import Verdicts

# Judges that panels are made of, sizes of panels, and questions that all of these judges answered:
# the fewest, and the most that are looked at; and halves of these.
_JUDGES, _SIZES, _FEWEST, _MOST, _SPLITS = 10, (1, 3, 5), 50, 1000, 10
Votes = Float[np.ndarray, "judge question answer"]
Rng = np.random.Generator
PerJudge = Float[np.ndarray, " judge"]
# Probability of each answer to be the true one.
Chances = Float[np.ndarray, "question answer"]


class Panel(NamedTuple):
    """Names of the members, cost of one joint verdict, the accuracy of panels that are chosen so on
    questions that they were not chosen by, and the probability that it reaches what was asked."""

    members: tuple[str, ...]
    cost: float
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    p_reached: float


def cheapest_panel(
    verdicts: Verdicts, codes: list[int], cost: PerJudge, target: float, level: float, rng: Rng
) -> Panel | None:
    """The cheapest panel of one, three or five judges, or the most accurate one where none reaches
    the target; None where the judges have too few questions in common.

    Each member gives one verdict, and votes with the log odds of their accuracy. A panel is chosen
    by one half of the questions and measured on the other, and the other way round, for several
    random halves.
    """
    codes = _candidates(verdicts, codes, cost)
    votes, questions = _votes(verdicts, codes)
    while len(questions) < _FEWEST:
        # Without the judge with fewest answers, who limits the questions most.
        codes.remove(min(codes, key=lambda code: (verdicts.table["judge"] == code).sum()))
        if not codes:
            return None
        votes, questions = _votes(verdicts, codes)
    price, truth = cost[codes], verdicts.truth[:, questions]
    chances: Chances = (truth[..., None] == np.arange(votes.shape[2])).mean(0)
    right = np.zeros(truth.shape)
    for _ in range(_SPLITS):
        single = _single(votes, rng)
        halves = np.array_split(rng.permutation(len(questions)), 2)
        for some, others in (halves, halves[::-1]):
            members = _chosen(single[:, some], chances[some], price, target)
            weight = _log_odds(single[:, some], chances[some])
            share = _joint(single[:, others], weight, members)
            found = np.take_along_axis(share[None], truth[:, others, None], 2)[..., 0]
            right[:, others] += found / _SPLITS
    chosen = _chosen(_single(votes, rng), chances, price, target)
    weights = rng.standard_exponential(truth.shape)
    draws = (weights * right).sum(1) / weights.sum(1)
    low, high = np.quantile(draws, ((1 - level) / 2, (1 + level) / 2))
    names = tuple(str(verdicts.judges[codes[place]]) for place in chosen)
    total = float(price[list(chosen)].sum())
    reached = float((draws >= target).mean())
    return Panel(names, total, float(draws.mean()), float(low), float(high), reached)


def _single(votes: Votes, rng: Rng) -> Votes:
    """One verdict of each judge on each question, drawn from theirs."""
    upper = np.cumsum(votes, axis=2)
    drawn = (rng.random(votes.shape[:2])[..., None] >= upper[..., :-1]).sum(2)
    return np.asarray(drawn[..., None] == np.arange(votes.shape[2]), float)


def _candidates(verdicts: Verdicts, codes: list[int], cost: PerJudge) -> list[int]:
    """The most accurate judges, first those whom nobody cheaper excels."""
    table = verdicts.table.assign(right=verdicts.right(verdicts.table).mean(0))
    accuracy = table.groupby("judge")["right"].mean().reindex(codes, fill_value=0.0)
    order = sorted(codes, key=lambda code: (cost[code], -accuracy[code]))
    best = np.maximum.accumulate([accuracy[code] for code in order])
    front = [code for code, most in zip(order, best, strict=True) if accuracy[code] >= most]
    rest = sorted(set(codes) - set(front), key=lambda code: -accuracy[code])
    return (front[::-1] + rest)[:_JUDGES]


def _votes(verdicts: Verdicts, codes: list[int]) -> tuple[Votes, Int[np.ndarray, " some"]]:
    """Shares of the answers of each judge to the questions that all answered, and these."""
    table = verdicts.untied()
    table = table[table["judge"].isin(codes)]
    sums = table.groupby(["judge", "question", "answer"])["weight"].sum()
    shares = sums / sums.groupby(level=["judge", "question"]).transform("sum")
    size = table.groupby("question")["judge"].nunique()
    questions = np.asarray(size.index[size == len(codes)])
    questions = np.sort(np.random.default_rng(0).permutation(questions)[:_MOST])
    number = 1 + int(max(table["answer"].max(), verdicts.truth.max()))
    index = pd.MultiIndex.from_product([codes, questions, range(number)])
    votes = shares.reindex(index, fill_value=0.0).to_numpy()
    return votes.reshape(len(codes), len(questions), number), questions


def _log_odds(votes: Votes, chances: Chances) -> PerJudge:
    """Log odds of each judge's accuracy, none below that of a coin."""
    right = np.einsum("jqc,qc->j", votes, chances)
    accuracy = (right + 1) / (votes.shape[1] + 2)
    return np.maximum(np.log(accuracy / (1 - accuracy)), 1e-3)


def _joint(votes: Votes, weight: PerJudge, members: tuple[int, ...]) -> Chances:
    """Joint verdict of some judges: the answer with most votes, shared where several have."""
    chosen = list(members)
    total = np.einsum("jqc,j->qc", votes[chosen], weight[chosen])
    top = total >= total.max(1, keepdims=True) - 1e-12
    return np.asarray(top / top.sum(1, keepdims=True))


def _chosen(votes: Votes, chances: Chances, price: PerJudge, target: float) -> tuple[int, ...]:
    """Members of the cheapest panel that reaches the target, or of the most accurate one."""
    weight = _log_odds(votes, chances)
    panels = [one for size in _SIZES for one in combinations(range(len(votes)), size)]
    accuracy = [(_joint(votes, weight, one) * chances).sum(1).mean() for one in panels]
    cost = [price[list(one)].sum() for one in panels]
    whole = [place for place, value in enumerate(accuracy) if value >= target]
    if not whole:
        return panels[int(np.argmax(accuracy))]
    return panels[min(whole, key=lambda place: (cost[place], -accuracy[place]))]

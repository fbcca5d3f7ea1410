"""Questions that arrive one after another: whether to ask each, by its rank among those seen
lately."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from raters.acquisition.campaign.journal import Journal, Question, Seen, Snapshot
from raters.acquisition.campaign.ledger import Ledger
from raters.acquisition.campaign.settings import chooses_at_random
from raters.acquisition.policy import Policy
from raters.acquisition.posterior import Posterior
from raters.acquisition.questions.pool import seed_of
from raters.errors import DataError, refuse
from raters.errors.validation import instance
from raters.judgements.base import Judgements
from raters.judgements.display import display_name

# Number of questions seen last that an arriving one is compared with.
RECENT = 300
# Share of the stream that is asked where none is given.
DEFAULT_RATE = 0.1
# Part of the rate by which the level moves after each question: what is asked is never more than
# 1 / STEP + 1 = 11 questions above the rate.
STEP = 0.1
# Number of questions of the pool for criteria that read the other questions, as EPIG does.
_OTHERS = 256
_BLOCK = 1024

PerSeen = Float[np.ndarray, " seen"]


class Decision(NamedTuple):
    """Decision on a question that arrived.

    Attributes
    ----------
    ask : bool
    id : str or None
        Id of the question, for `Campaign.tell`; None where it is let go.
    score : float
        Score by the policy, per cost; NaN where the question could not be asked anyway.
    threshold : float
        Score from which it is asked: the point that the wanted share of the questions seen lately
        exceeds by the same draws. Infinite where the lot decides alone, as for the first questions.
    reason : str
        The decision in words.
    best : float
        Highest score among this question and those seen lately, by the same draws: the regret
        against a pool of them is ``best - score``. NaN where the question could not be asked, or
        the policy asks at random.
    """

    ask: bool
    id: str | None
    score: float
    threshold: float
    reason: str
    best: float = math.nan


class Decided(NamedTuple):
    """Decision for the journal, the question where it is asked, and `Decision.best`."""

    seen: Seen
    question: Question | None = None
    best: float = math.nan


def rank(score: PerSeen, lot: PerSeen, chance: float, level: float) -> tuple[bool, float]:
    """Decide on the last of some questions by its rank among all of them: whether to ask, and the
    score from which one asks."""
    others, most = len(score) - 1, math.floor(level * len(score) - chance)
    above = others - int(np.flatnonzero(np.lexsort((lot, score)) == others)[0])
    if most < 0:
        return False, math.inf
    threshold = -math.inf if most >= others else float(np.sort(score[:-1])[::-1][most])
    return above <= most, threshold


def next_level(level: float, rate: float, asked: bool) -> float:
    r"""Move the level towards the rate: :math:`\ell + \gamma (\rho - a)`, a = 1 where the question
    was asked (Gibbs and Candès 2021, equation 2)."""
    return level + STEP * rate * (rate - float(asked))


def lots(seed: int, place: int) -> tuple[float, float]:
    """Lot and chance of the question in this place of the stream, both uniform on [0, 1]."""
    lot, chance = _block(seed, place // _BLOCK)[place % _BLOCK]
    return float(lot), float(chance)


@lru_cache(maxsize=8)
def _block(seed: int, number: int) -> Float[np.ndarray, "place 2"]:
    """Random numbers of so many places together, since a generator takes longer to make than to
    use."""
    return np.random.default_rng([seed, 2, number]).random((_BLOCK, 2))


class Stream(NamedTuple):
    """State of a stream: the questions seen lately, the number of all, and the level and the rate
    for the next one."""

    recent: list[Seen]
    place: int
    level: float
    rate: float

    @classmethod
    def of(cls, journal: Journal, rate: float | None) -> Stream:
        """State in a journal; `rate` takes the place of the rate in it, and the level begins
        anew with another rate."""
        recent, place = journal.read_seen(RECENT)
        level, before = (recent[-1].level, recent[-1].rate) if recent else (math.nan, math.nan)
        if rate is None:
            rate = before if recent else DEFAULT_RATE
        return cls(recent, place, level if rate == before else rate, float(rate))

    def let_go(self, row: int, reason: str, *, moves: bool = True) -> Decided:
        """Decision on a question that cannot be asked; without `moves` the level stays."""
        level = next_level(self.level, self.rate, False) if moves else self.level
        return Decided(Seen(row, None, math.inf, level, self.rate, None, reason))

    def decide(
        self,
        row: int,
        snapshot: Snapshot,
        ledger: Ledger,
        policy: Policy,
        posterior: Posterior,
        seed: int,
    ) -> Decided:
        """Decision on a question that can be asked, by scores of the same draws, given that the
        open questions are asked."""
        judge, asked = int(ledger.judge[row]), ledger.asked(snapshot)
        is_short = bool(asked[judge] < policy.least_share * (asked.sum() + 1))
        begin = self.place - len(self.recent)
        before = [
            (place, seen.row)
            for place, seen in enumerate(self.recent, begin)
            if seen.score is not None
        ]
        rows = [*(one for _, one in before), row]
        score = self._scores(policy, posterior, ledger.pool, rows, snapshot, seed)
        lot, chance = lots(seed, self.place)
        lot_of_each = np.array([*(lots(seed, place)[0] for place, _ in before), lot])
        ask, threshold = rank(score, lot_of_each, chance, self.level)
        own = float(score[-1])
        if is_short:
            name = display_name(ledger.pool.judges[judge])
            reason = f"{name} is short of the least share of the questions"
        elif math.isinf(threshold):
            drawn = "asks it" if ask else "lets it go"
            reason = f"the lot {drawn}: too few questions to compare it with ({len(before)})"
        else:
            side = "above" if own > threshold else "below" if own < threshold else "at"
            reason = f"its score {own:.3g} is {side} the threshold {threshold:.3g}"
        ask = ask or is_short
        level = next_level(self.level, self.rate, ask)
        decision = Seen(row, own, threshold, level, self.rate, None, reason)
        question = Question(row, judge, own, float(ledger.cost[judge])) if ask else None
        # By chance nothing is better than anything else.
        best = math.nan if chooses_at_random(policy) else float(score.max())
        return Decided(decision, question, best)

    def _scores(
        self,
        policy: Policy,
        posterior: Posterior,
        pool: Judgements,
        rows: list[int],
        snapshot: Snapshot,
        seed: int,
    ) -> PerSeen:
        seed, pending = seed_of(seed, 3, self.place), np.sort(snapshot.row[snapshot.open])
        size = min(_OTHERS, pool.num_rows)
        others = np.random.default_rng(seed).choice(pool.num_rows, size, replace=False)
        questions = pool.rows(np.concatenate([rows, others]))
        waiting = pool.rows(pending) if len(pending) else None
        return policy.values(posterior, questions, seed=seed, pending=waiting)[: len(rows)]


def row_of(pool: Judgements, question: Any) -> int:
    """Row of the pool that holds a question."""
    judge = np.asarray(pool.codes(pool.judge))
    columns = list(pool.rows(slice(0, 1)).question_names())
    such = f"question={dict.fromkeys(columns, '...')}"
    if isinstance(question, Mapping):
        if set(question) != set(columns):
            expected = f"give a name for each of {', '.join(columns)}"
            refuse("question", question, expected=expected, instead=such, error=DataError)
        matches = _named(pool, dict(question))
    else:
        instance("question", question, type(pool), "a question", such)
        if question.num_rows != 1:
            problem, expected = f"holds {question.num_rows} rows", "give one question at a time"
            refuse("question", problem=problem, expected=expected, error=DataError)
        asked = question.asked_of(pool)
        rows = np.flatnonzero(judge == int(asked.codes(pool.judge)[0]))
        own, key = np.split(pool.rows(rows).keys(asked), [len(rows)])
        matches = rows[own == key[0]]
    if not len(matches):
        expected = "start a campaign whose pool has every question that may arrive"
        shown = question if isinstance(question, Mapping) else type(question).__name__
        refuse("question", shown, "is none of this campaign's pool", expected, error=DataError)
    return int(matches[0])


def _named(pool: Judgements, question: dict[str, Any]) -> Int[np.ndarray, " match"]:
    """Rows of the pool with these names; a pair without an order in either."""
    by = [code for code, name in enumerate(pool.judges) if name == question["by"]]
    rows = np.flatnonzero(np.isin(pool.codes(pool.judge), by))
    table = pool.rows(rows).question_names()
    ways = [question]
    if pool.pair is not None and pool.exchangeable:
        first, second = pool.pair
        ways.append(question | {first: question[second], second: question[first]})
    matches = [
        np.all([table[name] == value for name, value in way.items()], axis=0) for way in ways
    ]
    return rows[np.any(matches, axis=0)]

"""Questions that arrive one after another: whether to ask each, by its rank among those seen
lately."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from raters.acquisition.campaign.journal import Journal, Question, Snapshot
from raters.acquisition.campaign.ledger import Ledger
from raters.acquisition.campaign.seen import Seen, read_seen
from raters.acquisition.campaign.settings import chooses_at_random
from raters.acquisition.policy.policy import Policy
from raters.acquisition.questions.pool import seed_of
from raters.acquisition.scoring.posterior import Posterior
from raters.errors import DataError
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


class Rank(NamedTuple):
    """Decision by rank: whether to ask, and the score from which one asks."""

    ask: bool
    threshold: float


def rank(
    score: Float[np.ndarray, " seen"], lot: Float[np.ndarray, " seen"], chance: float, level: float
) -> Rank:
    """Decide on the last of some questions by its rank among all of them."""
    others, most = len(score) - 1, math.floor(level * len(score) - chance)
    ascending = np.lexsort((lot, score))
    above = others - int(np.flatnonzero(ascending == others)[0])
    if most < 0:
        return Rank(False, math.inf)
    threshold = -math.inf if most >= others else _highest(score[:-1], most)
    return Rank(above <= most, threshold)


def _highest(score: Float[np.ndarray, " other"], place: int) -> float:
    """The score in this place, counted from 0, from the highest down."""
    return float(np.sort(score)[::-1][place])


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
        recent, place = read_seen(journal, RECENT)
        level, before = (recent[-1].level, recent[-1].rate) if recent else (math.nan, math.nan)
        if rate is None:
            rate = before if recent else DEFAULT_RATE
        return cls(recent, place, level if rate == before else rate, rate)

    def let_go(self, row: int, reason: str, *, moves: bool = True) -> Seen:
        """Decision on a question that cannot be asked; without `moves` the level stays."""
        level = next_level(self.level, self.rate, False) if moves else self.level
        return Seen(row, None, math.inf, level, self.rate, None, reason)

    def decide(
        self,
        row: int,
        snapshot: Snapshot,
        ledger: Ledger,
        policy: Policy,
        posterior: Posterior,
        seed: int,
    ) -> Decided:
        """Decision on a question that can be asked."""
        judge, asked = int(ledger.judge[row]), ledger.asked(snapshot)
        is_short = asked[judge] < policy.least_share * (asked.sum() + 1)
        short = display_name(ledger.pool.judges[judge]) if is_short else None
        pending = np.sort(snapshot.row[snapshot.open])
        score = self._scores(policy, posterior, ledger.pool, row, pending, seed)
        lot, chance = self._lots(seed)
        ranked, own = rank(score, lot, chance, self.level), float(score[-1])
        ask, reason = ranked.ask or is_short, self._reason(own, ranked, short)
        level = next_level(self.level, self.rate, ask)
        seen = Seen(row, own, ranked.threshold, level, self.rate, None, reason)
        question = Question(row, *ledger.sides(row), judge, own, float(ledger.cost[judge]))
        # By chance nothing is better than anything else.
        best = math.nan if chooses_at_random(policy) else float(score.max())
        return Decided(seen, question if ask else None, best)

    def _scores(
        self,
        policy: Policy,
        posterior: Posterior,
        pool: Judgements,
        row: int,
        pending: Int[np.ndarray, " pending"],
        seed: int,
    ) -> Float[np.ndarray, " seen"]:
        """Scores, by the same draws, of the questions seen lately that could be asked, and last of
        the one in `row`, given that those in the rows `pending` are asked."""
        seed = seed_of(seed, 3, self.place)
        rows = [seen.row for seen in self.recent if seen.score is not None] + [row]
        size = min(_OTHERS, pool.num_rows)
        others = np.random.default_rng(seed).choice(pool.num_rows, size, replace=False)
        questions = pool.rows(np.concatenate([rows, others]))
        waiting = pool.rows(pending) if len(pending) else None
        value = policy.values(posterior, questions, seed=seed, pending=waiting)
        return value[: len(rows)]

    def _lots(self, seed: int) -> tuple[Float[np.ndarray, " seen"], float]:
        """Lots of the questions that `_scores` scores, and the chance of the last."""
        begin = self.place - len(self.recent)
        places = [begin + one for one, seen in enumerate(self.recent) if seen.score is not None]
        own, chance = lots(seed, self.place)
        return np.array([*(lots(seed, place)[0] for place in places), own]), chance

    def _reason(self, score: float, ranked: Rank, short: str | None) -> str:
        """The decision in words."""
        if short is not None:
            return f"{short} is short of the least share of the questions"
        if math.isinf(ranked.threshold):
            drawn = "asks it" if ranked.ask else "lets it go"
            count = sum(seen.score is not None for seen in self.recent)
            return f"the lot {drawn}: {count} question(s) to compare it with give no threshold"
        side = "above" if score > ranked.threshold else "below"
        side = "at" if score == ranked.threshold else side
        return f"its score {score:.3g} is {side} the threshold {ranked.threshold:.3g}" + (
            ", and the lot " + ("asks it" if ranked.ask else "lets it go")
        ) * (side == "at")


# ---------------------------------------------------------------- the question


def row_of(pool: Judgements, question: Any) -> int:
    """Row of the pool that holds a question."""
    if isinstance(question, Mapping):
        found = _named(pool, dict(question))
    else:
        instance("question", question, type(pool), "a question", _such(pool))
        if question.num_rows != 1:
            raise DataError(
                parameter="question",
                problem=f"holds {question.num_rows} rows",
                expected="give one question at a time",
                instead="question=questions.rows([0])",
            )
        asked = question.asked_of(pool)
        rows = np.flatnonzero(np.asarray(pool.codes(pool.judge)) == int(asked.codes(pool.judge)[0]))
        own, key = np.split(pool.rows(rows).keys(asked), [len(rows)])
        found = rows[own == key[0]]
    if not len(found):
        raise DataError(
            parameter="question",
            value=question if isinstance(question, Mapping) else type(question).__name__,
            problem=_why_none(pool, question) or "is none of the pool of this campaign",
            expected="start a campaign whose pool has every question that may arrive",
            instead="rt.Candidates.pairs(items=..., annotators=...)",
        )
    return int(found[0])


def _why_none(pool: Judgements, question: Any) -> str:
    """Sentence on a name that no question of the pool has; empty where each name has one."""
    if not isinstance(question, Mapping):
        return ""
    for name, column in pool.question_names().items():
        if not np.any(column == question[name]):
            return f"has {name} {question[name]!r}, which no question of the pool has"
    return ""


def _such(pool: Judgements) -> str:
    return f"question={dict.fromkeys(pool.rows(slice(0, 1)).question_names(), '...')}"


def _named(pool: Judgements, question: dict[str, Any]) -> Int[np.ndarray, " found"]:
    """Rows of the pool with these names; a pair without an order in either."""
    columns = list(pool.rows(slice(0, 1)).question_names())
    if set(question) != set(columns):
        raise DataError(
            parameter="question",
            value=question,
            problem=f"has {sorted(map(str, question))}",
            expected=f"give a name for each of {', '.join(columns)}",
            instead=_such(pool),
        )
    if pool.pair is not None and question[pool.pair[0]] == question[pool.pair[1]]:
        raise DataError(
            parameter="question",
            value=question,
            problem=f"compares {question[pool.pair[0]]!r} with itself",
            expected="name two",
        )
    judges = [name == question["by"] for name in pool.judges]
    if not any(judges):
        raise DataError(
            parameter="question",
            value=question,
            problem=f"is to {question['by']!r}, whom the pool does not have",
            expected="name one of its annotators",
        )
    rows = np.flatnonzero(np.asarray(pool.codes(pool.judge)) == judges.index(True))
    table = pool.rows(rows).question_names()
    ways = [question]
    if pool.pair is not None and pool.exchangeable:
        first, second = pool.pair
        ways.append(question | {first: question[second], second: question[first]})
    matches = [
        np.all([table[name] == value for name, value in way.items()], axis=0) for way in ways
    ]
    return rows[np.any(matches, axis=0)]


# ---------------------------------------------------------------- what was decided


def stream_table(pool: Judgements, seen: list[Seen], ids: list[str]) -> xr.Dataset:
    """Table of all questions that arrived, in order: names, scores, thresholds, and decisions."""
    columns = pool.rows(np.array([one.row for one in seen], int)).question_names() | {
        "score": np.array([math.nan if one.score is None else one.score for one in seen], float),
        "threshold": np.array([one.threshold for one in seen], float),
        "ask": np.array([one.question is not None for one in seen], bool),
        "id": np.array(ids, object),
        "rate": np.array([one.rate for one in seen], float),
        "reason": np.array([one.reason for one in seen], object),
    }
    places = np.arange(1, len(seen) + 1)
    return xr.Dataset({name: ("seen", one) for name, one in columns.items()}, {"seen": places})

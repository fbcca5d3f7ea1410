"""Questions that quotas, budget and answers leave of a pool, and whether to ask one that arrives,
by its rank among those seen lately; tables of questions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from raters.acquisition.campaign.journal import Journal, Question, Seen, Snapshot
from raters.acquisition.policy import Policy, chooses_at_random
from raters.acquisition.posterior import Posterior
from raters.acquisition.questions.pool import seed_of
from raters.errors import refuse_data
from raters.judgements.base import Judgements
from raters.judgements.display import display_name
from raters.judgements.names import name_text


class Account(NamedTuple):
    """Rest of a pool and of a budget: rows that wait for an answer, rows to ask, and what their
    answers may cost."""

    snapshot: Snapshot
    waiting: Int[np.ndarray, " waiting"]
    free: Int[np.ndarray, " free"]
    payable: Int[np.ndarray, " payable"]
    asked: Int[np.ndarray, " annotator"]
    left: float


class Ledger:
    """Accounts of a pool by its quotas, the costs of its annotators, and earlier judgements."""

    def __init__(self, pool: Judgements, base: Judgements, policy: Policy, again: bool) -> None:
        self.pool, self.policy = pool, policy
        self.judge = np.asarray(pool.codes(pool.judge))
        self.cost = policy.cost_of(pool.judges)
        self._again = again
        self._quota = policy.quota_of(pool.judges)
        self._asked_before = base.judgements_by(pool.judge)
        self._keys, base_keys = np.split(pool.keys(base), [pool.num_rows])
        self._answered_before = np.isin(self._keys, base_keys) & (not again)

    def account(self, snapshot: Snapshot, budget: float | None) -> Account:
        """Account after the questions and answers of a journal."""
        counted = snapshot.open | snapshot.answered
        codes = snapshot.annotator[counted]
        asked = np.bincount(codes, minlength=len(self.pool.judges)) + self._asked_before
        taken = snapshot.row[snapshot.open if self._again else counted]
        may = (asked < self._quota)[self.judge] & ~self._answered_before
        free = np.flatnonzero(may & ~np.isin(self._keys, self._keys[taken]))
        # A hair more, so that ten times 0.1 fit into 1.
        most = math.inf if budget is None else budget * (1 + 1e-9)
        left = most - float(snapshot.cost[counted].sum())
        waiting, payable = np.sort(snapshot.row[snapshot.open]), self.cost[self.judge[free]] <= left
        return Account(snapshot, waiting, free, free[payable], asked, left)

    def question(self, row: int, score: float) -> Question:
        """Question of a row, to be handed out."""
        judge = int(self.judge[row])
        return Question(row, judge, score, float(self.cost[judge]))

    def why_not(self, account: Account, row: int) -> str | None:
        """Reason why this row cannot be asked now, as a sentence, or None."""
        code = int(self.judge[row])
        if row in account.payable:
            return None
        if row in account.free:
            return f"its answer costs {self.cost[code]:g}, and {account.left:.6g} is left"
        if self._keys[row] in self._keys[account.waiting]:
            return "it waits for an answer already"
        if account.asked[code] >= self._quota[code]:
            return f"the quota of {display_name(self.pool.judges[code])} is used up"
        return "it has been answered already"

    def row_of(self, question: Mapping[str, Any]) -> int:
        """Row of the pool that holds a question, by its names."""
        pool = self.pool
        columns = list(pool.rows(slice(0, 1)).question_names())
        if set(question) != set(columns):
            such = f"question={dict.fromkeys(columns, '...')}"
            refuse_data("question", question, expected="name these columns", instead=such)
        words = {column: name_text(name) for column, name in question.items()}
        by = [code for code, name in enumerate(pool.judges) if name_text(name) == words["by"]]
        rows = np.flatnonzero(np.isin(self.judge, by))
        table, ways = pool.rows(rows).question_names(), [words]
        if pool.pair is not None and pool.exchangeable:
            first, second = pool.pair
            ways.append({**words, first: words[second], second: words[first]})
        known = {name: {name_text(one): one for one in {*table[name].tolist()}} for name in table}
        same = [[table[name] == known[name].get(way[name]) for name in table] for way in ways]
        each = [np.all(columns, axis=0) for columns in same]
        if not np.any(each):
            refuse_data("question", question, "is none of the pool", "put it into the pool first")
        return int(rows[np.any(each, axis=0)][0])

    # ---------------------------------------------------------------- tables

    def table(self, ids: list[str], rows: ArrayLike, score: ArrayLike) -> xr.Dataset:
        """Table of questions by id: names, scores, and the possible answers."""
        pool, questions = self.pool, self.pool.rows(np.asarray(rows, int))
        columns = questions.question_names() | {"score": np.asarray(score, float)}
        table = _along("id", np.array(ids, object), columns)
        if plain := pool.plain_columns():
            table.attrs["plain"] = list(plain)
        if pool.pair is not None:
            return table.assign_attrs(pair=list(pool.pair), title="Which of the two is better?")
        if not pool.listed:
            table.attrs["ordered"] = True
        table.attrs["title"] = pool.instruction
        words = [tuple(questions.answer_words(row)) for row in range(questions.num_rows)]
        if len(set(words)) <= 1:
            return table.assign_attrs(answers=list(words[0]) if words else [])
        return table.assign(answers=("id", pd.Series(words).to_numpy()))

    def history(self, ids: list[str], snapshot: Snapshot) -> xr.Dataset:
        """Table of all questions ever handed out, with their batch, status and answer."""
        status = np.where(snapshot.withdrawn, "withdrawn", "open")
        status = np.where(snapshot.answered, "answered", status).astype(object)
        answer = np.full(len(snapshot), "", object)
        for place in np.flatnonzero(snapshot.answered):
            answer[place] = self.pool.words_of(int(snapshot.row[place]), snapshot.value[place])
        table = self.table(ids, snapshot.row, snapshot.score)
        columns = {"batch": snapshot.batch, "status": status, "answer": answer}
        return table.assign({name: ("id", column) for name, column in columns.items()})

    def stream(self, seen: pd.DataFrame, ids: list[str]) -> xr.Dataset:
        """Table of all questions that arrived: names, scores, thresholds, and decisions."""
        seen = seen.assign(ask=seen["question"].notna(), id=np.array(ids, object))
        columns = self.pool.rows(seen["row"].to_numpy(int)).question_names()
        for name in ("score", "threshold", "ask", "id", "rate", "reason"):
            columns[name] = seen[name].to_numpy()
        return _along("seen", seen.index.to_numpy(int), columns)


def _along(axis: str, names: np.ndarray, columns: Mapping[str, np.ndarray]) -> xr.Dataset:
    """Table with one axis."""
    return xr.Dataset({name: (axis, column) for name, column in columns.items()}, {axis: names})


# ---------------------------------------------------------------- questions that arrive

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
    """Decision on a question that arrived, with its id for `Campaign.tell`, and a reason in words.

    `score` is by the policy, per cost; it is asked from `threshold` on, which is infinite where the
    lot decides, as for the first questions. `best` is the highest score among this question and
    those seen lately: the regret against a pool of them is ``best - score``. NaN where the question
    could not be asked, or the policy asks at random.
    """

    ask: bool
    id: str | None
    score: float
    threshold: float
    reason: str
    best: float = math.nan


def rank(score: PerSeen, lot: PerSeen, chance: float, level: float) -> tuple[bool, float]:
    """Decide on the last question by its rank among some: whether to ask, and from which score."""
    others, most = len(score) - 1, math.floor(level * len(score) - chance)
    above = others - int(np.flatnonzero(np.lexsort((lot, score)) == others)[0])
    if most < 0:
        return False, math.inf
    threshold = -math.inf if most >= others else float(np.sort(score[:-1])[::-1][most])
    return above <= most, threshold


def next_level(level: float, rate: float, asked: bool) -> float:
    """Move the level by γ(ρ − a), a = 1 where the question was asked (Gibbs and Candès 2021)."""
    return level + STEP * rate * (rate - float(asked))


def lots(seed: int, begin: int, end: int) -> Float[np.ndarray, "place 2"]:
    """Lot and chance of the questions in these places of the stream, all uniform on [0, 1]."""
    first = begin // _BLOCK
    rngs = [np.random.default_rng([seed, 2, n]) for n in range(first, (end - 1) // _BLOCK + 1)]
    blocks = np.concatenate([rng.random((_BLOCK, 2)) for rng in rngs])
    return blocks[begin - first * _BLOCK : end - first * _BLOCK]


class Stream(NamedTuple):
    """State of a stream: questions seen lately, number of all, level and rate for the next one."""

    recent: pd.DataFrame
    place: int
    level: float
    rate: float

    @classmethod
    def of(cls, journal: Journal, rate: float | None) -> Stream:
        """State in a journal; a `rate` that is not the rate in it begins the level anew."""
        recent = journal.read_seen(RECENT)
        place, level, before = 0, math.nan, DEFAULT_RATE
        if len(recent):
            place, level, before = recent.reset_index()[["number", "level", "rate"]].iloc[-1]
        rate = before if rate is None else rate
        return cls(recent, int(place), level if place and rate == before else rate, float(rate))

    def seen(self, row: int, decision: Decision, moves: bool) -> Seen:
        """Decision on a question, and whether the level moves by it."""
        ask, _, score, threshold, reason, _ = decision
        level = next_level(self.level, self.rate, ask) if moves else self.level
        return Seen(row, score, threshold, level, self.rate, None, reason)

    def decide(
        self, row: int, ledger: Ledger, account: Account, posterior: Posterior, seed: int
    ) -> Decision:
        """Decision on a question, given the open ones."""
        scored = np.flatnonzero(self.recent["score"].notna())
        rows = [*self.recent["row"].iloc[scored], row]
        new, pool, policy = seed_of(seed, 3, self.place), ledger.pool, ledger.policy
        size, pending = min(_OTHERS, pool.num_rows), pool.rows(account.waiting)
        others = np.random.default_rng(new).choice(pool.num_rows, size, replace=False)
        questions = pool.rows(np.concatenate([rows, others]))
        score = policy.values(posterior, questions, seed=new, pending=pending)[: len(rows)]
        lot = lots(seed, self.place - len(self.recent), self.place + 1)[[*scored, -1]]
        ask, threshold = rank(score, lot[:, 0], float(lot[-1, 1]), self.level)
        value, judge, asked = float(score[-1]), int(ledger.judge[row]), account.asked
        if asked[judge] < policy.least_share * (asked.sum() + 1):
            name = display_name(pool.judges[judge])
            ask, reason = True, f"{name} is short of the least share of the questions"
        elif math.isinf(threshold):
            drawn = "asks it" if ask else "lets it go"
            reason = f"the lot {drawn}: too few questions to compare it with ({len(scored)})"
        else:
            side = "above" if value > threshold else "below" if value < threshold else "at"
            reason = f"its score {value:.3g} is {side} the threshold {threshold:.3g}"
        # By chance nothing is better than anything else.
        best = math.nan if chooses_at_random(policy) else float(score.max())
        return Decision(ask, None, value, threshold, reason, best)

"""Ledger of a campaign: what quotas, budget and answers leave to ask; tables of questions."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from raters.acquisition.campaign.journal import Seen, Snapshot
from raters.acquisition.policy import Policy
from raters.judgements.base import Judgements
from raters.judgements.display import display_name


class Account(NamedTuple):
    """Rest of a pool and of a budget: rows to ask, and what answers, given or open, have cost."""

    free: Int[np.ndarray, " free"]
    payable: Int[np.ndarray, " payable"]
    asked: Int[np.ndarray, " annotator"]
    paid: float
    budget: float | None
    left: float


class Ledger:
    """Accounts of a pool by its quotas, the costs of its annotators, and earlier judgements."""

    def __init__(self, pool: Judgements, base: Judgements, policy: Policy, again: bool) -> None:
        self.pool = pool
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
        paid = float(snapshot.cost[counted].sum())
        # A hair more, so that ten times 0.1 fit into 1.
        left = math.inf if budget is None else budget * (1 + 1e-9) - paid
        return Account(free, free[self.cost[self.judge[free]] <= left], asked, paid, budget, left)

    def why_not(self, snapshot: Snapshot, account: Account, row: int) -> str | None:
        """Reason why this row cannot be asked now, as a sentence, or None."""
        code = int(self.judge[row])
        if row not in account.free:
            same = self._keys[snapshot.row] == self._keys[row]
            if (same & snapshot.open).any():
                return "it waits for an answer already"
            if account.asked[code] >= self._quota[code]:
                return f"the quota of {display_name(self.pool.judges[code])} is used up"
            return "it has been answered already"
        cost, left = self.cost[code], account.left
        if cost > left:
            return f"its answer costs {cost:g}, and {left:.6g} of the budget is left"
        return None


# ---------------------------------------------------------------- tables


def question_table(
    pool: Judgements,
    ids: list[str],
    rows: Int[np.ndarray, " question"],
    score: Float[np.ndarray, " question"],
) -> xr.Dataset:
    """Table of questions by id: names, scores, and the possible answers."""
    questions = pool.rows(np.asarray(rows, int))
    columns = questions.question_names() | {"score": np.asarray(score, float)}
    table = xr.Dataset(
        {name: ("id", column) for name, column in columns.items()}, {"id": np.array(ids, object)}
    )
    if plain := pool.plain_columns():
        table.attrs["plain"] = list(plain)
    if pool.pair is not None:
        return table.assign_attrs(pair=list(pool.pair))
    if not pool.listed:
        table.attrs["ordered"] = True
    table.attrs["title"] = pool.instruction
    words = [tuple(questions.answer_words(row)) for row in range(questions.num_rows)]
    if len(set(words)) <= 1:
        return table.assign_attrs(answers=list(words[0]) if words else [])
    column = np.empty(len(words), object)
    column[:] = words
    return table.assign(answers=("id", column))


def history_table(pool: Judgements, ids: list[str], snapshot: Snapshot) -> xr.Dataset:
    """Table of all questions ever handed out, with their batch, status and answer."""
    table = question_table(pool, ids, snapshot.row, snapshot.score)
    status = np.where(snapshot.withdrawn, "withdrawn", "open")
    status = np.where(snapshot.answered, "answered", status).astype(object)
    answer = [
        "" if np.isnan(outcome) else pool.words_of(row, outcome)
        for row, outcome in zip(snapshot.row.tolist(), snapshot.value.tolist(), strict=True)
    ]
    columns = {"batch": snapshot.batch, "status": status, "answer": np.array(answer, object)}
    return table.assign({name: ("id", column) for name, column in columns.items()})


def stream_table(pool: Judgements, seen: list[Seen], ids: list[str]) -> xr.Dataset:
    """Table of all questions that arrived, in order: names, scores, thresholds, and decisions."""
    columns: dict[str, Any] = pool.rows(np.array([one.row for one in seen], int)).question_names()
    columns |= {
        "score": np.array([one.score for one in seen], float),
        "threshold": np.array([one.threshold for one in seen], float),
        "ask": np.array([one.question is not None for one in seen], bool),
        "id": np.array(ids, object),
        "rate": np.array([one.rate for one in seen], float),
        "reason": np.array([one.reason for one in seen], object),
    }
    places = np.arange(1, len(seen) + 1)
    return xr.Dataset({name: ("seen", one) for name, one in columns.items()}, {"seen": places})

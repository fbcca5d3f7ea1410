"""Tables of the questions of a campaign."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from raters.acquisition.campaign.journal import Seen, Snapshot
from raters.judgements.base import Judgements


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

"""Tables of the questions of a campaign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int, Shaped

from raters.acquisition.campaign.journal import Snapshot
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
    return table.assign(answers=("id", of_objects(words)))


def of_objects(values: Sequence[Any]) -> Shaped[np.ndarray, " value"]:
    """Array of any objects, also of sequences."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


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

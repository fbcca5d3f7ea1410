"""Tables of the questions of a campaign."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from raters.acquisition.campaign.journal import Snapshot
from raters.judgements.base import Judgements


def question_table(
    pool: Judgements,
    ids: list[str],
    rows: Int[np.ndarray, " question"],
    score: Float[np.ndarray, " question"],
) -> xr.Dataset:
    """Table of questions by id: names, scores, and the possible answers where items have no sides.

    The answers are ``attrs["classes"]`` where all questions have the same ones, and otherwise the
    column ``answers``.
    """
    questions = pool.rows(np.asarray(rows, int))
    columns = questions.question_names() | {"score": np.asarray(score, float)}
    table = xr.Dataset(
        {name: ("id", column) for name, column in columns.items()}, {"id": np.array(ids, object)}
    )
    if pool.pair is None:
        words = [list(questions.answer_words(row)) for row in range(questions.num_rows)]
        if all(own == words[0] for own in words):
            table.attrs["classes"] = words[0] if words else []
        else:  # the possible answers depend on the question
            table["answers"] = "id", np.array([", ".join(own) for own in words], object)
    return table


def history_table(pool: Judgements, ids: list[str], snapshot: Snapshot) -> xr.Dataset:
    """Table of all questions ever handed out, with their batch, state and answer."""
    table = question_table(pool, ids, snapshot.row, snapshot.score)
    state = np.where(snapshot.withdrawn, "withdrawn", "open")
    state = np.where(snapshot.answered, "answered", state).astype(object)
    answer = [
        "" if np.isnan(outcome) else pool.words_of(row, outcome)
        for row, outcome in zip(snapshot.row.tolist(), snapshot.value.tolist(), strict=True)
    ]
    columns = {"batch": snapshot.batch, "state": state, "answer": np.array(answer, object)}
    return table.assign({name: ("id", column) for name, column in columns.items()})

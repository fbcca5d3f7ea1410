"""Agreement of each pair of annotators on the questions that both answered."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import csr_array

from raters.judgements.base import Judgements


class Pairwise(NamedTuple):
    """Agreement of each pair of annotators."""

    share: Float[np.ndarray, "annotator annotator"]
    common: Int[np.ndarray, "annotator annotator"]


def pairwise(data: Judgements, who: Int[np.ndarray, " annotator"]) -> Pairwise:
    """Measure the agreement of each pair of annotators."""
    position = np.full(len(data.judges), -1)
    position[who] = np.arange(len(who))
    tallies = data.tallies()
    keep = (position[tallies[0]] >= 0) & (tallies[3] > 0)
    annotator, question, answer, weight = (column[keep] for column in tallies)
    annotator = position[annotator]
    questions, question = np.unique(question, return_inverse=True)
    num_questions, num_answers = len(questions), int(answer.max(initial=0)) + 1
    cell = annotator * num_questions + question
    asked, inverse = np.unique(cell, return_inverse=True)
    share = weight / np.bincount(inverse, weight)[inverse] if len(cell) else weight
    shares = csr_array(
        (share, (annotator, question * num_answers + answer)),
        shape=(len(who), num_questions * num_answers),
    )
    answered = csr_array(
        (np.ones(len(asked)), np.divmod(asked, max(num_questions, 1))),
        shape=(len(who), num_questions),
    )
    same = (shares @ shares.T).toarray()
    common = np.rint((answered @ answered.T).toarray()).astype(int)
    np.fill_diagonal(common, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return Pairwise(np.where(common > 0, same / common, np.nan), common)

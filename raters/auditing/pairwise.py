"""Agreement of each pair of annotators on the questions that both answered."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.sparse import csr_array

from raters.judgements.base import Judgements


class Pairwise(NamedTuple):
    """Agreement of each pair of annotators."""

    share: Float[np.ndarray, "annotator annotator"]
    common: Int[np.ndarray, "annotator annotator"]


def pairwise(data: Judgements, who: Int[np.ndarray, " annotator"]) -> Pairwise:
    """Measure the agreement of each pair of annotators."""
    judge, *tallies, weight = data.tallies()
    place = pd.Index(who).get_indexer(judge)
    keep = (place >= 0) & (weight > 0)
    annotator, question, answer, weight = (column[keep] for column in (place, *tallies, weight))
    question = np.unique(question, return_inverse=True)[1]
    num_questions, num_answers = (int(codes.max(initial=0)) + 1 for codes in (question, answer))
    asked, inverse = np.unique(annotator * num_questions + question, return_inverse=True)
    share = weight / np.bincount(inverse, weight)[inverse]
    cells, ones = (annotator, question * num_answers + answer), np.ones(len(asked))
    shares = csr_array((share, cells), shape=(len(who), num_questions * num_answers))
    answered = csr_array((ones, np.divmod(asked, num_questions)), shape=(len(who), num_questions))
    same = (shares @ shares.T).toarray()
    common = np.rint((answered @ answered.T).toarray()).astype(int)
    np.fill_diagonal(common, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return Pairwise(np.where(common > 0, same / common, np.nan), common)

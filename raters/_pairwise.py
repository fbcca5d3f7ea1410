"""How far two annotators agree on what both were asked."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from raters.data import Comparisons
from raters.labels import Labels


class Pairwise(NamedTuple):
    """Agreement of annotators with one another, and from how many questions it is.

    `share` is the probability that an answer of the one is that of the other, on average over the questions that both were
    asked; NaN where there is none, and on the diagonal. `common` is the number of those questions.
    """

    share: np.ndarray
    common: np.ndarray


class _Answers(NamedTuple):
    """One row for each answer: by whom, to which question, which of the answers, and how often."""

    annotator: np.ndarray
    question: np.ndarray
    answer: np.ndarray
    weight: np.ndarray


def pairwise(data: Comparisons | Labels, who: np.ndarray) -> Pairwise:
    """Agreement of the annotators with the codes `who`, in that order.

    A question is an item to label, or a pair of items in whatever order they were shown. Who answered one several times has
    a share in each answer; a tie is half an answer for each side.
    """
    place = np.full(data.num_annotators, -1)
    place[who] = np.arange(len(who))
    rows = _label_answers(data) if isinstance(data, Labels) else _votes(data)
    keep = (place[rows.annotator] >= 0) & (rows.weight > 0)
    annotator, question, answer, weight = (column[keep] for column in rows)
    annotator = place[annotator]
    questions, question = np.unique(question, return_inverse=True)
    number, size = len(questions), int(answer.max(initial=0)) + 1
    cell = annotator * number + question
    asked, inverse = np.unique(cell, return_inverse=True)
    share = weight / np.bincount(inverse, weight)[inverse] if len(cell) else weight
    given = csr_array((share, (annotator, question * size + answer)), shape=(len(who), number * size))
    seen = csr_array((np.ones(len(asked)), (asked // max(number, 1), asked % max(number, 1))), shape=(len(who), number))
    same, common = (given @ given.T).toarray(), np.rint((seen @ seen.T).toarray()).astype(int)
    np.fill_diagonal(common, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return Pairwise(np.where(common > 0, same / common, np.nan), common)


def _label_answers(labels: Labels) -> _Answers:
    annotator, item, label = (np.asarray(code, np.int64) for code in (labels.annotator, labels.item, labels.label))
    return _Answers(annotator, item, label, np.asarray(labels.weight, float))


def _votes(votes: Comparisons) -> _Answers:
    first, second, annotator = (np.asarray(code, np.int64) for code in (votes.first, votes.second, votes.annotator))
    wins = np.asarray(votes.wins, float)
    lost = (1.0 if votes.count is None else np.asarray(votes.count, float)) - wins
    pair = np.minimum(first, second) * votes.num_items + np.maximum(first, second)
    for_smaller = first < second
    answer = np.concatenate([np.where(for_smaller, 0, 1), np.where(for_smaller, 1, 0)])
    return _Answers(np.tile(annotator, 2), np.tile(pair, 2), answer, np.concatenate([wins, lost]))

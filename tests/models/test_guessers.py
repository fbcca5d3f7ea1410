"""Models of labels with types of annotators, against enumeration and against their own prior."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import betaln, gammaln, logsumexp
from scipy.stats import beta, lognorm

import raters as rt
from raters.auditing.annotator_types import type_probs

_COLUMNS = ("item", "annotator", "label")


def _labels(rows: list[tuple[int, int, int]], num_items: int, num_annotators: int) -> rt.Labels:
    table = dict(zip(_COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    names = {"items": range(num_items), "annotators": range(num_annotators), "classes": range(2)}
    return rt.Labels.from_frame(table, **{name: name for name in _COLUMNS}, **names)


def _dirichlet_multinomial(counts: np.ndarray, concentration: np.ndarray) -> np.ndarray:
    """Log-probability of a sequence with these counts, of the last axis."""
    total = concentration.sum(-1)
    after = counts + concentration
    return (
        gammaln(total)
        - gammaln(after.sum(-1))
        + (gammaln(after) - gammaln(concentration)).sum(-1)
    )


def _grid() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean competence, concentration and log-weight of each point of the prior's quadrature."""
    middle = (np.arange(60) + 0.5) / 60
    competence, level = (part.ravel() for part in np.meshgrid(middle, middle))
    return beta.ppf(competence, 2, 1), lognorm.ppf(level, 1, scale=10), np.zeros(competence.size)


def _one_coin_evidence(
    model: rt.GuesserOneCoin, right: np.ndarray, wrong: np.ndarray
) -> np.ndarray:
    """Log evidence of right and wrong labels under each type, shape (point, type)."""
    competence, concentration, _ = _grid()
    mean = np.stack([(1 + competence) / 2, np.full_like(competence, 0.5), (1 - competence) / 2])
    total = np.stack([concentration, np.full_like(competence, model.guess_labels), concentration])
    a, b = total * mean, total * (1 - mean)
    return (betaln(a + right, b + wrong) - betaln(a, b)).T


def _exact_one_coin(model: rt.GuesserOneCoin, labels: rt.Labels) -> np.ndarray:
    """P(type) of each annotator, by enumeration of classes and types and quadrature."""
    weight = np.array([model.competent, model.guesser, model.adversary])
    item, annotator, label = (np.asarray(getattr(labels, name)) for name in _COLUMNS)
    types = np.array(list(product(range(3), repeat=labels.num_annotators)))
    of_types = _dirichlet_multinomial((types[:, :, None] == np.arange(3)).sum(1), weight)
    total = np.full((len(types),), -np.inf)
    for classes in product(range(2), repeat=labels.num_items):
        shares = np.bincount(classes, minlength=2)
        prior = _dirichlet_multinomial(shares, np.full(2, model.prevalence))
        is_right = np.asarray(classes)[item] == label
        evidence = np.stack(
            [
                _one_coin_evidence(model, *(np.sum((annotator == a) & r) for r in (is_right, ~is_right)))
                for a in range(labels.num_annotators)
            ]
        )
        each = sum(evidence[a][:, types[:, a]] for a in range(labels.num_annotators))
        total = np.logaddexp(total, prior + of_types + logsumexp(each, axis=0) - np.log(len(each)))
    probs = np.exp(total - logsumexp(total))
    return np.stack(
        [[probs[types[:, a] == t].sum() for t in range(3)] for a in range(labels.num_annotators)]
    )

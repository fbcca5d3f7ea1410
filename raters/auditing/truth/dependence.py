r"""Dependence of labels of one item that can be seen, of all annotators and of groups of them.

What is seen is :math:`r_{ia}`, whether the label of annotator a is the likeliest class of item i,
less the annotator's chance :math:`p_{ia}` of that. With :math:`v_{ia} = p_{ia}(1 - p_{ia})`, sums
over pairs of labels of one item give the standard score

.. math::

    z = \frac{\sum r_{ia} r_{ib}}{\sqrt{\sum v_{ia} v_{ib}}},

which is about standard normal where labels are independent given the class. How often a crowd is
wrong together cannot be seen, but labels of crowds that are so depend on each other.

Two annotators are wrong together where their correlation over the items that both labelled,

.. math::

    \rho_{ab} = \frac{\sum_i r_{ia} r_{ib}}{\sqrt{\sum_i r_{ia}^2 \sum_i r_{ib}^2}},

is clearly above what each of them has with the others: by 0.3 above
:math:`\rho_{a \cdot} + \rho_{\cdot b} - \rho_{\cdot\cdot}`, with medians over the others, and by
more than one of all pairs would be, with probability 0.001, if products of r had the mean 0. Two
need some twenty mistakes that they share; a family of most annotators is not seen.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtri

from raters.judgements.labels import Labels

PerLabel = Float[np.ndarray, " label"]
ClassProbs = Float[np.ndarray, "item true_class"]

# Labels of the crowd that each annotator starts with.
_WEIGHT = 2.0
# Annotators with most labels among whom groups are looked for, and items that two need in common.
_ANNOTATORS, _ITEMS = 1000, 20
# Correlation above that of the others, and chance of finding one where there is none.
_CORRELATION, _CHANCE = 0.3, 1e-3


class Visible(NamedTuple):
    """Standard score of the dependence of labels of one item, and labels of an item."""

    score: float
    labels: float


def _surprises(labels: Labels, chances: ClassProbs) -> tuple[PerLabel, PerLabel]:
    """Excess of each label's agreement with the likeliest class over its chance, and the chance."""
    weight, likeliest = np.asarray(labels.weight, float), chances.argmax(1)[np.asarray(labels.item)]
    agrees, num_classes = np.asarray(labels.label) == likeliest, chances.shape[1]
    cell = np.asarray(labels.annotator, np.int64) * num_classes + likeliest
    size = labels.num_annotators * num_classes
    number, same = (np.bincount(cell, values, size) for values in (weight, weight * agrees))
    of_all = [values.reshape(-1, num_classes).sum(0) for values in (same, number)]
    pooled = np.tile((of_all[0] + 1) / (of_all[1] + 2), labels.num_annotators)
    chance = ((same + _WEIGHT * pooled) / (number + _WEIGHT))[cell]
    return agrees - chance, chance


def visible_dependence(labels: Labels, chances: ClassProbs) -> Visible:
    """Dependence of labels given the likeliest class of their item."""
    surprise, chance = _surprises(labels, chances)
    item, num_items = np.asarray(labels.item), len(chances)

    def over_pairs(values: PerLabel) -> float:
        total, squares = (np.bincount(item, part, num_items) for part in (values, values**2))
        return float((total**2 - squares).sum() / 2)

    score = over_pairs(surprise) / np.sqrt(max(over_pairs(chance * (1 - chance)), 1e-12))
    return Visible(float(score), len(item) / max(len(np.unique(item)), 1))


def alike(labels: Labels, chances: ClassProbs) -> list[Int[np.ndarray, " member"]]:
    """Groups of annotators who are wrong together, the largest first."""
    surprise, weight = _surprises(labels, chances)[0], np.asarray(labels.weight, float)
    cells = np.asarray(labels.annotator), np.asarray(labels.item)
    shape = labels.num_annotators, labels.num_items
    # Of an item that an annotator labelled several times, the mean counts.
    own, there = (csr_array((values, cells), shape) for values in (weight * surprise, weight))
    own.data, there.data = own.data / np.maximum(there.data, 1e-12), np.sign(there.data)
    who = np.sort(np.argsort(-there.sum(1), kind="stable")[:_ANNOTATORS])
    own, there, squares = own[who], there[who], own[who].power(2)
    product, spread, common, reach = (
        np.asarray((one @ other.T).toarray())
        for one, other in ((own, own), (squares, squares), (there, there), (squares, there))
    )
    scale, enough = np.sqrt(reach * reach.T), common >= _ITEMS
    np.fill_diagonal(enough, False)
    if not enough.any():
        return []
    correlation = pd.DataFrame(product / np.maximum(scale, 1e-12)).where(enough)
    each = correlation.median().fillna(0.0).to_numpy()
    usual = np.maximum(each[:, None] + each - np.median(each), 0.0)
    beyond = product - usual * scale
    limit = -ndtri(2 * _CHANCE / enough.sum())
    same = enough & (beyond > np.maximum(_CORRELATION * scale, limit * np.sqrt(spread)))
    _, group = connected_components(csr_array(same), directed=False)
    members = [who[group == code] for code in np.flatnonzero(np.bincount(group) > 1)]
    return sorted(members, key=len, reverse=True)

r"""Dependence of labels that can be seen without known classes.

With :math:`r_{ia}` whether the label of annotator a is the likeliest class of item i, less the
annotator's chance :math:`p_{ia}` of that, and :math:`v_{ia} = p_{ia}(1 - p_{ia})`, sums over pairs
of labels of one item give the standard score

.. math::

    z = \frac{\sum r_{ia} r_{ib}}{\sqrt{\sum v_{ia} v_{ib}}},

which is about standard normal where labels are independent given the class. How often a crowd is
wrong together cannot be seen, but labels of crowds that are so depend on each other
(``benchmarks/crowd_calibration.py``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from raters.judgements.labels import Labels

# Labels of the crowd that each annotator starts with.
_WEIGHT = 2.0


class Visible(NamedTuple):
    """Standard score of the dependence of labels of one item, and labels of an item."""

    score: float
    labels: float


def visible_dependence(labels: Labels, chances: Float[np.ndarray, "item true_class"]) -> Visible:
    """Dependence of labels given the likeliest class of their item."""
    item, weight = np.asarray(labels.item), np.asarray(labels.weight, float)
    likeliest = chances.argmax(1)[item]
    agrees = np.asarray(labels.label) == likeliest
    num_items, num_classes = chances.shape
    cell = np.asarray(labels.annotator, np.int64) * num_classes + likeliest
    size = labels.num_annotators * num_classes
    number, same = (np.bincount(cell, values, size) for values in (weight, weight * agrees))
    of_all = [values.reshape(-1, num_classes).sum(0) for values in (same, number)]
    pooled = np.tile((of_all[0] + 1) / (of_all[1] + 2), labels.num_annotators)
    chance = ((same + _WEIGHT * pooled) / (number + _WEIGHT))[cell]

    def over_pairs(values: Float[np.ndarray, " label"]) -> float:
        total, squares = (np.bincount(item, part, num_items) for part in (values, values**2))
        return float((total**2 - squares).sum() / 2)

    score = over_pairs(agrees - chance) / np.sqrt(max(over_pairs(chance * (1 - chance)), 1e-12))
    return Visible(float(score), len(item) / max(len(np.unique(item)), 1))

r"""Dependence of labels that can be seen without known classes.

With :math:`r_{ia}` whether the label of annotator a is the likeliest class of item i, less the
annotator's chance :math:`p_{ia}` of that, and :math:`v_{ia} = p_{ia}(1 - p_{ia})`, sums over pairs
of labels of one item give the mean correlation and its standard score,

.. math::

    c = \frac{\sum r_{ia} r_{ib}}{\sum \sqrt{v_{ia} v_{ib}}}, \qquad
    z = \frac{\sum r_{ia} r_{ib}}{\sqrt{\sum v_{ia} v_{ib}}},

both near 0 where labels are independent given the class. How often a crowd is wrong together cannot
be seen, but crowds in which it can hardly be seen that they agree together err less so
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
    """Mean correlation of two labels of one item, its standard score, and labels of an item."""

    correlation: float
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
    variance = chance * (1 - chance)

    def over_pairs(values: Float[np.ndarray, " label"]) -> float:
        total, squares = (np.bincount(item, part, num_items) for part in (values, values**2))
        return float((total**2 - squares).sum() / 2)

    together = over_pairs(agrees - chance)
    spread = over_pairs(np.sqrt(variance)), np.sqrt(max(over_pairs(variance), 0.0))
    per_item = len(item) / max(len(np.unique(item)), 1)
    if min(spread) <= 0:
        return Visible(0.0, 0.0, per_item)
    return Visible(together / spread[0], float(together / spread[1]), per_item)

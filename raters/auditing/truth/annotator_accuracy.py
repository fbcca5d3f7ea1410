r"""Accuracies of annotators where the truth is known of some items only.

On items whose class is not known an annotator has an accuracy against draws of the true classes,
which are the same for everybody: they give a poor annotator too much credit and a good one too
little. With x the log-odds of that accuracy under one draw, and x̄ those of the whole crowd,

.. math::

    \operatorname{logit} a_k = \bar x + \alpha + b (x_k - \bar x) + s z_k, \qquad
    z_k \sim \mathrm{Normal}(0, 1),

where the level α, the slope b and the spread s are unknown. Their prior is that of public crowds
with known classes (``benchmarks/annotator_intervals.py``); each annotator's labels of items of
known class, right :math:`y_k \sim \mathrm{Binomial}(n_k, a_k)`, update them and :math:`z_k`. Where
known classes show that agreement with the crowd says little, b becomes small and s large, and the
known classes decide.

Labels of one item tend to be right or wrong together, and so known items may be easier or harder
for everybody than the others. Their labels have :math:`\operatorname{logit} a_k + \eta`, with η
normal about 0; its variance is that of the mean over the known items of what items differ by, by
the analysis of variance.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float
from scipy.special import expit, log_expit, logit

from raters.auditing.truth import slice_sampling
from raters.judgements.counts import pad_to

PerAnnotator = Float[np.ndarray, " annotator"]
AnnotatorDraws = Float[np.ndarray, "draw annotator"]
OnDevice = Float[Array, " annotator"]
Relation = tuple[slice_sampling.PerPoint, ...]

# Prior, by benchmarks/annotator_intervals.py: mean and spread of the slope; the standard deviation
# of the level; the scale of the spread, which is above that of most crowds for the sake of one.
SLOPE, LEVEL, SPREAD = (1.3, 0.4), 0.2, 0.35
# Labels of the crowd's accuracy that each annotator starts with.
_WEIGHT = 2.0
# Nodes that z is summed over, and annotators that the level, slope and spread are learned from.
_NODES, _ANNOTATORS = 15, 500
_GRID = np.linspace(-4, 4, 41)


class Marks(NamedTuple):
    """Right and wrong answers, known and expected; `counted`: known without weights, if any."""

    right: PerAnnotator
    labels: PerAnnotator
    credit: AnnotatorDraws
    others: PerAnnotator
    luck: float = 0.0
    counted: tuple[PerAnnotator, PerAnnotator] | None = None

    @property
    def crowd(self) -> Float[np.ndarray, " draw"]:
        """Accuracy of the whole crowd on the items whose class is not known, shape (draw,)."""
        total = self.others.sum()
        if not total:
            share = (self.right.sum() + 1) / (self.labels.sum() + 2)
            return np.full(len(self.credit), share)
        return np.asarray(np.clip(self.credit.sum(1) / total, 1e-4, 1 - 1e-4))


def luck_of(right: Float[np.ndarray, " item"], labels: Float[np.ndarray, " item"]) -> float:
    """Standard deviation of the log-odds by which a sample of items is easier than all."""
    right, labels = right[labels > 0], labels[labels > 0]
    number, total = len(labels), labels.sum()
    if number < 2 or total <= number:
        return 0.0
    share, mean = right / labels, (right.sum() + 1) / (total + 2)
    between = (labels * (share - right.sum() / total) ** 2).sum() / (number - 1)
    within = (labels * share * (1 - share)).sum() / (total - number)
    typical = (total - (labels**2).sum() / total) / (number - 1)
    variance = max(0.0, between - within) / typical
    return float(np.sqrt(variance / number) / (mean * (1 - mean)))


def _relation(points: slice_sampling.Points, luck: float) -> Relation:
    """Level, slope, spread and luck at points whose coordinates are standard normal."""
    level, slope = LEVEL * points[:, 0], SLOPE[0] + SLOPE[1] * points[:, 1]
    return level, slope, SPREAD * np.abs(points[:, 2]), luck * points[:, 3]


def _draw_relation(
    marks: Marks, log_odds: PerAnnotator, middle: float, num_draws: int, rng: np.random.Generator
) -> Relation:
    """Draws of level, slope and spread, from the prior where no class is known."""
    seen = np.flatnonzero(marks.labels > 0)
    if not len(seen):
        return _relation(rng.standard_normal((num_draws, 4)), 0.0)
    if len(seen) > _ANNOTATORS:
        seen = np.sort(rng.choice(seen, _ANNOTATORS, replace=False))
    # Annotators that fill the arrays up keep the number of shapes that are compiled for small.
    more = pad_to(len(seen), least=16) - len(seen)
    right, labels, odds = (
        np.pad(values[seen], (0, more)) for values in (marks.right, marks.labels, log_odds - middle)
    )

    def log_likelihood(points: slice_sampling.Points) -> slice_sampling.PerPoint:
        values = _relation(points, marks.luck)
        return np.asarray(_log_likelihood(values, middle, odds, right, labels - right), float)

    return _relation(slice_sampling.sample(log_likelihood, 4, num_draws, rng), marks.luck)


@jax.jit
def _log_likelihood(
    relation: Relation, middle: float, odds: OnDevice, right: OnDevice, wrong: OnDevice
) -> Float[Array, " point"]:
    """Log-probability of right and wrong labels, with each annotator's z summed over nodes."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    level, slope, spread, luck = (values[:, None, None] for values in relation)
    logits = middle + level + luck + slope * odds[:, None] + spread * nodes
    # The log-probability of a wrong label is that of a right one less the log-odds.
    density = (right + wrong)[:, None] * jax.nn.log_sigmoid(logits) - wrong[:, None] * logits
    return jax.nn.logsumexp(density + np.log(weights / weights.sum()), -1).sum(-1)


class Accuracies(NamedTuple):
    """Draws of annotators' accuracies."""

    own: AnnotatorDraws
    ability: AnnotatorDraws


def draw_accuracies(marks: Marks, seed: int) -> Accuracies:
    """Draw the accuracies of annotators."""
    rng = np.random.default_rng(seed)
    num_draws, crowd = len(marks.credit), marks.crowd
    share = (marks.credit + _WEIGHT * crowd[:, None]) / (marks.others + _WEIGHT)
    odds = logit(np.clip(share, 1e-4, 1 - 1e-4))
    middle = float(logit(crowd).mean())
    relation = _draw_relation(marks, odds.mean(0), middle, num_draws, rng)
    level, slope, spread, luck = (values[:, None] for values in relation)
    of_crowd = logit(crowd)[:, None]
    logits = of_crowd + level + slope * (odds - of_crowd)
    own = _draw_own(logits + luck, spread, marks, rng)
    chance = expit(logits + spread * own)
    # Of labels of known class it is known which are right; of the others, a random number is.
    others = marks.others + _WEIGHT
    typical = expit(of_crowd + level)
    right = marks.others * chance + _WEIGHT * typical
    seen = rng.beta(np.maximum(right, 1e-3), np.maximum(others - right, 1e-3))
    ability = (others * seen + marks.labels * chance) / (others + marks.labels)
    known_right, known = marks.counted or (marks.right, marks.labels)
    number = known_right + rng.binomial(np.round(marks.others).astype(int), chance)
    total = known + marks.others
    return Accuracies(np.where(total > 0, number / np.maximum(total, 1), ability), ability)


def _draw_own(
    logits: AnnotatorDraws, spread: AnnotatorDraws, marks: Marks, rng: np.random.Generator
) -> AnnotatorDraws:
    """Draw each annotator's z: normal without labels of known class, otherwise from a grid."""
    drawn = rng.normal(size=logits.shape)
    seen = np.flatnonzero(marks.labels > 0)
    for place in range(len(logits)):
        on_grid = logits[place, seen, None] + spread[place] * _GRID
        density = marks.right[seen, None] * log_expit(on_grid)
        density += (marks.labels - marks.right)[seen, None] * log_expit(-on_grid)
        density += rng.gumbel(size=density.shape) - _GRID**2 / 2
        # Uniform within a step of the grid.
        step = (_GRID[1] - _GRID[0]) * (rng.random(len(seen)) - 0.5)
        drawn[place, seen] = _GRID[density.argmax(1)] + step
    return drawn

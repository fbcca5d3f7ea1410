r"""Probabilities of true classes that allow for mistakes that annotators make together.

A model that takes mistakes as independent multiplies the evidence of labels that repeat each other.
With R the model's class probabilities of item i, n its number of labels and v its votes,

.. math::

    S_{ik} \propto R_{ik}^{1 / (1 + (n_i - 1) \rho)}, \qquad
    M = (1 - \epsilon) S + \epsilon S C, \qquad
    V_{ik} \propto (v_{ik} + 0.37)^2, \qquad
    P_{ik} \propto ((1 - \lambda) M_{ik} + \lambda V_{ik}) \, e^{\delta_k + \gamma s_{ik}},

where ρ is the dependence of labels given the class (the design effect of survey statistics), ε the
share of items on which the whole crowd is wrong, C the distribution of the class that a class is
confused with, λ the share of belief in plain votes, and δ the tilt towards each class. In a crowd
whose mistakes are independent, as the model takes them, ρ = ε = λ = 0. What can be seen of a crowd
without known classes tells little of these unknowns; their prior is that of public crowds with
known classes (``benchmarks/crowd_calibration.py``), given what can be seen of the dependence of
labels, and known classes of a crowd update it.

With known classes annotators have effects of their own: :math:`s_{ik}` is the score of class k by
the effects of those who labelled the item, and γ its weight, half normal a priori. An item of known
class has a score that does not know its class, so that γ tells how far the effects hold for other
items. All these scores share the same known classes, which therefore count as 0.7 independent ones
each: of 1, 0.7 and 0.4 the one under which intervals held most nearly as stated on the crowds of
``benchmarks/gold.py``.

**Effects of annotators.** With :math:`o_{ik}` the log-probability of class k of item i by the crowd
alone and :math:`v_{iak}` the weight of annotator a's labels k of the item, the known classes have
the probabilities

.. math::

    P(t_i = k) \propto \exp\left(o_{ik} + \sum_a \beta_a v_{iak}\right), \qquad
    \beta_a \sim \mathrm{Normal}(0, \tau^2), \qquad \log \tau \sim \mathrm{Normal}(0, 1).

The effects are modes, and the scores :math:`\sum_a \beta_a v_{iak}` means over values of τ, each
weighted by its prior and by the leave-one-out probability of the known classes. Each known class
counts with a weight, 1 where all were drawn with one probability. Scores of an item of known class
do not use its own class: one step of Newton's method leads from the mode to the one without the
item (Rad and Maleki 2020, A scalable estimate of the out-of-sample prediction error via approximate
leave-one-out cross-validation).

**Dependence that can be seen**, of labels of one item. What is seen is :math:`r_{ia}`, whether the
label of annotator a is the likeliest class of item i, less the annotator's chance :math:`p_{ia}` of
that. With :math:`v_{ia} = p_{ia}(1 - p_{ia})`, sums over pairs of labels of one item give the
standard score

.. math::

    z = \frac{\sum r_{ia} r_{ib}}{\sqrt{\sum v_{ia} v_{ib}}},

which is about standard normal where labels are independent given the class. How often a crowd is
wrong together cannot be seen, but labels of crowds that are so depend on each other.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import expit, log_softmax, softmax

from raters.auditing.truth import slice_sampling
from raters.judgements.counts import pad_to
from raters.judgements.labels import Labels
from raters.model import Values

ClassProbs = Float[np.ndarray, "item true_class"]
Codes = Int[np.ndarray, " item"]
PerItem = Float[np.ndarray, " item"]
Weights = PerItem | int
Rng = np.random.Generator

# Vote shares in proportion to a power of smoothed counts; the constants of earlier work on four of
# the crowds.
_POWER, _SMOOTHING = 2.0, 0.37
# Degrees of freedom of log ρ and logit ε, and the range of log ρ.
FREEDOM, _FARTHEST = 6.0, (-12.0, 6.0)
# No class is impossible, so that one wrong known class does not decide everything; with effects,
# that share of known classes may be wrong.
_LEAST, _WRONG = 1e-6, 1e-3
# Independent items that each item of known class counts as, where scores share the known classes.
_SHARED = 0.7
# Items of known class that the unknowns and effects are learned from, and draws of the unknowns of
# which the crowd's probabilities are the mean.
_MOST_KNOWN, _CROWD_DRAWS = 2000, 100


class Evidence(NamedTuple):
    """Class probabilities and votes of some items, and their scores by effects of annotators."""

    log_chances: ClassProbs
    votes: ClassProbs
    confused: Float[np.ndarray, "true_class true_class"]
    scores: ClassProbs | None = None

    @classmethod
    def of(cls, chances: ClassProbs, votes: ClassProbs) -> Evidence:
        """Evidence of a model's class probabilities and the votes."""
        pairs = chances.T @ votes
        confused = (pairs + pairs.T + 1) * (1 - np.eye(len(pairs)))
        log_chances = np.log(np.maximum(chances, 1e-30))
        return cls(log_chances, votes, confused / confused.sum(1, keepdims=True))

    def at(self, items: Int[np.ndarray, " some"]) -> Evidence:
        """Evidence of some of the items."""
        of_items = self._replace(log_chances=self.log_chances[items], votes=self.votes[items])
        return of_items if self.scores is None else of_items._replace(scores=self.scores[items])


class Prior(NamedTuple):
    """Prior of the unknowns of a crowd."""

    dependence: tuple[float, float]
    shared: tuple[float, float]
    by_vote: tuple[float, float]
    tilt: float
    independent: float

    def given(self, seen: Visible) -> Prior:
        """Prior of a crowd of which so much dependence can be seen."""
        hidden = _HIDDEN[int(seen.labels >= _SEVERAL)]
        chance = np.exp(-(np.clip(seen.score, 0, _WIDEST) ** 2) / 2) / np.sqrt(2 * np.pi)
        odds = self.independent / (1 - self.independent)
        odds /= hidden + (1 - hidden) / _WIDEST / chance
        return self._replace(independent=float(odds / (1 + odds)))

    def unknowns(self, points: slice_sampling.Points, num_classes: int) -> Values:
        """Unknowns at points whose coordinates are standard normal; the last is that of scores."""
        import scipy.stats

        far = scipy.stats.t.ppf(scipy.stats.norm.cdf(points[:, :2]), FREEDOM)
        (centre, spread), (logit_centre, logit_spread) = self.dependence, self.shared
        together = scipy.stats.norm.cdf(points[:, 3]) >= self.independent
        by_vote = scipy.stats.beta.ppf(scipy.stats.norm.cdf(points[:, 2]), *self.by_vote)
        return {
            "dependence": together * np.exp(np.clip(centre + spread * far[:, 0], *_FARTHEST)),
            "shared": together * expit(logit_centre + logit_spread * far[:, 1]),
            "by_vote": together * by_vote,
            "tilt": self.tilt * points[:, 4 : 4 + num_classes],
            "weight": np.abs(points[:, 4 + num_classes :]).sum(1),
        }


# Dependence whose score is that of independent labels: the probability with fewer than four labels
# of an item, where it was so in two of two crowds, and with more, in none of thirteen, by the rule
# of succession. The scores of the others were below 60, most below 30, as if uniform.
_HIDDEN, _SEVERAL, _WIDEST = (3 / 4, 1 / 15), 4, 30
# Learned by benchmarks/crowd_calibration.py from all its crowds, but for the tilt, which was set
# beforehand, and the chance of independent mistakes: none of fourteen crowds showed them, and by
# the rule of succession the next one does with probability 1 / 16.
PRIOR = Prior((-1.56, 0.94), (-4.56, 1.27), (0.78, 2.18), 0.4, 1 / 16)


def true_class_probs(evidence: Evidence, unknowns: Values) -> Float[Array, "item true_class"]:
    """Probability of each class of each item under one draw of the unknowns."""
    number = jnp.maximum(evidence.votes.sum(-1, keepdims=True), 1.0)
    weight = 1 / (1 + (number - 1) * unknowns["dependence"])
    tempered = jax.nn.softmax(weight * evidence.log_chances, -1)
    mixed = tempered + unknowns["shared"] * (tempered @ evidence.confused - tempered)
    power = (evidence.votes + _SMOOTHING) ** _POWER
    by_vote = power / power.sum(-1, keepdims=True)
    mixed = mixed + unknowns["by_vote"] * (by_vote - mixed)
    tilted = mixed * jnp.exp(unknowns["tilt"]) + _LEAST
    probs: Array = tilted / tilted.sum(-1, keepdims=True)
    if evidence.scores is None:
        return probs
    scored = jax.nn.softmax(jnp.log(probs) + unknowns["weight"] * evidence.scores, -1)
    return (1 - _WRONG) * scored + _WRONG / scored.shape[-1]


def learn_unknowns(
    chances: ClassProbs, labels: Labels, truth: Codes, weights: PerItem, num_draws: int, rng: Rng
) -> tuple[Evidence, Values]:
    """Evidence with scores by annotators' effects, and draws of the unknowns."""
    evidence, num_classes = Evidence.of(chances, labels.votes()), labels.num_classes
    prior = PRIOR.given(visible_dependence(labels, evidence.log_chances))
    known = np.flatnonzero(truth >= 0)
    if len(known) > _MOST_KNOWN:
        known = np.sort(rng.choice(known, _MOST_KNOWN, replace=False))
    if len(known):
        points = rng.standard_normal((_CROWD_DRAWS, 4 + num_classes))
        places, is_real = _padded(len(known))
        probs = class_probs_of(evidence.at(known[places]), prior.unknowns(points, num_classes))
        log_chances = np.log(np.asarray(probs, float).mean(0)[is_real])
        item, weight = np.asarray(labels.item, np.int64), np.asarray(labels.weight, float)
        number = np.maximum(np.bincount(item, weight, labels.num_items), 1)
        # In units of independent labels.
        weight = weight / (1 + (number[item] - 1) * np.exp(PRIOR.dependence[0]))
        cells = item * num_classes + np.asarray(labels.label), np.asarray(labels.annotator)
        shape = labels.num_items * num_classes, labels.num_annotators
        votes = csr_array((weight, cells), shape)
        scores = class_scores(votes, log_chances, known, truth[known], weights[known])
        evidence = evidence._replace(scores=scores)
    at, weight = evidence.at(known), _SHARED * weights[known]
    return evidence, draw_unknowns(at, truth[known], num_draws, rng, weight, prior)


def _padded(number: int) -> tuple[Int[np.ndarray, " place"], Bool[np.ndarray, " place"]]:
    """Places of items, and of more that keep the number of compiled shapes small."""
    places = np.pad(np.arange(number), (0, pad_to(number, least=16) - number))
    return places, np.arange(len(places)) < number


def draw_unknowns(
    evidence: Evidence, truth: Codes, size: int, rng: Rng, weight: Weights = 1, prior: Prior = PRIOR
) -> Values:
    """Draw the unknowns given items of known class, each of which counts with its weight."""
    num_classes = evidence.votes.shape[-1]
    num_unknowns = 4 + num_classes + (evidence.scores is not None)
    if not len(truth):
        return prior.unknowns(rng.standard_normal((size, num_unknowns)), num_classes)
    places, is_real = _padded(len(truth))
    known = jax.tree.map(jnp.asarray, evidence.at(places))
    weight = is_real * np.broadcast_to(weight, len(truth))[places]

    def log_likelihood(points: slice_sampling.Points) -> slice_sampling.PerPoint:
        unknowns = prior.unknowns(points, num_classes)
        return np.asarray(_log_likelihood(known, unknowns, truth[places], weight), float)

    points = slice_sampling.sample(log_likelihood, num_unknowns, size, rng)
    return prior.unknowns(points, num_classes)


@jax.jit
def _log_likelihood(
    evidence: Evidence, unknowns: Values, truth: Int[Array, " item"], weight: Float[Array, " item"]
) -> Float[Array, " draw"]:
    """Log-probability of known classes under each draw of the unknowns."""

    def one(values: Values) -> Float[Array, ""]:
        probs = true_class_probs(evidence, values)
        return (weight * jnp.log(probs[jnp.arange(len(truth)), truth])).sum()

    return jax.lax.map(one, unknowns)


_probs = jax.jit(true_class_probs)


@jax.jit
def class_probs_of(evidence: Evidence, unknowns: Values) -> Float[Array, "draw item true_class"]:
    """Probability of each class of each item under each draw of the unknowns."""
    return jax.lax.map(lambda values: true_class_probs(evidence, values), unknowns)


def draw_true_classes(
    evidence: Evidence, unknowns: Values, truth: Codes, rng: Rng
) -> tuple[ClassProbs, ClassProbs, Int[np.ndarray, "draw item"]]:
    """Draw the true classes under each draw; and probabilities, of known items as if unknown."""
    given = jax.tree.map(jnp.asarray, evidence)
    num_draws, (num_items, num_classes) = len(unknowns["shared"]), evidence.votes.shape
    drawn = np.empty((num_draws, num_items), np.int8 if num_classes < 128 else np.int32)
    total = np.zeros((num_items, num_classes))
    for place in range(num_draws):
        probs = np.asarray(_probs(given, {name: value[place] for name, value in unknowns.items()}))
        total += probs
        ends = np.cumsum(probs, axis=1)
        drawn[place] = (ends[:, :-1] < rng.random((num_items, 1)) * ends[:, -1:]).sum(1)
    is_known = truth >= 0
    drawn[:, is_known] = truth[is_known]
    probability = np.where(is_known[:, None], np.eye(num_classes)[truth], total / num_draws)
    return probability, total[is_known] / num_draws, drawn


# ---------------------------------------------------------------- effects of annotators

Design = Float[np.ndarray, "known true_class annotator"]
Effects = Float[np.ndarray, " annotator"]

# Values of τ, and annotators with most answers on items of known class who have an effect.
_SCALES, _ANNOTATORS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0), 100


def class_scores(
    votes: csr_array, log_chances: ClassProbs, known: Codes, truth: Codes, weights: PerItem
) -> ClassProbs:
    """Scores of the classes of all items, of known ones without their own; rows of `votes` are
    pairs of an item and a class, columns annotators."""
    num_classes = log_chances.shape[1]
    rows = (known[:, None] * num_classes + np.arange(num_classes)).ravel()
    answers = (votes[rows] > 0).sum(0)
    who = np.sort(np.argsort(-answers, kind="stable")[:_ANNOTATORS])
    who = who[answers[who] > 0]
    if not len(who):
        return np.zeros((votes.shape[0] // num_classes, num_classes))
    design = votes[rows][:, who].toarray().reshape(len(known), num_classes, len(who))
    fits = [_fit(design, log_chances, truth, weights, scale) for scale in _SCALES]
    effects, left_out, log_probability = map(np.array, zip(*fits, strict=True))
    weight = softmax(log_probability - np.log(_SCALES) ** 2 / 2)
    scores: ClassProbs = (votes[:, who] @ (weight @ effects)).reshape(-1, num_classes)
    scores[known] = np.einsum("s,sik->ik", weight, left_out)
    return scores


def _fit(
    design: Design, log_chances: ClassProbs, truth: Codes, weights: PerItem, scale: float
) -> tuple[Effects, ClassProbs, float]:
    """Effects at their mode given τ, leave-one-out scores of known items, and their likelihood."""
    items, num_classes = np.arange(len(truth)), design.shape[1]
    ridge = np.eye(design.shape[2]) / scale**2

    def loss(effect: Effects) -> tuple[float, Effects]:
        log_probs = log_softmax(log_chances + design @ effect, axis=1)
        missing = np.exp(log_probs)
        missing[items, truth] -= 1
        gradient = np.einsum("i,ik,ika->a", weights, missing, design, optimize=True)
        fit = weights @ log_probs[items, truth]
        return effect @ ridge @ effect / 2 - fit, gradient + ridge @ effect

    def curvature(effect: Effects) -> Float[np.ndarray, "annotator annotator"]:
        probs = softmax(log_chances + design @ effect, axis=1)
        mean = np.einsum("i,ik,ika->ia", np.sqrt(weights), probs, design, optimize=True)
        spread = (design * np.sqrt(weights[:, None] * probs)[..., None]).reshape(-1, len(effect))
        return np.asarray(spread.T @ spread - mean.T @ mean + ridge)

    start = np.zeros(design.shape[2])
    effect = minimize(loss, start, jac=True, hess=curvature, method="trust-exact").x
    scores = design @ effect
    probs = softmax(log_chances + scores, axis=1)
    solved = np.linalg.solve(curvature(effect), design.reshape(-1, len(effect)).T)
    leverage = np.einsum("i,ika,ila->ikl", weights, design, solved.T.reshape(design.shape))
    # The curvature without an item, by the formula of Sherman, Morrison and Woodbury.
    within = (
        np.einsum("ik,kl->ikl", probs, np.eye(num_classes)) - probs[:, :, None] * probs[:, None]
    )
    missing = np.eye(num_classes)[truth] - probs
    left = np.linalg.solve(np.eye(num_classes) - leverage @ within, leverage)
    scores = scores - np.einsum("ikl,il->ik", left, missing)
    log_probs = log_softmax(log_chances + scores, axis=1)
    return effect, scores, float(weights @ log_probs[items, truth])


# ---------------------------------------------------------------- dependence that can be seen


# Labels of the crowd that each annotator starts with.
_WEIGHT = 2.0


class Visible(NamedTuple):
    """Standard score of the dependence of labels of one item, and labels of an item."""

    score: float
    labels: float


def visible_dependence(labels: Labels, chances: ClassProbs) -> Visible:
    """Dependence of labels given the likeliest class of their item."""
    weight, likeliest = np.asarray(labels.weight, float), chances.argmax(1)[np.asarray(labels.item)]
    agrees, num_classes = np.asarray(labels.label) == likeliest, chances.shape[1]
    cell = np.asarray(labels.annotator, np.int64) * num_classes + likeliest
    size = labels.num_annotators * num_classes
    number, same = (np.bincount(cell, values, size) for values in (weight, weight * agrees))
    of_all = [values.reshape(-1, num_classes).sum(0) for values in (same, number)]
    pooled = np.tile((of_all[0] + 1) / (of_all[1] + 2), labels.num_annotators)
    chance = ((same + _WEIGHT * pooled) / (number + _WEIGHT))[cell]
    # Excess of the agreement with the likeliest class over its chance.
    surprise = agrees - chance
    item, num_items = np.asarray(labels.item), len(chances)

    def over_pairs(values: Float[np.ndarray, " label"]) -> float:
        total, squares = (np.bincount(item, part, num_items) for part in (values, values**2))
        return float((total**2 - squares).sum() / 2)

    score = over_pairs(surprise) / np.sqrt(max(over_pairs(chance * (1 - chance)), 1e-12))
    return Visible(float(score), len(item) / max(len(np.unique(item)), 1))

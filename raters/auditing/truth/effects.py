r"""Effects of annotators on the log-odds of classes, learned from items of known class.

With :math:`o_{ik}` the log-probability of class k of item i by the crowd alone and :math:`v_{iak}`
the weight of annotator a's labels k of the item, the known classes have the probabilities

.. math::

    P(t_i = k) \propto \exp\left(o_{ik} + \sum_a \beta_a v_{iak}\right), \qquad
    \beta_a \sim \mathrm{Normal}(0, \tau^2), \qquad \log \tau \sim \mathrm{Normal}(0, 1).

The effects are modes, and the scores :math:`\sum_a \beta_a v_{iak}` means over values of τ, each
weighted by its prior and by the leave-one-out probability of the known classes. Each known class
counts with a weight, 1 where all were drawn with one probability. Scores of an item of known class
do not use its own class: one step of Newton's method leads from the mode to the one without the
item (Rad and Maleki 2020, A scalable estimate of the out-of-sample prediction error via approximate
leave-one-out cross-validation).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import log_softmax, softmax

ClassScores = Float[np.ndarray, "item true_class"]
Design = Float[np.ndarray, "known true_class annotator"]
Effects = Float[np.ndarray, " annotator"]
Codes = Int[np.ndarray, " known"]
Weights = Float[np.ndarray, " known"]

# Values of τ, and annotators with most answers on items of known class who have an effect.
_SCALES, _ANNOTATORS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0), 100


def class_scores(
    votes: csr_array, log_chances: ClassScores, known: Codes, truth: Codes, weights: Weights
) -> ClassScores:
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
    scores: ClassScores = (votes[:, who] @ (weight @ effects)).reshape(-1, num_classes)
    scores[known] = np.einsum("s,sik->ik", weight, left_out)
    return scores


def _fit(
    design: Design, log_chances: ClassScores, truth: Codes, weights: Weights, scale: float
) -> tuple[Effects, ClassScores, float]:
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

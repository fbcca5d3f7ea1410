"""Worlds of draws that differ in the names of the classes, and their words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

from raters.judgements.labels import Labels
from raters.model import OPEN_MIRROR
from raters.models.base import worded

# Class k of a world is class order[k] of the most probable one.
Order = tuple[int, ...]
ConfusionDraws = Float[np.ndarray, "chain draw annotator true_class label"]
Matrices = Float[np.ndarray, "annotator true_class label"]
Draws = Float[np.ndarray, "draw annotator true_class label"]
Weights = Float[np.ndarray, "draw annotator true_class 1"]

# Draws that are looked at together; gain of log-likelihood for each class from which another name
# counts, since those of classes with hardly an item may be any; least probability of a world that
# is counted.
_MOST_DRAWS, _LEAST_GAIN, _LEAST_SHARE = 1000, 1.5, 0.01
# Classes that a sentence names.
_MOST_NAMES = 6


def shares_of_names(
    confusion: ConfusionDraws, prevalence: ArrayLike | None, labels: ArrayLike
) -> dict[Order, float]:
    """Return the share of the draws in each world other than the most probable one."""
    number = confusion.shape[-1]
    draws = confusion.reshape(-1, *confusion.shape[2:])
    if not len(draws) or not np.isfinite(draws).all():
        return {}
    if prevalence is None:
        prevalence = np.full((len(draws), number), 1 / number)
    shares = np.reshape(prevalence, (-1, number))
    weight = np.reshape(labels, (-1, 1, 1)) * shares[:, None, :, None]
    reference = _mean_of_one_naming(draws, weight)

    def counted(reference: Matrices) -> Counter[Order]:
        orders: Counter[Order] = Counter()
        for first in range(0, len(draws), _MOST_DRAWS):
            part = slice(first, first + _MOST_DRAWS)
            expected = _expected(draws[part], weight[part])
            orders.update(map(tuple, _orders(expected, reference).tolist()))
        return orders

    usual = counted(reference).most_common(1)[0][0]
    orders = counted(reference[:, usual])
    del orders[tuple(range(number))]
    return {order: count / len(draws) for order, count in orders.most_common()}


def _mean_of_one_naming(draws: Draws, weight: Weights) -> Matrices:
    """Return the mean of the draws, each with its own names."""
    number = min(len(draws), _MOST_DRAWS)
    some = np.sort(np.random.default_rng(0).choice(len(draws), number, replace=False))
    draws, expected = draws[some], _expected(draws[some], weight[some])
    reference: Matrices = draws[0]
    for _ in range(2):
        orders = _orders(expected, reference)
        reference = np.mean(
            [draw[:, np.argsort(order)] for draw, order in zip(draws, orders, strict=True)], axis=0
        )
    return reference


def _expected(draws: Draws, weight: Weights) -> Float[np.ndarray, "draw true_class cell"]:
    """Return the labels of each class that each draw expects; a cell is a label by an annotator."""
    number, annotators, classes, labels = draws.shape
    expected = np.empty((number, classes, annotators, labels))
    np.multiply(draws, weight, out=expected.transpose(0, 2, 1, 3))
    return expected.reshape(number, classes, annotators * labels)


def _orders(
    expected: Float[np.ndarray, "draw true_class cell"], reference: Matrices
) -> Int[np.ndarray, "draw true_class"]:
    """Return the class of the reference that fits each class of each draw."""
    log_probability = np.log(np.maximum(reference, 1e-3))
    columns = log_probability.transpose(0, 2, 1).reshape(expected.shape[-1], -1)
    fit = expected @ columns
    fit += _LEAST_GAIN * np.eye(reference.shape[1])
    return np.array([linear_sum_assignment(table, maximize=True)[1] for table in fit])


def open_names(shares: Mapping[Order, float], data: Labels, whose: str = "") -> tuple[str, ...]:
    """Warn where labels leave open which class is which."""
    total = sum(shares.values())
    if total < OPEN_MIRROR:
        return ()
    first = max(shares, key=lambda order: shares[order])
    moved = [place for place, other in enumerate(first) if place != other]
    arrows = [f"{data.classes[place]}→{data.classes[first[place]]}" for place in moved]
    numbers = {
        "names": _short([repr(data.classes[place]) for place in moved]),
        "arrows": _short(arrows),
        "share": shares[first],
        "more": sum(share >= _LEAST_SHARE for share in shares.values()) - 1,
    }
    return (worded("open_names", whose=whose, total=total, **numbers),)


def _short(parts: list[str]) -> str:
    return ", ".join(parts[:_MOST_NAMES]) + (", …" if len(parts) > _MOST_NAMES else "")

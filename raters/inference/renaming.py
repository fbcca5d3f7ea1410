"""Orders of the classes in which mirrored worlds are looked for."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, permutations

import numpy as np
from jaxtyping import Float
from scipy.optimize import linear_sum_assignment

from raters.judgements.base import Judgements

Order = tuple[int, ...]

# Of up to so many classes all orders are tried (119 of five). Of more: exchanges of two, where
# there are up to so many (190 of 20 classes), the reversal, shifts, and what most annotators
# suggest.
_FEW_CLASSES, _MOST_PAIRS, _MOST_SUGGESTED = 5, 200, 50


def orders(data: Judgements, number: int) -> dict[Order, float]:
    """Orders of the classes other than their own, and the probability of trying each."""
    votes = suggested(data, number) if number > 2 else Counter()
    if number <= _FEW_CLASSES:
        every = list(permutations(range(number)))[1:]
    else:
        most = sorted(votes.items(), key=lambda entry: (-entry[1], entry[0]))[:_MOST_SUGGESTED]
        votes = dict(most)
        every = [*_usual(number), *votes]
    every = list(dict.fromkeys(each for order in every for each in (order, inverse(order))))
    total = sum(votes.values())
    return {
        order: (votes.get(order, 0) + votes.get(inverse(order), 0)) / (4 * total)
        + 1 / (2 * len(every))
        if total
        else 1 / len(every)
        for order in every
    }


def inverse(order: Order) -> Order:
    """Order that undoes another."""
    return tuple(np.argsort(order).tolist())


def suggested(data: Judgements, number: int) -> dict[Order, int]:
    """Orders of the classes under which annotators agree best with the others, and of how many."""
    if getattr(data, data.answer) is None:
        return {}
    found = Counter(
        # The classes by those of the others, of which each is called its column.
        inverse(tuple(linear_sum_assignment(counts, maximize=True)[1].tolist()))
        for counts in _against_others(data, number)
    )
    found.pop(tuple(range(number)), None)
    return dict(found)


def _against_others(
    data: Judgements, number: int
) -> Float[np.ndarray, "annotator true_class label"]:
    """Count each annotator's labels by the plurality of the other labels of the item."""
    unit, judge, label = (
        np.asarray(codes).astype(np.int64)
        for codes in (
            data.codes(data.unit),
            data.codes(str(data.judge)),
            getattr(data, data.answer),
        )
    )
    weight, rows = np.asarray(data.weight, float), np.arange(len(label))
    votes = np.bincount(unit * number + label, weight, len(data.coords[data.unit]) * number)
    others = votes.reshape(-1, number)[unit]
    others[rows, label] -= weight
    most = others.max(1, keepdims=True)
    plural = (others == most) & (most > 0)
    share = plural * (weight / np.maximum(plural.sum(1), 1))[:, None]
    judges = len(data.coords[str(data.judge)])
    counts = np.stack(
        [
            np.bincount(judge * number + label, of_class, judges * number).reshape(judges, number)
            for of_class in share.T
        ],
        axis=1,
    )
    # Classes that leave open what they are called keep their names.
    return counts + 1e-3 * np.eye(number)


def _usual(number: int) -> list[Order]:
    """Reversal, shifts and, of not too many classes, exchanges of two."""
    own = list(range(number))
    found = [tuple(own[::-1]), *(tuple(own[by:] + own[:by]) for by in range(1, number))]
    pairs = list(combinations(own, 2))
    for one, other in pairs if len(pairs) <= _MOST_PAIRS else ():
        order = own.copy()
        order[one], order[other] = other, one
        found.append(tuple(order))
    return found

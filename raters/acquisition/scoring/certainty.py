"""Certainty of an order: of all of it, of the best items, or of its pairs.

A share of draws resolves no more than one draw: when all of n draws agree, the probability of an
error is of the order of 1/n.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from raters.errors import SettingError
from raters.errors.validation import at_most, checked, numbers, one_of, whole

# With more pairs of items than this a random sample of so many stands for all.
_MOST_PAIRS = 2_000_000
# Numbers held at a time.
_NUMBERS = 1 << 22

Of = Literal["mean", "most_probable"]


class Certainty(NamedTuple):
    """Estimate of an order or a set, and the posterior probability that it is right."""

    probability: float
    estimate: Int[np.ndarray, " place"]


@checked
def probability_of_order(reward: Any, weight: Any = None, *, of: Of = "mean") -> Certainty:
    """Posterior probability that the estimated order of all items is right.

    With many items this is 0 in any number of draws, as each draw has some neighbours in the wrong
    order; see `expected_share_of_right_pairs` and `probability_of_top`.

    Parameters
    ----------
    reward : array, shape (..., item)
        Draws.
    weight : array, shape (...), optional
        Of each draw; equal by default.
    of : {"mean", "most_probable"}
        The order of posterior means, or the order that most draws have.

    Returns
    -------
    Certainty
        ``probability``, a multiple of 1 / number of draws, and ``estimate``, the codes of the
        items, best first.

    Raises
    ------
    SettingError
        When the draws or their weights have another shape.

    Examples
    --------
    >>> from raters.acquisition import probability_of_order
    >>> draws = [[2.0, 1.0, 0.0], [1.0, 0.9, 0.0], [0.0, 0.1, -1.0], [3.0, 1.0, 2.0]]
    >>> probability, order = probability_of_order(draws)
    >>> probability, order.tolist()
    (0.5, [0, 1, 2])
    """
    reward, weight = _flat(reward, weight)
    return _certainty(_order(reward), _order(weight @ reward), weight, of)


@checked
def probability_of_top(reward: Any, weight: Any = None, *, k: int, of: Of = "mean") -> Certainty:
    """Posterior probability that the estimated k best items are the k best, in any order.

    Parameters
    ----------
    reward : array, shape (..., item)
        Draws.
    weight : array, shape (...), optional
        Of each draw; equal by default.
    k : int
    of : {"mean", "most_probable"}
        The k items of the highest posterior means, or the set that most draws have.

    Returns
    -------
    Certainty
        ``probability``, a multiple of 1 / number of draws, and ``estimate``, the codes of the k
        items, ascending.

    Raises
    ------
    SettingError
        When there are fewer items, or the draws or their weights have another shape.

    Examples
    --------
    >>> from raters.acquisition import probability_of_top
    >>> draws = [[2.0, 1.0, 0.0], [1.0, 0.9, 0.0], [0.0, 0.1, -1.0], [3.0, 1.0, 2.0]]
    >>> probability, best = probability_of_top(draws, k=2)
    >>> probability, best.tolist()
    (0.75, [0, 1])
    """
    reward, weight = _flat(reward, weight)
    whole("k", k)
    at_most("k", k, reward.shape[1], "items")
    best, estimate = (np.sort(_order(values)[..., :k], -1) for values in (reward, weight @ reward))
    return _certainty(best, estimate, weight, of)


@checked
def expected_share_of_right_pairs(reward: Any, weight: Any = None, *, seed: int = 0) -> float:
    r"""Expected share of all pairs that the order of posterior means has in the right order.

    With s this share, the expected Kendall's τ between the estimated order and the true one is
    :math:`2s - 1`. A pair of equal means counts as half right. Of more than 2,000 items a random
    sample of two million pairs is used.

    Parameters
    ----------
    reward : array, shape (..., item)
        Draws.
    weight : array, shape (...), optional
        Of each draw; equal by default.
    seed : int
        For the sample.

    Returns
    -------
    float

    Raises
    ------
    SettingError
        When there are fewer than two items, or the draws or their weights have another shape.

    Examples
    --------
    >>> from raters.acquisition import expected_share_of_right_pairs
    >>> draws = [[2.0, 1.0, 0.0], [1.0, 0.9, 0.0], [0.0, 0.1, -1.0], [3.0, 1.0, 2.0]]
    >>> expected_share_of_right_pairs(draws)        # 10 of 12
    0.833
    """
    reward, weight = _flat(reward, weight)
    mean, num_items = weight @ reward, reward.shape[1]
    if num_items < 2:
        raise SettingError(
            parameter="reward", problem="holds one item", expected="an order needs two items"
        )
    if num_items * (num_items - 1) // 2 <= _MOST_PAIRS:
        first, second = np.triu_indices(num_items, 1)
    else:
        rng = np.random.default_rng(seed)
        first = rng.integers(num_items, size=_MOST_PAIRS)
        second = (first + rng.integers(1, num_items, size=_MOST_PAIRS)) % num_items
    columns, total = np.ascontiguousarray(reward.T), 0.0
    rows = max(1, _NUMBERS // len(weight))
    for begin in range(0, len(first), rows):
        one, other = first[begin : begin + rows], second[begin : begin + rows]
        # P(first better) − P(second better)
        agreement = np.sign(columns[one] - columns[other]) @ weight
        total += float((np.sign(mean[one] - mean[other]) * agreement).sum())
    return (1 + total / len(first)) / 2


def _flat(
    reward: Any, weight: Any
) -> tuple[Float[np.ndarray, "draw item"], Float[np.ndarray, " draw"]]:
    """Draws of shape (draw, item) in float64, and weights of shape (draw,) that sum to 1."""
    reward = numbers("reward", reward)
    if reward.ndim < 2 or reward.size == 0:
        raise SettingError(
            parameter="reward",
            problem=f"has shape {reward.shape}",
            expected="draws have shape (draw, item) or (chain, draw, item)",
        )
    flat = reward.reshape(-1, reward.shape[-1])
    if weight is None:
        return flat, np.full(len(flat), 1 / len(flat))
    weight = numbers("weight", weight)
    if (
        weight.shape != reward.shape[:-1]
        or not (weight >= 0).all()
        or not 0 < weight.sum() < np.inf
    ):
        raise SettingError(
            parameter="weight",
            problem=f"has shape {weight.shape}, and the draws {reward.shape}",
            expected="give each draw a weight of at least 0, not all 0",
        )
    return flat, weight.ravel() / weight.sum()


def _order(values: Float[np.ndarray, "... item"]) -> Int[np.ndarray, "... item"]:
    """Items, best first."""
    return np.argsort(-values, axis=-1, kind="stable")


def _certainty(
    drawn: Int[np.ndarray, "draw place"],
    estimate: Int[np.ndarray, " place"],
    weight: Float[np.ndarray, " draw"],
    of: Of,
) -> Certainty:
    """Share of the draws, one row each, that equal the estimate."""
    one_of("of", of, ("mean", "most_probable"))
    if of == "most_probable":
        distinct, which = np.unique(drawn, axis=0, return_inverse=True)
        estimate = distinct[np.bincount(which.ravel(), weight).argmax()]
    return Certainty(float(weight[(drawn == estimate).all(1)].sum()), estimate)

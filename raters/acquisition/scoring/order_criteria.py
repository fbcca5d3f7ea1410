"""Criteria about the order of items, or the best of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from raters.acquisition.scoring import scores
from raters.acquisition.scoring.criteria import Criterion, Scorer, against, flat_weight, rewards
from raters.acquisition.scoring.posterior import Posterior
from raters.acquisition.scoring.variance_criteria import OfVariance
from raters.errors import SettingError
from raters.errors.validation import whole

# With more items, the order of a random sample of their pairs stands for that of all.
_MOST_PAIRS = 500


@dataclass(frozen=True)
class OrderEntropy(Criterion):
    """Uncertainty of the order of the two items: see `scores.order_entropy`. It does not depend on
    the annotator.

    Parameters
    ----------
    draws : int
        Size of the committee of draws, which is chosen anew each time.
    """

    draws: int = 10

    def __post_init__(self) -> None:
        whole("draws", self.draws, least=2)

    def reader(self, posterior: Posterior, questions: Any, rng: np.random.Generator) -> Scorer:
        """Read the rewards: see `Criterion.reader`."""
        reward = _one_order(posterior, questions, self)
        flat = reward.reshape(-1, *reward.shape[2:])
        committee = jnp.asarray(flat[rng.choice(len(flat), self.draws, p=flat_weight(posterior))])[
            None
        ]

        def score(piece: Any) -> Any:
            first, second = _sides(piece)
            difference = committee[:, :, first] - committee[:, :, second]
            entropy = scores.order_entropy(difference)
            # Ten draws give many equal scores; without noise the same items would come first each
            # time.
            return np.asarray(entropy) + 1e-6 * rng.random(len(entropy))

        return score


@dataclass(frozen=True)
class OrderInformation(Criterion):
    """Information about the order of each pair of items, summed over pairs: see
    `scores.event_information`.

    Of more than 500 pairs a random sample of 500 is used.
    """

    def reader(self, posterior: Posterior, questions: Any, rng: np.random.Generator) -> Scorer:
        """Read the rewards: see `Criterion.reader`."""
        reward = _one_order(posterior, questions, self)
        first, second = np.triu_indices(reward.shape[2], 1)
        if len(first) > _MOST_PAIRS:
            rows = rng.choice(len(first), _MOST_PAIRS, replace=False)
            first, second = first[rows], second[rows]
        events = reward[:, :, first] > reward[:, :, second]

        return lambda piece: against(
            scores.event_information, posterior.answer_probs(piece), events
        )


@dataclass(frozen=True)
class OrderVariance(OfVariance):
    """Expected reduction of the variance of the order of the two items by an answer about them,
    summed over types where there are several: see `scores.order_variance_reduction`."""

    def quantity(
        self, posterior: Posterior, questions: Any
    ) -> Float[np.ndarray, "draw type question"]:
        """1 where the first item is the better, and 0 elsewhere."""
        check_pairs(questions, self)
        reward = np.asarray(rewards(posterior), np.float32)
        num_items, num_types = reward.shape[2], int(np.prod(reward.shape[3:]))
        by_type = reward.reshape(-1, num_items, num_types).transpose(0, 2, 1)
        first, second = _sides(questions)
        better: np.ndarray = by_type[:, :, first] > by_type[:, :, second]
        return better.astype(np.float32)

    def reader(self, posterior: Posterior, questions: Any, rng: np.random.Generator) -> Scorer:
        """Read the rewards: see `Criterion.reader`."""
        reward = rewards(posterior)
        check_pairs(questions, self)
        by_type = reward.reshape(*reward.shape[:3], -1)

        def score(piece: Any) -> Any:
            probs = posterior.answer_probs(piece)
            first, second = _sides(piece)
            difference = by_type[:, :, first] - by_type[:, :, second]
            return sum(
                scores.order_variance_reduction(probs.table, difference[..., column], probs.weight)
                for column in range(difference.shape[-1])
            )

        return score


@dataclass(frozen=True)
class ExpectedImprovement(Criterion):
    """Expected improvement on the best item, to find it: see `scores.expected_improvement`. It does
    not depend on the annotator."""

    def reader(self, posterior: Posterior, questions: Any, rng: np.random.Generator) -> Scorer:
        """Read the rewards: see `Criterion.reader`."""
        reward, weight = _one_order(posterior, questions, self), jnp.asarray(posterior.weight)
        best = reward[:, :, jnp.tensordot(weight, reward, 2).argmax()]

        def score(piece: Any) -> Any:
            first, second = (reward[:, :, side] for side in _sides(piece))
            return scores.expected_improvement(first, second, best, weight)

        return score


@dataclass(frozen=True)
class Thompson(Criterion):
    """Double Thompson sampling, to find the best item: the two items that independent draws call
    the best (Wu and Liu 2016).

    The score is the logarithm of that probability plus Gumbel noise, so that the highest scores are
    a sample without replacement.
    """

    def reader(self, posterior: Posterior, questions: Any, rng: np.random.Generator) -> Scorer:
        """Read the rewards: see `Criterion.reader`."""
        reward = _one_order(posterior, questions, self)
        p_best = np.bincount(
            np.asarray(reward.argmax(2)).ravel(), flat_weight(posterior), reward.shape[2]
        )

        def score(piece: Any) -> Any:
            first, second = (p_best[side] for side in _sides(piece))
            return np.log(np.maximum(2 * first * second, 1e-12)) + rng.gumbel(size=len(first))

        return score


def check_pairs(questions: Any, criterion: Criterion) -> None:
    """Raise unless the questions compare two items."""
    if questions.pair is None:
        raise SettingError(
            f"{criterion!r} is about the order of two items, and these questions are"
            f" {type(questions).__name__}; write target='everything'",
            parameter="target",
            problem=(
                "is about the order of two items, and these questions are"
                f" {type(questions).__name__}"
            ),
            expected="choose another, such as 'everything'",
        )


def _sides(piece: Any) -> tuple[Int[np.ndarray, " question"], Int[np.ndarray, " question"]]:
    """Codes of the two items of each question."""
    first, second = (np.asarray(getattr(piece, side)) for side in piece.pair)
    return first, second


def _one_order(
    posterior: Posterior, questions: Any, criterion: Criterion
) -> Float[Array, "chain draw item"]:
    """Rewards of the items, shape (chain, draw, item); `SettingError` where there are those of
    several types, or the questions do not compare two items."""
    reward = rewards(posterior)
    check_pairs(questions, criterion)
    if reward.ndim > 3:
        raise SettingError(
            f"{criterion!r} needs one order of the items, and {type(posterior.model).__name__} has"
            " one for each type; write target='ranking'",
            parameter="target",
            problem=(
                f"needs one order of the items, and {type(posterior.model).__name__} has one for"
                " each type"
            ),
            expected="choose another, such as 'ranking'",
        )
    return reward

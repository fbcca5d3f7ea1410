"""Criteria that are the expected reduction of a posterior variance."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any, Literal, get_args

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from raters.acquisition.scoring import scores
from raters.acquisition.scoring.criteria import Criterion, Scorer, competence_site, rewards
from raters.acquisition.scoring.posterior import Posterior
from raters.errors import SettingError
from raters.errors.validation import one_of, whole
from raters.model import Scale


@dataclass(frozen=True)
class OfVariance(Criterion):
    """Criteria that are the expected reduction of the variance of some quantities."""

    @abc.abstractmethod
    def quantity(
        self, posterior: Posterior, questions: Any
    ) -> Float[np.ndarray, "draw quantity 1"] | Float[np.ndarray, "draw quantity question"]:
        """Quantities whose variance is reduced, under each draw.

        Parameters
        ----------
        posterior : Posterior
        questions : Judgements

        Returns
        -------
        array, shape (draw, quantity, question) or (draw, quantity, 1)
            The latter where they are the same for all questions.
        """


Quantity = Literal["rank", "reward", "competence", "coefficient", "top_k"]


@dataclass(frozen=True)
class VarianceReduction(OfVariance):
    r"""Expected reduction of the posterior variance of some quantities by an answer: see
    `scores.variance_reduction`.

    Parameters
    ----------
    of : {"rank", "reward", "competence", "coefficient", "top_k"}
        The rank of each item, its reward, the competence (or confusion matrix) of each annotator,
        the coefficient of each feature, on a scale that does not depend on the priors, or
        membership of each item in the `k` best.
    k : int
        Number of best items, with ``of="top_k"``.
    """

    of: Quantity = "rank"
    k: int = 1

    def __post_init__(self) -> None:
        one_of("of", self.of, get_args(Quantity))
        whole("k", self.k)

    def reader(self, posterior: Posterior, questions: Any, rng: np.random.Generator) -> Scorer:
        """Read the quantities: see `Criterion.reader`."""
        quantity = self._by_draw(posterior)

        def score(piece: Any) -> Any:
            probs = posterior.answer_probs(piece)
            return scores.variance_reduction(probs.table, quantity, probs.weight)

        return score

    def quantity(
        self, posterior: Posterior, questions: Any
    ) -> Float[np.ndarray, "draw quantity 1"]:
        """Quantities under each draw."""
        quantity = self._by_draw(posterior)
        return np.asarray(quantity, np.float32).reshape(-1, quantity.shape[-1], 1)

    def _by_draw(self, posterior: Posterior) -> Float[Array, "chain draw quantity"]:
        """Quantities under each draw, shape (chain, draw, quantity)."""
        if self.of == "competence":
            of = posterior.site(
                competence_site(posterior), "so nothing is to be learned of annotators"
            )
            return of.reshape(*of.shape[:2], -1)
        if self.of == "coefficient":
            return _coefficients(posterior)
        reward = rewards(posterior)
        if self.of == "reward":
            return (reward - reward.mean(2, keepdims=True)).reshape(*reward.shape[:2], -1)
        if self.of == "top_k" and self.k >= reward.shape[2]:
            raise SettingError(
                parameter="k",
                value=self.k,
                problem=f"is not possible with {reward.shape[2]} items",
                expected="it must be less than that",
            )
        rank = reward.argsort(2).argsort(2).reshape(*reward.shape[:2], -1)
        return (rank if self.of == "rank" else rank >= reward.shape[2] - self.k).astype(jnp.float32)


def _coefficients(posterior: Posterior) -> Float[Array, "chain draw quantity"]:
    """Coefficients, times the mean size of what a scale symmetry divides them by."""
    own = posterior.site("coefficient", "so nothing is to be learned of features")
    flat = own.reshape(*own.shape[:2], -1)
    for symmetry in posterior.model.symmetries:
        if isinstance(symmetry, Scale) and "coefficient" in symmetry.up:
            for name in symmetry.down:
                other = jnp.asarray(posterior.draws[name])
                flat = flat * jnp.abs(other.reshape(*other.shape[:2], -1)).mean(-1, keepdims=True)
    return flat


@dataclass(frozen=True)
class TruthVariance(Criterion):
    """Expected reduction of the posterior variance (the Gini index) of an item's true class by a
    label; class probabilities allow for mistakes that the crowd makes together."""

    def reader(self, posterior: Posterior, questions: Any, rng: np.random.Generator) -> Scorer:
        """Read the probabilities by class: see `Criterion.reader`."""
        if not posterior.has_truth:
            raise SettingError(
                parameter="target",
                value="truth",
                problem=f"needs true classes, and {type(posterior.model).__name__} has none",
                expected="choose another, such as 'everything'",
            )

        def score(piece: Any) -> Any:
            probs = posterior.answer_probs(piece, by_class=True, calibrated=True)
            return scores.class_variance_reduction(probs.table, probs.weight, probs.table.shape[2])

        return score

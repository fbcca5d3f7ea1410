"""Batches: the choice of several questions together, given the score of each."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from raters.acquisition.policy.choosers import Chooser, FrankWolfe, InTurn, JointInformation, Tree
from raters.acquisition.scoring.criteria import Criterion
from raters.acquisition.scoring.posterior import Posterior
from raters.acquisition.scoring.variance_criteria import OfVariance
from raters.errors import SettingError
from raters.errors.validation import boolean, positive, whole


@dataclass(frozen=True)
class Batch(abc.ABC):
    """Rule for the composition of a batch: a frozen dataclass that writes `chooser`."""

    @abc.abstractmethod
    def chooser(
        self,
        criterion: Criterion,
        score: Float[np.ndarray, " question"],
        posterior: Posterior,
        questions: Any,
        rng: np.random.Generator,
    ) -> Chooser:
        """Return the object that chooses among the questions.

        Parameters
        ----------
        criterion : Criterion
        score : array, shape (question,)
            Score of each question by the criterion, divided by its cost.
        posterior : Posterior
        questions : Judgements
            Questions in the codes of ``posterior.data``.
        rng : numpy.random.Generator

        Returns
        -------
        Chooser

        Raises
        ------
        SettingError
            When the rule has no meaning for the criterion, the model or the questions.
        """


@dataclass(frozen=True)
class Top(Batch):
    """Highest scores. A pair, or an item to label, may come more than once, put to several
    annotators."""

    def chooser(
        self,
        criterion: Criterion,
        score: Float[np.ndarray, " question"],
        posterior: Posterior,
        questions: Any,
        rng: np.random.Generator,
    ) -> Chooser:
        """Choose by score alone: see `Batch.chooser`."""
        return Chooser(score)


@dataclass(frozen=True)
class Unique(Batch):
    """Highest scores, each pair (or item to label) once."""

    def chooser(
        self,
        criterion: Criterion,
        score: Float[np.ndarray, " question"],
        posterior: Posterior,
        questions: Any,
        rng: np.random.Generator,
    ) -> Chooser:
        """Choose by score, each pair once: see `Batch.chooser`."""
        return Chooser(score, questions.about())


@dataclass(frozen=True)
class Power(Batch):
    r"""Stochastic batches: each pair (or item) once, drawn without replacement with probability
    proportional to
    :math:`\mathrm{score}^{\alpha}` (Kirsch et al. 2023, Stochastic Batch Acquisition, TMLR).

    Parameters
    ----------
    exponent : float
        α; 1 draws in proportion to the scores, and large values come close to `Unique`.
    """

    exponent: float = 1.0

    def __post_init__(self) -> None:
        positive("exponent", self.exponent)

    def chooser(
        self,
        criterion: Criterion,
        score: Float[np.ndarray, " question"],
        posterior: Posterior,
        questions: Any,
        rng: np.random.Generator,
    ) -> Chooser:
        """Choose by score and Gumbel noise: see `Batch.chooser`."""
        if (score < 0).any():
            raise SettingError(
                parameter="batch",
                value=self,
                problem="needs scores of at least 0, and this criterion gives negative ones",
                expected="choose a batch rule for any score",
                instead="batch=rt.acquisition.Unique()",
            )
        noisy = self.exponent * np.log(np.maximum(score, 1e-30)) + rng.gumbel(size=len(score))
        return Chooser(noisy, questions.about())


@dataclass(frozen=True)
class SpanningTree(Batch):
    """Pairs that close no cycle, best score first, so that a batch connects as many items as
    possible. When a tree spans all items, the next one begins (Mikhailiuk et al. 2020, ASAP)."""

    def chooser(
        self,
        criterion: Criterion,
        score: Float[np.ndarray, " question"],
        posterior: Posterior,
        questions: Any,
        rng: np.random.Generator,
    ) -> Chooser:
        """Choose by score, without cycles: see `Batch.chooser`."""
        if questions.pair is None:
            raise SettingError(
                parameter="batch",
                value=self,
                problem=(
                    "connects items by comparisons, and these questions are"
                    f" {type(questions).__name__}"
                ),
                expected="choose a batch rule for any question",
                instead="batch=rt.acquisition.Unique()",
            )
        return Tree(score, questions)


@dataclass(frozen=True)
class Sequential(Batch):
    r"""Greedy choice by the expected reduction of a variance, given the answers to the questions
    chosen before, whatever they will be.

    It needs a criterion that is an expected reduction of a variance. The answers y to the batch so
    far leave of a quantity q the variance around its best linear predictor: covariances with the
    next answer become
    :math:`\mathrm{Cov}(p, q) - \mathrm{Cov}(p, y)\,\mathrm{Cov}(y, y)^{-1}\,\mathrm{Cov}(y, q)`.
    Only the 20,000 candidates of highest score are considered.

    Parameters
    ----------
    once : bool
        Whether each pair comes once in a batch.
    """

    once: bool = True

    def __post_init__(self) -> None:
        boolean("once", self.once)

    def chooser(
        self,
        criterion: Criterion,
        score: Float[np.ndarray, " question"],
        posterior: Posterior,
        questions: Any,
        rng: np.random.Generator,
    ) -> Chooser:
        """Choose by the conditional covariances: see `Batch.chooser`."""
        if not isinstance(criterion, OfVariance) or questions.pair is None:
            raise SettingError(
                parameter="batch",
                value=self,
                problem=(
                    "needs comparisons and the score of a variance, such as OrderVariance or"
                    f" VarianceReduction, not {criterion!r}"
                ),
                expected="choose a batch rule for any score",
                instead="batch=rt.acquisition.Unique()",
            )
        without_types(posterior, self)
        return InTurn(criterion, score, posterior, questions, self.once)


@dataclass(frozen=True)
class BatchBald(Batch):
    r"""Greedy BatchBALD: each next question has the answer with most information beyond the answers
    to those chosen before.

    .. math:: I(y_1, \dots, y_B; \theta)
              = \sum_b \bigl[H(y_b \mid y_1, \dots, y_{b-1})
              - \mathbb{E}_\theta\, H(y_b \mid \theta)\bigr]

    The information is exact while the answers to the batch have at most `configurations`
    configurations, and beyond that estimated from as many random ones. Only the 20,000 candidates
    of highest score are considered. Each item is labelled once in a batch, and models of types are
    refused: answers that share a class which the likelihood sums out are not independent given a
    draw.

    Parameters
    ----------
    configurations : int

    References
    ----------
    Kirsch, van Amersfoort and Gal (2019), NeurIPS, arXiv:1906.08158.
    """

    configurations: int = 1024

    def __post_init__(self) -> None:
        whole("configurations", self.configurations, least=2)

    def chooser(
        self,
        criterion: Criterion,
        score: Float[np.ndarray, " question"],
        posterior: Posterior,
        questions: Any,
        rng: np.random.Generator,
    ) -> Chooser:
        """Choose by joint information: see `Batch.chooser`."""
        without_types(posterior, self)
        return JointInformation(score, posterior, questions, self.configurations, rng)


@dataclass(frozen=True)
class SparseSubset(Batch):
    r"""Batch whose expected log-likelihood is near that of all candidates together (Frank–Wolfe;
    Pinsler et al. 2019).

    Each question is a vector: its expected log-likelihood under every draw, centred. Steps of the
    Frank–Wolfe algorithm move a sparse weighted sum of questions towards the sum of all; a question
    enters the batch at the first step towards it. Scores only shorten the list to 20,000
    candidates.

    References
    ----------
    Pinsler, Gordon, Nalisnick and Hernández-Lobato (2019), NeurIPS, arXiv:1908.02144.
    """

    def chooser(
        self,
        criterion: Criterion,
        score: Float[np.ndarray, " question"],
        posterior: Posterior,
        questions: Any,
        rng: np.random.Generator,
    ) -> Chooser:
        """Choose by Frank–Wolfe steps: see `Batch.chooser`."""
        return FrankWolfe(score, posterior, questions)


def without_types(posterior: Posterior, batch: Batch) -> None:
    """Raise `SettingError` for models whose annotators are of types: two answers of one annotator
    depend on the same type."""
    if posterior.program.latent is not None and not posterior.has_truth:
        raise SettingError(
            parameter="batch",
            value=batch,
            problem=(
                "takes answers as independent given a draw, and those of one annotator share a"
                f" type in {type(posterior.model).__name__}"
            ),
            expected="choose a batch rule for any model",
            instead="batch=rt.acquisition.Unique()",
        )

"""Posterior by which questions are chosen: weighted draws, and the judgements behind them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int

from raters.errors import DataError, refuse
from raters.errors.validation import checked, whole
from raters.fitting.result import check_data, check_several, draws_of, program_of
from raters.judgements.base import Judgements
from raters.kinds import kind_of
from raters.model import Model, Values
from raters.program import Program, answer_probs, class_probs, log_likelihoods, prior_draws

# Weights of the draws, or for each question its own; they sum to 1.
Weight = Float[Array, " draw"] | Float[Array, "draw question"]
# Probabilities are computed for so many questions at once that a table stays below this many
# numbers (16 MB, which caches hold).
_NUMBERS, _FEWEST_ROWS = 1 << 22, 1 << 8


class AnswerProbs(NamedTuple):
    """Probabilities of the answers to some questions under each draw."""

    table: Float[Array, "draw answer question"]
    weight: Weight


@dataclass(frozen=True)
class Posterior:
    """Weighted draws of a model's parameters, and the judgements that they were fitted to.

    Parameters
    ----------
    model : Model
    data : Judgements
        Fitted judgements; questions are read in their codes.
    draws : mapping
        Values of each site, shape (draw, ...).
    weight : array, shape (draw,)
        Sums to 1.
    independent : float, optional
        Effective number of independent draws, by the diagnostics of the fit.
    pool : Judgements, optional
        Questions that can still be asked or wait for an answer, in the codes of `data`, for the
        stopping rules that read them; all questions by default.
    cost : array, shape (annotator,), optional
        Cost of an answer of each annotator, for such rules; 1 by default.

    Examples
    --------
    >>> import raters as rt
    >>> from raters.acquisition import Posterior
    >>> from raters.acquisition.scores import Bald
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, seed=0, progress=False)
    >>> posterior = Posterior.of(rt.BTL(), result, draws=100)
    >>> pairs = rt.Candidates.pairs(votes)
    >>> posterior.answer_probs(pairs).table.shape, Bald()(posterior, pairs).shape
    ((100, 2, 18), (18,))
    """

    model: Model[Any]
    data: Judgements
    draws: Values
    weight: Float[np.ndarray, " draw"]
    independent: float = math.inf
    pool: Judgements | None = None
    cost: Float[np.ndarray, " annotator"] | None = None

    @classmethod
    @checked
    def of(
        cls, model: Model[Any], result: xr.DataTree, *, draws: int = 200, seed: int = 0
    ) -> Posterior:
        """Posterior of a result of `raters.fit`, of which `draws` are kept at random."""
        whole("draws", draws)
        program = program_of(model, result)
        check_several(result, "scores and certainty are read off their differences")
        return cls.equal(program, draws_of(program, result, draws, seed)[0])

    @classmethod
    @checked
    def prior(
        cls, model: Model[Any], questions: Judgements, *, draws: int = 200, seed: int = 0
    ) -> Posterior:
        """Draws from the prior, before any answer; `questions` have all names."""
        whole("draws", draws)
        check_data(questions, "questions", model)
        first: Any = dataclasses.replace(questions.take(slice(0, 1)).unanswered(), count=None)
        sites = tuple(Program(model, first).sites)
        keys = jax.random.split(jax.random.key(seed), draws)
        table = prior_draws(model, sites, jax.tree.map(jnp.asarray, first), keys)
        # A row that counts for nothing: a model cannot run on no rows at all.
        nothing = questions.rows(np.zeros(0, int)).unanswered().answered(np.zeros(0)).padded(1)
        return cls.equal(Program(model, nothing), {name: table[name] for name in sites})

    @classmethod
    def equal(cls, program: Program[Any], values: Values) -> Posterior:
        """Posterior of draws that weigh the same."""
        draws = {name: np.asarray(value, np.float32) for name, value in values.items()}
        number = len(next(iter(draws.values())))
        weight = np.full(number, 1.0 / number, np.float32)
        return cls(program.model, program.data, draws, weight)

    @cached_property
    def program(self) -> Program[Any]:
        """Model read on the data."""
        return Program(self.model, self.data)

    @property
    def effective_draws(self) -> float:
        """Effective number of the weighted draws, :math:`1 / \\sum w^2`."""
        return float(1.0 / np.square(self.weight).sum())

    def after(self, data: Judgements) -> Posterior:
        """Weight the same draws by the likelihood of the answers since; `data` are *all* judgements
        so far, those that were fitted among them, with the same names."""
        check_data(data, "data", self.model)
        self._check_names(data)
        both = (jax.tree.map(jnp.asarray, each) for each in (data, self.data))
        now, before = (log_likelihoods(self.model, each, self.draws) for each in both)
        gain = np.asarray(now, np.float64) - np.asarray(before)
        log = np.log(np.maximum(self.weight.astype(np.float64), 1e-300)) + gain
        weight = np.exp(log - log.max())
        weight = (weight / weight.sum()).astype(np.float32)
        return dataclasses.replace(self, data=data, weight=weight)

    def _check_names(self, data: Judgements) -> None:
        for axis in sorted((self.program.axes | {data.judge}) & set(data.axes.values())):
            role = data.names[axis]
            if tuple(getattr(data, role)) != tuple(getattr(self.data, role)):
                problem = f"these are in codes of other {role} than what was fitted"
                raise DataError(f"{problem}; make them from the same table")

    @cached_property
    def _responsibilities(self) -> Float[Array, "draw unit class"] | None:
        """Probability of each class, shape (draw, unit, class); None for a model without."""
        if self.program.latent is None:
            return None
        return class_probs(self.model, jax.tree.map(jnp.asarray, self.data), self.draws)

    def responsibility(self) -> Float[np.ndarray, "unit class"]:
        """Posterior probability of each class of each unit, for a model that sums classes out."""
        if self._responsibilities is None:
            refuse("model", self.model, "sums out no classes", "choose a model that does")
        return np.tensordot(self.weight, np.asarray(self._responsibilities), 1)

    def true_classes(self) -> Float[np.ndarray, "unit class"]:
        """Probability of each true class of each unit, which allows for mistakes that the crowd
        makes together where the kind of judgement has such a calibration."""
        return np.tensordot(self.weight, np.asarray(self._true_classes), 1)

    @cached_property
    def _true_classes(self) -> Float[Array, "draw unit class"] | None:
        """As `_responsibilities`, with an allowance for mistakes that the crowd makes together."""
        truths = kind_of(self.data).truths
        if truths is None or truths.class_probs is None or not self.program.has_truth:
            return self._responsibilities
        chances = self.responsibility()
        return jnp.asarray(truths.class_probs(self.program, self.draws, self.share, chances))

    @property
    def share(self) -> Float[np.ndarray, " draw"]:
        """Weights in double precision."""
        weight: np.ndarray = np.asarray(self.weight, np.float64)
        return weight / weight.sum()

    def site(self, name: str, parameter: str = "target") -> Float[Array, "draw ..."]:
        """Draws of a site, which this parameter asks for."""
        if name not in self.draws:
            problem = f"needs draws of {name}, and the model has none"
            refuse(parameter, problem=problem, expected="choose another, such as what BALD reads")
        return jnp.asarray(self.draws[name])

    def answer_probs(
        self, questions: Judgements, *, by_class: bool = False, calibrated: bool = False
    ) -> AnswerProbs:
        """Probability of each answer to each question, in the codes of `data`, under each draw.

        Where the likelihood sums out a class (the true class of an item, the type of an annotator),
        the probabilities sum it out too; with `by_class` the axis draw holds each draw once for
        each class, weighted by its probability: with `calibrated` that behind `true_classes`.
        """
        self._check_names(questions)
        asked = jax.tree.map(jnp.asarray, questions.unanswered())
        weight = jnp.asarray(self.weight)
        classes = self._true_classes if calibrated else self._responsibilities
        unit = None if classes is None else asked.codes(self.program.unit)
        return _answer_probs(self.model, by_class, asked, self.draws, weight, classes, unit)

    def by_pieces(
        self, questions: Any, function: Callable[[Any], Any], most: int = 1 << 14
    ) -> np.ndarray:
        """A function of questions (last axis), computed by pieces that fit in memory."""
        # A random choice has no draws, and need not wait for the program to be read.
        latent = self.program.latent if self.draws and self.program.has_truth else None
        classes = 1 if latent is None else latent.size
        answers = len(questions.listed_answers()) * classes
        rows = int(np.clip(_NUMBERS // (self.weight.size * answers), _FEWEST_ROWS, most))
        total = questions.num_rows
        rows = min(rows, max(_FEWEST_ROWS, 1 << (total - 1).bit_length()))
        parts = []
        for begin in range(0, total, rows):  # Rows beyond the last one repeat it.
            piece = questions.rows(np.minimum(np.arange(begin, begin + rows), total - 1))
            parts.append(np.asarray(function(piece))[..., : total - begin])
        return np.concatenate(parts, -1)


def sample_of[Data: Judgements](questions: Data, most: int, rng: np.random.Generator) -> Data:
    """Draw at most `most` of the questions at random, and keep their order."""
    total = questions.num_rows
    return questions.rows(np.sort(rng.choice(total, min(most, total), replace=False)))


@partial(jax.jit, static_argnums=(0, 1))
def _answer_probs(
    model: Model[Any],
    by_class: bool,
    asked: Any,
    draws: Values,
    weight: Float[Array, " draw"],
    responsibilities: Float[Array, "draw unit class"] | None,
    unit: Int[Array, " row"] | None,
) -> AnswerProbs:
    """Tables (draw, answer, row); classes summed out by responsibilities, or along draws."""
    table = jax.lax.map(lambda values: answer_probs(model, asked, values), draws)
    if responsibilities is None:
        return AnswerProbs(table[:, 0], weight)
    share = responsibilities[:, unit].transpose(0, 2, 1)  # (draw, class, row)
    if not by_class:
        return AnswerProbs((share[:, :, None, :] * table).sum(1), weight)
    weight = (weight[:, None, None] * share).reshape(-1, share.shape[-1])
    return AnswerProbs(table.reshape(-1, *table.shape[-2:]), weight)

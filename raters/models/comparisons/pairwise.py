"""Models of pairwise votes whose predictor is a combination of terms."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.distributions import GroupedMixture
from raters.distributions.rows import votes_of
from raters.errors import refuse
from raters.judgements.comparisons import Comparisons
from raters.model import Fit, Sign, Spread, Symmetry, Values
from raters.models.comparisons.directions import directed_in
from raters.models.mirror import open_mirror
from raters.models.settings import CheckedModel
from raters.terms import Covariates, PositionBias, Strata
from raters.terms.base import Sum, Term, by_type
from raters.terms.ties import TieModel, TiePropensity, ties_of, why_not_tied
from raters.terms.types import Guessers, separation_warnings

# Chains set out from a start whose sites are scattered in its order, which ends with these.
_LAST = (PositionBias, Covariates, Strata)


class TermModel(CheckedModel[Comparisons]):
    """Model of votes with a predictor made of terms, in logits of a vote for the first item."""

    ties: TieModel | None = None
    tie_propensity: TiePropensity = "shared"

    @property
    @abc.abstractmethod
    def predictor(self) -> Term:
        """Log-odds of a vote for the first item."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ties is None and self.tie_propensity == "annotator":
            problem = "is of no use without a model of ties"
            refuse("tie_propensity", "annotator", problem, "choose one by `ties`")

    @property
    def types(self) -> Any:
        """The term whose types of annotators are summed out, or None."""
        found = [term for term in self.predictor.every() if hasattr(term, "sample_weight")]
        if len(found) > 1 or (found and self.ties is not None):
            expected = "have one term of types in a predictor, and none beside `ties`"
            refuse("terms", self.predictor, "cannot be summed out", expected)
        return found[0] if found else None

    @property
    def cited(self) -> tuple[str, ...]:
        ties = "" if self.ties is None else "davidson1970extending rao1967ties"
        return (self.reference, ties, *(term.reference for term in self.predictor.every()))

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return tuple(one for one in self.predictor.symmetries if not isinstance(one, Spread))

    @property
    def facts(self) -> tuple[Spread, ...]:
        return tuple(one for one in self.predictor.symmetries if isinstance(one, Spread))

    def axis_names(self, data: Comparisons) -> dict[str, tuple[Any, ...]]:
        return self.predictor.axis_names(data)

    def generate(self, data: Comparisons) -> None:
        if self.types is not None:
            weight = self.types.sample_weight()
            logits = self.predictor.sample(by_type(data, self.types.number))
            observe_by_type(weight, logits, data, self.types.names)
        else:
            logits, of_ties = self.predictor.sample(data), ties_of(self)
            votes = of_ties.votes(logits, data) if of_ties else votes_of(logits, data.count)
            with numpyro.plate("comparison", data.num_comparisons):
                numpyro.sample("outcome", votes, obs=data.wins)

    def start(self, data: Comparisons) -> Values:
        start, of_ties = self.predictor.start(data), ties_of(self)
        for last in _LAST:
            for term in self.predictor.every():
                if isinstance(term, last):
                    start |= {name: start.pop(name) for name in term.start(data)}
        return start if of_ties is None else start | of_ties.start(data)

    def another_start(self, data: Comparisons, rng: np.random.Generator) -> Values | None:
        if self.types is None or isinstance(self.types, Guessers):
            return None
        return self.predictor.start(data) | self.types.start(data, rng)

    def why_not(self, data: Comparisons) -> str | None:
        return self.predictor.why_not(data) or why_not_tied(self, data)

    def warnings(self, data: Comparisons, fit: Fit | None = None) -> tuple[str, ...]:
        if fit is None:
            return self.predictor.warnings(data)
        if self.types is not None and not isinstance(self.types, Guessers):
            return separation_warnings(fit.responsibility, "vote")
        if "competence" not in fit.draws or not any(
            isinstance(one, Sign) for one in self.symmetries
        ):
            return ()
        competence = fit.draws["competence"]
        if self.types is not None:
            competence = directed_in(self, fit.draws, data)
        # Each tie as half a vote for either side says as much about an order and who follows it.
        return open_mirror(competence, data.halved(), "votes")


@dataclass(frozen=True)
class PairwiseModel(TermModel):
    r"""Model of pairwise votes whose log-odds are a combination of terms.

    .. math:: P(i \succ j \mid k) = \sigma(\text{terms})

    The terms are those of `raters.terms`, such as ``Competence("signed") * (Rewards() + Strata()) +
    Covariates() + PositionBias("annotator")``, and terms of your own.

    Parameters
    ----------
    terms : Term
        Predictor, in logits.
    ties : {"davidson", "rao-kupper"}, optional
        Model of ties, of votes read with ``ties="keep"``.
    tie_propensity : {"shared", "annotator"}
        Whose propensity to call a tie is learned.

    Examples
    --------
    >>> import raters as rt
    >>> from raters.terms import Competence, PositionBias, Rewards
    >>> votes = rt.datasets.position_biased(6, 4, num_votes=300, seed=0).votes
    >>> model = rt.models.PairwiseModel(Competence("signed") * Rewards() + PositionBias())
    >>> sorted(rt.program.Program(model, votes).sites)
    ['competence', 'position_bias', 'reward', 'reward_scale']
    """

    terms: Term
    ties: TieModel | None = None
    tie_propensity: TiePropensity = "shared"

    @property
    def predictor(self) -> Term:
        return self.terms


def added(first: Term, *others: tuple[Any, Term]) -> Term:
    """Sum of a term and of those others whose setting is on."""
    chosen = [term for setting, term in others if setting]
    return Sum((first, *chosen)) if chosen else first


def observe_by_type(
    weight: Float[Array, " type"],
    logits: Float[Array, "comparison type"],
    data: Comparisons,
    names: tuple[str, ...],
) -> None:
    """Sample the observed site: votes, with the type of each annotator summed out."""
    votes = votes_of(logits, None if data.count is None else data.count[:, None])
    with numpyro.plate("annotator", data.num_annotators):
        mixture = GroupedMixture(
            dist.Categorical(probs=weight), votes, data.annotator, data.num_annotators
        )
        facts = {"unit": "annotator", "latent_class": "type", "class_names": names}
        numpyro.sample("outcome", mixture, obs=data.wins, infer=facts)

"""Models of pairwise votes whose predictor is a combination of terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from raters.distributions.rows import votes_of
from raters.errors import refuse
from raters.judgements.comparisons import Comparisons
from raters.model import Fit, Values
from raters.models.comparisons.directions import directed_in
from raters.models.of_terms import TermModel
from raters.terms import Covariates, PositionBias, Strata
from raters.terms.base import Sum, Term, by_type, sampled
from raters.terms.ties import TieModel, TiePropensity, ties_of, why_not_tied
from raters.terms.types import Guessers

# Chains set out from a start whose sites are scattered in its order, which ends with these.
_LAST = (PositionBias, Covariates, Strata)


class VoteModel(TermModel[Comparisons]):
    """Model of votes with a predictor made of terms, in logits of a vote for the first item."""

    ties: TieModel | None = None
    tie_propensity: TiePropensity = "shared"

    words = "votes"
    ties_reference = "davidson1970extending rao1967ties"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ties is None and self.tie_propensity == "annotator":
            problem = "is of no use without a model of ties"
            refuse("tie_propensity", "annotator", problem, "choose one by `ties`")
        if self.ties is not None and self.types is not None:
            expected = "have no term of types beside `ties`"
            refuse("terms", self.predictor, "cannot be summed out", expected)

    def generate(self, data: Comparisons) -> None:
        if self.types is not None:
            weight = self.types.sample_weight()
            logits = self.predictor.sample(by_type(data, self.types.number))
            count = None if data.count is None else data.count[:, None]
            self.observe_by_type(weight, votes_of(logits, count), data.wins, data)
        else:
            logits, of_ties = self.predictor.sample(data), ties_of(self)
            votes = of_ties.votes(logits, data) if of_ties else votes_of(logits, data.count)
            sampled("outcome", votes, obs=data.wins, comparison=data.num_comparisons)

    def start(self, data: Comparisons) -> Values:
        start, of_ties = super().start(data), ties_of(self)
        for last in _LAST:
            for term in self.predictor.every():
                if isinstance(term, last):
                    start |= {name: start.pop(name) for name in term.start(data)}
        return start if of_ties is None else start | of_ties.start(data)

    def why_not(self, data: Comparisons) -> str | None:
        return super().why_not(data) or why_not_tied(self, data)

    def fit_warnings(self, data: Comparisons, fit: Fit) -> tuple[str, ...]:
        if isinstance(self.types, Guessers) and "competence" in fit.draws:
            fit = fit._replace(draws=fit.draws | {"competence": directed_in(self, fit.draws, data)})
        # Each tie as half a vote for either side says as much about an order and who follows it.
        return super().fit_warnings(data.halved(), fit)


@dataclass(frozen=True)
class PairwiseModel(VoteModel):
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

"""Ties as answers of their own: the propensity to call one, and the distributions of such votes."""

from __future__ import annotations

from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.distributions.ties import Davidson, RaoKupper, TiedVotes
from raters.errors import Reason, refuse
from raters.judgements.comparisons import Comparisons
from raters.model import Spread, Values
from raters.models.comparisons import _covariates, _sites, _strata
from raters.models.settings import CheckedModel

TieModel = Literal["davidson", "rao-kupper"]
TiePropensity = Literal["shared", "annotator"]
_DISTRIBUTIONS = {"davidson": Davidson, "rao-kupper": RaoKupper}
# Standard deviation of the propensity: of two equal items, 1 to 96 % of the votes are ties (95 %).
_SCALE = 2.0


class TermModel(CheckedModel[Comparisons]):
    """Model of votes whose settings add terms: ties, covariates, strata and a position bias."""

    ties: TieModel | None
    tie_propensity: TiePropensity
    covariates: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ties is None and self.tie_propensity == "annotator":
            problem = "is of no use without a model of ties"
            refuse("tie_propensity", "annotator", problem, "choose one by `ties`")

    @property
    def cited(self) -> tuple[str, ...]:
        ties = "" if self.ties is None else "davidson1970extending rao1967ties"
        return (self.reference, ties, "li2024style" if self.covariates else "")

    @property
    def spreads(self) -> tuple[Spread, ...]:
        return _strata.spreads(self)

    def why_not(self, data: Comparisons) -> str | None:
        return (
            _sites.why_not_ordered(self, data)
            or _covariates.why_not(self, data)
            or _strata.why_not(self, data)
            or why_not(data, self)
        )


def observe(model: Any, logits: Float[Array, " comparison"], data: Comparisons) -> None:
    """Sample the observed site, with the model's propensities to call a tie."""
    if model.ties is None:
        with numpyro.plate("comparison", data.num_comparisons):
            _sites.observe(logits, data)
        return
    propensity = _propensity(model, data)
    with numpyro.plate("comparison", data.num_comparisons):
        votes = _DISTRIBUTIONS[model.ties](logits, propensity, data.count)
        numpyro.sample("outcome", votes, obs=data.wins)


def _propensity(model: Any, data: Comparisons) -> Float[Array, ""] | Float[Array, " comparison"]:
    """Sample the propensity to call a tie; where it is the annotators', that of each row."""
    if model.tie_propensity == "shared":
        shared: Array = numpyro.sample("tie_propensity", dist.Normal(0.0, _SCALE))
        return shared
    mean = numpyro.sample("tie_propensity_mean", dist.Normal(0.0, _SCALE))
    spread = numpyro.sample("tie_propensity_spread", dist.LogNormal(jnp.log(0.5), 1.0))
    with numpyro.plate("annotator", data.num_annotators):
        own = numpyro.sample("tie_propensity", dist.Normal(mean, spread))
    of_rows: Array = own[data.annotator]
    return of_rows


def in_block(model: Any) -> bool:
    """Return whether the logits are affine in the propensity: a utility of Davidson's model."""
    return bool(model.ties == "davidson")


def votes_with_ties(
    model: Any, draws: Values, logits: Float[np.ndarray, "draw pair"], annotator: int
) -> TiedVotes | None:
    """Return the distribution of one annotator's votes under each draw; None without ties."""
    if getattr(model, "ties", None) is None:
        return None
    propensity = np.asarray(draws["tie_propensity"])
    own = propensity if propensity.ndim == 1 else propensity[:, annotator]
    return _DISTRIBUTIONS[model.ties](jnp.asarray(logits), jnp.asarray(own)[:, None])


def start(model: Any, data: Comparisons) -> Values:
    """Return start values of the propensities: the log ratio of ties to votes for one side."""
    if model.ties is None:
        return {}
    count = np.asarray(data.weight, float)
    total = count.sum()
    ties = 0.0 if data.wins is None else count[np.asarray(data.wins) == 0.5].sum()
    shared = np.log((ties + 1) / ((total - ties) / 2 + 1))
    if model.tie_propensity == "shared":
        return {"tie_propensity": jnp.asarray(shared)}
    return {
        "tie_propensity": jnp.full(data.num_annotators, shared),
        "tie_propensity_mean": jnp.asarray(shared),
        "tie_propensity_spread": jnp.asarray(0.5),
    }


def why_not(data: Comparisons, model: Any = None) -> str | None:
    """Explain why ties as these data have them cannot be modelled, or return None."""
    ties = None if model is None else model.ties
    if data.tied == (ties is not None):
        return None
    if ties is None:
        problem = "are an answer of their own in these votes, which the model does not know"
        return Reason("ties", "keep", problem, "read them with ties='half', or write halved()")
    problem = "takes ties as an answer of their own, and these votes were not read so"
    return Reason("ties", ties, problem, "read them with ties='keep', or write votes.with_ties()")

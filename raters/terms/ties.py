"""Ties as answers of their own: the propensity to call one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.distributions.ties import Davidson, RaoKupper, TiedVotes
from raters.errors import Reason
from raters.judgements.comparisons import Comparisons
from raters.judgements.counts import numbers_tied
from raters.judgements.rankings import Rankings
from raters.model import Values
from raters.terms.base import sample_about_mean, sampled

TieModel = Literal["davidson", "rao-kupper"]
TiePropensity = Literal["shared", "annotator"]
_DISTRIBUTIONS = {"davidson": Davidson, "rao-kupper": RaoKupper}
# Standard deviation of the propensity: of two equal items, 1 to 96 % of the votes are ties (95 %).
_SCALE = 2.0
# Most items that share a place in rankings: the likelihood has sums as many as their square.
_MOST_TIED = 20


@dataclass(frozen=True)
class Ties:
    r"""Propensity ν to call a tie, :math:`\nu \sim \mathrm{Normal}(0, 2)` (Davidson 1970; Rao and
    Kupper 1967), or of each annotator, :math:`\nu_k \sim \mathrm{Normal}(\bar\nu, \phi)`.

    It is no term of the predictor: it says what distribution the votes have.

    Parameters
    ----------
    model : {"davidson", "rao-kupper"}
    propensity : {"shared", "annotator"}
    """

    model: TieModel
    propensity: TiePropensity = "shared"

    def votes(self, logits: Any, data: Comparisons) -> TiedVotes:
        """Sample the propensities; return the distribution of the votes."""
        return _DISTRIBUTIONS[self.model](logits, self.sample(data), data.count)

    def sample(self, data: Comparisons) -> Float[Array, ""] | Float[Array, " comparison"]:
        """Sample the propensity; where it is the annotators', that of each row."""
        if self.propensity == "shared":
            return numpyro.sample("tie_propensity", dist.Normal(0.0, _SCALE))
        mean, spread = dist.Normal(0.0, _SCALE), dist.LogNormal(jnp.log(0.5), 1.0)
        own = sample_about_mean("tie_propensity", mean, spread, data.num_annotators)
        return own[data.annotator]

    def start(self, data: Comparisons) -> Values:
        """Return start values of the propensities: the log ratio of ties to votes for one side."""
        count = np.asarray(data.weight, float)
        total = count.sum()
        ties = 0.0 if data.wins is None else count[np.asarray(data.wins) == 0.5].sum()
        shared = np.log((ties + 1) / ((total - ties) / 2 + 1))
        if self.propensity == "shared":
            return {"tie_propensity": jnp.asarray(shared)}
        return {
            "tie_propensity": jnp.full(data.num_annotators, shared),
            "tie_propensity_mean": jnp.asarray(shared),
            "tie_propensity_spread": jnp.asarray(0.5),
        }


def sample_by_size(data: Rankings) -> Float[Array, " size"] | None:
    """Sample the propensity of ties of 2, 3, … items, in rankings that have some."""
    if data.most_tied == 1:
        return None
    propensity = dist.Normal(0.0, _SCALE).expand([data.most_tied - 1]).to_event(1)
    return sampled("tie_propensity", propensity, "tie_size")


def start_by_size(data: Rankings) -> Values:
    """Return start values: the log ratio of ties of each size to places of one item."""
    if data.most_tied == 1:
        return {}
    number = np.zeros(data.most_tied)
    if data.place is not None:
        size = numbers_tied(np.asarray(data.place))
        weight = np.asarray(data.weight, float)[:, None] * (np.asarray(data.place) > 0) / size
        number = np.bincount((size - 1).ravel(), weight.ravel(), data.most_tied)
    return {"tie_propensity": jnp.asarray(np.log((number[1:] + 1) / (number[0] + 1)))}


def why_not_equal(model: Any, data: Rankings) -> str | None:
    """Explain why equal ranks cannot be modelled, or return None."""
    if data.most_tied > 1 and model.ties is None:
        problem = "takes no equal ranks, and these rankings have some"
        expected = "fit rt.PlackettLuce(ties='davidson'), or rt.ExtendedPlackettLuce with it"
        return Reason("ties", None, problem, f"{expected} (--set ties=davidson)")
    if data.most_tied > _MOST_TIED:
        problem = f"takes ties of {_MOST_TIED} items at most, and here are {data.most_tied} in one"
        expected = "read scores by rt.Ratings.from_frame, or leave ranks of the last items empty"
        return Reason("ties", model.ties, problem, expected)
    return None


def ties_of(model: Any) -> Ties | None:
    """Return the ties of a model; None of one that knows none."""
    kind = getattr(model, "ties", None)
    return None if kind is None else Ties(kind, model.tie_propensity)


def votes_with_ties(
    model: Any, draws: Values, logits: Float[np.ndarray, "draw pair"], annotator: int
) -> TiedVotes | None:
    """Return the distribution of one annotator's votes under each draw; None without ties."""
    ties = ties_of(model)
    if ties is None or "tie_propensity" not in draws:
        return None
    propensity = np.asarray(draws["tie_propensity"])
    # In rankings, ties of two items come first.
    place = annotator if ties.propensity == "annotator" else 0
    own = propensity if propensity.ndim == 1 else propensity[:, place]
    return _DISTRIBUTIONS[ties.model](jnp.asarray(logits), jnp.asarray(own)[:, None])


def why_not_tied(model: Any, data: Comparisons) -> str | None:
    """Explain why ties as these data have them cannot be modelled, or return None."""
    ties = ties_of(model)
    if data.tied == (ties is not None):
        return None
    if ties is None:
        problem = "are an answer of their own in these votes, which the model does not know"
        return Reason("ties", "keep", problem, "read them with ties='half', or write halved()")
    problem = "takes ties as an answer of their own, and these votes were not read so"
    expected = "read them with ties='keep', or write votes.with_ties()"
    return Reason("ties", ties.model, problem, expected)

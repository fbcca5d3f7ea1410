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
from raters.model import Values
from raters.terms.base import sample_about_mean

TieModel = Literal["davidson", "rao-kupper"]
TiePropensity = Literal["shared", "annotator"]
_DISTRIBUTIONS = {"davidson": Davidson, "rao-kupper": RaoKupper}
# Standard deviation of the propensity: of two equal items, 1 to 96 % of the votes are ties (95 %).
_SCALE = 2.0


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


def ties_of(model: Any) -> Ties | None:
    """Return the ties of a model; None of one that knows none."""
    kind = getattr(model, "ties", None)
    return None if kind is None else Ties(kind, model.tie_propensity)


def votes_with_ties(
    model: Any, draws: Values, logits: Float[np.ndarray, "draw pair"], annotator: int
) -> TiedVotes | None:
    """Return the distribution of one annotator's votes under each draw; None without ties."""
    if (ties := ties_of(model)) is None:
        return None
    propensity = np.asarray(draws["tie_propensity"])
    own = propensity if propensity.ndim == 1 else propensity[:, annotator]
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

"""Rewards by stratum, such as a category of prompts: deviations from an item's common reward."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.judgements.comparisons import Comparisons
from raters.model import Shift, Values
from raters.terms.base import Term, sample_vectors, worded


@dataclass(frozen=True)
class Strata(Term):
    r"""Deviation of each item's reward in each stratum, :math:`\delta_{si} - \delta_{sj}`, with
    :math:`\delta_{si} \sim \mathrm{Normal}(0, \tau)`,
    :math:`\tau \sim \mathrm{LogNormal}(\log ½, 1)`. Add it to `Rewards`."""

    needs = ("stratum",)
    linear = ("deviation",)
    scales = ("deviation_spread",)
    symmetries = (Shift("deviation", axis=1),)

    def sample(self, data: Comparisons) -> Float[Array, " *row"]:
        spread = numpyro.sample("deviation_spread", dist.LogNormal(jnp.log(0.5), 1.0))
        strata, items = ("stratum", len(data.strata)), ("item", data.num_items)
        own = sample_vectors("deviation", spread, strata, items)
        if data.stratum is None:  # Questions about all strata together.
            return jnp.zeros(jnp.shape(data.first))
        return own[data.stratum, data.first] - own[data.stratum, data.second]

    def start(self, data: Comparisons) -> Values:
        deviation = jnp.zeros((len(data.strata), data.num_items))
        return {"deviation": deviation, "deviation_spread": 0.5}

    def warnings(self, data: Comparisons) -> tuple[str, ...]:
        """Warn of a single stratum; `raters.fit` warns of strata that are not used."""
        if data.stratum is None or len(np.unique(np.asarray(data.stratum))) > 1:
            return ()
        return (worded("one_stratum"),)

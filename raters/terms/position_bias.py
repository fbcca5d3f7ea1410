"""Bias towards the item that is shown first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.judgements.comparisons import Comparisons
from raters.judgements.connection import MIXED_ORDER, order_share
from raters.model import Values
from raters.terms.base import Term, sample_about_mean, worded


@dataclass(frozen=True)
class PositionBias(Term):
    r"""Advantage γ of the item shown first, in logits.

    Parameters
    ----------
    by : {"shared", "annotator"}
        One advantage, :math:`\gamma \sim \mathrm{Normal}(0, 1)`, or one for each annotator,
        :math:`\gamma_k \sim \mathrm{Normal}(\bar\gamma, \phi)`, with
        :math:`\bar\gamma \sim \mathrm{Normal}(0, 1)`, :math:`\phi \sim \mathrm{LogNormal}(\log ½,
        1)`.
    """

    needs = ("first",)
    linear = ("position_bias",)

    by: Literal["shared", "annotator"] = "shared"

    def sample(self, data: Comparisons) -> Float[Array, " *row"]:
        if self.by == "shared":
            return numpyro.sample("position_bias", dist.Normal(0.0, 1.0))
        mean, spread = dist.Normal(0.0, 1.0), dist.LogNormal(jnp.log(0.5), 1.0)
        bias = sample_about_mean("position_bias", mean, spread, data.num_annotators)
        return bias[data.annotator]

    def start(self, data: Comparisons) -> Values:
        zero = jnp.asarray(0.0)
        if self.by == "shared":
            return {"position_bias": zero}
        bias: Values = {"position_bias": jnp.zeros(data.num_annotators)}
        return bias | {"position_bias_mean": zero, "position_bias_spread": jnp.asarray(0.5)}

    def warnings(self, data: Comparisons) -> tuple[str, ...]:
        """Warn of pairs that were shown in one order, whose bias rewards can imitate."""
        return () if order_share(data) >= MIXED_ORDER else (worded("one_order"),)

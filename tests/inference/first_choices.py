"""A mixture of types of annotators who choose from sets, written outside the package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

import raters as rt
from raters.distributions import GroupedMixture
from raters.distributions.choices import Choice
from raters.model import Model, Permute, Shift

_NOT_OFFERED = -1e9


@dataclass(frozen=True)
class FirstChoices(Model[rt.Rankings]):
    """First choices of annotators, each of one of two types with worths of its own."""

    blocks = (("type_weight",), ("worth",))
    symmetries = (Permute(("worth", "type_weight"), share="type_weight"), Shift("worth", 0))

    def generate(self, data: Any) -> None:
        """The NumPyro program."""
        prior = dist.Dirichlet(jnp.array([2.0, 2.0]))
        weight = numpyro.sample("type_weight", prior, infer={"event_dims": ["type"]})
        with numpyro.plate("item", data.num_items, dim=-2), numpyro.plate("type", 2, dim=-1):
            worth = numpyro.sample("worth", dist.Normal(0.0, 1.0))
        rankings, positions = np.shape(data.offered)
        offered = jnp.asarray(data.offered).reshape(-1, 1)
        item = jnp.broadcast_to(jnp.maximum(offered, 0), (offered.size, 2))
        utility = worth[item, jnp.broadcast_to(jnp.arange(2), item.shape)]
        utility = jnp.where(offered >= 0, utility, _NOT_OFFERED)
        count = jnp.ones(rankings) if data.count is None else jnp.asarray(data.count)
        choice = Choice(
            utility,
            jnp.repeat(jnp.arange(rankings), positions),
            rankings,
            count.astype(utility.dtype),
        )
        first = None
        if data.place is not None:
            first = ((jnp.asarray(data.place) == 1) * count[:, None]).ravel()
        with numpyro.plate("annotator", data.num_annotators):
            mixture = GroupedMixture(
                dist.Categorical(probs=weight),
                choice,
                jnp.asarray(data.annotator),
                data.num_annotators,
            )
            facts = {"unit": "annotator", "latent_class": "type"}
            numpyro.sample("place", mixture, obs=first, infer=facts)

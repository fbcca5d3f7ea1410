"""Models of rankings whose utilities are a combination of terms."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpyro
from jaxtyping import Array, Float, Int

from raters.distributions.choices import PlackettLuce
from raters.judgements.rankings import Rankings
from raters.models.of_terms import TermModel

# Utility of a position without an item, which is never chosen.
_NONE = -1e9


def orders(
    utility: Float[Array, "ranking position *type"], data: Rankings
) -> tuple[PlackettLuce, Int[Array, " row"] | None]:
    """Return the distribution of the places of the items offered, and those that were given."""
    utility = jnp.asarray(utility)
    rankings, positions = utility.shape[:2]
    there = (jnp.asarray(data.offered) >= 0).reshape(-1, *(1,) * (utility.ndim - 2))
    order = PlackettLuce(
        jnp.where(there, utility.reshape(-1, *utility.shape[2:]), _NONE),
        jnp.repeat(jnp.arange(rankings), positions),
        rankings,
        data.count if data.count is None else jnp.asarray(data.count, utility.dtype),
        jnp.asarray(data.depth),
        None if data.lowest is None else jnp.asarray(data.lowest),
        positions,
    )
    return order, None if data.place is None else jnp.ravel(jnp.asarray(data.place))


def observe(utility: Float[Array, "ranking position"], data: Rankings) -> None:
    """Sample the observed site: the place of each item offered."""
    order, place = orders(utility, data)
    with numpyro.plate("ranking", data.num_rows):
        numpyro.sample("place", order, obs=place)


class RankingModel(TermModel[Rankings]):
    """Model of rankings by choices in stages, with utilities made of terms."""

    words = "rankings"

    def generate(self, data: Rankings) -> None:
        if self.types is None:
            # Each utility needs its own index, as the blocks are read row by row.
            who = jnp.broadcast_to(jnp.asarray(data.annotator)[:, None], data.offered.shape)
            observe(self.predictor.sample(dataclasses.replace(data, annotator=who)), data)
        else:
            weight = self.types.sample_weight()
            order, place = orders(self.predictor.sample(data), data)
            self.observe_by_type(weight, order, place, data)

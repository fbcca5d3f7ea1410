"""Models of rankings whose utilities are a combination of terms."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import jax.numpy as jnp
import numpyro
from jaxtyping import Array, Float, Int

from raters.distributions.choices import PlackettLuce
from raters.distributions.davidson_luce import DavidsonLuce
from raters.judgements.rankings import Rankings
from raters.model import Values
from raters.models.of_terms import TermModel
from raters.terms.ties import sample_by_size, start_by_size, why_not_equal

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


def tied_orders(
    utility: Float[Array, "ranking position"], propensity: Float[Array, " size"], data: Rankings
) -> DavidsonLuce:
    """Return the distribution of the places of the items offered, of which some may tie."""
    return DavidsonLuce(
        jnp.where(jnp.asarray(data.offered) >= 0, utility, _NONE),
        propensity,
        data.count if data.count is None else jnp.asarray(data.count, utility.dtype),
        jnp.asarray(data.depth),
        None if data.lowest is None else jnp.asarray(data.lowest),
    )


def observe(
    utility: Float[Array, "ranking position"], data: Rankings, propensity: Any = None
) -> None:
    """Sample the observed site: the place of each item offered."""
    order, place = orders(utility, data)
    if propensity is not None:
        order, place = tied_orders(utility, propensity, data), data.place
    with numpyro.plate("ranking", data.num_rows):
        numpyro.sample("place", order, obs=place)


class RankingModel(TermModel[Rankings]):
    """Model of rankings by choices in stages, with utilities made of terms."""

    words = "rankings"
    ties: Literal["davidson"] | None = None
    tie_propensity = "shared"

    @property
    def cited(self) -> tuple[str, ...]:
        own, *of_terms = super().cited
        return (own, "" if self.ties is None else "firth2019davidson", *of_terms)

    def generate(self, data: Rankings) -> None:
        if self.types is None:
            # Each utility needs its own index, as the blocks are read row by row.
            who = jnp.broadcast_to(jnp.asarray(data.annotator)[:, None], data.offered.shape)
            utility = self.predictor.sample(dataclasses.replace(data, annotator=who))
            observe(utility, data, sample_by_size(data))
        else:
            weight = self.types.sample_weight()
            order, place = orders(self.predictor.sample(data), data)
            self.observe_by_type(weight, order, place, data)

    def start(self, data: Rankings) -> Values:
        start = super().start(data)
        return start if self.ties is None else start | start_by_size(data)

    def axis_names(self, data: Rankings) -> dict[str, tuple[Any, ...]]:
        sizes = tuple(range(2, data.most_tied + 1))
        return super().axis_names(data) | ({"tie_size": sizes} if sizes else {})

    def why_not(self, data: Rankings) -> str | None:
        return super().why_not(data) or why_not_equal(self, data)

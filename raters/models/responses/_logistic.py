"""Logistic models of item responses: programs with abilities, and with these integrated out."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int
from scipy.special import expit

from raters.distributions import GroupedMixture
from raters.distributions.rows import votes_of
from raters.judgements.patterns import Patterns
from raters.judgements.responses import Responses
from raters.model import Marginal, Values
from raters.models.on_nodes import NodeModel, number_at, spaced
from raters.models.settings import CheckedModel

# Logits per standard deviation of the ability for which the nodes lie close enough.
_STEEPEST = 2.0


class Logistic(CheckedModel[Responses]):
    """Model whose log-odds of a right response follow from ability and parameters of the item."""

    #: Conjugate blocks of the model without the abilities.
    item_blocks: ClassVar[tuple[tuple[str, ...], ...]]

    @abc.abstractmethod
    def sample_items(self, num_items: int) -> Values:
        """Sample all sites but the abilities."""

    @abc.abstractmethod
    def ability_spread(self, sites: Values) -> Any:
        """Standard deviation of the abilities."""

    @abc.abstractmethod
    def log_odds(
        self, ability: Float[Array, " *row"], item: Int[Array, " *row"], sites: Values
    ) -> Float[Array, " *row"]:
        """Log-odds of a right response."""

    def generate(self, data: Responses) -> None:
        sites = self.sample_items(data.num_items)
        with numpyro.plate("person", data.num_persons):
            ability = numpyro.sample("ability", dist.Normal(0.0, self.ability_spread(sites)))
        logits = self.log_odds(ability[data.person], data.item, sites)
        with numpyro.plate("response", data.num_rows):
            numpyro.sample("correct", votes_of(logits, data.count), obs=data.correct)

    def marginal(self, data: Responses) -> Marginal:
        """This model with the abilities integrated out, on the patterns of the responses."""
        patterns = Patterns.of(data, "person", "item")
        weight = np.asarray(patterns.weight, np.float64)
        most = np.bincount(np.asarray(patterns.group), weight, minlength=1).max(initial=0.0)
        nodes = number_at(1 / np.sqrt(1 + _STEEPEST**2 * most / 4))
        finer = Integrated(self, 2 * nodes - 1)
        return Marginal(Integrated(self, nodes), patterns, "ability", finer)

    def start(self, data: Responses) -> Values:
        return self.start_items(data) | {"ability": _log_odds_of(data, "person")}

    @abc.abstractmethod
    def start_items(self, data: Responses | Patterns) -> Values:
        """Start of all sites but the abilities."""


@dataclass(frozen=True)
class Integrated(NodeModel):
    """A logistic model with the abilities integrated out."""

    most_cells: ClassVar[int] = 30_000_000

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        return self.model.item_blocks

    def generate(self, data: Patterns) -> None:
        sites = self.model.sample_items(data.num_facets)
        node = spaced(self.nodes)
        shape = (data.num_rows, self.nodes)
        # Each log-odds needs its own index, as the conjugate updates read it row by row.
        item = jnp.broadcast_to(jnp.asarray(data.facet)[:, None], shape)
        ability = jnp.broadcast_to(self.model.ability_spread(sites) * node, shape)
        logits = self.model.log_odds(ability, item, sites)
        count = None if data.count is None else data.count[:, None]
        with numpyro.plate("pattern", data.num_units):
            mixture = GroupedMixture(
                dist.Categorical(logits=-(node**2) / 2),
                votes_of(logits, count),
                data.group,
                data.num_units,
                repeats=data.repeats,
            )
            facts = {"unit": "pattern", "latent_class": "node"}
            numpyro.sample("given", mixture, obs=data.given, infer=facts)

    def start(self, data: Patterns) -> Values:
        return self.model.start_items(data)


def _log_odds_of(data: Responses | Patterns, axis: str) -> Float[np.ndarray, " axis"]:
    """Log-odds of the share of right responses of each name, with half a response on each side."""
    axis = "facet" if isinstance(data, Patterns) and axis == "item" else axis
    codes, weight = np.asarray(data.codes(axis)), np.asarray(data.weight, np.float64)
    outcome = getattr(data, data.answer)
    right = weight / 2 if outcome is None else np.asarray(outcome, np.float64)
    if isinstance(data, Patterns):
        repeats = np.asarray(data.repeats, np.float64)[np.asarray(data.group)]
        weight, right = weight * repeats, right * repeats
    size = len(data.coords[axis])
    won, asked = (np.bincount(codes, part, size) for part in (right, weight))
    return np.log((won + 0.5) / (asked - won + 0.5))


def start_difficulty(data: Responses | Patterns) -> Float[np.ndarray, " item"]:
    """Difficulty of each item by its share of right responses."""
    return -_log_odds_of(data, "item")


def start_covariance(data: Responses | Patterns) -> Float[np.ndarray, " item"]:
    """Covariance of the responses to each item with the other responses of the same person."""
    axis, own = ("facet", data.group) if isinstance(data, Patterns) else ("item", data.person)
    item, person = np.asarray(data.codes(axis)), np.asarray(own)
    size, weight = len(data.coords[axis]), np.asarray(data.weight, np.float64)
    outcome = getattr(data, data.answer)
    if outcome is None:
        return np.zeros(size)
    times = np.ones(len(item))
    if isinstance(data, Patterns):
        times = np.asarray(data.repeats, np.float64)[person]
    share = expit(_log_odds_of(data, "item"))
    beyond = np.asarray(outcome, np.float64) - weight * share[item]
    total = np.bincount(person, beyond)
    return np.bincount(item, times * beyond * (total[person] - beyond), size)

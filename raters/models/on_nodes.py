"""Models of answers on a scale with what belongs to each name of one axis integrated out."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.distributions import GroupedMixture
from raters.distributions.rows import Repeated, Tabulated
from raters.judgements.base import Judgements
from raters.judgements.grouped import Patterns
from raters.model import Marginal, Model, Values
from raters.models.base import CheckedModel, worded
from raters.terms.base import sampled

Nodes = Float[Array, " node"]
# Rows of patterns, and how often each came.
Rows = tuple[dist.Distribution, Any]
# Nodes lie within so many standard deviations, and are at least so many.
_REACH, _FEWEST = 6.0, 41
# Distance of the nodes in standard deviations of what the answers to one name tell. The error of
# the sum is about exp(−2π² / distance²) of each term (Trefethen and Weideman 2014).
_DISTANCE = 1.25


class Integrable[Data: Judgements](CheckedModel[Data]):
    """Model of which each answer depends on one normal number of its name on an axis."""

    #: Site that is integrated out, its axis, and the other axis.
    integrated: ClassVar[tuple[str, str, str]]
    #: Conjugate blocks without that site.
    other_blocks: ClassVar[tuple[tuple[str, ...], ...]] = ()
    #: Largest number of rows times nodes: arrays of this size are held at a time.
    most_cells: ClassVar[int] = 100_000_000

    @abc.abstractmethod
    def sample_others(self, number: int, num_levels: int) -> Values:
        """Sample all sites but the one that is integrated out."""

    @abc.abstractmethod
    def start_others(self, data: Any) -> Values:
        """Start of these sites, of the data or their patterns."""

    @abc.abstractmethod
    def rows_at(self, node: Nodes, sites: Values, data: Patterns) -> Rows:
        """Distribution of the rows of patterns at each node."""

    def num_nodes(self, patterns: Patterns) -> int:
        """Number of nodes that lie as close as the answers of any pattern tell its number."""
        weight, group = np.asarray(patterns.weight, np.float64), np.asarray(patterns.group)
        number = np.bincount(group, weight, minlength=1)
        most = number.max(initial=0.0)
        information = 1 + most * _signal(patterns, weight, group, number)
        return number_at(_DISTANCE / np.sqrt(information))

    def marginal(self, data: Data) -> Marginal:
        """This model with the site integrated out, on the patterns of the answers."""
        site, axis, other = self.integrated
        patterns = Patterns.of(data, axis, other)
        nodes = self.num_nodes(patterns)
        return Marginal(OnNodes(self, nodes), patterns, site, OnNodes(self, 2 * nodes - 1))


class OnScale[Data: Judgements](Integrable[Data]):
    """Model of levels of a scale, which depend on a standard normal number of each name."""

    @abc.abstractmethod
    def answers_at(
        self, value: Float[Array, " *row"], other: Array, sites: Values, num_levels: int
    ) -> dist.Distribution:
        """Distribution of answers."""

    def generate(self, data: Data) -> None:
        site, axis, other = self.integrated
        number, num_others = (len(data.coords[name]) for name in (axis, other))
        value = sampled(site, dist.Normal(0.0, 1.0), **{axis: number})
        num_levels = len(data.answers())
        sites = self.sample_others(num_others, num_levels)
        answer = self.answers_at(value[data.codes(axis)], data.codes(other), sites, num_levels)
        given = getattr(data, data.answer)
        sampled(self.observed, Repeated(answer, data.count), obs=given, row=data.num_rows)

    def rows_at(self, node: Nodes, sites: Values, data: Patterns) -> Rows:
        shape = (data.num_facets, len(node))
        code = jnp.broadcast_to(jnp.arange(data.num_facets)[:, None], shape)
        answers = self.answers_at(jnp.broadcast_to(node, shape), code, sites, data.num_answers)
        return Tabulated(answers, jnp.asarray(data.facet)), data.count

    def start(self, data: Any) -> Values:
        site, axis, _ = self.integrated
        return {site: data.standard_levels(axis)} | self.start_others(data)

    def counts(self, data: Any) -> Float[np.ndarray, "other level"]:
        """Number of each answer by name on the other axis."""
        return data.counts() if isinstance(data, Patterns) else data.answers_by(self.integrated[2])


@dataclass(frozen=True)
class OnNodes(Model[Patterns]):
    """A model with one number of each name along an axis integrated out."""

    model: Any
    nodes: int

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        return self.model.other_blocks

    def generate(self, data: Patterns) -> None:
        sites = self.model.sample_others(data.num_facets, data.num_answers)
        node = jnp.linspace(-_REACH, _REACH, self.nodes)
        rows, count = self.model.rows_at(node, sites, data)
        normal, number = dist.Categorical(logits=-(node**2) / 2), data.num_units
        of_patterns = data.group, number, count
        mixture = GroupedMixture(normal, rows, *of_patterns, repeats=data.repeats)
        facts = {"unit": "pattern", "latent_class": "node", "cell": self.model.integrated[2]}
        sampled("given", mixture, obs=data.given, infer=facts, pattern=number)

    def start(self, data: Patterns) -> Values:
        return self.model.start_others(data)

    def why_not(self, data: Patterns) -> str | None:
        nodes, rows, most = self.nodes, data.num_rows, self.model.most_cells
        few = rows * nodes <= most
        return None if few else worded("many_cells", nodes=nodes, rows=rows, most=most)


def number_at(distance: float) -> int:
    """Number of nodes of a standard normal number at some distance of each other."""
    return max(_FEWEST, 2 * int(np.ceil(_REACH / distance)) + 1)


def _signal(patterns: Patterns, weight: np.ndarray, group: np.ndarray, number: np.ndarray) -> float:
    """Variance of the answers between patterns over that within them, from ¼ to 10."""
    if patterns.given is None or not len(group):
        return 1.0
    repeats = np.asarray(patterns.repeats, np.float64)
    given = np.asarray(patterns.given, np.float64)
    mean = np.bincount(group, weight * given, len(number)) / np.maximum(number, 1e-12)
    overall = np.average(mean, weights=repeats * number)
    between = np.average((mean - overall) ** 2, weights=repeats * number)
    within = np.average((given - mean[group]) ** 2, weights=weight * repeats[group])
    return float(np.clip(between / max(within, 1e-12), 0.25, 10.0))

"""Rewards of each annotator's own: scattered about those of the crowd, or in few dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import scipy.sparse
from jaxtyping import Array, Float
from scipy.sparse.linalg import svds
from scipy.special import expit

from raters.errors import Reason
from raters.judgements.comparisons import Comparisons
from raters.model import Rotation, Shift, Values
from raters.terms.base import Prepared, Term, sample_vectors, sampled, worded
from raters.terms.rewards import Rewards

# Numbers of a draw from which on a warning says how much memory draws take.
_MANY = 500_000
# Up to so many entries a table is taken apart as a dense matrix.
_DENSE = 1_000_000


@dataclass(frozen=True)
class Tastes(Prepared):
    r"""Rewards of each annotator's own about those of the crowd,
    :math:`r_i + d_{ki} - r_j - d_{kj}`, with :math:`d_{ki} \sim \mathrm{Normal}(0, \tau)`; see
    `HierarchicalBTL`.

    Parameters
    ----------
    scale, spread : float, optional
        Standard deviations of the crowd's rewards and of the tastes d; learned unless given.
    own : bool
        Learn a spread of tastes for each annotator.
    """

    linear = ("reward", "taste")
    symmetries = (Shift("reward"), Shift("taste", axis=1))

    scale: float | None = None
    spread: float | None = None
    own: bool = False

    @property
    def scales(self) -> tuple[str, ...]:  # type: ignore[override]
        of_tastes = ("taste_spread",) if self.spread is None else ()
        return (*Rewards(self.scale).scales, *of_tastes, *("taste_spread_median",) * self.own)

    def prepare(self, data: Comparisons) -> Any:
        reward_scale, spread = Rewards(self.scale).prepare(data), self._spread(data)
        common = Rewards().finish(data, reward_scale)
        annotators, items = ("annotator", data.num_annotators), ("item", data.num_items)
        return common, sample_vectors("taste", spread, annotators, items)

    def _spread(self, data: Comparisons) -> Float[Array, ...] | float:
        if self.spread is not None:
            return self.spread
        if not self.own:
            return numpyro.sample("taste_spread", dist.LogNormal(jnp.log(0.5), 1.0))
        median = numpyro.sample("taste_spread_median", dist.LogNormal(jnp.log(0.5), 1.0))
        scatter = numpyro.sample("taste_spread_scatter", dist.LogNormal(jnp.log(0.5), 0.5))
        prior = dist.LogNormal(jnp.log(median), scatter)
        return sampled("taste_spread", prior, annotator=data.num_annotators)[:, None]

    def finish(self, data: Comparisons, ready: Any) -> Float[Array, " *row"]:
        (common, taste), who = ready, data.annotator
        return common + taste[who, data.first] - taste[who, data.second]

    def start(self, data: Comparisons) -> Values:
        start = Rewards(self.scale).start(data)
        start["taste"] = jnp.zeros((data.num_annotators, data.num_items))
        half = jnp.asarray(0.5)
        if self.own:
            start["taste_spread"] = jnp.full(data.num_annotators, 0.5)
            start |= {"taste_spread_median": half, "taste_spread_scatter": half}
        elif self.spread is None:
            start["taste_spread"] = half
        return start

    def warnings(self, data: Comparisons) -> tuple[str, ...]:
        messages, annotators, items = without_tastes(data), data.num_annotators, data.num_items
        if annotators * items > _MANY:
            messages += (worded("many_tastes", annotators=annotators, items=items),)
        return messages


@dataclass(frozen=True)
class Factors(Term):
    r"""Rewards of each annotator's own in few dimensions,
    :math:`r_i - r_j + \sum_d u_{kd} (v_{id} - v_{jd})`; see `FactorBTL`.

    Parameters
    ----------
    number : int
        Number of dimensions, at most the number of items less one.
    """

    symmetries = (Shift("reward"), Shift("loading", axis=0), Rotation(("position", "loading")))

    number: int = 1

    def sample(self, data: Comparisons) -> Float[Array, " *row"]:
        annotators, items = ("annotator", data.num_annotators), ("item", data.num_items)
        dimensions = ("dimension", self.number)
        reward_scale = Rewards().prepare(data)
        loading_scale = numpyro.sample("loading_scale", dist.LogNormal(jnp.log(0.5), 1.0))
        position = sample_vectors("position", 1.0, annotators, dimensions)
        value = Rewards().finish(data, reward_scale)
        loading = sample_vectors("loading", loading_scale, items, dimensions)
        for place in range(self.number):
            # One index for each row, as the conjugate updates read it.
            column = np.full(np.shape(data.first), place)
            offered = loading[data.first, column] - loading[data.second, column]
            value = value + position[data.annotator, column] * offered
        return value

    def start(self, data: Comparisons) -> Values:
        start = Rewards().start(data)
        reward = np.asarray(start["reward"])
        first, second, who = (np.asarray(c) for c in (data.first, data.second, data.annotator))
        expected = np.asarray(data.weight, np.float64) * expit(reward[first] - reward[second])
        wins = expected if data.wins is None else np.asarray(data.wins, np.float64)
        cells = np.concatenate([wins - expected, expected - wins])
        codes = (np.tile(who, 2), np.concatenate([first, second]))
        shape = (data.num_annotators, data.num_items)
        table = scipy.sparse.coo_array((cells, codes), shape).tocsr()
        start["position"] = components(table, self.number)
        loading = np.full((data.num_items, self.number), 0.1)
        return start | {"loading": loading, "loading_scale": 0.5}

    def why_not(self, data: Comparisons) -> str | None:
        if self.number < data.num_items:
            return None
        problem = f"is more than {data.num_items} items can differ in"
        expected = f"it must be {max(data.num_items - 1, 1)} at most"
        return Reason("num_dimensions", self.number, problem, expected)

    def warnings(self, data: Comparisons) -> tuple[str, ...]:
        return without_tastes(data)


def without_tastes(data: Comparisons) -> tuple[str, ...]:
    """Warn of a single annotator, and of annotators with one vote each."""
    votes = np.asarray(data.judgements_by("annotator"))
    if (votes > 0).sum() < 2:
        return (worded("one_taste"),)
    return (worded("single_votes"),) if votes.max() < 2 else ()


def components(table: scipy.sparse.csr_array, number: int) -> Float[np.ndarray, "person dimension"]:
    """First left singular vectors of a table, with entries of about 1."""
    if min(table.shape) <= number or not table.count_nonzero():
        return np.zeros((table.shape[0], number))
    if table.shape[0] * table.shape[1] <= _DENSE:
        left = np.linalg.svd(table.toarray(), full_matrices=False)[0][:, :number]
    else:
        # A start of equal entries may be one that the table takes to 0.
        begin = np.random.default_rng(0).normal(size=min(table.shape))
        left = svds(table, k=number, v0=begin, return_singular_vectors="u")[0][:, ::-1]
    return np.asarray(left) * np.sqrt(table.shape[0])

"""Worths of items that are ranked, by all annotators alike or by those of each type."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import scipy.sparse
import scipy.sparse.csgraph
from jaxtyping import Array, Float, Int

from raters.judgements.counts import mean_ranks, standing
from raters.judgements.names import shorten
from raters.judgements.rankings import Rankings
from raters.model import Shift, Symmetry, Values
from raters.terms.rewards import Scaled
from raters.terms.types import Mixed, data_warnings

# A prior of worths of this scale or a wider one does not say where infinite ones lie.
_FLAT = 10.0


@dataclass(frozen=True)
class Worths(Scaled):
    r"""Worths of the items offered, :math:`u_i \sim \mathrm{Normal}(0, s)`.

    Parameters
    ----------
    scale : float, optional
        Standard deviation s; learned, with :math:`s \sim \mathrm{LogNormal}(0, 1)`, unless given.
    """

    linear = ("worth",)
    scale: float | None = None
    symmetries = (Shift("worth"),)

    def finish(self, data: Rankings, ready: Any) -> Float[Array, "ranking position"]:
        with numpyro.plate("item", data.num_items):
            worth = numpyro.sample("worth", dist.Normal(0.0, ready))
        return worth[item_of(data)]

    def start(self, data: Rankings) -> Values:
        """Log-odds of being ahead of another item, centred."""
        before = table_of_pairs(data, tied=0.5)
        worth = np.log((before.sum(1) + 1) / (before.sum(0) + 1))
        return self.started(worth - worth.mean())

    def warnings(self, data: Rankings) -> tuple[str, ...]:
        return of_unbounded(data, self.scale)


@dataclass(frozen=True)
class WorthTypes(Mixed):
    r"""Worths of each of some types of annotators, of which the type is summed out, as `Types`."""

    linear = ("worth",)
    word = "ranking"

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:  # type: ignore[override]
        return (Shift("worth", axis=0), *super().symmetries)

    def finish(self, data: Rankings, ready: Any) -> Float[Array, "ranking position type"]:
        return ready[item_of(data)]

    def profiles(self, data: Rankings) -> Float[np.ndarray, "annotator item"]:
        # The mean place of each item: 1 the first of all, −1 the last, 0 not offered.
        shape = data.num_annotators, data.num_items
        if data.place is None:
            return np.zeros(shape)
        offered, weight = np.asarray(data.offered), np.asarray(data.weight, float)[:, None]
        there = (offered >= 0) & (weight > 0)
        size = there.sum(1, keepdims=True)
        score = 1 - 2 * (mean_ranks(np.asarray(data.place), there) - 1) / np.maximum(size - 1, 1)
        row, position = np.nonzero(there)
        cells = np.asarray(data.annotator)[row], offered[row, position]
        times = np.broadcast_to(weight, offered.shape)[row, position]
        total, number = (
            scipy.sparse.coo_array((part, cells), shape=shape).toarray()
            for part in (score[row, position] * times, times)
        )
        return np.asarray(total / (number + 1))

    def start_of_parts(self, parts: Sequence[Rankings]) -> Values:
        starts = [Worths(self.scale).start(part) for part in parts]
        joined = {name: jnp.stack([start[name] for start in starts], -1) for name in starts[0]}
        return {name: jnp.mean(one) if one.ndim == 1 else one for name, one in joined.items()}

    def warnings(self, data: Rankings) -> tuple[str, ...]:
        number = np.bincount(np.asarray(data.annotator), num_choices(data), data.num_annotators)
        of_types = data_warnings(self.number, number, "choice")
        return (*of_types, *of_unbounded(data, self.scale))


def item_of(data: Rankings) -> Int[Array, "ranking position"]:
    """Return the code of the item in each position, any where there is none."""
    return jnp.maximum(jnp.asarray(data.offered), 0)


def table_of_pairs(data: Rankings, *, tied: float) -> scipy.sparse.csr_array:
    """Return how often each item came before each other one; a tie counts as `tied` for both."""
    table = scipy.sparse.csr_array((data.num_items, data.num_items))
    if data.place is None:
        return table
    offered, place = np.asarray(data.offered), np.asarray(data.place)
    order, weight = standing(place), np.asarray(data.weight, np.float64)
    for one, other in itertools.permutations(range(offered.shape[1]), 2):
        is_tied = (place[:, one] > 0) & (place[:, one] == place[:, other])
        ahead = np.where(is_tied, tied, order[:, one] < order[:, other]) * weight
        rows = (offered[:, one] >= 0) & (offered[:, other] >= 0) & (ahead > 0)
        cells = offered[rows, one], offered[rows, other]
        table = table + scipy.sparse.csr_array((ahead[rows], cells), shape=table.shape)
    return table


def num_choices(data: Rankings) -> Float[np.ndarray, " ranking"]:
    """Return the number of choices that each ranking is made of, times its count."""
    depth, size = np.asarray(data.depth), (np.asarray(data.offered) >= 0).sum(1)
    number = np.minimum(depth, np.maximum(size - 1, 0))
    if data.lowest is not None:
        number = number + ((np.asarray(data.lowest) > 0) & (size - depth > 1))
    return np.asarray(number * np.asarray(data.weight, float))


def of_unbounded(data: Rankings, scale: float | None) -> tuple[str, ...]:
    """Warn of items whose worths only the prior bounds, where that is wide."""
    if scale is None or scale < _FLAT or data.place is None:
        return ()
    before = table_of_pairs(data, tied=1.0)
    number, part = scipy.sparse.csgraph.connected_components(before, connection="strong")
    if number == 1:
        return ()
    main = np.bincount(part).argmax()
    names = [data.items[code] for code in np.flatnonzero(part != main)]
    return (
        f"{len(names)} item(s) have no most likely worth: there is no chain of rankings in"
        " which they come before, and one in which they come behind, the rest, so that the"
        f" wide prior alone (worth_scale={scale:g}) bounds them: {shorten(names)}; leave them"
        " out, or learn the scale: worth_scale=None",
    )

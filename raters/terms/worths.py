"""Worths of items that are ranked, by all annotators alike or by those of each type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import scipy.sparse
import scipy.sparse.csgraph
from jaxtyping import Array, Float

from raters.distributions.choices import item_of
from raters.judgements.counts import mean_ranks
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
        return worth[item_of(data.offered)]

    def start(self, data: Rankings) -> Values:
        """Log-odds of being ahead of another item, centred."""
        ahead, behind = _won_and_lost(data)
        worth = np.log((ahead + 1) / (behind + 1))
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
        return ready[item_of(data.offered)]

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


def _won_and_lost(data: Rankings) -> tuple[Float[np.ndarray, " item"], Float[np.ndarray, " item"]]:
    """Return how often each item came before another one, and behind one."""
    offered, count = np.asarray(data.offered), np.asarray(data.weight, np.float64)
    if data.place is None:
        return np.zeros(data.num_items), np.zeros(data.num_items)
    place, there = np.asarray(data.place), offered >= 0
    size, placed = there.sum(1, keepdims=True), (place > 0).sum(1, keepdims=True)
    # The worst comes behind all the others, and each of those without a place before it.
    has_worst, is_worst = (place < 0).any(1, keepdims=True), place < 0
    # A tie counts as half for either.
    rank = mean_ranks(place, there)
    won = np.select([place > 0, is_worst], [size - rank, 0], has_worst) * count[:, None]
    lost = np.select([place > 0, is_worst], [rank - 1, size - 1], placed) * count[:, None]
    codes = offered[there]
    totals = (np.bincount(codes, part[there], data.num_items) for part in (won, lost))
    ahead, behind = totals
    return ahead, behind


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
    before = _before(data)
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


def _before(data: Rankings) -> scipy.sparse.coo_array:
    """Return which items came directly before which, as a table of arcs."""
    offered, place = np.asarray(data.offered), np.asarray(data.place)
    rows = np.asarray(data.weight) > 0
    # Those without a place are behind the last one that has one.
    rank = np.where(place > 0, place, np.where(offered >= 0, data.depth[:, None] + 1, 0))[rows]
    codes, depth = offered[rows], np.asarray(data.depth)[rows]
    in_place = np.full((len(codes), int(depth.max(initial=0)) + 2), -1)
    row, position = np.nonzero((rank > 0) & (place[rows] > 0))
    in_place[row, rank[row, position]] = codes[row, position]
    # Items that tie come before and behind the one that stands for them, and leave a gap.
    tied, single = codes[row, position], in_place[row, rank[row, position]]
    last = np.maximum.accumulate(np.where(in_place >= 0, np.arange(in_place.shape[1]), 0), axis=1)
    in_place = np.take_along_axis(in_place, last, axis=1)
    row, position = np.nonzero(rank > 1)
    before, behind = in_place[row, rank[row, position] - 1], codes[row, position]
    before, behind = np.concatenate([before, tied, single]), np.concatenate([behind, single, tied])
    # The worst is behind all the others.
    is_worst = place[rows] < 0
    worst = np.where(is_worst, codes, 0).sum(1)
    row, position = np.nonzero((place[rows] == 0) & (codes >= 0) & is_worst.any(1, keepdims=True))
    before, behind = np.append(before, codes[row, position]), np.append(behind, worst[row])
    shape = data.num_items, data.num_items
    return scipy.sparse.coo_array((np.ones(len(before), bool), (before, behind)), shape=shape)

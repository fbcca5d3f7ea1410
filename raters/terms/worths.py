"""Worths of items that are ranked, by all annotators alike or by those of each type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import scipy.sparse
from jaxtyping import Array, Float

from raters.distributions.choices import item_of
from raters.judgements.counts import mean_ranks
from raters.judgements.rankings import Rankings
from raters.model import Shift, Symmetry, Values
from raters.terms.base import sampled
from raters.terms.rewards import Scaled
from raters.terms.types import Mixed, data_warnings


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
        worth = sampled("worth", dist.Normal(0.0, ready), item=data.num_items)
        return worth[item_of(data.offered)]

    def start(self, data: Rankings) -> Values:
        """Log-odds of being ahead of another item, centred."""
        ahead, behind = _won_and_lost(data)
        worth = np.log((ahead + 1) / (behind + 1))
        return self.started(worth - worth.mean())


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
        return data_warnings(self.number, number, "choice")


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

"""Sites, starts and warnings that the models of rankings share."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import scipy.sparse
import scipy.sparse.csgraph
from jaxtyping import Array, Float, Int

from raters.distributions.choices import PlackettLuce
from raters.judgements.names import shorten
from raters.judgements.rankings import Rankings
from raters.model import Values

# Utility of a position without an item, which is never chosen.
_NONE = -1e9
# A prior of worths of this scale or a wider one does not say where infinite ones lie.
_FLAT = 10.0


def worth_scale_site(fixed: float | None) -> Any:
    """Sample the standard deviation of the worths from LogNormal(0, 1), unless it is fixed."""
    return numpyro.sample("worth_scale", dist.LogNormal(0.0, 1.0)) if fixed is None else fixed


def worth_site(scale: Any, num_items: int) -> Float[Array, " item"]:
    """Sample a worth for each item."""
    with numpyro.plate("item", num_items):
        return numpyro.sample("worth", dist.Normal(0.0, scale))


def item_of(data: Rankings) -> Int[Array, "ranking position"]:
    """Return the code of the item in each position, any where there is none."""
    return jnp.maximum(jnp.asarray(data.offered), 0)


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


def worth_start(data: Rankings, scale: float | None) -> Values:
    """Return start values of the worths: log-odds of being ahead of another item, centred."""
    ahead, behind = _won_and_lost(data)
    worth = np.log((ahead + 1) / (behind + 1))
    start: Values = {"worth": jnp.asarray(worth - worth.mean())}
    if scale is None:
        start["worth_scale"] = jnp.asarray(max(float(np.std(worth)), 0.1))
    return start


def _won_and_lost(data: Rankings) -> tuple[Float[np.ndarray, " item"], Float[np.ndarray, " item"]]:
    """Return how often each item came before another one, and behind one."""
    offered, count = np.asarray(data.offered), np.asarray(data.weight, np.float64)
    if data.place is None:
        return np.zeros(data.num_items), np.zeros(data.num_items)
    place, there = np.asarray(data.place), offered >= 0
    size, placed = there.sum(1, keepdims=True), (place > 0).sum(1, keepdims=True)
    # The worst comes behind all the others, and each of those without a place before it.
    has_worst, is_worst = (place < 0).any(1, keepdims=True), place < 0
    won = np.select([place > 0, is_worst], [size - place, 0], has_worst) * count[:, None]
    lost = np.select([place > 0, is_worst], [place - 1, size - 1], placed) * count[:, None]
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
    row, position = np.nonzero(rank > 1)
    before, behind = in_place[row, rank[row, position] - 1], codes[row, position]
    # The worst is behind all the others.
    is_worst = place[rows] < 0
    worst = np.where(is_worst, codes, 0).sum(1)
    row, position = np.nonzero((place[rows] == 0) & (codes >= 0) & is_worst.any(1, keepdims=True))
    before, behind = np.append(before, codes[row, position]), np.append(behind, worst[row])
    shape = data.num_items, data.num_items
    return scipy.sparse.coo_array((np.ones(len(before), bool), (before, behind)), shape=shape)

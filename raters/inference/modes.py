"""Images of a point under changes of sign (reflection) and exchanges of classes (label switching):
the likelihood stays as it is, and the prior says how probable each of these modes is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations, permutations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from raters.inference.arrays import Rng, Scalar, Sites
from raters.judgements.connection import connected
from raters.model import Exchange, Mirror, Model, Sign, Values, moved_sites
from raters.program import Program
from raters.program.densities import log_joint, log_prior

# The largest parts of the judgements that have images of their own, at most so many.
_MOST_PARTS = 50
Within = Mapping[str, Bool[np.ndarray, "..."]]
# Order of the classes and part to try, of each of some images.
Tried = tuple[tuple[Any, Any], ...]


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["parts"],
    meta_fields=["symmetry", "orders", "broken"],
)
@dataclass(frozen=True)
class Images:
    """Mirror images of a point under one symmetry, of all entries or of parts of them; `broken`
    where the likelihood changes."""

    symmetry: Mirror
    orders: tuple[tuple[int, ...], ...] = ((),)
    broken: bool = False
    parts: Within = field(default_factory=dict)

    @property
    def num_parts(self) -> int:
        """Number of parts; 1 for images of all."""
        return next((len(entries) for entries in self.parts.values()), 1)

    def within(self, part: Any) -> Within:
        """Return the entries of a part."""
        return {name: entries[part] for name, entries in self.parts.items()}


def tries(moves: tuple[Images, ...], rng: Rng, size: tuple[int, ...]) -> Tried:
    """Return orders, shape (*size, class), and parts to try, shape size."""
    return tuple(
        (rng.choice(np.array(move.orders, int), size), rng.integers(move.num_parts, size=size))
        for move in moves
    )


def images(program: Program[Any]) -> tuple[Images, ...]:
    """Mirror images of all sites, of parts of the judgements, and of one judge of most of them."""
    found: list[Images] = []
    model, data = program.model, program.data
    if program.is_joint:
        return _of_several_kinds(program)
    for symmetry in model.symmetries:
        if isinstance(symmetry, Sign):
            found.append(Images(symmetry))
        elif isinstance(symmetry, Exchange):
            number = len(data.coords[data.axes[str(data.known)]])
            if number == 2 or not (symmetry.negated or symmetry.complemented):
                found.append(Images(symmetry, orders(number), data.num_known > 0))
    return (*found, *_of_parts(program, found), *_of_one_judge(program, found))


def _of_several_kinds(program: Program[Any]) -> tuple[Images, ...]:
    """Images under the symmetries of a model of several kinds."""
    model: Any = program.model
    orders = {
        model.named(name, move.symmetry): move
        for name, part in program.parts.items()
        for move in images(part)
        if isinstance(move.symmetry, Exchange) and not move.parts
    }
    return tuple(
        Images(one) if isinstance(one, Sign) else replace(orders[one], symmetry=one)
        for one in model.symmetries
        if isinstance(one, Sign) or one in orders
    )


def _of_parts(program: Program[Any], whole: list[Images]) -> list[Images]:
    """Images of single parts of the judgements, where these fall into several."""
    if not whole:
        return []
    found = connected(program.data)
    number = min(found.number, _MOST_PARTS)
    if number < 2:
        return []
    dims = {name: site.dims for name, site in program.sites.items()}
    images = []
    for move in whole:
        parts = {}
        for name in moved_sites(move.symmetry):
            axis = next(
                (one for one in (program.data.judge, *found.part) if one in dims[name]), None
            )
            if axis is not None:
                own = found.part[axis] == np.arange(number)[:, None]
                parts[name] = _along(own, axis, dims[name])
        # What all parts share, as the class frequencies, stays, and then the likelihood changes.
        shared = set(moved_sites(move.symmetry)) - set(parts)
        alone = isinstance(move.symmetry, Sign) and not shared
        if parts:
            images.append(replace(move, broken=not alone, parts=parts))
    return images


def _of_one_judge(program: Program[Any], whole: list[Images]) -> list[Images]:
    """Images in which a judge of more than half of all judgements changes sides."""
    judge = program.data.judge
    number = program.data.judgements_by(judge)
    most = int(np.argmax(number))
    if not number.sum() < 2 * number[most] < 2 * number.sum():
        return []
    alone, all_others = (np.arange(len(number)) == most)[None], np.ones((1, 1), bool)
    images = []
    for move in whole:
        if isinstance(move.symmetry, Sign):
            dims = {name: program.sites[name].dims for name in move.symmetry.sites}
            parts = {
                name: _along(alone if judge in own else all_others, judge, own)
                for name, own in dims.items()
            }
            images.append(replace(move, broken=True, parts=parts))
    return images


def _along(
    own: Bool[np.ndarray, "part name"], axis: str, dims: Sites
) -> Bool[np.ndarray, "part ..."]:
    """Entries of each part along one axis of a site, to be broadcast over its others."""
    return own.reshape(len(own), *(-1 if one == axis else 1 for one in dims))


def mirrored(
    symmetry: Mirror, values: Values, order: Any = (), within: Within | None = None
) -> Values:
    """The mirror image of a point, or of draws."""
    image = _image_of_all(symmetry, values, order)
    if not within:
        return image
    # The entries are 0 or 1, so that nothing is rounded.
    return values | {
        name: image[name] * entries + values[name] * (1 - entries)
        for name, entries in ((name, 1 * entries) for name, entries in within.items())
    }


def _image_of_all(symmetry: Mirror, values: Values, order: Any) -> Values:
    if isinstance(symmetry, Sign):
        moved = values | {name: -values[name] for name in symmetry.sites}
        places = {name: np.array(places) for name, places in symmetry.exchanged}
        return moved | {name: moved[name].take(to, axis=-1) for name, to in places.items()}
    moved = values | {name: values[name].take(order, axis=axis) for name, axis in symmetry.sites}
    moved |= {name: -moved[name] for name in symmetry.negated}
    return moved | {name: 1 - moved[name] for name in symmetry.complemented}


def image_of(
    model: Model[Any],
    move: Images,
    data: Any,
    values: Values,
    order: Any,
    within: Within | None = None,
) -> tuple[Values, Scalar]:
    """The mirror image of a point, and its log odds against the point itself."""
    density = log_joint if move.broken else log_prior
    image = mirrored(move.symmetry, values, order, within)
    return image, density(model, data, image) - density(model, data, values)


def step(
    model: Model[Any],
    moves: tuple[Images, ...],
    data: Any,
    row: Any,
    values: Values,
    tried: Tried,
    key: Array,
) -> Values:
    """Metropolis steps to images, which leave the posterior invariant; the first unit is enough of
    the data where the likelihood stays."""
    for move, (order, part) in zip(moves, tried, strict=True):
        key, use = jax.random.split(key)
        whole = data if move.broken else row
        image, odds = image_of(model, move, whole, values, order, move.within(part))
        taken = jnp.log(jax.random.uniform(use)) < odds
        values = jax.tree.map(partial(jnp.where, taken), image, values)
    return values


Order = tuple[int, ...]

# Of up to so many classes all orders are tried (119 of five). Of more: exchanges of two, where
# there are up to so many (190 of 20 classes), the reversal, and shifts.
_FEW_CLASSES, _MOST_PAIRS = 5, 200


def orders(number: int) -> tuple[Order, ...]:
    """Orders of the classes other than their own, each with its inverse."""
    own = tuple(range(number))
    if number <= _FEW_CLASSES:
        return tuple(permutations(own))[1:]
    found = [own[::-1], *(own[by:] + own[:by] for by in range(1, number))]
    pairs = list(combinations(own, 2))
    for pair in pairs if len(pairs) <= _MOST_PAIRS else ():
        swapped = dict(zip(pair, pair[::-1], strict=True))
        found.append(tuple(swapped.get(one, one) for one in own))
    return tuple(dict.fromkeys(found))

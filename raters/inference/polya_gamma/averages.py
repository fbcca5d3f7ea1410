r"""Logits that are bilinear in the blocks, with their moments, and truncated normals.

With the entries :math:`x_s` that a row touches (its slots), its logit is
:math:`g_0 + \sum_s g_s x_s + \sum_{s < t} d_{st} x_s x_t`, where s and t are of different blocks.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from raters.errors import NotConjugateError
from raters.inference.arrays import Entries, EntryArray, PerRow, Sites
from raters.inference.polya_gamma.conditionals import observation
from raters.inference.polya_gamma.rows import NotIndexed, StandIn, indexed, logits_of, split
from raters.model import Model, Values

# Slots of a row, whose pairs are all tried once.
_MOST_SLOTS = 40
# Nodes on which moments of truncated normals are integrated, and how far from the highest point of
# the density, in standard deviations and, in a tail, in its lengths.
_NODES, _FAR, _TAIL = 64, 9.0, 40.0

Slots = tuple[PerRow, ...]
# Covariance of the entries of two slots of one block, in each row.
Covariances = dict[tuple[int, int], PerRow]


class Forms(NamedTuple):
    """Logits as bilinear forms of the entries that each row touches, with votes and κ."""

    constant: PerRow
    linear: Slots
    cross: dict[tuple[int, int], PerRow]
    entry: tuple[Int[Array, " row"], ...]
    votes: PerRow
    kappa: PerRow

    def slots(self, entries: EntryArray) -> Slots:
        """Return the value of each slot in each row."""
        return tuple(entries[entry] for entry in self.entry)

    def covariances(
        self, owners: tuple[int, ...], covariance: Float[Array, "entry entry"]
    ) -> Covariances:
        """Return the covariances of all pairs of slots of one block."""
        number = len(self.entry)
        pairs = [(one, other) for other in range(number) for one in range(other + 1)]
        return {
            (one, other): covariance[self.entry[one], self.entry[other]]
            for one, other in pairs
            if owners[one] == owners[other]
        }

    def mean(self, slots: Slots) -> PerRow:
        """Return the logits at values of the slots, which are their means at those of the slots."""
        total = self.constant
        for slot, part in zip(slots, self.linear, strict=True):
            total = total + slot * part
        for (one, other), part in self.cross.items():
            total = total + part * slots[one] * slots[other]
        return total

    def square(self, slots: Slots, covariances: Covariances) -> PerRow:
        """Return the mean squares of the logits."""
        slopes = list(self.linear)
        for (one, other), part in self.cross.items():
            slopes[one] = slopes[one] + part * slots[other]
            slopes[other] = slopes[other] + part * slots[one]
        total = self.mean(slots) ** 2
        for (one, other), covariance in covariances.items():
            times = 1.0 if one == other else 2.0
            total = total + times * slopes[one] * slopes[other] * covariance

        def between(one: int, other: int) -> PerRow | float:
            return covariances.get((min(one, other), max(one, other)), 0.0)

        for (one, other), part in self.cross.items():
            for (third, fourth), also in self.cross.items():
                both = between(one, third) * between(other, fourth)
                both = both + between(one, fourth) * between(other, third)
                total = total + part * also * both
        return total


def forms_of(
    model: Model[Any], data: Any, values: Values, sites: Sites
) -> tuple[Forms, tuple[int, ...]]:
    """Record the logits of a program as bilinear forms of sites, with the site of each slot."""
    values = {name: jnp.asarray(value, float) for name, value in values.items()}
    forms, owners = recorded(model, data, values, sites)
    cross = {pair: part for pair, part in forms.cross.items() if np.any(np.asarray(part))}
    forms = forms._replace(cross=cross)
    rng = np.random.default_rng(0)
    size = sum(values[name].size for name in sites)
    point = jnp.asarray(0.2 + 0.6 * rng.uniform(size=size))
    actual = logits_of(model, data, values | split(point, values, sites))
    found = forms.mean(forms.slots(point))
    error = jnp.max(jnp.abs(found - actual) / (1 + jnp.abs(actual)), initial=0.0)
    if not error < 1e-4:
        raise NotConjugateError(
            f"the logits of {model.title} have products of entries of three blocks, of"
            f" which PGVI has no averages (they are off by {float(error):.2g}); use PGGibbs"
        )
    return forms, tuple(np.asarray(owners).tolist())


@partial(jax.jit, static_argnums=(0, 3))
def recorded(
    model: Model[Any], data: Any, values: Values, sites: Sites
) -> tuple[Forms, Int[np.ndarray, " slot"]]:
    """Run the program with stand-ins for sites, and differentiate its logits in their slots."""

    def run(point: list[list[Array]] | None) -> tuple[Array, Any]:
        given = {} if point is None else dict(zip(sites, point, strict=True))
        stand_ins: Values = {}
        for name in sites:
            slots = given.get(name)
            if values[name].ndim > 0:
                stand_ins[name] = StandIn(values[name], slots)
            elif slots is not None:
                (stand_ins[name],) = slots
        read = indexed(model, data, values | stand_ins)
        row = observation(read["fn"], read["value"])
        return row.logits, (row, stand_ins)

    try:
        logits, (row, asked) = run(None)
    except NotIndexed as error:
        raise NotImplementedError(
            "a block enters the logits otherwise than by its index"
        ) from error
    zero, entry, owners, begin = [], [], [], 0
    for number, name in enumerate(sites):
        entries = asked[name].entries if name in asked else [jnp.zeros((), int)]
        if any(one.size != logits.size and name in asked for one in entries):
            raise NotImplementedError(f"{name!r} is not indexed by an array with one entry a row")
        zero.append([jnp.zeros(one.shape) for one in entries])
        entry += [begin + jnp.broadcast_to(one.ravel(), logits.shape) for one in entries]
        owners += [number] * len(entries)
        begin += values[name].size
    if len(owners) > _MOST_SLOTS:
        most = f"{len(owners)} entries of the blocks (at most {_MOST_SLOTS})"
        raise NotImplementedError(f"each row touches {most}")
    leaves, tree = jax.tree.flatten(zero)

    def slope(slot: int, *leaves: Array) -> Array:
        # A logit depends on its own entry of each slot alone.
        along = [jnp.full_like(leaf, place == slot) for place, leaf in enumerate(leaves)]
        return jax.jvp(logits_at, leaves, tuple(along))[1]

    def logits_at(*leaves: Array) -> Array:
        return run(jax.tree.unflatten(tree, leaves))[0]

    def second(one: int, other: int) -> Array:
        along = [jnp.full_like(leaf, place == other) for place, leaf in enumerate(leaves)]
        return jax.jvp(partial(slope, one), tuple(leaves), tuple(along))[1]

    slots = range(len(leaves))
    pairs = [
        (one, other) for other in slots for one in range(other) if owners[one] != owners[other]
    ]
    forms = Forms(
        logits_at(*leaves),
        tuple(slope(slot, *leaves) for slot in slots),
        {(one, other): second(one, other) for one, other in pairs},
        tuple(entry),
        row.votes,
        row.kappa,
    )
    return forms, np.array(owners)


def truncated_moments(
    centre: Entries, deviation: Entries, low: Entries, high: Entries
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean, variance and entropy of truncated normals."""
    mean, variance = np.array(centre, np.float64), np.array(deviation, np.float64) ** 2
    entropy = (1 + np.log(2 * np.pi)) / 2 + np.log(deviation)
    bounded = np.flatnonzero(np.isfinite(low) | np.isfinite(high))
    if len(bounded) == 0:
        return mean, variance, entropy
    centre, deviation, low, high = (
        np.broadcast_to(part, mean.shape)[bounded, None] for part in (centre, deviation, low, high)
    )
    top = np.clip(centre, low, high)
    beyond = np.maximum(np.abs(centre - top), _TAIL / _FAR * deviation)
    reach = _TAIL * (deviation / beyond) * deviation
    begin, end = np.maximum(low, top - reach), np.minimum(high, top + reach)
    node, weight = np.polynomial.legendre.leggauss(_NODES)
    place = begin + (end - begin) * (node + 1) / 2
    log_density = -(((place - centre) / deviation) ** 2) / 2
    log_density -= log_density.max(1, keepdims=True)
    mass = np.exp(log_density) * weight
    total = mass.sum(1, keepdims=True)
    share = mass / total
    mean[bounded] = (share * place).sum(1)
    variance[bounded] = (share * (place - mean[bounded, None]) ** 2).sum(1)
    log_total = np.log(total * (end - begin) / 2)[:, 0]
    entropy[bounded] = log_total - (share * log_density).sum(1)
    return mean, variance, entropy

"""Gaussian full conditional of a block: sums over its rows, and a draw or the mode of them."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
from jax.scipy.linalg import solve_triangular
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int

from raters.inference.arrays import EntryArray, Matrix, PerRow, Rng, Scalar
from raters.inference.base import warn
from raters.inference.polya_gamma import augmentation
from raters.inference.polya_gamma.conditionals import (
    DENSE_LIMIT,
    MOST_STEPS,
    Gaussian,
    drawn_entries,
)
from raters.inference.polya_gamma.rows import Block, Rows, record
from raters.model import Model, Values
from raters.program import placing
from raters.program.placing import everywhere

# Copies of a sum on an accelerator, between which neighbouring rows alternate: they mostly have an
# entry in common, and would wait for each other. All copies have at most so many entries.
_COPIES, _ENTRIES = 256, 1 << 20
# Longest vector of float32 that is one atomic operation.
_LONGEST = 4
# Votes of a row up to which Devroye's sampler, whose cost is proportional to them, is the faster
# one, at most and in the mean, in so many rows or more.
_MOST_VOTES, _FEW_VOTES, _MANY = 15, 3.0, 4000
# Parts with more entries than this are solved by conjugate gradients together with all others.
_LARGEST_PART = 64


class How(NamedTuple):
    """Weights of rows and settings of their sums, static in compiled functions."""

    weights: Literal["mean", "curvature", "draw", "given"]
    mesh: Mesh | None = None
    single: bool = False
    few: bool = False
    accelerated: bool = False
    limit: int = DENSE_LIMIT

    @classmethod
    def of(cls, weights: Any, data: Any, limit: int = DENSE_LIMIT) -> How:
        """Return the settings for data where they are."""
        accelerated = jax.default_backend() != "cpu"
        return cls(weights, placing.mesh_of(data), accelerated=accelerated, limit=limit)


class Division(NamedTuple):
    """Parts of a block whose entries share no logits: the part of each entry, its place there, and
    1 at places of no entry."""

    part: Int[Array, " entry"]
    place: Int[Array, " entry"]
    empty: Float[Array, "part place"]


class Sums(NamedTuple):
    """Sums over the rows of a block."""

    prior: Gaussian
    shift: EntryArray
    diagonal: EntryArray
    across: Float[Array, "entry entry"] | Float[Array, "part place place"] | None
    log_likelihood: Scalar
    slots: Float[Array, "slot 0"]
    omega: Float[Array, "... row"] | None


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["data", "values", "classes", "division"],
    meta_fields=["model", "block"],
)
@dataclass(frozen=True)
class Reading:
    """Rows of a block of one kind of judgement, as they are read off the program."""

    model: Model[Any]
    block: Block
    data: Any
    values: Values
    classes: Any = None
    division: Division | None = None

    def rows(self) -> Rows:
        """Return the rows."""
        return record(self.model, self.data, self.values, self.block, self.classes)


# ------------------------------------------------------------------------------------------- sums


@partial(jax.jit, static_argnums=2)
def sums_of(reading: Reading, given: Any, how: How) -> Sums:
    """Read, weigh and add up the rows of a block; `given` is a key to draw ω, or ω."""
    data = reading.data
    pieces, rest = divmod(data.num_rows, size := placing.piece_of(data.num_rows))
    whole = rest or not pieces or not data.axes
    if whole or how.mesh is not None or reading.block.kind == "class":
        sums = added(reading.rows(), given, how, reading.division)
        return everywhere(sums._replace(omega=None), how.mesh)._replace(omega=sums.omega)
    # What is computed of all rows at a time takes several times the memory of the rows.
    names = [name for name, axes in data.arrays().items() if axes[0] == data.row]
    columns = {name: getattr(data, name) for name in names if getattr(data, name) is not None}
    if how.weights == "draw":
        own = jax.random.split(given, pieces)
    elif how.weights == "given":
        own = jnp.moveaxis(given.reshape(*given.shape[:-1], pieces, -1), -2, 0)
    else:
        own = None

    number = jnp.float32 if how.accelerated else float
    one = dataclasses.replace(data, **{name: column[:1] for name, column in columns.items()})
    prior = dataclasses.replace(reading, data=one).rows().prior

    def at(part: tuple[dict[str, Array], Any]) -> Sums:
        piece = dataclasses.replace(data, **part[0])
        rows = record(reading.model, piece, reading.values, reading.block, reading.classes, number)
        return added(rows._replace(prior=prior), part[1], how, reading.division)

    def add(total: Sums, part: tuple[dict[str, Array], Any]) -> tuple[Sums, Array | None]:
        more = at(part)
        same = more._replace(omega=None)
        added = jax.tree.map(jnp.add, total, same)._replace(prior=prior)
        return added, more.omega if keeps else None

    parts = (jax.tree.map(lambda one: one.reshape(pieces, size, *one.shape[1:]), columns), own)
    shapes = jax.eval_shape(lambda: at(jax.tree.map(lambda one: one[0], parts)))
    # Other blocks share what is drawn, and products of a large block need its weights.
    large = shapes.across is None and len(shapes.slots) > 1
    keeps = how.weights == "draw" or (large and how.weights != "given")
    zero = jax.tree.map(lambda one: jnp.zeros(one.shape), shapes)
    sums, kept = jax.lax.scan(add, zero._replace(omega=None), parts)
    if kept is not None:
        kept = jnp.moveaxis(kept, 0, -2).reshape(*kept.shape[1:-1], -1)
    return sums._replace(omega=given if how.weights == "given" else kept)


def added(rows: Rows, given: Any, how: How, division: Division | None) -> Sums:
    """Weigh rows, and add them up."""
    logits = rows.logits if rows.shift is None else rows.logits + rows.shift
    each, kappa, total = given, rows.kappa, jnp.zeros(())
    if how.weights == "draw":
        each = drawn_weights(given, rows.votes, logits, how)
    elif how.weights != "given":
        newton = how.weights == "curvature"
        weighing = augmentation.curvature if newton else augmentation.expectation
        each, kappa, total = weighing(logits, rows.votes, rows.kappa)
    omega = each
    if rows.shift is not None:
        omega, kappa = each.sum(0), (kappa - each * rows.shift).sum(0)
    shift, diagonal, across = _summed_up(rows, omega, kappa, how, division)
    slots = jnp.zeros((0 if rows.entry is None else len(rows.entry), 0))
    return Sums(rows.prior, shift, diagonal, across, total, slots, each)


def drawn_weights(key: Array, votes: PerRow, logits: PerRow, how: How) -> PerRow:
    """Draw ω of each row, or several of each."""
    # Row by row, so that the numbers do not depend on how many rows of count 0 come behind.
    votes, each = votes.T, logits.T
    given = key, votes.ravel(), each.ravel()
    if how.few and each.size >= _MANY:
        drawn = augmentation.draw_devroye(*given)
    else:
        drawn = augmentation.draw_series(*given, single=how.single)
    return drawn.reshape(each.shape).T


def _summed_up(
    rows: Rows, omega: PerRow, kappa: PerRow, how: How, division: Division | None
) -> tuple[Array, Array, Array | None]:
    """Add up the shift and the precision of rows."""
    size, target = len(rows.prior.mean), kappa - omega * rows.offset
    if rows.entry is None:
        across = (rows.weight.T * omega) @ rows.weight
        return rows.weight.T @ target, jnp.zeros(size, across.dtype), across
    pairs = list(zip(rows.entry, rows.weight, strict=True))
    dense = rows.prior.across is not None or (len(pairs) > 1 and size <= how.limit)
    if how.accelerated and dense and len(pairs) == 2 and size**2 <= _ENTRIES and division is None:
        return _summed_cells(size, pairs, omega, target)
    shift = diagonal = jnp.zeros(size)
    for entry, weight in pairs:
        both = _summed(size, entry, (weight * target, weight**2 * omega), how)
        shift, diagonal = shift + both[0], diagonal + both[1]
    if not dense and division is None:
        return shift, diagonal, None
    shape: tuple[int, ...] = (size, size)
    width = size
    if division is not None:
        shape, width = (*division.empty.shape, division.empty.shape[1]), division.empty.shape[1]
    half = jnp.zeros(shape)
    for number, (entry, weight) in enumerate(pairs):
        for other, also in pairs[:number]:
            cell = entry * size + other
            if division is not None:
                cell = division.part[entry] * width + division.place[entry]
                cell = cell * width + division.place[other]
            (each,) = _summed(half.size, cell, (weight * also * omega,), how)
            half += each.reshape(shape)
    return shift, diagonal, half + jnp.swapaxes(half, -1, -2)


def _summed_cells(
    size: int, pairs: list[tuple[Int[Array, " row"], PerRow]], omega: PerRow, target: PerRow
) -> tuple[Array, Array, Array]:
    """Add up rows of two entries by their pair of entries, in few operations for each row."""
    (entry, weight), (other, also) = pairs
    values = weight * target, also * target, weight**2 * omega, also**2 * omega
    cells = _vectors(size**2, entry * size + other, (*values, weight * also * omega))
    left, right, own, its, half = (cell.reshape(size, size) for cell in cells)
    return left.sum(1) + right.sum(0), own.sum(1) + its.sum(0), half + half.T


def _summed(
    size: int, entry: Int[Array, " row"], values: tuple[PerRow, ...], how: How
) -> tuple[EntryArray, ...]:
    """Add up the values of the rows of each entry."""
    if how.accelerated:
        return _vectors(size, entry, values)
    return tuple(jnp.zeros(size, value.dtype).at[entry].add(value) for value in values)


def _vectors(
    size: int, entry: Int[Array, " row"], values: tuple[PerRow, ...]
) -> tuple[EntryArray, ...]:
    """Add up the values of the rows of each entry as vectors, whose length is a power of two."""
    copies = max(min(_COPIES, _ENTRIES // size), 1)
    if copies > 1:
        entry = entry * copies + jnp.arange(len(entry), dtype=entry.dtype) % copies
    found: list[Array] = []
    for part in itertools.batched(values, _LONGEST):
        width = 1 << (len(part) - 1).bit_length()
        rest = [jnp.zeros_like(part[0])] * (width - len(part))
        vectors = jnp.stack([*part, *rest], axis=-1)
        total = jnp.zeros((size * copies, width), vectors.dtype).at[entry].add(vectors)
        total = total.reshape(size, copies, width).sum(1, dtype=float)
        found += [total[:, place] for place in range(len(part))]
    return tuple(found)


# ---------------------------------------------------------------------------------- draws and modes


@partial(jax.jit, static_argnums=4)
def solved(
    readings: list[Reading], sums: list[Sums], current: EntryArray, key: Array | None, how: How
) -> EntryArray:
    """Draw the entries of a block from its full conditional, or return the mode without a key."""
    prior, division = sums[0].prior, readings[0].division
    shift, diagonal = _totals(sums)
    if is_separate(sums):
        return _entry_by_entry(prior, shift, diagonal, current, key)
    if sum(one.across is not None for one in sums) < sum(len(one.slots) != 1 for one in sums):
        coupled = Coupled.of(readings, sums, how)
        if key is None:  # A loose tolerance is enough, since callers iterate from warm starts.
            return coupled.solve(shift, diagonal, current, 1e-6)
        # The mode of perturbed rows is a draw (Papandreou and Yuille 2010).
        precise = max(1e-8, 10 * float(jnp.finfo(shift.dtype).eps))
        return coupled.solve(shift + coupled.noise(key), diagonal, current, precise)
    factor, half = _halved(sums, division)
    if key is not None:
        half += jax.random.normal(key, half.shape)
    entries = solve_triangular(factor, half, lower=True, trans="T")[..., 0]
    if division is not None:
        entries = entries[division.part, division.place]
    return everywhere(entries, how.mesh)


def _totals(sums: list[Sums]) -> tuple[EntryArray, EntryArray]:
    """Return the shift and the diagonal of the precision of a block, with those of its prior."""
    prior = sums[0].prior
    shift = jnp.where(prior.precision > 0, prior.precision * prior.mean, 0.0)
    if prior.across is not None:
        shift += prior.across @ prior.mean
    shift += sum(one.shift for one in sums)
    return shift, prior.precision + sum(one.diagonal for one in sums)


def _halved(sums: list[Sums], division: Division | None) -> tuple[Array, Array]:
    """Return the Cholesky factor of the precision, of each part, and its solution for the shift."""
    prior, (shift, diagonal) = sums[0].prior, _totals(sums)
    dense = [one.across for one in sums if one.across is not None]
    across = sum(dense) if prior.across is None else sum(dense, prior.across)
    if division is None:
        precision = across + jnp.diag(diagonal)
    else:
        where = division.part, division.place
        # Under a nearly flat prior the rows leave the shift of a part open, beyond rounding.
        filled = division.empty.at[where].add(diagonal * (1 + 1e-12))
        precision = across + filled[..., None] * jnp.eye(filled.shape[1])
        shift = jnp.zeros_like(filled).at[where].set(shift)
    factor = jnp.linalg.cholesky(precision)
    return factor, solve_triangular(factor, shift[..., None], lower=True)


def entry_densities(sums: list[Sums], entries: EntryArray) -> EntryArray:
    """Return the log density of each entry of independent ones, but for a constant."""
    shift, diagonal = _totals(sums)
    return shift * entries - diagonal * entries**2 / 2


def log_integral(sums: list[Sums]) -> Scalar:
    """Return the log of the integral over a block, but for terms of offsets and of its prior."""
    shift, diagonal = _totals(sums)
    if is_separate(sums):
        return (shift**2 / diagonal - jnp.log(diagonal)).sum() / 2
    factor, half = _halved(sums, None)
    return (half**2).sum() / 2 - jnp.log(jnp.diagonal(factor)).sum()


def _entry_by_entry(
    prior: Gaussian, shift: EntryArray, diagonal: EntryArray, current: EntryArray, key: Array | None
) -> EntryArray:
    """Draw independent entries, truncated as the prior, or return their mode."""
    if key is None:
        # An entry with neither votes nor a prior precision keeps its value.
        known = diagonal > 0
        mean = jnp.where(known, shift / jnp.where(known, diagonal, 1.0), current)
        return jnp.clip(mean, prior.low, prior.high)
    return drawn_entries(key, shift, diagonal, prior.low, prior.high)


class Coupled(NamedTuple):
    """Rows of a coupled block with their weights, of which products with vectors are taken."""

    precision: EntryArray
    rows: list[tuple[Rows, PerRow]]
    how: How

    @classmethod
    def of(cls, readings: list[Reading], sums: list[Sums], how: How) -> Coupled:
        """Read the rows again; `sums` have their weights."""
        rows = []
        for reading, one in zip(readings, sums, strict=True):
            assert one.omega is not None
            weight = one.omega if one.omega.ndim == 1 else one.omega.sum(0)
            rows.append((reading.rows(), weight))
        return cls(sums[0].prior.precision, rows, how)

    def transposed(self, each: list[PerRow]) -> EntryArray:
        """Return the transposed design times a number of each row."""
        total = jnp.zeros_like(self.precision)
        for (rows, _), along in zip(self.rows, each, strict=True):
            if rows.entry is None:
                total += rows.weight.T @ along
                continue
            for entry, weight in zip(rows.entry, rows.weight, strict=True):
                total += _summed(len(total), entry, (weight * along,), self.how)[0]
        return total

    def times(self, entries: EntryArray) -> EntryArray:
        """Return the precision times a vector."""
        along = []
        for rows, omega in self.rows:
            if rows.entry is None:
                along.append(omega * (rows.weight @ entries))
                continue
            pairs = zip(rows.entry, rows.weight, strict=True)
            along.append(omega * sum(weight * entries[entry] for entry, weight in pairs))
        return everywhere(self.precision * entries + self.transposed(along), self.how.mesh)

    def noise(self, key: Array) -> EntryArray:
        """Draw a normal vector whose covariance is the precision."""
        key, use = jax.random.split(key)
        noise = jnp.sqrt(self.precision) * jax.random.normal(use, self.precision.shape)
        each = []
        for _, omega in self.rows:
            key, use = jax.random.split(key)
            each.append(jnp.sqrt(omega) * jax.random.normal(use, omega.shape, omega.dtype))
        return noise + self.transposed(each)

    def solve(
        self, right: EntryArray, diagonal: EntryArray, start: EntryArray, tolerance: float
    ) -> EntryArray:
        """Return the inverse of the precision times a vector, by conjugate gradients."""
        solution, _ = jax.scipy.sparse.linalg.cg(
            self.times,
            right,
            x0=start,
            tol=tolerance,
            maxiter=MOST_STEPS,
            M=lambda entries: entries / diagonal,
        )
        residual = jnp.linalg.norm(self.times(solution) - right) / jnp.linalg.norm(right)
        jax.debug.callback(partial(_warn_of, tolerance), residual)
        return solution


def _warn_of(tolerance: float, residual: Any) -> None:
    """Warn of a solution with a large relative residual."""
    if not residual <= 10 * tolerance:
        warn(
            f"conjugate gradients stopped after {MOST_STEPS} steps at a relative residual of"
            f" {residual:.1g} (asked for {tolerance:g}); the items are hardly connected: use NUTS,"
            " or fix the scale in the model"
        )


def is_separate(sums: list[Sums]) -> bool:
    """Return whether no two entries share a logit."""
    return all(len(one.slots) == 1 for one in sums) and sums[0].prior.across is None


# ------------------------------------------------------------------------------------- on the host


class Conditional:
    """Full conditional of a block on the host."""

    def __init__(self, readings: list[Reading], weights: Any, limit: int = DENSE_LIMIT) -> None:
        self.readings, self.how = readings, How.of(weights, readings[0].data, limit)
        self.sums = [sums_of(reading, None, self.how) for reading in readings]
        self.prior: Gaussian = jax.tree.map(np.asarray, self.sums[0].prior)
        self.shift, self.diagonal = map(np.asarray, _totals(self.sums))

    @property
    def precision(self) -> Matrix | None:
        """Return the precision as an array, where there is one."""
        across = [one.across for one in self.sums if one.across is not None]
        if is_separate(self.sums) or len(across) < sum(len(one.slots) != 1 for one in self.sums):
            return None
        precision = np.diag(self.diagonal) + sum(map(np.asarray, across))
        return np.asarray(precision if self.prior.across is None else precision + self.prior.across)

    def slope(self, current: np.ndarray) -> np.ndarray:
        """Return the derivative of the log density at a point."""
        slope = self.shift - _times(self.readings, self.sums, current, self.how)
        if self.prior.across is not None:
            slope -= self.prior.across @ current
        return np.asarray(slope)

    def draws(self, keys: Array, current: np.ndarray) -> np.ndarray:
        """Return a draw by each key."""
        return np.asarray(drawn_by_each(self.readings, self.sums, current, keys, self.how))

    def variances(self, rng: Rng, probes: int) -> np.ndarray:
        """Return the variance of each entry, the bounds aside: of entries that share logits, from
        so many random vectors."""
        if is_separate(self.sums):
            return np.asarray(1 / np.maximum(self.diagonal, 1e-300))
        if (precision := self.precision) is not None:
            return np.diag(np.linalg.inv(precision))
        # E z ∘ P⁻¹z for random signs z (Bekas, Kokiopoulou and Saad 2007).
        signs = rng.choice([-1.0, 1.0], (probes, len(self.shift)))
        given = self.readings, self.sums
        solved = [_inverse_times(*given, sign, self.diagonal, self.how) for sign in signs]
        return np.mean(signs * np.asarray(solved), axis=0)


@partial(jax.jit, static_argnums=4)
def drawn_by_each(
    readings: list[Reading], sums: list[Sums], current: EntryArray, keys: Array, how: How
) -> Float[Array, "draw entry"]:
    """Draw the entries of a block by each key."""
    return jax.lax.map(lambda key: solved(readings, sums, current, key, how), keys)


@partial(jax.jit, static_argnums=3)
def _times(readings: list[Reading], sums: list[Sums], entries: Array, how: How) -> EntryArray:
    return Coupled.of(readings, sums, how).times(entries)


@partial(jax.jit, static_argnums=4)
def _inverse_times(
    readings: list[Reading], sums: list[Sums], right: Array, diagonal: Array, how: How
) -> EntryArray:
    coupled = Coupled.of(readings, sums, how)
    return coupled.solve(right, diagonal, jnp.zeros_like(right), 1e-4)


# ------------------------------------------------------------------------------- what is read once


def first_look(readings: list[list[Reading]], how: How) -> tuple[How, tuple[Division | None, ...]]:
    """Return the settings for the numbers of votes, and the parts that each block falls into."""
    most, mean, entries = _looked_at(readings, how.mesh)
    divisions = [_division_of(*block) for block in zip(readings, entries, strict=True)]
    single, few = bool(most <= 1), bool((most <= _MOST_VOTES) & (mean < _FEW_VOTES))
    few = few and not (single or how.accelerated or how.mesh)
    return how._replace(single=single, few=few), tuple(divisions)


@partial(jax.jit, static_argnums=1)
def _looked_at(
    readings: list[list[Reading]], mesh: Mesh | None
) -> tuple[Scalar, Scalar, list[Any]]:
    """Return the largest number of votes of a row, the largest mean number of a block, and the
    entries of blocks that may divide."""
    most, mean, entries = jnp.zeros(()), jnp.zeros(()), []
    for block in readings:
        rows = [reading.rows() for reading in block]
        for votes in (one.votes for one in rows if block[0].block.kind != "class"):
            most, mean = jnp.maximum(most, votes.max()), jnp.maximum(mean, votes.mean())
        may = len(rows) == 1 and rows[0].entry is not None and len(rows[0].entry) > 1
        may = may and mesh is None and rows[0].prior.across is None
        may = may and block[0].block.kind == "rows" and not block[0].block.colours
        may = may and any(jnp.ndim(block[0].values[name]) > 1 for name in block[0].block.sites)
        entries.append(rows[0].stacked().entry if may else None)
    return *everywhere((most, mean), mesh), entries


def _division_of(readings: list[Reading], entry: Int[Array, "slot row"] | None) -> Division | None:
    """Divide a site with two axes by the entries that its rows connect, where parts are small."""
    if entry is None:
        return None
    size = len(readings[0].block.flat(readings[0].values))
    first, *others = np.asarray(entry)
    links = np.tile(first, len(others)), np.concatenate(others)
    graph = scipy.sparse.coo_array((np.ones(len(links[0]), bool), links), shape=(size, size))
    _, part = scipy.sparse.csgraph.connected_components(graph, directed=False)
    count = np.bincount(part)
    if count.max() > _LARGEST_PART:
        return None
    order = np.argsort(part, kind="stable")
    place = np.empty(size, int)
    place[order] = np.arange(size) - np.repeat(np.cumsum(count) - count, count)
    empty = np.ones((len(count), count.max()))
    empty[part, place] = 0.0
    return Division(jnp.asarray(part), jnp.asarray(place), jnp.asarray(empty))

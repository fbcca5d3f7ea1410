"""Conditionals of rows on devices: one compiled function adds them up, and only sums leave."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int

from raters.inference.arrays import EntryArray, Matrix, PerRow, Rng, Scalar
from raters.inference.polya_gamma import augmentation, conditionals
from raters.inference.polya_gamma.rows import Block, Rows, record
from raters.model import Model, Values
from raters.program import placing
from raters.program.placing import everywhere, mesh_of

# Copies of a sum on an accelerator, between which neighbouring rows alternate: they mostly have an
# entry in common, and would wait for each other. All copies have at most so many entries.
_COPIES, _ENTRIES = 256, 1 << 20
# Longest vector of float32 that is one atomic operation.
_LONGEST = 4
# Fewer entries are solved for on the host.
_FEW = 200


class Sums(NamedTuple):
    """Sums over the rows of a block."""

    prior: conditionals.Gaussian
    shift: EntryArray
    diagonal: EntryArray
    across: Float[Array, "entry entry"] | None
    log_likelihood: Scalar
    slots: Float[Array, "slot 0"]
    omega: Float[Array, "... row"] | None


def conditional_on_devices(
    model: Model[Any],
    data: Any,
    values: Values,
    block: Block,
    weights: augmentation.Expected | augmentation.Drawn,
    classes: Any,
    *,
    joint: bool,
) -> conditionals.Conditional:
    """Assemble the full conditional of a block of log-odds from rows that stay on devices."""
    which, given = (block.kind, block.column), None
    how = _How("mean", conditionals.DENSE_LIMIT, mesh_of(data), accelerated=accelerated())
    if isinstance(weights, augmentation.Drawn):
        known = weights.omega.get(which)
        given = augmentation.key_of(weights.rng) if known is None else known
        how = how._replace(weights="draw" if known is None else "given", single=weights.single)
    elif weights.weighing is augmentation.curvature:
        how = how._replace(weights="curvature")
    sums = _sums(model, data, values, block, classes, given, how)
    if isinstance(weights, augmentation.Drawn):
        weights.omega[which] = sums.omega
    else:
        weights.log_likelihood += float(sums.log_likelihood)
    prior, slots = jax.tree.map(np.asarray, sums.prior), len(sums.slots)
    bounded = bool(np.isfinite(prior.low).any() or np.isfinite(prior.high).any())
    if slots != 1 and bounded and not joint:
        raise NotImplementedError(conditionals.BOUNDED)
    found: conditionals.Conditional
    if sums.across is not None and how.accelerated and len(prior.mean) >= _FEW:
        found = DenseOnDevices(prior, sums.across)
    elif sums.across is not None:
        found = conditionals.Dense(prior)
        found.across += np.asarray(sums.across)
    elif slots == 1:
        found = conditionals.Diagonal(prior)
    else:
        assert sums.omega is not None
        weight = sums.omega if sums.omega.ndim == 1 else sums.omega.sum(0)
        reading = _Reading(model, data, values, block, classes, weight, how)
        found = OnDevices(prior, reading)
    found.shift += np.asarray(sums.shift)
    found.diagonal += np.asarray(sums.diagonal)
    return found


class _How(NamedTuple):
    """Settings of the sums of a block."""

    weights: Literal["mean", "curvature", "draw", "given"]
    limit: int
    mesh: Mesh | None
    single: bool = False
    accelerated: bool = False


def accelerated() -> bool:
    """Return whether JAX computes on an accelerator."""
    return jax.default_backend() != "cpu"


@partial(jax.jit, static_argnums=(0, 3, 6))
def _sums(
    model: Model[Any], data: Any, values: Values, block: Block, classes: Any, given: Any, how: _How
) -> Sums:
    """Read, weigh and add up the rows of a block; `given` is a key to draw ω, or ω."""
    pieces, rest = divmod(data.num_rows, size := placing.piece_of(data.num_rows))
    whole = rest or not pieces or not data.axes
    if whole or how.mesh is not None or block.kind == "class":
        sums = _added(record(model, data, values, block, classes), given, how)
        return everywhere(sums._replace(omega=None), how.mesh)._replace(omega=sums.omega)
    # What is computed of all rows at a time takes several times the memory of the rows.
    names = [name for name, axes in data.arrays().items() if axes[0] == data.row]
    columns = {name: getattr(data, name) for name in names if getattr(data, name) is not None}
    if how.weights == "draw":
        own = jax.random.split(jax.random.wrap_key_data(given), pieces)
    elif how.weights == "given":
        own = jnp.moveaxis(given.reshape(*given.shape[:-1], pieces, -1), -2, 0)
    else:
        own = None

    number = jnp.float32 if how.accelerated else float
    one = dataclasses.replace(data, **{name: column[:1] for name, column in columns.items()})
    prior = record(model, one, values, block, classes).prior

    def at(part: tuple[dict[str, Array], Any]) -> Sums:
        piece = dataclasses.replace(data, **part[0])
        rows = record(model, piece, values, block, classes, number)
        return _added(rows._replace(prior=prior), part[1], how)

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


def _added(rows: Rows, given: Any, how: _How) -> Sums:
    """Weigh rows, and add them up."""
    logits = rows.logits if rows.shift is None else rows.logits + rows.shift
    each, kappa, total = given, rows.kappa, jnp.zeros(())
    if how.weights == "draw":
        # Row by row, so that the numbers do not depend on how many rows of count 0 come behind.
        votes, each = rows.votes.T, logits.T
        drawn = augmentation.draw_on_device(given, votes.ravel(), each.ravel(), single=how.single)
        each = drawn.reshape(each.shape).T
    elif how.weights != "given":
        newton = how.weights == "curvature"
        weighing = augmentation.curvature if newton else augmentation.expectation
        each, kappa, total = weighing(logits, rows.votes, rows.kappa)
    omega = each
    if rows.shift is not None:
        omega, kappa = each.sum(0), (kappa - each * rows.shift).sum(0)
    shift, diagonal, across = _summed_up(rows, omega, kappa, how)
    slots = jnp.zeros((0 if rows.entry is None else len(rows.entry), 0))
    return Sums(rows.prior, shift, diagonal, across, total, slots, each)


def _summed_up(
    rows: Rows, omega: PerRow, kappa: PerRow, how: _How
) -> tuple[Array, Array, Array | None]:
    """Add up the shift and the precision of rows."""
    size, target = len(rows.prior.mean), kappa - omega * rows.offset
    if rows.entry is None:
        across = (rows.weight.T * omega) @ rows.weight
        return rows.weight.T @ target, jnp.zeros(size, across.dtype), across
    pairs = list(zip(rows.entry, rows.weight, strict=True))
    dense = rows.prior.across is not None or (len(pairs) > 1 and size <= how.limit)
    if how.accelerated and dense and len(pairs) == 2 and size**2 <= _ENTRIES:
        return _summed_cells(size, pairs, omega, target)
    shift = diagonal = jnp.zeros(size)
    for entry, weight in pairs:
        both = _summed(size, entry, (weight * target, weight**2 * omega), how)
        shift, diagonal = shift + both[0], diagonal + both[1]
    if not dense:
        return shift, diagonal, None
    half = jnp.zeros((size, size))
    for place, (entry, weight) in enumerate(pairs):
        for other, also in pairs[:place]:
            (cell,) = _summed(size**2, entry * size + other, (weight * also * omega,), how)
            half += cell.reshape(size, size)
    return shift, diagonal, half + half.T


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
    size: int, entry: Int[Array, " row"], values: tuple[PerRow, ...], how: _How
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


class DenseOnDevices(conditionals.Dense):
    """Conditional of a coupled block whose precision stays on a device."""

    def __init__(self, prior: conditionals.Gaussian, rows: Float[Array, "entry entry"]) -> None:
        conditionals.Conditional.__init__(self, prior)
        self._there: Array | None = rows if prior.across is None else rows + prior.across

    @property
    def across(self) -> Matrix:
        """Precision off its diagonal, on the host, where it may be changed in place."""
        if self._there is not None:
            self.across = np.array(self._there)
        return self._here

    @across.setter
    def across(self, value: Matrix) -> None:
        self._here, self._there = value, None

    def mode(self, current: np.ndarray) -> np.ndarray:
        if self._there is None:
            return super().mode(current)
        zero = np.zeros(self.size)
        return np.asarray(_solved_dense(self._there, self.diagonal, self.shift, zero))

    def draw(self, rng: Rng, current: np.ndarray) -> np.ndarray:
        if self._there is None:
            return super().draw(rng, current)
        noise = rng.standard_normal(self.size)
        return np.asarray(_solved_dense(self._there, self.diagonal, self.shift, noise))


@jax.jit
def _solved_dense(across: Array, diagonal: Array, shift: Array, noise: Array) -> Array:
    """Return the mode plus noise whose covariance is the inverse of the precision."""
    factor = jnp.linalg.cholesky(across + jnp.diag(diagonal))
    half = jax.scipy.linalg.solve_triangular(factor, shift, lower=True) + noise
    return jax.scipy.linalg.solve_triangular(factor, half, lower=True, trans="T")


class OnDevices(conditionals.Sparse):
    """Conditional of a large block, solved by conjugate gradients on the devices of its rows."""

    def __init__(self, prior: conditionals.Gaussian, reading: _Reading) -> None:
        super().__init__(prior, keep_rows=False)
        self.reading = reading

    def product(self, entries: np.ndarray) -> np.ndarray:
        return np.asarray(_product(self.reading, self.prior.precision, entries))

    def _solve(self, right: np.ndarray, start: np.ndarray, tolerance: float) -> np.ndarray:
        precision = self.prior.precision
        solution, residual = _solved(
            self.reading, precision, self.diagonal, right, start, tolerance
        )
        if not residual <= 10 * tolerance:
            self.warn(float(residual), tolerance)
        return np.asarray(solution)

    def draw(self, rng: Rng, current: np.ndarray) -> np.ndarray:
        noise = np.sqrt(self.prior.precision) * rng.standard_normal(self.size)
        noise += np.asarray(_perturbed(self.reading, current, augmentation.key_of(rng)))
        return self._solve(self.shift + noise, current, 1e-8)


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["data", "values", "classes", "omega"],
    meta_fields=["model", "block", "how"],
)
@dataclass(frozen=True)
class _Reading:
    """Rows of a block as they are read, with their weights."""

    model: Model[Any]
    data: Any
    values: Values
    block: Block
    classes: Any
    omega: PerRow
    how: _How

    def pairs(self) -> list[tuple[Int[Array, " row"], PerRow]]:
        """Entries and weights of each slot."""
        rows = record(self.model, self.data, self.values, self.block, self.classes)
        assert rows.entry is not None
        return list(zip(rows.entry, rows.weight, strict=True))


def _times(
    pairs: list[tuple[Array, Array]], omega: Array, how: _How, precision: Array, entries: Array
) -> Array:
    """Return the precision of rows and prior times a vector."""
    along = omega * sum(weight * entries[entry] for entry, weight in pairs)
    product: Array = precision * entries
    for entry, weight in pairs:
        product += _summed(len(entries), entry, (weight * along,), how)[0]
    return product


@jax.jit
def _product(reading: _Reading, precision: Array, entries: Array) -> Array:
    product = _times(reading.pairs(), reading.omega, reading.how, precision, entries)
    return everywhere(product, reading.how.mesh)


@jax.jit
def _solved(
    reading: _Reading, precision: Array, diagonal: Array, right: Array, start: Array, tol: float
) -> tuple[Array, Array]:
    """Solve the linear system; return the relative residual, too."""
    product = partial(_times, reading.pairs(), reading.omega, reading.how, precision)
    options = {
        "tol": tol,
        "maxiter": conditionals.MOST_STEPS,
        "M": lambda entries: entries / diagonal,
    }
    solution, _ = jax.scipy.sparse.linalg.cg(product, right, x0=start, **options)
    residual = jnp.linalg.norm(product(solution) - right) / jnp.linalg.norm(right)
    return everywhere((solution, residual), reading.how.mesh)


@jax.jit
def _perturbed(reading: _Reading, like: Array, key: Array) -> Array:
    """Return Aᵀ√Ω z of a standard normal z, in the shape of the block's entries."""
    omega, noise = reading.omega, jnp.zeros_like(like)
    jitter = jnp.sqrt(omega) * jax.random.normal(key, omega.shape, omega.dtype)
    for entry, weight in reading.pairs():
        noise += _summed(len(noise), entry, (weight * jitter,), reading.how)[0]
    return everywhere(noise, reading.how.mesh)


def is_single(
    model: Model[Any], data: Any, values: Values, blocks: tuple[Block, ...], classes: Any
) -> bool:
    """Return whether no row of any block stands for more than one vote."""
    mesh = mesh_of(data)
    own = [block for block in blocks if block.kind in ("rows", "type")]
    return all(float(_most(model, data, values, one, classes, mesh)) <= 1 for one in own)


@partial(jax.jit, static_argnums=(0, 3, 5))
def _most(
    model: Model[Any], data: Any, values: Values, block: Block, classes: Any, mesh: Mesh | None
) -> Scalar:
    """Return the largest number of votes of a row."""
    return everywhere(record(model, data, values, block, classes).votes.max(), mesh)

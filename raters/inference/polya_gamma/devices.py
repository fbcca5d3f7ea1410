"""Conditionals of blocks whose rows stay on devices.

One compiled function reads the rows, weighs them and adds them up, so that nothing of the size of
the rows leaves the devices, or goes from one to another: the sums, of the size of a block, do.
Small systems are then solved on the host as ever, and large ones by conjugate gradients whose
products are of the rows on the devices.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int

from raters.inference.polya_gamma import augmentation, series
from raters.inference.polya_gamma.conditionals import (
    BOUNDED,
    DENSE_LIMIT,
    MODE_LIMIT,
    MOST_STEPS,
    Conditional,
    Dense,
    Diagonal,
    Gaussian,
    Sparse,
)
from raters.inference.polya_gamma.rows import Block, Rows, record
from raters.model import Model, Values
from raters.program.placing import everywhere, mesh_of

# Copies of a sum on an accelerator, between which neighbouring rows alternate: they mostly have an
# entry in common, and would wait for each other. All copies have at most so many numbers.
_COPIES, _NUMBERS = 256, 1 << 20

How = Literal["mean", "curvature", "draw", "given"]


class Sums(NamedTuple):
    """Sums over the rows of a block.

    Attributes
    ----------
    prior : Gaussian
    shift, diagonal : array, shape (entry,)
        Of the rows alone, without the prior.
    across : array, shape (entry, entry), or None
        Precision off its diagonal; with a dense design all of it.
    log_likelihood : array, shape ()
    slots : array, shape ()
        Number of entries that each row touches; 0 with a dense design.
    omega : array, shape (row,) or (term, row)
        Weights, which other blocks with the same logits share.
    """

    prior: Gaussian
    shift: Float[Array, " entry"]
    diagonal: Float[Array, " entry"]
    across: Float[Array, "entry entry"] | None
    log_likelihood: Float[Array, ""]
    slots: Int[Array, ""]
    omega: Float[Array, "... row"]


def conditional_on_devices(
    model: Model[Any],
    data: Any,
    values: Values,
    block: Block,
    weights: augmentation.Expected | augmentation.Drawn,
    classes: Any,
    *,
    draws: bool,
    joint: bool,
) -> Conditional:
    """Assemble the full conditional of a block of log-odds from rows that stay on devices.

    Parameters
    ----------
    model, data, values, block
    weights : Expected or Drawn
    classes : array (unit, class), optional
    draws : bool
        Whether it is to be drawn from.
    joint : bool
        Leave bounds of the priors to the caller.

    Returns
    -------
    Conditional
    """
    which, given, single = (block.kind, block.column), None, False
    how: How = "mean"
    if isinstance(weights, augmentation.Drawn):
        how, single = "draw", weights.single
        given = augmentation.key_of(weights.rng)
        if which in weights.omega:
            how, given = "given", weights.omega[which]
    elif weights.weighing is augmentation.curvature:
        how = "curvature"
    limit = DENSE_LIMIT if draws or joint else MODE_LIMIT
    mesh = mesh_of(data)
    sums = _sums(model, data, values, block, classes, given, how, limit, mesh, single)
    if isinstance(weights, augmentation.Drawn):
        weights.omega[which] = sums.omega
    else:
        weights.log_likelihood += float(sums.log_likelihood)
    prior, slots = jax.tree.map(np.asarray, sums.prior), int(sums.slots)
    bounded = bool(np.isfinite(prior.low).any() or np.isfinite(prior.high).any())
    if slots != 1 and bounded and not joint:
        raise NotImplementedError(BOUNDED)
    found: Conditional
    if sums.across is not None:
        found = Dense(prior)
        found.across += np.asarray(sums.across)
    elif slots == 1:
        found = Diagonal(prior)
    else:
        weight = sums.omega if sums.omega.ndim == 1 else sums.omega.sum(0)
        reading = _Reading(model, data, values, block, classes, weight, mesh)
        found = OnDevices(prior, reading)
    found.shift += np.asarray(sums.shift)
    found.diagonal += np.asarray(sums.diagonal)
    return found


@partial(jax.jit, static_argnums=(0, 3, 6, 7, 8, 9))
def _sums(
    model: Model[Any],
    data: Any,
    values: Values,
    block: Block,
    classes: Any,
    given: Any,
    how: How,
    limit: int,
    mesh: Mesh | None,
    single: bool,
) -> Sums:
    """Read, weigh and add up the rows of a block; `given` is a key to draw ω, or ω."""
    rows = record(model, data, values, block, classes)
    logits = rows.logits if rows.shift is None else rows.logits + rows.shift
    each, kappa, total = given, rows.kappa, jnp.zeros(())
    if how == "draw":
        each = series.draw(given, rows.votes.ravel(), logits.ravel(), single=single)
        each = each.reshape(logits.shape)
    elif how != "given":
        weighing = augmentation.curvature if how == "curvature" else augmentation.expectation
        each, kappa, total = weighing(logits, rows.votes, rows.kappa)
    omega = each
    if rows.shift is not None:
        omega, kappa = each.sum(0), (kappa - each * rows.shift).sum(0)
    shift, diagonal, across = _added(rows, omega, kappa, limit)
    slots = jnp.asarray(0 if rows.entry is None else len(rows.entry))
    sums = Sums(rows.prior, shift, diagonal, across, total, slots, jnp.zeros(()))
    return everywhere(sums, mesh)._replace(omega=each)


def _added(
    rows: Rows, omega: Float[Array, " row"], kappa: Float[Array, " row"], limit: int
) -> tuple[Array, Array, Array | None]:
    """Add up the shift and the precision of rows; without the part off the diagonal of a large
    block."""
    size, target = len(rows.prior.mean), kappa - omega * rows.offset
    if rows.entry is None:
        across = (rows.weight.T * omega) @ rows.weight
        return rows.weight.T @ target, jnp.zeros(size, across.dtype), across
    add = partial(_summed, size)
    pairs = list(zip(rows.entry, rows.weight, strict=True))
    zero = jnp.zeros(size, target.dtype)
    shift = sum((add(entry, weight * target) for entry, weight in pairs), zero)
    diagonal = sum((add(entry, weight**2 * omega) for entry, weight in pairs), zero)
    dense = rows.prior.across is not None or (len(pairs) > 1 and size <= limit)
    if not dense:
        return shift, diagonal, None
    half = jnp.zeros((size, size), omega.dtype)
    for place, (entry, weight) in enumerate(pairs):
        for other, also in pairs[:place]:
            cell = _summed(size**2, entry * size + other, weight * also * omega)
            half += cell.reshape(size, size)
    return shift, diagonal, half + half.T


def _summed(
    size: int, entry: Int[Array, " row"], value: Float[Array, " row"]
) -> Float[Array, " entry"]:
    """Add up the rows of each entry."""
    copies = 1
    if jax.default_backend() != "cpu":
        copies = max(min(_COPIES, _NUMBERS // size), 1)
    if copies > 1:
        entry = entry * copies + jnp.arange(len(entry), dtype=entry.dtype) % copies
    total = jnp.zeros(size * copies, value.dtype).at[entry].add(value)
    return total if copies == 1 else total.reshape(size, copies).sum(1)


class OnDevices(Sparse):
    """Conditional of a large block, solved by conjugate gradients on the devices of its rows."""

    def __init__(self, prior: Gaussian, reading: _Reading) -> None:
        super().__init__(prior, keep_rows=False)
        self.reading = reading

    def product(self, entries: np.ndarray) -> np.ndarray:
        return np.asarray(_product(*self.reading, self.prior.precision, entries))

    def _solve(self, right: np.ndarray, start: np.ndarray, tolerance: float) -> np.ndarray:
        precision = self.prior.precision
        solution, residual = _solved(
            *self.reading, precision, self.diagonal, right, start, tolerance
        )
        if not residual <= 10 * tolerance:
            self.warn(float(residual), tolerance)
        return np.asarray(solution)

    def draw(self, rng: np.random.Generator, current: np.ndarray) -> np.ndarray:
        noise = np.sqrt(self.prior.precision) * rng.standard_normal(self.size)
        noise += np.asarray(_perturbed(*self.reading, augmentation.key_of(rng)))
        return self._solve(self.shift + noise, current, 1e-8)


class _Reading(NamedTuple):
    """What the rows of a block are read from, and their weights."""

    model: Model[Any]
    data: Any
    values: Values
    block: Block
    classes: Any
    omega: Float[Array, " row"]
    mesh: Mesh | None

    def pairs(self) -> list[tuple[Int[Array, " row"], Float[Array, " row"]]]:
        """Entries and weights of each slot."""
        rows = record(self.model, self.data, self.values, self.block, self.classes)
        assert rows.entry is not None
        return list(zip(rows.entry, rows.weight, strict=True))


def _times(
    pairs: list[tuple[Array, Array]], omega: Array, precision: Array, entries: Array
) -> Array:
    """Return the precision of rows and prior times a vector."""
    along = omega * sum(weight * entries[entry] for entry, weight in pairs)
    product: Array = precision * entries
    for entry, weight in pairs:
        product += _summed(len(entries), entry, weight * along)
    return product


@partial(jax.jit, static_argnums=(0, 3, 6))
def _product(
    model: Model[Any],
    data: Any,
    values: Values,
    block: Block,
    classes: Any,
    omega: Array,
    mesh: Mesh | None,
    precision: Array,
    entries: Array,
) -> Array:
    reading = _Reading(model, data, values, block, classes, omega, mesh)
    return everywhere(_times(reading.pairs(), omega, precision, entries), mesh)


@partial(jax.jit, static_argnums=(0, 3, 6))
def _solved(
    model: Model[Any],
    data: Any,
    values: Values,
    block: Block,
    classes: Any,
    omega: Array,
    mesh: Mesh | None,
    precision: Array,
    diagonal: Array,
    right: Array,
    start: Array,
    tolerance: float,
) -> tuple[Array, Array]:
    """Solve the linear system; return the relative residual, too."""
    pairs = _Reading(model, data, values, block, classes, omega, mesh).pairs()
    product = partial(_times, pairs, omega, precision)
    solution, _ = jax.scipy.sparse.linalg.cg(
        product,
        right,
        x0=start,
        tol=tolerance,
        maxiter=MOST_STEPS,
        M=lambda entries: entries / diagonal,
    )
    residual = jnp.linalg.norm(product(solution) - right) / jnp.linalg.norm(right)
    return everywhere((solution, residual), mesh)


@partial(jax.jit, static_argnums=(0, 3, 6))
def _perturbed(
    model: Model[Any],
    data: Any,
    values: Values,
    block: Block,
    classes: Any,
    omega: Array,
    mesh: Mesh | None,
    key: Array,
) -> Array:
    """Return Aᵀ√Ω z of a standard normal z."""
    pairs = _Reading(model, data, values, block, classes, omega, mesh).pairs()
    size = sum(jnp.size(values[name]) for name in block.sites)
    jitter = jnp.sqrt(omega) * jax.random.normal(key, omega.shape, omega.dtype)
    zero = jnp.zeros(size, omega.dtype)
    noise = sum((_summed(size, entry, weight * jitter) for entry, weight in pairs), zero)
    return everywhere(noise, mesh)


def is_single(
    model: Model[Any], data: Any, values: Values, blocks: tuple[Block, ...], classes: Any
) -> bool:
    """Whether no row of any block stands for more than one vote.

    Parameters
    ----------
    model, data, values
    blocks : tuple of Block
    classes : array (unit, class), optional
        Ones for the latent classes.

    Returns
    -------
    bool
    """
    mesh = mesh_of(data)
    own = [block for block in blocks if block.kind in ("rows", "type")]
    return all(float(_most(model, data, values, one, classes, mesh)) <= 1 for one in own)


@partial(jax.jit, static_argnums=(0, 3, 5))
def _most(
    model: Model[Any], data: Any, values: Values, block: Block, classes: Any, mesh: Mesh | None
) -> Float[Array, ""]:
    """Return the largest number of votes of a row."""
    return everywhere(record(model, data, values, block, classes).votes.max(), mesh)

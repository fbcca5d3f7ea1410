r"""Mode and draws of a model whose groups have a latent class and whose rows share few tabulated
distributions, each with parameters of its own.

With :math:`T_{cvq}` for the log-probability of value v under distribution c and class q, and
:math:`n_{icv}` for the number of such rows of group i,

.. math:: \ell = \sum_i \log \sum_q w_q \exp \sum_{cv} n_{icv} T_{cvq}, \qquad
    \frac{\partial \ell}{\partial T_{cvq}} = \sum_i n_{icv} \, p(q \mid i)

(Fisher's identity), so that a step costs two products with one sparse matrix, whatever the model
that makes the table. Given the classes, the distributions do not meet, and the information matrix
has a block for each of them, and a border for what they share.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
import scipy.sparse
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float
from numpyro.distributions.transforms import biject_to
from scipy.special import logsumexp

from raters.distributions import GroupedMixture
from raters.distributions.rows import Tabulated
from raters.inference.arrays import Rng
from raters.inference.polya_gamma.sweep import Ascent
from raters.model import Model, Values
from raters.program import Program, Supports, log_prior, trace

# Steps of L-BFGS in one metric, after which it is computed anew.
_STEPS = 40
# Rows times classes of which scores are held at a time.
_PIECE = 1_000_000
# Largest number of parameters, and of rows times classes of all passes, for which draws use the
# whole information matrix and have weights.
_DENSE_LIMIT = 1500
_WORK_LIMIT = 1e9


@dataclass(frozen=True)
class Tables:
    """Counts of the values of each distribution in each group."""

    model: Model[Any]
    supports: Supports
    data: Any
    cells: tuple[str, ...]
    counts: Any
    transposed: Any
    log_weights: Float[np.ndarray, "group class"]
    repeats: Float[np.ndarray, " group"]

    @classmethod
    def of(cls, program: Program[Any], values: Values) -> Tables | None:
        """Counts of a program; None where its rows do not share tabulated distributions."""
        model, data = program.model, program.data
        site = trace(model, data, values)[model.observed]
        fn, axis = site["fn"], site["infer"].get("cell")
        if not (
            isinstance(fn, GroupedMixture)
            and isinstance(fn.component_distribution, Tabulated)
            and axis is not None
        ):
            return None
        own = tuple(name for name, at in program.sites.items() if at.dims[:1] == (axis,))
        cells = fn.component_distribution.base.batch_shape[0]
        values_of, cell = np.asarray(site["value"], int), np.asarray(fn.component_distribution.cell)
        size = len(np.asarray(fn.component_distribution.table())) * cells
        weight = np.ones(len(cell)) if fn.count is None else np.asarray(fn.count, np.float64)
        place = (np.asarray(fn.group), values_of * cells + cell)
        counts = scipy.sparse.csr_array((weight, place), shape=(fn.num_groups, size))
        repeats = np.ones(fn.num_groups) if fn.repeats is None else np.asarray(fn.repeats)
        log_weights = np.asarray(fn.log_weights(), np.float64)
        return cls(
            model,
            program.supports,
            data,
            own,
            counts,
            counts.T.tocsr(),
            log_weights,
            repeats.astype(np.float64),
        )

    def is_large(self, values: Values, draws: int) -> bool:
        """True where the whole information matrix, or densities of all draws, take too long."""
        size = sum(np.size(value) for value in values.values())
        passes = self.counts.nnz * self.log_weights.shape[1]
        return size > _DENSE_LIMIT or passes * max(size, draws) > _WORK_LIMIT

    @property
    def row(self) -> Any:
        """First row of the data."""
        return self.data.take(slice(0, 1))

    def log_likelihood(self, values: Values) -> float:
        """Log-likelihood at a point."""
        return self.posterior(np.asarray(_table_at(self.model, self.row, values)))[0]

    def posterior(
        self, table: Float[np.ndarray, "value cell class"]
    ) -> tuple[float, Float[np.ndarray, "group class"]]:
        """Log-likelihood, and the probability of each class of each group."""
        joint = self.counts @ table.reshape(-1, table.shape[-1]) + self.log_weights
        of_group = logsumexp(joint, axis=1)
        return float(self.repeats @ of_group), np.exp(joint - of_group[:, None])

    def expected(
        self, probs: Float[np.ndarray, "group class"], shape: tuple[int, ...]
    ) -> Float[np.ndarray, "value cell class"]:
        """Expected number of rows of each value, distribution and class."""
        return np.asarray((self.transposed @ (self.repeats[:, None] * probs)).reshape(shape))


def climb(
    tables: Tables, values: Values, steps: int, tolerance: float, *, volume: bool = False
) -> Ascent:
    """Increase the log joint density by L-BFGS in the metric of the expected information."""
    split = Split(tables.supports, tables.cells, values, volume)
    own, shared = split.start(values)
    objective = [_objective(tables, split, own, shared)[0]]
    converged, options = False, {"maxiter": _STEPS, "maxcor": 20, "gtol": 1e-9}
    while len(objective) <= steps and not converged:
        metric = factor(_metric(tables, split, own, shared))
        before = objective[-1]
        found = scipy.optimize.minimize(
            partial(_loss, tables, split, metric, own, shared),
            np.zeros(own.size + shared.size),
            jac=True,
            method="L-BFGS-B",
            callback=lambda intermediate_result: objective.append(-intermediate_result.fun),
            options=options | {"ftol": tolerance / (1 + abs(before))},
        )
        apart = metric.step(*split.parted(found.x))
        own, shared = own + apart[0], shared + apart[1]
        converged = found.status != 1 or objective[-1] - before < tolerance
    return Ascent(split.values(own, shared), np.array(objective), converged)


def _loss(
    tables: Tables,
    split: Split,
    metric: Factor,
    own: np.ndarray,
    shared: np.ndarray,
    flat: np.ndarray,
) -> tuple[float, np.ndarray]:
    """Negative log joint density and its gradient, in the independent coordinates of a metric."""
    apart = metric.step(*split.parted(flat))
    value, slopes = _objective(tables, split, own + apart[0], shared + apart[1])
    return -value, -split.joined(*metric.pull(*slopes))


def draws(tables: Tables, mode: Values, number: int, rng: Rng) -> Values:
    """Draw from the normal at the mode in unconstrained coordinates."""
    mode = climb(tables, mode, _STEPS * 5, 1e-6, volume=True).values
    split = Split(tables.supports, tables.cells, mode, True)
    own, shared = split.start(mode)
    metric = _metric(tables, split, own, shared)
    metric = metric._replace(block=metric.block - _missing(tables, split, own, shared))
    map_of = factor(metric)
    drawn = []
    for _ in range(number):
        noise = rng.standard_normal(own.size + shared.size)
        apart = map_of.step(*split.parted(noise))
        drawn.append(split.values(own + apart[0], shared + apart[1]))
    return {name: np.stack([each[name] for each in drawn]) for name in mode}


def _table(tables: Tables, split: Split, own: np.ndarray, shared: np.ndarray) -> np.ndarray:
    """Log-probability of each value under each distribution and class."""
    return np.asarray(_table_of(tables.model, split, tables.row, own, shared))


@partial(jax.jit, static_argnums=0)
def _table_at(model: Model[Any], data: Any, values: Values) -> Array:
    site = trace(model, data, values)[model.observed]
    return site["fn"].component_distribution.table()


@partial(jax.jit, static_argnums=(0, 1))
def _table_of(model: Model[Any], split: Split, data: Any, own: Array, shared: Array) -> Array:
    return _table_at(model, data, split.point(own, shared))


@partial(jax.jit, static_argnums=(0, 1))
def _complete(
    model: Model[Any], split: Split, data: Any, own: Array, shared: Array, expected: Array
) -> tuple[Array, tuple[Array, Array]]:
    """Log prior density, and the gradient of the expected log joint density of rows and classes."""

    def density(own: Array, shared: Array) -> tuple[Array, Array]:
        values = split.point(own, shared)
        prior = log_prior(model, data, values) + split.log_volume(own, shared)
        return prior + (expected * _table_of(model, split, data, own, shared)).sum(), prior

    (_, prior), slopes = jax.value_and_grad(density, argnums=(0, 1), has_aux=True)(own, shared)
    return (prior, slopes)


def _objective(
    tables: Tables, split: Split, own: np.ndarray, shared: np.ndarray
) -> tuple[float, tuple[np.ndarray, np.ndarray]]:
    """Log joint density, and its gradient."""
    table = _table(tables, split, own, shared)
    likelihood, probs = tables.posterior(table)
    expected = tables.expected(probs, table.shape)
    prior, slopes = _complete(tables.model, split, tables.row, own, shared, expected)
    return likelihood + float(prior), (np.asarray(slopes[0]), np.asarray(slopes[1]))


def _metric(tables: Tables, split: Split, own: np.ndarray, shared: np.ndarray) -> Metric:
    """Information of rows and classes together, averaged over the classes."""
    table = _table(tables, split, own, shared)
    expected = tables.expected(tables.posterior(table)[1], table.shape)
    parts = _information(tables.model, split, tables.row, own, shared, expected)
    return Metric(*map(np.asarray, parts))


@partial(jax.jit, static_argnums=(0, 1))
def _information(
    model: Model[Any], split: Split, data: Any, own: Array, shared: Array, expected: Array
) -> tuple[Array, Array, Array]:
    """Blocks, border and shared part of the negative second derivatives."""

    def slopes(own: Array, shared: Array) -> tuple[Array, Array]:
        return _complete(model, split, data, own, shared, expected)[1]

    def along(own_step: Array, shared_step: Array) -> tuple[Array, Array]:
        return jax.jvp(slopes, (own, shared), (own_step, shared_step))[1]

    still, no_step = jnp.zeros_like(own), jnp.zeros_like(shared)
    block = jax.lax.map(
        lambda one: along(jnp.broadcast_to(one, own.shape), no_step)[0], jnp.eye(own.shape[1])
    )
    border, of_shared = jax.lax.map(lambda one: along(still, one), jnp.eye(len(shared)))
    return -block.transpose(1, 2, 0), -border.transpose(1, 2, 0), -of_shared


@partial(jax.jit, static_argnums=(0, 1))
def _scores(model: Model[Any], split: Split, data: Any, own: Array, shared: Array) -> Array:
    """Derivatives of the table in the own coordinates of each distribution."""

    def along(one: Array) -> Array:
        step = jnp.broadcast_to(one, own.shape)
        return jax.jvp(lambda own: _table_of(model, split, data, own, shared), (own,), (step,))[1]

    return jax.lax.map(along, jnp.eye(own.shape[1]))


def _missing(
    tables: Tables, split: Split, own: np.ndarray, shared: np.ndarray
) -> Float[np.ndarray, "cell own own"]:
    """Information that the classes would add, in the block of each distribution."""
    table = _table(tables, split, own, shared)
    probs = tables.posterior(table)[1]
    score = np.asarray(_scores(tables.model, split, tables.row, own, shared))
    squared = tables.transposed.copy()
    squared.data **= 2
    weight = (squared @ (tables.repeats[:, None] * probs)).reshape(table.shape)
    second = np.einsum("pvcq,rvcq,vcq->cpr", score, score, weight, optimize=True)
    return np.asarray(second - _of_means(tables, score, probs))


def _of_means(
    tables: Tables,
    score: Float[np.ndarray, "own value cell class"],
    probs: Float[np.ndarray, "group class"],
) -> Float[np.ndarray, "cell own own"]:
    """Products of the mean scores of each row, summed over the rows of each distribution."""
    width, cells, classes = len(score), score.shape[2], score.shape[-1]
    flat, counts = score.reshape(width, -1, classes), tables.counts.tocoo()
    total = np.zeros((cells, width, width))
    piece = max(1, _PIECE // classes)
    for begin in range(0, len(counts.data), piece):
        some = slice(begin, begin + piece)
        place, group = counts.col[some], counts.row[some]
        prob = probs[group]
        mean = np.stack([np.einsum("rq,rq->r", part[place], prob) for part in flat])
        weight = tables.repeats[group] * counts.data[some] ** 2
        for one in range(width):
            for other in range(one + 1):
                share = weight * mean[one] * mean[other]
                added = np.bincount(place % cells, share, cells)
                total[:, one, other] += added
                total[:, other, one] += added if other != one else 0.0
    return total


# Least eigenvalue of a block of the metric, relative to its largest.
_FLATTEST = 1e-6


class Metric(NamedTuple):
    """Information matrix with a block for each distribution, and a border for what they share."""

    block: np.ndarray
    border: np.ndarray
    shared: np.ndarray


class Factor(NamedTuple):
    """A map of independent coordinates to steps whose covariance is the inverse of a metric."""

    inverse: np.ndarray
    slope: np.ndarray
    shared: np.ndarray

    def step(self, own: np.ndarray, shared: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Steps of the own and of the shared coordinates."""
        moved = self.shared @ shared
        return np.einsum("cij,cj->ci", self.inverse, own) - self.slope @ moved, moved

    def pull(self, own: np.ndarray, shared: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient in the independent coordinates, from that in the others."""
        left = shared - np.einsum("cis,ci->s", self.slope, own)
        return np.einsum("cij,ci->cj", self.inverse, own), self.shared.T @ left


def factor(metric: Metric) -> Factor:
    """Factor of a metric, whose flat and falling directions are bounded from below."""
    inverse = inverse_factor(metric.block)
    solved = inverse @ (inverse.transpose(0, 2, 1) @ metric.border)
    left = metric.shared - np.einsum("cis,cit->st", metric.border, solved)
    return Factor(inverse, solved, inverse_factor(left[None])[0])


def inverse_factor(matrix: Float[np.ndarray, "cell own own"]) -> np.ndarray:
    """Matrices F with F Fᵀ the inverse of each."""
    if matrix.shape[-1] == 0:
        return matrix
    eigenvalues, vectors = np.linalg.eigh((matrix + matrix.transpose(0, 2, 1)) / 2)
    least = _FLATTEST * np.maximum(np.abs(eigenvalues).max(1, keepdims=True), 1e-3)
    scale = 1 / np.sqrt(np.maximum(np.abs(eigenvalues), least))
    return np.asarray(vectors * scale[:, None, :])


class Split:
    """Unconstrained coordinates of the sites of distributions, side by side, and of the others."""

    def __init__(
        self, supports: Supports, cells: tuple[str, ...], values: Values, volume: bool
    ) -> None:
        self.supports, self.cells, self.volume = supports, cells, volume
        self.others = tuple(name for name in values if name not in cells)
        flat = {name: self._free(name, values[name]) for name in values}
        self.number = len(flat[cells[0]])
        self.shapes = {name: flat[name].shape[1:] for name in cells}
        self.widths = [int(np.prod(self.shapes[name])) for name in cells]
        self.unravel = ravel_pytree({name: flat[name] for name in self.others})[1]

    def _free(self, name: str, value: Any) -> Array:
        """A site in its unconstrained coordinates."""
        return biject_to(self.supports[name]).inv(jnp.asarray(value, float))

    def start(self, values: Values) -> tuple[np.ndarray, np.ndarray]:
        """Own coordinates, shape (cell, own), and those that are shared."""
        own = [np.asarray(self._free(name, values[name])) for name in self.cells]
        others = {name: self._free(name, values[name]) for name in self.others}
        return (
            np.concatenate([part.reshape(self.number, -1) for part in own], axis=1),
            np.asarray(ravel_pytree(others)[0], np.float64),
        )

    def parted(self, flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One vector as own and shared coordinates."""
        size = self.number * sum(self.widths)
        return flat[:size].reshape(self.number, -1), flat[size:]

    def joined(self, own: np.ndarray, shared: np.ndarray) -> np.ndarray:
        """Own and shared coordinates as one vector."""
        return np.concatenate([own.ravel(), shared])

    def point(self, own: Array, shared: Array) -> Values:
        """Values at some coordinates, for traced arrays too."""
        free = self.free(own, shared)
        return {name: biject_to(self.supports[name])(value) for name, value in free.items()}

    def free(self, own: Array, shared: Array) -> Values:
        """Unconstrained coordinates of each site."""
        parts = jnp.split(own, np.cumsum(self.widths)[:-1], axis=1)
        others: Values = self.unravel(shared)
        return others | {
            name: part.reshape(self.number, *self.shapes[name])
            for name, part in zip(self.cells, parts, strict=True)
        }

    def log_volume(self, own: Array, shared: Array) -> Array:
        """Log volume element of the coordinates; 0 where the density is that of the sites."""
        total = jnp.zeros(())
        for name, free in self.free(own, shared).items() if self.volume else ():
            transform = biject_to(self.supports[name])
            total += transform.log_abs_det_jacobian(free, transform(free)).sum()
        return total

    def values(self, own: np.ndarray, shared: np.ndarray) -> Values:
        """Values at some coordinates."""
        point = self.point(jnp.asarray(own), jnp.asarray(shared))
        return {name: np.asarray(value) for name, value in point.items()}

    def __hash__(self) -> int:
        return hash((self.cells, self.others, self.number, self.volume))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Split)
            and (self.cells, self.others, self.number, self.shapes, self.volume)
            == (other.cells, other.others, other.number, other.shapes, other.volume)
            and {name: str(fn) for name, fn in self.supports.items()}
            == {name: str(fn) for name, fn in other.supports.items()}
        )

"""Where the mathematics varies: how an observed distribution enters Pólya-Gamma augmentation, which priors are Gaussian,
and the Gaussian full conditional of a block with its mode and its draws."""

from __future__ import annotations

import warnings
from functools import singledispatch
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
from numpyro.distributions import truncated
from scipy.special import log_ndtr, ndtri_exp

from raters.distributions import GroupedMixture, RightOrWrongLabel
from raters.errors import ConvergenceWarning

# Above this many entries a coupled block is solved by preconditioned conjugate gradients, never as a dense array.
DENSE_LIMIT = 2500
# A mode needs one solution and has a warm start, so it pays earlier there.
MODE_LIMIT = 600
_MOST_STEPS = 1000


# ------------------------------------------------------------------- reading the observed distribution and the priors


@singledispatch
def observation(fn: dist.Distribution, value: Any, classes: Any = None):
    """Logits, votes per row and κ = wins − votes/2 of an observed distribution; `classes` are those of its groups, expected or
    drawn, where it sums classes out.

    Raises
    ------
    NotImplementedError
        For a distribution that Pólya-Gamma augmentation does not cover.
    """
    raise NotImplementedError(
        f"the observed distribution is {type(fn).__name__}; Pólya-Gamma needs Bernoulli or Binomial with logits, or a "
        "GroupedMixture of such"
    )


@observation.register
def _(fn: dist.BernoulliLogits, value, classes=None):
    logits = jnp.asarray(fn.logits, float)
    return logits, jnp.ones_like(logits), value - 0.5


@observation.register
def _(fn: dist.BinomialLogits, value, classes=None):
    logits = jnp.asarray(fn.logits, float)
    count = jnp.broadcast_to(jnp.asarray(fn.total_count, float), logits.shape)
    return logits, count, value - count / 2


@observation.register
def _(fn: GroupedMixture, value, classes=None):
    weight = classes[fn.group]
    return component(fn.component_distribution, value, weight if fn.count is None else weight * fn.count[:, None])


@singledispatch
def component(fn: dist.Distribution, value: Any, weight: Any):
    """As `observation`, for the rows of a mixture: `weight` says how often each row was seen under each class."""
    raise NotImplementedError(f"the observed distribution is a mixture of {type(fn).__name__}, which has no logits")


@component.register
def _(fn: RightOrWrongLabel, value, weight):
    right = value[:, None] == jnp.arange(fn.num_classes)
    if fn.logits.shape[-1] == 1:  # Whatever the class, the label is right or wrong with the same log-odds.
        votes = weight.sum(-1)
        return fn.logits[:, 0], votes, (weight * right).sum(-1) - votes / 2
    return fn.logits.ravel(), weight.ravel(), (weight * (right - 0.5)).ravel()


@component.register
def _(fn: dist.BernoulliLogits, value, weight):
    return fn.logits.ravel(), weight.ravel(), (weight * (value[:, None] - 0.5)).ravel()


@component.register
def _(fn: dist.BinomialLogits, value, weight):
    count = jnp.broadcast_to(fn.total_count, weight.shape)
    return fn.logits.ravel(), (weight * count).ravel(), (weight * (value[:, None] - count / 2)).ravel()


class Gaussian(NamedTuple):
    """Independent (truncated) normal priors of a block's entries; a precision of 0 is a flat prior on an interval."""

    mean: Any
    precision: Any
    low: Any
    high: Any


@singledispatch
def prior(fn: dist.Distribution, shape: tuple[int, ...]) -> Gaussian:
    """A site's prior as `Gaussian`, or NotImplementedError."""
    raise NotImplementedError(f"its prior {type(fn).__name__} is not normal, truncated normal or uniform")


def _flat(shape, *parts) -> Gaussian:
    return Gaussian(*(jnp.broadcast_to(jnp.asarray(part, float), shape).ravel() for part in parts))


@prior.register
def _(fn: dist.Normal, shape):
    return _flat(shape, fn.loc, 1 / fn.scale**2, -jnp.inf, jnp.inf)


@prior.register
def _(fn: truncated.TwoSidedTruncatedDistribution, shape):
    return _truncated(fn, shape, fn.low, fn.high)


@prior.register
def _(fn: truncated.LeftTruncatedDistribution, shape):
    return _truncated(fn, shape, fn.low, jnp.inf)


@prior.register
def _(fn: truncated.RightTruncatedDistribution, shape):
    return _truncated(fn, shape, -jnp.inf, fn.high)


def _truncated(fn, shape, low, high) -> Gaussian:
    if not isinstance(fn.base_dist, dist.Normal):
        raise NotImplementedError(f"its prior is a truncated {type(fn.base_dist).__name__}, not a truncated normal")
    base = fn.base_dist
    return _flat(shape, base.loc, 1 / base.scale**2, low, high)


@prior.register
def _(fn: dist.Uniform, shape):
    return _flat(shape, 0.0, 0.0, fn.low, fn.high)


@prior.register(dist.ExpandedDistribution)
@prior.register(dist.Independent)
def _(fn, shape):
    return prior(fn.base_dist, shape)


# ------------------------------------------------------------------------------------- the Gaussian full conditional


class Weighted(NamedTuple):
    """Rows of a block with their Pólya-Gamma weights ω and pseudo-outcomes κ, on the host."""

    entry: np.ndarray | None
    weight: np.ndarray
    omega: np.ndarray
    kappa: np.ndarray
    offset: np.ndarray

    def part(self, kept: np.ndarray) -> Weighted:
        """The rows that are kept."""
        by_row = (self.omega[kept], self.kappa[kept], self.offset[kept])
        if self.entry is None:
            return Weighted(None, self.weight[kept], *by_row)
        return Weighted(self.entry[:, kept], self.weight[:, kept], *by_row)


class Conditional:
    """The Gaussian full conditional of a block, with precision AᵀΩA + prior and shift Aᵀ(κ − Ω·offset) + prior.

    A is given by its rows, which come in pieces. EM takes the mode, Gibbs a draw, Laplace both.
    """

    def __init__(self, prior: Gaussian):
        self.prior = prior
        self.size = len(prior.mean)
        self.shift = np.where(prior.precision > 0, prior.precision * prior.mean, 0.0)
        self.diagonal = np.array(prior.precision)

    def add(self, rows: Weighted) -> None:
        """Take in a piece of the rows."""
        assert rows.entry is not None
        target = rows.kappa - rows.omega * rows.offset
        for entry, weight in zip(rows.entry, rows.weight, strict=True):
            self.shift += np.bincount(entry, weight * target, self.size)
            self.diagonal += np.bincount(entry, weight**2 * rows.omega, self.size)

    def mode(self, current: np.ndarray) -> np.ndarray:
        """The mode; `current` is where an iterative solver sets out."""
        raise NotImplementedError

    def draw(self, rng: np.random.Generator, current: np.ndarray) -> np.ndarray:
        """A draw."""
        raise NotImplementedError

    def coordinate(self, current: np.ndarray) -> np.ndarray:
        """One pass of exact coordinate updates in order, as in the paper of Extended-BTL."""
        raise NotImplementedError


def conditional(entry: np.ndarray | None, prior: Gaussian, *, joint: bool, draws: bool) -> Conditional:
    """The solver that fits: independent entries, a dense precision, or a large sparse one."""
    if entry is not None and len(entry) == 1:
        return Diagonal(prior)
    if not joint and (np.isfinite(prior.low).any() or np.isfinite(prior.high).any()):
        raise NotImplementedError("its prior is bounded and its entries meet in the same logits")
    if entry is None or len(prior.mean) <= (DENSE_LIMIT if draws or joint else MODE_LIMIT):
        return Dense(prior)
    return Sparse(prior, keep_rows=draws)


class Diagonal(Conditional):
    """Every logit touches one entry: independent normals, truncated where the prior is."""

    def mode(self, current):
        # An entry with neither votes nor a prior precision stays where it is.
        mean = np.where(self.diagonal > 0, self.shift / np.where(self.diagonal > 0, self.diagonal, 1), current)
        return np.clip(mean, self.prior.low, self.prior.high)

    coordinate = mode

    def draw(self, rng, current):
        # Under a flat prior an entry without votes has no precision: a normal a million times wider than the interval is
        # uniform on it, and one wider still would leave no digits to tell its places apart.
        flat = (1e-6 / (self.prior.high - self.prior.low)) ** 2
        precision = np.maximum(np.maximum(self.diagonal, flat), 1e-300)
        return truncated_normal(rng, self.shift / precision, 1 / np.sqrt(precision), self.prior.low, self.prior.high)


class Dense(Conditional):
    """A block small enough for its precision to be a dense array."""

    def __init__(self, prior):
        super().__init__(prior)
        self.across = np.zeros((self.size, self.size))

    def add(self, rows):
        if rows.entry is None:
            self.shift += rows.weight.T @ (rows.kappa - rows.omega * rows.offset)
            self.across += (rows.weight.T * rows.omega) @ rows.weight
            return
        super().add(rows)
        for one in range(1, len(rows.entry)):
            for other in range(one):
                # NumPy multiplies int32 as int32, and a block of 50,000 entries would overflow it.
                cell = rows.entry[one].astype(np.int64) * self.size + rows.entry[other]
                value = rows.weight[one] * rows.weight[other] * rows.omega
                half = np.bincount(cell, value, self.size**2).reshape(self.size, self.size)
                self.across += half + half.T

    def precision(self) -> np.ndarray:
        """The precision matrix."""
        return self.across + np.diag(self.diagonal)

    def factor(self) -> np.ndarray:
        """The lower Cholesky factor of the precision."""
        return scipy.linalg.cholesky(self.precision(), lower=True, overwrite_a=True, check_finite=False)

    def mode(self, current):
        return scipy.linalg.cho_solve((self.factor(), True), self.shift, check_finite=False)

    def draw(self, rng, current):
        factor = self.factor()
        half = scipy.linalg.solve_triangular(factor, self.shift, lower=True, check_finite=False)
        half += rng.standard_normal(self.size)
        return scipy.linalg.solve_triangular(factor, half, lower=True, trans="T", check_finite=False)

    def coordinate(self, current):
        # Gauss–Seidel: each entry uses the new values of those before it and the old values of those after it.
        precision = self.precision()
        rest = self.shift - np.triu(precision, 1) @ current
        return scipy.linalg.solve_triangular(precision, rest, lower=True, check_finite=False)


class Sparse(Conditional):
    """A large coupled block: conjugate gradients with a Jacobi preconditioner; draws by perturbation and optimisation."""

    def __init__(self, prior, *, keep_rows: bool):
        super().__init__(prior)
        self.keep_rows = keep_rows
        self.rows: list[Weighted] = []
        # The upper and lower halves of what is off the diagonal are these and their transposes, one for each piece of rows.
        self.across: list[scipy.sparse.csr_array] = []

    def add(self, rows):
        super().add(rows)
        if self.keep_rows:
            self.rows.append(rows)
        for one in range(1, len(rows.entry)):
            for other in range(one):
                value = (rows.weight[one] * rows.weight[other] * rows.omega).astype(np.float32)
                self.across.append(_by_row(rows.entry[other], rows.entry[one], value, self.size))

    def _solve(self, right: np.ndarray, start: np.ndarray, tolerance: float) -> np.ndarray:
        def product(x):
            return self.diagonal * x + sum(half @ x + half.T @ x for half in self.across)

        shape = (self.size, self.size)
        operator = scipy.sparse.linalg.LinearOperator(shape, matvec=product, dtype=np.float64)
        jacobi = scipy.sparse.linalg.LinearOperator(shape, matvec=lambda x: x / self.diagonal, dtype=np.float64)
        solution, steps = scipy.sparse.linalg.cg(operator, right, x0=start, rtol=tolerance, maxiter=_MOST_STEPS, M=jacobi)
        if steps:
            off = np.linalg.norm(product(solution) - right) / np.linalg.norm(right)
            warnings.warn(
                f"conjugate gradients stopped after {_MOST_STEPS} steps at a relative residual of {off:.1g} "
                f"(asked for {tolerance:g}); the items are hardly connected: use NUTS(), or fix the scale in the model",
                ConvergenceWarning,
                stacklevel=2,
            )
        return solution

    def mode(self, current):
        # Its callers iterate and start it warm, so a loose tolerance costs nothing.
        return self._solve(self.shift, current, 1e-6)

    def draw(self, rng, current):
        noise = np.sqrt(self.prior.precision) * rng.standard_normal(self.size)
        for rows in self.rows:
            jitter = np.sqrt(rows.omega) * rng.standard_normal(len(rows.omega))
            for entry, weight in zip(rows.entry, rows.weight, strict=True):
                noise += np.bincount(entry, weight * jitter, self.size)
        return self._solve(self.shift + noise, current, 1e-8)

    def coordinate(self, current):
        raise NotImplementedError(f"coordinate updates stop at {DENSE_LIMIT} entries; write PGEM(update='block')")


def _by_row(row: np.ndarray, column: np.ndarray, value: np.ndarray, size: int) -> scipy.sparse.csr_array:
    """A sparse matrix; rows that come sorted, as aggregated data do, need no sorting here."""
    if np.any(row[1:] < row[:-1]):
        order = np.argsort(row, kind="stable")
        row, column, value = row[order], column[order], value[order]
    begin = np.searchsorted(row, np.arange(size + 1, dtype=row.dtype)).astype(np.int32)
    # A copy, because the column is a view of an array that would live on with it.
    return scipy.sparse.csr_array((value, np.array(column), begin), shape=(size, size))


def truncated_normal(rng: np.random.Generator, mean, deviation, low, high) -> np.ndarray:
    """Exact draws of normals truncated to [low, high], by inversion in log space on whichever tail is accurate."""
    lower, upper = (low - mean) / deviation, (high - mean) / deviation
    flip = lower > 0
    lower, upper = np.where(flip, -upper, lower), np.where(flip, -lower, upper)
    log_low, log_high = log_ndtr(lower), log_ndtr(upper)
    uniform = rng.uniform(size=np.shape(mean))
    # log(Φ(lower) + u (Φ(upper) − Φ(lower)))
    with np.errstate(divide="ignore"):
        log_level = log_high + np.log(uniform + (1 - uniform) * np.exp(log_low - log_high))
    standard = np.clip(ndtri_exp(log_level), lower, upper)
    return np.clip(mean + deviation * np.where(flip, -standard, standard), low, high)

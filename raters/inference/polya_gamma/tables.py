r"""Draws of models that integrate a site out on nodes, as latent classes of groups.

With :math:`T_{cvq}` for the log-probability of value v under distribution c and class q, and
:math:`n_{icv}` for the number of such rows of group i,

.. math:: \ell = \sum_i \log \sum_q w_q \exp \sum_{cv} n_{icv} T_{cvq}, \qquad
    \frac{\partial \ell}{\partial T_{cvq}} = \sum_i n_{icv} \, p(q \mid i) .
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jaxtyping import Array, Float, Int
from scipy.special import softmax

from raters.distributions import GroupedMixture
from raters.distributions.rows import Tabulated
from raters.inference.arrays import EntryArray, FlatPoint, Rng, Sites
from raters.inference.base import Draws, jax_keys, warn
from raters.inference.polya_gamma import unconstrained
from raters.model import Marginal, Model, Values
from raters.program import Program, Supports, likelihood_of, log_prior, trace

# Rows times classes of which scores are held at a time.
_PIECE = 1_000_000
# Largest number of parameters, and of rows times classes of all passes, for which draws use the
# whole information matrix and have weights.
_DENSE_LIMIT = 1500
_WORK_LIMIT = 1e9


Shares = Float[np.ndarray, "group class"]
Table = Float[np.ndarray, "value cell class"]
CellBlocks = Float[np.ndarray, "cell own own"]


@dataclass(frozen=True)
class Tables:
    """Counts of the values of each distribution in each group."""

    model: Model[Any]
    supports: Supports
    data: Any
    cells: Sites
    counts: Any
    transposed: Any
    log_weights: Shares
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
        both = counts, counts.T.tocsr()
        return cls(model, program.supports, data, own, *both, log_weights, repeats.astype(float))

    def is_large(self, values: Values, draws: int) -> bool:
        """True where the whole information matrix, or densities of all draws, take too long."""
        size = sum(np.size(value) for value in values.values())
        passes = self.counts.nnz * self.log_weights.shape[1]
        return size > _DENSE_LIMIT or passes * max(size, draws) > _WORK_LIMIT

    def posterior(self, table: Table) -> Shares:
        """Probability of each class of each group."""
        joint = self.counts @ table.reshape(-1, table.shape[-1]) + self.log_weights
        return np.asarray(softmax(joint, axis=1))


class Information(NamedTuple):
    """Information matrix with a block for each distribution, and a border for the coordinates that
    they share; and the places of both."""

    own: Int[np.ndarray, "cell own"]
    shared: Int[np.ndarray, " shared"]
    block: CellBlocks
    border: Float[np.ndarray, "cell own shared"]
    of_shared: Float[np.ndarray, "shared shared"]


def draws(tables: Tables, mode: Values, number: int, rng: Rng) -> Values:
    """Draw from the normal at the mode in unconstrained coordinates."""
    supports, like = tables.supports, {name: jnp.asarray(one, float) for name, one in mode.items()}
    data = jax.tree.map(jnp.asarray, tables.data)
    climb = partial(unconstrained.slope, tables.model, supports, data, like)
    found = unconstrained.maximised(climb, np.asarray(unconstrained.flat_of(supports, like)))
    own, shared, block, border, of_shared = information(tables, like, found.x)
    inverse = inverse_factor(block)
    slope = inverse @ (inverse.transpose(0, 2, 1) @ border)
    left = of_shared - np.einsum("cis,cit->st", border, slope)
    steps = rng.standard_normal((number, found.x.size))
    steps[:, shared] = steps[:, shared] @ inverse_factor(left[None])[0].T
    moved = np.einsum("cis,ns->nci", slope, steps[:, shared])
    steps[:, own] = np.einsum("cij,ncj->nci", inverse, steps[:, own]) - moved
    drawn = unconstrained.sites_at_each(supports, like, jnp.asarray(found.x + steps))[0]
    return {name: np.asarray(value) for name, value in drawn.items()}


def information(tables: Tables, like: Values, flat: FlatPoint) -> Information:
    """Return the information of rows and classes together, averaged over the classes, less what
    the classes add in the block of each distribution."""
    supports, size, row = tables.supports, len(flat), tables.data.take(slice(0, 1))
    places = unconstrained.coordinates_of(supports, like, jnp.arange(size, dtype=float))
    each = [np.reshape(places[name], (len(places[name]), -1)) for name in tables.cells]
    own = np.concatenate(each, axis=1).astype(int)
    shared = np.setdiff1d(np.arange(size), own)
    width = own.shape[1]
    along = np.zeros((width + len(shared), size))
    along[np.arange(width), own] = along[width + np.arange(len(shared)), shared] = 1.0
    given = tables.model, supports, row, like, jnp.asarray(flat)
    table = np.asarray(_table_at(*given))
    probs = tables.posterior(table)
    weighted = tables.repeats[:, None] * probs
    expected = (tables.transposed @ weighted).reshape(table.shape)
    products, score = map(np.asarray, _derivatives(*given, expected, along, width))
    of_own, of_shared = np.split(products, [width])
    squared = tables.transposed.copy()
    squared.data **= 2
    weight = (squared @ weighted).reshape(table.shape)
    second = np.einsum("pvcq,rvcq,vcq->cpr", score, score, weight, optimize=True)
    block = of_own[:, own].transpose(1, 2, 0) - second + _of_means(tables, score, probs)
    return Information(
        own, shared, block, of_shared[:, own].transpose(1, 2, 0), of_shared[:, shared]
    )


@partial(jax.jit, static_argnums=(0, 1))
def _table_at(model: Model[Any], supports: Supports, row: Any, like: Values, flat: Array) -> Array:
    """Log-probability of each value under each distribution and class."""
    values = unconstrained.sites_at(supports, like, flat)[0]
    return trace(model, row, values)[model.observed]["fn"].component_distribution.table()


@partial(jax.jit, static_argnums=(0, 1, 7))
def _derivatives(
    model: Model[Any],
    supports: Supports,
    row: Any,
    like: Values,
    flat: Array,
    expected: Array,
    along: Array,
    number: int,
) -> tuple[Array, Array]:
    """Products of the negative second derivatives of the expected log joint density of rows and
    classes with some directions, and derivatives of the table along the first of them."""

    def table(flat: Array) -> Array:
        return _table_at(model, supports, row, like, flat)

    def density(flat: Array) -> Array:
        values, volume = unconstrained.sites_at(supports, like, flat)
        return log_prior(model, row, values) + volume + (expected * table(flat)).sum()

    def product(direction: Array) -> Array:
        return -jax.jvp(jax.grad(density), (flat,), (direction,))[1]

    def score(direction: Array) -> Array:
        return jax.jvp(table, (flat,), (direction,))[1]

    return jax.lax.map(product, along), jax.lax.map(score, along[:number])


def _of_means(
    tables: Tables, score: Float[np.ndarray, "own value cell class"], probs: Shares
) -> CellBlocks:
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


# Least eigenvalue of a block of the information, relative to its largest.
_FLATTEST = 1e-6


def inverse_factor(matrix: CellBlocks) -> np.ndarray:
    """Matrices F with F Fᵀ the inverse of each."""
    if matrix.shape[-1] == 0:
        return matrix
    eigenvalues, vectors = np.linalg.eigh((matrix + matrix.transpose(0, 2, 1)) / 2)
    least = _FLATTEST * np.maximum(np.abs(eigenvalues).max(1, keepdims=True), 1e-3)
    scale = 1 / np.sqrt(np.maximum(np.abs(eigenvalues), least))
    return np.asarray(vectors * scale[:, None, :])


# Steps to the mode of each entry, from 0 and from the mode under other values of the other sites.
_FROM_AFAR, _FROM_NEARBY = 30, 6
# Proposals to each entry, and the scale of their logistic distribution in standard deviations. Its
# density is at least nine tenths of a normal one everywhere, so that of ten proposals nine are
# accepted, and hardly an entry stays where it began.
_PROPOSALS, _SCALE = 8, 0.6
# Draws times rows up to which the entries are drawn given each draw of the other sites.
_MOST = 2e7
# Largest error of the log-likelihood at the mode, in nats, that needs no warning: in all, or for
# each unit.
_TOLERANCE, _OF_UNIT = 0.01, 1e-4


def added(program: Program[Any], marginal: Marginal, draws: Draws, rng: Rng) -> Draws:
    """Draws of all sites, from those of a model with one site integrated out."""
    (axis,) = program.sites[marginal.site].dims
    with jax.enable_x64(True):
        data = jax.tree.map(jnp.asarray, program.data)
        how = _How(program.model, marginal.site, axis, len(program.data.coords[axis]))
        mode = {name: jnp.asarray(value) for name, value in draws.mode.items()}
        centre, spread = map(np.asarray, _normal_at_mode(how, data, mode))
        first = next(iter(draws.values.values()))
        number = first.shape[0] * first.shape[1]
        if not draws.stats and number == 1:
            site = np.broadcast_to(centre, (*first.shape[:2], len(centre)))
        elif number * program.data.num_rows > _MOST:
            noise = rng.standard_normal((*first.shape[:2], len(centre)))
            site = centre + spread * noise
        else:
            flat = {
                name: value.reshape(-1, *value.shape[2:]) for name, value in draws.values.items()
            }
            drawn = np.asarray(_drawn(how, data, flat, jnp.asarray(centre), jax_keys(rng, number)))
            site = drawn.reshape(*first.shape[:2], -1)
        likelihood = _likelihood(marginal, mode)
    values, at_mode = draws.values | {marginal.site: site}, draws.mode | {marginal.site: centre}
    facts = draws.facts | {"marginal_log_likelihood": likelihood}
    return draws._replace(values=values, mode=at_mode, facts=facts)


def _likelihood(marginal: Marginal, mode: Values) -> float:
    """Log-likelihood at the mode."""
    others = {name: value for name, value in mode.items() if name != marginal.site}
    likelihood = _at_mode(marginal.model, marginal.data, others)
    if marginal.finer is not None:
        error = abs(_at_mode(marginal.finer, marginal.data, others) - likelihood)
        most = max(_TOLERANCE, _OF_UNIT * marginal.data.num_units)
        if not error < most:
            warn(
                f"the log-likelihood at the mode is off by {error:.2g} (at most {most:.2g}),"
                f" since {marginal.site} is integrated out on too few nodes for so steep a"
                " likelihood; use NUTS, or PGGibbs where the model has blocks",
                5,
            )
    return likelihood


def _at_mode(model: Model[Any], data: Any, values: Values) -> float:
    """Log-likelihood of a model in which the site is integrated out."""
    return float(likelihood_of(model, jax.tree.map(jnp.asarray, data), values))


@dataclasses.dataclass(frozen=True)
class _How:
    """A site with an entry for each of so many names of an axis, given the other sites."""

    model: Model[Any]
    site: str
    axis: str
    size: int

    def log_density(self, data: Any, others: Values, entries: EntryArray) -> EntryArray:
        """Log density of each entry given the other sites, less a constant."""
        sites = trace(self.model, data, others | {self.site: entries})
        rows = sites[self.model.observed]
        likelihood = rows["fn"].log_prob(rows["value"])
        own = jax.ops.segment_sum(likelihood, data.codes(self.axis), self.size)
        log_prior: Array = sites[self.site]["fn"].log_prob(entries)
        return log_prior + own

    def slopes(
        self, data: Any, others: Values, entries: EntryArray
    ) -> tuple[EntryArray, EntryArray]:
        """First and second derivative of each entry's log density, which has no other entry."""
        gradient = jax.grad(lambda entries: self.log_density(data, others, entries).sum())
        first, second = jax.jvp(gradient, (entries,), (jnp.ones_like(entries),))
        return first, second

    def mode(self, data: Any, others: Values, start: EntryArray, steps: int) -> EntryArray:
        """Mode of each entry by Newton's method."""

        def step(_: Any, entries: Array) -> Array:
            first, second = self.slopes(data, others, entries)
            # Far from the mode the curvature may be that of the prior alone.
            return entries + jnp.clip(first / -second, -1.0, 1.0)

        return jax.lax.fori_loop(0, steps, step, start)


@partial(jax.jit, static_argnums=0)
def _normal_at_mode(how: _How, data: Any, others: Values) -> tuple[EntryArray, EntryArray]:
    """Mode of each entry, and its standard deviation by the curvature there."""
    mode = how.mode(data, others, jnp.zeros(how.size), _FROM_AFAR)
    return mode, 1 / jnp.sqrt(-how.slopes(data, others, mode)[1])


@partial(jax.jit, static_argnums=0)
def _drawn(
    how: _How, data: Any, draws: Values, centre: EntryArray, keys: Array
) -> Float[Array, "draw entry"]:
    """A draw of each entry under each draw of the other sites."""

    def one(entry: tuple[Values, Array]) -> Array:
        others, key = entry
        mode = how.mode(data, others, centre, _FROM_NEARBY)
        scale = 1 / jnp.sqrt(-how.slopes(data, others, mode)[1])

        def log_ratio(score: Array) -> Array:
            density = how.log_density(data, others, mode + scale * score)
            return density - jax.scipy.stats.logistic.logpdf(score, scale=_SCALE)

        def step(_: Any, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            score, ratio, key = state
            key, propose, accept = jax.random.split(key, 3)
            proposed = _SCALE * jax.random.logistic(propose, (how.size,))
            own = log_ratio(proposed)
            moves = jnp.log(jax.random.uniform(accept, (how.size,))) < own - ratio
            return jnp.where(moves, proposed, score), jnp.where(moves, own, ratio), key

        key, begin = jax.random.split(key)
        score = _SCALE * jax.random.logistic(begin, (how.size,))
        score, *_ = jax.lax.fori_loop(0, _PROPOSALS, step, (score, log_ratio(score), key))
        return mode + scale * score

    return jax.lax.map(one, (draws, keys))

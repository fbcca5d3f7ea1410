"""Choices from sets, and rankings: the softmax of utilities, once or stage by stage."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import lax
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Bool, Float, Int, Num
from numpyro.distributions import constraints

Codes = Int[Array, " row"]
PerRow = Float[Array, " row"]
Table = Float[Array, "set place"]

# The log of what is not there: −∞ has no second derivative in `jnp.logaddexp`.
_NOTHING = -1e30
#: A row with a lower utility is a position without an item: it is chosen at no stage.
NOT_OFFERED = -1e8


class OfSets(dist.Distribution):
    """Observations of sets of rows, of which the likelihood is a product over sets."""

    def __init__(
        self,
        utility: PerRow | Float[Array, "row class"],
        set: Codes,
        num_sets: int,
        count: Float[Array, " set"] | None = None,
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.utility, self.set, self.num_sets, self.count = utility, set, num_sets, count
        # A mixture takes care of the rows, and has them as its own event.
        event = tuple(utility.shape[:1]) if utility.ndim == 1 else ()
        super().__init__((num_sets, *utility.shape[1:]), event, validate_args=validate_args)


class Choice(OfSets):
    r"""Choices from sets of alternatives: the multinomial logit (Luce 1959, McFadden 1974).

    .. math::

        \log p(y_S) = \sum_{j \in S} y_j u_j - n_S \log \sum_{j \in S} e^{u_j}

    for :math:`n_S = \sum_{j \in S} y_j` choices. The multinomial coefficient, which depends on no
    utility, is left out, so that choices counted together have the density of single ones.

    Batch shape (set,); the event is all rows, since sets differ in size. A utility for each class
    gives batch shape (set, class), as a component of `GroupedMixture`, whose groups are of sets.
    """

    pytree_data_fields = ("utility", "set", "count")
    pytree_aux_fields = ("num_sets",)

    @constraints.dependent_property(is_discrete=True)
    def support(self) -> constraints.Constraint:
        """Number of times that each row was chosen."""
        return constraints.independent(constraints.nonnegative, len(self.event_shape))

    def _log_totals(self) -> tuple[Float[Array, "set *class"], Float[Array, "set *class"]]:
        """Return the largest utility of each set, and the log of the sum of e to those less it."""
        top = jax.ops.segment_max(lax.stop_gradient(self.utility), self.set, self.num_sets)
        top = jnp.where(jnp.isfinite(top), top, 0.0)
        total = jax.ops.segment_sum(jnp.exp(self.utility - top[self.set]), self.set, self.num_sets)
        return top, jnp.log(jnp.where(total > 0, total, 1.0))

    def log_probs(self) -> Float[Array, "row *class"]:
        """Return the log-probability of each row to be chosen of its set."""
        top, total = self._log_totals()
        return self.utility - (top + total)[self.set]

    def log_prob(
        self, value: Num[Array, "*sample row"] | Num[Array, "row 1"], intermediates: Any = None
    ) -> Float[Array, "*sample set *class"]:
        """Return the log-probability of the choices from each set."""
        top, total = self._log_totals()
        above = value * (self.utility - top[self.set])
        own = _by_code(above, self.set, self.num_sets, axis=self.utility.ndim)
        if self.count is None:
            return own - total
        number = self.count if self.utility.ndim == 1 else self.count[:, None]
        return own - number * total

    def sample(
        self, key: Array, sample_shape: tuple[int, ...] = ()
    ) -> Float[Array, "*sample row *class"]:
        """Draw how often each row is chosen."""
        shape = (*sample_shape, *self.utility.shape)
        if self.count is not None:
            return self._counts(key, shape)
        noisy = self.utility + jax.random.gumbel(key, shape, self.utility.dtype)
        first = jnp.moveaxis(noisy, len(sample_shape), 0)
        top = jax.ops.segment_max(first, self.set, self.num_sets)
        own = (self.set < self.num_sets).reshape(-1, *(1,) * (first.ndim - 1))
        chosen = (first == top[self.set]) & own
        return jnp.moveaxis(chosen.astype(self.utility.dtype), 0, len(sample_shape))

    def _counts(self, key: Array, shape: tuple[int, ...]) -> Float[Array, "*sample row *class"]:
        """Draw multinomial counts, row by row: binomial given those of the rows before."""
        assert self.count is not None
        last = jnp.append(self.set[1:] != self.set[:-1], True)
        number = jnp.where(self.set < self.num_sets, self.count[self.set], 0.0)
        first = jnp.append(True, last[:-1])
        axis = len(shape) - self.utility.ndim
        before = tuple(shape[:axis]) + tuple(self.utility.shape[1:])

        def draw(carry: tuple[Array, Array], row: Any) -> tuple[tuple[Array, Array], Array]:
            left, mass = carry
            key, prob, number, begins, ends = row
            left = jnp.where(begins, number, left)
            mass = jnp.where(begins, 1.0, mass)
            share = jnp.clip(prob / jnp.maximum(mass, 1e-30), 0.0, 1.0)
            drawn = jax.random.binomial(key, left, share, shape=before, dtype=left.dtype)
            drawn = jnp.where(ends, left, drawn)
            return (left - drawn, mass - prob), drawn

        keys = jax.random.split(key, len(self.set))
        rows = (keys, jnp.exp(self.log_probs()), number, first, last)
        zero = jnp.zeros(before, self.utility.dtype)
        _, drawn = lax.scan(draw, (zero, zero), rows)
        return jnp.moveaxis(drawn, 0, axis)


class PlackettLuce(OfSets):
    r"""Rankings as choices in stages: the best, then the best of the rest (Plackett 1975, Luce
    1959).

    .. math::

        \log p(j_1 \succ \dots \succ j_K)
        = \sum_{k=1}^{K} \Big( u_{j_k} - \log \sum_{j \in R_k} e^{u_j} \Big)

    in which :math:`R_k` are the rows of the ranking that have no place before the k-th. Rows
    without a place, with a value of 0, are among them at all stages: they were offered and come
    below all placed ones.

    With `lowest`, the worst of the rows without a place may be named, by a value of −1. It is
    chosen at a last stage, by the utilities turned round (the sequential best–worst choice of
    Marley and Louviere 2005): among the rows :math:`R` that have no place,

    .. math:: \log p(j_{-1} \mid R) = -u_{j_{-1}} - \log \sum_{j \in R} e^{-u_j} .

    Batch shape (ranking,); the event is all rows. A utility for each class gives batch shape
    (ranking, class), as a component of `GroupedMixture`, whose groups are of rankings. `log_prob`
    takes rows in any order within their ranking: a scatter by place takes the part of a sort, which
    a compiler would carry out again on each program of which the places are constants. It is into a
    table of rankings by `longest`, the number of rows of the longest one, which a compiled function
    takes for that of all rows where it is not given.
    """

    pytree_data_fields = ("utility", "set", "count", "places", "lowest")
    pytree_aux_fields = ("num_sets", "longest")

    def __init__(
        self,
        utility: PerRow | Float[Array, "row class"],
        set: Codes,
        num_sets: int,
        count: Float[Array, " ranking"] | None = None,
        places: Int[Array, " ranking"] | None = None,
        lowest: Int[Array, " ranking"] | None = None,
        longest: int | None = None,
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.places, self.lowest = places, lowest
        if longest is None:
            known = not isinstance(set, jax.core.Tracer)
            longest = int(np.bincount(set, minlength=1).max()) if known else len(utility)
        self.longest = longest
        super().__init__(utility, set, num_sets, count, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True)
    def support(self) -> constraints.Constraint:
        """Places from 1, 0 for a row without one, and −1 for the worst of those."""
        whole = constraints.nonnegative_integer
        if self.lowest is not None:
            whole = constraints.integer_greater_than(-2)
        return constraints.independent(whole, len(self.event_shape))

    def _of_class(self, utility: PerRow) -> PlackettLuce:
        """Return the distribution under one class."""
        settings = self.count, self.places, self.lowest, self.longest
        return PlackettLuce(utility, self.set, self.num_sets, *settings)

    def _begin(self) -> Int[Array, " ranking"]:
        """Return the first row of each ranking."""
        return jnp.searchsorted(self.set, jnp.arange(self.num_sets))

    def log_prob(
        self, value: Num[Array, "*sample row"] | Num[Array, "row 1"], intermediates: Any = None
    ) -> Float[Array, "*sample ranking *class"]:
        """Return the log-probability of each ranking."""
        value = jnp.asarray(value)
        if self.utility.ndim > 1:
            of_class = jax.vmap(lambda utility: self._of_class(utility).log_prob(value[:, 0]), 1, 1)
            return of_class(self.utility)
        if value.ndim > 1:
            return jnp.vectorize(self._log_prob, signature="(r)->(k)")(value)
        return self._log_prob(value)

    def _log_prob(self, value: Num[Array, " row"]) -> Float[Array, " ranking"]:
        """Return the log-probability of one ranking of all rows."""
        utility, own = self.utility, self.set < self.num_sets
        placed = (value > 0) & own
        cell = self.set, jnp.where(placed, value.astype(int) - 1, self.longest)
        in_order = jnp.full((self.num_sets, self.longest), _NOTHING, utility.dtype)
        in_order = in_order.at[cell].set(utility, mode="drop")
        # From the last place on: the log of the sum of e to what has no earlier place.
        unplaced = jnp.where(own & ~placed, utility, _NOTHING)
        rest = _log_sum(unplaced, self.set, self.num_sets)
        ahead = lax.scan(lambda *both: (jnp.logaddexp(*both),) * 2, rest, in_order.T, reverse=True)
        stages = jnp.where(in_order > _NOTHING / 2, in_order - ahead[1].T, 0.0)
        log_probs = stages.sum(1)
        if self.lowest is not None:
            log_probs = log_probs + self._log_prob_of_worst(value, own & ~placed)
        return log_probs if self.count is None else self.count * log_probs

    def _log_prob_of_worst(
        self, value: Num[Array, " row"], unplaced: Bool[Array, " row"]
    ) -> Float[Array, " ranking"]:
        """Return the log-probability of the worst among the rows without a place."""
        turned = jnp.where(unplaced & (self.utility > NOT_OFFERED), -self.utility, _NOTHING)
        total = _log_sum(turned, self.set, self.num_sets)
        chosen = jnp.where((value < 0) & unplaced, turned - total[self.set], 0.0)
        return jax.ops.segment_sum(chosen, self.set, self.num_sets)

    def sample(
        self, key: Array, sample_shape: tuple[int, ...] = ()
    ) -> Int[Array, "*sample row *class"]:
        """Draw a place for each row."""
        if self.utility.ndim > 1:
            keys = jax.random.split(key, self.utility.shape[1])
            of_class = jax.vmap(lambda u, k: self._of_class(u).sample(k, sample_shape), (1, 0), -1)
            return of_class(self.utility, keys)
        key, key_of_worst = (key, None) if self.lowest is None else jax.random.split(key)
        noisy = self.utility + jax.random.gumbel(
            key, (*sample_shape, *self.utility.shape), self.utility.dtype
        )
        order = jnp.lexsort((-noisy, jnp.broadcast_to(self.set, noisy.shape)), axis=-1)
        place = jnp.argsort(order, axis=-1) - self._begin()[self.set] + 1
        own = self.set < self.num_sets
        if self.places is not None:
            own = own & (place <= self.places[self.set])
        place = jnp.where(own, place, 0).astype(jnp.int32)
        return place if key_of_worst is None else self._with_worst(key_of_worst, place)

    def _with_worst(
        self, key: Array, place: Int[Array, "*sample row"]
    ) -> Int[Array, "*sample row"]:
        """Draw the worst of the rows without a place."""
        assert self.lowest is not None
        noise = jax.random.gumbel(key, place.shape, self.utility.dtype)
        left = (place == 0) & (self.utility > NOT_OFFERED) & (self.lowest[self.set] > 0)
        left = left & (self.set < self.num_sets)
        noisy = jnp.moveaxis(jnp.where(left, noise - self.utility, -jnp.inf), -1, 0)
        top = jax.ops.segment_max(noisy, self.set, self.num_sets)[self.set]
        worst = jnp.moveaxis((noisy == top) & jnp.isfinite(noisy), 0, -1)
        return jnp.where(worst, -1, place)


def _by_code(terms: Array, code: Codes, number: int, axis: int) -> Array:
    """Sum rows by their code; the rows are the first of the last `axis` axes."""
    rows = jnp.moveaxis(terms, -axis, 0)
    return jnp.moveaxis(jax.ops.segment_sum(rows, code, number), 0, -axis)


def _log_sum(terms: PerRow, code: Codes, number: int) -> Float[Array, " code"]:
    """Return the log of the sum of e to the terms of each code, and `_NOTHING` without any."""
    top = jax.ops.segment_max(lax.stop_gradient(terms), code, number)
    top = jnp.maximum(top, _NOTHING)
    total = jax.ops.segment_sum(jnp.exp(terms - top[code]), code, number)
    return top + jnp.log(jnp.where(total > 0, total, 1.0))


# ---------------------------------------------------------------- errors in common


class NestedChoice(Choice):
    r"""Choices from sets whose alternatives lie in nests: the nested logit (McFadden 1978).

    .. math::

        P(j \mid S) = \frac{e^{u_j / \lambda_m}}{e^{I_m}} \,
            \frac{e^{\lambda_m I_m}}{\sum_l e^{\lambda_l I_l}}, \qquad
        I_m = \log \sum_{k \in S \cap m} e^{u_k / \lambda_m}

    for j in nest m. A dissimilarity λ of 1 leaves the alternatives of a nest independent, as in
    `Choice`; near 0, those of a nest are one alternative. It is 1/μ of Biogeme, with the scale of
    the upper level at 1.
    """

    def __init__(
        self,
        utility: PerRow,
        set: Codes,
        num_sets: int,
        nest: Codes,
        dissimilarity: Float[Array, " nest"],
        count: Float[Array, " set"] | None = None,
        *,
        validate_args: bool | None = None,
    ) -> None:
        log_probs = _log_probs(utility, set, num_sets, nest, dissimilarity)
        # Log-probabilities are utilities of which the exponentials sum to 1.
        super().__init__(log_probs, set, num_sets, count, validate_args=validate_args)


def _log_probs(
    utility: PerRow, set: Codes, num_sets: int, nest: Codes, dissimilarity: Float[Array, " nest"]
) -> PerRow:
    """Log-probability of each row to be chosen from its set."""
    number = dissimilarity.shape[0]
    cell, cells = set * number + nest, num_sets * number
    scaled = utility / dissimilarity[nest]
    top = jax.ops.segment_max(lax.stop_gradient(scaled), cell, cells)
    there = jnp.isfinite(top)
    top = jnp.where(there, top, 0.0)
    total = jax.ops.segment_sum(jnp.exp(scaled - top[cell]), cell, cells)
    inclusive = top + jnp.log(jnp.where(there, total, 1.0))
    of_nests = jnp.where(there, jnp.tile(dissimilarity, num_sets) * inclusive, -jnp.inf)
    # A set without rows, as in padding, has no nest either.
    some = there.reshape(num_sets, number).any(axis=1)
    table = jnp.where(some[:, None], of_nests.reshape(num_sets, number), 0.0)
    upper = of_nests[cell] - jax.nn.logsumexp(table, axis=1)[jnp.minimum(set, num_sets - 1)]
    return scaled - inclusive[cell] + upper


# Evenly spaced nodes of the error of the alternative chosen, and of the error in common. The sum of
# an analytic function times a normal density converges exponentially in the inverse of the spacing.
_OWN = np.linspace(-7.2, 7.2, 25)
_COMMON = np.linspace(-6.0, 6.0, 61)
# Utility of what a set does not offer.
_NEVER = -1e4


class ProbitChoice(Choice):
    r"""Choices from sets under normal errors: the multinomial probit (Hausman and Wise 1978).

    .. math::

        P(j \mid S) = \int \phi(f) \int \phi(e)
            \prod_{k \in S, k \ne j} \Phi(v_j(f) - v_k(f) + e) \, de \, df, \qquad
        v_j(f) = u_j + l_j f

    Each alternative has an error of its own, with standard deviation 1, and the loading l on one
    that all have in common. Both integrals are sums over evenly spaced nodes, with a relative error
    below a thousandth for loadings up to 8.
    """

    def __init__(
        self,
        utility: PerRow,
        set: Codes,
        num_sets: int,
        size: int,
        loading: PerRow | None = None,
        count: Float[Array, " set"] | None = None,
        *,
        validate_args: bool | None = None,
    ) -> None:
        place = _places(set, num_sets)
        offered = _table(utility, set, place, (num_sets, size), _NEVER)
        if loading is None:
            table = _given(offered)
        else:
            loadings = _table(loading, set, place, (num_sets, size), 0.0)
            table = _averaged(offered, loadings)
        log_probs = table[jnp.minimum(set, num_sets - 1), jnp.minimum(place, size - 1)]
        # Log-probabilities are utilities of which the exponentials sum to 1.
        super().__init__(log_probs, set, num_sets, count, validate_args=validate_args)


def _places(set: Codes, num_sets: int) -> Codes:
    """Place of each row within its set."""
    row = jnp.arange(len(set))
    first = jax.ops.segment_min(row, set, num_sets)
    return row - first[jnp.minimum(set, num_sets - 1)]


def _table(
    values: PerRow, set: Codes, place: Codes, shape: tuple[int, int], nothing: float
) -> Table:
    """Values of rows as a table, with `nothing` where a set is shorter."""
    return jnp.full(shape, nothing, values.dtype).at[set, place].set(values, mode="drop")


def _given(utility: Table) -> Table:
    """Log-probability of each alternative, with no error in common."""
    size = utility.shape[1]
    ahead = utility[:, :, None] - utility[:, None, :]
    weight = jnp.asarray(_log_weights(_OWN), utility.dtype)
    nodes = jnp.asarray(_OWN, utility.dtype)
    below = log_ndtr(ahead[..., None] + nodes)
    others = jnp.where(jnp.eye(size, dtype=bool)[None, :, :, None], 0.0, below).sum(2)
    return jax.nn.logsumexp(others + weight, axis=-1)


def _averaged(utility: Table, loading: Table) -> Table:
    """Log-probability of each alternative, averaged over the error in common."""
    nodes = jnp.asarray(_COMMON, utility.dtype)
    weight = jnp.asarray(_log_weights(_COMMON), utility.dtype)
    # One node at a time, and computed again for the gradient: all at once would not fit.
    given = jax.checkpoint(lambda node: _given(utility + loading * node))
    each = jax.lax.map(given, nodes)
    return jax.nn.logsumexp(each + weight[:, None, None], axis=0)


def _log_weights(nodes: Float[np.ndarray, " node"]) -> Float[np.ndarray, " node"]:
    """Log weights of evenly spaced nodes under a standard normal density."""
    log_density = -(nodes**2) / 2
    return log_density - np.log(np.exp(log_density).sum())

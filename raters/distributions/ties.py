"""Answers with ties: votes for one of two sides or for neither, and rankings of which some tie."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Num
from numpyro.distributions import constraints

from raters.distributions.choices import NOT_OFFERED, Orders
from raters.distributions.rows import log_sigmoid

#: Outcomes of a vote, in the order of the log-probabilities: the first side, a tie, the second.
OUTCOMES = (1.0, 0.5, 0.0)


class TiedVotes(dist.Distribution):
    r"""Base of the distributions of a vote: 1 for the first side, ½ for a tie, 0 for the second; at
    log-odds of 0, a tie has the probability :math:`e^\nu / (2 + e^\nu)`."""

    pytree_data_fields = ("logits", "propensity", "count")

    def __init__(self, logits: Any, propensity: Any, count: Any = None) -> None:
        shape = jnp.broadcast_shapes(jnp.shape(logits), jnp.shape(propensity))
        self.logits, self.propensity = (
            jnp.broadcast_to(jnp.asarray(part, float), shape) for part in (logits, propensity)
        )
        self.count = count
        super().__init__(shape, ())

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """Interval from 0 to 1, in which 0, ½ and 1 are the outcomes."""
        return constraints.unit_interval

    def log_probs(self) -> Float[Array, "*batch outcome"]:
        """Return the log-probabilities of `OUTCOMES`."""
        raise NotImplementedError

    def log_prob(
        self, value: Num[Array, " *sample"], intermediates: Any = None
    ) -> Float[Array, " *sample"]:
        """Return the log-probability of votes that are alike."""
        value = jnp.asarray(value)[..., None]
        one = jnp.where(value == jnp.asarray(OUTCOMES), self.log_probs(), 0.0).sum(-1)
        return one if self.count is None else self.count * one

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Float[Array, " *sample"]:
        """Draw one outcome for each row."""
        shape = (*sample_shape, *self.batch_shape)
        place = jax.random.categorical(key, self.log_probs(), axis=-1, shape=shape)
        return jnp.asarray(OUTCOMES, self.logits.dtype)[place]


class Davidson(TiedVotes):
    r"""Votes with ties of Davidson (1970): probabilities of first, tie and second proportional to
    :math:`e^{x/2}, e^\nu, e^{-x/2}`."""

    def utilities(self) -> Float[Array, "*batch outcome"]:
        """Return the utilities of `OUTCOMES`."""
        return jnp.stack([self.logits / 2, self.propensity, -self.logits / 2], -1)

    def log_probs(self) -> Float[Array, "*batch outcome"]:
        return jax.nn.log_softmax(self.utilities(), -1)


class RaoKupper(TiedVotes):
    r"""Votes with ties of Rao and Kupper (1967), where the difference is below a threshold t.

    .. math::

        P(\text{first}) = \sigma(x - t), \quad P(\text{second}) = \sigma(-x - t), \quad
        P(\text{tie}) = (e^{2t} - 1) \, \sigma(x - t) \, \sigma(-x - t), \quad
        t = \log(1 + e^\nu)
    """

    @property
    def threshold(self) -> Float[Array, "*batch"]:
        """Threshold t, above 0."""
        return jax.nn.softplus(self.propensity)

    def log_factor(self) -> Float[Array, "*batch"]:
        r"""Return :math:`\log(e^{2t} - 1) = \nu + \log(2 + e^\nu)`."""
        return self.propensity + jnp.logaddexp(jnp.log(2.0), self.propensity)

    def log_probs(self) -> Float[Array, "*batch outcome"]:
        first, second = (log_sigmoid(side - self.threshold) for side in (self.logits, -self.logits))
        return jnp.stack([first, self.log_factor() + first + second, second], -1)


# ---------------------------------------------------------------- rankings

# Positions that are compiled into one loop over the rankings.
_UNROLLED = 5
Places = Int[Array, "*ranking position"]
PerPosition = Float[Array, "*ranking position"]
# Elementary symmetric polynomials of the d-th roots of worths, by d and their degree, 1 to d.
Polynomials = dict[tuple[int, int], Array]


class DavidsonLuce(Orders):
    r"""Rankings with ties as choices in stages: of the items C in the first place, then of those in
    the next (Davidson–Luce; Firth, Kosmidis and Turner 2019).

    .. math::

        P(C \mid R) = \frac{\delta_{|C|} \prod_{i \in C} \alpha_i^{1/|C|}}
        {\sum_{d \leq D} \delta_d \, e_d(\{\alpha_i^{1/d}\}_{i \in R})}, \qquad
        \alpha_i = e^{u_i}, \quad \delta_1 = 1, \quad \delta_d = e^{\nu_d}

    where R are the items without a place so far, and :math:`e_d` is the elementary symmetric
    polynomial: the sum over all sets of d items. A set is at most as large as the number of places
    left to give. With D = 1 it is `PlackettLuce`, and of two items the ties are `Davidson`'s.

    Parameters
    ----------
    utility : array, shape (..., position)
        Utilities u; below `NOT_OFFERED` where a position has no item.
    propensity : array, shape (D − 1,)
        Logarithms ν of the prevalences of ties of 2, 3, …, D items.
    count, places, lowest : array, optional
        As of `PlackettLuce`.
    """

    pytree_data_fields = ("utility", "propensity", "count", "places", "lowest")

    def __init__(self, utility: PerPosition, propensity: Any, *counts: Any, **named: Any) -> None:
        self.propensity = propensity
        super().__init__(utility, *counts, **named)

    @property
    def _log_prevalence(self) -> Float[Array, " size"]:
        """Return the logarithms of the prevalences of sets of 1, 2, …, D items."""
        return jnp.append(jnp.zeros(1, self.propensity.dtype), self.propensity)

    def log_prob(
        self, value: Num[Array, "*ranking position"], intermediates: Any = None
    ) -> Float[Array, " *ranking"]:
        """Return the log-probability of each ranking."""
        value, utility = jnp.broadcast_arrays(value, self.utility)
        placed, position = value > 0, jnp.arange(value.shape[-1])
        same = value[..., :, None] == value[..., None, :]
        size = jnp.where(placed, same.sum(-1), 1)
        # Items in the order of their places, those without one at the end.
        is_first = placed & ~(same & (position[:, None] > position)).any(-1)
        earlier = (same & (position[:, None] > position)).sum(-1)
        left = jnp.cumsum(~placed, -1) - 1 + placed.sum(-1, keepdims=True)
        rank = jnp.where(placed, value - 1 + earlier, left).astype(int)
        # A sum over positions is quicker than sorting and gathering.
        is_at = rank[..., None, :] == position[:, None]
        in_order, place = (
            jnp.where(is_at, one[..., None, :], 0).sum(-1) for one in (utility, value)
        )
        most = placed.sum(-1, keepdims=True) - position
        is_stage = place == position + 1
        totals = self._log_totals(in_order, most)
        prevalence = self._log_prevalence
        # How many places are of 1, 2, ... items.
        number = (
            (size[..., None] == jnp.arange(1, len(prevalence) + 1)) & is_first[..., None]
        ).sum(-2)
        chosen = jnp.where(placed, utility / size, 0.0).sum(-1) + number @ prevalence
        chosen = jnp.where((size > len(prevalence)).any(-1), -jnp.inf, chosen)
        log_prob = chosen - jnp.where(is_stage, totals, 0.0).sum(-1)
        return self._with_worst(log_prob, value)

    def _log_totals(self, utility: PerPosition, most: Places) -> PerPosition:
        """Return the log of the sum over sets, of `most` items or fewer, of each position and those
        behind it.

        A set counts by its mean utility less the highest one so far: none is above 1, and that of
        the best item alone is 1.
        """
        prevalence = jnp.exp(self._log_prevalence)

        def step(carry: tuple[Any, Polynomials], row: Any) -> tuple[Any, Any]:
            top, sums = carry
            own, most = row
            highest = jnp.maximum(top, lax.stop_gradient(own))
            lower = {d: jnp.exp((top - highest) / d) for d in sizes}
            sums = {(d, k): one * lower[d] ** k for (d, k), one in sums.items()}
            sums = _with_item(sums, {d: jnp.exp((own - highest) / d) for d in sizes})
            allowed = jnp.maximum(most, 1)
            each = [jnp.where(d <= allowed, prevalence[d - 1] * sums[d, d], 0.0) for d in sizes]
            return (highest, sums), highest + jnp.log(sum(each))

        sizes = range(1, len(prevalence) + 1)
        rows = jnp.moveaxis(utility, -1, 0), jnp.moveaxis(most, -1, 0)
        start = jnp.full_like(rows[0][0], -jnp.inf), _no_items(rows[0][0], len(prevalence))
        _, totals = lax.scan(step, start, rows, reverse=True, unroll=_UNROLLED)
        return jnp.moveaxis(totals, 0, -1)

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Places:
        """Draw a place for each item, stage by stage."""
        utility = jnp.broadcast_to(self.utility, (*sample_shape, *self.utility.shape))
        number = utility.shape[-1]
        there = utility > NOT_OFFERED
        most = there.sum(-1)
        if self.places is not None:
            most = jnp.minimum(most, self.places)
        key, key_of_worst = jax.random.split(key)

        def stage(place: Array, key: Array) -> tuple[Array, None]:
            placed = (place > 0).sum(-1)
            open_utility = jnp.where(there & (place == 0), utility, NOT_OFFERED)
            chosen = self._draw_set(key, open_utility, most - placed)
            chosen &= (placed < most)[..., None]
            return jnp.where(chosen, placed[..., None] + 1, place).astype(jnp.int32), None

        none = jnp.zeros(utility.shape, jnp.int32)
        place, _ = lax.scan(stage, none, jax.random.split(key, number))
        return self._draw_worst(key_of_worst, place)

    def _draw_set(
        self, key: Array, utility: PerPosition, most: Int[Array, " *ranking"]
    ) -> Bool[Array, "*ranking position"]:
        """Draw the size of a set, and then its items, one after the other."""
        size_key, *keys = jax.random.split(key, utility.shape[-1] + 1)
        largest = len(self._log_prevalence)
        apart = jnp.moveaxis(utility - utility.max(-1, keepdims=True), -1, 0)
        share = {d: jnp.exp(apart / d) for d in range(1, largest + 1)}

        def add(sums: Polynomials, own: Any) -> tuple[Polynomials, Polynomials]:
            return _with_item(sums, own), sums

        sums, behind = lax.scan(add, _no_items(apart[0], largest), share, reverse=True)
        logs = jnp.log(jnp.stack([sums[d, d] for d in share], -1)) + self._log_prevalence
        is_small = jnp.arange(1, largest + 1) <= jnp.maximum(most, 1)[..., None]
        size = 1 + jax.random.categorical(size_key, jnp.where(is_small, logs, -jnp.inf))

        def item(left: Any, row: Any) -> tuple[Any, Any]:
            """Take the next item, given how many are still to be taken from it and those behind."""
            key, own, behind = row
            ahead = _with_item(behind, own)
            without, whole = (
                sum(jnp.where((size == d) & (left == k), one, 0.0) for (d, k), one in sums.items())
                for sums in (behind, ahead)
            )
            takes = (left > 0) & (jax.random.uniform(key, left.shape) * whole >= without)
            return left - takes, takes

        _, taken = lax.scan(item, size, (jnp.stack(keys), share, behind))
        return jnp.moveaxis(taken, 0, -1)


def _no_items(like: Array, largest: int) -> Polynomials:
    """Return the polynomials of no items, in the shape of an array."""
    return {(d, k): jnp.zeros_like(like) for d in range(1, largest + 1) for k in range(1, d + 1)}


def _with_item(sums: Polynomials, own: dict[int, Array]) -> Polynomials:
    """Return the polynomials of one item more, given the d-th roots of its worth."""
    return {(d, k): one + own[d] * sums.get((d, k - 1), 1.0) for (d, k), one in sums.items()}

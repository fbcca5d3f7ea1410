"""Choices from sets, and rankings: the softmax of utilities, once or stage by stage."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import lax
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Float, Int, Num
from numpyro.distributions import constraints

Positions = Float[Array, "*set position"]
Counts = Num[Array, " *set"]

# The log of what is not there: −∞ has no second derivative in `jnp.logaddexp`.
_NOTHING = -1e30
#: A position with a lower utility has nothing: it is chosen at no stage.
NOT_OFFERED = -1e8


def of_offered(
    utility: Float[Array, "set position *type"], offered: Int[Array, "set position"]
) -> Float[Array, "set *type position"]:
    """Return utilities with the positions last, and that of one which has nothing far below."""
    utility = jnp.moveaxis(utility, 1, -1)
    there = jnp.expand_dims(jnp.asarray(offered) >= 0, range(1, utility.ndim - 1))
    return jnp.where(there, utility, 10 * NOT_OFFERED)


def item_of(offered: Int[Array, "set position"]) -> Int[Array, "set position"]:
    """Return the code of what is in each position, any where there is nothing."""
    return jnp.maximum(jnp.asarray(offered), 0)


def each(of_sets: Any, utility: Positions) -> Any:
    """Numbers of sets, the same for all types that the utilities may have; None stays."""
    if of_sets is None:
        return None
    return jnp.expand_dims(jnp.asarray(of_sets), range(1, utility.ndim - 1))


class OfSets(dist.Distribution):
    """Observations of sets of things, whose utilities have an axis of positions last.

    With a utility for each class, batch shape (set, class), it is a component of `GroupedMixture`,
    whose groups are of sets.
    """

    pytree_data_fields: tuple[str, ...] = ("utility", "count")

    def __init__(self, utility: Positions, count: Counts | None = None) -> None:
        self.utility, self.count = utility, count
        super().__init__(utility.shape[:-1], utility.shape[-1:])


class Choice(OfSets):
    r"""Choices from sets of alternatives: the multinomial logit (Luce 1959, McFadden 1974).

    .. math::

        \log p(y_S) = \sum_{j \in S} y_j u_j - n_S \log \sum_{j \in S} e^{u_j}

    for :math:`n_S = \sum_{j \in S} y_j` choices, the `count`. The multinomial coefficient, which
    depends on no utility, is left out, so that choices counted together have the density of single
    ones.
    """

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        """Number of times that each position was chosen."""
        return constraints.independent(constraints.nonnegative, 1)

    def log_probs(self) -> Positions:
        """Return the log-probability of each position to be chosen of its set."""
        return jax.nn.log_softmax(self.utility)

    def log_prob(self, value: Num[Array, "*set position"], intermediates: Any = None) -> Counts:
        """Return the log-probability of the choices from each set."""
        above = self.utility - lax.stop_gradient(self.utility).max(-1, keepdims=True)
        total = jnp.log(jnp.exp(above).sum(-1))
        own: Array = (value * above).sum(-1)
        return own - (total if self.count is None else self.count * total)

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Positions:
        """Draw how often each position is chosen."""
        shape, dtype = (*sample_shape, *self.utility.shape), self.utility.dtype
        if self.count is None:
            chosen = jax.random.categorical(key, self.utility, shape=shape[:-1])
            return jax.nn.one_hot(chosen, shape[-1], dtype=dtype)
        number, probs = jnp.asarray(self.count, dtype), jnp.exp(self.log_probs())
        return jax.random.multinomial(key, number, probs, shape=shape[:-1])


class Orders(OfSets):
    r"""Rankings of the things in sets, in part where `places` says how many to give.

    With `lowest`, the worst of those without a place may be named, by a value of −1, by the
    utilities turned round (the sequential best–worst choice of Marley and Louviere 2005): among the
    positions R that have no place,

    .. math:: \log p(j_{-1} \mid R) = -u_{j_{-1}} - \log \sum_{j \in R} e^{-u_j} .
    """

    pytree_data_fields: tuple[str, ...] = ("utility", "count", "places", "lowest")

    def __init__(
        self,
        utility: Positions,
        count: Counts | None = None,
        places: Counts | None = None,
        lowest: Counts | None = None,
    ) -> None:
        self.places, self.lowest = places, lowest
        super().__init__(utility, count)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        """Places from 1, 0 for a position without one, and −1 for the worst of those."""
        least = 0 if self.lowest is None else -1
        return constraints.independent(constraints.integer_greater_than(least - 1), 1)

    def _with_worst(self, log_probs: Counts, value: Positions) -> Counts:
        """Add the choice of the worst, and count rankings as often as they were given."""
        if self.lowest is not None:
            left = (value <= 0) & (self.utility > NOT_OFFERED)
            turned = jax.nn.log_softmax(jnp.where(left, -self.utility, _NOTHING))
            log_probs = log_probs + jnp.where(value < 0, turned, 0.0).sum(-1)
        return log_probs if self.count is None else self.count * log_probs

    def _draw_worst(self, key: Array, place: Int[Array, "*set position"]) -> Positions:
        """Draw the worst of those without a place, where it is asked for."""
        if self.lowest is None:
            return place
        left = (place == 0) & (self.utility > NOT_OFFERED)
        worst = jax.random.categorical(key, jnp.where(left, -self.utility, -jnp.inf))
        is_worst = left & (jnp.arange(place.shape[-1]) == worst[..., None])
        return jnp.where(is_worst & (self.lowest > 0)[..., None], -1, place)


class PlackettLuce(Orders):
    r"""Rankings as choices in stages: the best, then the best of the rest (Plackett 1975, Luce
    1959).

    .. math::

        \log p(j_1 \succ \dots \succ j_K)
        = \sum_{k=1}^{K} \Big( u_{j_k} - \log \sum_{j \in R_k} e^{u_j} \Big)

    in which :math:`R_k` are the positions of the ranking that have no place before the k-th. Those
    without a place, with a value of 0, are among them at all stages: they were offered and come
    below all placed ones.
    """

    def log_prob(self, value: Num[Array, "*set position"], intermediates: Any = None) -> Counts:
        """Return the log-probability of each ranking.

        A scatter by place takes the part of a sort, which a compiler would carry out again on each
        program of which the places are constants.
        """
        given, utility = jnp.broadcast_arrays(jnp.asarray(value), self.utility)
        shape, number = utility.shape[:-1], utility.shape[-1]
        value, utility = given.reshape(-1, number), utility.reshape(-1, number)
        placed = value > 0
        cell = jnp.arange(len(value))[:, None], jnp.where(placed, value.astype(int) - 1, number)
        in_order = jnp.full(utility.shape, _NOTHING, utility.dtype)
        in_order = in_order.at[cell].set(utility, mode="drop")
        # From the last place on: the log of the sum of e to what has no earlier place.
        rest = jax.nn.logsumexp(jnp.where(placed, _NOTHING, utility), axis=1)
        ahead = lax.scan(lambda *both: (jnp.logaddexp(*both),) * 2, rest, in_order.T, reverse=True)
        log_probs = jnp.where(in_order > _NOTHING / 2, in_order - ahead[1].T, 0.0).sum(1)
        return self._with_worst(log_probs.reshape(shape), given)

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Int[Array, "*set position"]:
        """Draw a place for each position."""
        key, key_of_worst = (key, None) if self.lowest is None else jax.random.split(key)
        shape, dtype = (*sample_shape, *self.utility.shape), self.utility.dtype
        noisy = self.utility + jax.random.gumbel(key, shape, dtype)
        place = jnp.argsort(jnp.argsort(-noisy)) + 1
        most = shape[-1] if self.places is None else self.places[..., None]
        placed = (place <= most) & (self.utility > NOT_OFFERED)
        place = jnp.where(placed, place, 0).astype(jnp.int32)
        return place if key_of_worst is None else self._draw_worst(key_of_worst, place)


# ---------------------------------------------------------------- errors in common


class NestedChoice(Choice):
    r"""Choices from sets whose alternatives lie in nests: the nested logit (McFadden 1978).

    .. math::

        P(j \mid S) = \frac{e^{u_j / \lambda_m}}{e^{I_m}} \,
            \frac{e^{\lambda_m I_m}}{\sum_l e^{\lambda_l I_l}}, \qquad
        I_m = \log \sum_{k \in S \cap m} e^{u_k / \lambda_m}

    for j in nest m; one without a nest, −1, is alone. A dissimilarity λ of 1 leaves the
    alternatives of a nest independent, as in `Choice`; near 0, those of a nest are one alternative.
    It is 1/μ of Biogeme, with the scale of the upper level at 1.
    """

    def __init__(
        self, utility: Positions, nest: Any, dissimilarity: Array, count: Counts | None = None
    ) -> None:
        own = nest[..., None] == jnp.arange(len(dissimilarity))
        scaled = jnp.where(own, utility[..., None] / dissimilarity, _NOTHING)
        inclusive = jax.nn.logsumexp(scaled, axis=1)
        # Alternatives of no nest are alone.
        alone = jnp.where(own.any(-1), _NOTHING, utility)
        total = jax.nn.logsumexp(jnp.append(alone, dissimilarity * inclusive, axis=1), axis=1)
        lower = jnp.where(own, scaled + ((dissimilarity - 1) * inclusive)[:, None], 0.0).sum(-1)
        log_probs = jnp.where(own.any(-1), lower, utility) - total[:, None]
        # Log-probabilities are utilities of which the exponentials sum to 1.
        super().__init__(log_probs, count)


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
        self, utility: Positions, loading: Positions | None = None, count: Counts | None = None
    ) -> None:
        utility = jnp.maximum(utility, _NEVER)
        log_probs = _given(utility) if loading is None else _averaged(utility, loading)
        # Log-probabilities are utilities of which the exponentials sum to 1.
        super().__init__(log_probs, count)


def _given(utility: Positions) -> Positions:
    """Log-probability of each alternative, with no error in common."""
    size = utility.shape[1]
    ahead = utility[:, :, None] - utility[:, None, :]
    weight = jnp.asarray(_log_weights(_OWN), utility.dtype)
    nodes = jnp.asarray(_OWN, utility.dtype)
    below = log_ndtr(ahead[..., None] + nodes)
    others = jnp.where(jnp.eye(size, dtype=bool)[None, :, :, None], 0.0, below).sum(2)
    return jax.nn.logsumexp(others + weight, axis=-1)


def _averaged(utility: Positions, loading: Positions) -> Positions:
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

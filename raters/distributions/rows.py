"""Votes, and rows that are alike or share few distributions."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.scipy.special import gammaln
from jaxtyping import Array, Int
from numpyro.distributions import constraints

from raters.errors.validation import checked


def computed_once(values: Any) -> Any:
    """Keep a compiler from computing values anew for each of the rows that read them."""
    return jax.lax.optimization_barrier(values)


@jax.custom_jvp
def log_sigmoid(logits: Array) -> Array:
    """Return log σ, as `jax.nn.log_sigmoid` in a quarter of the time."""
    return jnp.minimum(logits, 0.0) - jnp.log1p(jnp.exp(-jnp.abs(logits)))


log_sigmoid.defjvps(lambda slope, _, logits: slope * jax.nn.sigmoid(-logits))


def votes_of(logits: Any, count: Any) -> dist.Distribution:
    """Votes for the first side out of `count`, or single votes where it is None."""
    return dist.Bernoulli(logits=logits) if count is None else Votes(logits, count)


class Votes(dist.BinomialLogits):
    r"""Binomial votes for one of two sides, with half votes for ties.

    .. math::

        \log p(y \mid n, \psi) = \log\Gamma(n + 1) - \log\Gamma(y + 1) - \log\Gamma(n - y + 1)
            + y\psi - n \log(1 + e^\psi)

    On whole numbers this is the Binomial, and its draws are whole numbers.

    Parameters
    ----------
    logits : array
        Log-odds of a vote for the first side.
    total_count : array
        Number of votes.

    Examples
    --------
    >>> from raters.distributions import Votes
    >>> round(float(Votes(logits=0.0, total_count=1).log_prob(0.5)), 3)   # a tie
    -0.452
    """

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """Interval from 0 to the number of votes."""
        return constraints.interval(0.0, self.total_count)

    def log_prob(self, value: Any) -> jax.Array:
        """Log-probability of a number of votes."""
        number = jnp.asarray(self.total_count, float)
        ways = gammaln(number + 1) - gammaln(value + 1) - gammaln(number - value + 1)
        logits = computed_once(self.logits)
        return ways + value * logits + self.total_count * log_sigmoid(-logits)


class Repeated(dist.Distribution):
    r"""A judgement of any distribution, several times the same.

    .. math:: \log p(y \mid n) = n \log p(y)

    Rows of count 0, which campaigns add, have no part in a likelihood.

    Parameters
    ----------
    base : numpyro distribution
        Distribution of one judgement.
    count : array or None
        How often each came, in the batch shape of `base`; once where it is None.

    Examples
    --------
    >>> import jax.numpy as jnp, numpyro.distributions as dist
    >>> from raters.distributions import Repeated
    >>> twice = Repeated(dist.Categorical(probs=jnp.array([0.25, 0.75])), jnp.array(2.0))
    >>> round(float(jnp.exp(twice.log_prob(jnp.array(0)))), 4)
    0.0625
    """

    pytree_data_fields = ("base", "count")

    @checked
    def __init__(self, base: dist.Distribution, count: Any) -> None:
        self.base, self.count = base, count
        super().__init__(base.batch_shape, base.event_shape)

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        """Support of one judgement."""
        return self.base.support

    def log_prob(self, value: Any) -> jax.Array:
        """Log density of all of them together."""
        one: jax.Array = self.base.log_prob(value)
        return one if self.count is None else jnp.where(self.count > 0, self.count * one, 0.0)

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> jax.Array:
        """Draw one judgement for each row."""
        return self.base.sample(key, sample_shape)


class Tabulated(dist.Distribution):
    """Many rows of few distributions with few values: log-probabilities are looked up in a
    table."""

    pytree_data_fields = ("base", "cell")

    def __init__(self, base: dist.Distribution, cell: Int[Array, " row"]) -> None:
        self.base, self.cell = base, cell
        shape = (*cell.shape, *base.batch_shape[1:])
        super().__init__(shape, base.event_shape)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """Support of the distributions."""
        return self.base.support

    def table(self) -> Array:
        """Log-probability of each value under each distribution."""
        return self.base.log_prob(self.base.enumerate_support(expand=False))

    def log_prob(self, value: Array) -> Array:
        """Log-probability of each row's value."""
        table, place = self.table(), jnp.asarray(value, jnp.int32)
        if place.shape[1:] == (1,) * (place.ndim - 1):
            return table[place[:, 0], self.cell]
        of_row: Array = jnp.moveaxis(table, 0, -1)[self.cell]
        return jnp.take_along_axis(of_row, place[..., None], axis=-1)[..., 0]

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw a value for each row."""
        log_probs: Any = jnp.moveaxis(self.table(), 0, -1)[self.cell]
        shape = (*sample_shape, *self.batch_shape)
        return jax.random.categorical(key, log_probs, axis=-1, shape=shape)

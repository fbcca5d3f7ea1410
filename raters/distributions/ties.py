"""Votes for one of two sides, or for neither: a tie."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Float, Num
from numpyro.distributions import constraints

#: Outcomes of a vote, in the order of the log-probabilities: the first side, a tie, the second.
OUTCOMES = (1.0, 0.5, 0.0)


class TiedVotes(dist.Distribution):
    r"""Base of the distributions of a vote: 1 for the first side, ½ for a tie, 0 for the second; at
    log-odds of 0, a tie has the probability :math:`e^\nu / (2 + e^\nu)`."""

    pytree_data_fields = ("logits", "propensity", "count")

    def __init__(
        self, logits: Any, propensity: Any, count: Any = None, *, validate_args: bool | None = None
    ) -> None:
        shape = jnp.broadcast_shapes(jnp.shape(logits), jnp.shape(propensity))
        self.logits, self.propensity = (
            jnp.broadcast_to(jnp.asarray(part, float), shape) for part in (logits, propensity)
        )
        self.count = count
        super().__init__(shape, (), validate_args=validate_args)

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
        first, second = (
            jax.nn.log_sigmoid(side - self.threshold) for side in (self.logits, -self.logits)
        )
        return jnp.stack([first, self.log_factor() + first + second, second], -1)

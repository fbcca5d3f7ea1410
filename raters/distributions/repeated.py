"""Judgements that come several times the same."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from numpyro.distributions import constraints

from raters.errors.validation import checked


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
    def __init__(
        self, base: dist.Distribution, count: Any, *, validate_args: bool | None = None
    ) -> None:
        self.base, self.count = base, count
        super().__init__(base.batch_shape, base.event_shape, validate_args=validate_args)

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
        drawn: jax.Array = self.base.sample(key, sample_shape)
        return drawn

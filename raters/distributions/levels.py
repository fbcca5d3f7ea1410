"""Levels of a fine scale, as a normal number rounded to them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.scipy.special import log_ndtr, ndtr
from jaxtyping import Array, Float, Int
from numpyro.distributions import constraints


class NormalLevel(dist.Distribution):
    r"""Level of an evenly spaced scale of length 4 about 0, on which a normal number lies.

    .. math:: P(l) = \Phi(\kappa c_{l + 1} - \eta) - \Phi(\kappa c_l - \eta), \qquad
        c_l = 4 l / L - 2, \quad c_0 = -\infty, \quad c_L = \infty

    Parameters
    ----------
    location, precision : array
        Mean η of the number in its standard deviations, and their number κ in a unit of the scale.
    num_levels : int
        Number L of levels.
    """

    pytree_data_fields = ("location", "precision")
    pytree_aux_fields = ("num_levels",)
    has_enumerate_support = True

    def __init__(
        self,
        location: Float[Array, " *batch"],
        precision: Float[Array, " *batch"],
        num_levels: int,
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.location, self.precision, self.num_levels = location, precision, num_levels
        shape = jnp.broadcast_shapes(jnp.shape(location), jnp.shape(precision))
        super().__init__(shape, (), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """Codes of the levels, from 0."""
        return constraints.integer_interval(0, self.num_levels - 1)

    def log_prob(self, value: Int[Array, " *batch"]) -> jax.Array:
        """Log-probability of a level."""
        lower, upper = (
            self.precision * (4 * (value + step) / self.num_levels - 2) - self.location
            for step in (0, 1)
        )
        lower = jnp.where(value > 0, lower, -jnp.inf)
        upper = jnp.where(value < self.num_levels - 1, upper, jnp.inf)
        # In the tail where both are small; at the ends of the scale one of them is 0 or 1.
        in_upper_tail = lower + upper > 0
        most, least = (
            jnp.where(in_upper_tail, -lower, upper),
            jnp.where(in_upper_tail, -upper, lower),
        )
        is_end = jnp.isinf(most) | jnp.isinf(least)
        above = log_ndtr(jnp.where(jnp.isinf(most), 0.0, most))
        below = log_ndtr(jnp.where(jnp.isinf(least), most - 1, least))
        between = above + jnp.log(-jnp.expm1(jnp.minimum(below - above, -1e-12)))
        return jnp.where(is_end, above, between)

    def enumerate_support(self, expand: bool = True) -> Int[Array, " *levels"]:
        """All levels."""
        levels = jnp.arange(self.num_levels).reshape(-1, *(1,) * len(self.batch_shape))
        return jnp.broadcast_to(levels, (self.num_levels, *self.batch_shape)) if expand else levels

    @property
    def probs(self) -> Float[Array, "*batch level"]:
        """Probability of each level."""
        cut = 4 * jnp.arange(1, self.num_levels) / self.num_levels - 2
        below = ndtr(self.precision[..., None] * cut - self.location[..., None])
        return jnp.diff(below, prepend=0.0, append=1.0, axis=-1)

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> jax.Array:
        """Draw a level by rounding a normal number."""
        noise = jax.random.normal(key, (*sample_shape, *self.batch_shape))
        place = ((self.location + noise) / self.precision + 2) * self.num_levels / 4
        return jnp.clip(jnp.floor(place).astype(int), 0, self.num_levels - 1)

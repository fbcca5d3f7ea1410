"""Shares broken off a stick."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Float
from numpyro.distributions import constraints

from raters.errors.validation import checked


class StickBreaking(dist.Distribution):
    r"""Generalised Dirichlet distribution: shares broken off a stick of length 1, one by one.

    .. math:: \eta_t = v_t \prod_{u < t} (1 - v_u), \qquad v_t \sim \mathrm{Beta}(a_t, b_t), \quad
              t = 1, \dots, T - 1

    and the last share is the rest of the stick. With a = 1 and b = α this is a Dirichlet process of
    concentration α truncated at T (Ishwaran and James 2001). Like the Dirichlet, it is conjugate to
    multinomial counts (Connor and Mosimann 1969).

    Parameters
    ----------
    concentration1, concentration0 : array, shape (share − 1,)
        a and b of each break.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from raters.distributions import StickBreaking
    >>> # log 1/(1 − 0.5)
    >>> float(StickBreaking(jnp.ones(2), jnp.ones(2)).log_prob(jnp.array([0.5, 0.3, 0.2])))
    0.693
    """

    support = constraints.simplex
    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }

    @checked
    def __init__(
        self,
        concentration1: Float[Array, "*batch break"],
        concentration0: Float[Array, "*batch break"],
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.concentration1, self.concentration0 = concentration1, concentration0
        super().__init__((), (concentration1.shape[-1] + 1,), validate_args=validate_args)

    def log_prob(
        self, value: Float[Array, "*batch share"], intermediates: Any = None
    ) -> Float[Array, "*batch"]:
        """Return the log-density on the simplex."""
        # Length of the stick before each break.
        length = jnp.flip(jnp.cumsum(jnp.flip(value, -1), -1), -1)
        broken, rest = value[..., :-1] / length[..., :-1], length[..., 1:] / length[..., :-1]
        a, b = self.concentration1, self.concentration0
        log_beta = jax.scipy.special.betaln(a, b)
        log_breaks = (a - 1) * jnp.log(broken) + (b - 1) * jnp.log(rest) - log_beta
        return (log_breaks - jnp.log(length[..., :-1])).sum(-1)

    def sample(
        self, key: Array, sample_shape: tuple[int, ...] = ()
    ) -> Float[Array, "*sample share"]:
        """Draw shares that add up to 1."""
        broken = dist.Beta(self.concentration1, self.concentration0).sample(key, sample_shape)
        ones = jnp.ones((*broken.shape[:-1], 1))
        return jnp.concatenate([broken, ones], -1) * jnp.concatenate(
            [ones, jnp.cumprod(1 - broken, -1)], -1
        )

"""Independent normals in ascending order."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.scipy.special import gammaln
from jaxtyping import Array, Float
from numpyro.distributions import constraints

from raters.errors.validation import checked


class OrderedNormal(dist.Distribution):
    r"""Independent normals in ascending order, such as the thresholds of a scale.

    .. math:: p(x) = L! \prod_l \mathrm{Normal}(x_l; m, s), \qquad x_1 < \dots < x_L

    With a large scale it is flat in the values themselves, not in the logarithms of their
    differences, so that a mode is then the one of the likelihood.

    Parameters
    ----------
    size : int
        Number L of values.
    loc, scale : array
        Mean and standard deviation before ordering.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from raters.distributions.ordered_normal import OrderedNormal
    >>> round(float(OrderedNormal(2).log_prob(jnp.array([-1.0, 1.0]))), 3)
    -2.145
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.ordered_vector
    pytree_data_fields = ("loc", "scale")
    pytree_aux_fields = ("size",)

    @checked
    def __init__(
        self, size: int, loc: Any = 0.0, scale: Any = 1.0, *, validate_args: bool | None = None
    ) -> None:
        self.size, self.loc, self.scale = size, loc, scale
        batch = jnp.broadcast_shapes(jnp.shape(loc), jnp.shape(scale))
        super().__init__(batch, (size,), validate_args=validate_args)

    def log_prob(self, value: Float[Array, "*batch size"]) -> Array:
        """Log density of ascending values."""
        loc, scale = (jnp.asarray(part)[..., None] for part in (self.loc, self.scale))
        density: Array = dist.Normal(loc, scale).log_prob(value).sum(-1)
        return density + gammaln(self.size + 1.0)

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw values, in ascending order."""
        loc, scale = (jnp.asarray(part)[..., None] for part in (self.loc, self.scale))
        normal = jax.random.normal(key, (*sample_shape, *self.batch_shape, self.size))
        return jnp.sort(loc + scale * normal, axis=-1)

"""Normal distributions in ascending order, and in units of their own."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import gammaln
from jaxtyping import Array, Bool, Float
from numpyro.distributions import biject_to, constraints
from numpyro.distributions.transforms import AffineTransform, Transform

from raters.errors.validation import checked


class OrderedNormal(dist.Distribution):
    r"""Independent normals in ascending order, :math:`L! \prod_l \mathrm{Normal}(x_l; m, s)`.

    With a large scale it is flat in the values, so that a mode is that of the likelihood.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.ordered_vector
    pytree_data_fields = ("loc", "scale")
    pytree_aux_fields = ("size",)

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


class ScaledReal(constraints.Constraint):
    """The real line, of which the unconstrained coordinate is the value over `unit`."""

    def __init__(self, unit: Any) -> None:
        self.unit = unit

    def __call__(self, x: Any) -> Bool[Array, " ..."]:
        return constraints.real(x)

    def feasible_like(self, prototype: Any) -> Array:
        """Return zeros in the shape of a prototype."""
        return jnp.zeros_like(prototype)

    def tree_flatten(self) -> tuple[tuple[Any], tuple[tuple[str], dict[str, Any]]]:
        """Return the unit as the only array."""
        return (self.unit,), (("unit",), {})

    def eq(self, other: object, static: bool = False) -> Any:
        """Return True for a constraint of the same kind and unit."""
        if not isinstance(other, ScaledReal):
            return False
        return np.array_equal(self.unit, other.unit) if static else jnp.all(self.unit == other.unit)


@biject_to.register(ScaledReal)
def _affine(support: ScaledReal) -> Transform:
    return AffineTransform(0.0, support.unit)


class ScaledNormal(dist.Normal):
    """Normal distribution in units in which its values are of size 1.

    Samplers and optimisers set out with steps of one size for all sites, and move in values over
    `unit`: one over the standard deviation of a price makes its coefficient move as all others do.

    Examples
    --------
    >>> from numpyro.distributions import biject_to
    >>> from raters.distributions import ScaledNormal
    >>> coefficient = ScaledNormal(0.0, 2.5, 0.01)
    >>> float(biject_to(coefficient.support)(3.0))
    0.03
    """

    pytree_data_fields = ("unit",)

    @checked
    def __init__(
        self,
        loc: Any = 0.0,
        scale: Any = 1.0,
        unit: Any = 1.0,
        *,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(loc, scale, validate_args=validate_args)
        # As it is where it can be, so that within a compiled function a number stays one.
        whole = jnp.shape(unit) == self.batch_shape
        self.unit = unit if whole else jnp.broadcast_to(unit, self.batch_shape)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        """The real line, in these units."""
        return ScaledReal(self.unit)


class ScaledMultivariateNormal(dist.MultivariateNormal):
    """Multivariate normal in units in which its entries are of size 1; see `ScaledNormal`."""

    pytree_data_fields = ("unit",)

    def __init__(
        self, loc: Any, scale_tril: Any, unit: Any, *, validate_args: bool | None = None
    ) -> None:
        super().__init__(loc, scale_tril=scale_tril, validate_args=validate_args)
        self.unit = unit

    @constraints.dependent_property(is_discrete=False, event_dim=1)
    def support(self) -> constraints.Constraint:
        """Vectors of real numbers, in these units."""
        return constraints.independent(ScaledReal(self.unit), 1)

"""Normal distributions whose samplers and optimisers move in units of their own."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Bool
from numpyro.distributions import biject_to, constraints
from numpyro.distributions.transforms import AffineTransform, Transform

from raters.errors.validation import checked


class ScaledReal(constraints.Constraint):
    """The real line, of which the unconstrained coordinate is the value over `unit`."""

    def __init__(self, unit: Any) -> None:
        self.unit = unit

    def __call__(self, x: Any) -> Bool[Array, " ..."]:
        finite: Array = constraints.real(x)
        return finite

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
    r"""Normal distribution in units in which its values are of size 1.

    NUTS and SVI set out with steps of one size for all sites. A coefficient of a price in cents is
    a hundred times smaller than one of a price in euros, and would need steps that are as much
    smaller; with a `unit` of one over the standard deviation of the price, both move alike.
    Densities are those of the normal distribution.

    Parameters
    ----------
    loc, scale : array
        Mean and standard deviation.
    unit : array
        Values over this are what samplers and optimisers move in.

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
    """Multivariate normal distribution in units in which its entries are of size 1.

    See `ScaledNormal`.

    Parameters
    ----------
    loc : array, shape (..., entry)
        Mean.
    scale_tril : array, shape (..., entry, entry)
        Cholesky factor of the covariance.
    unit : array, shape (entry,)
        Values over this are what samplers and optimisers move in.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from numpyro.distributions import biject_to
    >>> from raters.distributions.scaled_normal import ScaledMultivariateNormal
    >>> taste = ScaledMultivariateNormal(jnp.zeros(2), jnp.eye(2), jnp.array([1.0, 0.25]))
    >>> biject_to(taste.support)(jnp.ones(2)).tolist()
    [1.0, 0.25]
    """

    pytree_data_fields = ("unit",)

    @checked
    def __init__(
        self, loc: Any, scale_tril: Any, unit: Any, *, validate_args: bool | None = None
    ) -> None:
        super().__init__(loc, scale_tril=scale_tril, validate_args=validate_args)
        self.unit = unit

    @constraints.dependent_property(is_discrete=False, event_dim=1)
    def support(self) -> constraints.Constraint:
        """Vectors of real numbers, in these units."""
        return constraints.independent(ScaledReal(self.unit), 1)

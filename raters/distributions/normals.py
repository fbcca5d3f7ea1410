"""Normal distributions in ascending order, in units of their own, and rounded."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import gammaln, log_ndtr, ndtr
from jaxtyping import Array, Bool, Float, Int
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

    def __init__(self, size: int, loc: Any = 0.0, scale: Any = 1.0) -> None:
        self.size, self.loc, self.scale = size, loc, scale
        batch = jnp.broadcast_shapes(jnp.shape(loc), jnp.shape(scale))
        super().__init__(batch, (size,))

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
    def __init__(self, loc: Any = 0.0, scale: Any = 1.0, unit: Any = 1.0) -> None:
        super().__init__(loc, scale)
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

    def __init__(self, loc: Any, scale_tril: Any, unit: Any) -> None:
        super().__init__(loc, scale_tril=scale_tril)
        self.unit = unit

    @constraints.dependent_property(is_discrete=False, event_dim=1)
    def support(self) -> constraints.Constraint:
        """Vectors of real numbers, in these units."""
        return constraints.independent(ScaledReal(self.unit), 1)


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
        self, location: Float[Array, " *batch"], precision: Float[Array, " *batch"], num_levels: int
    ) -> None:
        self.location, self.precision, self.num_levels = location, precision, num_levels
        shape = jnp.broadcast_shapes(jnp.shape(location), jnp.shape(precision))
        super().__init__(shape, ())

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """Codes of the levels, from 0."""
        return constraints.integer_interval(0, self.num_levels - 1)

    def log_prob(self, value: Int[Array, " *batch"]) -> jax.Array:
        """Log-probability of a level."""
        cuts = (4 * (value + step) / self.num_levels - 2 for step in (0, 1))
        lower, upper = (self.precision * cut - self.location for cut in cuts)
        lower = jnp.where(value > 0, lower, -jnp.inf)
        upper = jnp.where(value < self.num_levels - 1, upper, jnp.inf)
        # In the tail where both are small; at the ends of the scale one of them is 0 or 1.
        in_upper_tail = lower + upper > 0
        most = jnp.where(in_upper_tail, -lower, upper)
        least = jnp.where(in_upper_tail, -upper, lower)
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

"""A distribution tied to others by a correlation, whatever their units."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.scipy.special import ndtr, ndtri
from jaxtyping import Array, Float
from numpyro.distributions import biject_to, constraints

Scores = Float[Array, " ..."]
# Probabilities this close to 0 and 1 are cut off, where scores would be infinite.
_EDGE = {jnp.dtype("float32"): 1e-6, jnp.dtype("float64"): 1e-14}
# Bounds of unconstrained coordinates among which a quantile is sought, and halvings of them.
_WIDEST, _HALVINGS = 40.0, 60


def normal_score(fn: dist.Distribution, value: Any) -> Scores:
    r"""Normal score of a value, :math:`\Phi^{-1}(F(x))`, of distribution function F."""
    one = unwrapped(fn)
    if isinstance(one, dist.Normal):
        return (value - one.loc) / one.scale
    prob = one.cdf(value)
    edge = _EDGE[jnp.dtype(prob.dtype)]
    return ndtri(jnp.clip(prob, edge, 1 - edge))


def of_score(fn: dist.Distribution, score: Any) -> Scores:
    """Value of a normal score: the inverse of `normal_score`."""
    one = unwrapped(fn)
    if isinstance(one, dist.Normal):
        return one.loc + one.scale * score
    transform, prob = biject_to(one.support), ndtr(score)
    low = jnp.full(jnp.shape(prob), -_WIDEST)

    def halved(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        middle = (ends[0] + ends[1]) / 2
        below = one.cdf(transform(middle)) < prob
        return jnp.where(below, middle, ends[0]), jnp.where(below, ends[1], middle)

    ends = jax.lax.fori_loop(0, _HALVINGS, halved, (low, -low))
    return transform((ends[0] + ends[1]) / 2)


def unwrapped(fn: dist.Distribution) -> dist.Distribution:
    """The distribution that a plate, or a number of events, was made of."""
    while isinstance(fn, (dist.ExpandedDistribution, dist.Independent)):
        fn = fn.base_dist
    return fn


class Correlated(dist.Distribution):
    r"""Distribution of a value whose normal score :math:`u = \Phi^{-1}(F(x))` is, given those of
    other values, :math:`\mathrm{Normal}(\mu, s)`: a Gaussian copula (Sklar 1959; Song 2000).

    .. math:: \log p(x) = \log f(x) + \log \mathrm{Normal}(u \mid \mu, s)
        - \log \mathrm{Normal}(u \mid 0, 1)
    """

    arg_constraints: dict[str, Any] = {}
    pytree_data_fields = ("base", "mean_score", "spread")

    def __init__(self, base: dist.Distribution, mean: Any, spread: Any) -> None:
        self.base, self.mean_score, self.spread = base, mean, spread
        super().__init__(base.batch_shape, ())

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        """Support of the distribution by itself."""
        return self.base.support

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> Scores:
        """Draw values."""
        noise = jax.random.normal(key, (*sample_shape, *self.batch_shape))
        return of_score(self.base, self.mean_score + self.spread * noise)

    def log_prob(self, value: Any) -> Scores:
        """Log density of each value."""
        score = normal_score(self.base, value)
        own = dist.Normal(self.mean_score, self.spread).log_prob(score)
        return self.base.log_prob(value) + own - dist.Normal().log_prob(score)


def given_scores(scores: list[Scores], correlation: Any) -> tuple[Scores, Scores]:
    """Mean and standard deviation of a score given others, all of the same correlation."""
    number = len(scores)
    total = 1 + (number - 1) * correlation
    variance = 1 - number * correlation**2 / total
    summed = jnp.sum(jnp.stack(scores), axis=0)
    return correlation * summed / total, jnp.sqrt(jnp.maximum(variance, 1e-12))

"""Probabilities of judges who each belong to a type."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.scipy.special import gammaln
from jaxtyping import Array, Float
from numpyro.distributions import constraints


class TypeMixture(dist.MixtureSameFamily):
    r"""Probabilities of a judge, from one of several components, each of a type: :math:`\sum_c
    \eta_{t(c)} s_c \, p_c(\theta)`, with shares η of types and s of components in them."""

    pytree_data_fields = ("_mixing_distribution", "_component_distribution", "log_normaliser")
    pytree_aux_fields = ("_mixture_size", "names", "type_of")

    def __init__(
        self,
        type_weight: Float[Array, " type"],
        component: dist.Distribution,
        names: tuple[str, ...],
        type_of: tuple[int, ...] | None = None,
        log_share: Float[Array, "*judge component"] | None = None,
        log_normaliser: Float[Array, "*own component"] | None = None,
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.names = names
        self.type_of = tuple(range(len(names))) if type_of is None else type_of
        codes = jnp.asarray(self.type_of)
        if log_share is None:
            log_share = -jnp.log(jnp.bincount(codes, length=len(names))[codes])
        log_weight = jnp.log(type_weight)[codes] + log_share
        super().__init__(
            dist.Categorical(logits=log_weight), component, validate_args=validate_args
        )
        if log_normaliser is None:
            log_normaliser = log_beta(self.concentration, max(self.event_dim, 1))
        self.log_normaliser = log_normaliser

    @property
    def log_weight(self) -> Float[Array, "*judge component"]:
        """Log-probability of each component."""
        return jax.nn.log_softmax(self.mixing_distribution.logits)

    @property
    def concentration(self) -> Float[Array, "*judge component *row entry"]:
        """Concentrations of each component; of a beta distribution for yes and no."""
        component = self.component_distribution
        if isinstance(component, dist.Independent):
            component = component.base_dist
        if isinstance(component, dist.Beta):
            return jnp.stack([component.concentration1, component.concentration0], -1)
        return component.concentration

    def rows(self, value: Array) -> Float[Array, "*judge *row entry"]:
        """Return values in the form of the concentrations: of a beta distribution p and 1 − p."""
        return value if self.event_dim else jnp.stack([value, 1 - value], -1)

    def component_log_probs(self, value: Array) -> Float[Array, "*judge component"]:
        """Return the log-probability of each component together with the value."""
        # As a product of matrices, which takes one logarithm of each probability and not one for
        # each component.
        rows = self.rows(value)
        logs = jnp.log(jnp.maximum(rows, jnp.finfo(rows.dtype).tiny))
        concentration = self.concentration
        ndim = max(self.event_dim, 1)
        logs = logs.reshape(*logs.shape[:-ndim], -1)
        flat = concentration.reshape(*concentration.shape[:-ndim], -1)
        density = jnp.einsum("...e,...ce->...c", logs, flat - 1)
        return self.log_weight + density - self.log_normaliser

    def type_probs(self, value: Array) -> Float[Array, "*judge type"]:
        """Return the probability of each type given the probabilities of a judge."""
        return self.by_type(jax.nn.softmax(self.component_log_probs(value), -1))

    def by_type(self, probs: Float[Array, "*judge component"]) -> Float[Array, "*judge type"]:
        """Return the sums over the components of each type."""
        return probs @ jax.nn.one_hot(jnp.asarray(self.type_of), len(self.names), dtype=probs.dtype)

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        """Support of the probabilities."""
        return self.component_distribution.support


def log_beta(concentration: Array, ndim: int) -> Array:
    """Return the log beta function, summed over the `ndim` last axes."""
    each = gammaln(concentration).sum(-1) - gammaln(concentration.sum(-1))
    return each if ndim == 1 else each.sum(-1)

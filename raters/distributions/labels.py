"""Labels given a true class, which `GroupedMixture` sums out, and who gives them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.scipy.special import gammaln
from jaxtyping import Array, Float, Int
from numpyro.distributions import constraints

from raters.distributions.rows import computed_once, log_sigmoid
from raters.errors.validation import checked

Drawn = Int[Array, "*sample row true_class"]
PerLabel = Float[Array, "row true_class"]


class ConfusedLabel(dist.Distribution):
    r"""Label drawn from the row of a confusion matrix that the true class selects.

    .. math:: p(y = j \mid t = k, a) = \pi_{akj}

    Batch shape (row, true class): `GroupedMixture` sums the true class out.

    Parameters
    ----------
    probs : array, shape (annotator, true class, label)
        Confusion matrices, each row of which is a distribution over labels.
    annotator : int array, shape (row,)
        Code of the annotator who gave each label.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from raters.distributions import ConfusedLabel
    >>> label = ConfusedLabel(jnp.array([[[0.9, 0.1], [0.2, 0.8]]]), jnp.zeros(1, int))
    >>> jnp.exp(label.log_prob(jnp.array([[1]]))).tolist()
    [[0.100, 0.800]]
    """

    pytree_data_fields = ("probs", "annotator")

    @checked
    def __init__(
        self, probs: Float[Array, "annotator true_class label"], annotator: Int[Array, " row"]
    ) -> None:
        self.probs, self.annotator = probs, annotator
        super().__init__((annotator.shape[0], probs.shape[-2]), ())

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """Codes of the labels, from 0."""
        return constraints.integer_interval(0, self.probs.shape[-1] - 1)

    @property
    def cell(self) -> Int[Array, " row"]:
        """Code of each row's distribution: its annotator."""
        return self.annotator

    def table(self) -> Float[Array, "label annotator true_class"]:
        """Return the log-probability of each label by each annotator under each true class."""
        return computed_once(jnp.log(jnp.moveaxis(self.probs, -1, 0)))

    def log_prob(self, value: Int[Array, "row 1"], intermediates: Any = None) -> PerLabel:
        """Return the log-probability of each label under each true class."""
        return self.table()[value[..., 0], self.annotator]

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Drawn:
        """Draw a label for each row and each true class that it might have."""
        return jax.random.categorical(
            key, jnp.log(self.probs)[self.annotator], shape=sample_shape + self.batch_shape
        )


class RightOrWrongLabel(dist.Distribution):
    r"""Label that is right with given log-odds, and otherwise one of the wrong labels.

    .. math::

        p(y = k \mid t = k) = \sigma(\psi_k), \quad
        p(y = j \mid t = k) = (1 - \sigma(\psi_k)) \, m_{kj} \; (j \ne k)

    Batch shape (row, true class): `GroupedMixture` sums the true class out.
    """

    pytree_data_fields = ("logits", "wrong", "annotator")
    pytree_aux_fields = ("num_classes",)

    def __init__(
        self,
        logits: Float[Array, "row 1"] | PerLabel,
        num_classes: int,
        wrong: Float[Array, "annotator true_class wrong_label"] | None = None,
        annotator: Int[Array, " row"] | None = None,
    ) -> None:
        self.logits, self.num_classes = logits, num_classes
        self.wrong, self.annotator = wrong, annotator
        super().__init__((logits.shape[0], num_classes), ())

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """Codes of the labels, from 0."""
        return constraints.integer_interval(0, self.num_classes - 1)

    def log_prob(self, value: Int[Array, "row 1"], intermediates: Any = None) -> PerLabel:
        """Return the log-probability of each label under each true class."""
        classes = jnp.arange(self.num_classes)
        if self.wrong is None:
            log_wrong = -jnp.log(self.num_classes - 1.0)
        else:
            assert self.annotator is not None
            wrong_label = jnp.clip(value - (value > classes), 0, self.num_classes - 2)
            log_wrong = jnp.log(self.wrong)[self.annotator[:, None], classes, wrong_label]
        right, wrong = computed_once((log_sigmoid(self.logits), log_sigmoid(-self.logits)))
        return jnp.where(value == classes, right, wrong + log_wrong)

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Drawn:
        """Draw a label for each row and each true class that it might have."""
        right_key, wrong_key = jax.random.split(key)
        shape = sample_shape + self.batch_shape
        chance = jax.nn.sigmoid(jnp.broadcast_to(self.logits, self.batch_shape))
        right = jax.random.bernoulli(right_key, chance, shape)
        log_wrong = jnp.zeros((self.num_classes - 1,))
        if self.wrong is not None:
            log_wrong = jnp.log(self.wrong)[self.annotator]
        wrong_label = jax.random.categorical(wrong_key, log_wrong, shape=shape)
        classes = jnp.arange(self.num_classes)
        return jnp.where(right, classes, wrong_label + (wrong_label >= classes))


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
    ) -> None:
        self.names = names
        self.type_of = tuple(range(len(names))) if type_of is None else type_of
        codes = jnp.asarray(self.type_of)
        if log_share is None:
            log_share = -jnp.log(jnp.bincount(codes, length=len(names))[codes])
        log_weight = jnp.log(type_weight)[codes] + log_share
        super().__init__(dist.Categorical(logits=log_weight), component)
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

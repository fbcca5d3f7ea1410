"""Rows whose groups, or which themselves, have a latent class that is summed out."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, Int
from numpyro.distributions import constraints

from raters.errors.validation import checked

PerClass = Float[Array, "group class"]


class GroupedMixture(dist.Distribution):
    r"""Rows whose groups each have a latent class, which is summed out.

    .. math::

        p(y_g) = \Big(\sum_k w_{gk} \prod_{m \in g} p(y_m \mid k)^{c_m}\Big)^{n_g}

    Groups may have any number of rows. `log_prob` has one entry per group, the unit that
    cross-validation leaves out. Where the class is known, the sum has one term.

    Parameters
    ----------
    mixing_distribution : numpyro Categorical
        The class of each group; batch shape () or (group,).
    component_distribution : numpyro distribution, batch shape (row, class)
        Each row's value, given each class; of `Choice` and `PlackettLuce` the rows are sets.
    group : int array, shape (row,)
        Code of each row's group.
    num_groups : int
        Number of groups.
    count : float array, shape (row,), optional
        Number of times that each row was seen; 0 for padding. 1 unless given.
    known : int array, shape (group,), optional
        The class of each group where it is known, −1 elsewhere.
    repeats : float array, shape (group,), optional
        Number of equal groups that each stands for, such as persons with one pattern of answers;
        its log-probability is multiplied by it. 1 unless given. Each of them has a class of its
        own, so that Gibbs sampling needs them written out.

    Examples
    --------
    Two labels of one item by an annotator who is right nine times in ten:

    >>> import jax.numpy as jnp, numpyro.distributions as dist
    >>> from raters.distributions import ConfusedLabel, GroupedMixture
    >>> confusion = jnp.array([[[0.9, 0.1], [0.1, 0.9]]])
    >>> labels = GroupedMixture(
    ...     dist.Categorical(probs=jnp.array([0.5, 0.5])),
    ...     ConfusedLabel(confusion, jnp.zeros(2, int)), jnp.zeros(2, int), 1)
    >>> labels.responsibilities(jnp.array([1, 1])).tolist()
    [[0.012, 0.988]]
    """

    _columns = ("group", "count", "known", "repeats")
    pytree_data_fields = ("mixing_distribution", "component_distribution", *_columns)
    pytree_aux_fields = ("num_groups",)

    @checked
    def __init__(
        self,
        mixing_distribution: dist.Distribution,
        component_distribution: dist.Distribution,
        group: Int[Array, " row"],
        num_groups: int,
        count: Float[Array, " row"] | None = None,
        known: Int[Array, " group"] | None = None,
        repeats: Float[Array, " group"] | None = None,
    ) -> None:
        self.mixing_distribution = mixing_distribution
        self.component_distribution = component_distribution
        self.group, self.num_groups, self.count, self.known = group, num_groups, count, known
        self.repeats = repeats
        # The event is all rows, since groups differ in how many they have.
        event = (*group.shape, *component_distribution.event_shape)
        super().__init__((num_groups,), event)

    @constraints.dependent_property(is_discrete=True)
    def support(self) -> constraints.Constraint:
        """Support of the rows."""
        return constraints.independent(self.component_distribution.support, 1)

    def log_weights(self) -> PerClass:
        """Return the prior log-probability of each class."""
        mixing = self.mixing_distribution
        # Not normalised: the support has sum 1, and Fisher's identity needs the gradient as it is.
        by_logits = isinstance(mixing, dist.CategoricalLogits)
        log_probs = jax.nn.log_softmax(mixing.logits) if by_logits else jnp.log(mixing.probs)
        return jnp.broadcast_to(log_probs, (self.num_groups, log_probs.shape[-1]))

    def log_rows(self, value: Array) -> Float[Array, "row class"]:
        """Return the log-probability of each row under each class, times its count."""
        log_probs: Array = self.component_distribution.log_prob(value[:, None])
        return log_probs if self.count is None else self.count[:, None] * log_probs

    def _allowed(self, num_classes: int) -> Bool[Array, "group class"] | bool:
        """Return the mask of the classes that each group may have: all, or the known one."""
        if self.known is None:
            return True
        return (self.known[:, None] < 0) | (self.known[:, None] == jnp.arange(num_classes))

    def log_joint(self, value: Array) -> PerClass:
        """Return the log-probability of each class together with the group's rows."""
        return self.weighed(jax.ops.segment_sum(self.log_rows(value), self.group, self.num_groups))

    def weighed(self, log_likelihood: PerClass) -> PerClass:
        """Return the log-probability of each class together with what was seen."""
        weights = self.log_weights()
        allowed = self._allowed(weights.shape[-1])
        return jnp.where(allowed, weights + log_likelihood, -jnp.inf)

    def log_prob(self, value: Array, intermediates: Any = None) -> Float[Array, " group"]:
        """Return the log-probability of each group's rows."""
        log_probs = jax.nn.logsumexp(self.log_joint(value), axis=-1)
        return log_probs if self.repeats is None else self.repeats * log_probs

    def expected_classes(self, value: Array) -> PerClass:
        """Return the expected number of groups of each class."""
        probs = self.responsibilities(value)
        return probs if self.repeats is None else self.repeats[:, None] * probs

    def responsibilities(self, value: Array) -> PerClass:
        """Return the probability of each class given the group's rows."""
        return jax.nn.softmax(self.log_joint(value), axis=-1)

    def expected_log_prob(self, value: Array, class_probs: PerClass) -> Float[Array, ""]:
        """Return the expected log-probability of rows and classes together."""
        of_rows = weighted_sum(class_probs[self.group], self.log_rows(value))
        return weighted_sum(class_probs, self.log_weights()) + of_rows

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw a value for each row."""
        return self.sample_with_intermediates(key, sample_shape)[0]

    def sample_with_intermediates(
        self, key: Array, sample_shape: tuple[int, ...] = ()
    ) -> tuple[Array, list[Array]]:
        """Draw a value for each row, and the class of each group."""
        class_key, row_key = jax.random.split(key)
        weights = self.log_weights()
        allowed = jnp.where(self._allowed(weights.shape[-1]), weights, -jnp.inf)
        classes = jax.random.categorical(class_key, allowed, shape=(*sample_shape, self.num_groups))
        rows = self.component_distribution.sample(row_key, sample_shape)
        within = (1,) * self.component_distribution.event_dim
        of_row = classes[..., self.group].reshape(*sample_shape, -1, 1, *within)
        axis = len(sample_shape) + 1
        return jnp.take_along_axis(rows, of_row, axis).squeeze(axis), [classes]


def weighted_sum(weight: Array, log_probs: Array) -> Float[Array, ""]:
    """Return Σ weight · log_probs, in which 0 · −∞ is 0."""
    # Both where: the inner one keeps NaN out of the gradient.
    return jnp.where(weight > 0, weight * jnp.where(weight > 0, log_probs, 0.0), 0.0).sum()


class RowMixture(GroupedMixture):
    r"""Rows of which each has a latent class of its own, such as a lapse, which is summed out.

    .. math:: \log p(y_m) = c_m \log \sum_k w_{mk} \, p(y_m \mid k)

    Predictions, scores and audits see the density of each row; only back-ends that count classes
    see these. Components have batch shape (row, class).

    Examples
    --------
    >>> import jax.numpy as jnp, numpyro.distributions as dist
    >>> from raters.distributions import RowMixture
    >>> fair_or_not = dist.Bernoulli(probs=jnp.array([[0.5, 0.9]]))
    >>> row = RowMixture(dist.Categorical(probs=jnp.array([0.5, 0.5])), fair_or_not, 1)
    >>> jnp.exp(row.log_prob(jnp.array([1]))).round(2).tolist()
    [0.7]
    """

    def __init__(
        self,
        mixing: dist.Distribution,
        component: dist.Distribution,
        num_rows: int,
        count: Any = None,
    ) -> None:
        super().__init__(mixing, component, jnp.arange(num_rows), num_rows, repeats=count)

"""Distributions that NumPyro lacks."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from numpyro.distributions import constraints


class Votes(dist.BinomialLogits):
    r"""Votes for one of two sides, of which a tie gives each side a half: a Binomial that takes halves as values.

    .. math::

        \log p(y \mid n, \psi) = \log\Gamma(n + 1) - \log\Gamma(y + 1) - \log\Gamma(n - y + 1)
            + y\psi - n \log(1 + e^\psi)

    On whole numbers this is the Binomial, and its draws are whole.

    Parameters
    ----------
    logits : array
        Log-odds of a vote for the first side.
    total_count : array
        Votes in all.

    Examples
    --------
    >>> from raters.distributions import Votes
    >>> round(float(Votes(logits=0.0, total_count=1).log_prob(0.5)), 3)   # a tie
    -0.452
    """

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """From 0 to all votes."""
        return constraints.interval(0.0, self.total_count)


class ConfusedLabel(dist.Distribution):
    r"""A label drawn from the row of a confusion matrix that the true class selects.

    .. math:: p(y = j \mid t = k, a) = \pi_{akj}

    Batch shape (row, true class): `GroupedMixture` sums the true class out.

    Parameters
    ----------
    probs : array, shape (annotator, true class, label)
        Confusion matrices; every row of each is a distribution over labels.
    annotator : int array, shape (row,)
        Which matrix each label is drawn from.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from raters.distributions import ConfusedLabel
    >>> label = ConfusedLabel(jnp.array([[[0.9, 0.1], [0.2, 0.8]]]), jnp.zeros(1, int))
    >>> jnp.exp(label.log_prob(jnp.array([[1]]))).tolist()
    [[0.100, 0.800]]
    """

    pytree_data_fields = ("probs", "annotator")

    def __init__(self, probs: Any, annotator: Any, *, validate_args: bool | None = None):
        self.probs, self.annotator = probs, annotator
        super().__init__((annotator.shape[0], probs.shape[-2]), (), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """Codes of the labels."""
        return constraints.integer_interval(0, self.probs.shape[-1] - 1)

    def log_prob(self, value):
        """For labels of shape (row, 1): their log-probability under each true class."""
        by_label = jnp.swapaxes(jnp.log(self.probs), -1, -2)
        return by_label[self.annotator, value[..., 0]]

    def sample(self, key, sample_shape=()):
        """A label for each row and each true class that it might have."""
        return jax.random.categorical(key, jnp.log(self.probs)[self.annotator], shape=sample_shape + self.batch_shape)


class RightOrWrongLabel(dist.Distribution):
    r"""A label that is right with a given log-odds, and otherwise one of the wrong ones.

    .. math::

        p(y = j \mid t = k) = \begin{cases} \sigma(\psi_k) & j = k \\ (1 - \sigma(\psi_k)) \, m_{kj} & j \ne k \end{cases}

    Batch shape (row, true class): `GroupedMixture` sums the true class out.

    Parameters
    ----------
    logits : array, shape (row, 1) or (row, true class)
        Log-odds ψ of a right label.
    num_classes : int
    wrong : array, shape (annotator, true class, wrong label), optional
        Probabilities m of the wrong labels, in the order of the classes with the true one left out; all alike without it.
    annotator : int array, shape (row,), optional
        Which entry of `wrong` each label is drawn from.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from raters.distributions import RightOrWrongLabel
    >>> label = RightOrWrongLabel(jnp.zeros((1, 1)), num_classes=3)
    >>> jnp.exp(label.log_prob(jnp.array([[2]]))).tolist()
    [[0.250, 0.250, 0.500]]
    """

    pytree_data_fields = ("logits", "wrong", "annotator")
    pytree_aux_fields = ("num_classes",)

    def __init__(self, logits: Any, num_classes: int, wrong: Any = None, annotator: Any = None, *, validate_args=None):
        self.logits, self.num_classes, self.wrong, self.annotator = logits, num_classes, wrong, annotator
        super().__init__((logits.shape[0], num_classes), (), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """Codes of the labels."""
        return constraints.integer_interval(0, self.num_classes - 1)

    def log_prob(self, value):
        """For labels of shape (row, 1): their log-probability under each true class."""
        classes = jnp.arange(self.num_classes)
        if self.wrong is None:
            log_wrong = -jnp.log(self.num_classes - 1.0)
        else:
            place = jnp.clip(value - (value > classes), 0, self.num_classes - 2)
            log_wrong = jnp.log(self.wrong)[self.annotator[:, None], classes, place]
        return jnp.where(value == classes, jax.nn.log_sigmoid(self.logits), jax.nn.log_sigmoid(-self.logits) + log_wrong)

    def sample(self, key, sample_shape=()):
        """A label for each row and each true class that it might have."""
        right_key, wrong_key = jax.random.split(key)
        shape = sample_shape + self.batch_shape
        right = jax.random.bernoulli(right_key, jax.nn.sigmoid(jnp.broadcast_to(self.logits, self.batch_shape)), shape)
        log_wrong = jnp.zeros((self.num_classes - 1,)) if self.wrong is None else jnp.log(self.wrong)[self.annotator]
        place = jax.random.categorical(wrong_key, log_wrong, shape=shape)
        classes = jnp.arange(self.num_classes)
        return jnp.where(right, classes, place + (place >= classes))


class StickBreaking(dist.Distribution):
    r"""Shares that are broken off a stick of length 1, one after the other: a generalised Dirichlet distribution.

    .. math:: \eta_t = v_t \prod_{u < t} (1 - v_u), \qquad v_t \sim \mathrm{Beta}(a_t, b_t), \quad t = 1, \dots, T - 1

    and the last share is what is left. With a = 1 and b = α this is a Dirichlet process of concentration α cut off at T
    (Ishwaran and James 2001). As the Dirichlet, it is conjugate to counts (Connor and Mosimann 1969).

    Parameters
    ----------
    concentration1, concentration0 : array, shape (share − 1,)
        a and b of each break.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from raters.distributions import StickBreaking
    >>> float(StickBreaking(jnp.ones(2), jnp.ones(2)).log_prob(jnp.array([0.5, 0.3, 0.2])))    # log 1/(1 − 0.5)
    0.693
    """

    support = constraints.simplex
    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}

    def __init__(self, concentration1: Any, concentration0: Any, *, validate_args: bool | None = None):
        self.concentration1, self.concentration0 = concentration1, concentration0
        super().__init__((), (concentration1.shape[-1] + 1,), validate_args=validate_args)

    def log_prob(self, value):
        """Log density on the simplex."""
        left = jnp.flip(jnp.cumsum(jnp.flip(value, -1), -1), -1)  # what is left of the stick before each break
        broken, rest = value[..., :-1] / left[..., :-1], left[..., 1:] / left[..., :-1]
        a, b = self.concentration1, self.concentration0
        log_beta = jax.scipy.special.betaln(a, b)
        breaks = (a - 1) * jnp.log(broken) + (b - 1) * jnp.log(rest) - log_beta - jnp.log(left[..., :-1])
        return breaks.sum(-1)

    def sample(self, key, sample_shape=()):
        """Shares that add up to 1."""
        broken = dist.Beta(self.concentration1, self.concentration0).sample(key, sample_shape)
        ones = jnp.ones((*broken.shape[:-1], 1))
        return jnp.concatenate([broken, ones], -1) * jnp.concatenate([ones, jnp.cumprod(1 - broken, -1)], -1)


class GroupedMixture(dist.Distribution):
    r"""Rows that share a latent class within their group, the class summed out.

    .. math::

        p(y_g) = \sum_k w_{gk} \prod_{m \in g} p(y_m \mid k)^{c_m}

    Groups may have any number of rows. `log_prob` has one entry for each group: that is the unit that can be left
    out. Where the class is known, the sum has one term.

    Parameters
    ----------
    mixing_distribution : numpyro Categorical
        The class of each group; batch shape () or (group,).
    component_distribution : numpyro distribution, batch shape (row, class)
        Each row's value, given each class.
    group : int array, shape (row,)
    num_groups : int
    count : float array, shape (row,), optional
        How often each row was seen; 0 for a row that only pads.
    known : int array, shape (group,), optional
        The class of each group where it is known, −1 elsewhere.

    Examples
    --------
    Two labels of one item by an annotator who is right nine times in ten:

    >>> import jax.numpy as jnp, numpyro.distributions as dist
    >>> from raters.distributions import ConfusedLabel, GroupedMixture
    >>> confusion = jnp.array([[[0.9, 0.1], [0.1, 0.9]]])
    >>> labels = GroupedMixture(
    ...     dist.Categorical(probs=jnp.array([0.5, 0.5])), ConfusedLabel(confusion, jnp.zeros(2, int)), jnp.zeros(2, int), 1)
    >>> labels.responsibilities(jnp.array([1, 1])).tolist()
    [[0.012, 0.988]]
    """

    pytree_data_fields = ("mixing_distribution", "component_distribution", "group", "count", "known")
    pytree_aux_fields = ("num_groups",)

    def __init__(
        self,
        mixing_distribution: Any,
        component_distribution: Any,
        group: Any,
        num_groups: int,
        count: Any = None,
        known: Any = None,
        *,
        validate_args: bool | None = None,
    ):
        self.mixing_distribution, self.component_distribution = mixing_distribution, component_distribution
        self.group, self.num_groups, self.count, self.known = group, num_groups, count, known
        # A value has all rows, of which each entry of the batch reads its own.
        super().__init__((num_groups,), tuple(group.shape), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        """That of the rows."""
        return constraints.independent(self.component_distribution.support, 1)

    def log_weights(self):
        """Log-probability of each class before the rows are seen, shape (group, class)."""
        mixing = self.mixing_distribution
        # The logarithm of the probabilities as they are: their sum is 1 by their support, and Fisher's identity counts in it.
        log = jax.nn.log_softmax(mixing.logits) if isinstance(mixing, dist.CategoricalLogits) else jnp.log(mixing.probs)
        return jnp.broadcast_to(log, (self.num_groups, log.shape[-1]))

    def _log_rows(self, value):
        log = self.component_distribution.log_prob(value[:, None])
        return log if self.count is None else self.count[:, None] * log

    def _allowed(self, number: int):
        """Which classes each group may have: all, or the known one."""
        classes = jnp.arange(number)
        return True if self.known is None else (self.known[:, None] < 0) | (self.known[:, None] == classes)

    def log_joint(self, value):
        """Log-probability of each class together with the group's rows, shape (group, class)."""
        weights = self.log_weights()
        rows = jax.ops.segment_sum(self._log_rows(value), self.group, self.num_groups)
        return jnp.where(self._allowed(weights.shape[-1]), weights + rows, -jnp.inf)

    def log_prob(self, value):
        """Log-probability of each group's rows, shape (group,)."""
        return jax.nn.logsumexp(self.log_joint(value), axis=-1)

    def responsibilities(self, value):
        """Probability of each class given the group's rows, shape (group, class)."""
        return jax.nn.softmax(self.log_joint(value), axis=-1)

    def expected_log_prob(self, value, classes):
        """Log-probability of rows and classes together, averaged over `classes`, shape (group, class): probabilities of
        the classes, or 1 for a class that was drawn."""
        rows = classes[self.group]
        return _weighted(classes, self.log_weights()) + _weighted(rows, self._log_rows(value))

    def sample(self, key, sample_shape=()):
        """A value for each row."""
        return self.sample_with_intermediates(key, sample_shape)[0]

    def sample_with_intermediates(self, key, sample_shape=()):
        """A value for each row, and the class of each group."""
        class_key, row_key = jax.random.split(key)
        weights = self.log_weights()
        allowed = jnp.where(self._allowed(weights.shape[-1]), weights, -jnp.inf)
        classes = jax.random.categorical(class_key, allowed, shape=(*sample_shape, self.num_groups))
        rows = self.component_distribution.sample(row_key, sample_shape)
        return jnp.take_along_axis(rows, classes[..., self.group][..., None], axis=-1)[..., 0], [classes]


def _weighted(weight, log):
    """Σ weight · log, where a weight of 0 makes even −∞ count for nothing."""
    return jnp.where(weight > 0, weight * jnp.where(weight > 0, log, 0.0), 0.0).sum()

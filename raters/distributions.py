"""Distributions that NumPyro lacks."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, Int
from numpyro.distributions import constraints


class Votes(dist.BinomialLogits):
    r"""Binomial votes for one of two sides, with half votes for ties.

    .. math::

        \log p(y \mid n, \psi) = \log\Gamma(n + 1) - \log\Gamma(y + 1) - \log\Gamma(n - y + 1)
            + y\psi - n \log(1 + e^\psi)

    On whole numbers this is the Binomial, and its draws are whole numbers.

    Parameters
    ----------
    logits : array
        Log-odds of a vote for the first side.
    total_count : array
        Number of votes.

    Examples
    --------
    >>> from raters.distributions import Votes
    >>> round(float(Votes(logits=0.0, total_count=1).log_prob(0.5)), 3)   # a tie
    -0.452
    """

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """Interval from 0 to the number of votes."""
        return constraints.interval(0.0, self.total_count)


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

    def __init__(
        self,
        probs: Float[Array, "annotator true_class label"],
        annotator: Int[Array, " row"],
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.probs, self.annotator = probs, annotator
        super().__init__((annotator.shape[0], probs.shape[-2]), (), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """Codes of the labels, from 0."""
        return constraints.integer_interval(0, self.probs.shape[-1] - 1)

    def log_prob(
        self, value: Int[Array, "row 1"], intermediates: Any = None
    ) -> Float[Array, "row true_class"]:
        """Return the log-probability of each label under each true class.

        Parameters
        ----------
        value : int array, shape (row, 1)
            Codes of the labels.
        intermediates : object
            Not used.

        Returns
        -------
        array, shape (row, true class)
        """
        by_label = jnp.swapaxes(jnp.log(self.probs), -1, -2)
        return by_label[self.annotator, value[..., 0]]

    def sample(
        self, key: Array, sample_shape: tuple[int, ...] = ()
    ) -> Int[Array, "*sample row true_class"]:
        """Draw a label for each row and each true class that it might have.

        Parameters
        ----------
        key : jax.Array
        sample_shape : tuple of int

        Returns
        -------
        int array, shape (..., row, true class)
        """
        return jax.random.categorical(
            key, jnp.log(self.probs)[self.annotator], shape=sample_shape + self.batch_shape
        )


class RightOrWrongLabel(dist.Distribution):
    r"""Label that is right with given log-odds, and otherwise one of the wrong labels.

    .. math::

        p(y = j \mid t = k)
        = \begin{cases}
            \sigma(\psi_k) & j = k \\
            (1 - \sigma(\psi_k)) \, m_{kj} & j \ne k
          \end{cases}

    Batch shape (row, true class): `GroupedMixture` sums the true class out.

    Parameters
    ----------
    logits : array, shape (row, 1) or (row, true class)
        Log-odds ψ of a right label.
    num_classes : int
        Number of classes, at least 2.
    wrong : array, shape (annotator, true class, wrong label), optional
        Probabilities m of the wrong labels, in the order of the classes without the true one;
        uniform unless given.
    annotator : int array, shape (row,), optional
        Code of the annotator who gave each label, needed with `wrong`.

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

    def __init__(
        self,
        logits: Float[Array, "row 1"] | Float[Array, "row true_class"],
        num_classes: int,
        wrong: Float[Array, "annotator true_class wrong_label"] | None = None,
        annotator: Int[Array, " row"] | None = None,
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.logits, self.num_classes = logits, num_classes
        self.wrong, self.annotator = wrong, annotator
        super().__init__((logits.shape[0], num_classes), (), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """Codes of the labels, from 0."""
        return constraints.integer_interval(0, self.num_classes - 1)

    def log_prob(
        self, value: Int[Array, "row 1"], intermediates: Any = None
    ) -> Float[Array, "row true_class"]:
        """Return the log-probability of each label under each true class.

        Parameters
        ----------
        value : int array, shape (row, 1)
            Codes of the labels.
        intermediates : object
            Not used.

        Returns
        -------
        array, shape (row, true class)
        """
        classes = jnp.arange(self.num_classes)
        if self.wrong is None:
            log_wrong = -jnp.log(self.num_classes - 1.0)
        else:
            assert self.annotator is not None
            wrong_label = jnp.clip(value - (value > classes), 0, self.num_classes - 2)
            log_wrong = jnp.log(self.wrong)[self.annotator[:, None], classes, wrong_label]
        return jnp.where(
            value == classes,
            jax.nn.log_sigmoid(self.logits),
            jax.nn.log_sigmoid(-self.logits) + log_wrong,
        )

    def sample(
        self, key: Array, sample_shape: tuple[int, ...] = ()
    ) -> Int[Array, "*sample row true_class"]:
        """Draw a label for each row and each true class that it might have.

        Parameters
        ----------
        key : jax.Array
        sample_shape : tuple of int

        Returns
        -------
        int array, shape (..., row, true class)
        """
        right_key, wrong_key = jax.random.split(key)
        shape = sample_shape + self.batch_shape
        right = jax.random.bernoulli(
            right_key, jax.nn.sigmoid(jnp.broadcast_to(self.logits, self.batch_shape)), shape
        )
        log_wrong = (
            jnp.zeros((self.num_classes - 1,))
            if self.wrong is None
            else jnp.log(self.wrong)[self.annotator]
        )
        wrong_label = jax.random.categorical(wrong_key, log_wrong, shape=shape)
        classes = jnp.arange(self.num_classes)
        return jnp.where(right, classes, wrong_label + (wrong_label >= classes))


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

    def __init__(
        self,
        concentration1: Float[Array, " share-1"],
        concentration0: Float[Array, " share-1"],
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.concentration1, self.concentration0 = concentration1, concentration0
        super().__init__((), (concentration1.shape[-1] + 1,), validate_args=validate_args)

    def log_prob(
        self, value: Float[Array, "*batch share"], intermediates: Any = None
    ) -> Float[Array, "*batch"]:
        """Return the log-density on the simplex.

        Parameters
        ----------
        value : array, shape (..., share)
            Shares that add up to 1.
        intermediates : object
            Not used.

        Returns
        -------
        array, shape (...)
        """
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
        """Draw shares that add up to 1.

        Parameters
        ----------
        key : jax.Array
        sample_shape : tuple of int

        Returns
        -------
        array, shape (..., share)
        """
        broken = dist.Beta(self.concentration1, self.concentration0).sample(key, sample_shape)
        ones = jnp.ones((*broken.shape[:-1], 1))
        return jnp.concatenate([broken, ones], -1) * jnp.concatenate(
            [ones, jnp.cumprod(1 - broken, -1)], -1
        )


class GroupedMixture(dist.Distribution):
    r"""Rows whose groups each have a latent class, which is summed out.

    .. math::

        p(y_g) = \sum_k w_{gk} \prod_{m \in g} p(y_m \mid k)^{c_m}

    Groups may have any number of rows. `log_prob` has one entry per group, the unit that
    cross-validation leaves out. Where the class is known, the sum has one term.

    Parameters
    ----------
    mixing_distribution : numpyro Categorical
        The class of each group; batch shape () or (group,).
    component_distribution : numpyro distribution, batch shape (row, class)
        Each row's value, given each class.
    group : int array, shape (row,)
        Code of each row's group.
    num_groups : int
        Number of groups.
    count : float array, shape (row,), optional
        Number of times that each row was seen; 0 for padding. 1 unless given.
    known : int array, shape (group,), optional
        The class of each group where it is known, −1 elsewhere.

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

    pytree_data_fields = (
        "mixing_distribution",
        "component_distribution",
        "group",
        "count",
        "known",
    )
    pytree_aux_fields = ("num_groups",)

    def __init__(
        self,
        mixing_distribution: dist.Distribution,
        component_distribution: dist.Distribution,
        group: Int[Array, " row"],
        num_groups: int,
        count: Float[Array, " row"] | None = None,
        known: Int[Array, " group"] | None = None,
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.mixing_distribution = mixing_distribution
        self.component_distribution = component_distribution
        self.group, self.num_groups, self.count, self.known = group, num_groups, count, known
        # The event is all rows, since groups differ in how many they have.
        super().__init__((num_groups,), tuple(group.shape), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        """Support of the rows."""
        return constraints.independent(self.component_distribution.support, 1)

    def log_weights(self) -> Float[Array, "group class"]:
        """Return the prior log-probability of each class.

        Returns
        -------
        array, shape (group, class)
        """
        mixing = self.mixing_distribution
        # Not normalised: the support has sum 1, and Fisher's identity needs the gradient as it is.
        log_probs = (
            jax.nn.log_softmax(mixing.logits)
            if isinstance(mixing, dist.CategoricalLogits)
            else jnp.log(mixing.probs)
        )
        return jnp.broadcast_to(log_probs, (self.num_groups, log_probs.shape[-1]))

    def _log_rows(self, value: Array) -> Float[Array, "row class"]:
        log_probs: Array = self.component_distribution.log_prob(value[:, None])
        return log_probs if self.count is None else self.count[:, None] * log_probs

    def _allowed(self, num_classes: int) -> Bool[Array, "group class"] | bool:
        """Return the mask of the classes that each group may have: all, or the known one."""
        if self.known is None:
            return True
        return (self.known[:, None] < 0) | (self.known[:, None] == jnp.arange(num_classes))

    def log_joint(self, value: Array) -> Float[Array, "group class"]:
        """Return the log-probability of each class together with the group's rows.

        Parameters
        ----------
        value : array, shape (row,)

        Returns
        -------
        array, shape (group, class)
            −∞ for classes other than a known one.
        """
        weights = self.log_weights()
        rows = jax.ops.segment_sum(self._log_rows(value), self.group, self.num_groups)
        return jnp.where(self._allowed(weights.shape[-1]), weights + rows, -jnp.inf)

    def log_prob(self, value: Array, intermediates: Any = None) -> Float[Array, " group"]:
        """Return the log-probability of each group's rows.

        Parameters
        ----------
        value : array, shape (row,)
        intermediates : object
            Not used.

        Returns
        -------
        array, shape (group,)
        """
        return jax.nn.logsumexp(self.log_joint(value), axis=-1)

    def responsibilities(self, value: Array) -> Float[Array, "group class"]:
        """Return the probability of each class given the group's rows.

        Parameters
        ----------
        value : array, shape (row,)

        Returns
        -------
        array, shape (group, class)
        """
        return jax.nn.softmax(self.log_joint(value), axis=-1)

    def expected_log_prob(
        self, value: Array, class_probs: Float[Array, "group class"]
    ) -> Float[Array, ""]:
        """Return the expected log-probability of rows and classes together.

        Parameters
        ----------
        value : array, shape (row,)
        class_probs : array, shape (group, class)
            Probabilities that the expectation is over, or classes that were drawn, as one-hot rows.

        Returns
        -------
        array, shape ()
        """
        row_probs = class_probs[self.group]
        return _weighted_sum(class_probs, self.log_weights()) + _weighted_sum(
            row_probs, self._log_rows(value)
        )

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw a value for each row.

        Parameters
        ----------
        key : jax.Array
        sample_shape : tuple of int

        Returns
        -------
        array, shape (..., row)
        """
        return self.sample_with_intermediates(key, sample_shape)[0]

    def sample_with_intermediates(
        self, key: Array, sample_shape: tuple[int, ...] = ()
    ) -> tuple[Array, list[Array]]:
        """Draw a value for each row, and the class of each group.

        Parameters
        ----------
        key : jax.Array
        sample_shape : tuple of int

        Returns
        -------
        value : array, shape (..., row)
        intermediates : list of one int array, shape (..., group)
            Codes of the classes.
        """
        class_key, row_key = jax.random.split(key)
        weights = self.log_weights()
        allowed = jnp.where(self._allowed(weights.shape[-1]), weights, -jnp.inf)
        classes = jax.random.categorical(class_key, allowed, shape=(*sample_shape, self.num_groups))
        rows = self.component_distribution.sample(row_key, sample_shape)
        return jnp.take_along_axis(rows, classes[..., self.group][..., None], axis=-1)[..., 0], [
            classes
        ]


def _weighted_sum(weight: Array, log_probs: Array) -> Float[Array, ""]:
    """Return Σ weight · log_probs, in which 0 · −∞ is 0."""
    # Both where: the inner one keeps NaN out of the gradient.
    return jnp.where(weight > 0, weight * jnp.where(weight > 0, log_probs, 0.0), 0.0).sum()

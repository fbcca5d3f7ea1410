"""Rows that each have a latent class of their own, which is summed out."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.distributions.mixture import GroupedMixture


class RowMixture(GroupedMixture):
    r"""Rows of which each has a latent class of its own, which is summed out.

    .. math:: \log p(y_m) = c_m \log \sum_k w_{mk} \, p(y_m \mid k)

    As a lapse is: the class is a fact of one judgement, and no other depends on it. Predictions,
    scores and audits see the density of each row; only back-ends that count classes see these.

    Parameters
    ----------
    mixing_distribution : numpyro Categorical
        The class of each row; batch shape () or (row,).
    component_distribution : numpyro distribution, batch shape (row, class)
        Each row's value, given each class.
    num_rows : int
    count : float array, shape (row,), optional
        Number of equal judgements that each row stands for, each with a class of its own.

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
        mixing_distribution: dist.Distribution,
        component_distribution: dist.Distribution,
        num_rows: int,
        count: Float[Array, " row"] | None = None,
        *,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(
            mixing_distribution,
            component_distribution,
            jnp.arange(num_rows),
            num_rows,
            repeats=count,
            validate_args=validate_args,
        )

    def log_prob(self, value: Array, intermediates: Any = None) -> Float[Array, " row"]:
        """Return the log-probability of each row."""
        return super().log_prob(value)

"""Choices from sets whose alternatives lie in nests."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from raters.distributions.choices import Choice
from raters.errors.validation import checked


class NestedChoice(Choice):
    r"""Choices from sets whose alternatives lie in nests: the nested logit (McFadden 1978).

    .. math::

        P(j \mid S) = \frac{e^{u_j / \lambda_m}}{e^{I_m}} \,
            \frac{e^{\lambda_m I_m}}{\sum_l e^{\lambda_l I_l}}, \qquad
        I_m = \log \sum_{k \in S \cap m} e^{u_k / \lambda_m}

    for j in nest m. A dissimilarity λ of 1 leaves the alternatives of a nest independent, as in
    `Choice`; near 0, those of a nest are one alternative. It is 1/μ of Biogeme, with the scale of
    the upper level at 1.

    Parameters
    ----------
    utility : float array, shape (row,)
        Utility of each alternative of each set.
    set : int array, shape (row,)
        Code of each row's set, ascending. Rows whose code is `num_sets` only pad.
    num_sets : int
        Number of sets.
    nest : int array, shape (row,)
        Code of the nest of each row's alternative.
    dissimilarity : float array, shape (nest,)
        Dissimilarity λ of each nest, above 0.
    count : float array, shape (set,), optional
        Number of choices made from each set; 1 unless given.

    Examples
    --------
    A car and two buses that are nearly the same:

    >>> import jax.numpy as jnp
    >>> from raters.distributions.nested_choice import NestedChoice
    >>> none, nest = jnp.zeros(3, int), jnp.array([0, 1, 1])
    >>> NestedChoice(jnp.zeros(3), none, 1, nest, jnp.array([1.0, 0.01])).mean.tolist()
    [0.498, 0.251, 0.251]
    """

    @checked
    def __init__(
        self,
        utility: Float[Array, " row"],
        set: Int[Array, " row"],
        num_sets: int,
        nest: Int[Array, " row"],
        dissimilarity: Float[Array, " nest"],
        count: Float[Array, " set"] | None = None,
        *,
        validate_args: bool | None = None,
    ) -> None:
        log_probs = _log_probs(utility, set, num_sets, nest, dissimilarity)
        # Log-probabilities are utilities of which the exponentials sum to 1.
        super().__init__(log_probs, set, num_sets, count, validate_args=validate_args)


def _log_probs(
    utility: Float[Array, " row"],
    set: Int[Array, " row"],
    num_sets: int,
    nest: Int[Array, " row"],
    dissimilarity: Float[Array, " nest"],
) -> Float[Array, " row"]:
    """Log-probability of each row to be chosen from its set."""
    number = dissimilarity.shape[0]
    cell, cells = set * number + nest, num_sets * number
    scaled = utility / dissimilarity[nest]
    top = jax.ops.segment_max(lax.stop_gradient(scaled), cell, cells)
    there = jnp.isfinite(top)
    top = jnp.where(there, top, 0.0)
    total = jax.ops.segment_sum(jnp.exp(scaled - top[cell]), cell, cells)
    inclusive = top + jnp.log(jnp.where(there, total, 1.0))
    of_nests = jnp.where(there, jnp.tile(dissimilarity, num_sets) * inclusive, -jnp.inf)
    # A set without rows, as in padding, has no nest either.
    some = there.reshape(num_sets, number).any(axis=1)
    table = jnp.where(some[:, None], of_nests.reshape(num_sets, number), 0.0)
    upper = of_nests[cell] - jax.nn.logsumexp(table, axis=1)[jnp.minimum(set, num_sets - 1)]
    return scaled - inclusive[cell] + upper

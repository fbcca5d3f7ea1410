"""Choices from sets whose alternatives have errors in common."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Float, Int

from raters.distributions.choices import Choice

Codes = Int[Array, " row"]
PerRow = Float[Array, " row"]
Table = Float[Array, "set place"]


class NestedChoice(Choice):
    r"""Choices from sets whose alternatives lie in nests: the nested logit (McFadden 1978).

    .. math::

        P(j \mid S) = \frac{e^{u_j / \lambda_m}}{e^{I_m}} \,
            \frac{e^{\lambda_m I_m}}{\sum_l e^{\lambda_l I_l}}, \qquad
        I_m = \log \sum_{k \in S \cap m} e^{u_k / \lambda_m}

    for j in nest m. A dissimilarity λ of 1 leaves the alternatives of a nest independent, as in
    `Choice`; near 0, those of a nest are one alternative. It is 1/μ of Biogeme, with the scale of
    the upper level at 1.
    """

    def __init__(
        self,
        utility: PerRow,
        set: Codes,
        num_sets: int,
        nest: Codes,
        dissimilarity: Float[Array, " nest"],
        count: Float[Array, " set"] | None = None,
        *,
        validate_args: bool | None = None,
    ) -> None:
        log_probs = _log_probs(utility, set, num_sets, nest, dissimilarity)
        # Log-probabilities are utilities of which the exponentials sum to 1.
        super().__init__(log_probs, set, num_sets, count, validate_args=validate_args)


def _log_probs(
    utility: PerRow, set: Codes, num_sets: int, nest: Codes, dissimilarity: Float[Array, " nest"]
) -> PerRow:
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


# Evenly spaced nodes of the error of the alternative chosen, and of the error in common. The sum of
# an analytic function times a normal density converges exponentially in the inverse of the spacing.
_OWN = np.linspace(-7.2, 7.2, 25)
_COMMON = np.linspace(-6.0, 6.0, 61)
# Utility of what a set does not offer.
_NEVER = -1e4


class ProbitChoice(Choice):
    r"""Choices from sets under normal errors: the multinomial probit (Hausman and Wise 1978).

    .. math::

        P(j \mid S) = \int \phi(f) \int \phi(e)
            \prod_{k \in S, k \ne j} \Phi(v_j(f) - v_k(f) + e) \, de \, df, \qquad
        v_j(f) = u_j + l_j f

    Each alternative has an error of its own, with standard deviation 1, and the loading l on one
    that all have in common. Both integrals are sums over evenly spaced nodes, with a relative error
    below a thousandth for loadings up to 8.
    """

    def __init__(
        self,
        utility: PerRow,
        set: Codes,
        num_sets: int,
        size: int,
        loading: PerRow | None = None,
        count: Float[Array, " set"] | None = None,
        *,
        validate_args: bool | None = None,
    ) -> None:
        place = _places(set, num_sets)
        offered = _table(utility, set, place, (num_sets, size), _NEVER)
        if loading is None:
            table = _given(offered)
        else:
            loadings = _table(loading, set, place, (num_sets, size), 0.0)
            table = _averaged(offered, loadings)
        log_probs = table[jnp.minimum(set, num_sets - 1), jnp.minimum(place, size - 1)]
        # Log-probabilities are utilities of which the exponentials sum to 1.
        super().__init__(log_probs, set, num_sets, count, validate_args=validate_args)


def _places(set: Codes, num_sets: int) -> Codes:
    """Place of each row within its set."""
    row = jnp.arange(len(set))
    first = jax.ops.segment_min(row, set, num_sets)
    return row - first[jnp.minimum(set, num_sets - 1)]


def _table(
    values: PerRow, set: Codes, place: Codes, shape: tuple[int, int], nothing: float
) -> Table:
    """Values of rows as a table, with `nothing` where a set is shorter."""
    return jnp.full(shape, nothing, values.dtype).at[set, place].set(values, mode="drop")


def _given(utility: Table) -> Table:
    """Log-probability of each alternative, with no error in common."""
    size = utility.shape[1]
    ahead = utility[:, :, None] - utility[:, None, :]
    weight = jnp.asarray(_log_weights(_OWN), utility.dtype)
    nodes = jnp.asarray(_OWN, utility.dtype)
    below = log_ndtr(ahead[..., None] + nodes)
    others = jnp.where(jnp.eye(size, dtype=bool)[None, :, :, None], 0.0, below).sum(2)
    return jax.nn.logsumexp(others + weight, axis=-1)


def _averaged(utility: Table, loading: Table) -> Table:
    """Log-probability of each alternative, averaged over the error in common."""
    nodes = jnp.asarray(_COMMON, utility.dtype)
    weight = jnp.asarray(_log_weights(_COMMON), utility.dtype)
    # One node at a time, and computed again for the gradient: all at once would not fit.
    given = jax.checkpoint(lambda node: _given(utility + loading * node))
    each = jax.lax.map(given, nodes)
    return jax.nn.logsumexp(each + weight[:, None, None], axis=0)


def _log_weights(nodes: Float[np.ndarray, " node"]) -> Float[np.ndarray, " node"]:
    """Log weights of evenly spaced nodes under a standard normal density."""
    log_density = -(nodes**2) / 2
    return log_density - np.log(np.exp(log_density).sum())

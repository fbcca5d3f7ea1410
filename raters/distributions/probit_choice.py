"""Choices from sets under normal errors, which some alternatives share in part."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Float, Int

from raters.distributions.choices import Choice
from raters.errors.validation import checked

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

    Parameters
    ----------
    utility : float array, shape (row,)
        Utility of each alternative of each set.
    set : int array, shape (row,)
        Code of each row's set; the rows of a set follow each other. Rows whose code is `num_sets`
        only pad.
    num_sets : int
        Number of sets.
    size : int
        The largest number of rows of a set, or more.
    loading : float array, shape (row,), optional
        Loading of each row's alternative on the error in common; 0 unless given.
    count : float array, shape (set,), optional
        Number of choices made from each set; 1 unless given.

    Examples
    --------
    A car and two buses that share most of their error:

    >>> import jax.numpy as jnp
    >>> from raters.distributions.probit_choice import ProbitChoice
    >>> none, loading = jnp.zeros(3, int), jnp.array([0.0, 6.0, 6.0])
    >>> ProbitChoice(jnp.zeros(3), none, 1, 3).mean.tolist()
    [0.333, 0.333, 0.333]
    >>> ProbitChoice(jnp.zeros(3), none, 1, 3, loading).mean.tolist()
    [0.463, 0.268, 0.268]
    """

    @checked
    def __init__(
        self,
        utility: Float[Array, " row"],
        set: Int[Array, " row"],
        num_sets: int,
        size: int,
        loading: Float[Array, " row"] | None = None,
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


def _places(set: Int[Array, " row"], num_sets: int) -> Int[Array, " row"]:
    """Place of each row within its set."""
    row = jnp.arange(len(set))
    first = jax.ops.segment_min(row, set, num_sets)
    return row - first[jnp.minimum(set, num_sets - 1)]


def _table(
    values: Float[Array, " row"],
    set: Int[Array, " row"],
    place: Int[Array, " row"],
    shape: tuple[int, int],
    nothing: float,
) -> Float[Array, "set place"]:
    """Values of rows as a table, with `nothing` where a set is shorter."""
    table: Array = jnp.full(shape, nothing, values.dtype).at[set, place].set(values, mode="drop")
    return table


def _given(utility: Float[Array, "set place"]) -> Float[Array, "set place"]:
    """Log-probability of each alternative, with no error in common."""
    size = utility.shape[1]
    ahead = utility[:, :, None] - utility[:, None, :]
    weight = jnp.asarray(_log_weights(_OWN), utility.dtype)
    nodes = jnp.asarray(_OWN, utility.dtype)
    below = log_ndtr(ahead[..., None] + nodes)
    others = jnp.where(jnp.eye(size, dtype=bool)[None, :, :, None], 0.0, below).sum(2)
    log_probs: Array = jax.nn.logsumexp(others + weight, axis=-1)
    return log_probs


def _averaged(
    utility: Float[Array, "set place"], loading: Float[Array, "set place"]
) -> Float[Array, "set place"]:
    """Log-probability of each alternative, averaged over the error in common."""
    nodes = jnp.asarray(_COMMON, utility.dtype)
    weight = jnp.asarray(_log_weights(_COMMON), utility.dtype)
    # One node at a time, and computed again for the gradient: all at once would not fit.
    given = jax.checkpoint(lambda node: _given(utility + loading * node))
    each = jax.lax.map(given, nodes)
    log_probs: Array = jax.nn.logsumexp(each + weight[:, None, None], axis=0)
    return log_probs


def _log_weights(nodes: Float[np.ndarray, " node"]) -> Float[np.ndarray, " node"]:
    """Log weights of evenly spaced nodes under a standard normal density."""
    log_density = -(nodes**2) / 2
    weights: np.ndarray = log_density - np.log(np.exp(log_density).sum())
    return weights

"""Many rows that share few distributions."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Int
from numpyro.distributions import constraints

from raters.errors.validation import checked


class Tabulated(dist.Distribution):
    r"""Many rows that share few distributions with few values: log-probabilities are tabulated.

    .. math:: p(y_r) = p_{c(r)}(y_r)

    The table has an entry for each value of each distribution, so that a row costs one look-up, not
    a distribution of its own.

    Parameters
    ----------
    base : numpyro distribution, batch shape (cell, class)
        On the whole numbers from 0 on, finitely many.
    cell : int array, shape (row,)
        Code of each row's distribution.

    Examples
    --------
    >>> import jax.numpy as jnp, numpyro.distributions as dist
    >>> from raters.distributions.tabulated import Tabulated
    >>> coins = dist.Bernoulli(probs=jnp.array([[0.5], [0.9]]))
    >>> rows = Tabulated(coins, jnp.array([1, 0, 1]))
    >>> jnp.exp(rows.log_prob(jnp.array([[1], [1], [0]]))).round(2)[:, 0].tolist()
    [0.9, 0.5, 0.1]
    """

    pytree_data_fields = ("base", "cell")

    @checked
    def __init__(
        self,
        base: dist.Distribution,
        cell: Int[Array, " row"],
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.base, self.cell = base, cell
        shape = (*cell.shape, *base.batch_shape[1:])
        super().__init__(shape, base.event_shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """Support of the distributions."""
        return self.base.support

    def table(self) -> Array:
        """Log-probability of each value under each distribution."""
        table: Array = self.base.log_prob(self.base.enumerate_support(expand=False))
        return table

    def log_prob(self, value: Array) -> Array:
        """Log-probability of each row's value."""
        table, place = self.table(), jnp.asarray(value, jnp.int32)
        if place.shape[1:] == (1,) * (place.ndim - 1):
            return table[place[:, 0], self.cell]
        of_row: Array = jnp.moveaxis(table, 0, -1)[self.cell]
        log_probs: Array = jnp.take_along_axis(of_row, place[..., None], axis=-1)[..., 0]
        return log_probs

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw a value for each row."""
        log_probs: Any = jnp.moveaxis(self.table(), 0, -1)[self.cell]
        shape = (*sample_shape, *self.batch_shape)
        return jax.random.categorical(key, log_probs, axis=-1, shape=shape)

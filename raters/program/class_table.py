r"""Classes of groups whose rows share few tabulated distributions, from counts of the rows.

With :math:`T_{cvk}` for the log-probability of value v under distribution c and class k, and
:math:`n_{gcv}` for the number of such rows of group g, the log-probabilities of the rows of all
groups are the product n T, and the expected numbers of rows of each value, distribution and class
:math:`n^\top p`: a pass over the data is a product with one sparse matrix, whatever the model that
makes the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
import scipy.sparse
from jaxtyping import Array, Float

from raters.distributions import ConfusedLabel, GroupedMixture
from raters.distributions.rows import Tabulated
from raters.model import Model, Values
from raters.program.traces import trace

# Of fewer rows a pass takes less time than compiling this one.
_FEW_ROWS = 50_000
# Draws whose tables are multiplied at a time.
_DRAWS = 5


@dataclass(frozen=True)
class ClassTable:
    """Counts of the values of each distribution in each group."""

    model: Model[Any]
    data: Any
    counts: scipy.sparse.csr_array

    @classmethod
    def of(cls, model: Model[Any], data: Any, values: Values) -> ClassTable | None:
        """Counts of the rows of a program."""
        if data.num_rows < _FEW_ROWS:
            return None
        site = trace(model, data, values)[model.observed]
        fn = site["fn"]
        component = fn.component_distribution if isinstance(fn, GroupedMixture) else None
        if not isinstance(component, (ConfusedLabel, Tabulated)):
            return None
        size, cells = np.shape(component.table())[:2]
        column = np.asarray(site["value"]).astype(np.int32) * cells + np.asarray(component.cell)
        weight = np.ones(len(column)) if fn.count is None else np.asarray(fn.count, np.float64)
        place = (np.asarray(fn.group), column)
        shape = (fn.num_groups, size * cells)
        return cls(model, data, scipy.sparse.csr_array((weight, place), shape=shape))

    def expected(self, values: Values) -> tuple[Float[np.ndarray, "group class"], float]:
        """Expected number of groups of each class, and the log-likelihood of all."""
        table = np.asarray(_table(self.model, self.data, values))
        rows = self.counts @ table.reshape(-1, table.shape[-1])
        probs, total = classes_of_rows(self.model, self.data, values, rows)
        return np.asarray(probs), float(total)

    def counted(
        self, classes: Float[np.ndarray, "group class"]
    ) -> Float[np.ndarray, "column class"]:
        """Expected number of rows of each value, distribution and class."""
        return np.asarray(self.counts.T @ classes)

    def mean_responsibility(self, draws: Values) -> Float[np.ndarray, "group class"]:
        """Probability of each class of each group, averaged over draws."""
        # A mean of probabilities needs no more digits than float32 has.
        narrow = self.counts.astype(np.float32)
        number, total = len(next(iter(draws.values()))), None
        for begin in range(0, number, _DRAWS):
            some = {name: value[begin : begin + _DRAWS] for name, value in draws.items()}
            tables = np.asarray(_tables(self.model, self.data, some), np.float32)
            rows = narrow @ tables.reshape(-1, tables.shape[-2] * tables.shape[-1])
            single = {name: np.asarray(value, np.float32) for name, value in some.items()}
            summed = np.asarray(_summed(self.model, self.data, single, rows))
            total = summed if total is None else total + summed
        assert total is not None
        mean = total.astype(np.float64)
        return np.asarray(mean / mean.sum(1, keepdims=True))


@partial(jax.jit, static_argnums=0)
def _table(model: Model[Any], data: Any, values: Values) -> Float[Array, "value cell class"]:
    """Log-probability of each value under each distribution and class."""
    table: Array = trace(model, data, values)[model.observed]["fn"].component_distribution.table()
    return table


@partial(jax.jit, static_argnums=0)
def _tables(model: Model[Any], data: Any, draws: Values) -> Float[Array, "value cell draw class"]:
    """The tables of some draws."""
    tables: Array = jax.vmap(lambda values: _table(model, data, values), out_axes=2)(draws)
    return tables


@partial(jax.jit, static_argnums=0)
def classes_of_rows(
    model: Model[Any], data: Any, values: Values, rows: Float[Array, "group class"]
) -> tuple[Float[Array, "group class"], Float[Array, ""]]:
    """Expected numbers of groups of each class, and the log-likelihood of all, from that of the
    rows of each group."""
    fn = trace(model, data, values)[model.observed]["fn"]
    joint = fn.weighed(rows)
    total, probs = jax.nn.logsumexp(joint, axis=-1), jax.nn.softmax(joint, axis=-1)
    if fn.repeats is None:
        return probs, total.sum()
    return fn.repeats[:, None] * probs, (fn.repeats * total).sum()


@partial(jax.jit, static_argnums=0)
def _summed(
    model: Model[Any], data: Any, draws: Values, rows: Float[Array, "group column"]
) -> Float[Array, "group class"]:
    """Probabilities of the classes, summed over draws."""
    number = len(next(iter(draws.values())))
    parts = rows.reshape(len(rows), number, -1)

    def probs(values: Values, own: Array) -> Array:
        joint = trace(model, data, values)[model.observed]["fn"].weighed(own)
        return jax.nn.softmax(joint.astype(own.dtype), axis=-1)

    total: Array = jax.vmap(probs, in_axes=(0, 1))(draws, parts).sum(0)
    return total

"""Equal rows of different groups as one, where a row's distribution does not depend on its group:
expected numbers of the distinct rows under each class are a product with a sparse matrix."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import scipy.sparse
from jaxtyping import Array, Float, Int

from raters.distributions import GroupedMixture
from raters.distributions.mixture import ClassCounts
from raters.model import Model, Values
from raters.program.traces import inputs_of, trace
from raters.program.values import SAMPLE, scattered

# Of fewer rows a pass takes less time than compiling another one, and so does one of rows that are
# equal to fewer others than this on average.
_FEW_ROWS, _FEW_EQUAL = 2_000, 3
# Largest difference between log-probabilities of a row among other rows, for rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class PooledRows:
    """Distinct rows, and how many of each are in each group."""

    model: Model[Any]
    rows: Any
    counts: scipy.sparse.csr_array
    by_row: scipy.sparse.csr_array

    @classmethod
    def of(cls, program: Any, values: Values) -> PooledRows | None:
        """Distinct rows of a program."""
        data = program.data
        if program.latent is None or data.num_rows < _FEW_ROWS:
            return None
        if (columns := _columns(program, values)) is None:
            return None
        of_group, num_groups, of_row = columns
        place, first = _distinct([np.asarray(getattr(data, name)) for name in of_row])
        if len(first) * _FEW_EQUAL > data.num_rows:
            return None
        where = np.asarray(getattr(data, of_group)), place
        counts = scipy.sparse.csr_array((np.ones(len(place)), where), (num_groups, len(first)))
        rows = jax.device_put(jax.tree.map(np.asarray, data).rows(first))
        return cls(program.model, rows, counts, counts.T.tocsr())

    def expected(self, values: Values) -> tuple[ClassCounts, float]:
        """Expected numbers of groups and distinct rows of each class, and the log-likelihood."""
        each = np.asarray(_log_rows(self.model, self.rows, values))
        groups, total = _classes_of_rows(self.model, self.rows, values, self.counts @ each)
        return ClassCounts(groups, self.by_row @ np.asarray(groups)), float(total)


def _columns(program: Any, values: Values) -> tuple[str, int, list[str]] | None:
    """Column of groups, their number, and the columns that matter; None if rows do not pool."""
    model, data = program.model, program.data
    groups: list[int] = []
    at = {name: jnp.asarray(value) for name, value in values.items()}

    def parts(data: Any) -> tuple[Any, ...]:
        site = trace(model, data, at)[model.observed]
        fn = site["fn"]
        if not isinstance(fn, GroupedMixture) or fn.component_distribution.event_dim:
            raise NotImplementedError
        groups.append(fn.num_groups)
        of_groups = (fn.log_weights(), fn.known, fn.repeats)
        return fn.group, fn.log_rows(site["value"]), of_groups

    flat, structure = jax.tree.flatten(data)
    try:
        run = jax.make_jaxpr(lambda flat: parts(jax.tree.unflatten(structure, flat)))(flat).jaxpr
    except NotImplementedError:
        return None
    names = [str(path[0].name) for path, _ in jax.tree_util.tree_leaves_with_path(data)]
    by_row = {name for name, axes in data.arrays().items() if axes[0] == data.row}
    of_group, of_rows, *of_weights = [
        {names[place] for place in inputs_of(run, out)} for out in range(len(run.outvars))
    ]
    is_column = run.outvars[0] in run.invars
    other = set.union(set(), *of_weights)
    if not is_column or not of_group <= by_row or of_group & of_rows or other & by_row:
        return None
    if not _alone(program, values):
        return None
    return of_group.pop(), groups[0], sorted(of_rows & by_row)


def _alone(program: Any, values: Values) -> bool:
    """Return whether rows have the same log-probabilities among other rows."""
    rng = np.random.default_rng(0)
    point = scattered(values, program.supports, rng, least=0.3)
    data = jax.tree.map(np.asarray, program.data)
    data = data.rows(slice(0, SAMPLE))
    others = rng.integers(data.num_rows, size=data.num_rows)
    own = np.asarray(_log_rows(program.model, data, point))
    among = np.asarray(_log_rows(program.model, data.rows(others), point))
    return np.allclose(among, own[others], _ROUNDING, _ROUNDING, equal_nan=True)


def _distinct(
    columns: list[np.ndarray],
) -> tuple[Int[np.ndarray, " row"], Int[np.ndarray, " cell"]]:
    """Number of each row that equal rows share, in order of appearance, and the first of each."""
    code, size = np.zeros(len(columns[0]), np.int64), 1
    for column in (part for wide in columns for part in wide.reshape(len(wide), -1).T):
        own, values = pd.factorize(column, use_na_sentinel=False)
        code, size = code * len(values) + own, size * len(values)
        if size > 1 << 31:
            code, kept = pd.factorize(code)
            size = len(kept)
    place = pd.factorize(code)[0]
    first = np.empty(place.max(initial=-1) + 1, np.int64)
    first[place[::-1]] = np.arange(len(place))[::-1]
    return place, first


@partial(jax.jit, static_argnums=0)
def _log_rows(model: Model[Any], data: Any, values: Values) -> Float[Array, "row class"]:
    """Log-probability of each row under each class, times its count."""
    site = trace(model, data, values)[model.observed]
    return site["fn"].log_rows(site["value"])


@partial(jax.jit, static_argnums=0)
def _classes_of_rows(
    model: Model[Any], data: Any, values: Values, rows: Float[Array, "group class"]
) -> tuple[Float[Array, "group class"], Float[Array, ""]]:
    """Expected numbers of groups of each class, and the log-likelihood, from the rows'."""
    fn = trace(model, data, values)[model.observed]["fn"]
    joint = fn.weighed(rows)
    total, probs = jax.nn.logsumexp(joint, axis=-1), jax.nn.softmax(joint, axis=-1)
    if fn.repeats is None:
        return probs, total.sum()
    return fn.repeats[:, None] * probs, (fn.repeats * total).sum()

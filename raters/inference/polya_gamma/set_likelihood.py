"""Log-likelihood of choices from sets as a function of what their utilities are affine in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import scipy.sparse
from jaxtyping import Bool, Float, Int

from raters.distributions import GroupedMixture
from raters.distributions.choices import NOT_OFFERED, Choice, PlackettLuce
from raters.distributions.ties import OUTCOMES, Davidson
from raters.inference.arrays import Cell, Entries, Matrix, Points

if TYPE_CHECKING:
    from raters.inference.polya_gamma.rows import Rows

# Largest number of cells of a dense table of sets by entries.
_DENSE_CELLS = 4_000_000
# A design is an array where that is faster than a sparse matrix: with few entries while it fits
# into memory, and with more while its products with itself are few.
_FEW, _MOST_DENSE, _DENSE_PRODUCTS = 32, 20_000_000, 5_000_000
_ROUNDING = 1e-9
# Between utilities closer than this, e to them is a number in double precision.
_RANGE = 600.0


class Expanded(NamedTuple):
    """Value, slope and negative curvature of a log-likelihood at a point."""

    value: float
    slope: Entries
    curvature: Matrix


class Likelihood(ABC):
    """Log-likelihood Σ y u − n log Σ exp u of choices from sets."""

    num_cells: int
    is_cheap: bool = False

    @abstractmethod
    def at(self, entries: Points) -> Float[np.ndarray, " point"]:
        """Return the log-likelihood at some points."""

    @abstractmethod
    def expanded(self, entries: Entries) -> Expanded:
        """Return the value, the slope and the negative curvature at a point."""


class Cells(NamedTuple):
    """Rows of sets, sorted by set, each set with one row or more."""

    row: Int[np.ndarray, " cell"]
    begin: Int[np.ndarray, " set"]
    chosen: Cell
    number: Float[np.ndarray, " set"]
    sign: Cell | float = 1.0

    @property
    def code(self) -> Int[np.ndarray, " cell"]:
        """Set of each cell."""
        return np.repeat(np.arange(len(self.begin)), np.diff(self.begin, append=len(self.row)))


def likelihood_of_sets(rows: Rows, sets: Sets) -> Likelihood:
    """Return the likelihood of a block."""
    offered = (sets.code < len(sets.number)) & (np.asarray(rows.offset) > NOT_OFFERED)
    cells = _chosen(rows, sets, offered) if sets.place is None else _stages(sets, offered)
    if sets.place is None or not (np.asarray(sets.place) < 0).any():
        return _plain(rows, cells) or _affine(rows, cells)
    last = _last_stages(sets, offered)
    top, bottom = _plain(rows, cells), _plain(rows, last)
    if top is not None and bottom is not None:
        return Summed(top, bottom, signs=(1, -1))
    return _affine(rows, _together(cells, last))


def _plain(rows: Rows, cells: Cells) -> Plain | None:
    """Return the likelihood of utilities that are entries of the block as they are, or None."""
    if rows.entry is None or len(rows.entry) != 1:
        return None
    factor, offset = np.asarray(rows.weight)[0, cells.row], np.asarray(rows.offset)[cells.row]
    apart = max(np.abs(part).max(initial=0.0) for part in (factor - 1, offset))
    if apart >= _ROUNDING:
        return None
    return Plain(np.asarray(rows.entry)[0, cells.row], cells, len(rows.prior.mean))


def _affine(rows: Rows, cells: Cells) -> Utilities:
    """Return the likelihood of utilities that are affine in the block."""
    weight, size = np.asarray(rows.weight), len(rows.prior.mean)
    offset = cells.sign * np.asarray(rows.offset)[cells.row]
    if rows.entry is None:
        factors = np.broadcast_to(cells.sign, len(cells.row))[:, None] * weight[cells.row]
        return Utilities(scipy.sparse.csr_array(factors), offset, cells)
    slots = [
        (cells.sign * part[cells.row], entry[cells.row])
        for part, entry in zip(weight, np.asarray(rows.entry), strict=True)
    ]
    if len(slots) == 1:
        factor, entry = slots[0]
        if np.array_equal(entry, entry[cells.begin][cells.code]):
            return Separate(entry, factor, offset, cells, size)
    values, columns = (np.stack(part, axis=1).ravel() for part in zip(*slots, strict=True))
    ends = np.arange(len(cells.row) + 1) * len(slots)
    design = scipy.sparse.csr_array((values, columns, ends), shape=(len(cells.row), size))
    return Utilities(design, offset, cells)


def _chosen(rows: Rows, sets: Sets, offered: Bool[np.ndarray, " row"]) -> Cells:
    """Return the cells of single choices."""
    row = np.flatnonzero(
        offered & (np.asarray(sets.number)[np.minimum(sets.code, len(sets.number) - 1)] > 0)
    )
    row = row[np.argsort(sets.code[row], kind="stable")]
    code = sets.code[row]
    begin = np.flatnonzero(np.diff(code, prepend=-1))
    number = np.asarray(sets.number, np.float64)[code[begin]]
    return Cells(row, begin, np.asarray(rows.kappa, np.float64)[row], number)


def _stages(sets: Sets, offered: Bool[np.ndarray, " row"]) -> Cells:
    """Return the cells of the stages of rankings."""
    number = np.asarray(sets.number, np.float64)
    # Rankings by annotators of another type have no part.
    row = np.flatnonzero(offered & (number[np.minimum(sets.code, len(number) - 1)] > 0))
    place = np.asarray(sets.place)[row]
    order = np.lexsort((np.where(place > 0, place, np.inf), sets.code[row]))
    row, place = row[order], place[order]
    size = np.bincount(sets.code[row], minlength=len(sets.number))
    placed = np.bincount(sets.code[row], place > 0, len(sets.number)).astype(int)
    end = np.cumsum(size)
    # The last row of a full ranking has nothing left beside it.
    ranking = np.repeat(np.arange(len(size)), np.minimum(placed, np.maximum(size - 1, 0)))
    first = np.arange(len(ranking)) - np.searchsorted(ranking, ranking) + (end - size)[ranking]
    length = end[ranking] - first
    begin = np.cumsum(length) - length
    cell = np.arange(length.sum()) - np.repeat(begin - first, length)
    chosen = np.zeros(len(cell))
    chosen[begin] = number[ranking]
    return Cells(row[cell], begin, chosen, number[ranking])


def _last_stages(sets: Sets, offered: Bool[np.ndarray, " row"]) -> Cells:
    """Return the cells of the stages at which the worst of the rows without a place is named."""
    row = np.flatnonzero(offered & (np.asarray(sets.place) <= 0))
    row = row[np.argsort(sets.code[row], kind="stable")]
    code, is_worst = sets.code[row], np.asarray(sets.place)[row] < 0
    size = np.bincount(code, minlength=len(sets.number))
    # The worst of a single row is no choice.
    kept = ((np.bincount(code, is_worst, len(size)) > 0) & (size > 1))[code]
    row, code, is_worst = row[kept], code[kept], is_worst[kept]
    begin = np.flatnonzero(np.diff(code, prepend=-1))
    number = np.asarray(sets.number, np.float64)
    chosen = np.where(is_worst, number[code], 0.0)
    return Cells(row, begin, chosen, number[code[begin]], -1.0)


def _together(cells: Cells, last: Cells) -> Cells:
    """Return the cells of all stages."""
    row, begin, chosen, number, _ = map(np.append, cells, last)
    begin[len(cells.begin) :] += len(cells.row)
    sign = np.repeat([cells.sign, last.sign], [len(cells.row), len(last.row)])
    return Cells(row, begin, chosen, number, sign)


class Plain(Likelihood):
    """Likelihood of utilities that are the entries of a block."""

    is_cheap = True

    def __init__(self, entry: Int[np.ndarray, " cell"], cells: Cells, size: int) -> None:
        self.wins = np.bincount(entry, cells.chosen, size)
        first, place = _equal_sets(entry, cells, size)
        self.number = np.bincount(place, cells.number, len(first))
        code = np.full(len(cells.begin), -1)
        code[first] = np.arange(len(first))
        code = code[cells.code]
        order = np.argsort(code[code >= 0], kind="stable")
        self.entry, self.code = entry[code >= 0][order], code[code >= 0][order]
        self.num_cells = len(self.entry)
        self.begin = np.searchsorted(self.code, np.arange(len(first) + 1))
        table = self._table(np.ones(len(self.entry)))
        self.table: Any = table.toarray() if len(first) * size <= _DENSE_CELLS else table

    def _table(self, values: Cell) -> scipy.sparse.csr_array:
        """Return values of the cells as a table of sets by entries."""
        shape = len(self.number), len(self.wins)
        return scipy.sparse.csr_array((values, self.entry, self.begin), shape=shape)

    def _log_totals(self, entries: Points) -> np.ndarray:
        """Return the log of the sum of e to the utilities of each set, at some points."""
        top = entries.max(0)
        if np.max(top - entries.min(0)) < _RANGE:
            return np.asarray(np.log(self.table @ np.exp(entries - top)) + top)
        if not len(self.number):
            return np.zeros((0, entries.shape[1]))
        utility = entries[self.entry]
        top = np.maximum.reduceat(utility, self.begin[:-1], axis=0)
        exps = np.exp(utility - top[self.code])
        return np.asarray(np.log(np.add.reduceat(exps, self.begin[:-1], axis=0)) + top)

    def at(self, entries: Points) -> Float[np.ndarray, " point"]:
        return np.asarray(self.wins @ entries - self.number @ self._log_totals(entries))

    def expanded(self, entries: Entries) -> Expanded:
        totals = self._log_totals(entries[:, None])[:, 0]
        value = float(self.wins @ entries - self.number @ totals)
        root, top = np.sqrt(self.number), entries.max()
        if isinstance(self.table, np.ndarray) and top - entries.min() < _RANGE:
            share = self.table * np.exp(entries - top) * (root * np.exp(top - totals))[:, None]
            across = share.T @ share
        else:
            share = self._table(np.exp(entries[self.entry] - totals[self.code]) * root[self.code])
            across = (share.T @ share).toarray()
        expected = root @ share
        return Expanded(value, self.wins - expected, np.diag(expected) - across)


class Summed(Likelihood):
    """Likelihood of choices of several kinds, some of them with the entries turned round."""

    def __init__(self, *parts: Likelihood, signs: Sequence[int] | None = None) -> None:
        self.parts, self.signs = parts, signs or [1] * len(parts)
        self.num_cells = sum(part.num_cells for part in parts)
        self.is_cheap = all(part.is_cheap for part in parts)

    def at(self, entries: Points) -> Float[np.ndarray, " point"]:
        both = zip(self.parts, self.signs, strict=True)
        return np.sum([part.at(sign * entries) for part, sign in both], axis=0)

    def expanded(self, entries: Entries) -> Expanded:
        both = list(zip(self.parts, self.signs, strict=True))
        each = [part.expanded(sign * entries) for part, sign in both]
        slopes = [sign * one.slope for one, sign in zip(each, self.signs, strict=True)]
        curvature = np.sum([one.curvature for one in each], axis=0)
        return Expanded(sum(one.value for one in each), np.sum(slopes, axis=0), curvature)


def _equal_sets(
    entry: Int[np.ndarray, " cell"], cells: Cells, size: int
) -> tuple[Int[np.ndarray, " different"], Int[np.ndarray, " set"]]:
    """Return the first of all equal sets, and the place of each set among these."""
    random = np.random.default_rng(0).integers(2**63, size=(size, 2), dtype=np.uint64)
    if not len(cells.begin):
        return np.zeros(0, int), np.zeros(0, int)
    sums = np.add.reduceat(random[entry], cells.begin)
    # Half of the bits sort faster, and are hardly ever too few.
    _, first, place = np.unique(sums[:, 0], return_index=True, return_inverse=True)
    if (sums[first[place], 1] != sums[:, 1]).any():
        _, first, place = np.unique(sums, axis=0, return_index=True, return_inverse=True)
    return first, place.ravel()


class Utilities(Likelihood):
    """Likelihood of utilities that are affine in a block."""

    def __init__(self, design: scipy.sparse.csr_array, offset: Cell, cells: Cells) -> None:
        rows, size = design.shape
        few = size <= _FEW and rows * size <= _MOST_DENSE
        is_array = few or rows * size**2 <= _DENSE_PRODUCTS
        self.design: Any = design.toarray() if is_array else design
        self.offset, self.cells, self.num_cells = offset, cells, rows
        self.code = cells.code
        self.score = design.T @ cells.chosen
        ends = np.append(cells.begin, len(cells.row))
        shape = (len(cells.begin), len(cells.row))
        ones = np.ones(len(cells.row))
        self.of_set = scipy.sparse.csr_array((ones, np.arange(len(cells.row)), ends), shape=shape)

    def _totals(self, utility: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return e to the utilities less the highest, and the log of the sums of each set."""
        if not len(self.cells.begin):
            return utility, np.zeros((0, *utility.shape[1:]))
        top = utility.max()
        if top - utility.min() < _RANGE:
            exps = np.exp(utility - top)
            return exps, np.log(self.of_set @ exps) + top
        highest = np.maximum.reduceat(utility, self.cells.begin, axis=0)
        exps = np.exp(utility - highest[self.code])
        return exps, np.log(self.of_set @ exps) + highest

    def at(self, entries: Points) -> Float[np.ndarray, " point"]:
        utility = self.design @ entries + self.offset[:, None]
        _, totals = self._totals(utility)
        return np.asarray(self.cells.chosen @ utility - self.cells.number @ totals)

    def expanded(self, entries: Entries) -> Expanded:
        utility = self.design @ entries + self.offset
        _, totals = self._totals(utility)
        probs = np.exp(utility - totals[self.code])
        value = self.cells.chosen @ utility - self.cells.number @ totals
        expected = self.cells.number[self.code] * probs
        slope, root = self.score - self.design.T @ expected, np.sqrt(self.cells.number)
        if isinstance(self.design, np.ndarray):
            share = root[:, None] * (self.of_set @ (probs[:, None] * self.design))
            curvature = (self.design.T * expected) @ self.design - share.T @ share
            return Expanded(float(value), slope, curvature)
        own = self.design.T @ scipy.sparse.diags_array(expected) @ self.design
        shares = scipy.sparse.diags_array(probs) @ self.design
        shares = scipy.sparse.diags_array(root) @ self.of_set @ shares
        return Expanded(float(value), slope, (own - shares.T @ shares).toarray())


class Separate(Utilities):
    """Likelihood of a block of which each set touches one entry."""

    def __init__(
        self, entry: Int[np.ndarray, " cell"], weight: Cell, offset: Cell, cells: Cells, size: int
    ) -> None:
        number = len(cells.row)
        ends = np.arange(number + 1)
        design = scipy.sparse.csr_array((weight, entry, ends), shape=(number, size))
        super().__init__(design, offset, cells)
        self.weight, owner = weight, entry[cells.begin]
        places = np.arange(len(owner))
        self.of_entry = scipy.sparse.coo_array(
            (np.ones(len(owner)), (owner, places)), shape=(size, len(owner))
        ).tocsr()

    def of_each(self, entries: Points) -> Points:
        """Return the part of the log-likelihood that each entry has, at some points."""
        utility = self.design @ entries + self.offset[:, None]
        _, totals = self._totals(utility)
        of_set = self.of_set @ (self.cells.chosen[:, None] * utility)
        return np.asarray(self.of_entry @ (of_set - self.cells.number[:, None] * totals))

    def slopes(self, entries: Entries) -> tuple[Entries, Entries]:
        """Return the slope and the negative curvature along each entry."""
        utility = self.design @ entries + self.offset
        _, totals = self._totals(utility)
        weighted = np.exp(utility - totals[self.code]) * self.weight
        mean, square = self.of_set @ weighted, self.of_set @ (weighted * self.weight)
        slope = self.score - self.of_entry @ (self.cells.number * mean)
        return slope, self.of_entry @ (self.cells.number * (square - mean**2))


class Sets(NamedTuple):
    """Sets of an observed distribution."""

    code: Any
    number: Any
    place: Any = None


@singledispatch
def sets_of(fn: dist.Distribution, classes: Any, value: Any) -> Sets | None:
    """Return the sets that an observed distribution chooses from, or None for another one."""
    return None


@sets_of.register(Choice)
@sets_of.register(PlackettLuce)
def _(fn: Choice | PlackettLuce, classes: Any, value: Any) -> Sets:
    number = jnp.ones(fn.num_sets) if fn.count is None else fn.count
    return Sets(fn.set, number, value if isinstance(fn, PlackettLuce) else None)


@sets_of.register
def _(fn: dist.CategoricalLogits, classes: Any, value: Any) -> Sets:
    number, size = fn.logits.shape
    return Sets(jnp.repeat(jnp.arange(number), size), jnp.ones(number))


@sets_of.register
def _(fn: Davidson, classes: Any, value: Any) -> Sets:
    number = len(fn.logits)
    code = jnp.repeat(jnp.arange(number), len(OUTCOMES))
    return Sets(code, jnp.ones(number) if fn.count is None else fn.count)


@sets_of.register
def _(fn: GroupedMixture, classes: Any, value: Any) -> Sets | None:
    component = fn.component_distribution
    if not isinstance(component, (Choice, PlackettLuce)):
        return None
    num_classes = component.batch_shape[-1]
    share = classes[fn.group]  # a group holds sets
    number = share if component.count is None else component.count[:, None] * share
    code = component.set[:, None] * num_classes + jnp.arange(num_classes)
    place = jnp.repeat(value, num_classes) if isinstance(component, PlackettLuce) else None
    return Sets(code.ravel(), number.ravel(), place)

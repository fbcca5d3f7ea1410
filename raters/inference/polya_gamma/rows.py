"""Sparse designs of blocks: indices noted by stand-ins, weights by one vector–Jacobian product."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from functools import partial
from typing import Any, Literal, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from numpyro.distributions import constraints

from raters.errors import NotConjugateError
from raters.inference.arrays import PerRow, Rng, Sites
from raters.inference.polya_gamma import latent_classes
from raters.inference.polya_gamma.conditionals import (
    Gaussian,
    Observation,
    joined,
    observation,
    prior,
)
from raters.model import Model, Values
from raters.program import Program, log_prior, scattered, trace

_TOLERANCE = 1e-3
# The precision of a block takes a pass for each pair of entries of a row.
_MOST_ENTRIES = 40


class Block(NamedTuple):
    """Sites, or a column of a site, that are updated jointly."""

    sites: Sites
    kind: Literal["rows", "class", "type", "counts"] = "rows"
    column: int = 0
    colours: tuple[int, ...] = ()

    @property
    def is_column(self) -> bool:
        """True for one column of a site."""
        return self.kind in ("class", "type")

    def flat(self, values: Values) -> Array:
        """Return the block's entries as a vector."""
        if self.is_column:
            return values[self.sites[0]][:, self.column]
        return jnp.concatenate([jnp.ravel(values[name]) for name in self.sites])

    def placed(self, values: Values, entries: Array) -> Values:
        """Return `values` with the block's vector in its sites."""
        if self.is_column:
            site = jnp.asarray(values[self.sites[0]])
            return values | {self.sites[0]: site.at[:, self.column].set(entries)}
        return values | split(entries, values, self.sites)


class Rows(NamedTuple):
    """Design of a Gaussian block, given the other sites."""

    entry: Int[Array, "slot row"] | None
    weight: Float[Array, "slot row"] | Float[Array, "row entry"]
    offset: PerRow
    logits: PerRow
    kappa: PerRow
    votes: PerRow
    prior: Gaussian
    shift: Float[Array, "term row"] | None = None

    def stacked(self) -> Rows:
        """Return rows whose slots, as `record` gives them one by one, are rows of an array."""
        if self.entry is None:
            return self
        return self._replace(entry=jnp.stack(self.entry), weight=jnp.stack(self.weight))


class NotIndexed(Exception):
    """A program does something else with a site than to index it."""


class StandIn:
    """Replacement of a site's value that records each index, and returns a slot array for it."""

    def __init__(self, value: Array, slots: list[Array] | None = None) -> None:
        self.value, self.slots = value, slots
        self.entries: list[Array] = []
        self.shape, self.ndim, self.dtype = value.shape, value.ndim, value.dtype

    def __getitem__(self, index: Any) -> Array:
        entry = jnp.arange(self.value.size, dtype=jnp.int32).reshape(self.shape)[index]
        self.entries.append(entry)
        if self.slots is None:
            return jnp.take(self.value.ravel(), entry)
        return self.slots[len(self.entries) - 1]

    def _refuse(self, *args: Any, **options: Any) -> NoReturn:
        raise NotIndexed("the program does more with a site than to index it")

    __iter__ = __len__ = __bool__ = __int__ = __float__ = __index__ = __neg__ = __pos__ = _refuse
    __abs__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __eq__ = __ne__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __round__ = __divmod__ = _refuse
    __array__ = __array_ufunc__ = _refuse
    # JAX looks for it before it does anything with an argument.
    __jax_array__ = property(_refuse)

    def __getattr__(self, name: str) -> Any:
        if hasattr(jax.Array, name):  # Others are mistakes, and missed as on an array.
            self._refuse()
        raise AttributeError(f"{type(self.value).__name__} has no attribute {name!r}")


def indexed(model: Model[Any], data: Any, values: Values) -> dict[str, Any]:
    """Return the record of the observed site, with stand-ins among the values."""
    try:
        return trace(model, data, values)[model.observed]
    except TypeError as error:
        if StandIn.__qualname__ in str(error.__cause__):  # JAX says whose type it does not know.
            raise NotIndexed(str(error)) from error
        raise


def read(model: Model[Any], data: Any, values: Values, block: Block, classes: Any) -> Observation:
    """Return the logistic likelihoods that a block enters: those of the rows, of one class against
    all others, or of the rows under one type."""
    site = indexed(model, data, values)
    if block.kind == "class":
        log_odds = site["fn"].mixing_distribution.logits
        others = jnp.where(jnp.arange(log_odds.shape[-1]) == block.column, -jnp.inf, log_odds)
        logits = log_odds[:, block.column] - jax.nn.logsumexp(others, axis=-1)
        return Observation(logits, jnp.ones_like(logits), classes[:, block.column] - 0.5)
    rows = observation(site["fn"], site["value"], classes)
    if block.kind == "type":
        # Those of a ranking have an axis of positions, too.
        types = values[block.sites[0]].shape[1]
        columns = (jnp.reshape(part, (-1, types))[:, block.column] for part in rows[:3])
        return Observation(*columns)
    return rows._replace(logits=rows.logits.ravel())


def record(
    model: Model[Any],
    data: Any,
    values: Values,
    block: Block,
    classes: Any = None,
    number: Any = float,
) -> Rows:
    """Record the rows of `block`; its colours say where the model does more than index a site."""
    values = {name: jnp.asarray(value, number) for name, value in values.items()}
    if block.colours:
        return _by_colour(model, data, values, block, classes)
    return indexed_rows(model, data, values, block, classes)


def indexed_rows(model: Model[Any], data: Any, values: Values, block: Block, classes: Any) -> Rows:
    """Record the rows of sites that the model indexes, or uses as scalars."""
    by_index = tuple(name for name in block.sites if values[name].ndim > 0)
    scalars = {name: values[name] for name in block.sites if values[name].ndim == 0}

    def run(slots: Any, scalars: Values) -> tuple[Array, tuple[Observation, Any]]:
        stand_ins = {
            name: StandIn(values[name], None if slots is None else slots[name]) for name in by_index
        }
        rows = read(model, data, values | stand_ins | scalars, block, classes)
        return rows.logits, (rows, {name: one.entries for name, one in stand_ins.items()})

    logits, (rows, entries) = run(None, scalars)
    columns = values[block.sites[0]].shape[-1] if block.is_column else 1

    def of_rows(slot: Array) -> Array:
        """Return what a slot has of the block for each row."""
        if slot.size != logits.size * columns or (block.is_column and slot.shape[-1] != columns):
            raise NotIndexed("an index of another size than the logits")
        return slot.reshape(-1, columns)[:, block.column]

    slots = {
        name: [values[name].ravel()[entry] for entry in indices]
        for name, indices in entries.items()
    }
    _, pull, _ = jax.vjp(lambda slots: run(slots, scalars), slots, has_aux=True)
    (by_slot,) = pull(jnp.ones_like(logits))
    places, weights, begin = [], [], 0
    for name in block.sites:
        if name in scalars:
            places.append(jnp.full(logits.size, begin, jnp.int32))
            one = jax.tree.map(jnp.zeros_like, scalars) | {name: jnp.ones_like(scalars[name])}
            weights.append(jax.jvp(lambda scalars: run(None, scalars)[0], (scalars,), (one,))[1])
        else:
            own = [begin + of_rows(entry) // columns for entry in entries[name]]
            places += [entry.astype(jnp.int32) for entry in own]
            weights += [of_rows(weight) for weight in by_slot[name]]
        begin += values[name].size
    if not 0 < len(places) <= _MOST_ENTRIES:
        raise NotIndexed("the program indexes the sites not at all, or many times")
    current = block.flat(values)
    slots_of = zip(places, weights, strict=True)
    along = functools.reduce(operator.add, [weight * current[entry] for entry, weight in slots_of])
    prior = block_prior(model, data, values, block)
    entry: Any = tuple(places)
    weight: Any = tuple(weights)
    return Rows(entry, weight, logits - along, logits, rows.kappa, rows.votes, prior, rows.shift)


def indices(model: Model[Any], data: Any, values: Values, site: str) -> list[Array]:
    """Return the entries of a site that rows touch, an array for each index."""
    stand_in = StandIn(jnp.asarray(values[site]))
    indexed(model, data, values | {site: stand_in})
    return stand_in.entries


def _by_colour(model: Model[Any], data: Any, values: Values, block: Block, classes: Any) -> Rows:
    """Read the rows of a block from derivatives of the logits, one slot for each colour."""
    current = block.flat(values)

    def logits_of(entries: Array) -> tuple[Array, Observation]:
        rows = read(model, data, block.placed(values, entries), block, classes)
        return rows.logits, rows

    logits, push, rows = jax.linearize(logits_of, current, has_aux=True)
    rest = logits, rows.kappa, rows.votes, block_prior(model, data, values, block), rows.shift
    along = jax.vmap(push)
    colours = np.array(block.colours)
    number = colours.max() + 1
    own = jnp.asarray(colours == np.arange(number)[:, None], current.dtype)
    weight = along(own)
    if number == len(colours):
        return Rows(None, weight.T, logits - current @ weight, *rest)
    several = np.flatnonzero(np.bincount(colours) > 1)
    entry = jnp.broadcast_to(jnp.argmax(own, axis=1)[:, None], weight.shape)
    numbered = along(own[several] * jnp.arange(1.0, len(colours) + 1))
    touched = weight[several] != 0
    place = jnp.where(touched, numbered / jnp.where(touched, weight[several], 1.0), 1.0)
    entry = entry.at[several].set(jnp.round(place).astype(entry.dtype) - 1).astype(jnp.int32)
    return Rows(entry, weight, logits - (weight * current[entry]).sum(0), *rest)


def split(entries: Any, values: Values, block: Sites) -> Values:
    """Split a block's vector, or draws of it, into its sites, with the shapes of `values`."""
    shapes = [np.shape(values[name]) for name in block]
    ends = list(itertools.accumulate(map(math.prod, shapes)))
    assert ends[-1] == entries.shape[-1], (block, shapes, entries.shape)
    # Of JAX the derivative is one concatenation, and that of slices a sum of padded vectors.
    numpy: Any = jnp if isinstance(entries, jax.Array) else np
    parts = zip(block, numpy.split(entries, ends, axis=-1)[:-1], shapes, strict=True)
    return {name: part.reshape((*part.shape[:-1], *shape)) for name, part, shape in parts}


def block_prior(model: Model[Any], data: Any, values: Values, block: Block) -> Gaussian:
    """Return the priors of a block's sites, concatenated, or of a column of a site."""
    traced = trace(model, data, values)
    sites = block.sites
    own = joined([prior(traced[name]["fn"], np.shape(values[name])) for name in sites])
    if not block.is_column:
        return own
    if own.across is not None:
        raise NotImplementedError(
            f"{sites[0]!r} has a multivariate normal prior, and is updated one class at a time"
        )
    shape = np.shape(values[sites[0]])
    return jax.tree.map(lambda part: part.reshape(shape)[:, block.column], own)


@partial(jax.jit, static_argnums=(0, 3))
def rows_of(
    model: Model[Any], data: Any, values: Values, block: Block, classes: Any = None
) -> Rows:
    """Record the rows of `block`, compiled."""
    return record(model, data, values, block, classes).stacked()


def is_entrywise(model: Model[Any], data: Any, values: Values, block: Block, classes: Any) -> bool:
    """Return whether the entries of a block are independent of each other, given all else."""
    if block.kind == "counts":
        return True
    rows = jax.eval_shape(lambda at: rows_of(model, data, at, block, classes), values)
    return rows.entry is not None and len(rows.entry) == 1 and rows.prior.across is None


@partial(jax.jit, static_argnums=0)
def logits_of(model: Model[Any], data: Any, values: Values) -> Array:
    """Return the logits of the observed site, compiled."""
    return read(model, data, values, Block(()), None).logits


@partial(jax.jit, static_argnums=(0, 3))
def _prior_slope(model: Model[Any], data: Any, values: Values, sites: Sites) -> Values:
    """Return the gradient in these sites of the log-prior of all other sites."""
    own = {name: jnp.asarray(values[name], float) for name in sites}
    return jax.grad(lambda own: log_prior(model, data, values | own, without=sites))(own)


def check_conjugate(program: Program[Any], values: Values, block: Block, seed: int = 0) -> None:
    """Check that `block` is conjugate, by comparing its conditional at two random points."""
    rng = np.random.default_rng(seed)
    model, sample = program.model, program.sample()
    name = f"block {block.sites} of {model.title}"
    claim_of = "is declared conjugate" if model.blocks is not None else "was found on like data"
    advice = (
        "Take it out of `blocks`" if model.blocks is not None else "Declare `blocks` without it"
    )
    point = _elsewhere(program, values, block, rng)
    slope = _prior_slope(model, sample.take(slice(0, 1)), point, block.sites)
    if any(np.any(np.asarray(part) != 0) for part in slope.values()):
        raise NotConjugateError(
            f"{name} {claim_of}, but the prior of another site depends on it. {advice}"
        )
    classes = latent_classes.expected_in(program, sample, point)
    if block.kind == "counts":
        given = model, sample, point, classes, block.sites[0]
        both = (latent_classes.parameters(*given, at) for at in (0.0, 0.5))
        first, second = (np.concatenate([np.ravel(part) for part in one]) for one in both)
        claim = "its complete-data log-likelihood is not that of counts: two readings of them"
    else:
        try:
            rows = rows_of(model, sample, point, block, classes)
        except NotImplementedError as reason:
            raise NotConjugateError(f"{name} is not conjugate: {reason}") from reason
        other = block.placed(point, block.flat(_elsewhere(program, values, block, rng)))
        flat, weight = np.asarray(block.flat(other)), np.asarray(rows.weight)
        if rows.entry is None:
            along = weight @ flat
        else:
            along = (weight * flat[np.asarray(rows.entry)]).sum(0)
        first = np.asarray(rows.offset) + along
        second = np.asarray(rows_of(model, sample, other, block, classes).logits)
        claim = "the logits are not affine in it: predicted and actual logits"
    error = float(np.max(np.abs(first - second) / (1 + np.abs(second)), initial=0.0))
    if not error < _TOLERANCE:
        raise NotConjugateError(
            f"{name} {claim_of}, but {claim} differ by {error:.3g} (relative; at most"
            f" {_TOLERANCE:g}). {advice}"
        )


def _elsewhere(program: Program[Any], values: Values, block: Block, rng: Rng) -> Values:
    """Random values of all sites, in their supports."""
    # Moving towards 0 stays inside the supports that conjugate blocks can have. The jitter makes
    # entries differ.
    supports = program.supports
    moved = scattered(values, supports, rng, least=0.3)
    jitter = {name for name in block.sites if supports[name] is not constraints.simplex}
    return moved | {
        name: 0.85 * moved[name] + 0.01 * rng.uniform(size=np.shape(moved[name])) for name in jitter
    }

"""Sparse designs of blocks: indices noted by stand-ins, weights by one vector–Jacobian product."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
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


class _Factor(StandIn):
    """Stand-in that also records a design by which the site is multiplied."""

    design: Array | None = None

    # So that products of NumPy and JAX are left to __rmatmul__.
    __array_ufunc__ = __jax_array__ = None  # type: ignore[assignment]

    def __rmatmul__(self, design: Any) -> Array:  # type: ignore[override]
        self.design = jnp.asarray(design)
        return self.design @ self.value


def indexed(model: Model[Any], data: Any, values: Values) -> dict[str, Any]:
    """Return the record of the observed site, with stand-ins among the values."""
    try:
        return trace(model, data, values)[model.observed]
    except TypeError as error:
        if StandIn.__qualname__ in str(error.__cause__):  # JAX says whose type it does not know.
            raise NotIndexed(str(error)) from error
        raise


def _logits(model: Model[Any], data: Any, values: Values, classes: Any = None) -> Observation:
    site = indexed(model, data, values)
    return observation(site["fn"], site["value"], classes)


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
    if block.kind == "class":
        return _class_rows(model, data, values, block, classes)
    if block.kind == "type":
        return _type_rows(model, data, values, block, classes)
    if block.colours:
        return _by_colour(model, data, values, block, classes)
    return indexed_rows(model, data, values, block.sites, classes)


def indexed_rows(model: Model[Any], data: Any, values: Values, block: Sites, classes: Any) -> Rows:
    """Record the rows of sites that the model indexes, or uses as scalars."""
    by_index = tuple(name for name in block if values[name].ndim > 0)
    scalars = {name: values[name] for name in block if values[name].ndim == 0}

    def run(slots: Any, scalars: Values) -> tuple[Array, tuple[Observation, Any]]:
        stand_ins = {
            name: StandIn(values[name], None if slots is None else slots[name]) for name in by_index
        }
        read = _logits(model, data, values | stand_ins | scalars, classes)
        return read.logits, (read, {name: one.entries for name, one in stand_ins.items()})

    logits, (read, entries) = run(None, scalars)
    if any(entry.size != len(logits) for indices in entries.values() for entry in indices):
        raise NotIndexed("an index of another size than the logits")
    slots = {
        name: [values[name].ravel()[entry] for entry in indices]
        for name, indices in entries.items()
    }
    _, pull, _ = jax.vjp(lambda slots: run(slots, scalars), slots, has_aux=True)
    (by_slot,) = pull(jnp.ones_like(logits))
    columns, weights, begin = [], [], 0
    for name in block:
        if name in scalars:
            columns.append(jnp.full(logits.size, begin, jnp.int32))
            one = jax.tree.map(jnp.zeros_like, scalars) | {name: jnp.ones_like(scalars[name])}
            by_scalar = jax.jvp(lambda scalars: run(None, scalars)[0], (scalars,), (one,))[1]
            weights.append(by_scalar.ravel())
        else:
            columns += [(begin + entry.ravel()).astype(jnp.int32) for entry in entries[name]]
            weights += [weight.ravel() for weight in by_slot[name]]
        begin += values[name].size
    if not columns:
        raise NotIndexed("the program does not index the sites")
    if len(columns) > _MOST_ENTRIES:
        raise NotImplementedError(
            f"each row touches {len(columns)} entries of block {block} (at most {_MOST_ENTRIES});"
            " use fewer features, such as their first principal components"
        )
    current = jnp.concatenate([values[name].ravel() for name in block])
    offset = logits.ravel() - _along(columns, weights, current)
    prior = block_prior(model, data, values, block)
    entry: Any = tuple(columns)
    weight: Any = tuple(weights)
    return Rows(entry, weight, offset, logits.ravel(), read.kappa, read.votes, prior, read.shift)


def _along(columns: Sequence[Array], weights: Sequence[Array], current: Array) -> PerRow:
    """Return what the entries of a block add to the logits."""
    slots = zip(columns, weights, strict=True)
    return functools.reduce(operator.add, [weight * current[entry] for entry, weight in slots])


def _class_rows(model: Model[Any], data: Any, values: Values, block: Block, classes: Any) -> Rows:
    """Record the rows of one class of a multinomial logit, given the other classes."""
    name, column = block.sites[0], block.column
    stand_in = _Factor(values[name])
    log_odds = trace(model, data, values | {name: stand_in})[model.observed][
        "fn"
    ].mixing_distribution.logits
    if stand_in.design is None:
        raise NotImplementedError(
            f"{name!r} does not enter the classifier as a product, such as features @ {name}"
        )
    rest = jax.nn.logsumexp(
        jnp.where(jnp.arange(log_odds.shape[-1]) == column, -jnp.inf, log_odds), axis=-1
    )
    logits = log_odds[:, column] - rest
    offset = logits - stand_in.design @ values[name][:, column]
    prior = _column_prior(model, data, values, block)
    return Rows(
        None,
        stand_in.design,
        offset,
        logits,
        classes[:, column] - 0.5,
        jnp.ones_like(logits),
        prior,
    )


def _type_rows(model: Model[Any], data: Any, values: Values, block: Block, classes: Any) -> Rows:
    """Record the rows of one type of a mixture: the logits under this type."""
    name, column = block.sites[0], block.column
    num_types = values[name].shape[1]

    def run(slots: Any) -> tuple[Array, tuple[Array, Array, list[Array], Array | None]]:
        stand_in = _Factor(values[name], slots)
        read = _logits(model, data, values | {name: stand_in}, classes)
        logits, votes, kappa = (jnp.reshape(part, (-1, num_types))[:, column] for part in read[:3])
        return logits, (votes, kappa, stand_in.entries, stand_in.design)

    logits, (votes, kappa, entries, design) = run(None)
    prior = _column_prior(model, data, values, block)
    if design is not None and not entries:
        return Rows(
            None, design, logits - design @ values[name][:, column], logits, kappa, votes, prior
        )
    # Those of a ranking have an axis of positions, too.
    rows = (logits.size, num_types)
    if not entries or any(
        entry.size != math.prod(rows) or entry.shape[-1] != num_types for entry in entries
    ):
        raise NotImplementedError(
            f"{name!r} enters the logits of a type neither by its index, as {name}[data.first], nor"
            f" as a product, such as data.features @ {name}"
        )
    slots = [values[name].ravel()[entry] for entry in entries]
    _, pull, _ = jax.vjp(run, slots, has_aux=True)
    (weights,) = pull(jnp.ones_like(logits))
    entry: Any = tuple(entry.reshape(rows)[:, column] // num_types for entry in entries)
    weight: Any = tuple(weight.reshape(rows)[:, column] for weight in weights)
    offset = logits - _along(entry, weight, values[name][:, column])
    return Rows(entry, weight, offset, logits, kappa, votes, prior)


def indices(model: Model[Any], data: Any, values: Values, site: str) -> list[Array]:
    """Return the entries of a site that rows touch, an array for each index."""
    stand_in = StandIn(jnp.asarray(values[site]))
    indexed(model, data, values | {site: stand_in})
    return stand_in.entries


def _by_colour(model: Model[Any], data: Any, values: Values, block: Block, classes: Any) -> Rows:
    """Read the rows of a block from derivatives of the logits, one slot for each colour."""
    current = jnp.concatenate([values[name].ravel() for name in block.sites])
    read = _logits(model, data, values, classes)
    logits, rest = read.logits.ravel(), (read.kappa, read.votes)
    prior = block_prior(model, data, values, block.sites)

    def logits_of(entries: Array) -> Array:
        moved = values | split(entries, values, block.sites)
        return _logits(model, data, moved, classes).logits.ravel()

    colours = np.array(block.colours)
    number = colours.max() + 1
    along = jax.vmap(jax.linearize(logits_of, current)[1])
    own = jnp.asarray(colours == np.arange(number)[:, None], current.dtype)
    weight = along(own)
    if number == len(colours):
        offset = logits - current @ weight
        return Rows(None, weight.T, offset, logits, *rest, prior, read.shift)
    several = np.flatnonzero(np.bincount(colours) > 1)
    entry = jnp.broadcast_to(jnp.argmax(own, axis=1)[:, None], weight.shape)
    numbered = along(own[several] * jnp.arange(1.0, len(colours) + 1))
    touched = weight[several] != 0
    place = jnp.where(touched, numbered / jnp.where(touched, weight[several], 1.0), 1.0)
    entry = entry.at[several].set(jnp.round(place).astype(entry.dtype) - 1).astype(jnp.int32)
    offset = logits - (weight * current[entry]).sum(0)
    return Rows(entry, weight, offset, logits, *rest, prior, read.shift)


def split(entries: Any, values: Values, block: Sites) -> Values:
    """Split a block's vector, or draws of it, into its sites, with the shapes of `values`."""
    parts, begin = {}, 0
    for name in block:
        shape = np.shape(values[name])
        end = begin + math.prod(shape)
        parts[name] = entries[..., begin:end].reshape((*entries.shape[:-1], *shape))
        begin = end
    return parts


def block_prior(model: Model[Any], data: Any, values: Values, block: Sites) -> Gaussian:
    """Return the priors of a block's sites, concatenated."""
    traced = trace(model, data, values)
    return joined([prior(traced[name]["fn"], np.shape(values[name])) for name in block])


def _column_prior(model: Model[Any], data: Any, values: Values, block: Block) -> Gaussian:
    """Return the prior of one column of a site."""
    prior = block_prior(model, data, values, block.sites[:1])
    if prior.across is not None:
        raise NotImplementedError(
            f"{block.sites[0]!r} has a multivariate normal prior, and is updated one class at a"
            " time"
        )
    shape = np.shape(values[block.sites[0]])
    return jax.tree.map(lambda part: part.reshape(shape)[:, block.column], prior)


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
    return _logits(model, data, values).logits.ravel()


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

"""Which entries of a block each logit touches, and with what weight: recorded by running the model.

The block's sites are replaced by stand-ins whose ``__getitem__`` notes the index it is asked for and hands out an
independent slot array. One vector–Jacobian product of the logits with respect to the slots then gives every weight.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import constraints

from raters.errors import NotConjugateError
from raters.inference import _classes
from raters.inference._conditionals import Gaussian, observation, prior
from raters.inference._trace import latent_sites, log_prior, scattered, trace
from raters.model import Model, Values

_log = logging.getLogger("raters")
_TOLERANCE = 1e-3
# The precision of a block takes a pass for each pair of entries that a row touches.
_MOST_ENTRIES = 40


class Block(NamedTuple):
    """What is updated at once.

    Its `kind` is ``"rows"``: sites in which the logits are affine; ``"class"``: the coefficients for one class (`column`) of a
    classifier, given those of the other classes; ``"type"``: what belongs to one type (`column`) of a mixture; or ``"counts"``:
    a site with a Dirichlet or Beta conditional.
    """

    sites: tuple[str, ...]
    kind: Literal["rows", "class", "type", "counts"] = "rows"
    column: int = 0

    @property
    def is_column(self) -> bool:
        """Whether it is one column of a site."""
        return self.kind in ("class", "type")

    def current(self, values: Values) -> np.ndarray:
        """The block's entries as a vector."""
        if self.is_column:
            return np.asarray(values[self.sites[0]])[:, self.column]
        return np.concatenate([np.ravel(values[name]) for name in self.sites])

    def put(self, values: Values, entries: Any) -> Values:
        """`values` with the block's vector written into its sites."""
        if self.is_column:
            site = np.array(values[self.sites[0]])
            site[:, self.column] = entries
            return values | {self.sites[0]: site}
        return values | split(entries, values, self.sites)


class Rows(NamedTuple):
    """What one Gaussian block update needs to know of the model, the other sites held at their values.

    The `logits` are ``offset + Σ_s weight[s] · block[entry[s]]``, with the block's sites laid end to end; for a dense design
    `entry` is None and ``weight`` has shape (observation, entry). Outcomes enter as `votes` and
    ``kappa = wins − votes/2``.
    """

    entry: jax.Array | None
    weight: jax.Array
    offset: jax.Array
    logits: jax.Array
    kappa: jax.Array
    votes: jax.Array
    prior: Gaussian


class _StandIn:
    """Takes the place of a site's value: notes each index, hands out one slot array for each."""

    __array_ufunc__ = None  # A NumPy matrix times a stand-in is the stand-in's business.

    def __init__(self, value: jax.Array, slots: list[jax.Array] | None = None):
        self.value, self.slots = value, slots
        self.entries: list[jax.Array] = []
        self.shape, self.ndim, self.dtype = value.shape, value.ndim, value.dtype

    def __getitem__(self, index):
        entry = jnp.arange(self.value.size, dtype=jnp.int32).reshape(self.shape)[index]
        self.entries.append(entry)
        return jnp.take(self.value.ravel(), entry) if self.slots is None else self.slots[len(self.entries) - 1]


class _Factor(_StandIn):
    """As its base, for a site that is multiplied by a design: notes that."""

    design: jax.Array | None = None

    def __rmatmul__(self, design):
        self.design = jnp.asarray(design)
        return self.design @ self.value


def _logits(model: Model, data: Any, values: Values, classes: Any = None):
    site = trace(model, data, values)[model.observed]
    return observation(site["fn"], site["value"], classes)


def record(model: Model, data: Any, values: Values, block: Block, classes: Any = None) -> Rows:
    """The rows of `block`, recorded; a block that the model uses otherwise than by indexing gets a dense design."""
    values = {name: jnp.asarray(value, float) for name, value in values.items()}
    if block.kind == "class":
        return _of_class(model, data, values, block, classes)
    if block.kind == "type":
        return _of_type(model, data, values, block, classes)
    by_index = tuple(name for name in block.sites if values[name].ndim > 0)
    try:
        return _recorded(model, data, values, block.sites, by_index, classes)
    except (TypeError, AttributeError):
        _log.info("block %s of %s is not used by indexing alone; its design is dense", block.sites, type(model).__name__)
        return _dense(model, data, values, block.sites, classes)


def _recorded(model, data, values, block, by_index, classes) -> Rows:
    scalars = {name: values[name] for name in block if values[name].ndim == 0}

    def run(slots, scalars):
        stand_ins = {name: _StandIn(values[name], None if slots is None else slots[name]) for name in by_index}
        logits, votes, kappa = _logits(model, data, values | stand_ins | scalars, classes)
        return logits, (votes, kappa, {name: stand_in.entries for name, stand_in in stand_ins.items()})

    logits, (votes, kappa, entries) = run(None, scalars)
    if any(entry.size != logits.size for asked in entries.values() for entry in asked):
        raise TypeError("an index of another size than the logits")
    slots = {name: [values[name].ravel()[entry] for entry in asked] for name, asked in entries.items()}
    _, pull, _ = jax.vjp(lambda slots: run(slots, scalars), slots, has_aux=True)
    (slot_weights,) = pull(jnp.ones_like(logits))
    found, weights, begin = [], [], 0
    for name in block:
        if name in scalars:
            found.append(jnp.full(logits.shape, begin, jnp.int32))
            weights.append(_derivative(lambda scalars: run(None, scalars)[0], scalars, name))
        else:
            found += [(begin + entry.ravel()).astype(jnp.int32) for entry in entries[name]]
            weights += [weight.ravel() for weight in slot_weights[name]]
        begin += values[name].size
    if len(found) > _MOST_ENTRIES:
        raise NotImplementedError(
            f"each row touches {len(found)} entries of block {block} (at most {_MOST_ENTRIES}); use fewer features, such as "
            "their first principal components"
        )
    entry, weight = jnp.stack(found), jnp.stack(weights)
    current = jnp.concatenate([values[name].ravel() for name in block])
    offset = logits - (weight * current[entry]).sum(0)
    return Rows(entry, weight, offset, logits, kappa, votes, _block_prior(model, data, values, block))


def _of_class(model, data, values, block: Block, classes) -> Rows:
    """Rows of one class of a multinomial logit, the others held: log-odds of the class against the rest (Holmes and Held
    2006). The coefficients must enter as ``design @ site``, with a column for each class."""
    name, column = block.sites[0], block.column
    stand_in = _Factor(values[name])
    log_odds = trace(model, data, values | {name: stand_in})[model.observed]["fn"].mixing_distribution.logits
    if stand_in.design is None:
        raise NotImplementedError(f"{name!r} does not enter the classifier as a product, such as features @ {name}")
    rest = jax.nn.logsumexp(jnp.where(jnp.arange(log_odds.shape[-1]) == column, -jnp.inf, log_odds), axis=-1)
    logits = log_odds[:, column] - rest
    offset = logits - stand_in.design @ values[name][:, column]
    whole = _block_prior(model, data, values, (name,))
    prior = Gaussian(*(part.reshape(values[name].shape)[:, column] for part in whole))
    return Rows(None, stand_in.design, offset, logits, classes[:, column] - 0.5, jnp.ones_like(logits), prior)


def _of_type(model, data, values, block: Block, classes) -> Rows:
    """Rows of one type of a mixture: of the logits under each type, those under this one, which have a column of the site to
    themselves. The site enters by its index or as ``design @ site``."""
    name, column = block.sites[0], block.column
    number = values[name].shape[1]

    def run(slots):
        stand_in = _Factor(values[name], slots)
        logits, votes, kappa = _logits(model, data, values | {name: stand_in}, classes)
        logits, votes, kappa = (jnp.reshape(part, (-1, number))[:, column] for part in (logits, votes, kappa))
        return logits, (votes, kappa, stand_in.entries, stand_in.design)

    logits, (votes, kappa, entries, design) = run(None)
    whole = _block_prior(model, data, values, (name,))
    prior = Gaussian(*(part.reshape(values[name].shape)[:, column] for part in whole))
    if design is not None and not entries:
        return Rows(None, design, logits - design @ values[name][:, column], logits, kappa, votes, prior)
    if not entries or any(entry.shape != (logits.size, number) for entry in entries):
        raise NotImplementedError(
            f"{name!r} enters the logits of a type neither by its index, as {name}[data.first], nor as a "
            f"product, such as data.features @ {name}"
        )
    slots = [values[name].ravel()[entry] for entry in entries]
    _, pull, _ = jax.vjp(run, slots, has_aux=True)
    (weights,) = pull(jnp.ones_like(logits))
    entry = jnp.stack([entry[:, column] // number for entry in entries])
    weight = jnp.stack([weight[:, column] for weight in weights])
    offset = logits - (weight * values[name][:, column][entry]).sum(0)
    return Rows(entry, weight, offset, logits, kappa, votes, prior)


def _derivative(function, scalars: Values, name: str) -> jax.Array:
    """Derivative of an array-valued function with respect to one of its scalars."""
    tangents = {other: jnp.ones_like(value) if other == name else jnp.zeros_like(value) for other, value in scalars.items()}
    return jax.jvp(function, (scalars,), (tangents,))[1]


def _dense(model, data, values, block, classes) -> Rows:
    def logits_of(entries):
        return _logits(model, data, values | split(entries, values, block), classes)[0]

    current = jnp.concatenate([values[name].ravel() for name in block])
    logits, votes, kappa = _logits(model, data, values, classes)
    design = jax.jacfwd(logits_of)(current)
    return Rows(None, design, logits - design @ current, logits, kappa, votes, _block_prior(model, data, values, block))


def split(entries, values: Values, block: tuple[str, ...]) -> Values:
    """A block's vector back into its sites."""
    parts, begin = {}, 0
    for name in block:
        shape = np.shape(values[name])
        size = int(np.prod(shape))
        parts[name] = entries[begin : begin + size].reshape(shape)
        begin += size
    return parts


def _block_prior(model, data, values, block) -> Gaussian:
    traced = trace(model, data, values)
    parts = [prior(traced[name]["fn"], np.shape(values[name])) for name in block]
    return Gaussian(*(jnp.concatenate(part) for part in zip(*parts, strict=True)))


@partial(jax.jit, static_argnums=(0, 3))
def rows_of(model: Model, data: Any, values: Values, block: Block, classes: Any = None) -> Rows:
    """Compiled `record`."""
    return record(model, data, values, block, classes)


@partial(jax.jit, static_argnums=0)
def logits_of(model: Model, data: Any, values: Values) -> jax.Array:
    """Compiled logits of the observed site."""
    return _logits(model, data, values)[0]


@partial(jax.jit, static_argnums=(0, 3))
def _prior_slope(model: Model, data: Any, values: Values, sites: tuple[str, ...]) -> Values:
    """How the prior of all other sites changes with these."""
    own = {name: jnp.asarray(values[name], float) for name in sites}
    return jax.grad(lambda own: log_prior(model, data, values | own, without=sites))(own)


def check_conjugate(model: Model, data: Any, values: Values, block: Block, seed: int = 0) -> None:
    """Raise unless `block` is conjugate: what is read of its conditional at one random point must hold at another.

    For Gaussian blocks these are the logits, predicted from the rows; for counted ones, the parameters. No other site's prior
    may depend on the block.

    Raises
    ------
    NotConjugateError
        Naming the block and the largest difference found.
    """
    rng = np.random.default_rng(seed)
    sample = data.take(slice(0, 1000))
    name = f"block {block.sites} of {type(model).__name__}"

    supports = {name: site.support for name, site in latent_sites(model, sample).items()}

    def elsewhere():
        # Towards 0 from the start stays inside the supports that conjugate blocks can have; a jitter tells entries apart.
        point = scattered(values, supports, rng, least=0.3)
        jitter = {name for name in block.sites if supports[name] is not constraints.simplex}
        return point | {name: 0.85 * point[name] + 0.01 * rng.uniform(size=np.shape(point[name])) for name in jitter}

    one = elsewhere()
    slope = _prior_slope(model, sample.take(slice(0, 1)), one, block.sites)
    if any(np.any(np.asarray(part) != 0) for part in slope.values()):
        raise NotConjugateError(
            f"{name} is declared conjugate, but the prior of another site depends on it. Take it out of `blocks`"
        )
    classes = _classes.expected(model, sample, one)[0] if _classes.has_classes(model, sample, one) else None
    if block.kind == "counts":
        first, second = (
            np.concatenate([np.ravel(part) for part in _classes.parameters(model, sample, one, classes, block.sites[0], at)])
            for at in (0.0, 0.5)
        )
        what = "its complete-data log-likelihood is not that of counts: two readings of them"
    else:
        try:
            rows = rows_of(model, sample, one, block, classes)
        except NotImplementedError as reason:
            raise NotConjugateError(f"{name} is not conjugate: {reason}") from reason
        other = block.put(one, block.current(elsewhere()))
        flat, weight = block.current(other), np.asarray(rows.weight)
        parts = weight @ flat if rows.entry is None else (weight * flat[np.asarray(rows.entry)]).sum(0)
        first, second = np.asarray(rows.offset) + parts, np.asarray(rows_of(model, sample, other, block, classes).logits)
        what = "the logits are not affine in it: predicted and actual logits"
    error = float(np.max(np.abs(first - second) / (1 + np.abs(second)), initial=0.0))
    if not error < _TOLERANCE:
        raise NotConjugateError(
            f"{name} is declared conjugate, but {what} differ by {error:.3g} (relative; at most {_TOLERANCE:g}). "
            "Take it out of `blocks`"
        )

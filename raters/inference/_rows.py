"""Which entries of a block each logit touches, and with what weight: recorded by running the model.

The block's sites are replaced by stand-ins whose ``__getitem__`` notes the index it is asked for and hands out an
independent slot array. One vector–Jacobian product of the logits with respect to the slots then gives every weight.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from raters.errors import NotConjugateError
from raters.inference._conditionals import Gaussian, observation, prior
from raters.inference._trace import trace
from raters.model import Model, Values

_log = logging.getLogger("raters")
_TOLERANCE = 1e-3


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

    def __init__(self, value: jax.Array, slots: list[jax.Array] | None):
        self.value, self.slots = value, slots
        self.entries: list[jax.Array] = []
        self.shape, self.ndim, self.dtype = value.shape, value.ndim, value.dtype

    def __getitem__(self, index):
        entry = jnp.arange(self.value.size, dtype=jnp.int32).reshape(self.shape)[index]
        self.entries.append(entry)
        return jnp.take(self.value.ravel(), entry) if self.slots is None else self.slots[len(self.entries) - 1]


def _logits(model: Model, data: Any, values: Values):
    site = trace(model, data, values)[model.observed]
    return observation(site["fn"], site["value"])


def record(model: Model, data: Any, values: Values, block: tuple[str, ...]) -> Rows:
    """The rows of `block`, recorded; a block that the model uses otherwise than by indexing gets a dense design."""
    values = {name: jnp.asarray(value, float) for name, value in values.items()}
    by_index = tuple(name for name in block if values[name].ndim > 0)
    try:
        return _recorded(model, data, values, block, by_index)
    except (TypeError, AttributeError):
        _log.info("block %s of %s is not used by indexing alone; its design is dense", block, type(model).__name__)
        return _dense(model, data, values, block)


def _recorded(model, data, values, block, by_index) -> Rows:
    scalars = {name: values[name] for name in block if values[name].ndim == 0}

    def run(slots, scalars):
        stand_ins = {name: _StandIn(values[name], None if slots is None else slots[name]) for name in by_index}
        logits, votes, kappa = _logits(model, data, values | stand_ins | scalars)
        return logits, (votes, kappa, {name: stand_in.entries for name, stand_in in stand_ins.items()})

    logits, (votes, kappa, entries) = run(None, scalars)
    if any(entry.shape != logits.shape for asked in entries.values() for entry in asked):
        raise TypeError("an index of another shape than the logits")
    slots = {name: [values[name].ravel()[entry] for entry in asked] for name, asked in entries.items()}
    _, pull, _ = jax.vjp(lambda slots: run(slots, scalars), slots, has_aux=True)
    (slot_weights,) = pull(jnp.ones_like(logits))
    found, weights, begin = [], [], 0
    for name in block:
        if name in scalars:
            found.append(jnp.full(logits.shape, begin, jnp.int32))
            weights.append(_derivative(lambda scalars: run(None, scalars)[0], scalars, name))
        else:
            found += [(begin + entry).astype(jnp.int32) for entry in entries[name]]
            weights += slot_weights[name]
        begin += values[name].size
    entry, weight = jnp.stack(found), jnp.stack(weights)
    current = jnp.concatenate([values[name].ravel() for name in block])
    offset = logits - (weight * current[entry]).sum(0)
    return Rows(entry, weight, offset, logits, kappa, votes, _block_prior(model, data, values, block))


def _derivative(function, scalars: Values, name: str) -> jax.Array:
    """Derivative of an array-valued function with respect to one of its scalars."""
    tangents = {other: jnp.ones_like(value) if other == name else jnp.zeros_like(value) for other, value in scalars.items()}
    return jax.jvp(function, (scalars,), (tangents,))[1]


def _dense(model, data, values, block) -> Rows:
    def logits_of(entries):
        return _logits(model, data, values | split(entries, values, block))[0]

    current = jnp.concatenate([values[name].ravel() for name in block])
    logits, votes, kappa = _logits(model, data, values)
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
def rows_of(model: Model, data: Any, values: Values, block: tuple[str, ...]) -> Rows:
    """Compiled `record`."""
    return record(model, data, values, block)


@partial(jax.jit, static_argnums=0)
def logits_of(model: Model, data: Any, values: Values) -> jax.Array:
    """Compiled logits of the observed site."""
    return _logits(model, data, values)[0]


def check_conjugate(model: Model, data: Any, values: Values, block: tuple[str, ...], seed: int = 0) -> None:
    """Raise unless the logits are affine in `block`: predicted from rows recorded at one random point, they must agree
    with the logits at another.

    Raises
    ------
    NotConjugateError
        Naming the block and the largest difference found.
    """
    rng = np.random.default_rng(seed)
    sample = data.take(slice(0, 1000))

    def scattered():
        # Towards 0 from the start stays inside the supports that conjugate blocks can have; a jitter tells entries apart.
        return {
            name: np.asarray(value) * rng.uniform(0.3, 0.9, np.shape(value))
            + 0.01 * (name in block) * rng.uniform(size=np.shape(value))
            for name, value in values.items()
        }

    one = scattered()
    other = one | {name: scattered()[name] for name in block}
    try:
        rows = rows_of(model, sample, one, block)
    except NotImplementedError as reason:
        raise NotConjugateError(f"block {block} of {type(model).__name__} is not conjugate: {reason}") from reason
    flat = np.concatenate([np.ravel(other[name]) for name in block])
    weight = np.asarray(rows.weight)
    parts = weight @ flat if rows.entry is None else (weight * flat[np.asarray(rows.entry)]).sum(0)
    predicted, actual = np.asarray(rows.offset) + parts, np.asarray(logits_of(model, sample, other))
    error = float(np.max(np.abs(predicted - actual) / (1 + np.abs(actual)), initial=0.0))
    if not error < _TOLERANCE:
        raise NotConjugateError(
            f"block {block} of {type(model).__name__} is declared conjugate, but the logits are not affine in it: "
            f"predicted and actual logits differ by {error:.3g} (relative; at most {_TOLERANCE:g}). Take it out of `blocks`"
        )

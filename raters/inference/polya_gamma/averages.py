r"""Factors of a variational distribution, and moments of logits that are bilinear in the blocks.

With the entries :math:`x_s` that a row touches (its slots), its logit is
:math:`g_0 + \sum_s g_s x_s + \sum_{s < t} d_{st} x_s x_t`, where s and t are of different blocks.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jax.scipy.special import digamma, gammaln
from jaxtyping import Array, Float, Int

from raters.errors import NotConjugateError
from raters.inference.arrays import (
    Entries,
    EntryArray,
    EntryDraws,
    Matrix,
    PerRow,
    Rng,
    Scalar,
    Sites,
)
from raters.inference.polya_gamma import augmentation, conditionals
from raters.inference.polya_gamma.rows import NotIndexed, StandIn, indexed
from raters.model import Model, Values
from raters.program import trace

# Nodes on which moments of truncated normals are integrated, and how far from the highest point of
# the density, in standard deviations and, in a tail, in its lengths.
_NODES, _FAR, _TAIL = 64, 9.0, 40.0
_WIDEST = 1e6


class Normal(NamedTuple):
    """Independent entries, normal or truncated to bounds, or entries that are normal together."""

    mean: Entries
    spread: Entries | Matrix
    entropy: float
    centre: Entries
    deviation: Entries

    @property
    def variance(self) -> Entries:
        """Variance of each entry."""
        return self.spread if self.spread.ndim == 1 else np.diag(self.spread)

    def stretched(self, factor: Entries) -> Normal:
        """Return the distribution of the entries times some positive factors."""
        square = factor**2 if self.spread.ndim == 1 else np.outer(factor, factor)
        entropy = self.entropy + float(np.log(factor).sum())
        mean, centre, deviation = (
            part * factor for part in (self.mean, self.centre, self.deviation)
        )
        return Normal(mean, self.spread * square, entropy, centre, deviation)


def point(mean: Entries, joint: bool) -> Normal:
    """Return a start: entries without spread."""
    size = len(mean)
    spread = np.zeros((size, size) if joint else size)
    return Normal(mean, spread, -np.inf, mean, np.zeros(size))


def together(precision: Matrix, shift: Entries) -> Normal:
    """Return the normal with this precision, and with the mean that solves for the shift."""
    factor = scipy.linalg.cholesky(precision, lower=True, check_finite=False)
    mean = scipy.linalg.cho_solve((factor, True), shift, check_finite=False)
    lower, _ = scipy.linalg.lapack.dpotri(factor, lower=1)
    covariance = np.tril(lower) + np.tril(lower, -1).T
    entropy = len(mean) * (1 + np.log(2 * np.pi)) / 2 - np.log(np.diag(factor)).sum()
    return Normal(mean, covariance, float(entropy), mean, np.sqrt(np.diag(covariance)))


def apart(precision: Entries, shift: Entries, prior: conditionals.Gaussian) -> Normal:
    """Return independent entries with these precisions and shifts, truncated as the prior is."""
    flat = (1 / (_WIDEST * (prior.high - prior.low))) ** 2
    precision = np.maximum(np.maximum(precision, flat), 1e-300)
    centre, deviation = shift / precision, 1 / np.sqrt(precision)
    mean, variance, entropy = truncated_moments(centre, deviation, prior.low, prior.high)
    return Normal(mean, variance, float(entropy.sum()), centre, deviation)


def truncated_moments(
    centre: Entries, deviation: Entries, low: Entries, high: Entries
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean, variance and entropy of truncated normals."""
    mean, variance = np.array(centre, np.float64), np.array(deviation, np.float64) ** 2
    entropy = (1 + np.log(2 * np.pi)) / 2 + np.log(deviation)
    bounded = np.flatnonzero(np.isfinite(low) | np.isfinite(high))
    if len(bounded) == 0:
        return mean, variance, entropy
    centre, deviation, low, high = (
        np.broadcast_to(part, mean.shape)[bounded, None] for part in (centre, deviation, low, high)
    )
    top = np.clip(centre, low, high)
    beyond = np.maximum(np.abs(centre - top), _TAIL / _FAR * deviation)
    reach = _TAIL * (deviation / beyond) * deviation
    begin, end = np.maximum(low, top - reach), np.minimum(high, top + reach)
    node, weight = np.polynomial.legendre.leggauss(_NODES)
    place = begin + (end - begin) * (node + 1) / 2
    log_density = -(((place - centre) / deviation) ** 2) / 2
    log_density -= log_density.max(1, keepdims=True)
    mass = np.exp(log_density) * weight
    total = mass.sum(1, keepdims=True)
    share = mass / total
    mean[bounded] = (share * place).sum(1)
    variance[bounded] = (share * (place - mean[bounded, None]) ** 2).sum(1)
    log_total = np.log(total * (end - begin) / 2)[:, 0]
    entropy[bounded] = log_total - (share * log_density).sum(1)
    return mean, variance, entropy


def drawn(normal: Normal, prior: conditionals.Gaussian, number: int, rng: Rng) -> EntryDraws:
    """Draw the entries of a block."""
    if normal.spread.ndim == 1:
        shape = (number, len(normal.mean))
        key = jax.random.wrap_key_data(augmentation.key_of(rng))
        parts = normal.centre, normal.deviation, prior.low, prior.high
        wide = (jnp.broadcast_to(part, shape) for part in parts)
        return np.asarray(conditionals.truncated_normal(key, *wide))
    factor = scipy.linalg.cholesky(normal.spread, lower=True)
    return np.asarray(normal.mean + rng.standard_normal((number, len(normal.mean))) @ factor.T)


# ---------------------------------------------------------------- probabilities of classes


def means(parameters: tuple[Float[np.ndarray, ...], ...]) -> Float[np.ndarray, "... class"]:
    """Return the means of probabilities."""
    return np.asarray(parameters[0] / parameters[0].sum(-1, keepdims=True))


def drawn_probs(
    parameters: tuple[Float[np.ndarray, ...], ...], number: int, rng: Rng
) -> Float[np.ndarray, "draw ... class"]:
    """Draw probabilities."""
    gamma = rng.standard_gamma(parameters[0], size=(number, *np.shape(parameters[0])))
    gamma = np.maximum(gamma, 1e-300)
    return np.asarray(gamma / gamma.sum(-1, keepdims=True))


def log_means(parameters: tuple[Array, ...]) -> Float[Array, "... class"]:
    """Return the mean logarithms of the probabilities of a Dirichlet distribution."""
    (concentration,) = parameters
    return digamma(concentration) - digamma(concentration.sum(-1, keepdims=True))


def less_prior(parameters: tuple[Array, ...], prior: tuple[Array, ...]) -> Scalar:
    """Return the mean log prior density less the mean log density: a negative divergence."""
    (posterior,), (given,) = parameters, prior
    means = log_means(parameters)
    gain = _log_constant(given) - _log_constant(posterior) + ((given - posterior) * means).sum(-1)
    return gain.sum()


def _log_constant(concentration: Float[Array, "... class"]) -> Float[Array, ...]:
    return gammaln(concentration.sum(-1)) - gammaln(concentration).sum(-1)


log_means_of = jax.jit(log_means)


# Slots of a row, whose pairs are all tried once.
MOST_SLOTS = 40

Slots = tuple[PerRow, ...]
# Covariance of the entries of two slots of one block, in each row.
Covariances = dict[tuple[int, int], PerRow]


class Forms(NamedTuple):
    """Logits as bilinear forms of the entries that each row touches."""

    constant: PerRow
    linear: Slots
    cross: dict[tuple[int, int], PerRow]
    entry: tuple[Int[Array, " row"], ...]


class Owners(NamedTuple):
    """Block of each slot."""

    of_slot: tuple[int, ...]

    def slots(self, block: int) -> tuple[int, ...]:
        """Return the slots of a block."""
        return tuple(slot for slot, owner in enumerate(self.of_slot) if owner == block)

    def pairs(self, block: int) -> list[tuple[int, int]]:
        """Return the pairs of slots of a block, the smaller first, and each with itself."""
        own = self.slots(block)
        return [(one, other) for one in own for other in own if one <= other]


def owners_of(model: Model[Any], data: Any, values: Values, blocks: tuple[Sites, ...]) -> Owners:
    """Return the block of each slot, without compiling anything; raises as `forms_of`."""
    values = {name: jnp.asarray(value, float) for name, value in values.items()}
    owners: list[int] = []
    if blocks:
        jax.eval_shape(partial(_Recorder(model, blocks).record, owners), data, values)
    return Owners(tuple(owners))


def forms_of(
    model: Model[Any], data: Any, values: Values, blocks: tuple[Sites, ...]
) -> tuple[Forms, Owners]:
    """Record the logits of a program as bilinear forms of its blocks."""
    values = {name: jnp.asarray(value, float) for name, value in values.items()}
    owners = owners_of(model, data, values, blocks)
    (constant, linear, every), entry = _recorded(model, data, values, blocks)
    cross = {pair: part for pair, part in every.items() if np.any(np.asarray(part))}
    forms = Forms(constant, linear, cross, entry)
    _check(model, data, values, blocks, forms, owners)
    return forms, owners


@partial(jax.jit, static_argnums=(0, 3))
def _recorded(model: Model[Any], data: Any, values: Values, blocks: tuple[Sites, ...]) -> Any:
    """Return coefficients and entries of all slots."""
    return _Recorder(model, blocks).record([], data, values)


class _Recorder:
    """Runs of a program with stand-ins for the sites of its blocks."""

    def __init__(self, model: Model[Any], blocks: tuple[Sites, ...]) -> None:
        self.model, self.blocks = model, blocks

    def _run(self, data: Any, values: Values, point: Any) -> tuple[Array, Any]:
        """Return the logits at values of the slots, and the entries that they were asked for."""
        names = [name for block in self.blocks for name in block]
        scalars = {name: point[name] for name in names if values[name].ndim == 0}
        stand_ins = {
            name: StandIn(values[name], point[name]) for name in names if name not in scalars
        }
        logits = logits_of(indexed(self.model, data, values | stand_ins | scalars)["fn"])
        return logits, {name: one.entries for name, one in stand_ins.items()}

    def record(self, owners: list[int], data: Any, values: Values) -> tuple[Any, Any]:
        """Return coefficients and entries of all slots, and add the block of each to `owners`."""
        none = {name: value for name, value in values.items() if value.ndim == 0}
        try:
            logits, asked = self._run(data, values, _Unset(none))
        except NotIndexed as error:
            raise NotImplementedError(
                "a block enters the logits otherwise than by its index"
            ) from error
        alternatives = logits.size // len(logits)
        zero: dict[str, Any] = {}
        places, entry = [], []
        for number, block in enumerate(self.blocks):
            begin = 0
            for name in block:
                size = values[name].size
                if values[name].ndim == 0:
                    zero[name] = jnp.zeros(())
                    places.append((name, 0))
                    entry.append(jnp.full(logits.size, begin, jnp.int32))
                    owners.append(number)
                else:
                    zero[name] = [jnp.zeros(one.shape) for one in asked[name]]
                    for which, one in enumerate(asked[name]):
                        if one.size not in (logits.size, len(logits)):
                            raise NotImplementedError(
                                f"{name!r} is indexed by an array of another size than the logits"
                            )
                        full = one.ravel()
                        if one.size < logits.size:
                            full = jnp.repeat(full, alternatives)
                        places.append((name, which))
                        entry.append((begin + full).astype(jnp.int32))
                        owners.append(number)
                begin += size
        if len(places) > MOST_SLOTS:
            raise NotImplementedError(
                f"each row touches {len(places)} entries of the blocks (at most {MOST_SLOTS})"
            )

        def along(place: tuple[str, int]) -> Any:
            tangent = jax.tree.map(jnp.zeros_like, zero)
            if values[place[0]].ndim == 0:
                return tangent | {place[0]: jnp.ones(())}
            tangent[place[0]][place[1]] += 1.0
            return tangent

        def logits_at(point: Any) -> Array:
            return self._run(data, values, point)[0].ravel()

        def slope(place: tuple[str, int], point: Any) -> Array:
            # A logit depends on its own entry of each slot alone.
            return jax.jvp(logits_at, (point,), (along(place),))[1]

        constant = logits_at(zero)
        linear = tuple(slope(place, zero) for place in places)
        cross = {
            (one, other): jax.jvp(partial(slope, places[one]), (zero,), (along(places[other]),))[1]
            for other in range(len(places))
            for one in range(other)
            if owners[one] != owners[other]
        }
        return (constant, linear, cross), tuple(entry)


class _Unset(dict[str, Any]):
    """Values of scalar sites, and None for the slots of others, which are not known yet."""

    def __missing__(self, name: str) -> None:
        return None


def logits_of(fn: Any) -> Float[Array, "row ..."]:
    """Return the logits of an observed distribution, of a mixture those of its components."""
    return getattr(fn, "component_distribution", fn).logits


def _check(
    model: Model[Any],
    data: Any,
    values: Values,
    blocks: tuple[Sites, ...],
    forms: Forms,
    owners: Owners,
) -> None:
    """Raise unless the forms give the logits at a random point."""
    rng = np.random.default_rng(0)
    names = [name for block in blocks for name in block]
    shapes = {name: np.shape(values[name]) for name in names}
    point = {name: jnp.asarray(0.2 + 0.6 * rng.uniform(size=shapes[name])) for name in names}
    entries = [jnp.concatenate([point[name].ravel() for name in block]) for block in blocks]
    found = mean(forms, gathered(forms, owners, tuple(entries)))
    actual = logits_of(trace(model, data, values | point)[model.observed]["fn"]).ravel()
    error = jnp.max(jnp.abs(found - actual) / (1 + jnp.abs(actual)), initial=0.0)
    if not error < 1e-4:
        raise NotConjugateError(
            f"the logits of {model.title} have products of entries of three blocks, of"
            f" which PGVI has no averages (they are off by {float(error):.2g}); use PGGibbs"
        )


def weights(forms: Forms, slots: Slots) -> Slots:
    """Return the slope of each logit in each of its slots."""
    slopes = list(forms.linear)
    for (one, other), part in forms.cross.items():
        slopes[one] = slopes[one] + part * slots[other]
        slopes[other] = slopes[other] + part * slots[one]
    return tuple(slopes)


def mean(forms: Forms, slots: Slots) -> PerRow:
    """Return the logits at values of the slots, which are their means at those of the entries."""
    total = forms.constant
    for slot, part in zip(slots, forms.linear, strict=True):
        total = total + slot * part
    for (one, other), part in forms.cross.items():
        total = total + part * slots[one] * slots[other]
    return total


def square(forms: Forms, slots: Slots, covariances: Covariances) -> PerRow:
    """Return the mean squares of the logits."""
    slopes = weights(forms, slots)
    total = mean(forms, slots) ** 2
    for (one, other), covariance in covariances.items():
        times = 1.0 if one == other else 2.0
        total = total + times * slopes[one] * slopes[other] * covariance
    for (one, other), part in forms.cross.items():
        for (third, fourth), also in forms.cross.items():
            first, second = _sorted(one, third), _sorted(other, fourth)
            if first in covariances and second in covariances:
                total = total + part * also * covariances[first] * covariances[second]
    return total


def _sorted(one: int, other: int) -> tuple[int, int]:
    return (one, other) if one <= other else (other, one)


def gathered(forms: Forms, owners: Owners, entries: tuple[EntryArray, ...]) -> Slots:
    """Return the value of each slot in each row, from the entries of each block."""
    return tuple(
        jnp.take(entries[block], entry)
        for block, entry in zip(owners.of_slot, forms.entry, strict=True)
    )


def covariances_of(
    forms: Forms, owners: Owners, spread: tuple[EntryArray | Float[Array, "entry entry"], ...]
) -> Covariances:
    """Return the covariances of all pairs of slots of one block."""
    found = {}
    for block, own in enumerate(spread):
        for one, other in owners.pairs(block):
            first, second = forms.entry[one], forms.entry[other]
            found[one, other] = own[first] if own.ndim == 1 else own[first, second]
    return found


def outcomes(
    model: Model[Any], data: Any, values: Values, classes: Any = None
) -> tuple[PerRow, PerRow]:
    """Return the votes and κ of the rows, given the classes of a mixture."""
    site = trace(model, data, values)[model.observed]
    read: conditionals.Observation = conditionals.observation(site["fn"], site["value"], classes)
    return read.votes.ravel(), read.kappa.ravel()

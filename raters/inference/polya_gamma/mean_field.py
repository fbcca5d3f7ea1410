"""Coordinate ascent of a mean-field approximation, from the conditionals of Gibbs sampling."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from raters.inference.arrays import Entries, EntryArray, FlatPoint, Matrix, PerRow, Scalar, Sites
from raters.inference.polya_gamma import averages
from raters.inference.polya_gamma.averages import Covariances, Forms, Slots
from raters.inference.polya_gamma.conditionals import Gaussian
from raters.inference.polya_gamma.laplace import along_orbits, signs_of
from raters.inference.polya_gamma.plans import Plan
from raters.inference.polya_gamma.rows import Block, block_prior, split
from raters.inference.polya_gamma.unconstrained import coordinates, is_unbounded, maximised, placed
from raters.model import Values
from raters.program import log_prior

MatrixArray = Float[Array, "entry entry"]
# Nodes of means over normal logits.
_NODES = 9
# Entries under a flat prior are at most so many times wider than their bounds are apart.
_WIDEST = 1e6


class State(NamedTuple):
    """A mean-field approximation: covariances are 0 between blocks."""

    mean: Entries
    covariance: Matrix
    hyper: Values
    rest: float


@dataclass(frozen=True)
class Setting:
    """Static facts of a sweep: the sites of all blocks, and the block of each slot."""

    plan: Plan
    sites: Sites
    owners: tuple[int, ...]


class MeanField:
    """Sweeps over a data set."""

    def __init__(self, plan: Plan, data: Any, values: Values) -> None:
        self.data, self.row = data, data.take(slice(0, 1))
        self.like = {name: np.asarray(value, np.float64) for name, value in values.items()}
        sites = tuple(name for block in plan.blocks for name in block.sites)
        self.forms, of_slot = averages.forms_of(plan.model, data, self.like, sites)
        groups = _groups(plan, self.forms, of_slot, sites)
        owners = {site: number for number, group in enumerate(groups) for site in group}
        self.setting = Setting(plan, sites, tuple(owners[slot] for slot in of_slot))
        of_entry = np.repeat(range(len(sites)), [self.like[name].size for name in sites])
        self.blocks: list[Int[np.ndarray, " entry"]] = [
            np.flatnonzero(np.isin(of_entry, group)) for group in groups
        ]
        self.signs = np.array([signs_of(scale, sites, self.like) for scale in plan.scales])
        self.signs = self.signs.reshape(len(plan.scales), len(of_entry))

    def start(self) -> State:
        """Return the start, without spreads."""
        entries = Block(self.setting.sites).current(self.like)
        hyper = {name: self.like[name] for name in self.setting.plan.hyper}
        return State(entries, np.zeros((len(entries), len(entries))), hyper, -np.inf)

    def values(self, state: State) -> Values:
        """Return the mean of each site."""
        return self.like | state.hyper | split(state.mean, self.like, self.setting.sites)

    def prior(self, values: Values) -> Gaussian:
        """Return the prior of all entries, without the bounds that are crossed along orbits."""
        plan, sites = self.setting.plan, self.setting.sites
        prior = jax.tree.map(np.asarray, _block_prior(plan.model, self.row, values, sites))
        return along_orbits(prior, plan.scales, sites, values)

    def sweep(self, state: State) -> tuple[float, State]:
        """Return the bound at a state, and the state after a sweep from it."""
        prior, bound = self.prior(self.values(state)), state.rest
        mean, covariance, entropy = state.mean.copy(), state.covariance.copy(), 0.0
        location = np.where(prior.precision > 0, prior.precision * prior.mean, 0.0)
        if prior.across is not None:
            location += prior.across @ prior.mean
        for number, own in enumerate(self.blocks):
            likelihood, slope, square = _statistics(
                self.setting.owners, self.forms, mean, covariance
            )
            bound += float(likelihood) if number == 0 else 0.0
            both, within = np.asarray(square), np.ix_(own, own)
            precision = -(both + both.T)[within]
            shift = np.asarray(slope)[own] + precision @ mean[own] + location[own]
            precision += prior.matrix()[within]
            low, high = prior.low[own], prior.high[own]
            if np.isfinite(low).any() or np.isfinite(high).any():
                # An entry with bounds shares no logits with another one of its block.
                flat = (1 / (_WIDEST * (high - low))) ** 2
                alone = np.maximum(np.maximum(np.diag(precision), flat), 1e-300)
                moments = averages.truncated_moments(shift / alone, alone**-0.5, low, high)
                mean[own], variance, each = moments
                covariance[within] = np.diag(variance)
                entropy += float(each.sum())
                continue
            factor = scipy.linalg.cholesky(precision, lower=True, check_finite=False)
            mean[own] = scipy.linalg.cho_solve((factor, True), shift, check_finite=False)
            covariance[within] = scipy.linalg.cho_solve((factor, True), np.eye(len(own)))
            entropy += len(own) * (1 + np.log(2 * np.pi)) / 2 - np.log(np.diag(factor)).sum()
        state = state._replace(mean=mean, covariance=covariance, rest=float(entropy))
        return bound, self._moved(state)

    def placed(self, state: State, step: FlatPoint) -> State:
        """Return a state with the hyper-parameters moved by a step in unconstrained coordinates."""
        plan = self.setting.plan
        start, unravel = ravel_pytree(coordinates(plan.supports, state.hyper, plan.hyper))
        hyper = placed(plan.supports, unravel(start + step))[0]
        return state._replace(hyper={name: np.asarray(hyper[name]) for name in plan.hyper})

    def _moved(self, state: State) -> State:
        """Maximise the bound along orbits and in the hyper-parameters, and set the rest of it."""
        plan = self.setting.plan
        hyper = coordinates(plan.supports, state.hyper, plan.hyper)
        start, unravel = ravel_pytree((jnp.zeros(len(plan.scales)), hyper))
        given = self.values(state), state.covariance, self.signs

        def objective(flat: np.ndarray) -> tuple[Any, Any]:
            value, slope = _rest(self.setting, self.row, given, unravel(jnp.asarray(flat)))
            return value, ravel_pytree(slope)[0]

        flat = np.asarray(start)
        value = float(objective(flat)[0])
        if flat.size:
            best = maximised(objective, flat)
            if -best.fun > value:
                value, flat = -float(best.fun), np.asarray(best.x)
        logs, hyper = unravel(jnp.asarray(flat))
        at = placed(plan.supports, hyper)[0]
        factor = np.exp(np.asarray(logs) @ self.signs)
        return State(
            state.mean * factor,
            state.covariance * np.outer(factor, factor),
            {name: np.asarray(at[name]) for name in plan.hyper},
            state.rest + value,
        )


def _groups(plan: Plan, forms: Forms, of_slot: tuple[int, ...], sites: Sites) -> list[list[int]]:
    """Join the sites whose entries meet in sums alone, unless they have bounds."""
    met = {frozenset((of_slot[one], of_slot[other])) for one, other in forms.cross}
    free = [is_unbounded(plan.supports, name) for name in sites]
    groups: list[list[int]] = []
    for site in range(len(sites)):
        for group in groups:
            apart = any({site, other} in met or not free[other] for other in group)
            if free[site] and not apart:
                group.append(site)
                break
        else:
            groups.append([site])
    return groups


_block_prior = jax.jit(block_prior, static_argnums=(0, 3))


def _log_cosh(square: PerRow) -> PerRow:
    r"""Return :math:`\log 2 \cosh(\sqrt{e} / 2)`, differentiable at 0."""
    small = square < 1e-4
    half = jnp.sqrt(jnp.where(small, 1.0, square)) / 2
    exact = half + jnp.log1p(jnp.exp(-2 * half))
    return jnp.where(small, jnp.log(2.0) + square / 8 - square**2 / 192, exact)


def _bound(forms: Forms, slots: Slots, covariances: Covariances) -> Scalar:
    """Return the lower bound of the log-likelihood."""
    square = forms.square(slots, covariances)
    return (forms.kappa * forms.mean(slots) - forms.votes * _log_cosh(square)).sum()


@partial(jax.jit, static_argnums=0)
def _statistics(
    owners: tuple[int, ...], forms: Forms, mean: EntryArray, covariance: MatrixArray
) -> tuple[Scalar, EntryArray, MatrixArray]:
    """Return the bound, and its slopes in the means and covariances."""

    def bound(mean: Array, covariance: Array) -> Array:
        return _bound(forms, forms.slots(mean), forms.covariances(owners, covariance))

    value, slopes = jax.value_and_grad(bound, (0, 1))(mean, covariance)
    return value, *slopes


@partial(jax.jit, static_argnums=0)
def curvature(
    owners: tuple[int, ...], forms: Forms, mean: EntryArray, covariance: MatrixArray
) -> tuple[EntryArray, MatrixArray]:
    """Return the first and second derivatives, in the means, of the mean log-likelihood if logits
    are normal, which is above its bound."""
    slots, covariances = forms.slots(mean), forms.covariances(owners, covariance)
    node, weight = np.polynomial.hermite_e.hermegauss(_NODES)

    def likelihood(slots: Slots) -> Scalar:
        logits = forms.mean(slots)
        variance = forms.square(slots, covariances) - logits**2
        spread = jnp.sqrt(jnp.maximum(variance, 1e-12))
        each = _log_cosh((logits + spread * node[:, None]) ** 2)
        return (forms.kappa * logits - forms.votes * (weight @ each) / weight.sum()).sum()

    total, slope = jnp.zeros_like(covariance), jnp.zeros_like(mean)
    for entry, first in zip(forms.entry, jax.grad(likelihood)(slots), strict=True):
        slope = slope.at[entry].add(first)
    for place, entry in enumerate(forms.entry):
        along = tuple(jnp.full_like(slot, at == place) for at, slot in enumerate(slots))
        seconds = jax.jvp(jax.grad(likelihood), (slots,), (along,))[1]
        for other, second in zip(forms.entry, seconds, strict=True):
            total = total.at[entry, other].add(second)
    return slope, total


@partial(jax.jit, static_argnums=0)
def curvature_in_hyper(
    setting: Setting, row: Any, values: Values, covariance: MatrixArray
) -> tuple[tuple[EntryArray, Array], Any]:
    """Return the slopes in entries and hyper-parameters of the log density of both, with the
    covariance of entries integrated over, and the derivatives of both in hyper-parameters."""
    plan, sites = setting.plan, setting.sites
    start, unravel = ravel_pytree(coordinates(plan.supports, values, plan.hyper))
    precision = block_prior(plan.model, row, values, sites).precision

    def density(entries: Array, flat: Array) -> Array:
        hyper, total = placed(plan.supports, unravel(flat))
        prior = block_prior(plan.model, row, values | hyper, sites)
        inside = jnp.clip(entries, prior.low, prior.high)
        total += log_prior(plan.model, row, values | hyper | split(inside, values, sites))
        # Half the logarithm of the determinant of the precision, to the second order.
        change = prior.precision - precision
        return total - change @ jnp.diag(covariance) / 2 + change @ covariance**2 @ change / 4

    slopes, at = jax.grad(density, (0, 1)), (Block(sites).flat(values), start)
    return slopes(*at), jax.jacfwd(slopes, 1)(*at)


@partial(jax.jit, static_argnums=0)
def _rest(
    setting: Setting, row: Any, given: tuple[Values, Array, Array], at: tuple[Array, Values]
) -> tuple[Scalar, Any]:
    """Return the bound without rows and entropies, at factors and hyper-parameters, and slope."""
    values, covariance, signs = given
    plan, sites = setting.plan, setting.sites

    def rest(at: tuple[Array, Values]) -> Array:
        hyper, total = placed(plan.supports, at[1])
        logs = at[0] @ signs
        factor = jnp.exp(logs)
        entries = Block(sites).flat(values) * factor
        prior = block_prior(plan.model, row, values | hyper, sites)
        # Entries may be beyond bounds that orbits cross, where the density would be 0.
        inside = jnp.clip(entries, prior.low, prior.high)
        there = values | hyper | split(inside, values, sites)
        total += logs.sum() + log_prior(plan.model, row, there)
        beyond = (inside - prior.mean) ** 2 - (entries - prior.mean) ** 2
        variance = factor**2 * jnp.diag(covariance)
        total += (prior.precision * (beyond - variance)).sum() / 2
        if prior.across is not None:
            total -= (prior.across * covariance * jnp.outer(factor, factor)).sum() / 2
        return total

    return jax.value_and_grad(rest)(at)

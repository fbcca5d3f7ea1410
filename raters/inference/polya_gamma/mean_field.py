"""Coordinate ascent of a mean-field approximation, from the conditionals of Gibbs sampling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool

from raters.inference.arrays import HostRows, Matrix, PerRow, Rng, Sites
from raters.inference.polya_gamma import averages, latent_classes, sets
from raters.inference.polya_gamma.averages import Covariances, Forms, Normal, Owners
from raters.inference.polya_gamma.conditionals import DENSE_LIMIT, Gaussian
from raters.inference.polya_gamma.laplace import along_orbits
from raters.inference.polya_gamma.plans import Plan
from raters.inference.polya_gamma.rows import Block, block_prior, split
from raters.inference.polya_gamma.unconstrained import coordinates, maximised, placed
from raters.model import Model, Values
from raters.program import trace

Counted = dict[str, tuple[Array, ...]]
# Means of the blocks, and their variances or covariances.
Moments = tuple[tuple[Any, ...], tuple[Any, ...]]


class State(NamedTuple):
    """A mean-field approximation."""

    normals: tuple[Normal, ...]
    counted: Counted
    hyper: Values
    rest: float


@dataclass(frozen=True)
class Setting:
    """Static facts of a sweep."""

    plan: Plan
    blocks: tuple[Sites, ...]
    owners: Owners

    @property
    def sites(self) -> Sites:
        """Sites of all blocks."""
        return tuple(name for block in self.blocks for name in block)


def moments(normals: Sequence[Normal]) -> Moments:
    """Means of the blocks, and their variances or covariances."""
    return tuple(one.mean for one in normals), tuple(one.spread for one in normals)


class MeanField:
    """Sweeps over a data set."""

    def __init__(self, plan: Plan, data: Any, values: Values) -> None:
        self.data, self.row = data, data.take(slice(0, 1))
        self.like = {name: np.asarray(value, np.float64) for name, value in values.items()}
        self.first = self.like
        blocks, self.forms, owners = _joined(plan, data, self.like)
        self.setting = Setting(plan, blocks, owners)
        self.entry = [np.asarray(entry) for entry in self.forms.entry] if blocks else []
        self.joint = [len(owners.slots(block)) > 1 for block in range(len(blocks))]
        for number, prior in enumerate(self.priors(self.like)):
            self.joint[number] |= prior.across is not None
        self.cells: dict[tuple[int, int], np.ndarray] = {}
        self.votes: tuple[Array, Array] | None = None
        if blocks and not plan.classes:
            self.votes = self._outcomes(None)

    # ------------------------------------------------------------------------------ states

    def start(self, values: Values) -> State:
        """Return a start at values of all sites, without spreads."""
        normals = tuple(
            averages.point(Block(sites).current(values), joint)
            for sites, joint in zip(self.setting.blocks, self.joint, strict=True)
        )
        self.first = {name: np.asarray(value, np.float64) for name, value in values.items()}
        hyper = {name: self.first[name] for name in self.setting.plan.hyper}
        return State(normals, {}, hyper, -np.inf)

    def means(self, state: State) -> Values:
        """Return the mean of each site."""
        found = self.values(state)
        for name, parameters in state.counted.items():
            found[name] = averages.means(tuple(map(np.asarray, parameters)))
        return {name: np.asarray(value) for name, value in found.items()}

    def draws(self, state: State, number: int, rng: Rng) -> Values:
        """Draw from the approximation as it is, shape (draw, ...)."""
        found: Values = {}
        priors = self.priors(self.values(state))
        for sites, normal, prior in zip(self.setting.blocks, state.normals, priors, strict=True):
            found |= split(averages.drawn(normal, prior, number, rng), self.like, sites)
        for name, parameters in state.counted.items():
            own = tuple(map(np.asarray, parameters))
            found[name] = averages.drawn_probs(own, number, rng)
        return found

    def values(self, state: State) -> Values:
        """Return the mean of each site; of probabilities that of their logarithms."""
        found = dict(self.first) | dict(state.hyper)
        for sites, normal in zip(self.setting.blocks, state.normals, strict=True):
            found = Block(sites).put(found, normal.mean)
        for name, parameters in state.counted.items():
            found[name] = np.exp(np.asarray(averages.log_means_of(parameters)))
        return found

    def votes_at(self, state: State) -> tuple[Array, Array]:
        """Return the votes and κ of the rows, of a mixture under its expected classes."""
        if self.votes is not None:
            return self.votes
        return self._outcomes(self._classes(state, self.values(state))[0])

    def _outcomes(self, classes: Any) -> tuple[Array, Array]:
        """Return the votes and κ of the rows given the classes."""
        return _outcomes(self.setting.plan.model, self.data, self.like, classes)

    # ------------------------------------------------------------------------------ a sweep

    def sweep(self, state: State, fixed: Sites = ()) -> tuple[float, State]:
        """Return the bound at a state, and the state after a sweep from it."""
        plan, bound, votes = self.setting.plan, None, self.votes
        values = self.values(state)
        if plan.classes:
            classes, bound = self._classes(state, values)
            counted = dict(state.counted)
            for block in plan.blocks:
                if block.kind == "counts":
                    counted[block.sites[0]] = latent_classes.parameters(
                        plan.model, self.data, values, classes, block.sites[0]
                    )
            state = state._replace(counted=counted)
            if self.setting.blocks:
                votes = self._outcomes(classes)
        rest = state.rest
        normals = list(state.normals)
        for number in range(len(normals)):
            assert votes is not None
            normals[number], found = self._block(number, normals, votes, state.hyper)
            bound = found if bound is None else bound
        assert bound is not None
        state = self._moved(state._replace(normals=tuple(normals)), fixed)
        return bound + rest, state

    def priors(self, values: Values) -> list[Gaussian]:
        """Return the prior of each block, without the bounds that are crossed along orbits."""
        plan, found = self.setting.plan, []
        for sites in self.setting.blocks:
            prior = jax.tree.map(np.asarray, _block_prior(plan.model, self.row, values, sites))
            found.append(along_orbits(prior, plan.scales, sites, values))
        return found

    def _block(
        self, number: int, normals: list[Normal], votes: tuple[Array, Array], hyper: Values
    ) -> tuple[Normal, float]:
        """Return the best distribution of a block given the others."""
        owners, own = self.setting.owners, normals[number]
        prior = self.priors(self.like | hyper)[number]
        given = owners, number, self.forms, moments(normals), votes
        bound, slopes, squares = _statistics(*given)
        size = len(own.mean)
        slope, diagonal = np.zeros(size), np.zeros(size)
        slots = owners.slots(number)
        across = np.zeros((size, size)) if self.joint[number] else None
        for slot in slots:
            slope += np.bincount(self.entry[slot], np.asarray(slopes[slot]), size)
        for (one, other), value in squares.items():
            if one == other:
                diagonal += np.bincount(self.entry[one], np.asarray(value), size)
            else:
                assert across is not None
                half = self.scattered(one, other, np.asarray(value), size)
                across += half + half.T
        location = np.where(prior.precision > 0, prior.precision * prior.mean, 0.0)
        if across is None:
            shift = slope + diagonal * own.mean + location
            return averages.apart(diagonal + prior.precision, shift, prior), float(bound)
        across[np.arange(size), np.arange(size)] += diagonal
        shift = slope + across @ own.mean + location
        across[np.arange(size), np.arange(size)] += prior.precision
        if prior.across is not None:
            across += prior.across
            shift += prior.across @ prior.mean
        return averages.together(across, shift), float(bound)

    def scattered(self, one: int, other: int, value: HostRows, size: int) -> Matrix:
        """Sum what rows have for a pair of entries of one block."""
        if (one, other) not in self.cells:
            # int64, which the cells of 50,000 entries need.
            self.cells[one, other] = self.entry[one].astype(np.int64) * size + self.entry[other]
        return np.bincount(self.cells[one, other], value, size * size).reshape(size, size)

    def _classes(self, state: State, values: Values) -> tuple[Any, float]:
        """Return the expected number of units of each class, and the bound of rows and classes."""
        model = self.setting.plan.model
        if self.setting.blocks:
            normals = moments(state.normals)
            classes, bound = _expected_classes(self.setting, self.data, values, self.forms, normals)
        else:
            classes, bound = latent_classes.expected(model, self.data, values)
        return classes, float(bound)

    # ------------------------------------------------------------- orbits and hyper-parameters

    def _moved(self, state: State, fixed: Sites) -> State:
        """Maximise the bound along orbits and in the hyper-parameters, and set the rest of it."""
        plan, like = self.setting.plan, self.values(state)
        start = coordinates(plan.supports, state.hyper, plan.hyper)
        flat, unravel = ravel_pytree((jnp.zeros(len(plan.scales)), start))
        spreads = tuple(normal.spread for normal in state.normals)
        given = (like, spreads, state.counted)
        value = float(_rest(self.setting, self.row, given, unravel(flat))[0])
        factors = np.zeros(len(plan.scales))
        if flat.size:

            def objective(flat: np.ndarray) -> tuple[Any, Any]:
                found, slope = _rest(self.setting, self.row, given, unravel(jnp.asarray(flat)))
                return found, ravel_pytree(slope)[0]

            ends = np.where(_places(unravel(flat), fixed), 0.0, np.inf)
            bounds = scipy.optimize.Bounds(np.asarray(flat) - ends, np.asarray(flat) + ends)
            best = maximised(objective, np.asarray(flat), bounds=bounds)
            if -best.fun > value:
                value = -float(best.fun)
                factors, hyper = unravel(jnp.asarray(best.x))
                at = placed(plan.supports, hyper)[0]
                state = state._replace(hyper={name: np.asarray(at[name]) for name in plan.hyper})
        logs = {name: np.zeros(np.shape(self.like[name])) for name in self.setting.sites}
        for scale, factor in zip(plan.scales, np.asarray(factors), strict=True):
            for sign, names in ((1.0, scale.up), (-1.0, scale.down)):
                for name in set(names) & set(logs):
                    logs[name] = logs[name] + sign * float(factor)
        normals = tuple(
            normal.stretched(np.exp(Block(sites).current(logs)))
            for sites, normal in zip(self.setting.blocks, state.normals, strict=True)
        )
        return state._replace(
            normals=normals, rest=value + sum(normal.entropy for normal in state.normals)
        )


def _places(coordinates: tuple[Array, Values], fixed: Sites) -> Bool[np.ndarray, " coordinate"]:
    """Return the mask of the coordinates of some hyper-parameters."""
    factors, hyper = coordinates
    marks = {name: jnp.full(jnp.shape(value), name in fixed) for name, value in hyper.items()}
    mask: Array = ravel_pytree((jnp.zeros(jnp.shape(factors), bool), marks))[0]
    return np.asarray(mask, bool)


# ---------------------------------------------------------------------------- reading the program


def _joined(plan: Plan, data: Any, values: Values) -> tuple[tuple[Sites, ...], Forms, Owners]:
    """Return the normal blocks, joined where entries meet in sums alone, and their rows."""
    blocks = tuple(
        dict.fromkeys(block.sites for block in plan.blocks if block.kind in ("rows", "type"))
    )
    if not blocks:
        return (), Forms(jnp.zeros(0), (), {}, ()), Owners(())
    forms, owners = averages.forms_of(plan.model, data, values, blocks)
    met = {(owners.of_slot[one], owners.of_slot[other]) for one, other in forms.cross}
    groups: list[list[int]] = []
    for number, sites in enumerate(blocks):
        for group in groups:
            sizes = sum(np.size(values[name]) for other in group for name in blocks[other])
            alone = not any((other, number) in met for other in group)
            small = sizes + sum(np.size(values[name]) for name in sites) <= DENSE_LIMIT
            names = [name for other in (*group, number) for name in blocks[other]]
            whole = all(sets.is_unbounded(plan.supports, name) for name in names)
            if alone and small and whole:
                group.append(number)
                break
        else:
            groups.append([number])
    if len(groups) < len(blocks):
        blocks = tuple(sum((blocks[number] for number in group), ()) for group in groups)
        forms, owners = averages.forms_of(plan.model, data, values, blocks)
    return blocks, forms, owners


_block_prior = jax.jit(block_prior, static_argnums=(0, 3))
_outcomes = jax.jit(averages.outcomes, static_argnums=0)


@partial(jax.jit, static_argnums=0)
def _expected_classes(
    setting: Setting, data: Any, values: Values, forms: Forms, normals: Moments
) -> tuple[Array, Array]:
    """Return the same of rows with logits, whose log-probability is below that at the means."""
    model, owners = setting.plan.model, setting.owners
    site = trace(model, data, values)[model.observed]
    fn, value = site["fn"], site["value"]
    joint = fn.log_joint(value)
    slots = averages.gathered(forms, owners, normals[0])
    covariances = averages.covariances_of(forms, owners, normals[1])
    less = _log_cosh(averages.square(forms, slots, covariances)) - _log_cosh(
        averages.mean(forms, slots) ** 2
    )

    def lost(classes: Array) -> Array:
        votes, _ = averages.outcomes(model, data, values, classes)
        return (votes * less).sum()

    # It is linear in the classes.
    joint = joint - jax.grad(lost)(jnp.ones_like(joint))
    total, probs = jax.nn.logsumexp(joint, axis=-1), jax.nn.softmax(joint, axis=-1)
    if fn.repeats is None:
        return probs, total.sum()
    return fn.repeats[:, None] * probs, (fn.repeats * total).sum()


# ------------------------------------------------------------------------------ compiled functions


def _log_cosh(square: PerRow) -> PerRow:
    r"""Return :math:`\log 2 \cosh(\sqrt{e} / 2)`, differentiable at 0."""
    small = square < 1e-4
    half = jnp.sqrt(jnp.where(small, 1.0, square)) / 2
    exact = half + jnp.log1p(jnp.exp(-2 * half))
    return jnp.where(small, jnp.log(2.0) + square / 8 - square**2 / 192, exact)


def bound_of_rows(
    forms: Forms, slots: averages.Slots, covariances: Covariances, votes: tuple[Array, Array]
) -> PerRow:
    """Return the lower bound of the log-likelihood of each row."""
    count, kappa = votes
    square = averages.square(forms, slots, covariances)
    return kappa * averages.mean(forms, slots) - count * _log_cosh(square)


@partial(jax.jit, static_argnums=(0, 1))
def _statistics(
    owners: Owners, block: int, forms: Forms, normals: Moments, votes: tuple[Array, Array]
) -> tuple[Array, dict[int, Array], Covariances]:
    """Return the bound of all rows, its slopes, and the precision in pairs of slots of a block."""
    slots = averages.gathered(forms, owners, normals[0])
    covariances = averages.covariances_of(forms, owners, normals[1])
    own = owners.slots(block)

    def within(values: tuple[Array, ...], of: Any) -> Array:
        moved = list(slots)
        for slot, value in zip(own, values, strict=True):
            moved[slot] = value
        return of(tuple(moved)).sum()

    here = tuple(slots[slot] for slot in own)
    bound, slopes = jax.value_and_grad(within)(
        here, lambda slots: bound_of_rows(forms, slots, covariances, votes)
    )
    square = partial(averages.square, forms, covariances=covariances)
    omega = 2 * votes[0] * jax.vmap(jax.grad(_log_cosh))(square(slots))
    squares: Covariances = {}
    for place, slot in enumerate(own):
        tangent = tuple(jnp.ones_like(one) * (place == at) for at, one in enumerate(here))
        second = jax.jvp(jax.grad(lambda values: within(values, square)), (here,), (tangent,))[1]
        for at, other in enumerate(own):
            if at >= place:
                squares[slot, other] = omega * second[at] / 2
    return bound, dict(zip(own, slopes, strict=True)), squares


@partial(jax.jit, static_argnums=0)
def _rest(
    setting: Setting,
    row: Any,
    given: tuple[Values, tuple[Array, ...], Counted],
    coordinates: tuple[Array, Values],
) -> tuple[Array, Any]:
    """Return the bound without rows and entropies, at factors and hyper-parameters, and slope."""
    values, spreads, counted = given

    def rest(coordinates: tuple[Array, Values]) -> Array:
        plan, (factors, hyper) = setting.plan, coordinates
        own_hyper, total = placed(plan.supports, hyper)
        there = values | own_hyper
        logs = {name: jnp.zeros(jnp.shape(values[name])) for name in setting.sites}
        for scale, factor in zip(plan.scales, factors, strict=True):
            for sign, names in ((1.0, scale.up), (-1.0, scale.down)):
                for name in set(names) & set(logs):
                    logs[name] = logs[name] + sign * factor
        for name, log in logs.items():
            there[name] = there[name] * jnp.exp(log)
            total += log.sum()
        traced = trace(plan.model, row, there)
        for sites, spread in zip(setting.blocks, spreads, strict=True):
            prior = block_prior(plan.model, row, there, sites)
            entries = jnp.concatenate([there[name].ravel() for name in sites])
            # Entries may be beyond bounds that orbits cross, where the density would be 0.
            inside = jnp.clip(entries, prior.low, prior.high)
            beyond = (inside - prior.mean) ** 2 - (entries - prior.mean) ** 2
            total += (prior.precision * beyond).sum() / 2
            parts = split(inside, values, sites)
            total += sum(traced[name]["fn"].log_prob(parts[name]).sum() for name in sites)
            factor = jnp.exp(jnp.concatenate([logs[name].ravel() for name in sites]))
            variance = spread if spread.ndim == 1 else jnp.diag(spread)
            total -= (prior.precision * factor**2 * variance).sum() / 2
            if prior.across is not None:
                total -= (prior.across * spread * jnp.outer(factor, factor)).sum() / 2
        apart = {plan.model.observed, *setting.sites, *counted}
        for name, site in traced.items():
            if site["type"] == "sample" and name not in apart:
                total += site["fn"].log_prob(there[name]).sum()
        for name, parameters in counted.items():
            given = prior_parameters(plan.model, row, there, name)
            total += averages.less_prior(parameters, given)
        return total

    return jax.value_and_grad(rest)(coordinates)


def prior_parameters(model: Model[Any], row: Any, values: Values, site: str) -> tuple[Array, ...]:
    """Return the parameters of the prior of a site of probabilities."""
    fn = latent_classes.site_prior(model, row, values, site)
    if hasattr(fn, "concentration"):
        return (jnp.broadcast_to(fn.concentration, jnp.shape(values[site])),)
    return fn.concentration1, fn.concentration0

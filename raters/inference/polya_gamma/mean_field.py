r"""Coordinate ascent of a mean-field approximation, from the conditionals of Gibbs sampling.

With independent blocks, and the Pólya-Gamma variables at their best, the evidence lower bound is

.. math:: \sum_m \left[\kappa_m \mathrm E\,\psi_m - n_m \log 2 \cosh\tfrac{c_m}{2}\right]
    + \mathrm E \log p(x \mid v) + \log p(v) + \mathrm H(q), \qquad c_m^2 = \mathrm E\,\psi_m^2 .

A block's best distribution has the conditional of Gibbs sampling with averages in it: ω at
:math:`n \tanh(c/2) / (2c)`, and products of the weights of its rows at their mean. All of them are
derivatives of :math:`\mathrm E\,\psi` and :math:`\mathrm E\,\psi^2` in the entries of the block.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float
from numpyro.distributions.transforms import biject_to

from raters.inference.arrays import Matrix, PerRow, Rng
from raters.inference.polya_gamma import averages, bilinear, latent_classes, sets, sweep
from raters.inference.polya_gamma.averages import Normal
from raters.inference.polya_gamma.bilinear import Covariances, Forms, Owners
from raters.inference.polya_gamma.conditionals import DENSE_LIMIT, Gaussian
from raters.inference.polya_gamma.laplace import along_orbits
from raters.inference.polya_gamma.rows import Block, block_prior, split
from raters.model import Model, Values
from raters.program import ClassTable, trace

Counted = dict[str, tuple[Array, ...]]


class State(NamedTuple):
    """A mean-field approximation."""

    normals: tuple[Normal, ...]
    counted: Counted
    hyper: Values
    rest: float


@dataclass(frozen=True)
class Setting:
    """Static facts of a sweep."""

    plan: sweep.Plan
    blocks: tuple[tuple[str, ...], ...]
    owners: Owners

    @property
    def sites(self) -> tuple[str, ...]:
        """Sites of all blocks."""
        return tuple(name for block in self.blocks for name in block)


class MeanField:
    """Sweeps over a data set."""

    def __init__(self, plan: sweep.Plan, data: Any, values: Values) -> None:
        self.data, self.row = data, data.take(slice(0, 1))
        self.like = {name: np.asarray(value, np.float64) for name, value in values.items()}
        self.first = self.like
        self.table = ClassTable.of(plan.model, data, self.like) if plan.classes else None
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
            entries, begin = averages.drawn(normal, prior, number, rng), 0
            for name in sites:
                shape = np.shape(self.like[name])
                size = int(np.prod(shape))
                found[name] = entries[:, begin : begin + size].reshape(number, *shape)
                begin += size
        for name, parameters in state.counted.items():
            own = tuple(map(np.asarray, parameters))
            found[name] = averages.drawn_probs(own, number, rng)
        return found

    def values(self, state: State) -> Values:
        """Return the mean of each site; of probabilities that of their logarithms, and not
        normalised."""
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

    def sweep(self, state: State, held: tuple[str, ...] = ()) -> tuple[float, State]:
        """Return the bound at a state, and the state after a sweep from it."""
        plan, bound, votes = self.setting.plan, None, self.votes
        values = self.values(state)
        if plan.classes:
            classes, bound = self._classes(state, values)
            counted = dict(state.counted)
            for block in plan.blocks:
                if block.kind == "counts":
                    counted[block.sites[0]] = self._counts(values, classes, block.sites[0])
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
        state = self._moved(state._replace(normals=tuple(normals)), held)
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
        bound, slopes, squares = _statistics(
            owners,
            number,
            self.forms,
            tuple(normal.mean for normal in normals),
            tuple(normal.spread for normal in normals),
            votes,
        )
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

    def scattered(
        self, one: int, other: int, value: Float[np.ndarray, " row"], size: int
    ) -> Matrix:
        """Sum what rows have for a pair of entries of one block."""
        if (one, other) not in self.cells:
            # int64, which the cells of 50,000 entries need.
            self.cells[one, other] = self.entry[one].astype(np.int64) * size + self.entry[other]
        return np.bincount(self.cells[one, other], value, size * size).reshape(size, size)

    def _classes(self, state: State, values: Values) -> tuple[Any, float]:
        """Return the expected number of units of each class, and the bound of rows and classes."""
        model = self.setting.plan.model
        if self.setting.blocks:
            found: tuple[Any, Any] = _expected_classes(
                self.setting,
                self.data,
                values,
                self.forms,
                tuple(normal.mean for normal in state.normals),
                tuple(normal.spread for normal in state.normals),
            )
        else:
            found = latent_classes.expected_by(self.table, model, self.data, values)[1:]
        return found[0], float(found[1])

    def _counts(self, values: Values, classes: Any, site: str) -> tuple[Array, ...]:
        """Return the parameters of the probabilities of classes given the expected classes."""
        given = (self.setting.plan.model, self.data, values, classes)
        if self.table is not None and not self.setting.blocks:
            counts = jnp.asarray(self.table.counted(np.asarray(classes)))
            found: tuple[Array, ...] = latent_classes.parameters_of_counts(*given, counts, site)
        else:
            found = latent_classes.parameters(*given, site)
        return found

    # ------------------------------------------------------------- orbits and hyper-parameters

    def _moved(self, state: State, held: tuple[str, ...]) -> State:
        """Maximise the bound along orbits and in the hyper-parameters, and set the rest of it."""
        plan, like = self.setting.plan, self.values(state)
        start = {
            name: biject_to(plan.supports[name]).inv(jnp.asarray(state.hyper[name]))
            for name in plan.hyper
        }
        flat, unravel = ravel_pytree((jnp.zeros(len(plan.scales)), start))
        spreads = tuple(normal.spread for normal in state.normals)
        given = (like, spreads, state.counted)
        value = float(_rest(self.setting, self.row, *given, unravel(flat))[0])
        factors = np.zeros(len(plan.scales))
        if flat.size:

            def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
                found, slope = _rest(self.setting, self.row, *given, unravel(jnp.asarray(flat)))
                return -float(found), -np.asarray(ravel_pytree(slope)[0])

            ends = np.where(_places(unravel(flat), held), 0.0, np.inf)
            bounds = scipy.optimize.Bounds(np.asarray(flat) - ends, np.asarray(flat) + ends)
            best = scipy.optimize.minimize(
                loss, np.asarray(flat), jac=True, method="L-BFGS-B", bounds=bounds
            )
            if -best.fun > value:
                value = -float(best.fun)
                factors, hyper = unravel(jnp.asarray(best.x))
                state = state._replace(
                    hyper={
                        name: np.asarray(biject_to(plan.supports[name])(hyper[name]))
                        for name in plan.hyper
                    }
                )
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


def _places(
    coordinates: tuple[Array, Values], held: tuple[str, ...]
) -> Bool[np.ndarray, " coordinate"]:
    """Return the mask of the coordinates of some hyper-parameters."""
    factors, hyper = coordinates
    marks = {name: jnp.full(jnp.shape(value), name in held) for name, value in hyper.items()}
    mask: Array = ravel_pytree((jnp.zeros(jnp.shape(factors), bool), marks))[0]
    return np.asarray(mask, bool)


# ---------------------------------------------------------------------------- reading the program


def _joined(
    plan: sweep.Plan, data: Any, values: Values
) -> tuple[tuple[tuple[str, ...], ...], Forms, Owners]:
    """Return the blocks of normal sites, joined where their entries meet in sums alone, and the
    rows of all of them."""
    blocks = tuple(
        dict.fromkeys(block.sites for block in plan.blocks if block.kind in ("rows", "type"))
    )
    if not blocks:
        return (), Forms(jnp.zeros(0), (), {}, ()), Owners(())
    forms, owners = bilinear.forms_of(plan.model, data, values, blocks)
    met = {(owners.of_slot[one], owners.of_slot[other]) for one, other in forms.cross}
    groups: list[list[int]] = []
    for number, sites in enumerate(blocks):
        for group in groups:
            sizes = sum(np.size(values[name]) for other in group for name in blocks[other])
            alone = not any((other, number) in met for other in group)
            small = sizes + sum(np.size(values[name]) for name in sites) <= DENSE_LIMIT
            whole = all(
                sets.is_unbounded(plan.supports, name)
                for other in (*group, number)
                for name in blocks[other]
            )
            if alone and small and whole:
                group.append(number)
                break
        else:
            groups.append([number])
    if len(groups) < len(blocks):
        blocks = tuple(sum((blocks[number] for number in group), ()) for group in groups)
        forms, owners = bilinear.forms_of(plan.model, data, values, blocks)
    return blocks, forms, owners


_block_prior = jax.jit(block_prior, static_argnums=(0, 3))
_outcomes = jax.jit(bilinear.outcomes, static_argnums=0)


@partial(jax.jit, static_argnums=0)
def _expected_classes(
    setting: Setting,
    data: Any,
    values: Values,
    forms: Forms,
    means: tuple[Array, ...],
    spreads: tuple[Array, ...],
) -> tuple[Array, Array]:
    """Return the same of rows with logits, whose log-probability is below that at the means."""
    model, owners = setting.plan.model, setting.owners
    site = trace(model, data, values)[model.observed]
    fn, value = site["fn"], site["value"]
    joint = fn.log_joint(value)
    slots = bilinear.gathered(forms, owners, means)
    covariances = bilinear.covariances_of(forms, owners, spreads)
    less = _log_cosh(bilinear.square(forms, owners, slots, covariances)) - _log_cosh(
        bilinear.mean(forms, slots) ** 2
    )

    def lost(classes: Array) -> Array:
        votes, _ = bilinear.outcomes(model, data, values, classes)
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
    owners: Owners,
    forms: Forms,
    slots: bilinear.Slots,
    covariances: Covariances,
    votes: tuple[Array, Array],
) -> PerRow:
    """Return the lower bound of the log-likelihood of each row."""
    count, kappa = votes
    square = bilinear.square(forms, owners, slots, covariances)
    return kappa * bilinear.mean(forms, slots) - count * _log_cosh(square)


@partial(jax.jit, static_argnums=(0, 1))
def _statistics(
    owners: Owners,
    block: int,
    forms: Forms,
    means: tuple[Array, ...],
    spreads: tuple[Array, ...],
    votes: tuple[Array, Array],
) -> tuple[Array, dict[int, Array], Covariances]:
    """Return the bound of all rows, its slope in each slot of a block, and half of ω times the
    second derivatives of the mean squares in each pair of them, which is the precision."""
    slots = bilinear.gathered(forms, owners, means)
    covariances = bilinear.covariances_of(forms, owners, spreads)
    own = owners.slots(block)

    def within(values: tuple[Array, ...], of: Any) -> Array:
        moved = list(slots)
        for slot, value in zip(own, values, strict=True):
            moved[slot] = value
        return of(tuple(moved)).sum()

    here = tuple(slots[slot] for slot in own)
    bound, slopes = jax.value_and_grad(within)(
        here, lambda slots: bound_of_rows(owners, forms, slots, covariances, votes)
    )
    square = partial(bilinear.square, forms, owners, covariances=covariances)
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
    values: Values,
    spreads: tuple[Array, ...],
    counted: Counted,
    coordinates: tuple[Array, Values],
) -> tuple[Array, Any]:
    """Return the bound less that of the rows and the entropies of the blocks, at factors along the
    orbits and hyper-parameters, and its slope in these."""

    def rest(coordinates: tuple[Array, Values]) -> Array:
        factors, hyper = coordinates
        plan, there, total = setting.plan, dict(values), jnp.zeros(())
        for name, coordinate in hyper.items():
            transform = biject_to(plan.supports[name])
            there[name] = transform(coordinate)
            total += transform.log_abs_det_jacobian(coordinate, there[name]).sum()
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

"""Choices in which each judge has a vector of their own: designs, likelihoods and priors.

The utilities are affine in the vectors and in the shared sites; the designs depend on no site.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int

from raters.distributions.choices import Choice
from raters.distributions.correlated import unwrapped
from raters.errors import NotConjugateError
from raters.inference.arrays import Entries, Matrix, Sites, Vectors
from raters.inference.polya_gamma.conditionals import Gaussian
from raters.inference.polya_gamma.rows import block_prior, split
from raters.inference.polya_gamma.unconstrained import is_unbounded
from raters.model import Model, Own, Values, facts_of
from raters.program import Program, scattered, trace

# Largest difference between equal designs, to their largest number.
_SAME = 1e-8
# Entries of the designs that are held.
_MOST = 200_000_000


def applies(program: Program[Any]) -> bool:
    """Return whether the judges of a program have vectors of their own."""
    return bool(facts_of(program.model, Own))


def why_not(program: Program[Any]) -> str | None:
    """Explain why the vectors of the judges cannot be drawn or integrated out, or return None."""
    name = program.model.title
    if program.model.prior:
        return f"{name} with priors of your own has no vectors that are drawn at once; use NUTS"
    if program.observed_type is not Choice or program.latent is not None:
        what = program.observed_type.__name__
        return f"{name} has vectors of single judges in {what}, and not in choices from sets"
    number = sum(program.sites[own.site].shape[-1] for own in facts_of(program.model, Own))
    if (size := np.size(program.data.offered) * number) > _MOST:
        what = f"the design of everybody's own coefficients has {size:,} numbers"
        return f"{what} (at most {_MOST:,}); use SVI, or let fewer features differ"
    return None


@dataclass(frozen=True, eq=False)
class Panel:
    """Choices of all judges, as arrays in which each set has as many places as the largest one."""

    program: Program[Any]
    names: Names
    judge: Int[np.ndarray, " set"]
    shared: Float[np.ndarray, "place set entry"]
    own: Float[np.ndarray, "place set entry"]
    offset: Float[np.ndarray, "place set"]
    chosen: Float[np.ndarray, "place set"]
    number: Float[np.ndarray, " set"]
    num_judges: int
    row: Int[np.ndarray, " set"]
    prior: Gaussian
    common: Float[np.ndarray, "shared own"]

    @property
    def num_own(self) -> int:
        """Length of the vectors."""
        return int(self.own.shape[2])

    def answered(self, chosen: Float[np.ndarray, "row place"]) -> Panel:
        """Return the panel with other choices from the same sets."""
        return replace(self, chosen=np.asarray(chosen, float)[self.row].T)

    def shared_utilities(self, shared: Entries) -> np.ndarray:
        """Return the part of the utilities that all judges have, shape (place, set)."""
        return np.asarray(self.offset + self.shared @ shared)

    def own_utilities(self, vectors: Vectors) -> np.ndarray:
        """Return the part of the utilities that each judge has for themselves."""
        return np.asarray(np.einsum("jsp,sp->js", self.own, vectors[self.judge]))

    def log_likelihood(self, utility: Float[np.ndarray, "place set ..."]) -> np.ndarray:
        """Return the log-likelihood of each judge's choices, shape (judge, *point)."""
        top = utility.max(0)
        exps = utility - top
        np.exp(exps, out=exps)
        more = (1,) * (utility.ndim - 2)
        number = self.number.reshape(-1, *more)
        taken = (self.chosen.reshape(*self.chosen.shape, *more) * utility).sum(0)
        return self.by_judge(taken - number * (np.log(exps.sum(0)) + top))

    def expected(self, utility: Float[np.ndarray, "place set"]) -> np.ndarray:
        """Return the expected number of choices of each place."""
        exps = np.exp(utility - utility.max(0))
        return np.asarray(exps * (self.number / exps.sum(0)))

    def by_judge(self, of_sets: Float[np.ndarray, "set ..."]) -> np.ndarray:
        """Return sums over the sets of each judge, shape (judge, *axis)."""
        sums = np.zeros((self.num_judges, *of_sets.shape[1:]))
        if len(of_sets):
            first = np.flatnonzero(np.diff(self.judge, prepend=-1))
            sums[self.judge[first]] = np.add.reduceat(of_sets, first, axis=0)
        return sums

    def slope(self, expected: Float[np.ndarray, "place set"]) -> Vectors:
        """Return the slope of each judge's log-likelihood in their vector."""
        return self.by_judge(np.einsum("js,jsp->sp", self.chosen - expected, self.own))

    def curvature(
        self, expected: Float[np.ndarray, "place set"]
    ) -> Float[np.ndarray, "judge entry entry"]:
        """Return the negative curvature of each judge's log-likelihood in their vector."""
        weighted = self.own * expected[:, :, None]
        mean = weighted.sum(0) / np.sqrt(self.number)[:, None]
        across = np.matmul(weighted.transpose(1, 2, 0), self.own.transpose(1, 0, 2))
        return self.by_judge(across - mean[:, :, None] * mean[:, None])

    def curvature_of(
        self, design: Float[np.ndarray, "place set entry"], expected: np.ndarray
    ) -> Matrix:
        """Return the negative curvature of the log-likelihood in what has such a design."""
        flat = design.reshape(-1, design.shape[2])
        weighted = flat * expected.reshape(-1, 1)
        mean = weighted.reshape(design.shape).sum(0) / np.sqrt(self.number)[:, None]
        return np.asarray(weighted.T @ flat - mean.T @ mean)

    @cached_property
    def first(self) -> Any:
        """Judgements of one unit, of which priors are."""
        return self.program.data.first_unit()

    def given(self, values: Values) -> tuple[np.ndarray, np.ndarray]:
        """Return the shared utilities, and the Cholesky factor of the vectors' covariance."""
        factor = factors(self.program.model, self.names.own, self.first, values)
        return self.shared_utilities(self.shared_of(values)), np.asarray(factor)

    def shared_of(self, values: Values) -> Entries:
        """Return the shared sites as a vector."""
        parts = [np.ravel(values[name]) for name in self.names.shared]
        return np.concatenate([np.zeros(0), *parts])

    def own_of(self, values: Values) -> Vectors:
        """Return the vectors of all judges."""
        return np.concatenate([np.asarray(values[name]) for name in self.names.own], axis=1)

    def scales_of(self, values: Values) -> Entries:
        """Return the scales of the entries."""
        return np.concatenate([np.asarray(values[name]) for name in self.names.scales])

    def both_of(self, values: Values) -> Entries:
        """Return the shared sites and the scales as a vector."""
        return np.concatenate([self.shared_of(values), self.scales_of(values)])

    def put(self, values: Values, **parts: np.ndarray) -> Values:
        """Return the values with new vectors (``own``), ``shared`` sites or ``scales``."""
        new = dict(values)
        for kind in ("shared", "scales"):
            if kind in parts:
                new |= split(parts[kind], values, getattr(self.names, kind))
        if "own" in parts:
            widths = [np.shape(values[name])[1] for name in self.names.own]
            pieces = np.split(parts["own"], np.cumsum(widths)[:-1], axis=1)
            new |= dict(zip(self.names.own, pieces, strict=True))
        return new


def panel_of(program: Program[Any], values: Values) -> Panel:
    """Read the designs of a program, and check that its utilities are affine as it declares."""
    names, model, data = names_of(program), program.model, program.data
    read = jax.tree.map(np.asarray, designs(model, names, data, values))
    check(program, names, read, values)
    judge, weight = np.asarray(data.codes(data.judge)), np.asarray(data.weight, np.float64)
    row = np.flatnonzero(weight > 0)
    row = row[np.argsort(judge[row], kind="stable")]
    shared, own, offset, chosen = (
        np.ascontiguousarray(np.swapaxes(one[row], 0, 1).astype(float))
        for one in (read.shared, read.own, read.offset, np.asarray(data.chosen))
    )
    prior = jax.tree.map(np.asarray, block_prior(model, data.first_unit(), values, names.shared))
    of_sets = chosen, weight[row], len(data.coords[data.judge])
    read_off = names, judge[row], shared, own, offset
    return Panel(program, *read_off, *of_sets, row, prior, _common(shared, own))


@partial(jax.jit, static_argnums=(0, 1))
def factors(model: Model[Any], own: Sites, row: Any, values: Values) -> Array:
    """Return the Cholesky factor of the covariance of the vectors, block by block."""
    traced = trace(model, row, values)
    return jax.scipy.linalg.block_diag(*(_factor(traced[name]["fn"]) for name in own))


def _factor(fn: dist.Distribution) -> Array:
    fn = unwrapped(fn)
    if isinstance(fn, dist.MultivariateNormal):
        factor: Array = jnp.asarray(fn.scale_tril)
        return factor.reshape(-1, *factor.shape[-2:])[0]
    return jnp.diag(jnp.atleast_2d(fn.scale)[0])


def _common(shared: np.ndarray, own: np.ndarray) -> Float[np.ndarray, "shared own"]:
    """Return the designs of the vectors as combinations of those of the shared sites."""
    flat, columns = (design.reshape(-1, design.shape[2]) for design in (shared, own))
    common = np.linalg.lstsq(flat, columns, rcond=None)[0]
    off = np.abs(flat @ common - columns).max(0, initial=0.0)
    there = off < _SAME * np.abs(columns).max(0, initial=1e-300)
    common[np.abs(common) < _SAME] = 0.0
    return np.asarray(common * there)


def log_t(square: np.ndarray, size: int, freedom: int) -> np.ndarray:
    """Log density of a t distribution, but for a constant, at the square of a distance."""
    return np.asarray(-(freedom + size) / 2 * np.log1p(square / freedom))


# Largest relative difference between utilities and those by the designs.
_TOLERANCE = 1e-6


class Names(NamedTuple):
    """Sites of a panel."""

    own: Sites
    scales: Sites
    shared: Sites
    hyper: Sites


def names_of(program: Program[Any]) -> Names:
    """Return the sites of a panel."""
    own = tuple(one.site for one in facts_of(program.model, Own))
    scales = tuple(one.scale for one in facts_of(program.model, Own))
    rest = [name for name in program.sites if name not in own + scales]
    shared = tuple(name for name in rest if is_unbounded(program.supports, name))
    return Names(own, scales, shared, tuple(name for name in rest if name not in shared))


class Designs(NamedTuple):
    """Designs of the positions of sets."""

    shared: Array
    own: Array
    offset: Array
    utility: Array


@partial(jax.jit, static_argnums=(0, 1))
def designs(model: Model[Any], names: Names, data: Any, values: Values) -> Designs:
    """Read the designs at some values, by derivatives of the utilities."""
    values = {name: jnp.asarray(value, float) for name, value in values.items()}

    def utility(vectors: Values) -> Array:
        fn = trace(model, data, values | vectors)[model.observed]["fn"]
        return jnp.asarray(fn.utility, float)

    at = {name: values[name] for name in (*names.own, *names.shared)}
    here, along = jax.linearize(utility, at)
    zero = jax.tree.map(jnp.zeros_like, at)
    # All judges have a direction in common: no row has two of them.
    own = [
        along(zero | {name: zero[name].at[:, place].set(1.0)})
        for name in names.own
        for place in range(values[name].shape[1])
    ]
    shared = [
        along(zero | {name: zero[name].ravel().at[place].set(1.0).reshape(zero[name].shape)})
        for name in names.shared
        for place in range(values[name].size)
    ]
    empty = jnp.zeros((*here.shape, 0))
    of_shared = jnp.stack(shared, axis=-1) if shared else empty
    return Designs(of_shared, jnp.stack(own, axis=-1), here - along(at), here)


def check(program: Program[Any], names: Names, read: Designs, values: Values) -> None:
    """Raise unless the utilities at another point are those by the designs."""
    there = scattered(values, program.supports, np.random.default_rng(0), least=0.3)
    rng, data = np.random.default_rng(1), program.data
    for name in (*names.own, *names.shared):
        there[name] = rng.normal(size=np.shape(values[name]))
    actual = np.asarray(designs(program.model, names, data, there).utility)
    own = np.concatenate([there[name] for name in names.own], axis=1)
    shared = np.concatenate([np.zeros(0), *(np.ravel(there[name]) for name in names.shared)])
    judge = np.asarray(data.codes(data.judge))
    claimed = read.offset + read.shared @ shared + (read.own * own[judge][:, None]).sum(-1)
    error = float(np.max(np.abs(claimed - actual) / (1 + np.abs(actual)), initial=0.0))
    if not error < _TOLERANCE:
        raise NotConjugateError(
            f"{program.model.title} declares vectors of single judges, {names.own}, in which, and"
            f" in {names.shared}, utilities are affine with factors that depend on no site; they"
            f" are not: predicted and actual utilities differ by {error:.3g} (relative; at most"
            f" {_TOLERANCE:g})"
        )

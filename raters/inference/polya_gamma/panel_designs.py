"""Designs of choices in which each judge has a vector of their own, read off the program."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from raters.errors import NotConjugateError
from raters.inference.polya_gamma.sets import is_unbounded
from raters.model import Model, Values
from raters.program import Program, scattered, trace

# Largest relative difference between utilities and those by the designs.
_TOLERANCE = 1e-6


class Names(NamedTuple):
    """Sites of a panel."""

    own: tuple[str, ...]
    scales: tuple[str, ...]
    shared: tuple[str, ...]
    hyper: tuple[str, ...]


def names_of(program: Program[Any]) -> Names:
    """Return the sites of a panel."""
    own = tuple(one.site for one in program.model.own)
    scales = tuple(one.scale for one in program.model.own)
    rest = [name for name in program.sites if name not in own + scales]
    shared = tuple(name for name in rest if is_unbounded(program.supports, name))
    return Names(own, scales, shared, tuple(name for name in rest if name not in shared))


class Designs(NamedTuple):
    """Designs by row, and the sets of the rows."""

    shared: Array
    own: Array
    offset: Array
    utility: Array
    chosen: Array
    code: Array
    number: Array


@partial(jax.jit, static_argnums=(0, 1))
def designs(model: Model[Any], names: Names, data: Any, values: Values) -> Designs:
    """Read the designs at some values, by derivatives of the utilities."""
    values = {name: jnp.asarray(value, float) for name, value in values.items()}

    def utility(vectors: Values) -> Array:
        return jnp.asarray(
            trace(model, data, values | vectors)[model.observed]["fn"].utility, float
        )

    held = {name: values[name] for name in (*names.own, *names.shared)}
    here, along = jax.linearize(utility, held)
    zero = jax.tree.map(jnp.zeros_like, held)
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
    empty = jnp.zeros((len(here), 0))
    site = trace(model, data, values)[model.observed]
    fn, chosen = site["fn"], jnp.asarray(site["value"], float)
    number = jnp.ones(fn.num_sets) if fn.count is None else jnp.asarray(fn.count, float)
    return Designs(
        jnp.stack(shared, axis=1) if shared else empty,
        jnp.stack(own, axis=1),
        here - along(held),
        here,
        chosen,
        jnp.asarray(fn.set),
        number,
    )


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
    claimed = read.offset + read.shared @ shared + (read.own * own[judge]).sum(1)
    error = float(np.max(np.abs(claimed - actual) / (1 + np.abs(actual)), initial=0.0))
    if not error < _TOLERANCE:
        raise NotConjugateError(
            f"{program.model.title} declares vectors of single judges, {names.own}, in which, and"
            f" in {names.shared}, utilities are affine with factors that depend on no site; they"
            f" are not: predicted and actual utilities differ by {error:.3g} (relative; at most"
            f" {_TOLERANCE:g})"
        )

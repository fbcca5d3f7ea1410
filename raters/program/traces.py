"""Runs of a model's program that record its sites."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from threading import RLock
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key
from numpyro import handlers

from raters.judgements.together import Together
from raters.model import Model, Values
from raters.program.whitening import white_name, whitened

Keys = Key[Array, " draw"]
# NumPyro has one stack of effect handlers for all threads, such as those of chains.
_ONE_AT_A_TIME = RLock()


def models_of(model: Model[Any]) -> Mapping[str, Model[Any]]:
    """Model of each kind of judgement by its name; of one kind the model itself, by no name."""
    several: Any = model
    return several.parts if issubclass(model.data_type, Together) else {"": model}


def within(part: str, name: str) -> str:
    """Name that results have for something of a kind of judgement, which may have no name."""
    return f"{part}.{name}" if part else name


def observed_sites(model: Model[Any]) -> tuple[str, ...]:
    """Name of the observed site of each kind of judgement."""
    return tuple(within(part, one.observed) for part, one in models_of(model).items())


def trace(
    model: Model[Any], data: Any, values: Values, white: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The program's trace by site, with some sites set to values, those of some of which are white,
    and the others drawn."""
    named = {white_name(name) if name in white else name: value for name, value in values.items()}
    return _run(handlers.substitute(whitened(model, white), named), data)


def skeleton(model: Model[Any], data: Any) -> dict[str, Any]:
    """The program's trace at any values inside the supports; nothing is drawn or compiled."""
    feasible = partial(_feasible, observed_sites(model))
    return _run(handlers.substitute(model, substitute_fn=feasible), data)


def _run(program: Callable[..., None], data: Any) -> dict[str, Any]:
    """Run a program under a fixed key, in one thread at a time."""
    with _ONE_AT_A_TIME:
        seeded = handlers.seed(program, jax.random.key(0))
        sites: dict[str, Any] = handlers.trace(seeded).get_trace(data)
    return sites


@partial(jax.jit, static_argnums=(0, 1))
def prior_draws(model: Model[Any], names: tuple[str, ...], data: Any, keys: Keys) -> Values:
    """Values of these sites drawn from the prior, one for each key."""

    def draw(key: Key[Array, ""]) -> Values:
        sites = handlers.trace(handlers.seed(model, key)).get_trace(data)
        return {name: sites[name]["value"] for name in names}

    return jax.lax.map(draw, keys)


def _feasible(observed: tuple[str, ...], site: dict[str, Any]) -> Any:
    """Any value in a site's support."""
    if site["type"] != "sample" or site["is_observed"]:
        return None
    fn = site["fn"]
    if site["name"] in observed:
        return jnp.zeros(fn.shape())
    return fn.support.feasible_like(jnp.zeros(fn.shape()))


def read_by(function: Callable[[Values], Any], values: Values) -> set[str]:
    """Names of the values on which an array depends, or might."""
    program = jax.make_jaxpr(function)(values).jaxpr
    needed = {id(program.outvars[0])}
    for equation in reversed(program.eqns):
        if any(id(variable) in needed for variable in equation.outvars):
            needed |= {id(variable) for variable in equation.invars}
    inputs = zip(sorted(values), program.invars, strict=True)
    return {name for name, variable in inputs if id(variable) in needed}

"""Checks that draws are as fitted, finite, in their supports, and enough; functions of draws."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Bool, Float
from numpyro.distributions import constraints

from raters.errors import DataError, refuse
from raters.judgements.names import names_array
from raters.model import Model, Values
from raters.program import Program, Site

# Single precision may leave a support by rounding: by less than this share of its width, or of 1.
_ROUNDING = 1e-4


def check_posterior(
    program: Program[Any], result: xr.DataTree, group: str = "posterior", parameter: str = "result"
) -> None:
    """Raise unless a result has finite draws of each site, inside its support."""
    tree: Any = result.children.get(group, {})
    lead = () if group == "mode" else ("chain", "draw")
    for name, site in program.sites.items():
        draws, dims = tree.get(name), (*lead, *site.dims)
        _check_array(program, draws, f"draws of {name!r}", dims, site.shape, parameter)
        check_values(draws.values, name, site, parameter)


def check_values(values: Float[np.ndarray, " ..."], name: str, site: Site, parameter: str) -> None:
    """Raise unless the values of a site are finite, and inside its support."""
    _check_none(~np.isfinite(values), name, "not finite", parameter)
    _check_none(_outside(values, site), name, "outside of its support", parameter)


def check_responsibility(program: Program[Any], result: xr.DataTree) -> None:
    """Raise unless a result has the probability of each latent class of each unit."""
    latent = program.latent
    assert latent is not None
    group: Any = result.children.get(latent.group, {})
    probs, shape = group.get("responsibility"), (program.num_units, latent.size)
    _check_array(program, probs, "probabilities of classes", latent.axes, shape, "result")
    _check_none(~np.isfinite(probs.values).all(-1), latent.group, "not finite", "result")
    _check_none(_off_simplex(probs.values), latent.group, "no probabilities", "result")


def _check_array(
    program: Program[Any],
    values: Any,
    what: str,
    dims: tuple[str, ...],
    shape: tuple[int, ...],
    parameter: str,
) -> None:
    """Raise unless an array of a result has the axes, the size and the names that were fitted."""
    names = {axis: names_array(known).astype(str) for axis, known in program.coords.items()}
    same = values is not None and values.dims == dims and values.dtype.kind in "iuf" and values.size
    if not (
        same
        and values.shape[len(dims) - len(shape) :] == shape
        and {"chain", "draw"} & set(dims) <= set(values.coords)
        and all(
            np.array_equal(np.asarray(values[axis], str), names[axis])
            for axis in dims
            if axis in names and axis in values.coords
        )
    ):
        problem = f"does not hold the {what} as they were fitted, along {dims}"
        expected = f"pass a result, as fitted with {program.model!r} or as read back from its file"
        instead = "rt.fit(model, data, seed=0)"
        refuse(parameter, problem=problem, expected=expected, instead=instead)


def check_finite(result: xr.DataTree) -> None:
    """Raise unless all draws in a result are finite, whatever it was fitted with."""
    for name, draws in result["posterior"].data_vars.items():
        if draws.dtype.kind in "iuf":
            _check_none(~np.isfinite(draws.values), str(name), "not finite", "result")


def _check_none(wrong: Bool[np.ndarray, " ..."], name: str, what: str, parameter: str) -> None:
    """`DataError` for values that are wrong."""
    if wrong.any():
        problem = (
            f"holds {int(wrong.sum()):,} of {wrong.size:,} values of {name!r} that are"
            f" {what}, as after a fit that failed"
        )
        expected = "pass a result as it was fitted, by settings or a back-end that succeed"
        instead = "rt.fit(model, data, seed=0), and heed its warnings"
        refuse(parameter, problem=problem, expected=expected, instead=instead, error=DataError)


def _off_simplex(values: Float[np.ndarray, " ..."]) -> Bool[np.ndarray, " ..."]:
    """True for each vector that is none of probabilities, by more than rounding."""
    off = np.abs(values.sum(-1) - 1) > _ROUNDING
    return np.asarray(off | (values.min(-1) < -_ROUNDING))


def _outside(values: Float[np.ndarray, " ..."], site: Site) -> Bool[np.ndarray, " ..."]:
    """True for each value outside of a support by more than rounding."""
    if site.support is constraints.simplex:
        return _off_simplex(values)
    low, high = (getattr(site.support, end, None) for end in ("lower_bound", "upper_bound"))
    if low is None and high is None:
        return ~np.asarray(site.support(values))
    slack = _ROUNDING * (1.0 if low is None or high is None else np.asarray(high - low))
    wrong = np.zeros(values.shape, bool)
    if low is not None:
        wrong |= values < np.asarray(low) - slack
    if high is not None:
        wrong |= values > np.asarray(high) + slack
    return wrong


def check_several(result: xr.DataTree, purpose: str) -> None:
    """Raise unless a result has two draws or more."""
    sizes = result["posterior"].sizes
    if (num_draws := sizes["chain"] * sizes["draw"]) < 2:
        problem = f"has {num_draws} draw, and {purpose}"
        refuse("result", problem=problem, expected="fit with more draws")


@partial(jax.jit, static_argnums=(0, 1))
def under_draws(
    function: Callable[..., Any], model: Model[Any], data: Any, draws: Values
) -> dict[str, jax.Array] | jax.Array:
    """A function of a model, its data and values under each draw, compiled."""
    return jax.lax.map(partial(function, model, data), draws)


def in_double(function: Callable[..., Any], program: Program[Any], draws: Values) -> Any:
    """As `under_draws`, of a program in double precision; arrays of NumPy."""
    with jax.enable_x64(True):
        values = {name: np.asarray(value, np.float64) for name, value in draws.items()}
        data = jax.tree.map(jnp.asarray, program.data)
        return jax.tree.map(np.asarray, under_draws(function, program.model, data, values))

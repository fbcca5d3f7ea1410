"""Results: draws and data as a tree with names on every axis, and how to read them back."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Bool, Float
from numpyro.distributions import constraints

from raters.errors import DataError, public_name, refuse
from raters.errors.validation import instance
from raters.fitting.storage import from_json, shown, to_json, worded
from raters.inference.base import Draws
from raters.judgements.base import Judgements
from raters.judgements.names import check_result, names_array, warn_data
from raters.judgements.stored import imported_class, qualified_name
from raters.judgements.together import Together
from raters.kinds import registered_kinds
from raters.model import Model, Values
from raters.program import Program, Site, models_of, trace

# Deterministic sites are stored up to so many numbers.
_MOST_DETERMINISTIC = 20_000_000


def check_model(model: Any) -> None:
    """Raise unless this is a model, and not its class."""
    instance("model", model, Model, "a model", "rt.BTL()")


def check_data(data: Any, name: str, model: Model[Any]) -> None:
    """Raise unless these are judgements of the model's kind."""
    wanted, is_joint = model.data_type.__name__, "" not in models_of(model)
    if not isinstance(data, Judgements):
        kinds = [kind for kind in registered_kinds() if kind.data is model.data_type]
        read = public_name(kinds[0].readers[0].read) if kinds else wanted
        instead = "rt.judgements.Together.of({...})" if is_joint else f"{read}(table, ...)"
        expected = f"it must be judgements ({wanted}); read a table first"
        refuse(name, data, expected=expected, instead=instead)
    if not isinstance(data, model.data_type):
        models = [kind.default for kind in registered_kinds() if isinstance(data, kind.data)]
        instead = f"{public_name(type(models[0]))}()" if models else ""
        if isinstance(data, Together):
            instead = "rt.models.JointModel({...})"
        elif is_joint:
            instead = "rt.judgements.Together.of({...})"
        problem = f"is {type(data).__name__}, and {model.title} is a model of {wanted}"
        refuse(name, data, problem, "choose a model of these judgements", instead=instead or None)
    data.check()


def as_tree(program: Program[Any], draws: Draws, facts: dict[str, Any]) -> xr.DataTree:
    """Draws and data as a tree with names on every axis."""
    sites, data = program.sites, program.data
    names = {axis: names_array(known) for axis, known in program.coords.items()}

    def dataset(variables: dict[str, tuple[tuple[str, ...], Any]]) -> xr.Dataset:
        made = xr.Dataset(variables, attrs={"inference_library": "raters"})
        coords = {axis: names.get(str(axis), np.arange(made.sizes[axis])) for axis in made.dims}
        return made.assign_coords(coords)

    def own(
        values: dict[str, Float[np.ndarray, " ..."]], *lead: str
    ) -> dict[str, tuple[tuple[str, ...], Float[np.ndarray, " ..."]]]:
        return {name: (lead + sites[name].dims, value) for name, value in values.items()}

    groups = {"posterior": dataset(own(draws.values, "chain", "draw"))}
    if draws.stats:
        stats: Any = {name: (("chain", "draw"), value) for name, value in draws.stats.items()}
        groups["sample_stats"] = dataset(stats)
    if draws.mode:
        groups["mode"] = dataset(own(draws.mode))
    if draws.history:
        axis = {"elbo": "step"}
        groups["optimisation"] = xr.Dataset(
            {name: (axis.get(name, "sweep"), trace) for name, trace in draws.history.items()}
        )
    for group, variables in data.groups().items():
        groups[group] = dataset(variables)
    tree = xr.DataTree.from_dict(groups)
    tree.attrs.update(facts | data.flags() | {"data": qualified_name(type(data))})
    return tree


def add_deterministic(program: Program[Any], result: xr.DataTree) -> None:
    """Add the deterministic sites under each draw to the posterior, up to so many numbers."""
    if not program.deterministic:
        return
    values, sizes = draws_of(program, result)
    data = jax.tree.map(jnp.asarray, program.data)
    draw = {name: value[0] for name, value in values.items()}
    shapes = jax.eval_shape(lambda draw: _deterministic(program.model, data, draw), draw)
    number = sizes[0] * sizes[1] * sum(math.prod(site.shape) for site in shapes.values())
    if number > _MOST_DETERMINISTIC:
        warn_data(worded("large_deterministic", sites=list(shapes), number=number))
        return
    with jax.enable_x64(True):
        drawn = under_draws(_deterministic, program.model, data, values)
    posterior = result["posterior"].to_dataset()
    for name, value in drawn.items():
        # A plate of another size than the site's axis, as one around a mean, is no name for it.
        named = zip(program.deterministic[name], value.shape[1:], strict=True)
        axes = [
            axis if posterior.sizes.get(axis, length) == length else f"{name}_dim_{place}"
            for place, (axis, length) in enumerate(named)
        ]
        array = np.asarray(value).reshape(*sizes, *value.shape[1:])
        posterior[name] = (("chain", "draw", *axes), array)
    result["posterior"] = posterior


def _deterministic(model: Model[Any], data: Any, values: Values) -> Values:
    """Deterministic sites at values of the others."""
    sites = trace(model, data, values).items()
    return {name: site["value"] for name, site in sites if site["type"] == "deterministic"}


def data_of(result: Any) -> Any:
    """The data that a result was fitted to."""
    check_result(result)
    container: Any = imported_class(result.attrs["data"], (Judgements,))
    return container.from_result(result)


def model_of(result: xr.DataTree) -> Model[Any]:
    """The model that a result was fitted with."""
    check_result(result)
    return from_json(result.attrs.get("model", ""), (Model,), "model")


def program_of(model: Model[Any], result: xr.DataTree, *, several: bool = False) -> Program[Any]:
    """The program that was fitted: the model on the data in the result; of `several` kinds of
    judgement only where that is asked for."""
    check_model(model)
    if not several:
        check_one_kind(model)
    data = data_of(result)
    check_data(data, "result", model)
    if (fitted := stored_model(result)) and fitted != to_json(model):
        problem = f"is not the model of this result: it was fitted with {shown(fitted)}"
        refuse("model", model, problem, "pass that model")
    program = Program(model, data)
    check_posterior(program, result)
    if (latent := program.latent) is not None:
        probs: Any = result.children.get(latent.group, {})
        site = Site((program.num_units, latent.size), latent.axes, constraints.simplex, "")
        _check_site(program, probs.get("responsibility"), latent.group, site)
    return program


def check_one_kind(model: Model[Any]) -> None:
    """Raise for a model of several kinds of judgement, where one is asked for."""
    parts = models_of(model)
    if "" not in parts:
        first = next(iter(parts))
        problem = "is of several kinds of judgement, and this is asked of one kind at a time"
        expected = f"take one of {', '.join(map(repr, parts))}, and pass its model and its result"
        instead = f"rt.fitting.part(model, result, {first!r})"
        refuse("model", model, problem, expected, instead=instead)


def stored_model(result: xr.DataTree) -> str:
    """Text of the model of a result; empty where it does not say."""
    text = result.attrs.get("model", "")
    return text if isinstance(text, str) else repr(text)


def draws_of(
    program: Program[Any], result: xr.DataTree, most: int | None = None, seed: int = 0
) -> tuple[Values, tuple[int, int]]:
    """Posterior draws with one leading axis, and the numbers of chains and draws."""
    posterior = result["posterior"]
    values = {name: np.asarray(posterior[name].values) for name in program.sites}
    return thinned(values, most, seed), (posterior.sizes["chain"], posterior.sizes["draw"])


def thinned(values: Values, most: int | None, seed: int) -> Values:
    """At most so many of the draws, at random, with one leading axis."""
    flat = {name: value.reshape(-1, *value.shape[2:]) for name, value in values.items()}
    total = max([len(value) for value in flat.values()], default=0)
    if most is None or total <= most:
        return flat
    rows = np.sort(np.random.default_rng(seed).choice(total, most, replace=False))
    return {name: value[rows] for name, value in flat.items()}


def lead_coords(result: Any) -> dict[str, np.ndarray]:
    """Numbers of the chains and the draws of a result."""
    return {axis: result["posterior"][axis].values for axis in ("chain", "draw")}


def identity_of(program: Program[Any]) -> str:
    """Digest of a model and its data, the same once a fit of them is saved and read."""
    model, data = program.model, program.data
    facts = [qualified_name(type(model)), repr(model), data.flags()]
    digest = hashlib.blake2b(json.dumps(facts).encode(), digest_size=16)
    for name, array in sorted(data.packed().items()):
        # Whatever precision and order of bytes a file gives them.
        values = np.ascontiguousarray(array, np.float64)
        digest.update(f"{name}{values.shape}".encode())
        digest.update(values)
    return digest.hexdigest()


# ---------------------------------------------------------------- checks of draws

# Single precision may leave a support by rounding: by less than this share of its width, or of 1.
_ROUNDING = 1e-4


def check_posterior(
    program: Program[Any], result: xr.DataTree, group: str = "posterior", parameter: str = "result"
) -> None:
    """Raise unless a result has finite draws of each site, inside its support."""
    tree: Any = result.children.get(group, {})
    lead = () if group == "mode" else ("chain", "draw")
    for name, site in program.sites.items():
        site = site._replace(dims=(*lead, *site.dims))
        _check_site(program, tree.get(name), name, site, parameter)


def check_values(values: Float[np.ndarray, " ..."], name: str, site: Site, parameter: str) -> None:
    """Raise unless the values of a site are finite, and inside its support."""
    _check_none(~np.isfinite(values), name, "not finite", parameter)
    _check_none(outside(values, site), name, "outside of its support", parameter)


def _check_site(
    program: Program[Any], values: Any, name: str, site: Site, parameter: str = "result"
) -> None:
    """Raise unless an array of a result has the axes, the size, the names and the support that were
    fitted; the shape of a site is that of its last axes."""
    dims, shape = site.dims, site.shape
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
        problem = f"does not hold the values of {name!r} as they were fitted, along {dims}"
        expected = f"pass a result, as fitted with {program.model!r} or as read back from its file"
        instead = "rt.fit(model, data, seed=0)"
        refuse(parameter, problem=problem, expected=expected, instead=instead)
    check_values(values.values, name, site, parameter)


def check_finite(result: xr.DataTree) -> None:
    """Raise unless all draws in a result are finite, whatever it was fitted with."""
    for name, draws in result["posterior"].data_vars.items():
        if draws.dtype.kind in "iuf":
            _check_none(~np.isfinite(draws.values), str(name), "not finite", "result")


def _check_none(wrong: Bool[np.ndarray, " ..."], name: str, what: str, parameter: str) -> None:
    """`DataError` for values that are wrong."""
    if wrong.any():
        values = f"{int(wrong.sum()):,} of {wrong.size:,} values of {name!r}"
        problem = f"holds {values} that are {what}, as after a fit that failed"
        expected = "pass a result as it was fitted, by settings or a back-end that succeed"
        instead = "rt.fit(model, data, seed=0), and heed its warnings"
        refuse(parameter, problem=problem, expected=expected, instead=instead, error=DataError)


def outside(values: Float[np.ndarray, " ..."], site: Site) -> Bool[np.ndarray, " ..."]:
    """True for each value outside of a support by more than rounding."""
    if site.support is constraints.simplex:
        off = np.abs(values.sum(-1) - 1) > _ROUNDING
        return np.asarray(off | (values.min(-1) < -_ROUNDING))
    low, high = (getattr(site.support, end, None) for end in ("lower_bound", "upper_bound"))
    if low is None and high is None:
        return ~np.asarray(site.support(values))
    slack = _ROUNDING * (1.0 if low is None or high is None else np.asarray(high - low))
    least = -np.inf if low is None else np.asarray(low) - slack
    most = np.inf if high is None else np.asarray(high) + slack
    return np.asarray((values < least) | (values > most))


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

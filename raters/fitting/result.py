"""Results: draws and data as a tree with names on every axis, and how to read them back."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from raters.errors import PACKAGE, DataWarning, public_name, refuse
from raters.errors.validation import instance
from raters.fitting.draws import check_posterior, check_responsibility, in_double, under_draws
from raters.fitting.storage import from_json, shown, to_json
from raters.inference.base import Draws
from raters.judgements.base import Judgements
from raters.judgements.names import check_result, names_array
from raters.judgements.stored import imported_class, qualified_name
from raters.judgements.together import Together
from raters.kinds import registered_kinds
from raters.model import Fit, Model, Values
from raters.program import Program, models_of, pointwise_log_likelihood, responsibility, trace

# `responsibilities` averages over as many draws as stay below this many numbers, and over this
# many at least.
_AVERAGED, _FEWEST = 40_000_000, 50
# Largest difference between probabilities that rounding makes.
_ROUNDING = 1e-12
# Deterministic sites are stored up to so many numbers.
_MOST_DETERMINISTIC = 20_000_000
# Numbers of one site, and draws of a chain, that a model is shown for its sentences about a fit: so
# many at most, but for the draws, and at least.
_SHOWN, _FEWEST_SHOWN = 2_000_000, 50


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
        sizes = {
            axis: size
            for axes, value in variables.values()
            for axis, size in zip(axes, np.shape(value), strict=True)
        }
        coords = {axis: names.get(axis, np.arange(size)) for axis, size in sizes.items()}
        return xr.Dataset(variables, coords=coords, attrs={"inference_library": "raters"})

    def own(
        values: dict[str, Float[np.ndarray, " ..."]], *lead: str
    ) -> dict[str, tuple[tuple[str, ...], Float[np.ndarray, " ..."]]]:
        return {name: (lead + sites[name].dims, value) for name, value in values.items()}

    groups = {"posterior": dataset(own(draws.values, "chain", "draw"))}
    if draws.stats:
        groups["sample_stats"] = dataset(
            {name: (("chain", "draw"), value) for name, value in draws.stats.items()}
        )
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
        warnings.warn(
            f"the deterministic sites {', '.join(shapes)} have {number:,} numbers in all draws, and"
            " are left out of the result; compute them from the other sites",
            DataWarning,
            skip_file_prefixes=PACKAGE,
        )
        return
    with jax.enable_x64(True):
        drawn = under_draws(_deterministic, program.model, data, values)
    posterior = result["posterior"].to_dataset()
    for name, value in drawn.items():
        # A plate of another size than the site's axis, as one around a mean, is no name for it.
        axes = [
            axis if posterior.sizes.get(axis, length) == length else f"{name}_dim_{place}"
            for place, (axis, length) in enumerate(
                zip(program.deterministic[name], value.shape[1:], strict=True)
            )
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


def program_of(model: Model[Any], result: xr.DataTree) -> Program[Any]:
    """The program that was fitted: the model on the data in the result."""
    check_one_kind(model)
    return whole_program_of(model, result)


def check_one_kind(model: Any) -> None:
    """Raise for a model of several kinds of judgement, where one is asked for."""
    check_model(model)
    parts = models_of(model)
    if "" not in parts:
        first = next(iter(parts))
        problem = "is of several kinds of judgement, and this is asked of one kind at a time"
        expected = (
            f"take one of the parts {', '.join(map(repr, parts))}, and pass its"
            " model and its result"
        )
        instead = f"rt.fitting.part(model, result, {first!r})"
        refuse("model", model, problem, expected, instead=instead)


def whole_program_of(model: Model[Any], result: xr.DataTree) -> Program[Any]:
    """The program that was fitted, also of several kinds of judgement; see `program_of`."""
    check_model(model)
    data = data_of(result)
    check_data(data, "result", model)
    if (fitted := stored_model(result)) and fitted != to_json(model):
        problem = f"is not the model of this result: it was fitted with {shown(fitted)}"
        refuse("model", model, problem, "pass that model")
    program = Program(model, data)
    check_posterior(program, result)
    if program.latent is not None:
        check_responsibility(program, result)
    return program


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


def fit_warnings(program: Program[Any], result: xr.DataTree) -> tuple[str, ...]:
    """Sentences of the model about a fit; see `raters.Model.warnings`."""
    draws = {name: np.asarray(result["posterior"][name].values) for name in program.sites}
    # A sentence about shares of the draws needs no more of them than show a share of a twentieth.
    chains, number = next(iter(draws.values())).shape[:2]
    largest = max(value[0, 0].size for value in draws.values())
    kept = max(_SHOWN // (largest * chains), _FEWEST_SHOWN)
    draws = {name: value[:, :: max(number // kept, 1)] for name, value in draws.items()}
    responsibility = None
    if program.latent is not None:
        table = result[program.latent.group]["responsibility"]
        responsibility = table.transpose(*program.latent.axes).values
    model, data = program.model, program.data
    known = set(model.warnings(data))
    sentences = model.warnings(data, Fit(draws, responsibility))
    return tuple(one for one in sentences if one not in known)


def pointwise(program: Program[Any], result: xr.DataTree) -> xr.Dataset:
    """Log-likelihood of each unit of the data under every draw, as a result stores it."""
    values, sizes = draws_of(program, result)
    # Computed in float32, the likeliest outcomes have equal log-likelihoods, and Pareto smoothing
    # refuses equal tails.
    table = in_double(pointwise_log_likelihood, program, values).astype(np.float32)
    variable = (("chain", "draw", program.unit), table.reshape(*sizes, -1))
    names = names_array(program.data.coords[program.unit])
    return xr.Dataset(
        {program.model.observed: variable}, lead_coords(result) | {program.unit: names}
    )


@partial(jax.jit, static_argnums=0)
def _mean_responsibility(model: Model[Any], data: Any, draws: Values) -> Float[Array, "unit class"]:
    num_draws = len(next(iter(draws.values())))

    def add(
        total: Float[Array, "unit class"], values: Values
    ) -> tuple[Float[Array, "unit class"], None]:
        return total + responsibility(model, data, values), None

    one = jax.eval_shape(
        lambda: responsibility(model, data, jax.tree.map(lambda value: value[0], draws))
    )
    return jax.lax.scan(add, jnp.zeros(one.shape), draws)[0] / num_draws


def responsibilities(program: Program[Any], result: xr.DataTree) -> xr.DataArray:
    """Posterior probability of each class of each unit, averaged over (evenly thinned) draws."""
    latent, data = program.latent, program.data
    assert latent is not None
    values, sizes = draws_of(program, result)
    num_draws = sizes[0] * sizes[1]
    keep = min(num_draws, max(_FEWEST, _AVERAGED // max(program.num_units * latent.size, 1)))
    rows = np.linspace(0, num_draws - 1, keep).astype(int)
    with jax.enable_x64(True):
        draws = {name: np.asarray(value[rows], np.float64) for name, value in values.items()}
        on_device = jax.tree.map(jnp.asarray, data)
        mean = np.asarray(_mean_responsibility(program.model, on_device, draws))
    coords = {axis: names_array(program.coords[axis]) for axis in latent.axes}
    return xr.DataArray(_evened(mean), dims=latent.axes, coords=coords, name="responsibility")


def _evened(probs: Float[np.ndarray, "unit class"]) -> Float[np.ndarray, "unit class"]:
    """Probabilities of which the largest are equal where rounding alone tells them apart."""
    largest = probs.max(axis=1, keepdims=True)
    return np.where(probs >= largest - _ROUNDING, largest, probs)


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

"""What a result holds: draws and data as a tree with names on every axis, and how to read them back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from raters._judgements import Judgements, check_result
from raters.data import Comparisons
from raters.errors import SettingError
from raters.inference._trace import latent_sites, pointwise_log_likelihood
from raters.labels import Labels
from raters.model import Model, Values, unit_of


def check_model(model: Any) -> None:
    """A model, not its class."""
    if not isinstance(model, Model):
        name = model.__name__ if isinstance(model, type) else type(model).__name__
        also = f"; write rt.{name}()" if isinstance(model, type) and issubclass(model, Model) else ""
        raise SettingError(f"the first argument must be a model, such as rt.BTL(); it is {name}{also}")


def check_data(data: Any, what: str, model: Model) -> None:
    """Comparisons or Labels, not the table that they are read from."""
    if not isinstance(data, Judgements):
        raise SettingError(
            f"{what} must be Comparisons or Labels; it is {type(data).__name__}. "
            "Read a table with rt.Comparisons.from_frame(table, winner=..., loser=...), "
            "or with rt.Labels.from_frame(table, item=..., annotator=..., label=...)"
        )
    if not isinstance(data, model.takes):
        raise SettingError(
            f"{type(model).__name__} is a model of {model.takes.__name__}; {what} is {type(data).__name__}. "
            "rt.BTL() and rt.ExtendedBTL() take Comparisons, rt.DawidSkene() and its kin take Labels"
        )


def as_tree(model: Model, data: Any, draws, facts: dict[str, Any]) -> xr.DataTree:
    """Draws and data as a tree with names on every axis."""
    sites = latent_sites(model, data)
    names = {axis: label_array(values) for axis, values in data.coords.items()}

    def dataset(variables: dict[str, tuple[tuple[str, ...], Any]]) -> xr.Dataset:
        sizes = {axis: size for axes, value in variables.values() for axis, size in zip(axes, np.shape(value), strict=True)}
        coords = {axis: names.get(axis, np.arange(size)) for axis, size in sizes.items()}
        return xr.Dataset(variables, coords=coords, attrs={"inference_library": "raters"})

    def own(values: dict[str, np.ndarray], *lead: str) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        return {name: (lead + sites[name].dims, value) for name, value in values.items()}

    groups = {"posterior": dataset(own(draws.values, "chain", "draw"))}
    if draws.stats:
        groups["sample_stats"] = dataset({name: (("chain", "draw"), value) for name, value in draws.stats.items()})
    if draws.mode:
        groups["mode"] = dataset(own(draws.mode))
    if draws.history:
        axis = {"elbo": "step"}
        groups["optimisation"] = xr.Dataset({name: (axis.get(name, "sweep"), trace) for name, trace in draws.history.items()})
    for group, variables in data.groups().items():
        groups[group] = dataset(variables)
    tree = xr.DataTree.from_dict(groups)
    tree.attrs.update(facts | data.flags() | {"data": type(data).__name__})
    return tree


def data_of(result: Any) -> Comparisons | Labels:
    """The data that a result was fitted to."""
    check_result(result)
    return (Labels if result.attrs.get("data") == "Labels" else Comparisons).from_result(result)


def label_array(values: Sequence[Any]) -> np.ndarray:
    """Names as a coordinate that NetCDF can hold: integers as they are, everything else as text."""
    if isinstance(values, range):
        return np.arange(values.start, values.stop, dtype=np.int32)
    if all(issubclass(kind, (int, np.integer)) and kind is not bool for kind in set(map(type, values))):
        return np.asarray(values, dtype=np.int64)
    return np.array([str(value) for value in values], dtype=object)


def draws_of(model: Model, result: xr.DataTree, most: int | None = None, seed: int = 0) -> tuple[Values, tuple[int, int]]:
    """Posterior draws with one leading axis (thinned at random to `most`), and the sizes of chain and draw."""
    posterior = result["posterior"]
    values = {}
    for name in _latent_names(model, result):
        array = np.asarray(posterior[name].values)
        values[name] = array.reshape(-1, *array.shape[2:])
    sizes = (posterior.sizes["chain"], posterior.sizes["draw"])
    if most is not None and sizes[0] * sizes[1] > most:
        rows = np.random.default_rng(seed).choice(sizes[0] * sizes[1], most, replace=False)
        values = {name: array[np.sort(rows)] for name, array in values.items()}
    return values, sizes


def _latent_names(model: Model, result: xr.DataTree) -> list[str]:
    names = list(latent_sites(model, data_of(result)))
    fitted = result.attrs.get("model", "another model")
    if missing := [name for name in names if name not in result["posterior"]]:
        raise SettingError(
            f"this result has no draws of {missing}: it was fitted with {fitted}, not {model!r}; pass that model"
        )
    if fitted != repr(model) and "model" in result.attrs:
        raise SettingError(f"this result was fitted with {fitted}, not {model!r}; pass that model")
    return names


def pointwise(model: Model, result: xr.DataTree, data: Any) -> xr.Dataset:
    """Log-likelihood of each unit of the data under every draw, as a result stores it."""
    values, sizes = draws_of(model, result)
    # Computed in float32, the likeliest outcomes have equal log-likelihoods, and Pareto smoothing refuses equal tails.
    with jax.enable_x64(True):
        values = {name: np.asarray(value, np.float64) for name, value in values.items()}
        table = np.asarray(_pointwise_draws(model, jax.tree.map(jnp.asarray, data), values), np.float32).reshape(*sizes, -1)
    coords = {axis: result["posterior"][axis].values for axis in ("chain", "draw")}
    axis, _ = unit_of(model, data)
    return xr.Dataset(
        {model.observed: (("chain", "draw", axis), table)}, coords=coords | {axis: label_array(data.coords[axis])}
    )


@partial(jax.jit, static_argnums=0)
def _pointwise_draws(model: Model, data: Any, draws: Values) -> jax.Array:
    return jax.lax.map(lambda values: pointwise_log_likelihood(model, data, values), draws)

"""Contract of a result."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from raters.errors.validation import checked, instance
from raters.fitting.parts import part
from raters.fitting.result import check_data, data_of
from raters.fitting.storage import to_json
from raters.judgements.base import Judgements
from raters.judgements.names import names_array
from raters.model import Model, Shift
from raters.program import LatentClass, Program, Site
from raters.testing._blocks import densities


@checked
def check_result(result: xr.DataTree, model: Model[Any], data: Judgements) -> None:
    """Check that a result has what every verb of raters, and ArviZ, expects.

    Parameters
    ----------
    result : xarray.DataTree
    model : Model
        The model that was fitted.
    data : Judgements
        The data that it was fitted to.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=100, seed=0)
    >>> rt.testing.check_result(rt.fit(rt.BTL(), votes, seed=0, progress=False),
    ...                         rt.BTL(), votes)
    """
    check_data(data, "data", model)
    instance("result", result, xr.DataTree, "a result", "rt.fit(model, data, seed=0)")
    missing = {"posterior", "observed_data", "constant_data"} - set(result.children)
    assert not missing, f"the result has no group {missing}; it has {list(result.children)}"
    program = Program(model, data)
    sites = program.sites
    posterior = result["posterior"].to_dataset()
    # Deterministic sites are left out where they are many.
    unknown = set(posterior.data_vars) - set(sites) - set(program.deterministic)
    assert not unknown | (set(sites) - set(posterior.data_vars)), (
        f"posterior holds {sorted(map(str, posterior.data_vars))}; the model has"
        f" {sorted((*sites, *program.deterministic))}"
    )
    for name, site in sites.items():
        _check_draws(posterior[name], name, site, data)
    for symmetry in model.symmetries:
        if isinstance(symmetry, Shift):
            dims = sites[symmetry.site].dims
            along = dims if symmetry.axis is None else dims[symmetry.axis]
            off = float(np.abs(posterior[symmetry.site].mean(along)).max())
            assert off < 1e-4, f"draws of {symmetry.site!r} are not centred: a mean is {off:.3g}"
    for attribute in (
        "model",
        "backend",
        "seed",
        "seconds",
        "raters_version",
        "numpyro_version",
        "jax_version",
    ):
        assert attribute in result.attrs, (
            f"the result does not record {attribute!r}; it records {sorted(map(str, result.attrs))}"
        )
    assert result.attrs["model"] == to_json(model), (
        f"the result says its model is {result.attrs['model']}, not {model!r}"
    )
    _check_data_kept(result, data)
    for name, own in program.parts.items() if program.is_joint else ():
        check_result(part(model, result, name).result, own.model, own.data)
    if "log_likelihood" in result.children and not program.is_joint:
        _check_log_likelihood(result, model, data)
    if latent := program.latent:
        _check_classes(result, data, latent)


def _check_draws(draws: xr.DataArray, name: str, site: Site, data: Judgements) -> None:
    dims = ("chain", "draw", *site.dims)
    assert draws.dims == dims, f"draws of {name!r} have axes {draws.dims}, not {dims}"
    for axis in dims:
        assert axis in draws.coords, f"axis {axis!r} of {name!r} has no names"
        if axis in data.coords:
            expected = names_array(data.coords[axis])
            assert np.array_equal(draws[axis].values, expected), (
                f"axis {axis!r} of {name!r} is not named as the data name it"
            )
    bad = int(np.sum(~np.isfinite(draws.values)))
    assert bad == 0, f"{bad} of {draws.size} draws of {name!r} are not finite"
    outside = int(np.sum(~np.asarray(site.support(jnp.asarray(draws.values)))))
    assert outside == 0, f"{outside} of {draws.size} draws of {name!r} are outside its support"


def _check_data_kept(result: xr.DataTree, data: Any) -> None:
    kept = data_of(result)
    assert type(kept) is type(data), (
        f"the result keeps {type(kept).__name__}; the data are {type(data).__name__}"
    )
    for name in (field.name for field in dataclasses.fields(data)):
        one, other = getattr(kept, name), getattr(data, name)
        if isinstance(other, (tuple, range)):
            one, other = list(map(str, one)), list(map(str, other))
        assert np.array_equal(one, other), f"the data kept in the result differ in {name!r}"


def _check_classes(result: xr.DataTree, data: Judgements, latent: LatentClass) -> None:
    assert latent.group in result.children, (
        f"the result has no group {latent.group!r}; it has {list(result.children)}"
    )
    responsibility = result[latent.group]["responsibility"]
    assert responsibility.dims == latent.axes, (
        f"responsibilities have axes {responsibility.dims}, not {latent.axes}"
    )
    for axis in set(latent.axes) & set(data.coords):
        expected = names_array(data.coords[axis])
        assert np.array_equal(responsibility[axis].values, expected), (
            f"axis {axis!r} of responsibilities is not named as in the data"
        )
    low = float(responsibility.min())
    off = float(np.abs(responsibility.sum(latent.axes[1]) - 1).max())
    assert min(low, 1e-5 - off) >= 0, (
        f"responsibilities are no probabilities: the least is {low:.3g}, a sum is off by {off:.3g}"
    )
    column = None if data.known is None else getattr(data, data.known)
    if column is not None and latent.unit == data.unit:
        known = np.flatnonzero(np.asarray(column) >= 0)
        right = responsibility.values[known, np.asarray(column)[known]]
        assert np.all(right > 1 - 1e-5), (
            f"an item whose class is known has it with probability {right.min():.3g}"
        )


def _check_log_likelihood(result: xr.DataTree, model: Model[Any], data: Any) -> None:
    stored = result["log_likelihood"][model.observed]
    dims = ("chain", "draw", Program(model, data).unit)
    assert stored.dims == dims, f"the log-likelihood has axes {stored.dims}, not {dims}"
    with jax.enable_x64(True):
        last = {
            str(name): jnp.asarray(draws.values[-1, -1], float)
            for name, draws in result["posterior"].data_vars.items()
        }
        expected = np.asarray(densities(model, data, last).pointwise)
    wrong = float(np.max(np.abs(stored.values[-1, -1] - expected)))
    assert wrong < 1e-3 * (1 + np.abs(expected).max()), (
        f"the stored log-likelihood is off by {wrong:.3g}"
    )

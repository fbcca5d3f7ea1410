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
    program = Program(model, data)
    latent, sites = program.latent, program.sites
    groups = {"posterior", "observed_data", "constant_data"} | ({latent.group} if latent else set())
    missing = groups - set(result.children)
    assert not missing, f"the result has no group {missing}; it has {list(result.children)}"
    posterior = result["posterior"].to_dataset()
    # Deterministic sites are left out where they are many.
    wrong = set(posterior.data_vars) - {*program.deterministic} ^ {*sites}
    assert not wrong, f"the sites {wrong} are of the posterior or the model alone"
    for name, site in sites.items():
        _check_draws(posterior[name], name, site, data)
    for symmetry in model.symmetries:
        if isinstance(symmetry, Shift):
            dims = sites[symmetry.site].dims
            along = dims if symmetry.axis is None else dims[symmetry.axis]
            off = float(np.abs(posterior[symmetry.site].mean(along)).max())
            assert off < 1e-4, f"draws of {symmetry.site!r} are not centred: a mean is {off:.3g}"
    versions = [f"{name}_version" for name in ("raters", "numpyro", "jax")]
    for attribute in ("model", "backend", "seed", "seconds", *versions):
        assert attribute in result.attrs, f"the result does not record {attribute!r}"
    stored = result.attrs["model"]
    assert stored == to_json(model), f"the result says its model is {stored}, not {model!r}"
    _check_data_kept(result, data)
    for name, own in program.parts.items() if program.is_joint else ():
        check_result(part(model, result, name).result, own.model, own.data)
    if "log_likelihood" in result.children and not program.is_joint:
        _check_log_likelihood(result, model, data)
    if latent:
        _check_classes(result, data, latent)


def _check_draws(draws: xr.DataArray, name: str, site: Site, data: Judgements) -> None:
    dims = ("chain", "draw", *site.dims)
    assert draws.dims == dims, f"draws of {name!r} have axes {draws.dims}, not {dims}"
    _check_names(draws, data)
    bad = int(np.sum(~np.isfinite(draws.values)))
    assert bad == 0, f"{bad} of {draws.size} draws of {name!r} are not finite"
    outside = int(np.sum(~np.asarray(site.support(jnp.asarray(draws.values)))))
    assert outside == 0, f"{outside} of {draws.size} draws of {name!r} are outside its support"


def _check_names(array: xr.DataArray, data: Judgements) -> None:
    """Axes have names, and those of the data where these have some."""
    for axis in map(str, array.dims):
        assert axis in array.coords, f"axis {axis!r} of {array.name!r} has no names"
        names = array[axis].values
        equal = np.array_equal(names, names_array(data.coords.get(axis, tuple(names))))
        assert equal, f"axis {axis!r} of {array.name!r} is not named as the data name it"


def _check_data_kept(result: xr.DataTree, data: Any) -> None:
    kept = data_of(result)
    kinds = type(kept), type(data)
    assert kinds[0] is kinds[1], f"the result keeps {kinds[0]}; the data are {kinds[1]}"
    for name in (field.name for field in dataclasses.fields(data)):
        one, other = getattr(kept, name), getattr(data, name)
        if isinstance(other, (tuple, range)):
            one, other = list(map(str, one)), list(map(str, other))
        assert np.array_equal(one, other), f"the data kept in the result differ in {name!r}"


def _check_classes(result: xr.DataTree, data: Judgements, latent: LatentClass) -> None:
    responsibility = result[latent.group].dataset["responsibility"]
    dims = responsibility.dims
    assert dims == latent.axes, f"responsibilities have axes {dims}, not {latent.axes}"
    _check_names(responsibility, data)
    low = float(responsibility.min())
    off = float(np.abs(responsibility.sum(latent.axes[1]) - 1).max())
    ends = f"the least is {low:.3g}, a sum is off by {off:.3g}"
    assert min(low, 1e-5 - off) >= 0, f"responsibilities are no probabilities: {ends}"
    column = None if data.known is None else getattr(data, data.known)
    if column is not None and latent.unit == data.unit:
        known = np.flatnonzero(np.asarray(column) >= 0)
        right = responsibility.values[known, np.asarray(column)[known]].min(initial=1.0)
        assert right > 1 - 1e-5, f"an item whose class is known has it with probability {right:.3g}"


def _check_log_likelihood(result: xr.DataTree, model: Model[Any], data: Any) -> None:
    stored = result["log_likelihood"][model.observed]
    dims = ("chain", "draw", Program(model, data).unit)
    assert stored.dims == dims, f"the log-likelihood has axes {stored.dims}, not {dims}"
    with jax.enable_x64(True):
        drawn = result["posterior"].data_vars.items()
        last = {str(name): jnp.asarray(draws.values[-1, -1], float) for name, draws in drawn}
        expected = np.asarray(densities(model, data, last).pointwise)
    wrong = float(np.max(np.abs(stored.values[-1, -1] - expected)))
    right = wrong < 1e-3 * (1 + np.abs(expected).max())
    assert right, f"the stored log-likelihood is off by {wrong:.3g}"

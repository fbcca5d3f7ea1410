"""Contract of a back-end, and of the results of all."""

from __future__ import annotations

import dataclasses
import re
import tempfile
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from raters.errors import BackendError, ConvergenceWarning, DataWarning, RatersError
from raters.errors.validation import checked, instance
from raters.fitting.fit import fit
from raters.fitting.parts import part
from raters.fitting.result import check_data, data_of, program_of
from raters.inference import Backend
from raters.judgements.base import Judgements
from raters.model import Model, Shift
from raters.program import LatentClass, Program
from raters.testing._blocks import densities
from raters.testing._model import answered_otherwise, check_identity, check_reference

_COMPILED = "/jax/core/compile/backend_compile_duration"


@checked
def check_backend(backend: Backend, model: Model[Any], data: Judgements, *, seed: int = 0) -> None:
    """Check that a back-end keeps the contract for this model and these data.

    What it says to cite, if anything, is BibTeX. A back-end that cannot run says so in one
    sentence, which `raters.fit` raises. Otherwise its result passes `check_result`; the same seed
    gives the same draws and another seed others; a further run on data of equal shape compiles
    nothing; the result survives netCDF; an approximate back-end stores ``log_p`` and ``log_q``; and
    convergence warnings carry numbers.

    Parameters
    ----------
    backend : Backend
        With few draws, as it runs four times.
    model : Model
    data : Judgements
        A small table with outcomes.
    seed : int

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=100, seed=0)
    >>> rt.testing.check_backend(rt.PGEM(draws=50), rt.BTL(), votes)
    """
    check_data(data, "data", model)
    name = type(backend).__name__
    check_identity(backend)
    check_reference(backend)
    if reason := backend.why_not(Program(model, data)):
        message = "nothing"
        try:
            _run(backend, model, data, seed)
        except BackendError as error:
            message = str(error)
        assert message == reason, f"why_not of {name} says {reason!r}, and fit {message!r}"
        return
    result, again, other = (_run(backend, model, data, number) for number in (seed, seed, seed + 1))
    check_result(result, model, data)
    for site in map(str, result["posterior"].data_vars):
        one, two, three = (np.asarray(tree["posterior"][site]) for tree in (result, again, other))
        assert np.array_equal(one, two), f"{name} gives different draws of {site!r} under one seed"
        # A probability of one alternative is 1 in every draw.
        differ = np.all(one == one[:1, :1]) or not np.array_equal(one, three)
        assert differ, f"{name} gives the same draws of {site!r} under two seeds"
    if not backend.exact:
        stats = result["sample_stats"].data_vars if "sample_stats" in result.children else ()
        missing = {"log_p", "log_q"} - set(stats)
        assert not missing, f"{name} is approximate and does not store {missing}, which LOO needs"
    _check_no_compilation(backend, model, data, seed)
    with tempfile.TemporaryDirectory() as folder:
        result.to_netcdf(path := Path(folder) / "result.nc")
        with xr.open_datatree(path) as stored:
            again = stored.load()
    xr.testing.assert_identical(result, again)


def _run(backend: Backend, model: Model[Any], data: Judgements, seed: int) -> xr.DataTree:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = fit(model, data, backend, seed=seed, progress=False)
    for entry in caught:
        if issubclass(entry.category, ConvergenceWarning):
            numbers = re.search(r"\d", str(entry.message))
            assert numbers, f"a convergence warning has no number: {entry.message}"
        elif not issubclass(entry.category, DataWarning):
            warnings.warn_explicit(entry.message, entry.category, entry.filename, entry.lineno)
    return result


def _check_no_compilation(backend: Backend, model: Model[Any], data: Judgements, seed: int) -> None:
    answers = answered_otherwise(data)
    compiled: list[str] = []

    def note(event: str, duration_secs: float, **facts: str | int) -> None:
        if event == _COMPILED:
            compiled.append(str(facts.get("fun_name", "?")))

    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        _run(backend, model, answers, seed + 2)
    finally:
        jax.monitoring.unregister_event_duration_listener(note)
    assert not compiled, f"a further run compiles {len(compiled)} function(s): {compiled[:5]}"


# ---------------------------------------------------------------------- results


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
    latent = Program(model, data).latent
    groups = {"posterior", "observed_data", "constant_data"} | ({latent.group} if latent else set())
    missing = groups - set(result.children)
    assert not missing, f"the result has no group {missing}; it has {list(result.children)}"
    try:  # Axes, names, supports, and the model.
        program = program_of(model, result, several=True)
    except RatersError as error:
        raise AssertionError(str(error)) from error
    posterior, sites = result["posterior"].to_dataset(), program.sites
    # Deterministic sites are left out where they are many.
    wrong = set(posterior.data_vars) - {*program.deterministic} ^ {*sites}
    assert not wrong, f"the sites {wrong} are of the posterior or the model alone"
    for symmetry in model.symmetries:
        if isinstance(symmetry, Shift):
            dims = sites[symmetry.site].dims
            along = dims if symmetry.axis is None else dims[symmetry.axis]
            off = float(np.abs(posterior[symmetry.site].mean(along)).max())
            assert off < 1e-4, f"draws of {symmetry.site!r} are not centred: a mean is {off:.3g}"
    versions = [f"{name}_version" for name in ("raters", "numpyro", "jax")]
    for attribute in ("model", "backend", "seed", "seconds", *versions):
        assert attribute in result.attrs, f"the result does not record {attribute!r}"
    _check_data_kept(result, data)
    for name, own in program.parts.items() if program.is_joint else ():
        check_result(part(model, result, name).result, own.model, own.data)
    if "log_likelihood" in result.children and not program.is_joint:
        _check_log_likelihood(result, model, data)
    if latent and latent.unit == data.unit and data.known is not None:
        _check_known(result, data, latent)


def _check_data_kept(result: xr.DataTree, data: Any) -> None:
    kept = data_of(result)
    kinds = type(kept), type(data)
    assert kinds[0] is kinds[1], f"the result keeps {kinds[0]}; the data are {kinds[1]}"
    for name in (field.name for field in dataclasses.fields(data)):
        one, other = getattr(kept, name), getattr(data, name)
        if isinstance(other, (tuple, range)):
            one, other = list(map(str, one)), list(map(str, other))
        assert np.array_equal(one, other), f"the data kept in the result differ in {name!r}"


def _check_known(result: xr.DataTree, data: Any, latent: LatentClass) -> None:
    if (column := getattr(data, data.known)) is not None:
        known = np.flatnonzero(np.asarray(column) >= 0)
        responsibility = result[latent.group].dataset["responsibility"].values
        right = responsibility[known, np.asarray(column)[known]].min(initial=1.0)
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

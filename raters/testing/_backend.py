"""Contract of a back-end."""

from __future__ import annotations

import re
import tempfile
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr

from raters.errors import BackendError, ConvergenceWarning, DataWarning
from raters.errors.validation import checked
from raters.fitting.fit import fit
from raters.fitting.result import check_data
from raters.inference import Backend
from raters.judgements.base import Judgements
from raters.model import Model
from raters.program import Program
from raters.testing._model import answered_otherwise, check_identity, check_reference
from raters.testing._result import check_result

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

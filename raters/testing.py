"""The public contract: what every model, back-end and result of raters keeps to.

Call these on a model or back-end of your own, as scikit-learn's ``check_estimator``. Each raises an AssertionError whose
sentence says what was violated, and by how much.
"""

from __future__ import annotations

import ast
import dataclasses
import re
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.infer.util
import xarray as xr

import raters.models
from raters._result import label_array
from raters.data import Comparisons
from raters.errors import BackendError, ConvergenceWarning, DataWarning, NotConjugateError
from raters.fit import fit, simulate
from raters.inference import Backend
from raters.inference._rows import check_conjugate, logits_of, rows_of, split
from raters.inference._trace import latent_sites, log_joint, log_prior, pointwise_log_likelihood, sites, trace
from raters.model import Model, Scale, Shift, Sign, Symmetry, Values
from raters.models import from_repr

_TOLERANCE = 1e-8
_COMPILED = "/jax/core/compile/backend_compile_duration"


def check_model(model: Model, data: Comparisons, *, seed: int = 0) -> None:
    """Check that a model keeps the contract on these data.

    It is hashable and described by its ``repr``; every axis has a name and every site the shape that its axes say; it
    draws outcomes where they are absent; its start has finite density and gradient in float32 and float64; its blocks are
    conjugate and the recorded rows are the derivatives of the logits; its symmetries hold, and a random direction is none;
    renaming items and annotators, and writing a repeated row as a count, do not change the density; and the pointwise
    log-likelihood is the joint density less the prior.

    Parameters
    ----------
    model : Model
    data : Comparisons
        A small table with outcomes, and an order of presentation if the model needs one.
    seed : int
        For the points at which densities are compared.

    Raises
    ------
    AssertionError
        Saying what was violated, with the number.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=100, seed=0)
    >>> rt.testing.check_model(rt.BTL(), votes)
    """
    _check_identity(model)
    assert data.wins is not None, "check_model needs data with outcomes; rt.simulate draws some"
    reason = model.why_not(data)
    assert reason is None, f"{model!r} refuses these data: {reason}"
    _check_sites(model, data)
    _check_simulates(model, data, seed)
    for wide in (False, True):
        _check_start(model, data, wide)
    with jax.enable_x64(True):
        points = [_point(model, data, seed + number) for number in range(2)]
        _check_density(model, data, points[0])
        _check_blocks(model, data, points[0])
        _check_symmetries(model, data, points[0], seed)
        _check_relabelling(model, data, points[0], seed)
        _check_counts(model, data, points)


# ---------------------------------------------------------------------------------------------------------- the model


def _check_identity(model: Model) -> None:
    name = type(model).__name__
    fields = {field.name: getattr(model, field.name) for field in dataclasses.fields(model)}
    twin = type(model)(**fields)
    assert twin == model, f"{name} built again from its own fields is not equal to itself: {twin!r} is not {model!r}"
    assert hash(twin) == hash(model), f"two equal {name} have different hashes, {hash(twin)} and {hash(model)}"
    if getattr(raters.models, name, None) is type(model):
        assert from_repr(repr(model)) == model, f"from_repr({model!r}) is another model: {from_repr(repr(model))!r}"
        return
    call = ast.parse(repr(model), mode="eval").body
    written = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords} if isinstance(call, ast.Call) else {}
    for field, value in fields.items():
        expected = ast.unparse(ast.parse(repr(value), mode="eval"))
        assert written.get(field) == expected, f"the repr of {name} does not say {field}={value!r}: it is {model!r}"


def _check_sites(model: Model, data: Any) -> None:
    name, found = type(model).__name__, sites(model, data)
    assert model.observed in found, f"{name} has no site {model.observed!r}, which it calls observed; it has {list(found)}"
    full = trace(model, data, {})
    extra = [site for site, facts in full.items() if facts["type"] == "sample" and facts["is_observed"]]
    extra = [site for site in extra if site != model.observed]
    assert not extra, f"{name} has observed sites or factors {extra} besides {model.observed!r}, which no back-end would see"
    assert full[model.observed]["is_observed"], f"{name} does not pass the outcomes in the data to site {model.observed!r}"
    sizes = {axis: len(names) for axis, names in data.coords.items()}
    for site, facts in found.items():
        shape = tuple(np.shape(full[site]["value"]))
        assert shape == facts.shape, (
            f"{site!r} has shape {facts.shape} on one row and {shape} on all; it must not depend on rows"
        )
        for axis, size in zip(facts.dims, facts.shape, strict=True):
            assert axis in sizes, f"an axis of {site!r} is called {axis!r}, and the data name {list(sizes)}; put it in a plate"
            assert size == sizes[axis], f"axis {axis!r} of {site!r} has size {size}; the data have {sizes[axis]}"


def _check_simulates(model: Model, data: Comparisons, seed: int) -> None:
    name = type(model).__name__
    one, again, other = (simulate(model, data, seed=number) for number in (seed, seed, seed + 1))
    wins, most = np.asarray(one.data.wins), 1.0 if data.count is None else np.asarray(data.count)
    assert wins.shape == np.shape(data.wins), f"{name} draws outcomes of shape {wins.shape}, not {np.shape(data.wins)}"
    assert np.all((wins >= 0) & (wins <= most)), (
        f"{name} draws outcomes from {wins.min():g} to {wins.max():g}, not between 0 and count"
    )
    assert np.array_equal(wins, again.data.wins), f"{name} draws different outcomes under one seed"
    assert any(np.any(one.truth[site] != other.truth[site]) for site in one.truth), (
        f"{name} draws the same parameters under two seeds"
    )


def _check_start(model: Model, data: Any, wide: bool) -> None:
    kind = "float64" if wide else "float32"
    with jax.enable_x64(wide):
        start = {name: jnp.asarray(value, float) for name, value in model.start(data).items()}
        found = latent_sites(model, data)
        assert set(start) == set(found), f"start has the sites {sorted(start)}; the program has {sorted(found)}"
        for name, value in start.items():
            assert value.shape == found[name].shape, f"start gives {name!r} shape {value.shape}, not {found[name].shape}"
        density, slope = jax.jit(jax.value_and_grad(lambda values: log_joint(model, data, values)))(start)
    assert density.dtype == kind, f"the log density has dtype {density.dtype} where {kind} is on; something is cast"
    assert np.isfinite(density), f"the log density at the start is {density} in {kind}"
    for name, part in slope.items():
        assert np.isfinite(part).all(), (
            f"the gradient of {name!r} at the start has {np.sum(~np.isfinite(part))} bad entries in {kind}"
        )


def _point(model: Model, data: Any, seed: int) -> Values:
    """A point inside the supports, drawn from the prior but kept where densities are not extreme."""
    drawn = simulate(model, data, seed=seed).truth
    start = {name: np.asarray(value, np.float64) for name, value in model.start(data).items()}
    # Supports of sites are convex, so a point between the start and a draw is inside.
    return {name: 0.5 * start[name] + 0.5 * np.asarray(drawn[name], np.float64) for name in start}


def _log_likelihood(model: Model, data: Any, values: Values) -> float:
    return float(pointwise_log_likelihood(model, jax.tree.map(jnp.asarray, data), values).sum())


def _close(one: float, other: float, scale: float = 0.0) -> bool:
    return bool(abs(one - other) <= _TOLERANCE * (1 + abs(one) + scale))


def _check_density(model: Model, data: Any, values: Values) -> None:
    pointwise = pointwise_log_likelihood(model, data, values)
    shape = (data.num_comparisons,)
    assert pointwise.shape == shape, f"the pointwise log-likelihood has shape {pointwise.shape}, not {shape}"
    joint = float(numpyro.infer.util.log_density(model.generate, (jax.tree.map(jnp.asarray, data),), {}, values)[0])
    prior, likelihood = float(log_prior(model, data, values)), float(pointwise.sum())
    assert _close(joint - prior, likelihood, abs(joint)), (
        f"the pointwise log-likelihood sums to {likelihood:.10g}; NumPyro's joint density less the prior is "
        f"{joint - prior:.10g}. Something other than a sample site enters the density"
    )


def _check_blocks(model: Model, data: Any, values: Values) -> None:
    for block in model.blocks:
        try:
            check_conjugate(model, data, values, block)
        except NotConjugateError as error:
            raise AssertionError(str(error)) from error
        rows = rows_of(model, data, values, block)
        current = np.concatenate([np.ravel(values[name]) for name in block])
        design = np.asarray(rows.weight)
        if rows.entry is not None:
            design = np.zeros((data.num_comparisons, len(current)))
            for entry, weight in zip(np.asarray(rows.entry), np.asarray(rows.weight), strict=True):
                np.add.at(design, (np.arange(data.num_comparisons), entry), weight)

        def logits(entries, block=block):
            return logits_of(model, data, values | split(entries, values, block))

        wrong = np.max(np.abs(design - np.asarray(jax.jacfwd(logits)(jnp.asarray(current)))), initial=0.0)
        assert wrong <= _TOLERANCE, f"recorded weights of block {block} differ by {wrong:.3g} from the derivative of the logits"
        wrong = np.max(np.abs(np.asarray(rows.offset) + design @ current - np.asarray(logits(current))), initial=0.0)
        assert wrong <= _TOLERANCE, f"logits from the recorded rows of block {block} differ by {wrong:.3g} from the traced ones"


def _moved(symmetry: Symmetry, values: Values) -> Values:
    """Another point of the orbit that a symmetry declares."""
    match symmetry:
        case Shift(site):
            return values | {site: values[site] + 0.7}
        case Scale(up, down):
            return values | {name: values[name] * 1.7 for name in up} | {name: values[name] / 1.7 for name in down}
        case Sign(both):
            return values | {name: -values[name] for name in both}
    raise AssertionError(f"{symmetry!r} is not a symmetry that raters knows: Shift, Scale or Sign")


def _check_symmetries(model: Model, data: Any, values: Values, seed: int) -> None:
    here = _log_likelihood(model, data, values)
    for symmetry in model.symmetries:
        there = _log_likelihood(model, data, _moved(symmetry, values))
        assert _close(here, there), f"{symmetry!r} does not hold: it changes the log-likelihood by {there - here:.3g}"
    rng = np.random.default_rng(seed)
    for symmetry in model.symmetries:
        away = values | {name: values[name] * (1 + 0.3 * rng.uniform(size=np.shape(values[name]))) for name in _sites(symmetry)}
        there = _log_likelihood(model, data, away)
        assert not _close(here, there), (
            f"a random change of {_sites(symmetry)} leaves the log-likelihood at {here:.6g}, so {symmetry!r} says nothing"
        )


def _sites(symmetry: Symmetry) -> tuple[str, ...]:
    match symmetry:
        case Shift(site):
            return (site,)
        case Scale(up, down):
            return up + down
        case Sign(both):
            return both
    return ()


def _check_relabelling(model: Model, data: Comparisons, values: Values, seed: int) -> None:
    rng = np.random.default_rng(seed)
    new = {axis: rng.permutation(len(data.coords[axis])) for axis in ("item", "annotator")}
    renamed = dataclasses.replace(
        data,
        first=new["item"][np.asarray(data.first)],
        second=new["item"][np.asarray(data.second)],
        annotator=new["annotator"][np.asarray(data.annotator)],
    )
    moved = dict(values)
    for name, site in latent_sites(model, data).items():
        for axis, dim in enumerate(site.dims):
            if dim in new:
                moved[name] = np.take(moved[name], np.argsort(new[dim]), axis=axis)
    here, there = (float(log_joint(model, *pair)) for pair in ((data, values), (renamed, moved)))
    assert _close(here, there), f"renaming items and annotators changes the log density by {there - here:.3g}"


def _check_counts(model: Model, data: Comparisons, points: list[Values]) -> None:
    """Each row twice, or once with a double count: equal but for Binomial coefficients, which cancel between two points."""
    twice = data.take(np.repeat(np.arange(data.num_comparisons), 2))
    count = np.ones(data.num_comparisons) if data.count is None else np.asarray(data.count)
    counted = dataclasses.replace(data, wins=2 * np.asarray(data.wins), count=2 * count)
    change = [_log_likelihood(model, table, points[0]) - _log_likelihood(model, table, points[1]) for table in (twice, counted)]
    assert _close(change[0], change[1], 1e2), (
        f"a repeated row is not the same as count=2: a step changes the log-likelihood by {change[0]:.10g} "
        f"and by {change[1]:.10g}"
    )


# ---------------------------------------------------------------------------------------------------------- the result


def check_result(result: xr.DataTree, model: Model, data: Comparisons) -> None:
    """Check that a result has what every verb of raters, and ArviZ, expects.

    Parameters
    ----------
    result : xarray.DataTree
    model : Model
        The model that was fitted.
    data : Comparisons
        The data that it was fitted to.

    Raises
    ------
    AssertionError
        Saying what was violated, with the number.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=100, seed=0)
    >>> rt.testing.check_result(rt.fit(rt.BTL(), votes, rt.PGEM(draws=50), seed=0, progress=False), rt.BTL(), votes)
    """
    missing = [group for group in ("posterior", "observed_data", "constant_data") if group not in result.children]
    assert not missing, f"the result has no group {missing}; it has {list(result.children)}"
    found = latent_sites(model, data)
    posterior = result["posterior"].to_dataset()
    assert set(posterior.data_vars) == set(found), (
        f"posterior holds {sorted(map(str, posterior.data_vars))}; the model has {sorted(found)}"
    )
    for name, site in found.items():
        _check_draws(posterior[name], name, site, data)
    for symmetry in model.symmetries:
        if isinstance(symmetry, Shift):
            off = float(np.abs(posterior[symmetry.site].mean(found[symmetry.site].dims)).max())
            assert off < 1e-4, f"draws of {symmetry.site!r} are not centred: a mean is {off:.3g}"
    for attribute in ("model", "backend", "seed", "seconds", "raters_version", "numpyro_version", "jax_version"):
        assert attribute in result.attrs, (
            f"the result does not record {attribute!r}; it records {sorted(map(str, result.attrs))}"
        )
    assert result.attrs["model"] == repr(model), f"the result says its model is {result.attrs['model']}, not {model!r}"
    _check_data_kept(result, data)
    if "log_likelihood" in result.children:
        _check_log_likelihood(result, model, data)


def _check_draws(draws: xr.DataArray, name: str, site, data: Comparisons) -> None:
    dims = ("chain", "draw", *site.dims)
    assert draws.dims == dims, f"draws of {name!r} have axes {draws.dims}, not {dims}"
    for axis in dims:
        assert axis in draws.coords, f"axis {axis!r} of {name!r} has no names"
        if axis in data.coords:
            expected = label_array(data.coords[axis])
            assert np.array_equal(draws[axis].values, expected), f"axis {axis!r} of {name!r} is not named as the data name it"
    bad = int(np.sum(~np.isfinite(draws.values)))
    assert bad == 0, f"{bad} of {draws.size} draws of {name!r} are not finite"
    outside = int(np.sum(~np.asarray(site.support(jnp.asarray(draws.values)))))
    assert outside == 0, f"{outside} of {draws.size} draws of {name!r} are outside its support"


def _check_data_kept(result: xr.DataTree, data: Comparisons) -> None:
    kept = Comparisons.from_result(result)
    for field in ("first", "second", "annotator", "wins", "count"):
        one, other = getattr(kept, field), getattr(data, field)
        same = one is None and other is None if one is None or other is None else np.array_equal(one, other)
        assert same, f"the data kept in the result differ in {field!r}"
    assert kept.ordered == data.ordered, f"the result says ordered={kept.ordered}; the data have ordered={data.ordered}"
    for field in ("items", "annotators"):
        one, other = (tuple(map(str, getattr(part, field))) for part in (kept, data))
        assert one == other, f"the result names {len(one)} {field}; the data name {len(other)}, or in another order"


def _check_log_likelihood(result: xr.DataTree, model: Model, data: Comparisons) -> None:
    stored = result["log_likelihood"][model.observed]
    dims = ("chain", "draw", "comparison")
    assert stored.dims == dims, f"the log-likelihood has axes {stored.dims}, not {dims}"
    with jax.enable_x64(True):
        last = {str(name): jnp.asarray(draws.values[-1, -1], float) for name, draws in result["posterior"].data_vars.items()}
        expected = np.asarray(pointwise_log_likelihood(model, jax.tree.map(jnp.asarray, data), last))
    wrong = float(np.max(np.abs(stored.values[-1, -1] - expected)))
    assert wrong < 1e-3 * (1 + np.abs(expected).max()), f"the stored log-likelihood is off by {wrong:.3g}"


# -------------------------------------------------------------------------------------------------------- the back-end


def check_backend(backend: Backend, model: Model, data: Comparisons, *, seed: int = 0) -> None:
    """Check that a back-end keeps the contract for this model and these data.

    A back-end that cannot run says so in one sentence, which `raters.fit` raises. Otherwise its result passes `check_result`;
    the same seed gives the same draws and another seed others; a further run on data of equal shape compiles nothing;
    the result survives netCDF; an approximate back-end stores ``log_p`` and ``log_q``; and convergence warnings carry numbers.

    Parameters
    ----------
    backend : Backend
        With few draws, as it runs four times.
    model : Model
    data : Comparisons
        A small table with outcomes.
    seed : int

    Raises
    ------
    AssertionError
        Saying what was violated, with the number.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=100, seed=0)
    >>> rt.testing.check_backend(rt.PGEM(draws=50), rt.BTL(), votes)
    """
    name = type(backend).__name__
    twin = dataclasses.replace(backend)
    assert twin == backend, f"{name} built again from its own fields is not equal to itself"
    assert hash(twin) == hash(backend), f"two equal {name} have different hashes"
    if reason := backend.why_not(model, data):
        _check_refusal(backend, model, data, reason, seed)
        return
    result, again, other = (_run(backend, model, data, number) for number in (seed, seed, seed + 1))
    check_result(result, model, data)
    for site in map(str, result["posterior"].data_vars):
        one, two, three = (np.asarray(tree["posterior"][site]) for tree in (result, again, other))
        assert np.array_equal(one, two), f"{name} gives different draws of {site!r} under one seed"
        assert not np.array_equal(one, three), f"{name} gives the same draws of {site!r} under two seeds"
    if not backend.exact:
        stats = result["sample_stats"].data_vars if "sample_stats" in result.children else ()
        missing = [part for part in ("log_p", "log_q") if part not in stats]
        assert not missing, f"{name} is approximate and does not store {missing}, without which LOO cannot be corrected"
    _check_no_compilation(backend, model, data, seed)
    _check_round_trip(result, name)


def _check_refusal(backend: Backend, model: Model, data: Comparisons, reason: str, seed: int) -> None:
    said = ""
    try:
        _run(backend, model, data, seed)
    except BackendError as error:
        said = str(error)
    assert said == reason, f"{type(backend).__name__}.why_not says {reason!r}, but fit {'says ' + said if said else 'runs it'}"


def _run(backend: Backend, model: Model, data: Comparisons, seed: int) -> xr.DataTree:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = fit(model, data, backend, seed=seed, progress=False)
    for entry in caught:
        if issubclass(entry.category, ConvergenceWarning):
            assert re.search(r"\d", str(entry.message)), f"a convergence warning has no number: {entry.message}"
        elif not issubclass(entry.category, DataWarning):
            warnings.warn_explicit(entry.message, entry.category, entry.filename, entry.lineno)
    return result


def _check_no_compilation(backend: Backend, model: Model, data: Comparisons, seed: int) -> None:
    answers = simulate(model, data, seed=seed, given=model.start(data)).data
    with compilations() as compiled:
        _run(backend, model, answers, seed + 2)
    assert len(compiled) == 0, (
        f"{type(backend).__name__} compiles {len(compiled)} function(s) at a further run on data of equal shape: "
        f"{sorted(set(compiled))[:5]}"
    )


@contextmanager
def compilations() -> Iterator[list[str]]:
    """The names of the functions that JAX compiles within the block.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from raters.testing import compilations
    >>> with compilations() as compiled:
    ...     _ = jax.jit(lambda x: x + 1)(jnp.ones(3))
    >>> len(compiled) > 0
    True
    """
    compiled: list[str] = []

    def note(event: str, duration_secs: float, **facts: str | int) -> None:
        if event == _COMPILED:
            compiled.append(str(facts.get("fun_name", "?")))

    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        yield compiled
    finally:
        jax.monitoring.unregister_event_duration_listener(note)


def _check_round_trip(result: xr.DataTree, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.nc"
        result.to_netcdf(path)
        with xr.open_datatree(path) as stored:
            again = stored.load()
    assert set(again.children) == set(result.children), (
        f"netCDF keeps the groups {sorted(again.children)} of a result of {name} that has {sorted(result.children)}"
    )
    for group, node in result.children.items():
        for variable, values in node.data_vars.items():
            assert np.array_equal(np.asarray(again[group][str(variable)]), values.values), (
                f"netCDF changes {group}/{variable} of {name}"
            )
    lost = [key for key, value in result.attrs.items() if key not in again.attrs or again.attrs[key] != value]
    assert not lost, f"netCDF changes the attributes {lost} of a result of {name}"

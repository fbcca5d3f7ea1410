"""Fitting a model to data, and what a fit would find."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from typing import Any

import jax
import numpy as np
import xarray as xr
from jax.sharding import Mesh

from raters.errors import (
    BackendError,
    ConvergenceWarning,
    DataError,
    DataWarning,
    public_name,
    refuse,
)
from raters.errors.validation import checked, seed_number
from raters.fitting import parts
from raters.fitting import result as results
from raters.fitting.storage import shown, to_json, worded
from raters.inference import Backend, Draws, importance, mode_shares
from raters.inference.base import one_blas_thread
from raters.inference.defaults import default_backend, quick_backend
from raters.inference.identification import identified
from raters.inference.mixing import warn_unless_converged
from raters.inference.polya_gamma import detection
from raters.judgements.base import Judgements
from raters.judgements.names import plural, shorten
from raters.kinds import registered_kinds
from raters.model import Model, Values, read_by
from raters.program import Program, within
from raters.program.compiled import keep_compiled

# Pointwise log-likelihoods are stored without being asked for up to this many numbers (240 MB).
_STORE_LIMIT = 60_000_000
# Equal judgements of a row: the information of more, divided by that of a prior, is beyond the
# precision of floats.
_MOST_COUNTED = 2**47


@checked
def fit(
    model: Model[Any],
    data: Judgements,
    backend: Backend | None = None,
    *,
    seed: int,
    quick: bool = False,
    start: xr.DataTree | None = None,
    progress: bool = True,
    log_likelihood: bool | None = None,
    mesh: Mesh | None = None,
) -> xr.DataTree:
    """Fit a model to data.

    Parameters
    ----------
    model : Model
        For example ``rt.BTL()`` or ``rt.ExtendedBTL(competence="signed")``.
    data : Judgements
        Judgements of the model's kind, such as `Comparisons` or `Labels`; of `numpyro_model` the
        arguments of the function, as a mapping or a table.
    backend : Backend, optional
        ``rt.PGGibbs()``, ``rt.NUTS()``, ``rt.SVI()``, ``rt.PGEM()`` or ``rt.HMC()``; by
        default an exact one, chosen by the model and the data; chains of
        ``PGGibbs`` and ``HMC`` then end as soon as they have mixed.
    seed : int
        The same seed gives the same draws.
    quick : bool
        An answer in seconds where no back-end is given: short chains of `HMC`, whose R-hat says how
        far to trust them, or an approximation by `PGEM` or `SVI`, of which ``pareto_k`` does.
    start : xarray.DataTree, optional
        An earlier result of the same model on data of the same names, by any back-end, to set out
        from. Saves warm-up, and changes nothing of what is estimated.
    progress : bool
        Show a progress bar on standard error.
    log_likelihood : bool, optional
        Whether to store the log-likelihood of every comparison under every draw, which
        ``arviz.loo`` and ``arviz.compare`` need. By default it is stored up to 60 million numbers.
    mesh : jax.sharding.Mesh, optional
        Devices over which the rows of the data are divided, such as ``jax.make_mesh((8,),
        ("row",))``; by default all rows are on JAX's default device.

    Returns
    -------
    xarray.DataTree
        Groups ``posterior`` (chain, draw and each site's own axes), ``sample_stats``,
        ``observed_data``, ``constant_data``, and where they apply ``log_likelihood``, ``mode`` and
        ``optimisation``. Its attributes record how it was fitted.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, seed=0, progress=False)
    >>> sorted(result.posterior.data_vars)
    ['reward', 'reward_scale']

    """
    keep_compiled()
    data = read_by(model, data)
    check_types(model, data, seed)
    if mesh is not None and not data.axes:
        problem = f"divides rows over devices, and {model!r} reads all of them at once"
        refuse("mesh", problem=problem, expected="leave it out")
    program = Program(model, data, mesh)
    if reason := model.why_not(data):
        raise BackendError(reason)
    if backend is None:
        backend = (quick_backend if quick else default_backend)(program)
    elif quick:
        refuse("quick", quick, "chooses the back-end, and one is given", "leave one out")
    for part in program.parts.values():
        check_whole(part.data)
    if reason := backend.why_not(program):
        raise BackendError(reason)
    _ = program.sites  # Raises where the parts of a joint model do not fit together.
    _warn_of_data(program)
    judged = data.unpadded()
    earlier = {} if start is None else {"start": _earlier_draws(program, backend, start)}
    sentences = model.warnings(judged) if judged.num_judgements else ()
    unused = [one for part in program.parts.values() for one in _unused(part)]
    for sentence in (*sentences, *unused):
        warnings.warn(sentence, DataWarning, stacklevel=3)
    begin = time.perf_counter()
    draws = run(program, backend, seed, progress=progress, **earlier)
    facts = dict(draws.facts)
    if backend.exact:
        facts |= warn_unless_converged(draws.values, draws.facts.get("divergences", 0))
    facts |= {"backend": to_json(backend), "seconds": time.perf_counter() - begin}
    facts |= {"warm_start": int(start is not None)}
    return as_result(program, draws, facts, seed, log_likelihood)


def as_result(
    program: Program[Any],
    draws: Draws,
    facts: dict[str, Any],
    seed: int,
    log_likelihood: bool | None = None,
) -> xr.DataTree:
    """A result of draws, with everything that follows from them; see `fit`."""
    versions = {f"{name}_version": version(name) for name in ("raters", "numpyro", "jax")}
    facts = facts | {"model": to_json(program.model), "seed": seed, **versions}
    result = results.as_tree(program, draws, facts)
    results.add_deterministic(program, result)
    chains, num_draws = next(iter(draws.values.values())).shape[:2]
    small = chains * num_draws * program.num_units <= _STORE_LIMIT
    if log_likelihood or (log_likelihood is None and small):
        result["log_likelihood"] = parts.pointwise(program, result)
    for group, table in parts.responsibilities(program, result).items():
        result[group] = table
    for sentence in parts.fit_warnings(program, result):
        warnings.warn(sentence, ConvergenceWarning, stacklevel=4)
    return result


def run(program: Program[Any], backend: Backend, seed: int, **options: Any) -> Draws:
    """Draws of a back-end, corrected and identified; `options` are those of `Backend.run`."""
    # More would compete with the threads of chains, at several times the CPU-seconds.
    with one_blas_thread():
        draws = backend.run(program, jax.random.key(seed), **options)
        if not backend.exact:
            rng = np.random.default_rng(seed)
            draws = mode_shares.weighed(program, importance.corrected(draws, rng), rng)
        return identified(program, draws)


def _warn_of_data(program: Program[Any]) -> None:
    """Warn about what the data cannot tell; of several kinds, about those who judge in each."""
    data: Any = program.data
    if program.is_joint:
        for name, part in program.parts.items():
            _warn_of_data(Program(part.model, data.present(name)))
        data.warn()
        return
    # A model without parameters of items does not mind what is never asked about them.
    if data.unit != data.row or program.axes & data.warned_axes:
        data.warn()


def check_whole(data: Judgements) -> None:
    """Raise unless the judgements have outcomes, and all their units."""
    if not data.has_answers:
        problem = "has no outcomes, so there is nothing to fit"
        expected = "give judgements with outcomes, or simulate them"
        instead = "rt.simulate(model, data, seed=0)"
        refuse("data", data, problem, expected, instead=instead, error=DataError)
    if (most := float(np.max(data.weight, initial=0.0))) > _MOST_COUNTED:
        problem = "is a number of equal judgements beside which a fit cannot hold single ones"
        expected = "a row may stand for at most 2**47 (about 1e14)"
        refuse("count", most, problem, expected, error=DataError)
    if data.num_units < len(data.coords[data.unit]):
        numbers = {"number": data.num_units, "of": len(data.coords[data.unit])}
        raise DataError(worded("some_units", units=plural(data.unit), **numbers))


def _unused(program: Program[Any]) -> list[str]:
    """Sentences about features, strata and families unread, and the models that read them."""
    data, sentences = program.data, []
    features = [name for name in data.coords.get("feature", ()) if name != "intercept"]
    if features and "feature" not in program.axes and data.without_features() is not data:
        sentences.append(_not_used(program, "features", features))
    for axis in ("stratum", "family"):
        if len(data.coords.get(axis, ())) > 1 and axis not in program.axes:
            sentences.append(_not_used(program, axis, data.coords[axis]))
    return sentences


def _not_used(program: Program[Any], role: str, names: Sequence[Any]) -> str:
    users = [
        f"{need}=True" if isinstance(need, str) else f"{public_name(need)}()"
        for kind in registered_kinds()
        for need, roles in kind.needs.items()
        if isinstance(program.data, kind.data) and role in roles
    ]
    what = {"stratum": "strata", "family": "families"}.get(role, role)
    model = public_name(type(program.model))
    return worded("unused", model=model, what=what, names=shorten(names), users=users)


def check_types(model: Model[Any], data: Any, seed: int) -> None:
    """Raise unless these are judgements of the model's kind, and a seed."""
    results.check_data(data, "data", model)
    if data.num_rows == 0:
        problem = "has no rows, so there is nothing to fit or to simulate"
        refuse("data", data, problem, "it must have at least one", error=DataError)
    seed_number(seed)


def _earlier_draws(program: Program[Any], backend: Backend, start: Any) -> Values:
    """Draws of an earlier result to set out from, or its mode for what climbs to one."""
    model, data, fitted = program.model, program.data, results.data_of(start)
    if (stored := results.stored_model(start) or to_json(model)) != to_json(model):
        problem = f"is a result of {shown(stored)}, not of {model!r}"
        refuse("start", problem=problem, expected="pass an earlier result of this model, or none")
    for role in dict.fromkeys(data.names.values()):
        before, now = (tuple(map(str, getattr(part, role))) for part in (fitted, data))
        if before != now:
            other = shorten(sorted(set(before) ^ set(now)) or now)
            problem = f"was fitted to other {role.replace('_', ' ')}, or in another order: {other}"
            expected = "read these data with the names of the earlier ones, or leave it out"
            refuse("start", problem=problem, expected=expected, error=DataError)
    group = "mode" if "mode" in start.children and not backend.exact else "posterior"
    results.check_posterior(program, start, group, "start")
    axes: Any = (None, None, ...) if group == "mode" else ...  # a mode is one draw of one chain
    draws = start[group]
    return {name: np.asarray(draws[name].values, np.float64)[axes] for name in program.sites}


@checked
def describe(model: Model[Any], data: Any) -> str:
    """Describe a model on its data: sites with prior, axes and shape, blocks and symmetries.

    Parameters
    ----------
    model : Model
    data : Judgements
        With outcomes or without.

    Returns
    -------
    str
        One line for each site, the observed one last, and one each for blocks and symmetries.

    Examples
    --------
    >>> import raters as rt
    >>> print(rt.fitting.describe(rt.BTL(), rt.datasets.anesthesia("votes")))  # doctest: +ELLIPSIS
    BTL(reward_scale=None, position_bias=False, ...)
      reward_scale    LogNormal      ()
      reward          Normal         (item: 45)
      outcome         Votes          (comparison: 6930)  observed
      blocks: reward
      symmetries: Shift(site='reward', axis=None)
    """
    data = read_by(model, data)
    results.check_data(data, "data", model)
    lines = [repr(model)]
    program = Program(model, data)
    observed = {}
    for name, part in program.parts.items():
        dims = (program.axis_name(name, part.unit),)
        observed[within(name, part.model.observed)] = part.observed._replace(dims=dims)
    for name, site in (program.sites | observed).items():
        axes = ", ".join(f"{dim}: {size}" for dim, size in zip(site.dims, site.shape, strict=True))
        end = "  observed" if name in observed else ""
        lines.append(f"  {name:<15} {site.distribution:<14} ({axes}){end}")
    blocks: Any = ()
    with suppress(NotImplementedError):  # of an observed distribution that is not augmented
        blocks = detection.names_of(program)
    lines.append("  blocks: " + ("; ".join(map(" + ".join, blocks)) or "none"))
    lines.append("  symmetries: " + ("; ".join(map(repr, model.symmetries)) or "none"))
    return "\n".join(lines)

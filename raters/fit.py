"""The verbs that run a model: fit it, simulate from it, predict with it, and score it."""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from numpyro import handlers

from raters._frame import shorten
from raters._identify import identified
from raters._judgements import Judgements, names_from_json
from raters._result import as_tree, check_data, check_model, data_of, pointwise
from raters.errors import BackendError, ConvergenceWarning, DataError, DataWarning, SettingError
from raters.inference import Backend, PGGibbs
from raters.inference._trace import latent_sites
from raters.inference.base import warn_unless_converged
from raters.model import Model, Values, unit_of
from raters.predict import latent_of, of_items, responsibilities

# Pointwise log-likelihoods are stored without being asked for up to this many numbers (240 MB).
_STORE_LIMIT = 60_000_000


def fit(
    model: Model,
    data: Judgements,
    backend: Backend | None = None,
    *,
    seed: int,
    start: xr.DataTree | None = None,
    progress: bool = True,
    log_likelihood: bool | None = None,
) -> xr.DataTree:
    """Fit a model to data.

    Parameters
    ----------
    model : Model
        For example ``rt.BTL()`` or ``rt.ExtendedBTL(competence="signed")``.
    data : Comparisons or Labels
    backend : Backend, optional
        ``rt.PGGibbs()`` by default; or ``rt.NUTS()``, ``rt.SVI()``, ``rt.PGEM()``.
    seed : int
        The same seed gives the same draws.
    start : xarray.DataTree, optional
        An earlier result of the same model, fitted to data of the same items, annotators and classes (fewer votes, say), by
        any back-end: chains set out from its last draws, optimisers from its mode or mean. Saves warm-up, and changes
        nothing of what is estimated.
    progress : bool
        Show a progress bar on standard error.
    log_likelihood : bool, optional
        Whether to store the log-likelihood of every comparison under every draw, which ``arviz.loo`` and
        ``arviz.compare`` need. By default it is stored up to 60 million numbers.

    Returns
    -------
    xarray.DataTree
        Groups ``posterior`` (chain, draw and each site's own axes), ``sample_stats``, ``observed_data``, ``constant_data``,
        and where they apply ``log_likelihood``, ``mode`` and ``optimisation``; ArviZ takes it as it is. Its attributes
        record the model, back-end, seed, versions and seconds.

    Raises
    ------
    BackendError
        When the back-end cannot run this model on these data; the message says why and what to use instead.

    Warns
    -----
    DataWarning, ConvergenceWarning

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, seed=0, progress=False)
    >>> sorted(result.posterior.data_vars)
    ['reward', 'reward_scale']

    Once more, without a new warm-up:

    >>> again = rt.fit(rt.BTL(), votes, rt.PGGibbs(warmup=20), seed=1, start=result, progress=False)
    """
    backend = PGGibbs() if backend is None else backend
    _check_types(model, data, backend, seed)
    if not data.answered:
        raise DataError(f"these {type(data).__name__} have no outcomes, so there is nothing to fit; rt.simulate draws outcomes")
    if data.unit_axis == "item" and data.num_units < len(data.coords["item"]):
        raise DataError(
            f"these are {data.num_units} of {len(data.coords['item'])} items, as labels.take(...) gives them, and a fit names "
            "all; choose rows of the table, and read it again with Labels.from_frame"
        )
    if reason := backend.why_not(model, data):
        raise BackendError(reason)
    if data.unit_axis == "item" or of_items(model, data):
        data.warn()  # About items; a model without parameters of items does not mind.
    judged = data.unpadded()
    earlier = {} if start is None else {"start": _earlier_draws(model, data, backend, start)}
    for caution in model.cautions(judged) if judged.votes_by_annotator().any() else ():
        warnings.warn(caution, DataWarning, stacklevel=2)
    begin = time.perf_counter()
    draws = identified(model, data, backend.run(model, data, jax.random.key(seed), progress=progress, **earlier))
    mixed = warn_unless_converged(draws.values, draws.facts.get("divergences", 0)) if backend.exact else {}
    facts = (
        draws.facts
        | mixed
        | {
            "model": repr(model),
            "backend": repr(backend),
            "seed": seed,
            "warm_start": int(start is not None),
            "seconds": time.perf_counter() - begin,
            **{f"{name}_version": version(name) for name in ("raters", "numpyro", "jax")},
        }
    )
    result = as_tree(model, data, draws, facts)
    size = draws.values[next(iter(draws.values))].shape[:2]
    if log_likelihood or (log_likelihood is None and size[0] * size[1] * unit_of(model, data)[1] <= _STORE_LIMIT):
        result["log_likelihood"] = pointwise(model, result, data)
    if latent := latent_of(model, data):
        result[latent.group] = xr.Dataset({"responsibility": responsibilities(model, result, data)})
    for sentence in model.doubts(result):
        warnings.warn(sentence, ConvergenceWarning, stacklevel=2)
    return result


def _check_types(model, data, backend, seed) -> None:
    check_model(model)
    check_data(data, "the second argument", model)
    if isinstance(backend, type) or not isinstance(backend, Backend):
        name = backend.__name__ if isinstance(backend, type) else repr(backend)
        also = f"; write rt.{name}()" if isinstance(backend, type) and issubclass(backend, Backend) else ""
        raise SettingError(f"the back-end must be one such as rt.PGGibbs() or rt.NUTS(); it is {name}{also}")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**32:
        raise SettingError(f"seed={seed!r} is not possible; it must be a whole number from 0 to 2**32 - 1, such as seed=0")


def _earlier_draws(model: Model, data: Judgements, backend: Backend, start: Any) -> Values:
    """Draws of an earlier result to set out from, shape (chain, draw, ...); its mode for what climbs to one."""
    fitted = data_of(start)
    if start.attrs.get("model", repr(model)) != repr(model):
        raise SettingError(
            f"start= is a result of {start.attrs['model']}, not of {model!r}; pass an earlier result of this model, or none"
        )
    if type(fitted) is not type(data):
        raise DataError(f"start= was fitted to {type(fitted).__name__}, and these are {type(data).__name__}; leave it out")
    now = data.flags()
    for role in ("items", "annotators", "classes", "feature_names"):
        before, names = (names_from_json(flags.get(role, "[]")) for flags in (start.attrs, now))
        if before != names:
            raise DataError(f"start= was fitted to other {role.replace('_', ' ')}: {_difference(before, names)}")
    sites = latent_sites(model, data)
    group = "mode" if "mode" in start.children and not backend.exact else "posterior"
    if missing := [name for name in sites if name not in start[group]]:
        raise SettingError(f"start= has no draws of {', '.join(missing)}; pass what rt.fit returned")
    values = {name: np.asarray(start[group][name].values, np.float64) for name in sites}
    return {name: value[None, None] for name, value in values.items()} if group == "mode" else values


def _difference(before: tuple[Any, ...], now: tuple[Any, ...]) -> str:
    """What differs between two lists of names, and what to do about it."""
    new, gone = ([name for name in one if name not in set(other)] for one, other in ((now, before), (before, now)))
    said = [f"{shorten(names)} {verb}" for names, verb in ((new, "only in these data"), (gone, "only in the earlier")) if names]
    return (
        f"{'; '.join(said) or 'the same in another order'}. Read these data with the names of the earlier ones (items=..., "
        "annotators=...), or leave start= out"
    )


class Simulated(NamedTuple):
    """Outcomes drawn from a model, and the parameters that they were drawn under."""

    data: Any
    truth: dict[str, np.ndarray]


def simulate(model: Model, questions: Judgements, *, seed: int, given: Values | None = None) -> Simulated:
    """Draw outcomes for questions, and first the parameters from the prior unless they are given.

    Parameters
    ----------
    model : Model
    questions : Comparisons or Labels
        Who is asked about which pair, how often; outcomes in it are ignored.
    seed : int
    given : mapping, optional
        Values of sites to hold, by name; the others are drawn from the prior given them.

    Returns
    -------
    Simulated
        ``data``, the questions with outcomes, and ``truth``, every site's value; for labels also ``true_class``, the code of
        each item's class, and for models of types ``type``, that of each annotator.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> again = rt.simulate(rt.ExtendedBTL(), votes, seed=1)
    >>> again.truth["competence"].shape
    (3,)
    """
    _check_types(model, questions, PGGibbs(), seed)
    asked = questions.without_outcomes()
    table = jax.tree.map(jnp.asarray, asked)
    if table.count is not None:
        # NumPyro draws binomial outcomes out of integer counts only.
        table = dataclasses.replace(table, count=table.count.astype(int))
    sites = latent_sites(model, table)
    given = _held(model, sites, given or {})
    program = handlers.substitute(handlers.seed(model.generate, jax.random.key(seed)), given)
    trace = handlers.trace(program).get_trace(table)
    truth = {name: np.asarray(trace[name]["value"]) for name in sites}
    observed = trace[model.observed]
    if (latent := latent_of(model, asked)) and observed["intermediates"]:
        truth[latent.axes[1]] = np.asarray(observed["intermediates"][0])
    return Simulated(asked.with_outcomes(np.asarray(observed["value"])), truth)


def _held(model: Model, sites: dict[str, Any], given: Values) -> Values:
    """Values of sites to hold, checked against the model."""
    if not isinstance(given, Mapping):
        raise SettingError(f"given= takes a mapping of site names to values, such as given={{'reward': ...}}, not {given!r}")
    held = {}
    for name, value in given.items():
        if name not in sites:
            raise SettingError(f"{type(model).__name__} has no site {name!r} to hold; it has {list(sites)}")
        try:
            held[name] = jnp.asarray(value, float)
        except (TypeError, ValueError) as error:
            raise SettingError(f"given={{{name!r}: ...}} must hold numbers, not {value!r}") from error
        if np.shape(value) != sites[name].shape:
            raise SettingError(f"{name!r} has shape {np.shape(value)}; {type(model).__name__} needs {sites[name].shape}")
        support = sites[name].support
        inside = jnp.isfinite(held[name]).all(tuple(range(-support.event_dim, 0))) & support(held[name])
        if not inside.all():
            wrong = float(held[name][~inside].ravel()[0])
            raise SettingError(f"{name!r} holds {wrong:g}, which its prior rules out; it must lie in {sites[name].support}")
    return held

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

from raters._identify import identified
from raters._judgements import Judgements
from raters._result import as_tree, check_data, check_model, pointwise
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
    for caution in model.cautions(data):
        warnings.warn(caution, DataWarning, stacklevel=2)
    begin = time.perf_counter()
    draws = identified(model, data, backend.run(model, data, jax.random.key(seed), progress=progress))
    mixed = warn_unless_converged(draws.values, draws.facts.get("divergences", 0)) if backend.exact else {}
    facts = (
        draws.facts
        | mixed
        | {
            "model": repr(model),
            "backend": repr(backend),
            "seed": seed,
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
        raise SettingError(f"the back-end must be one such as rt.PGGibbs() or rt.NUTS(); it is {name}")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**32:
        raise SettingError(f"seed={seed!r} is not possible; it must be a whole number from 0 to 2**32 - 1, such as seed=0")


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

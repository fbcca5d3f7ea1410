"""The verbs that run a model: fit it, simulate from it, predict with it, and score it."""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
import xarray as xr
from numpyro import handlers
from scipy.special import expit

from raters import _frame
from raters.data import Comparisons
from raters.errors import BackendError, DataError, DataWarning, SettingError
from raters.inference import Backend, PGGibbs
from raters.inference._rows import logits_of
from raters.inference._trace import latent_sites, pointwise_log_likelihood
from raters.model import Model, Values, identify

# Pointwise log-likelihoods are stored without being asked for up to this many numbers (240 MB).
_STORE_LIMIT = 60_000_000


def fit(
    model: Model,
    data: Comparisons,
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
    data : Comparisons
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
    if data.wins is None:
        raise DataError("these comparisons have no outcomes, so there is nothing to fit; rt.simulate draws outcomes")
    data.warn()
    for caution in model.cautions(data):
        warnings.warn(caution, DataWarning, stacklevel=2)
    if reason := backend.why_not(model, data):
        raise BackendError(reason)
    begin = time.perf_counter()
    draws = backend.run(model, data, jax.random.key(seed), progress=progress)
    facts = draws.facts | {
        "model": repr(model),
        "backend": repr(backend),
        "seed": seed,
        "seconds": time.perf_counter() - begin,
        **{f"{name}_version": version(name) for name in ("raters", "numpyro", "jax")},
    }
    result = _as_tree(model, data, draws, facts)
    size = draws.values[next(iter(draws.values))].shape[:2]
    if log_likelihood or (log_likelihood is None and size[0] * size[1] * data.num_comparisons <= _STORE_LIMIT):
        result["log_likelihood"] = _pointwise(model, result, data)
    return result


def _check_types(model, data, backend, seed) -> None:
    check_model(model)
    check_comparisons(data, "the second argument")
    if isinstance(backend, type) or not isinstance(backend, Backend):
        name = backend.__name__ if isinstance(backend, type) else repr(backend)
        raise SettingError(f"the back-end must be one such as rt.PGGibbs() or rt.NUTS(); it is {name}")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**32:
        raise SettingError(f"seed={seed!r} is not possible; it must be a whole number from 0 to 2**32 - 1, such as seed=0")


def check_model(model: Any) -> None:
    """A model, not its class."""
    if not isinstance(model, Model):
        name = model.__name__ if isinstance(model, type) else type(model).__name__
        also = f"; write rt.{name}()" if isinstance(model, type) and issubclass(model, Model) else ""
        raise SettingError(f"the first argument must be a model, such as rt.BTL(); it is {name}{also}")


def check_comparisons(data: Any, what: str) -> None:
    """Comparisons, not the table that they are read from."""
    if not hasattr(data, "coords") or not hasattr(data, "num_comparisons"):
        raise SettingError(
            f"{what} must be Comparisons; it is {type(data).__name__}. "
            "Read a table with rt.Comparisons.from_frame(table, winner=..., loser=...)"
        )


def _as_tree(model: Model, data: Any, draws, facts: dict[str, Any]) -> xr.DataTree:
    """Draws and data as a tree with names on every axis."""
    sites = latent_sites(model, data)
    names = {axis: label_array(values) for axis, values in data.coords.items()}

    def dataset(values: dict[str, np.ndarray], lead: tuple[str, ...], dims) -> xr.Dataset:
        variables = {name: (lead + dims(name), value) for name, value in values.items()}
        sizes = {
            axis: size for name, value in values.items() for axis, size in zip(lead + dims(name), np.shape(value), strict=True)
        }
        coords = {axis: names.get(axis, np.arange(size)) for axis, size in sizes.items()}
        return xr.Dataset(variables, coords=coords, attrs={"inference_library": "raters"})

    def own(name: str) -> tuple[str, ...]:
        return sites[name].dims

    groups = {"posterior": dataset(identify(model, draws.values, 2), ("chain", "draw"), own)}
    if draws.stats:
        groups["sample_stats"] = dataset(draws.stats, ("chain", "draw"), lambda _: ())
    if draws.mode:
        groups["mode"] = dataset(identify(model, draws.mode, 0), (), own)
    if draws.history:
        axis = {"elbo": "step"}
        groups["optimisation"] = xr.Dataset({name: (axis.get(name, "sweep"), trace) for name, trace in draws.history.items()})
    for group, values in data.groups().items():
        groups[group] = dataset(values, (), lambda _: ("comparison",))
    tree = xr.DataTree.from_dict(groups)
    tree.attrs.update(facts | data.flags())
    return tree


def label_array(values: Sequence[Any]) -> np.ndarray:
    """Names as a coordinate that NetCDF can hold: integers as they are, everything else as text."""
    if isinstance(values, range):
        return np.arange(values.start, values.stop, dtype=np.int32)
    if all(isinstance(value, (int, np.integer)) and not isinstance(value, bool) for value in values):
        return np.asarray(values, dtype=np.int64)
    return np.array([str(value) for value in values], dtype=object)


class Simulated(NamedTuple):
    """Outcomes drawn from a model, and the parameters that they were drawn under."""

    data: Comparisons
    truth: dict[str, np.ndarray]


def simulate(model: Model, questions: Comparisons, *, seed: int, given: Values | None = None) -> Simulated:
    """Draw outcomes for questions, and first the parameters from the prior unless they are given.

    Parameters
    ----------
    model : Model
    questions : Comparisons
        Who is asked about which pair, how often; outcomes in it are ignored.
    seed : int
    given : mapping, optional
        Values of sites to hold, by name; the others are drawn from the prior given them.

    Returns
    -------
    Simulated
        ``data``, the questions with outcomes, and ``truth``, every site's value.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> again = rt.simulate(rt.ExtendedBTL(), votes, seed=1)
    >>> again.truth["competence"].shape
    (3,)
    """
    _check_types(model, questions, PGGibbs(), seed)
    asked = jax.tree.map(jnp.asarray, questions.without_outcomes())
    if asked.count is not None:
        # NumPyro draws binomial outcomes out of integer counts only.
        asked = dataclasses.replace(asked, count=asked.count.astype(int))
    sites = latent_sites(model, asked)
    given = _held(model, sites, given or {})
    program = handlers.substitute(handlers.seed(model.generate, jax.random.key(seed)), given)
    trace = handlers.trace(program).get_trace(asked)
    truth = {name: np.asarray(trace[name]["value"]) for name in sites}
    wins = np.asarray(trace[model.observed]["value"], np.float32)
    return Simulated(dataclasses.replace(questions, wins=wins), truth)


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
        inside = jnp.isfinite(held[name]) & sites[name].support(held[name])
        if not inside.all():
            wrong = float(held[name][~inside].ravel()[0])
            raise SettingError(f"{name!r} holds {wrong:g}, which its prior rules out; it must lie in {sites[name].support}")
    return held


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
    check_model(model)
    data = Comparisons.from_result(result)
    names = list(latent_sites(model, data))
    if missing := [name for name in names if name not in result["posterior"]]:
        fitted = result.attrs.get("model", "another model")
        raise SettingError(
            f"this result has no draws of {missing}: it was fitted with {fitted}, not {model!r}; pass that model"
        )
    return names


def predict(model: Model, result: xr.DataTree, questions: Comparisons | None = None) -> xr.DataArray:
    """The probability that the first item wins, for each question and posterior draw.

    Parameters
    ----------
    model : Model
        The model that was fitted.
    result : xarray.DataTree
    questions : Comparisons, optional
        By default those that were fitted. Items and annotators are matched by name.

    Returns
    -------
    xarray.DataArray
        Probabilities with axes ``chain``, ``draw``, ``comparison``, and the names ``first``, ``second``, ``by`` of each
        comparison.

    Raises
    ------
    DataError
        When a question names an item or annotator that was not in the fit.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, rt.PGEM(draws=100), seed=0, progress=False)
    >>> rt.predict(rt.BTL(), result).sizes["draw"]
    100
    """
    check_model(model)
    fitted = Comparisons.from_result(result)
    if questions is not None:
        check_comparisons(questions, "questions")
    asked = fitted if questions is None else recode(questions, fitted)
    values, sizes = draws_of(model, result)
    pieces = [np.asarray(_logits(model, piece, values)) for piece in asked.take(slice(None)).chunks(1 << 16)]
    logits = np.concatenate(pieces, axis=1)
    who = {"first": asked.first, "second": asked.second, "by": asked.annotator}
    names = {"first": asked.items, "second": asked.items, "by": asked.annotators}
    return xr.DataArray(
        expit(logits).reshape(*sizes, -1),
        dims=("chain", "draw", "comparison"),
        coords={
            "chain": result["posterior"]["chain"].values,
            "draw": result["posterior"]["draw"].values,
            "comparison": np.arange(asked.num_comparisons),
            **{role: ("comparison", label_array(names[role])[np.asarray(codes)]) for role, codes in who.items()},
        },
        name="probability",
    )


@partial(jax.jit, static_argnums=0)
def _logits(model: Model, data: Any, draws: Values) -> jax.Array:
    return jax.lax.map(lambda values: logits_of(model, data, values), draws)


def recode(questions: Comparisons, fitted: Comparisons) -> Comparisons:
    """Questions in the codes of the fitted data."""
    first, second = (_frame.match(side, questions.items, fitted.items, "item") for side in (questions.first, questions.second))
    annotator = _frame.match(questions.annotator, questions.annotators, fitted.annotators, "annotator")
    return dataclasses.replace(
        questions, first=first, second=second, annotator=annotator, items=fitted.items, annotators=fitted.annotators
    )


def log_likelihood(model: Model, result: xr.DataTree, *, by: str = "comparison") -> xr.DataTree:
    """The result with its pointwise log-likelihood, summed to the unit that is left out in cross-validation.

    Models whose likelihood marginalises something per annotator have no smaller unit than that; bring two
    models to one unit before ``arviz.compare``.

    Parameters
    ----------
    model : Model
        The model that was fitted.
    result : xarray.DataTree
    by : {"comparison", "annotator"}

    Returns
    -------
    xarray.DataTree
        A copy with group ``log_likelihood``: variable ``outcome`` with axes ``chain``, ``draw`` and `by`.

    Examples
    --------
    >>> import arviz as az, raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, rt.PGEM(draws=100), seed=0, progress=False)
    >>> rt.log_likelihood(rt.BTL(), result, by="annotator").log_likelihood["outcome"].dims
    ('chain', 'draw', 'annotator')
    """
    from raters._check import one_of

    one_of("by", by, ("comparison", "annotator"))
    data = Comparisons.from_result(result)
    pointwise = _pointwise(model, result, data)
    if by == "annotator":
        voted, code = np.unique(data.annotator, return_inverse=True)
        member = scipy.sparse.coo_array((np.ones(len(code)), (np.arange(len(code)), code)), (len(code), len(voted)))
        table = pointwise[model.observed].values
        sums = (table.reshape(-1, len(code)) @ member.tocsc()).reshape(*table.shape[:2], len(voted))
        pointwise = xr.Dataset(
            {model.observed: (("chain", "draw", "annotator"), sums)},
            coords={"annotator": label_array(data.annotators)[voted], "chain": pointwise["chain"], "draw": pointwise["draw"]},
        )
    copy = result.copy()
    copy["log_likelihood"] = xr.DataTree(pointwise)
    return copy


def _pointwise(model: Model, result: xr.DataTree, data: Any) -> xr.Dataset:
    values, sizes = draws_of(model, result)
    # Computed in float32, the likeliest outcomes have equal log-likelihoods, and Pareto smoothing refuses equal tails.
    with jax.enable_x64(True):
        values = {name: np.asarray(value, np.float64) for name, value in values.items()}
        table = np.asarray(_pointwise_draws(model, jax.tree.map(jnp.asarray, data), values), np.float32).reshape(*sizes, -1)
    coords = {axis: result["posterior"][axis].values for axis in ("chain", "draw")}
    return xr.Dataset(
        {model.observed: (("chain", "draw", "comparison"), table)},
        coords=coords | {"comparison": np.arange(table.shape[-1])},
    )


@partial(jax.jit, static_argnums=0)
def _pointwise_draws(model: Model, data: Any, draws: Values) -> jax.Array:
    return jax.lax.map(lambda values: pointwise_log_likelihood(model, data, values), draws)

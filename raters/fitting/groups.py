"""Groups of a result that ArviZ's plots look for, on request."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
import xarray as xr
from jaxtyping import Array, Float

from raters.errors import ConvergenceWarning, refuse
from raters.errors.validation import checked, one_of, whole
from raters.fitting.parts import PART_OF, pointwise
from raters.fitting.predict import probs_of_draws, replicated
from raters.fitting.result import draws_of, in_double, lead_coords, program_of
from raters.fitting.simulate import with_whole_counts
from raters.fitting.storage import worded
from raters.judgements.base import Judgements
from raters.judgements.names import names_array
from raters.kinds import kind_of
from raters.model import Model, Values, identify, own_sites
from raters.program import Program, left_out_log_probs, models_of, prior_draws, trace
from raters.program.vectors import log_likelihoods

Group = Literal["posterior_predictive", "prior", "prior_predictive", "log_prior", "log_likelihood"]
_OF_PRIOR = {"prior", "prior_predictive", "log_prior"}
_OF_OUTCOMES = {"posterior_predictive", "prior", "prior_predictive"}


@checked
def with_groups(
    model: Model[Any],
    result: xr.DataTree,
    *groups: Group,
    seed: int = 0,
    draws: int = 1000,
    by: str | None = None,
) -> xr.DataTree:
    r"""The result with further groups, which ArviZ's plots of predictions, priors and sensitivity
    need.

    Parameters
    ----------
    model : Model
        The model that was fitted.
    result : xarray.DataTree
    *groups : {"posterior_predictive", "prior", "prior_predictive", "log_prior", "log_likelihood"}
        By default all of them.
    seed : int
        For what is drawn.
    draws : int
        Number of draws of the prior.
    by : str, optional
        Unit of outcomes and log-likelihoods, also in ``observed_data``: single judgements, by the
        kind's word for one (``"vote"``, ``"label"``), or rows of the data, by their axis
        (``"comparison"``). By default rows, and the unit of the likelihood.

    Returns
    -------
    xarray.DataTree
        A copy with

        - ``posterior_predictive``: outcomes drawn under each posterior draw, for the same items and
          annotators: a latent class is drawn from its posterior under the draw;
        - ``prior``: draws of each site, identified as those of the posterior are;
        - ``prior_predictive``: outcomes drawn under each of them;
        - ``log_prior``: log prior density of each site under each posterior draw;
        - ``log_likelihood``: as `raters.log_likelihood` gives it.

    Notes
    -----
    Labels of one item share its class, which the likelihood sums out, so it has no factor for each.
    With `by`, log-likelihoods are those that leaving out one judgement (or row) asks for,
    :math:`\log p(y_m \mid y_{-m}, \theta)` given the others of its unit (Bürkner, Gabry and Vehtari
    2021, Computational Statistics 36, 1243–1261), and outcomes are drawn from the same
    distribution: what ``arviz.loo`` and ``arviz.plot_loo_pit`` need. They do not sum to the
    log-likelihood of the data, which ``arviz.plot_psense_dist`` takes: use the groups without `by`
    there, and for the verbs of raters the result itself.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, seed=0, progress=False)
    >>> more = rt.fitting.with_groups(rt.BTL(), result, "posterior_predictive", by="vote")
    >>> more["posterior_predictive"]["outcome"].sizes["vote"]
    200
    """
    for group in groups:
        one_of("groups", group, get_args(Group))
    whole("draws", draws, least=2)
    wanted, tree = set(groups or get_args(Group)), result.copy()
    program = program_of(model, result)
    data = program.data
    if PART_OF in result.attrs and wanted & _OF_PRIOR:
        problem = f"ask for a prior, and that of a part of a joint fit is not {model.title}'s"
        expected = f"name groups without a prior: {sorted(set(get_args(Group)) - _OF_PRIOR)}"
        refuse("groups", groups, problem, expected)
    if by is not None or wanted & _OF_OUTCOMES:
        data.check_listed()
    word = kind_of(data).words.one
    if by is not None:
        one_of("by", by, dict.fromkeys((word, data.row)))
    part = Program(model, votes_of(data)) if by == word else program
    # A word that is also an axis of names, as that of labels is, cannot be the axis of rows.
    row = data.row if by is None or by in data.coords else by
    name = str(next(iter(result["observed_data"].data_vars)))
    outcomes, lead = partial(_outcomes, row, name), lead_coords(result)
    values, sizes = draws_of(program, result)
    if by:
        tree["observed_data"] = outcomes(np.asarray(getattr(part.data, part.data.answer)), {})
    if "posterior_predictive" in wanted:
        drawn = _predicted(part, values, seed, left_out=by is not None)
        tree["posterior_predictive"] = outcomes(drawn.reshape(*sizes, *drawn.shape[1:]), lead)
    if wanted & {"prior", "prior_predictive"}:
        of_sites, of_rows = _prior(part, result, seed, draws)
        fresh = {"prior": of_sites, "prior_predictive": outcomes(of_rows[None], of_sites.coords)}
        tree.update({group: xr.DataTree(fresh[group]) for group in sorted(wanted & set(fresh))})
    if "log_prior" in wanted:
        table = in_double(_log_priors, part, values)
        each = {site: (tuple(lead), table[site].reshape(sizes)) for site in part.sites}
        tree["log_prior"] = xr.Dataset(each, lead)
    if "log_likelihood" in wanted and by:
        table = in_double(left_out_log_probs, part, values).astype(np.float32)
        tree["log_likelihood"] = outcomes(table.reshape(*sizes, -1), lead)
    elif "log_likelihood" in wanted:
        tree["log_likelihood"] = pointwise(program, result)
    return tree


def votes_of(data: Judgements) -> Any:
    """One row for each judgement."""
    real: Any = data.unpadded()
    if real.answer_scale == "choice":
        return real.single()
    rows, outcomes, counts = real.single_outcomes()
    number = counts.round().astype(np.int64)
    votes = dataclasses.replace(real.rows(np.repeat(rows, number)), count=None)
    return votes.answered(np.repeat(outcomes, number, axis=0))


def _outcomes(row: str, name: str, values: np.ndarray, lead: Mapping[Any, Any]) -> xr.Dataset:
    """Outcomes with axes."""
    axes = (row, "position")[: np.ndim(values) - 2 * bool(lead)]
    lead = {axis: lead[axis] for axis in ("chain", "draw") if axis in lead}
    rows = zip(axes, np.shape(values)[len(lead) :], strict=True)
    coords = lead | {axis: np.arange(size) for axis, size in rows}
    return xr.Dataset({name: (tuple(coords), values)}, coords)


def _predicted(program: Program[Any], draws: Values, seed: int, *, left_out: bool) -> np.ndarray:
    """Outcomes under each posterior draw."""
    data, rng = program.data, np.random.default_rng(seed)
    answers = np.asarray(data.answers(), float)
    shape = np.shape(getattr(data, data.answer))
    number = len(next(iter(draws.values())))
    values = np.empty((number, *shape), data.answer_dtype)
    tables = probs_of_draws(program, draws, seed, left_out=left_out)
    for place, (probs, _) in enumerate(tables):
        counts = replicated(data, probs, rng)
        values[place] = counts.T if len(shape) > 1 else answers @ counts
    return values


def _prior(
    program: Program[Any], result: xr.DataTree, seed: int, draws: int
) -> tuple[xr.Dataset, np.ndarray]:
    """Draws of the sites, and outcomes under each."""
    data, sites = program.data.unanswered(), program.sites
    table = with_whole_counts(jax.tree.map(jnp.asarray, data))
    keys = jax.random.split(jax.random.key(seed), draws)
    drawn = prior_draws(program.model, (*sites, data.observed), table, keys)
    values = {name: np.asarray(value) for name, value in drawn.items()}
    outcomes = values.pop(data.observed)
    lead: dict[str, Any] = {"chain": [0], "draw": np.arange(draws)}
    variables = {
        name: ((*lead, *sites[name].dims), value[None])
        for name, value in identify(program.model, values, 1).items()
    }
    posterior: Any = result["posterior"]
    axes = {axis for site in sites.values() for axis in site.dims}
    names = {axis: posterior.coords[axis].values for axis in axes & set(posterior.coords)}
    return xr.Dataset(variables, lead | names), outcomes


def _log_priors(model: Model[Any], data: Any, values: Values) -> dict[str, Float[Array, ""]]:
    """Log prior density of each site at values."""
    return {
        name: site["fn"].log_prob(site["value"]).sum()
        for name, site in trace(model, data, values).items()
        if name in values
    }


# ---------------------------------------------------------------- log-likelihoods

# Draws under which vectors of single judges are integrated out, and the largest standard error of
# the sum over judges, in nats, that differences between models are told beside.
_MOST_INTEGRATED, _MOST_ERROR = 400, 0.5


@checked
def log_likelihood(model: Model[Any], result: xr.DataTree, *, by: str | None = None) -> xr.DataTree:
    """The result with its pointwise log-likelihood, summed to the unit that is left out in
    cross-validation.

    Where annotators have coefficients of their own, as in `MixedLogit`, those are integrated out
    with ``by="annotator"``, by importance sampling under at most 400 of the draws; the attribute
    ``monte_carlo_error`` of the group is the standard error of the sum over annotators, in nats.

    Parameters
    ----------
    model : Model
        The model that was fitted.
    result : xarray.DataTree
    by : str, optional
        Axis on which each row has one place, such as ``"comparison"``, ``"annotator"``, ``"item"``,
        ``"set"``, ``"state"`` or ``"trajectory"``. By default what the likelihood is a product
        over: a comparison, an item with all its labels, a set that something was chosen from, or,
        for models of types, an annotator with all votes.

    Returns
    -------
    xarray.DataTree
        A copy with group ``log_likelihood``: the observed variable with axes ``chain``, ``draw``
        and `by`. Of several kinds of judgement (`raters.models.JointModel`) a variable
        ``part.outcome`` for each; `by` is for one part at a time (`raters.fitting.part`).

    Examples
    --------
    >>> import arviz as az, raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, seed=0, progress=False)
    >>> rt.log_likelihood(rt.BTL(), result, by="annotator").log_likelihood["outcome"].dims
    ('chain', 'draw', 'annotator')
    """
    if by is None and isinstance(model, Model) and "" not in models_of(model):
        return _with(result, pointwise(program_of(model, result, several=True), result))
    program = program_of(model, result)
    data = program.data
    by = program.unit if by is None else by
    sums: list[str] = []
    if program.unit == data.row:  # Rows can be summed to whatever each of them has one code of.
        sums = list(data.row_axes())
    possible = [program.unit, *sums]
    if by not in possible:
        choices = f"choose one of {', '.join(map(repr, possible))}"
        refuse("by", by, expected=choices)
    if by == data.judge and own_sites(program.model):
        return _with(result, _integrated(program, result))
    table = pointwise(program, result)
    if by != program.unit:
        present, code = np.unique(data.codes(by), return_inverse=True)
        size = (len(code), len(present))
        member = scipy.sparse.coo_array((np.ones(len(code)), (np.arange(len(code)), code)), size)
        rows = table[model.observed].values
        totals = rows.reshape(-1, len(code)) @ member.tocsc()
        variable = (("chain", "draw", by), totals.reshape(*rows.shape[:2], len(present)))
        names = names_array(data.coords[by])[present]
        table = xr.Dataset({model.observed: variable}, lead_coords(result) | {by: names})
    return _with(result, table)


def _with(result: xr.DataTree, table: xr.Dataset) -> xr.DataTree:
    """A copy of a result with a log-likelihood."""
    copy = result.copy()
    copy["log_likelihood"] = xr.DataTree(table)
    return copy


def _integrated(program: Program[Any], result: xr.DataTree) -> xr.Dataset:
    """Log-likelihood of each judge's answers, with vectors of their own integrated out."""
    posterior, data = result["posterior"], program.data
    chains, number = posterior.sizes["chain"], posterior.sizes["draw"]
    every = np.arange(0, number, max(1, -(-chains * number // _MOST_INTEGRATED)))
    thinned = result.isel(draw=every) if len(every) < number else result
    values, sizes = draws_of(program, thinned)
    table, error = log_likelihoods(program, values)
    judge = data.judge
    if not error < _MOST_ERROR:
        said = worded("integrated_error", judge=judge, error=error, most=_MOST_ERROR)
        warnings.warn(said, ConvergenceWarning, stacklevel=4)
    present = np.unique(data.codes(judge))
    coords = lead_coords(thinned) | {judge: names_array(data.coords[judge])[present]}
    variable = (("chain", "draw", judge), table[:, present].reshape(*sizes, -1))
    facts = {"monte_carlo_error": error}
    return xr.Dataset({program.model.observed: variable}, coords, facts)

"""Pointwise log-likelihoods, by the unit that cross-validation leaves out."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse
import xarray as xr

from raters.errors import ConvergenceWarning, refuse
from raters.errors.validation import checked
from raters.fitting.parts import pointwise
from raters.fitting.result import draws_of, lead_coords, program_of, whole_program_of
from raters.inference.base import one_blas_thread
from raters.inference.polya_gamma import panel_mode
from raters.judgements.names import names_array
from raters.model import Model, Own, facts_of
from raters.program import Program, models_of

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
        return _with(result, pointwise(whole_program_of(model, result), result))
    program = program_of(model, result)
    data = program.data
    by = program.unit if by is None else by
    sums: list[str] = []
    if program.unit == data.row:  # Rows can be summed to whatever each of them has one code of.
        sums = list(data.row_axes())
    elif program.unit == data.unit and data.together:  # Whoever answers, answers a whole unit.
        sums = [data.judge]
    possible = [program.unit, *sums]
    if by not in possible:
        choices = f"choose one of {', '.join(map(repr, possible))}"
        refuse("by", by, expected=choices)
    if by == data.judge and facts_of(model, Own):
        return _with(result, _integrated(program, result))
    table = pointwise(program, result)
    if by != program.unit:
        codes = data.codes(by) if program.unit == data.row else data.unit_codes(by)
        present, code = np.unique(codes, return_inverse=True)
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
    with one_blas_thread():
        values = {name: np.asarray(value, np.float64) for name, value in values.items()}
        table, error = panel_mode.log_likelihoods(program, values)
    judge = data.judge
    if not error < _MOST_ERROR:
        warnings.warn(
            f"the log-likelihood by {judge} has a standard error of {error:.2g} nats from"
            f" importance sampling (should be below {_MOST_ERROR:g}); differences between models"
            " that are not much larger tell nothing",
            ConvergenceWarning,
            stacklevel=4,
        )
    present = np.unique(data.unit_codes(judge))
    coords = lead_coords(thinned) | {judge: names_array(data.coords[judge])[present]}
    variable = (("chain", "draw", judge), table[:, present].reshape(*sizes, -1))
    facts = {"monte_carlo_error": error}
    return xr.Dataset({program.model.observed: variable}, coords, facts)

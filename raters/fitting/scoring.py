"""Pointwise log-likelihoods, by the unit that cross-validation leaves out."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import xarray as xr

from raters.errors import SettingError
from raters.errors.validation import checked
from raters.fitting.parts import pointwise
from raters.fitting.result import program_of, whole_program_of
from raters.judgements.names import names_array
from raters.model import Model


@checked
def log_likelihood(model: Model[Any], result: xr.DataTree, *, by: str | None = None) -> xr.DataTree:
    """The result with its pointwise log-likelihood, summed to the unit that is left out in
    cross-validation.

    Models whose likelihood marginalises something per annotator have no smaller unit than that;
    bring two models to one unit before ``arviz.compare``.

    Parameters
    ----------
    model : Model
        The model that was fitted.
    result : xarray.DataTree
    by : {"comparison", "annotator", "item", "set"}, optional
        By default what the likelihood is a product over: a comparison, an item with all its labels,
        a set that something was chosen from, or, for models of types, an annotator with all votes.

    Returns
    -------
    xarray.DataTree
        A copy with group ``log_likelihood``: variable ``outcome`` with axes ``chain``, ``draw`` and
        `by`. Of several kinds of judgement (`raters.JointModel`) a variable ``part.outcome`` for
        each, which ``arviz.loo(result, var_name=...)`` takes; `by` is for one part at a time, as
        ``rt.log_likelihood(*rt.part(model, result, "votes"), by="annotator")``.

    Raises
    ------
    SettingError
        When the likelihood cannot be summed to `by`, or `result` was fitted with another model.

    Examples
    --------
    >>> import arviz as az, raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, seed=0, progress=False)
    >>> rt.log_likelihood(rt.BTL(), result, by="annotator").log_likelihood["outcome"].dims
    ('chain', 'draw', 'annotator')
    """
    if by is None and isinstance(model, Model) and model.parts:
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
        shared = (
            f", whose judgements share a {program.latent.name.replace('_', ' ')} that is summed out"
            if program.latent
            else ""
        )
        choices = f"choose one of {', '.join(map(repr, possible))}"
        raise SettingError(
            f"by={by!r} is not possible: the likelihood of {model.title} is a product over"
            f" the axis {program.unit!r}{shared}; {choices}",
            parameter="by",
            value=by,
            expected=choices,
        )
    table = pointwise(program, result)
    if by != program.unit:
        codes = data.codes(by) if program.unit == data.row else data.unit_codes(by)
        present, code = np.unique(codes, return_inverse=True)
        size = (len(code), len(present))
        member = scipy.sparse.coo_array((np.ones(len(code)), (np.arange(len(code)), code)), size)
        rows = table[model.observed].values
        totals = (rows.reshape(-1, len(code)) @ member.tocsc()).reshape(
            *rows.shape[:2], len(present)
        )
        coords = {axis: table[axis] for axis in ("chain", "draw")}
        table = xr.Dataset(
            {model.observed: (("chain", "draw", by), totals)},
            coords=coords | {by: names_array(data.coords[by])[present]},
        )
    return _with(result, table)


def _with(result: xr.DataTree, table: xr.Dataset) -> xr.DataTree:
    """A copy of a result with a log-likelihood."""
    copy = result.copy()
    copy["log_likelihood"] = xr.DataTree(table)
    return copy

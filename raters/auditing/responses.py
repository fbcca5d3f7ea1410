"""Audit of item responses: the ability of each person, and a table of the items."""

from __future__ import annotations

import numpy as np
import xarray as xr

from raters.fitting.result import draws_of
from raters.judgements.names import names_array
from raters.judgements.responses import Responses
from raters.kinds import AuditLimits, Quantities
from raters.program import Program


def quantities(program: Program[Responses], result: xr.DataTree, limits: AuditLimits) -> Quantities:
    """Ability of each person, and the share of their responses that are right.

    Parameters
    ----------
    program : Program
    result : xarray.DataTree
    limits : AuditLimits

    Returns
    -------
    Quantities
        With the table ``"item_parameters"`` of `items`.
    """
    data = program.data
    asked = np.maximum(data.judgements_by("person"), 1)
    return Quantities(
        {"ability": draws_of(program, result)[0]["ability"]},
        judged="ability",
        columns={"share_right": data.right_by("person") / asked},
        tables={"item_parameters": items(program, result, limits.level)},
    )


def items(program: Program[Responses], result: xr.DataTree, level: float) -> xr.Dataset:
    """Parameters of each item with their intervals, and what was answered.

    Parameters
    ----------
    program : Program
    result : xarray.DataTree
    level : float
        Posterior probability of the intervals.

    Returns
    -------
    xarray.Dataset
        Axis item: ``responses``, ``share_right``, and the posterior mean of each parameter of
        items, such as ``difficulty``, with ``_low`` and ``_high``.
    """
    data, draws = program.data, draws_of(program, result)[0]
    asked = data.judgements_by("item")
    columns = {"responses": asked, "share_right": data.right_by("item") / np.maximum(asked, 1)}
    tails = ((1 - level) / 2, (1 + level) / 2)
    for name, site in program.sites.items():
        if site.dims == ("item",):
            low, high = np.quantile(draws[name], tails, axis=0)
            columns |= {name: draws[name].mean(0), f"{name}_low": low, f"{name}_high": high}
    return xr.Dataset(
        {name: ("item", value) for name, value in columns.items()},
        coords={"item": names_array(data.items)},
    )

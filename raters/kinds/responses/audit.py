"""Audit of item responses, right or wrong or graded: abilities, and a table of the items."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from raters.auditing.intervals import table
from raters.errors import refuse
from raters.fitting.result import draws_of
from raters.judgements.graded_responses import GradedResponses
from raters.judgements.responses import Responses
from raters.kinds import AuditLimits, Quantities
from raters.program import Program


def quantities(program: Program[Any], result: xr.DataTree, limits: AuditLimits) -> Quantities:
    """Ability of each person, and their share of right responses or mean level."""
    if "ability" not in program.sites:
        expected = "positions are neither good nor bad; fit a model with abilities"
        refuse("model", program.model, "has no abilities to audit", expected, instead="rt.Rasch()")
    return Quantities(
        {"ability": draws_of(program, result)[0]["ability"]},
        judged="ability",
        columns=_answered(program.data, "person"),
        tables={"item_parameters": items(program, result, limits.level)},
    )


def _answered(data: Responses | GradedResponses, axis: str) -> dict[str, np.ndarray]:
    """Share of right responses of each name, or the mean level of graded ones."""
    asked = np.maximum(data.judgements_by(axis), 1)
    if isinstance(data, GradedResponses):
        return {"mean_level": data.answers_by(axis) @ data.scores() / asked}
    return {"share_right": data.answers_by(axis)[:, 1] / asked}


def items(program: Program[Any], result: xr.DataTree, level: float) -> xr.Dataset:
    """Parameters of each item with their intervals, and what was answered."""
    data, draws = program.data, draws_of(program, result)[0]
    columns = {"responses": data.judgements_by("item")} | _answered(data, "item")
    of_items = {}
    for name, site in program.sites.items():
        if site.dims == ("item",):
            of_items[name] = draws[name]
        elif site.dims == ("item", "step"):
            of_items[name] = draws[name].mean(-1)
            for place, step in enumerate(data.coords["step"]):
                of_items[f"{name}_{step}"] = draws[name][..., place]
    return table("item", data.items, columns, of_items, level)

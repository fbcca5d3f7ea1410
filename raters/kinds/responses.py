"""Item responses as kinds of judgement: right or wrong, and graded."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from raters import kinds
from raters.auditing.intervals import table
from raters.errors import refuse
from raters.fitting.result import draws_of
from raters.judgements.answers import GradedResponses, Responses
from raters.kinds import AuditLimits, Quantities
from raters.kinds.sections import shown
from raters.model import Model
from raters.models.responses import GradedResponse, IdealPoint, Rasch, TwoPL
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


# ---------------------------------------------------------------- section of a report

# An item whose discrimination is below this on average hardly tells persons apart.
_FLAT = 0.25


def hardest_first(context: kinds.AuditContext) -> kinds.Section | None:
    """Items from the hardest to the easiest."""
    parameters = items(context.program, context.result, context.level)
    if "difficulty" not in parameters:
        return None
    table = parameters.to_dataframe().reset_index()
    table = table.sort_values("difficulty", ascending=False, ignore_index=True)
    reverse = flat = table["item"].iloc[:0]
    if "discrimination" in table:
        is_reverse = table["discrimination_high"] < 0
        reverse = table["item"][is_reverse]
        flat = table["item"][(table["discrimination"] < _FLAT) & ~is_reverse]
    names, difficulty = table["item"].tolist(), table["difficulty"].tolist()
    numbers = {
        "hardest": names[0],
        "hardest_difficulty": difficulty[0],
        "easiest": names[-1],
        "easiest_difficulty": difficulty[-1],
        "flat_items": flat.tolist(),
        "reversed_items": reverse.tolist(),
    }
    columns = shown("item difficulty discrimination share_right mean_level responses")
    return kinds.Section(
        key="items",
        findings=(kinds.finding("items", **numbers),),
        columns=tuple(column for column in columns if column.name in table),
        table=table,
        figures={"item_person_map": {"result": context.result, "level": context.level}},
    )


def _kind(
    data: type[Responses] | type[GradedResponses], *models: type[Model[Any]], name: str = ""
) -> kinds.Kind:
    """A kind of responses, whose default model is the first."""
    wide = kinds.Reader(data.from_wide, shapes=(("person", "columns"),), may_be_empty=("columns",))
    return kinds.Kind(
        data=data,
        readers=(kinds.Reader(data.from_frame), wide),
        models=models,
        default=models[0](),
        name=name,
        words=kinds.Words("response", "responses", "least able"),
        quantities=quantities,
        threshold=-2.0,  # Of 0 for the average person: few are so far below.
        columns=shown("ability share_right mean_level"),
        sections=(hardest_first,),
    )


RESPONSES = _kind(Responses, Rasch, TwoPL, IdealPoint)


GRADED_RESPONSES = _kind(GradedResponses, GradedResponse, name="graded_responses")

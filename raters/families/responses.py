"""Item responses as kinds of judgement: right or wrong, and graded."""

from __future__ import annotations

from typing import Any

from raters import kinds
from raters.auditing import responses
from raters.families.sections import shown
from raters.judgements.graded_responses import GradedResponses
from raters.judgements.responses import Responses
from raters.model import Model
from raters.models.responses import GradedResponse, IdealPoint, Rasch, TwoPL

# An item whose discrimination is below this on average hardly tells persons apart.
_FLAT = 0.25


def items(context: kinds.AuditContext) -> kinds.Section | None:
    """Items from the hardest to the easiest."""
    parameters = responses.items(context.program, context.result, context.level)
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
        quantities=responses.quantities,
        threshold=-2.0,  # Of 0 for the average person: few are so far below.
        columns=shown("ability share_right mean_level"),
        sections=(items,),
    )


RESPONSES = _kind(Responses, Rasch, TwoPL, IdealPoint)
GRADED_RESPONSES = _kind(GradedResponses, GradedResponse, name="graded_responses")

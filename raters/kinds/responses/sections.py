"""Sections of a report on item responses."""

from __future__ import annotations

from raters import kinds
from raters.kinds.responses import audit
from raters.kinds.sections import shown

# An item whose discrimination is below this on average hardly tells persons apart.
_FLAT = 0.25


def items(context: kinds.AuditContext) -> kinds.Section | None:
    """Items from the hardest to the easiest."""
    parameters = audit.items(context.program, context.result, context.level)
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

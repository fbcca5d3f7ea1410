"""Report of item responses: columns of the audit's table, reasons, and the items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from raters import figures
from raters.auditing.responses import items as items_table
from raters.judgements.display import isolated
from raters.judgements.names import counted, shorten
from raters.kinds import AuditContext, Column, Section, Table
from raters.reporting.cells import write_csv

# An item whose discrimination is below this on average hardly tells persons apart.
_FLAT = 0.25

COLUMNS = (
    Column(
        "ability",
        "ability",
        "interval",
        "Ability is 0 for the average person. A person answers an item whose difficulty is their"
        " ability right with probability one half.",
    ),
    Column(
        "share_right",
        "right",
        "percent",
        "Right is the share of the person's responses that are right, whatever the items.",
    ),
    Column(
        "mean_level",
        "mean level",
        "number",
        "Mean level is that of the person's responses, whatever the items.",
    ),
)

_ITEMS = (
    Column("item", "item", "name"),
    Column("difficulty", "difficulty", "interval"),
    Column("discrimination", "discrimination", "interval"),
    Column("share_right", "right", "percent"),
    Column("mean_level", "mean level", "number"),
    Column("responses", "responses", "whole"),
)


def reason(row: Mapping[str, Any]) -> str:
    """Reason for a verdict: how far the ability is from that of the average person."""
    side = "below" if row["ability"] < 0 else "above"
    answered = (
        f"{row['share_right']:.0%} of the responses right"
        if "share_right" in row
        else f"mean level {row['mean_level']:.2f}"
    )
    return f"ability {abs(row['ability']):.1f} {side} the average person's; {answered}"


def items(context: AuditContext) -> Section | None:
    """Items from the hardest to the easiest."""
    table = items_table(context.program, context.result, context.level)
    if "difficulty" not in table:
        return None
    frame = table.to_dataframe().reset_index().sort_values("difficulty", ascending=False)
    rows = frame.to_dict("records")
    headline = (
        f"Of {counted(len(rows), 'item')}, “{isolated(rows[0]['item'])}” is the hardest (difficulty"
        f" {rows[0]['difficulty']:.1f}), and “{isolated(rows[-1]['item'])}” the easiest"
        f" ({rows[-1]['difficulty']:.1f})."
    )
    flat, reversed_items = _weak(rows) if "discrimination" in table else ([], [])
    return Section(
        key="items",
        title="Items",
        sentence=headline + _sentence(flat, reversed_items),
        headline=headline,
        tables=(
            Table(
                "difficulty",
                "Items, the hardest first",
                tuple(column for column in _ITEMS if column.name in frame),
                rows,
                both_ends=True,
            ),
        ),
        facts={
            "num_items": len(rows),
            "flat_items": [str(name) for name in flat],
            "reversed_items": [str(name) for name in reversed_items],
        },
        files={
            "items.csv": lambda path: write_csv(frame, path),
            "item-person-map.png": lambda path: figures.item_person_map(
                context.result, level=context.level
            ).savefig(path),
        },
    )


def _weak(rows: list[dict[Any, Any]]) -> tuple[list[Any], list[Any]]:
    """Items that hardly tell persons apart, and those that able persons probably answer wrong more
    often."""
    reversed_items = [row["item"] for row in rows if row["discrimination_high"] < 0]
    size = [(row["item"], row["discrimination"]) for row in rows]
    flat = [name for name, value in size if value < _FLAT and name not in reversed_items]
    return flat, reversed_items


def _sentence(flat: list[Any], reversed_items: list[Any]) -> str:
    """Sentences about both."""
    text = ""
    if flat:
        tell = "tells" if len(flat) == 1 else "tell"
        text += f" {counted(len(flat), 'item')} hardly {tell} persons apart: {shorten(flat)}."
    if reversed_items:
        text += (
            f" Able persons answer {counted(len(reversed_items), 'item')} wrong more often than"
            f" others, as where the key is wrong: {shorten(reversed_items)}."
        )
    return text

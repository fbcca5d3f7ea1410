"""Sections of an audit of labels: the items, the annotators, what dropping changes, agreement."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from rich.markup import escape

import raters as rt
from raters.auditing.labels import item_labels
from raters.cli import console, tables
from raters.cli.sections import (
    AuditContext,
    JudgeColumn,
    MakeSection,
    Section,
    judge_section,
    question_section,
)
from raters.figures import labels as label_figures
from raters.reporting.facts import STATISTICS, agreement_or_why_not, items_frame, percent, span

# From so many columns of text on, the audit says which class an annotator says too often.
_WIDE = 96
# An excess of a class below it is not worth a word.
_BIAS = 0.1
# Most items whose change of label is printed.
_MOVES = 8


def item_section(context: AuditContext) -> Section:
    """Item labels from the least certain to the most, and what stopping now costs."""
    data, items = context.program.data, item_labels(context.result, context.program.data)
    frame = items_frame(items)
    known = 0 if data.truth is None else int((np.asarray(data.truth) >= 0).sum())
    wrong = float((1 - items["probability"]).sum())
    facts = {
        "items": frame,
        "expected_wrong": wrong,
        "data": {
            "classes": data.classes,
            "known_truths": known,
            "features": data.feature_names[1:],
        },
    }
    files = {
        "items.csv": lambda path: tables.write_table(frame, path),
        "certainty.png": lambda path: label_figures.certainty(items).savefig(path),
    }
    return Section(facts, files, lambda out, rows: print_items(out, frame, wrong, known, rows))


def print_items(
    out: console.Output, frame: pd.DataFrame, wrong: float, known: int, most: int
) -> None:
    """Print the items, shortened mostly at the certain end, and what stopping now costs."""
    grid = console.new_grid("Items, least certain label first")
    grid.add_column("item", overflow="fold", min_width=14)
    grid.add_column("label", overflow="fold", min_width=6)
    for heading in ("probability", "entropy, bits", "labels"):
        grid.add_column(heading, justify="right", no_wrap=True)

    def cells(row: Any) -> tuple[str, ...]:
        names = (escape(str(row.item)), escape(str(row.label)))
        return *names, percent(row.probability), f"{row.entropy:.2f}", str(row.votes)

    console.fill(grid, frame, most, cells, column=0, head=max(most - 3, 1))
    out.print(grid)
    out.print()
    share = f"{wrong / len(frame):.1%}"
    given = f" The truth of {known:,} was given." if known else ""
    text = (
        f"If labelling stops now, {wrong:.1f} of {len(frame):,} item labels are expected to be"
        f" wrong ({share}), by this model."
    )
    out.print(text + given, highlight=False)
    out.print()


def confusion_section(context: AuditContext) -> Section | None:
    """Confusion matrices, as a table and a figure."""
    audit = context.audit
    if audit is None or audit.confusion is None:
        return None
    table = audit.confusion.to_dataframe().reset_index()
    return Section(
        files={
            "confusion.csv": lambda path: tables.write_table(table, path),
            "confusions.png": lambda path: label_figures.confusions(audit).savefig(path),
        }
    )


def change_section(context: AuditContext) -> Section:
    """Change of the item labels when those flagged are left out."""
    if context.dropped is None or context.audit is None:
        return Section({"without_flagged": None})
    before = item_labels(context.result, context.program.data)
    after = item_labels(context.dropped, rt.Labels.from_result(context.dropped))
    change = label_change(before, after)
    text = (
        f"Without the {len(context.audit.flagged)} flagged annotator(s): {change['changed']} of"
        f" {before.sizes['item']:,} item labels change; {change['expected_wrong']:.1f} are expected"
        " to be wrong."
    )
    moves = [
        escape(f"{move['item']} ({move['label']} → {move['new_label']})")
        for move in change["items"][:_MOVES]
    ]

    def show(out: console.Output, rows: int) -> None:
        out.print(text, highlight=False)
        if moves:
            out.print("Such as " + ", ".join(moves), highlight=False)
        out.print()

    return Section({"without_flagged": change}, {}, show)


def label_change(before: xr.Dataset, after: xr.Dataset) -> dict[str, Any]:
    """The items whose label is another one without the flagged annotators."""
    moved = np.flatnonzero(before["label"].values != after["label"].values)
    names, old, new = (
        values[moved].tolist()
        for values in (before["item"].values, before["label"].values, after["label"].values)
    )
    moves = [
        dict(zip(("item", "label", "new_label"), row, strict=True))
        for row in zip(names, old, new, strict=True)
    ]
    wrong = float((1 - after["probability"]).sum())
    return {"changed": len(moved), "expected_wrong": wrong, "items": moves}


def agreement_section(context: AuditContext) -> Section:
    """Agreement without a model."""
    table, silence = agreement_or_why_not(context.program.data, context.options.level)
    facts = {
        "agreement": None if table is None else table.reset_index(names="statistic"),
        "agreement_note": silence,
    }
    level = context.options.level
    return Section(facts, {}, lambda out, rows: print_agreement(out, table, silence, level))


def print_agreement(
    out: console.Output, table: pd.DataFrame | None, silence: str, level: float
) -> None:
    """Print agreement, one row for each statistic."""
    if table is None:
        out.print(silence + "\n", highlight=False)
        return
    grid = console.new_grid("Agreement between annotators")
    grid.add_column("statistic")
    grid.add_column("estimate", justify="right")
    grid.add_column(f"{level:.0%} interval", justify="right")
    for row in table.itertuples():
        grid.add_row(STATISTICS[str(row.Index)], f"{row.estimate:.2f}", span(row.low, row.high))
    out.print(grid)
    items, left_out = int(table["items"].iloc[0]), int(table["items_left_out"].iloc[0])
    if left_out:
        out.print(
            f"From {items:,} items; {left_out:,} have labels by fewer than two annotators.",
            highlight=False,
        )
    out.print()


def _bias(row: Any) -> str:
    """The class that an annotator says too often."""
    return escape(str(row.bias_class)) if row.bias >= _BIAS else ""


_COLUMNS = (
    JudgeColumn("accu-\nracy", lambda row: percent(row.accuracy), console.NARROW),
    JudgeColumn("bits per\nlabel", lambda row: f"{row.information:.2f}"),
    JudgeColumn("spam-\nmer", lambda row: percent(row.p_spammer)),
    JudgeColumn("adver-\nsarial", lambda row: percent(row.p_adversarial)),
    JudgeColumn("says too\noften", _bias, _WIDE),
)
LABEL_SECTIONS: tuple[MakeSection, ...] = (
    item_section,
    judge_section(_COLUMNS, " (spammer … below: probabilities)", last=1),
    confusion_section,
    change_section,
    agreement_section,
    question_section,
)

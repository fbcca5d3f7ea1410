"""Report of rankings: columns of the audit's table, reasons, and the order of the items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from raters.families.comparisons.sections import (
    first_of_types,
    heading_of,
    order_of,
    order_sentence,
    types_of,
)
from raters.kinds import AuditContext, Column, Section, Table
from raters.reporting import facts
from raters.reporting.cells import write_csv

COLUMNS = (
    Column(
        "competence",
        "competence",
        "interval",
        "Competence is 1 for the annotator that all are measured against, 0 for one who ranks at"
        " random, and below 0 for one who ranks upside down.",
        marks=(0.0, 1.0),
    ),
    Column(
        "accuracy",
        "accuracy",
        "percent",
        "Accuracy is the share of the pairs of items that the annotator puts in the true order, as"
        " far as it is known.",
    ),
    Column(
        "p_adversarial",
        "P(adversary)",
        "percent",
        "P(adversary) is the probability that competence is below 0.",
    ),
    Column(
        "agreement",
        "agreement",
        "percent",
        "Agreement is the share of the pairs of items that the annotator puts in the model's"
        " order.",
    ),
)

_ORDER = (
    Column("rank", "rank", "range"),
    Column("item", "item", "name"),
    Column("worth", "worth", "interval"),
    Column("p_best", "P(best)", "percent"),
    Column("p_above_next", "P(above next)", "percent"),
)

# Probability of a negative competence above which somebody ranks upside down.
_SURE = 0.9


def reason(row: Mapping[str, Any]) -> str:
    """Reason for a verdict: an order upside down, or one that says little."""
    share = f"{facts.percent(row['agreement'])} of the pairs in the model's order"
    if row["p_adversarial"] > _SURE:
        return f"ranks upside down: {share}"
    return f"competence {row['competence']:.1f}: {share}"


def order(context: AuditContext) -> Section | None:
    """Items by their worths, with intervals of their ranks; of a mixture, for each type of
    annotator."""
    if "worth" not in context.program.sites:
        return None
    level = context.level
    worth, true = order_of(context, "worth")
    types = types_of(context) if "type" in worth.dims else []
    worths = [worth.sel(type=kind["type"], drop=True) for kind in types] or [worth]
    frames = [
        facts.ranking(part, level).rename(columns=lambda name: name.replace("reward", "worth"))
        for part in worths
    ]
    rankings = [frame.to_dict("records") for frame in frames]
    what = "true worth" if true else "worth"
    caption = f"Items, highest {what} first; a worth of 0 is the average item"
    headings = [heading_of(kind) for kind in types] or [""]
    for frame, kind in zip(frames, types, strict=False):
        frame.insert(0, "type", kind["type"])
    whole = pd.concat(frames, ignore_index=True)
    return Section(
        key="items",
        title="Ranking",
        sentence=first_of_types(types, rankings)
        if types
        else order_sentence(rankings[0], level, true=true),
        tables=tuple(
            Table("ranking", caption, _ORDER, rows, heading=heading, both_ends=True)
            for rows, heading in zip(rankings, headings, strict=True)
        ),
        facts={"num_items": worth.sizes["item"]} | ({"types": types} if types else {}),
        files={"items.csv": lambda path: write_csv(whole, path)},
    )

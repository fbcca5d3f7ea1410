"""Report of ratings: columns of the audit's table, reasons for verdicts, items by fair rating, and
severity."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from raters import figures
from raters.auditing.ratings import items as items_table
from raters.families.comparisons import sections as of_comparisons
from raters.judgements.display import isolated
from raters.judgements.names import counted, shorten
from raters.kinds import AuditContext, Column, Section
from raters.reporting.cells import write_csv
from raters.reporting.sentences import reason_of

COLUMNS = (
    Column(
        "competence",
        "competence",
        "interval",
        "Competence is 1 for the annotator that all are measured against, 0 for one whose ratings"
        " do not depend on the item, and below 0 for one who reads the scale the wrong way round.",
        marks=(0.0, 1.0),
    ),
    Column(
        "accuracy",
        "accuracy",
        "percent",
        "Accuracy is the share of the pairs of items on different levels that the annotator puts in"
        " the true order, as far as it is known.",
    ),
    Column(
        "correlation",
        "correlation",
        "number",
        "Correlation is that of the annotator's ratings with the quality of the items.",
    ),
    Column(
        "bias",
        "bias",
        "number",
        "Bias is by how many levels the annotator's ratings lie above those that the average"
        " annotator would give to the same items.",
    ),
    Column(
        "p_guessing",
        "P(guess)",
        "percent",
        "P(guess) is the probability that the correlation is within twice {margin} of 0.",
    ),
    Column(
        "p_adversarial",
        "P(adversary)",
        "percent",
        "P(adversary) is the probability that competence is below 0.",
    ),
    Column(
        "levels_used",
        "levels used",
        "whole",
        "Levels used is the number of levels of the scale that the annotator has used.",
    ),
)

_FAIR = Column("fair_rating", "fair rating", "interval", marks=())
_MEAN = Column("mean_rating", "mean", "number")
# A bias of at least so many levels is named.
_FAR = 0.25


def reason(row: Mapping[str, Any]) -> str:
    """Reason for a verdict: an adversary, a guesser, or neither."""
    return reason_of(row, random=row["p_guessing"], random_text="rates as if by chance")


def ranking(context: AuditContext) -> Section | None:
    """Items by their rewards, each with its fair rating."""
    section = of_comparisons.ranking(context)
    if section is None:
        return None
    fair = items_table(context.program, context.result, context.level).to_dataframe()
    (table,) = section.tables
    rows = [dict(row) | fair.loc[row["item"]].to_dict() for row in table.rows]
    rank, item, _, *others = table.columns
    meaning = (
        " The fair rating of an item is the mean rating that an annotator of average severity and"
        " competence would give; the mean is that of the ratings given."
    )
    return dataclasses.replace(
        section,
        sentence=section.sentence + meaning,
        tables=(
            dataclasses.replace(table, columns=(rank, item, _FAIR, _MEAN, *others), rows=rows),
        ),
        files={**section.files, "items.csv": lambda path: write_csv(fair.reset_index(), path)},
    )


def severity(context: AuditContext) -> Section | None:
    """The most severe and the most lenient annotator, and who leaves out levels of the scale."""
    audit = context.audit
    if audit is None or audit.table.sizes["annotator"] < 2:
        return None
    frame = audit.table.to_dataframe()
    frame = frame[frame["judgements"] > 0].sort_values("bias", kind="stable")
    apart = frame[(frame["bias_low"] > 0) | (frame["bias_high"] < 0)]
    apart = apart[apart["bias"].abs() >= _FAR]
    levels = context.program.data.num_levels
    few = frame[frame["levels_used"] < levels]
    who = {0: "none rates", 1: "1 rates"}.get(len(apart), f"{len(apart):,} rate")
    sentence = (
        f"Of {counted(len(frame), 'annotator')}, {who} clearly higher or lower than the average"
        f" does, by {_FAR:g} of a level or more."
    )
    if len(frame) > 1:
        sentence += (
            f" {isolated(frame.index[0])} is the most severe ({_signed(frame['bias'].iloc[0])}"
            f" levels), and {isolated(frame.index[-1])} the most lenient"
            f" ({_signed(frame['bias'].iloc[-1])})."
        )
    if len(few):
        least = few.sort_values("levels_used", kind="stable")
        sentence += (
            f" {counted(len(few), 'annotator')} did not use all {levels} levels:"
            f" {shorten(list(least.index))}."
        )
    return Section(
        key="severity",
        title="Severity",
        sentence=sentence,
        files={"levels.png": lambda path: figures.levels(audit).savefig(path)},
        facts={
            "severe_or_lenient": [str(name) for name in apart.index],
            "not_all_levels": [str(name) for name in few.index],
        },
    )


def _signed(value: float) -> str:
    """A number with its sign."""
    return f"{value:+.2f}".replace("-", "−")

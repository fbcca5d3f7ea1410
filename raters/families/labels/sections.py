"""Report of labels: columns of the audit's table, reasons, item labels and confusion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from raters.kinds import AuditContext, Column, Matrix, Section, Table
from raters.reporting import facts
from raters.reporting.sentences import about, counted, reason_of

# Most doubtful items in a report.
_DOUBTFUL = 200
# Confusion matrices in a report, and classes up to which they can be read.
_MATRICES, _CLASSES = 12, 8
# A class given more often than it occurs, by this much, is named.
_BIAS = 0.1

COLUMNS = (
    Column(
        "competence",
        "competence",
        "interval",
        "Competence is 1 for an annotator who labels every item right, 0 for one who labels"
        " without looking at the item, and below 0 for one who is wrong more often"
        " than chance.",
        marks=(0.0, 1.0),
    ),
    Column("accuracy", "accuracy", "percent", "Accuracy is the probability that a label is right."),
    Column(
        "p_spammer",
        "P(spam)",
        "percent",
        "P(spam) is the probability that a label carries less than {margin} bits about the true"
        " class.",
    ),
    Column(
        "p_adversarial",
        "P(adversary)",
        "percent",
        "An adversary gives labels that are wrong so reliably that they carry information.",
    ),
)

_ITEMS = (
    Column("item", "item", "name"),
    Column("label", "label", "text"),
    Column("probability", "probability", "percent"),
    Column("entropy", "bits in doubt", "number"),
    Column("votes", "labels", "whole"),
)


def reason(row: Mapping[str, Any]) -> str:
    """Reason for a verdict: an adversary, a spammer, or neither; and a class given too often."""
    text = reason_of(
        row, random=row["p_spammer"], random_text="labels that hardly depend on the item"
    )
    return text + (f"; says “{row['bias_class']}” too often" if row["bias"] >= _BIAS else "")


def item_labels(context: AuditContext) -> Section | None:
    """Number of items of each class, expected number of wrong labels, and the most doubtful."""
    audit, labels = context.audit, context.program.data
    if audit.items is None:
        return None
    frame = facts.items_frame(audit.items)
    sizes = frame["label"].value_counts()
    known = facts.data_facts(labels)["known_truths"]
    num_items = len(frame)
    share = audit.expected_wrong / num_items
    given = f" The truth of {known:,} was given." if known else ""
    return Section(
        key="items",
        title="What the items are",
        sentence=(
            f"If labelling stops now, {about(audit.expected_wrong)} of"
            f" {counted(num_items, 'item label')} ({facts.percent(share)}) are expected to be"
            f" wrong, by this model.{given}"
        ),
        counts={
            str(name): int(sizes.get(name, sizes.get(str(name), 0))) for name in labels.classes
        },
        tables=(
            Table(
                "doubtful",
                "The most doubtful items: label these again first",
                _ITEMS,
                frame.head(_DOUBTFUL).to_dict("records"),
                num_open=10,
            ),
        ),
        facts={
            "num_items": num_items,
            "known_truths": known,
            "expected_wrong": audit.expected_wrong,
            "expected_share_wrong": share,
        },
        limits=(
            "That errors are independent, which the model assumes: where an item misleads many"
            " annotators at once, more item labels are wrong than it expects. Check a sample by"
            " hand.",
        ),
    )


def confusion(context: AuditContext) -> Section | None:
    """Confusion matrices of the least trusted annotators; None where classes are many."""
    table = context.audit.confusion
    if table is None or table.sizes["label"] > _CLASSES:
        return None
    mean = table["mean"].transpose("annotator", "true_class", "label")
    order = np.lexsort(
        (context.audit.table["competence"].values, -context.audit.table["p_below"].values)
    )[:_MATRICES]
    rows, columns = (tuple(map(str, mean[axis].values)) for axis in ("true_class", "label"))
    matrices = tuple(
        Matrix(str(mean["annotator"].values[place]), rows, columns, mean.values[place])
        for place in order
    )
    of = mean.sizes["annotator"]
    shown = f"the {len(order)} least trusted of {of:,}" if of > len(order) else f"all {of:,}"
    return Section(
        key="confusion",
        title="Which classes are confused",
        sentence=(
            "Probability, in per cent, of each label (columns) for items of each true class"
            f" (rows), for {shown} annotators, the least trusted first. Right labels are on the"
            " diagonal; the rows of a spammer are alike."
        ),
        matrices=matrices,
    )

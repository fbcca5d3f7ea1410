"""Report of labels: columns of the audit's table, reasons, item labels and confusion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from raters import figures
from raters.auditing.audit import Audit
from raters.auditing.labels import item_labels
from raters.fitting.result import data_of, program_of
from raters.judgements.display import isolated
from raters.judgements.names import counted
from raters.kinds import AuditContext, Column, Matrix, Section, Table
from raters.reporting import facts
from raters.reporting.cells import write_csv
from raters.reporting.sentences import about, reason_of

# Most doubtful items in a report.
_DOUBTFUL = 200
# Confusion matrices in a report, and classes up to which they can be read.
_MATRICES, _CLASSES = 12, 8
# A class given more often than it occurs, by this much, is named.
_BIAS = 0.1
# Most items whose change of label is named.
_MOVES = 8
_INDEPENDENT = (
    "That errors are independent, which the model assumes: where an item misleads many annotators"
    " at once, more item labels are wrong than it expects. Check a sample by hand."
)

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
    Column(
        "p_spammer",
        "P(spam)",
        "percent",
        "P(spam) is the probability that a label carries less than {margin} bits about the true"
        " class, or, of a model with types of annotators, that the annotator guesses.",
    ),
    Column(
        "p_adversarial",
        "P(adversary)",
        "percent",
        "An adversary gives labels that are wrong so reliably that they carry information; of a"
        " model with types of annotators, it is one of these.",
    ),
    Column("accuracy", "accuracy", "percent", "Accuracy is the probability that a label is right."),
    Column(
        "information",
        "bits",
        "number",
        "Bits are the information that one label carries about the true class; knowing which of two"
        " equally likely classes is the true one takes 1 bit.",
    ),
    Column(
        "agreement",
        "agreement",
        "percent",
        "Agreement is the share of the labels that are the item's most probable class.",
    ),
    Column(
        "influence",
        "influence",
        "percent",
        "Influence is the share of the item labels that would be others without the annotator.",
    ),
)

_ITEMS = (
    Column("item", "item", "name"),
    Column("label", "label", "text"),
    Column("probability", "probability", "percent"),
    Column("entropy", "bits in doubt", "number"),
    Column("judgements", "labels", "whole"),
)


def reason(row: Mapping[str, Any]) -> str:
    """Reason for a verdict: an adversary, a spammer, or neither; and a class given too often."""
    text = reason_of(
        row, random=row["p_spammer"], random_text="labels that hardly depend on the item"
    )
    if row["bias"] < _BIAS:
        return text
    return f"{text}; says “{isolated(row['bias_class'])}” too often"


def items(context: AuditContext) -> Section | None:
    """Number of items of each class, expected number of wrong labels, and the most doubtful."""
    labels, audit = context.program.data, context.audit
    labelled = None if audit is None else audit.items
    interval = None if audit is None else audit.wrong_interval
    if labelled is None:
        labelled = item_labels(context.result, labels)
    frame = facts.items_frame(labelled)
    sizes = frame["label"].value_counts()
    known = facts.data_facts(labels)["known_truths"]
    num_items = len(frame)
    wrong = float((1 - labelled["probability"]).sum())
    share = wrong / num_items
    given = f" The truth of {known:,} was given." if known else ""
    given += f" {audit.of_influence}" if audit is not None and audit.of_influence else ""
    headline = (
        f"If labelling stops now, {about(wrong)} of {counted(num_items, 'item label')}"
        f" ({facts.percent(share)}) are expected to be wrong{_by(audit, context.level)}."
    )
    return Section(
        key="items",
        title="Item labels",
        sentence=f"{headline}{given}",
        headline=headline,
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
            "expected_wrong": wrong,
            "expected_share_wrong": share,
            "wrong_interval": interval,
        },
        files={
            "items.csv": lambda path: write_csv(frame, path),
            "certainty.png": lambda path: figures.certainty(labelled).savefig(path),
        },
        limits=() if interval is not None else (_INDEPENDENT,),
    )


def _by(audit: Audit | None, level: float) -> str:
    """Basis of the expected number of wrong labels, in words."""
    if audit is None or audit.wrong_interval is None:
        return ", by this model"
    low, high = audit.wrong_interval
    return f" ({level:.0%} interval {low:,.0f} to {high:,.0f}, {audit.anchor.of_interval})"


def confusion(context: AuditContext) -> Section | None:
    """Confusion matrices of the least trusted annotators; where classes are many, only as a table
    and a figure."""
    audit = context.audit
    if audit is None or audit.confusion is None:
        return None
    table = audit.confusion
    files = {
        "confusion.csv": lambda path: write_csv(table.to_dataframe().reset_index(), path),
        "confusions.png": lambda path: figures.confusions(audit).savefig(path),
    }
    title = "Confusion matrices"
    if table.sizes["label"] > _CLASSES:
        sentence = (
            f"There are {table.sizes['label']} classes; their confusion matrices are too large to"
            " be shown here."
        )
        return Section("confusion", title, sentence, files=files)
    mean = table["mean"].transpose("annotator", "true_class", "label")
    order = np.lexsort((audit.table["competence"].values, -audit.table["p_below"].values))[
        :_MATRICES
    ]
    rows, columns = (tuple(map(str, mean[axis].values)) for axis in ("true_class", "label"))
    matrices = tuple(
        Matrix(str(mean["annotator"].values[place]), rows, columns, mean.values[place])
        for place in order
    )
    of = mean.sizes["annotator"]
    shown = f"the {len(order)} least trusted of {of:,}" if of > len(order) else f"all {of:,}"
    return Section(
        key="confusion",
        title=title,
        sentence=(
            "Probability, in per cent, of each label (columns) for items of each true class"
            f" (rows), for {shown} annotators, the least trusted first. Right labels are on the"
            " diagonal; the rows of a spammer are alike."
        ),
        matrices=matrices,
        files=files,
    )


def change(context: AuditContext) -> Section | None:
    """Change of the item labels when those flagged are left out."""
    if context.dropped is None or context.audit is None:
        return None
    program_of(context.program.model, context.dropped)
    before, after = (
        item_labels(result, data_of(result)) for result in (context.result, context.dropped)
    )
    changed = label_change(before, after)
    moves = [
        f"{isolated(move['item'])} ({isolated(move['label'])} → {isolated(move['new_label'])})"
        for move in changed["items"][:_MOVES]
    ]
    count = changed["changed"]
    return Section(
        key="without_flagged",
        title="Without those flagged",
        sentence=(
            f"Without {counted(len(context.audit.flagged), 'annotator')} flagged: {count:,} of"
            f" {counted(before.sizes['item'], 'item label')}"
            f" {'changes' if count == 1 else 'change'}"
            f"{', such as ' + ', '.join(moves) if moves else ''}."
        ),
        facts=changed,
    )


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
    return {"changed": len(moved), "items": moves}

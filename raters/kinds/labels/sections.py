"""Sections of a report on labels."""

from __future__ import annotations

import numpy as np

from raters import kinds
from raters.kinds.labels.audit import item_labels
from raters.kinds.sections import shown

# Confusion matrices in a report, and classes up to which they can be read.
_MATRICES, _CLASSES = 12, 8


def items(context: kinds.AuditContext) -> kinds.Section:
    """Expected number of wrong labels, and the items from the most doubtful on."""
    data, audit = context.program.data, context.audit
    labelled = item_labels(context.result, data) if audit is None else audit.items
    assert labelled is not None
    table = labelled.to_dataframe().reset_index()
    table = table.sort_values("probability", kind="stable", ignore_index=True)
    interval = None if audit is None else audit.wrong_interval
    numbers = {
        "expected_wrong": float((1 - labelled["probability"]).sum()),
        "wrong_interval": interval,
        "of": len(table),
        "like_public_crowds": audit is not None and audit.anchor.is_missing,
    }
    classes = table["label"].astype(str).value_counts().to_dict()
    findings = [kinds.finding("wrong_labels", **numbers), kinds.finding("classes", number=classes)]
    if audit is not None and audit.influential:
        findings.append(kinds.finding("influence", **audit.influential))
    return kinds.Section(
        key="items",
        title="Item labels",
        findings=tuple(findings),
        columns=shown("item label probability entropy judgements"),
        table=table,
        limits=() if interval else (kinds.finding("independent_errors"),),
    )


def confusion(context: kinds.AuditContext) -> kinds.Section | None:
    """Confusion matrices of the least trusted annotators; of many classes only as a table."""
    audit = context.audit
    if audit is None or audit.confusion is None:
        return None
    mean = audit.confusion["mean"].transpose("annotator", "true_class", "label")
    names = {axis: [str(name) for name in mean[axis].values] for axis in mean.dims}
    order = np.lexsort((audit.table["competence"].values, -audit.table["p_below"].values))
    shown_judges = order[:_MATRICES] if mean.sizes["label"] <= _CLASSES else order[:0]
    matrices = [
        {
            "title": names["annotator"][place],
            "rows": names["true_class"],
            "columns": names["label"],
            "values": mean.values[place],
        }
        for place in shown_judges
    ]
    numbers = {"shown": len(shown_judges), "of": len(order), "classes": mean.sizes["label"]}
    return kinds.Section(
        key="confusion",
        title="Confusion matrices",
        findings=(kinds.finding("confusion", **numbers),),
        table=audit.confusion.to_dataframe().reset_index(),
        matrices=tuple(matrices),
        figures={"confusions": {"audit": audit}},
    )

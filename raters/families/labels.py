"""Labels as a kind of judgement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from raters import kinds
from raters.acquisition.questions.candidates import Candidates
from raters.auditing import labels
from raters.auditing.truth.label_calibration import LabelCalibration, class_probs_by_draw
from raters.errors import DataError, refuse
from raters.families.discrepancies.labels import DISCREPANCIES
from raters.families.sections import shown
from raters.judgements.labels import Labels
from raters.judgements.names import check_once
from raters.models import labels as models
from raters.models.labels import DawidSkene, Raykar, SharedMistakes, Yan

# Confusion matrices in a report, and classes up to which they can be read.
_MATRICES, _CLASSES = 12, 8


def with_feature_columns(
    data: Labels, frame: Any, *, item: str, features: Sequence[str] = ()
) -> Labels:
    """Add features of the items from columns of the table of labels."""
    if not features:
        return data
    check_once(features, "features")
    if unknown := [name for name in features if name not in frame]:
        expected = f"it has {sorted(map(str, frame.columns))}"
        refuse("features", unknown[0], "names no column of the table", expected, error=DataError)
    numbers = frame[list(features)].apply(pd.to_numeric, errors="coerce")
    first = numbers.groupby(frame[item], sort=False).transform("first")
    for name in features:
        wrong = np.flatnonzero(numbers[name].isna() | (numbers[name] != first[name]))
        if len(wrong):
            value, which = frame[name].iloc[wrong[0]], str(frame[item].iloc[wrong[0]])
            problem = f"holds {str(value)!r} for item {which!r}"
            expected = "a feature belongs to the item, so all its rows must have the same number"
            refuse("features", name, problem, expected, error=DataError)
    table = numbers.assign(**{item: frame[item]})[~frame[item].duplicated()]
    return data.with_features(table, item=item, names=list(features))


def items(context: kinds.AuditContext) -> kinds.Section:
    """Expected number of wrong labels, and the items from the most doubtful on."""
    data, audit = context.program.data, context.audit
    labelled = labels.item_labels(context.result, data) if audit is None else audit.items
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


LABELS = kinds.Kind(
    data=Labels,
    readers=(
        kinds.Reader(
            Labels.from_frame, steps=(with_feature_columns,), may_be_empty=("truth", "family")
        ),
    ),
    needs={Raykar: ("features",), Yan: ("features",), SharedMistakes: ("family",)},
    models=tuple(vars(models)[name] for name in models.__all__),
    default=DawidSkene(),
    words=kinds.Words("label", "labels"),
    questions=Candidates.labels,
    quantities=labels.quantities,
    truths=kinds.Truths(
        calibrate=LabelCalibration.of,
        number=lambda data, gold: data.with_truth(gold).num_known,
        columns=("item", "truth"),
        answer="truth",
        classes=class_probs_by_draw,
    ),
    threshold=0.25,
    columns=shown("competence p_spammer p_adversarial accuracy information agreement influence"),
    sections=(items, confusion),
    discrepancies=DISCREPANCIES,
)

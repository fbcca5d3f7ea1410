"""Labels as a kind of judgement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from raters.acquisition.questions.candidates import Candidates
from raters.auditing import labels
from raters.auditing.calibrated_labels import calibrate_labels, class_probs_by_draw, known_classes
from raters.errors import DataError, refuse
from raters.families import sections
from raters.families.discrepancies.labels import DISCREPANCIES
from raters.judgements.labels import Labels
from raters.judgements.names import check_once
from raters.kinds import AuditContext, Column, Kind, Reader, Section, Truths, Words, register
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


def items(context: AuditContext) -> Section:
    """Expected number of wrong labels, and the items from the most doubtful on."""
    data, audit = context.program.data, context.audit
    labelled = None if audit is None else audit.items
    if labelled is None:
        labelled = labels.item_labels(context.result, data)
    table = labelled.to_dataframe().reset_index()
    table = table.sort_values("probability", kind="stable", ignore_index=True)
    wrong, interval = float((1 - labelled["probability"]).sum()), None
    if audit is not None:
        interval = audit.wrong_interval
    low, high = interval or (None, None)
    facts = {
        "num_items": len(table),
        "known_truths": data.num_known,
        "expected_wrong": wrong,
        "expected_share_wrong": wrong / len(table),
        "wrong_interval": interval,
    }
    by = "model" if interval is None else "anchor"
    if audit is not None and interval is not None and audit.anchor.is_missing:
        by = "public_crowds"
    numbers = {"wrong": wrong, "of": len(table), "low": low, "high": high, "by": by}
    classes = table["label"].astype(str).value_counts().to_dict()
    findings = [{"code": "wrong_labels"} | numbers, {"code": "classes", "number": classes}]
    if data.num_known:
        findings.append({"code": "known", "number": data.num_known})
    if audit is not None and audit.influential:
        findings.append({"code": "influence"} | audit.influential)
    return Section(
        key="items",
        title="Item labels",
        findings=tuple(findings),
        columns=(
            Column("item", "name"),
            Column("label", "text"),
            Column("probability", "percent"),
            Column("entropy"),
            Column("judgements", "whole", "labels"),
        ),
        table=table,
        facts=facts,
        figures={"certainty": {"items": labelled}},
        limits=() if interval is not None else ({"code": "independent_errors"},),
    )


def confusion(context: AuditContext) -> Section | None:
    """Confusion matrices of the least trusted annotators; of many classes only as a table."""
    audit = context.audit
    if audit is None or audit.confusion is None:
        return None
    mean = audit.confusion["mean"].transpose("annotator", "true_class", "label")
    names = {axis: [str(name) for name in mean[axis].values] for axis in mean.dims}
    order = np.lexsort((audit.table["competence"].values, -audit.table["p_below"].values))
    shown = order[:_MATRICES] if mean.sizes["label"] <= _CLASSES else order[:0]
    matrices = [
        {
            "title": names["annotator"][place],
            "rows": names["true_class"],
            "columns": names["label"],
            "values": mean.values[place],
        }
        for place in shown
    ]
    numbers = {"shown": len(shown), "of": len(order), "classes": mean.sizes["label"]}
    return Section(
        key="confusion",
        title="Confusion matrices",
        findings=({"code": "confusion"} | numbers,),
        table=audit.confusion.to_dataframe().reset_index(),
        matrices=tuple(matrices),
        figures={"confusions": {"audit": audit}},
    )


LABELS = register(
    Kind(
        data=Labels,
        readers=(
            Reader(
                Labels.from_frame, steps=(with_feature_columns,), may_be_empty=("truth", "family")
            ),
        ),
        needs={Raykar: ("features",), Yan: ("features",), SharedMistakes: ("family",)},
        models=tuple(vars(models)[name] for name in models.__all__),
        default=DawidSkene(),
        words=Words("label", "labels"),
        questions=Candidates.labels,
        quantities=labels.quantities,
        truths=Truths(
            calibrate=calibrate_labels,
            number=known_classes,
            columns=("item", "truth"),
            answer="truth",
            classes=class_probs_by_draw,
        ),
        threshold=0.25,
        columns=(
            sections.COMPETENCE,
            Column("p_spammer", "percent"),
            sections.ADVERSARY,
            sections.ACCURACY,
            Column("information"),
            sections.AGREEMENT,
            sections.INFLUENCE,
        ),
        sections=(items, confusion),
        discrepancies=DISCREPANCIES,
    )
)

"""Labels as a kind of judgement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from raters.acquisition.questions.candidates import Candidates
from raters.auditing import labels
from raters.auditing.calibrated_labels import calibrate_labels, class_probs_by_draw, known_classes
from raters.errors import DataError
from raters.families.labels import sections
from raters.families.labels.discrepancies import DISCREPANCIES
from raters.judgements.labels import Labels
from raters.judgements.names import check_once
from raters.kinds import Kind, Reader, Truths, Words, register
from raters.models import labels as models
from raters.models.labels import DawidSkene, Raykar, SharedMistakes, Yan


def with_feature_columns(
    data: Labels, frame: Any, *, item: str, features: Sequence[str] = ()
) -> Labels:
    """Add features of the items from columns of the table of labels."""
    if not features:
        return data
    check_once(features, "features")
    table = _one_row_an_item(frame, item, features)
    return data.with_features(table, item=item, names=list(features))


def _one_row_an_item(frame: Any, item: str, features: Sequence[str]) -> pd.DataFrame:
    """One row of numbers for each item."""
    if unknown := [name for name in features if name not in frame]:
        raise DataError(
            parameter="features",
            value=unknown[0],
            problem="names no column of the table",
            expected=f"it has {sorted(map(str, frame.columns))}",
        )
    numbers = frame[list(features)].apply(pd.to_numeric, errors="coerce")
    first = numbers.groupby(frame[item], sort=False).transform("first")
    for name in features:
        if (wrong := np.flatnonzero(numbers[name].isna())).size:
            row = wrong[0]
            raise DataError(
                parameter="features",
                value=name,
                problem=f"holds {str(frame[name].iloc[row])!r} for item"
                f" {str(frame[item].iloc[row])!r} ({len(wrong)} such row(s))",
                expected="it must hold numbers",
            )
        if (wrong := np.flatnonzero(numbers[name] != first[name])).size:
            row = wrong[0]
            raise DataError(
                parameter="features",
                value=name,
                problem=f"is {first[name].iloc[row]:g} and {numbers[name].iloc[row]:g} for item"
                f" {str(frame[item].iloc[row])!r}",
                expected="a feature belongs to the item, so all its rows must have the same value",
            )
    return numbers.assign(**{item: frame[item]})[~frame[item].duplicated()]


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
        columns=sections.COLUMNS,
        reason=sections.reason,
        sections=(sections.items, sections.confusion, sections.change),
        discrepancies=DISCREPANCIES,
    )
)

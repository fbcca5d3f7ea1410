"""Labels as a kind of judgement: their reading, and discrepancies from a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any

from raters import kinds
from raters.acquisition.questions.candidates import Candidates
from raters.checking.discrepancies import AGREEMENT, ANSWERS_OF_JUDGES, DRIFT, JUDGE_PAIRS, JUDGES
from raters.judgements.labels import Labels
from raters.judgements.reading.columns import one_each, read_columns, read_numbers
from raters.judgements.reading.features import distinct
from raters.kinds.labels import audit
from raters.kinds.labels.truth import LabelCalibration
from raters.kinds.sections import shown
from raters.models import labels as models
from raters.models.labels import DawidSkene, Raykar, SharedMistakes, Yan
from raters.program import Program


def with_feature_columns(
    data: Labels, frame: Any, *, item: str, features: Sequence[str] = ()
) -> Labels:
    """Add features of the items from columns of the table of labels."""
    if not features:
        return data
    columns = read_columns(
        frame, {"item": item}, several={"features": distinct(features, "features")}
    )
    code, names = columns.codes("item")
    for column in columns.lists["features"]:
        one_each(code, column, read_numbers(column), names)
    return data.with_features(frame[~frame[item].duplicated()], item=item, names=features)


_MATRIX = "rt.DawidSkene() has a confusion matrix of each annotator"
_DIFFICULTY = "rt.models.ItemDifficulty() has an ease of each item"
_GOLD = (
    "mistakes that annotators share are beyond models of independent annotators: give the true"
    " class of some items (labels.with_truth), which every model of labels uses"
)
_COPIES = (
    "look for annotators who copy, share an account or answer by one rule; rt.SharedMistakes() has"
    " families of those who belong together"
)
_OF_ITEMS = (models.ItemDifficulty, models.SharedMistakes)
_WITHOUT_MATRIX = (models.MajorityVote, models.Pooled, models.OneCoin, *_OF_ITEMS)


def _mend(name: str, program: Program[Any], is_high: bool) -> str:
    """Say which model of labels would mend a discrepancy."""
    model = program.model
    if name == "agreement" and is_high:
        return _GOLD if isinstance(model, _OF_ITEMS) else f"{_DIFFICULTY}; {_GOLD}"
    if isinstance(model, _WITHOUT_MATRIX):
        return _MATRIX
    if name == "judge_pairs":
        return _COPIES
    if name == "agreement":
        return ""
    by_matrix = isinstance(model, (models.DawidSkene, models.HierarchicalDawidSkene))
    return _DIFFICULTY if by_matrix else _MATRIX


_GENERIC = (AGREEMENT, JUDGE_PAIRS, JUDGES, ANSWERS_OF_JUDGES)
DISCREPANCIES = (
    *(dataclasses.replace(one, mend=partial(_mend, one.name)) for one in _GENERIC),
    DRIFT,
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
    quantities=audit.quantities,
    truths=LabelCalibration,
    threshold=0.25,
    columns=shown("competence p_spammer p_adversarial accuracy information agreement influence"),
    sections=(audit.doubtful_items, audit.confusions),
    discrepancies=DISCREPANCIES,
)

"""Labels as a kind of judgement."""

from __future__ import annotations

from raters import kinds
from raters.acquisition.questions.candidates import Candidates
from raters.families.labels import audit
from raters.families.labels.discrepancies import DISCREPANCIES
from raters.families.labels.reading import with_feature_columns
from raters.families.labels.sections import confusion, items
from raters.families.labels.truth import LabelCalibration
from raters.families.sections import shown
from raters.judgements.labels import Labels
from raters.models import labels as models
from raters.models.labels import DawidSkene, Raykar, SharedMistakes, Yan

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
    sections=(items, confusion),
    discrepancies=DISCREPANCIES,
)

"""Labels as a kind of judgement."""

from __future__ import annotations

from raters import kinds
from raters.acquisition.questions.candidates import Candidates
from raters.judgements.labels import Labels
from raters.kinds.labels import audit
from raters.kinds.labels.discrepancies import DISCREPANCIES
from raters.kinds.labels.reading import with_feature_columns
from raters.kinds.labels.truth import LabelCalibration
from raters.kinds.sections import shown
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
    sections=(audit.doubtful_items, audit.confusions),
    discrepancies=DISCREPANCIES,
)

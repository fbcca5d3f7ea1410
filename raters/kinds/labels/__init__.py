"""Labels as a kind of judgement: their reading, and discrepancies from a model."""

from __future__ import annotations

from raters import kinds
from raters.acquisition.questions.candidates import Candidates
from raters.checking import discrepancies as common
from raters.judgements.labels import Labels
from raters.kinds.labels import audit
from raters.kinds.labels.truth import LabelCalibration
from raters.kinds.sections import shown
from raters.models import labels as models
from raters.models.labels import DawidSkene, Raykar, SharedMistakes, Yan

DISCREPANCIES = common.of_kind(
    "labels",
    *(common.agreement, common.judge_pairs, common.competence, common.judge_answers, common.drift),
)

LABELS = kinds.Kind(
    data=Labels,
    readers=(kinds.Reader(Labels.from_frame, may_be_empty=("truth", "family", "features")),),
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

"""Labels as a kind of judgement: their reading, and discrepancies from a model."""

from __future__ import annotations

from dataclasses import replace

from raters import kinds
from raters.acquisition.questions.candidates import Candidates
from raters.checking import discrepancies as common
from raters.judgements.labels import Labels
from raters.kinds.labels import audit
from raters.kinds.labels.truth import LabelCalibration
from raters.kinds.sections import shown
from raters.models import labels as models
from raters.models.labels import DawidSkene, Raykar, SharedMistakes, Yan

_MATRIX = "rt.DawidSkene() has a confusion matrix of each annotator"
_DIFFICULTY = "rt.models.ItemDifficulty() has an ease of each item"
_GOLD = (
    "mistakes that annotators share are beyond models of independent annotators: give the true"
    " class of some items (labels.with_truth), which every model of labels uses"
)
_COPIES = "look for annotators who copy, share an account or answer by one rule"
_FAMILIES = "rt.SharedMistakes() has families of those who belong together"
_OF_ITEMS = (models.ItemDifficulty, models.SharedMistakes)
_BY_MATRIX = (DawidSkene, models.GuesserDawidSkene, models.HierarchicalDawidSkene)
_EACH = (*_BY_MATRIX, Raykar, Yan)
_OF_JUDGES = ((_BY_MATRIX, _MATRIX), (_OF_ITEMS, _DIFFICULTY))
_OF_AGREEMENT = ((_OF_ITEMS, _DIFFICULTY), ((), _GOLD))

DISCREPANCIES = (
    replace(common.agreement, mends=_OF_AGREEMENT, low_mends=((_EACH, _MATRIX),)),
    replace(
        common.judge_pairs, mends=((_EACH, _MATRIX), ((), _COPIES), (SharedMistakes, _FAMILIES))
    ),
    replace(common.competence, mends=_OF_JUDGES),
    replace(common.judge_answers, mends=_OF_JUDGES),
    common.drift,
)


LABELS = kinds.Kind(
    data=Labels,
    readers=(kinds.Reader(Labels.from_frame, may_be_empty=("truth", "family")),),
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

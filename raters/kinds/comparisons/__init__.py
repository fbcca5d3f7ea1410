"""Comparisons as a kind of judgement."""

from __future__ import annotations

from raters import kinds
from raters.acquisition.questions.candidates import Candidates
from raters.judgements.comparisons import Comparisons
from raters.kinds.comparisons import audit
from raters.kinds.comparisons.discrepancies import DISCREPANCIES
from raters.kinds.sections import ranking, shown
from raters.models import comparisons as models
from raters.models.comparisons import BTL, ContextualBTL, ExtendedBTL, LinearExtendedBTL

COMPARISONS = kinds.Kind(
    data=Comparisons,
    readers=(
        kinds.Reader(
            Comparisons.from_frame, shapes=(("winner", "loser"), ("first", "second", "outcome"))
        ),
        kinds.Reader(
            Comparisons.from_rankings,
            may_be_empty=("places",),
            on_request="each ranking is read as comparisons of its places, which are not"
            " independent: intervals are too narrow",
        ),
    ),
    needs={
        "position_bias": ("first", "second", "outcome"),
        "covariates": ("features",),
        "strata": ("stratum",),
        ContextualBTL: ("features",),
        LinearExtendedBTL: ("features",),
    },
    implies={"ties": {"ties": "keep"}},
    models=tuple(vars(models)[name] for name in models.__all__ if name != "PairwiseModel"),
    default=ExtendedBTL(competence="signed"),
    alone=BTL(),
    words=kinds.Words("vote", "votes"),
    questions=Candidates.pairs,
    quantities=audit.quantities,
    truths=audit.ComparisonCalibration,
    threshold=0.25,
    columns=shown(
        "competence p_guessing p_careless p_different_taste p_adversarial"
        " accuracy agreement influence"
    ),
    sections=(
        ranking,
        audit.by_stratum,
        audit.style,
        audit.position,
        audit.ties,
        audit.leading_annotator,
    ),
    discrepancies=DISCREPANCIES,
)

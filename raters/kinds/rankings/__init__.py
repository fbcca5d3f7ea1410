"""Rankings as a kind of judgement."""

from __future__ import annotations

from functools import partial

from raters import kinds
from raters.acquisition.questions.candidates import Candidates
from raters.judgements.rankings import Rankings
from raters.kinds.rankings import audit
from raters.kinds.rankings.discrepancies import DISCREPANCIES
from raters.kinds.sections import ranking, shown
from raters.models import rankings as models
from raters.models.rankings import ExtendedPlackettLuce, PlackettLuce

RANKINGS = kinds.Kind(
    data=Rankings,
    readers=(
        kinds.Reader(Rankings.from_frame, may_be_empty=("rank", "lowest"), part_of="ranking"),
        kinds.Reader(Rankings.from_wide, may_be_empty=("places",)),
        kinds.Reader(Rankings.from_best_worst, may_be_empty=("offered", "worst")),
    ),
    models=tuple(vars(models)[name] for name in models.__all__),
    default=ExtendedPlackettLuce(ties="davidson"),
    alone=PlackettLuce(ties="davidson"),
    words=kinds.Words("ranking", "rankings"),
    questions=Candidates.sets,
    quantities=audit.quantities,
    truths=audit.RankingCalibration,
    threshold=0.25,
    columns=shown("competence accuracy p_adversarial agreement"),
    sections=(partial(ranking, site="worth"), audit.ties),
    discrepancies=DISCREPANCIES,
)

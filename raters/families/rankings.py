"""Rankings as a kind of judgement."""

from __future__ import annotations

from functools import partial

from raters.acquisition.questions.candidates import Candidates
from raters.auditing import concordance, rankings
from raters.auditing.calibrated_orders import known_orders
from raters.auditing.calibrated_rankings import calibrate_rankings
from raters.auditing.known_orders import COLUMNS
from raters.families import sections
from raters.families.discrepancies.rankings import DISCREPANCIES
from raters.judgements.rankings import Rankings
from raters.kinds import Kind, Reader, Truths, Words, register
from raters.models import rankings as models
from raters.models.rankings import ExtendedPlackettLuce

RANKINGS = register(
    Kind(
        data=Rankings,
        readers=(
            Reader(Rankings.from_frame, may_be_empty=("rank", "lowest"), part_of="ranking"),
            Reader(Rankings.from_wide, may_be_empty=("places",)),
            Reader(Rankings.from_best_worst, may_be_empty=("offered", "worst")),
        ),
        models=tuple(vars(models)[name] for name in models.__all__),
        default=ExtendedPlackettLuce(),
        words=Words("ranking", "rankings"),
        questions=Candidates.sets,
        quantities=rankings.quantities,
        truths=Truths(
            calibrate=calibrate_rankings, number=known_orders, columns=COLUMNS, answer="value"
        ),
        threshold=0.25,
        agreement=concordance.agreement,
        columns=(sections.COMPETENCE, sections.ACCURACY, sections.ADVERSARY, sections.AGREEMENT),
        sections=(partial(sections.ranking, site="worth"),),
        discrepancies=DISCREPANCIES,
    )
)

"""Comparisons as a kind of judgement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from raters.acquisition.questions.candidates import Candidates
from raters.auditing import comparisons
from raters.auditing.calibrated_comparisons import calibrate_comparisons
from raters.auditing.calibrated_orders import known_orders
from raters.auditing.known_orders import COLUMNS
from raters.families.comparisons import position, sections, strata
from raters.families.comparisons.discrepancies import DISCREPANCIES
from raters.judgements.comparisons import Comparisons
from raters.kinds import Kind, Reader, Truths, Words, register
from raters.models import comparisons as models
from raters.models.comparisons import ContextualBTL, ExtendedBTL, LinearExtendedBTL


def compared_with_itself(frame: Any, columns: Mapping[str, str]) -> tuple[str, np.ndarray]:
    """Rows whose two sides are one item."""
    sides = [columns[role] for role in ("winner", "loser", "first", "second") if role in columns]
    if len(sides) != 2 or not set(sides) <= set(frame.columns):
        return "an item compared with itself", np.zeros(len(frame), bool)
    one, other = (frame[side].astype(str).to_numpy() for side in sides)
    return "an item compared with itself", one == other


COMPARISONS = register(
    Kind(
        data=Comparisons,
        readers=(
            Reader(
                Comparisons.from_frame,
                shapes=(("winner", "loser"), ("first", "second", "outcome")),
                bad_rows=compared_with_itself,
            ),
            Reader(
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
        models=tuple(vars(models)[name] for name in models.__all__),
        default=ExtendedBTL(competence="signed"),
        words=Words("vote", "votes"),
        questions=Candidates.pairs,
        quantities=comparisons.quantities,
        truths=Truths(
            calibrate=calibrate_comparisons, number=known_orders, columns=COLUMNS, answer="winner"
        ),
        threshold=0.25,
        columns=sections.COLUMNS,
        reason=sections.reason,
        sections=(sections.ranking, strata.by_stratum, position.bias, sections.change),
        discrepancies=DISCREPANCIES,
    )
)

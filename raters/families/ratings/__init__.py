"""Ratings as a kind of judgement."""

from __future__ import annotations

from raters.auditing import ratings
from raters.auditing.calibrated_orders import known_orders
from raters.auditing.calibrated_ratings import calibrate_ratings
from raters.auditing.known_orders import COLUMNS
from raters.families.comparisons.sections import change
from raters.families.ratings import sections
from raters.judgements.ratings import Ratings
from raters.kinds import Kind, Reader, Truths, Words, register
from raters.models import ratings as models
from raters.models.ratings import ManyFacet

RATINGS = register(
    Kind(
        data=Ratings,
        readers=(
            Reader(Ratings.from_frame),
            Reader(Ratings.from_wide, shapes=(("item", "columns"),), may_be_empty=("columns",)),
        ),
        models=tuple(vars(models)[name] for name in models.__all__),
        default=ManyFacet(),
        words=Words("rating", "ratings"),
        quantities=ratings.quantities,
        truths=Truths(
            calibrate=calibrate_ratings, number=known_orders, columns=COLUMNS, answer="value"
        ),
        threshold=0.25,
        by_crowd=True,
        columns=sections.COLUMNS,
        reason=sections.reason,
        sections=(sections.ranking, sections.severity, change),
    )
)

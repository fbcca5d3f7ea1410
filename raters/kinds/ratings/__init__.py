"""Ratings as a kind of judgement."""

from __future__ import annotations

from raters import kinds
from raters.judgements.ratings import Ratings
from raters.kinds.ratings import audit
from raters.kinds.sections import shown
from raters.models import ratings as models
from raters.models.ratings import ManyFacet

RATINGS = kinds.Kind(
    data=Ratings,
    readers=(
        kinds.Reader(Ratings.from_frame),
        kinds.Reader(Ratings.from_wide, shapes=(("item", "columns"),), may_be_empty=("columns",)),
    ),
    models=tuple(vars(models)[name] for name in models.__all__),
    default=ManyFacet(),
    words=kinds.Words("rating", "ratings"),
    quantities=audit.quantities,
    truths=audit.RatingCalibration,
    threshold=0.25,
    columns=shown("competence accuracy correlation bias p_guessing p_adversarial levels_used"),
    sections=(audit.ranking, audit.severity),
)

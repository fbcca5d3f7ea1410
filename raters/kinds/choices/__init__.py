"""Choices from sets as a kind of judgement."""

from __future__ import annotations

from raters import kinds
from raters.judgements.choices import Choices
from raters.kinds.choices import audit
from raters.kinds.choices.discrepancies import DISCREPANCIES
from raters.models import choices as models
from raters.models.choices import MultinomialLogit

CHOICES = kinds.Kind(
    data=Choices,
    readers=(
        kinds.Reader(Choices.from_frame, shapes=(("set", "alternative", "chosen"),), part_of="set"),
        kinds.Reader(Choices.from_wide, shapes=(("choice", "alternatives"),)),
    ),
    models=tuple(vars(models)[name] for name in models.__all__),
    default=MultinomialLogit(),
    words=kinds.Words("choice", "choices"),
    sections=(audit.terms, audit.shares, audit.checks),
    discrepancies=DISCREPANCIES,
    unjudged=(
        "Nobody is right or wrong in what they choose, so that no annotator is judged; rt.check"
        " says whether single annotators keep to some alternatives."
    ),
    needs={"features": ("features",), "interactions": ("choosers",)},
)

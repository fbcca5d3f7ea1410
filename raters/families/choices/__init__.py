"""Choices from sets as a kind of judgement."""

from __future__ import annotations

from raters.families.choices import discrepancies, sections
from raters.judgements.choices import Choices
from raters.kinds import Kind, Reader, Words, register
from raters.models import choices as models
from raters.models.choices import MultinomialLogit

CHOICES = register(
    Kind(
        data=Choices,
        readers=(
            Reader(Choices.from_frame, shapes=(("set", "alternative", "chosen"),), part_of="set"),
            Reader(Choices.from_wide, shapes=(("choice", "alternatives"),)),
        ),
        models=tuple(vars(models)[name] for name in models.__all__),
        default=MultinomialLogit(),
        words=Words("choice", "choices"),
        sections=(sections.terms, sections.shares, sections.checks),
        discrepancies=discrepancies.CHOICES,
        threshold=0.0,  # Of nothing: `raters audit` wants one of every kind.
        unjudged=(
            "Nobody is right or wrong in what they choose, so that no annotator is judged; rt.check"
            " says whether single annotators keep to some alternatives."
        ),
        needs={"features": ("features",), "interactions": ("choosers",)},
    )
)

"""Item responses as a kind of judgement."""

from __future__ import annotations

from raters.auditing import responses
from raters.families.responses import sections
from raters.judgements.responses import Responses
from raters.kinds import Kind, Reader, Words, register
from raters.models import responses as models
from raters.models.responses import Rasch

RESPONSES = register(
    Kind(
        data=Responses,
        readers=(
            Reader(Responses.from_frame),
            Reader(Responses.from_wide, shapes=(("person", "columns"),), may_be_empty=("columns",)),
        ),
        models=tuple(vars(models)[name] for name in models.__all__),
        default=Rasch(),
        words=Words("response", "responses"),
        quantities=responses.quantities,
        # Of 0 for the average person: few are so far below.
        threshold=-2.0,
        columns=sections.COLUMNS,
        reason=sections.reason,
        sections=(sections.items,),
        lowest="least able",
    )
)

"""Item responses as kinds of judgement: right or wrong, and graded."""

from __future__ import annotations

from typing import Any

from raters.auditing import responses
from raters.families.responses import sections
from raters.judgements.graded_responses import GradedResponses
from raters.judgements.responses import Responses
from raters.kinds import Kind, Reader, Words, register
from raters.models.responses import GradedResponse, IdealPoint, Rasch, TwoPL

_SHARED: dict[str, Any] = {
    "words": Words("response", "responses"),
    "quantities": responses.quantities,
    # Of 0 for the average person: few are so far below.
    "threshold": -2.0,
    "columns": sections.COLUMNS,
    "reason": sections.reason,
    "sections": (sections.items,),
    "lowest": "least able",
}

RESPONSES = register(
    Kind(
        data=Responses,
        readers=(
            Reader(Responses.from_frame),
            Reader(Responses.from_wide, shapes=(("person", "columns"),), may_be_empty=("columns",)),
        ),
        models=(Rasch, TwoPL, IdealPoint),
        default=Rasch(),
        **_SHARED,
    )
)
GRADED_RESPONSES = register(
    Kind(
        data=GradedResponses,
        readers=(
            Reader(GradedResponses.from_frame),
            Reader(
                GradedResponses.from_wide,
                shapes=(("person", "columns"),),
                may_be_empty=("columns",),
            ),
        ),
        models=(GradedResponse,),
        default=GradedResponse(),
        name="graded_responses",
        **_SHARED,
    )
)

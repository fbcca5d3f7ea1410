"""Item responses as kinds of judgement: right or wrong, and graded."""

from __future__ import annotations

from typing import Any

from raters import kinds
from raters.judgements.graded_responses import GradedResponses
from raters.judgements.responses import Responses
from raters.kinds.responses import audit
from raters.kinds.sections import shown
from raters.model import Model
from raters.models.responses import GradedResponse, IdealPoint, Rasch, TwoPL


def _kind(
    data: type[Responses] | type[GradedResponses], *models: type[Model[Any]], name: str = ""
) -> kinds.Kind:
    """A kind of responses, whose default model is the first."""
    wide = kinds.Reader(data.from_wide, shapes=(("person", "columns"),), may_be_empty=("columns",))
    return kinds.Kind(
        data=data,
        readers=(kinds.Reader(data.from_frame), wide),
        models=models,
        default=models[0](),
        name=name,
        words=kinds.Words("response", "responses", "least able"),
        quantities=audit.quantities,
        threshold=-2.0,  # Of 0 for the average person: few are so far below.
        columns=shown("ability share_right mean_level"),
        sections=(audit.hardest_first,),
    )


RESPONSES = _kind(Responses, Rasch, TwoPL, IdealPoint)


GRADED_RESPONSES = _kind(GradedResponses, GradedResponse, name="graded_responses")

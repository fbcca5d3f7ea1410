"""Demonstrations as a kind of judgement."""

from __future__ import annotations

import dataclasses

import numpy as np

from raters import kinds
from raters.errors import DataError, refuse
from raters.judgements.demonstrations import Demonstrations
from raters.kinds.demonstrations import audit
from raters.kinds.demonstrations.reading import read_demonstrations
from raters.kinds.sections import shown
from raters.models import demonstrations as models
from raters.models.demonstrations import MaxEntIRL


def _questions(data: Demonstrations) -> Demonstrations:
    """Every state in which there is a choice, put to every demonstrator."""
    free = np.flatnonzero(data.num_choices() > 1)
    if not len(free):
        expected = "there must be a state with a choice between actions"
        refuse("data", problem="leaves nothing to ask", expected=expected, error=DataError)
    state, who = (part.ravel() for part in np.meshgrid(free, range(data.num_annotators)))
    asked = dataclasses.replace(data.unanswered(), count=None)
    return dataclasses.replace(asked, state=state.astype(np.int32), annotator=who.astype(np.int32))


DEMONSTRATIONS = kinds.Kind(
    data=Demonstrations,
    readers=(kinds.Reader(read_demonstrations),),
    models=tuple(vars(models)[name] for name in models.__all__),
    default=MaxEntIRL(),
    words=kinds.Words("step", "steps", "least rational"),
    questions=_questions,
    quantities=audit.quantities,
    threshold=0.25,
    columns=shown("rationality competence agreement p_guessing p_adversarial"),
    sections=(audit.reward, audit.policy),
)

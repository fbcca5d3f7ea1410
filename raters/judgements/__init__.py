"""Containers of judgement: integer codes, the names beside them, and the roles of columns."""

from raters.judgements.base import Judgements
from raters.judgements.choices import Choices
from raters.judgements.comparisons import Comparisons
from raters.judgements.demonstrations import Demonstrations
from raters.judgements.graded_responses import GradedResponses
from raters.judgements.labels import Labels
from raters.judgements.mdp import MDP
from raters.judgements.rankings import Rankings
from raters.judgements.ratings import Ratings
from raters.judgements.responses import Responses
from raters.judgements.together import Together

__all__ = [
    "MDP",
    "Choices",
    "Comparisons",
    "Demonstrations",
    "GradedResponses",
    "Judgements",
    "Labels",
    "Rankings",
    "Ratings",
    "Responses",
    "Together",
]

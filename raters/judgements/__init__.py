"""Containers of judgement: integer codes, the names beside them, and the roles of columns."""

from raters.judgements.answers import GradedResponses, Ratings, Responses
from raters.judgements.base import Judgements
from raters.judgements.choices import Choices
from raters.judgements.comparisons import Comparisons
from raters.judgements.demonstrations import Demonstrations
from raters.judgements.labels import Labels
from raters.judgements.mdp import MDP
from raters.judgements.rankings import Rankings
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

"""Generators of judgements with known truth, and a small real data set."""

from raters.datasets._anesthesia import (
    anesthesia,
    anesthesia_labels,
    anesthesia_path,
    anesthesia_ratings,
    anesthesia_votes,
)
from raters.datasets._choice_generators import GeneratedChoices, choice_crowd
from raters.datasets._demonstration_generators import GeneratedDemonstrations, demonstration_crowd
from raters.datasets._generators import crowd, paper, position_biased, separated
from raters.datasets._label_generators import GeneratedLabels, label_crowd
from raters.datasets._ranking_generators import GeneratedRankings, ranking_crowd
from raters.datasets._rating_generators import GeneratedRatings, rating_crowd
from raters.datasets._response_generators import GeneratedResponses, response_crowd
from raters.datasets._type_generators import preference_bandit, preference_types

__all__ = [
    "GeneratedChoices",
    "GeneratedDemonstrations",
    "GeneratedLabels",
    "GeneratedRankings",
    "GeneratedRatings",
    "GeneratedResponses",
    "anesthesia",
    "anesthesia_labels",
    "anesthesia_path",
    "anesthesia_ratings",
    "anesthesia_votes",
    "choice_crowd",
    "crowd",
    "demonstration_crowd",
    "label_crowd",
    "paper",
    "position_biased",
    "preference_bandit",
    "preference_types",
    "ranking_crowd",
    "rating_crowd",
    "response_crowd",
    "separated",
]

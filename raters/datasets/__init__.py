"""Generators of votes and labels with known truth, and a small real data set."""

from raters.datasets._anesthesia import (
    anesthesia,
    anesthesia_labels,
    anesthesia_path,
    anesthesia_ratings,
    anesthesia_votes,
)
from raters.datasets._generators import crowd, paper, position_biased, separated
from raters.datasets._label_generators import GeneratedLabels, label_crowd
from raters.datasets._rating_generators import GeneratedRatings, rating_crowd
from raters.datasets._type_generators import preference_bandit, preference_types

__all__ = [
    "GeneratedLabels",
    "GeneratedRatings",
    "anesthesia",
    "anesthesia_labels",
    "anesthesia_path",
    "anesthesia_ratings",
    "anesthesia_votes",
    "crowd",
    "label_crowd",
    "paper",
    "position_biased",
    "preference_bandit",
    "preference_types",
    "rating_crowd",
    "separated",
]

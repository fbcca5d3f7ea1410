"""Generators of judgements with known truth, and a small real data set."""

from raters.datasets._anesthesia import anesthesia
from raters.datasets._votes import (
    crowd,
    paper,
    position_biased,
    preference_bandit,
    preference_types,
    separated,
)
from raters.datasets.crowds import (
    choice_crowd,
    demonstration_crowd,
    label_crowd,
    ranking_crowd,
    rating_crowd,
)
from raters.datasets.crowds import response_crowd as response_crowd

__all__ = [
    "anesthesia",
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
    "separated",
]

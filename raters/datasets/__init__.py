"""Generators of votes and labels with known truth, and one small real table."""

from raters.datasets._anesthesia import anesthesia, anesthesia_labels, anesthesia_path, anesthesia_votes
from raters.datasets._generators import crowd, paper, position_biased, separated
from raters.datasets._label_generators import label_crowd

__all__ = [
    "anesthesia",
    "anesthesia_labels",
    "anesthesia_path",
    "anesthesia_votes",
    "crowd",
    "label_crowd",
    "paper",
    "position_biased",
    "separated",
]

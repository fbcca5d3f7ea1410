"""Generators of votes with known truth, and one small real table."""

from raters.datasets._anesthesia import anesthesia, anesthesia_path, anesthesia_votes
from raters.datasets._generators import crowd, paper, position_biased, separated

__all__ = ["anesthesia", "anesthesia_path", "anesthesia_votes", "crowd", "paper", "position_biased", "separated"]

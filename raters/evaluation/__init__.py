"""Judges beside people: boards, cheapest panels, and drift."""

from raters.evaluation.judges import Judges

__all__ = ["Judges"]

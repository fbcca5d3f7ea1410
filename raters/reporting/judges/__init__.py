"""Judges beside people: boards, cheapest panels, and drift."""

from raters.reporting.judges.judges import Judges

__all__ = ["Judges"]

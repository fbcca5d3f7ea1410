"""Reports of an audit and leaderboards, each from one dictionary of facts."""

from raters.reporting.board import Leaderboard
from raters.reporting.report import Report

__all__ = ["Leaderboard", "Report"]

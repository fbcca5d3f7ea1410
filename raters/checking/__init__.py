"""Checks of a model and a back-end together: simulation-based calibration and joint-distribution
tests."""

from raters.checking.calibration import plot_ranks, sbc, uniformity
from raters.checking.dependence import Dependence, dependence
from raters.checking.joint import geweke
from raters.checking.predictive import Check

__all__ = ["Check", "Dependence", "dependence", "geweke", "plot_ranks", "sbc", "uniformity"]

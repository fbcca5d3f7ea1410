"""Checks of a model and a back-end together: simulation-based calibration and joint-distribution
tests."""

from raters.checking.calibration import sbc, uniformity
from raters.checking.dependence import dependence
from raters.checking.joint import geweke as geweke

__all__ = ["dependence", "sbc", "uniformity"]

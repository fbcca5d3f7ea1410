"""Checks of a model and a back-end together: simulation-based calibration and joint-distribution
tests."""

from raters.checking.calibration import plot_ranks, rank_bands, sbc, uniformity
from raters.checking.joint import geweke

__all__ = ["geweke", "plot_ranks", "rank_bands", "sbc", "uniformity"]

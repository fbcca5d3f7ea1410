"""Distributions that NumPyro lacks."""

from raters.distributions.labels import ConfusedLabel
from raters.distributions.mixture import GroupedMixture, RowMixture
from raters.distributions.normals import ScaledNormal
from raters.distributions.rows import Repeated, Votes

__all__ = ["ConfusedLabel", "GroupedMixture", "Repeated", "RowMixture", "ScaledNormal", "Votes"]

"""Distributions that NumPyro lacks."""

from raters.distributions.labels import ConfusedLabel
from raters.distributions.mixture import GroupedMixture
from raters.distributions.repeated import Repeated
from raters.distributions.row_mixture import RowMixture
from raters.distributions.scaled_normal import ScaledNormal
from raters.distributions.votes import Votes

__all__ = ["ConfusedLabel", "GroupedMixture", "Repeated", "RowMixture", "ScaledNormal", "Votes"]

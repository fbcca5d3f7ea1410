"""Distributions that NumPyro lacks."""

from raters.distributions.labels import ConfusedLabel
from raters.distributions.mixture import GroupedMixture
from raters.distributions.mixture import RowMixture as RowMixture
from raters.distributions.normals import ScaledNormal as ScaledNormal
from raters.distributions.rows import Repeated as Repeated
from raters.distributions.rows import Votes

__all__ = ["ConfusedLabel", "GroupedMixture", "Votes"]

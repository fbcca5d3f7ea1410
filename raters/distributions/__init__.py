"""Distributions that NumPyro lacks."""

from raters.distributions.labels import ConfusedLabel, RightOrWrongLabel
from raters.distributions.mixture import GroupedMixture
from raters.distributions.ordered_normal import OrderedNormal
from raters.distributions.repeated import Repeated
from raters.distributions.stick_breaking import StickBreaking
from raters.distributions.tabulated import Tabulated
from raters.distributions.type_mixture import TypeMixture
from raters.distributions.votes import Votes

__all__ = [
    "ConfusedLabel",
    "GroupedMixture",
    "OrderedNormal",
    "Repeated",
    "RightOrWrongLabel",
    "StickBreaking",
    "Tabulated",
    "TypeMixture",
    "Votes",
]

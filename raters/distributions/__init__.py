"""Distributions that NumPyro lacks."""

from raters.distributions.choices import Choice, PlackettLuce
from raters.distributions.correlated import Correlated
from raters.distributions.labels import ConfusedLabel, RightOrWrongLabel
from raters.distributions.mixture import GroupedMixture
from raters.distributions.nested_choice import NestedChoice
from raters.distributions.ordered_normal import OrderedNormal
from raters.distributions.probit_choice import ProbitChoice
from raters.distributions.repeated import Repeated
from raters.distributions.row_mixture import RowMixture
from raters.distributions.scaled_normal import ScaledMultivariateNormal, ScaledNormal
from raters.distributions.stick_breaking import StickBreaking
from raters.distributions.tabulated import Tabulated
from raters.distributions.ties import Davidson, RaoKupper, TiedVotes
from raters.distributions.type_mixture import TypeMixture
from raters.distributions.votes import Votes

__all__ = [
    "Choice",
    "ConfusedLabel",
    "Correlated",
    "Davidson",
    "GroupedMixture",
    "NestedChoice",
    "OrderedNormal",
    "PlackettLuce",
    "ProbitChoice",
    "RaoKupper",
    "Repeated",
    "RightOrWrongLabel",
    "RowMixture",
    "ScaledMultivariateNormal",
    "ScaledNormal",
    "StickBreaking",
    "Tabulated",
    "TiedVotes",
    "TypeMixture",
    "Votes",
]

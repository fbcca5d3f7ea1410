"""Models of pairwise votes."""

from raters.models.comparisons.btl import BTL, MixtureBTL
from raters.models.comparisons.extended_btl import ExtendedBTL, GuesserBTL
from raters.models.comparisons.linear import ContextualBTL, LinearExtendedBTL
from raters.models.comparisons.pairwise import PairwiseModel
from raters.models.comparisons.tastes import FactorBTL, HierarchicalBTL

__all__ = [
    "BTL",
    "ContextualBTL",
    "ExtendedBTL",
    "FactorBTL",
    "GuesserBTL",
    "HierarchicalBTL",
    "LinearExtendedBTL",
    "MixtureBTL",
    "PairwiseModel",
]

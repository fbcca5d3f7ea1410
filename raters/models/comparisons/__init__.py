"""Models of pairwise votes."""

from raters.models.comparisons.btl import BTL
from raters.models.comparisons.contextual_btl import ContextualBTL
from raters.models.comparisons.extended_btl import ExtendedBTL
from raters.models.comparisons.factor_btl import FactorBTL
from raters.models.comparisons.guesser_btl import GuesserBTL
from raters.models.comparisons.hierarchical_btl import HierarchicalBTL
from raters.models.comparisons.linear_extended_btl import LinearExtendedBTL
from raters.models.comparisons.mixture_btl import MixtureBTL
from raters.models.comparisons.pairwise import PairwiseModel

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

"""Models of judgements, one per file."""

from raters.models.comparisons import (
    BTL,
    ContextualBTL,
    ExtendedBTL,
    GuesserBTL,
    HierarchicalBTL,
    MixtureBTL,
)
from raters.models.labels import (
    DawidSkene,
    GuesserDawidSkene,
    GuesserOneCoin,
    HierarchicalDawidSkene,
    ItemDifficulty,
    MajorityVote,
    OneCoin,
    Pooled,
    Raykar,
    SharedMistakes,
    Yan,
)
from raters.models.ratings import ManyFacet
from raters.models.responses import GradedResponse, Rasch, TwoPL

__all__ = [
    "BTL",
    "ContextualBTL",
    "DawidSkene",
    "ExtendedBTL",
    "GradedResponse",
    "GuesserBTL",
    "GuesserDawidSkene",
    "GuesserOneCoin",
    "HierarchicalBTL",
    "HierarchicalDawidSkene",
    "ItemDifficulty",
    "MajorityVote",
    "ManyFacet",
    "MixtureBTL",
    "OneCoin",
    "Pooled",
    "Rasch",
    "Raykar",
    "SharedMistakes",
    "TwoPL",
    "Yan",
]

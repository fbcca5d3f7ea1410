"""Models of judgements, one per file."""

from raters.models.comparisons import BTL, ContextualBTL, ExtendedBTL, MixtureBTL
from raters.models.labels import (
    DawidSkene,
    HierarchicalDawidSkene,
    ItemDifficulty,
    MajorityVote,
    OneCoin,
    Pooled,
    Raykar,
    Yan,
)

__all__ = [
    "BTL",
    "ContextualBTL",
    "DawidSkene",
    "ExtendedBTL",
    "HierarchicalDawidSkene",
    "ItemDifficulty",
    "MajorityVote",
    "MixtureBTL",
    "OneCoin",
    "Pooled",
    "Raykar",
    "Yan",
]

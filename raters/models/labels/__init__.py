"""Models of categorical labels."""

from raters.models.labels.confusion import DawidSkene, HierarchicalDawidSkene, Pooled, Raykar
from raters.models.labels.guessers import GuesserDawidSkene, GuesserOneCoin
from raters.models.labels.right_or_wrong import ItemDifficulty, MajorityVote, OneCoin
from raters.models.labels.shared_mistakes import SharedMistakes
from raters.models.labels.yan import Yan

__all__ = [
    "DawidSkene",
    "GuesserDawidSkene",
    "GuesserOneCoin",
    "HierarchicalDawidSkene",
    "ItemDifficulty",
    "MajorityVote",
    "OneCoin",
    "Pooled",
    "Raykar",
    "SharedMistakes",
    "Yan",
]

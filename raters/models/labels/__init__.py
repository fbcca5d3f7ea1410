"""Models of categorical labels."""

from raters.models.labels.dawid_skene import DawidSkene
from raters.models.labels.guesser_dawid_skene import GuesserDawidSkene
from raters.models.labels.guesser_one_coin import GuesserOneCoin
from raters.models.labels.hierarchical_dawid_skene import HierarchicalDawidSkene
from raters.models.labels.item_difficulty import ItemDifficulty
from raters.models.labels.majority_vote import MajorityVote
from raters.models.labels.one_coin import OneCoin
from raters.models.labels.pooled import Pooled
from raters.models.labels.raykar import Raykar
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

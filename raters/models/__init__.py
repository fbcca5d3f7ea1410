"""Models of judgements, one per file."""

from raters.models.choices import (
    LatentClassLogit,
    MixedLogit,
    MultinomialLogit,
    MultinomialProbit,
    NestedLogit,
)
from raters.models.comparisons import (
    BTL,
    ContextualBTL,
    ExtendedBTL,
    FactorBTL,
    GuesserBTL,
    HierarchicalBTL,
    LinearExtendedBTL,
    MixtureBTL,
    PairwiseModel,
)
from raters.models.demonstrations import BehaviouralCloning, MaxEntIRL
from raters.models.joint import JointModel
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
from raters.models.numpyro_program import numpyro_model
from raters.models.rankings import ExtendedPlackettLuce, MixturePlackettLuce, PlackettLuce
from raters.models.ratings import FineScale, ManyFacet
from raters.models.responses import GradedResponse, IdealPoint, Rasch, TwoPL

__all__ = [
    "BTL",
    "BehaviouralCloning",
    "ContextualBTL",
    "DawidSkene",
    "ExtendedBTL",
    "ExtendedPlackettLuce",
    "FactorBTL",
    "FineScale",
    "GradedResponse",
    "GuesserBTL",
    "GuesserDawidSkene",
    "GuesserOneCoin",
    "HierarchicalBTL",
    "HierarchicalDawidSkene",
    "IdealPoint",
    "ItemDifficulty",
    "JointModel",
    "LatentClassLogit",
    "LinearExtendedBTL",
    "MajorityVote",
    "ManyFacet",
    "MaxEntIRL",
    "MixedLogit",
    "MixtureBTL",
    "MixturePlackettLuce",
    "MultinomialLogit",
    "MultinomialProbit",
    "NestedLogit",
    "OneCoin",
    "PairwiseModel",
    "PlackettLuce",
    "Pooled",
    "Rasch",
    "Raykar",
    "SharedMistakes",
    "TwoPL",
    "Yan",
    "numpyro_model",
]

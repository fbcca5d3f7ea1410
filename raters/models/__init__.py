"""The zoo: one model per file."""

from raters._reprs import read
from raters.errors import SettingError
from raters.model import Model
from raters.models.btl import BTL
from raters.models.contextual_btl import ContextualBTL
from raters.models.dawid_skene import DawidSkene
from raters.models.extended_btl import ExtendedBTL
from raters.models.hierarchical_dawid_skene import HierarchicalDawidSkene
from raters.models.item_difficulty import ItemDifficulty
from raters.models.majority_vote import MajorityVote
from raters.models.mixture_btl import MixtureBTL
from raters.models.one_coin import OneCoin
from raters.models.pooled import Pooled
from raters.models.raykar import Raykar
from raters.models.yan import Yan

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


def from_repr(text: str) -> Model:
    """The model that a result was fitted with, from the ``repr`` in its attributes.

    Only calls of raters' own models with literal arguments are read; nothing is executed.
    """
    try:
        model = read(text, {name: globals()[name] for name in __all__ if name != "Model"})
        if not isinstance(model, Model):
            raise ValueError(f"{text} is no model of raters")
        return model
    except ValueError as error:
        raise SettingError(f"cannot rebuild a model from {text!r}; pass the model that was fitted") from error

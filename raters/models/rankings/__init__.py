"""Models of rankings."""

from raters.models.rankings.extended_plackett_luce import ExtendedPlackettLuce
from raters.models.rankings.mixture_plackett_luce import MixturePlackettLuce
from raters.models.rankings.plackett_luce import PlackettLuce

__all__ = ["ExtendedPlackettLuce", "MixturePlackettLuce", "PlackettLuce"]

"""Models of item responses."""

from raters.models.responses.rasch import Rasch
from raters.models.responses.two_pl import TwoPL

__all__ = ["Rasch", "TwoPL"]

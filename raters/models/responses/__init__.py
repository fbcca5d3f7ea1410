"""Models of item responses."""

from raters.models.responses.graded_response import GradedResponse
from raters.models.responses.rasch import Rasch
from raters.models.responses.two_pl import TwoPL

__all__ = ["GradedResponse", "Rasch", "TwoPL"]

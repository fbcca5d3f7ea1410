"""Models of item responses."""

from raters.models.responses.graded_response import GradedResponse
from raters.models.responses.logistic import IdealPoint, Rasch, TwoPL

__all__ = ["GradedResponse", "IdealPoint", "Rasch", "TwoPL"]

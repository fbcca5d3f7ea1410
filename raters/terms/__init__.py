"""Terms of a predictor of comparisons, one in a file with what belongs to it."""

from raters.terms.base import Product, Sum, Term
from raters.terms.competence import Competence, Drift, Effect, Groups
from raters.terms.covariates import Covariates
from raters.terms.position_bias import PositionBias
from raters.terms.rewards import LinearRewards, Rewards
from raters.terms.strata import Strata
from raters.terms.tastes import Factors, Tastes
from raters.terms.types import Guessers, LinearTypes, Types

__all__ = [
    "Competence",
    "Covariates",
    "Drift",
    "Effect",
    "Factors",
    "Groups",
    "Guessers",
    "LinearRewards",
    "LinearTypes",
    "PositionBias",
    "Product",
    "Rewards",
    "Strata",
    "Sum",
    "Tastes",
    "Term",
    "Types",
]

"""Bayesian models of human judgement: who can be trusted, what people prefer, and what to ask next."""

from raters import calibration, datasets, errors, testing
from raters.acquisition import Candidates, suggest
from raters.audit import Audit, Costs, audit, drop
from raters.cite import cite
from raters.data import Comparisons
from raters.describe import describe
from raters.fit import fit, log_likelihood, predict, simulate
from raters.inference import NUTS, PGEM, SVI, PGGibbs
from raters.labels import Labels
from raters.model import Model
from raters.models import BTL, ExtendedBTL

__version__ = "0.1.0"

__all__ = [
    "BTL",
    "NUTS",
    "PGEM",
    "SVI",
    "Audit",
    "Candidates",
    "Comparisons",
    "Costs",
    "ExtendedBTL",
    "Labels",
    "Model",
    "PGGibbs",
    "audit",
    "calibration",
    "cite",
    "datasets",
    "describe",
    "drop",
    "errors",
    "fit",
    "log_likelihood",
    "predict",
    "simulate",
    "suggest",
    "testing",
]

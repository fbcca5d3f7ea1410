"""Bayesian models of human judgement: who can be trusted, what people prefer, and what to ask next."""

from raters import acquisition, alignment, calibration, datasets, errors, testing
from raters.acquisition import Campaign, Candidates, Policy, suggest
from raters.agreement import agreement
from raters.audit import Audit, Costs, audit, drop
from raters.cite import cite
from raters.data import Comparisons
from raters.describe import describe
from raters.fit import fit, simulate
from raters.inference import NUTS, PGEM, SVI, PGGibbs
from raters.labels import Labels
from raters.model import Model
from raters.models import (
    BTL,
    ContextualBTL,
    DawidSkene,
    ExtendedBTL,
    HierarchicalDawidSkene,
    ItemDifficulty,
    MajorityVote,
    MixtureBTL,
    OneCoin,
    Pooled,
    Raykar,
    Yan,
)
from raters.predict import log_likelihood, predict
from raters.report import Report, report

__version__ = "0.1.0"

__all__ = [
    "BTL",
    "NUTS",
    "PGEM",
    "SVI",
    "Audit",
    "Campaign",
    "Candidates",
    "Comparisons",
    "ContextualBTL",
    "Costs",
    "DawidSkene",
    "ExtendedBTL",
    "HierarchicalDawidSkene",
    "ItemDifficulty",
    "Labels",
    "MajorityVote",
    "MixtureBTL",
    "Model",
    "OneCoin",
    "PGGibbs",
    "Policy",
    "Pooled",
    "Raykar",
    "Report",
    "Yan",
    "acquisition",
    "agreement",
    "alignment",
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
    "report",
    "simulate",
    "suggest",
    "testing",
]

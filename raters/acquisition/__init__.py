"""What to ask next, and whom: scores of questions, batches, campaigns and their simulation."""

from raters.acquisition import scores
from raters.acquisition.batches import Batch, BatchBald, Power, SpanningTree, SparseSubset, Top, Unique
from raters.acquisition.candidates import Candidates
from raters.acquisition.criteria import (
    About,
    Bald,
    CommitteeDivergence,
    Criterion,
    Entropy,
    Epig,
    ErrorReduction,
    ExpectedImprovement,
    LeastConfidence,
    Margin,
    OrderEntropy,
    OrderInformation,
    Random,
    Thompson,
    TruthVariance,
    VarianceReduction,
    VoteEntropy,
)
from raters.acquisition.policy import Policy
from raters.acquisition.posterior import Posterior
from raters.acquisition.suggest import suggest
from raters.acquisition.whom import BestMean, Joint, Oracle, ThompsonAnnotator, UpperBound, Whom

__all__ = [
    "About",
    "Bald",
    "Batch",
    "BatchBald",
    "BestMean",
    "Candidates",
    "CommitteeDivergence",
    "Criterion",
    "Entropy",
    "Epig",
    "ErrorReduction",
    "ExpectedImprovement",
    "Joint",
    "LeastConfidence",
    "Margin",
    "Oracle",
    "OrderEntropy",
    "OrderInformation",
    "Policy",
    "Posterior",
    "Power",
    "Random",
    "SpanningTree",
    "SparseSubset",
    "Thompson",
    "ThompsonAnnotator",
    "Top",
    "TruthVariance",
    "Unique",
    "UpperBound",
    "VarianceReduction",
    "VoteEntropy",
    "Whom",
    "scores",
    "suggest",
]

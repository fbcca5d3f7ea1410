"""Choice of the next questions: scores, batches, policies, campaigns and their simulation."""

from raters.acquisition import noisy_labels
from raters.acquisition.batches import BatchBald, Power, SpanningTree, SparseSubset, Top
from raters.acquisition.campaign import formats
from raters.acquisition.campaign.campaign import Campaign
from raters.acquisition.campaign.stopping import (
    ExpectedAccuracy,
    ExpectedTau,
    GainBelow,
    OrderIsRight,
    TopIsRight,
)
from raters.acquisition.policy import BestMean, Oracle, Policy
from raters.acquisition.posterior import Posterior
from raters.acquisition.questions.candidates import Candidates
from raters.acquisition.scores import (
    About,
    Bald,
    CommitteeDivergence,
    Entropy,
    Epig,
    ErrorReduction,
    LeastConfidence,
    OrderEntropy,
    Random,
    VarianceReduction,
    VoteEntropy,
)
from raters.acquisition.simulation import area_under_curve, replay_campaign, simulate_campaign
from raters.acquisition.suggestions import suggest
from raters.acquisition.synthesis import synthesize

__all__ = [
    "About",
    "Bald",
    "BatchBald",
    "BestMean",
    "Campaign",
    "Candidates",
    "CommitteeDivergence",
    "Entropy",
    "Epig",
    "ErrorReduction",
    "ExpectedAccuracy",
    "ExpectedTau",
    "GainBelow",
    "LeastConfidence",
    "Oracle",
    "OrderEntropy",
    "OrderIsRight",
    "Policy",
    "Posterior",
    "Power",
    "Random",
    "SpanningTree",
    "SparseSubset",
    "Top",
    "TopIsRight",
    "VarianceReduction",
    "VoteEntropy",
    "area_under_curve",
    "formats",
    "noisy_labels",
    "replay_campaign",
    "simulate_campaign",
    "suggest",
    "synthesize",
]

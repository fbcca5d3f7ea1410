"""Choice of the next questions: scores, batches, policies, campaigns and their simulation."""

from raters.acquisition.campaign import formats
from raters.acquisition.campaign.campaign import Campaign
from raters.acquisition.campaign.certainty_rules import (
    ExpectedAccuracy,
    ExpectedTau,
    OrderIsRight,
    TopIsRight,
)
from raters.acquisition.campaign.cost_rules import Budget, GainBelow
from raters.acquisition.campaign.status import Status
from raters.acquisition.campaign.stopping import AllOf, AnyOf, Stop
from raters.acquisition.campaign.stream import Decision
from raters.acquisition.policy.annotator_rules import (
    AnnotatorRule,
    BestMean,
    Joint,
    Oracle,
    ThompsonAnnotator,
    UpperBound,
)
from raters.acquisition.policy.batches import (
    Batch,
    BatchBald,
    Power,
    Sequential,
    SpanningTree,
    SparseSubset,
    Top,
    Unique,
)
from raters.acquisition.policy.policy import Policy
from raters.acquisition.policy.suggest import suggest
from raters.acquisition.policy.synthesis import synthesize
from raters.acquisition.questions.candidates import Candidates
from raters.acquisition.scoring import scores
from raters.acquisition.scoring.certainty import (
    expected_share_of_right_pairs,
    probability_of_order,
    probability_of_top,
)
from raters.acquisition.scoring.criteria import (
    About,
    Bald,
    CommitteeDivergence,
    Criterion,
    Entropy,
    Epig,
    ErrorReduction,
    LeastConfidence,
    Margin,
    Random,
    VoteEntropy,
)
from raters.acquisition.scoring.order_criteria import (
    ExpectedImprovement,
    OrderEntropy,
    OrderInformation,
    OrderVariance,
    Thompson,
)
from raters.acquisition.scoring.posterior import Posterior
from raters.acquisition.scoring.variance_criteria import TruthVariance, VarianceReduction
from raters.acquisition.simulation import noisy_labels
from raters.acquisition.simulation.simulation import (
    area_under_curve,
    replay_campaign,
    simulate_campaign,
)

__all__ = [
    "About",
    "AllOf",
    "AnnotatorRule",
    "AnyOf",
    "Bald",
    "Batch",
    "BatchBald",
    "BestMean",
    "Budget",
    "Campaign",
    "Candidates",
    "CommitteeDivergence",
    "Criterion",
    "Decision",
    "Entropy",
    "Epig",
    "ErrorReduction",
    "ExpectedAccuracy",
    "ExpectedImprovement",
    "ExpectedTau",
    "GainBelow",
    "Joint",
    "LeastConfidence",
    "Margin",
    "Oracle",
    "OrderEntropy",
    "OrderInformation",
    "OrderIsRight",
    "OrderVariance",
    "Policy",
    "Posterior",
    "Power",
    "Random",
    "Sequential",
    "SpanningTree",
    "SparseSubset",
    "Status",
    "Stop",
    "Thompson",
    "ThompsonAnnotator",
    "Top",
    "TopIsRight",
    "TruthVariance",
    "Unique",
    "UpperBound",
    "VarianceReduction",
    "VoteEntropy",
    "area_under_curve",
    "expected_share_of_right_pairs",
    "formats",
    "noisy_labels",
    "probability_of_order",
    "probability_of_top",
    "replay_campaign",
    "scores",
    "simulate_campaign",
    "suggest",
    "synthesize",
]

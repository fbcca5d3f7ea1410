"""Choice of the next questions: scores, batches, policies, campaigns and their simulation.

Further scores, batches and rules are in the modules `scores`, `batches`, `policy` and
`campaign.stopping`; `formats` exchanges questions with Label Studio and Argilla.
"""

from raters.acquisition.batches import SpanningTree, Top
from raters.acquisition.campaign.campaign import Campaign
from raters.acquisition.campaign.stopping import ExpectedAccuracy as ExpectedAccuracy
from raters.acquisition.campaign.stopping import ExpectedTau, OrderIsRight
from raters.acquisition.campaign.stopping import GainBelow as GainBelow
from raters.acquisition.policy import BestMean, Policy
from raters.acquisition.posterior import Posterior as Posterior
from raters.acquisition.questions.candidates import Candidates
from raters.acquisition.scores import Entropy, OrderEntropy, Random
from raters.acquisition.simulation import replay_campaign as replay_campaign
from raters.acquisition.simulation import simulate_campaign
from raters.acquisition.suggestions import suggest, synthesize

__all__ = [
    "BestMean",
    "Campaign",
    "Candidates",
    "Entropy",
    "ExpectedTau",
    "OrderEntropy",
    "OrderIsRight",
    "Policy",
    "Random",
    "SpanningTree",
    "Top",
    "simulate_campaign",
    "suggest",
    "synthesize",
]

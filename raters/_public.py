"""Everything that `import raters` gives."""

from raters import acquisition, alignment, checking, datasets, errors, families, imitation, testing
from raters.acquisition import Campaign, Candidates, Policy, suggest
from raters.auditing.agreement import agreement
from raters.auditing.audit import Audit, audit
from raters.auditing.calibration import Anchor, Calibration, calibrate
from raters.auditing.choices import choice_shares
from raters.auditing.dropping import drop
from raters.auditing.verdicts import Costs
from raters.checking.dependence import Dependence, dependence
from raters.checking.predictive import Check, check
from raters.fitting.describe import describe
from raters.fitting.fit import fit
from raters.fitting.groups import with_groups
from raters.fitting.parts import Part, part
from raters.fitting.predict import predict
from raters.fitting.result import model_of
from raters.fitting.scoring import log_likelihood
from raters.fitting.simulate import simulate
from raters.inference import HMC, NUTS, PGEM, PGVI, SVI, PGGibbs
from raters.judgements import (
    MDP,
    Choices,
    Comparisons,
    Demonstrations,
    GradedResponses,
    Judgements,
    Labels,
    Rankings,
    Ratings,
    Responses,
    Together,
)
from raters.kinds import AuditLimits, Kind, Quantities, Reader, Truths, Words, register
from raters.model import Model
from raters.models import (
    BTL,
    BehaviouralCloning,
    ContextualBTL,
    DawidSkene,
    ExtendedBTL,
    ExtendedPlackettLuce,
    FactorBTL,
    GradedResponse,
    GuesserBTL,
    GuesserDawidSkene,
    GuesserOneCoin,
    HierarchicalBTL,
    HierarchicalDawidSkene,
    IdealPoint,
    ItemDifficulty,
    LatentClassLogit,
    LinearExtendedBTL,
    MajorityVote,
    ManyFacet,
    MaxEntIRL,
    MixedLogit,
    MixtureBTL,
    MixturePlackettLuce,
    MultinomialLogit,
    MultinomialProbit,
    NestedLogit,
    OneCoin,
    PlackettLuce,
    Pooled,
    Rasch,
    Raykar,
    SharedMistakes,
    TwoPL,
    Yan,
)
from raters.models.joint import JointModel
from raters.models.numpyro_program import numpyro_model
from raters.program import Program
from raters.reporting.cite import cite
from raters.reporting.report import Report, report

__all__ = [
    "BTL",
    "HMC",
    "MDP",
    "NUTS",
    "PGEM",
    "PGVI",
    "SVI",
    "Anchor",
    "Audit",
    "AuditLimits",
    "BehaviouralCloning",
    "Calibration",
    "Campaign",
    "Candidates",
    "Check",
    "Choices",
    "Comparisons",
    "ContextualBTL",
    "Costs",
    "DawidSkene",
    "Demonstrations",
    "Dependence",
    "ExtendedBTL",
    "ExtendedPlackettLuce",
    "FactorBTL",
    "GradedResponse",
    "GradedResponses",
    "GuesserBTL",
    "GuesserDawidSkene",
    "GuesserOneCoin",
    "HierarchicalBTL",
    "HierarchicalDawidSkene",
    "IdealPoint",
    "ItemDifficulty",
    "JointModel",
    "Judgements",
    "Kind",
    "Labels",
    "LatentClassLogit",
    "LinearExtendedBTL",
    "MajorityVote",
    "ManyFacet",
    "MaxEntIRL",
    "MixedLogit",
    "MixtureBTL",
    "MixturePlackettLuce",
    "Model",
    "MultinomialLogit",
    "MultinomialProbit",
    "NestedLogit",
    "OneCoin",
    "PGGibbs",
    "Part",
    "PlackettLuce",
    "Policy",
    "Pooled",
    "Program",
    "Quantities",
    "Rankings",
    "Rasch",
    "Ratings",
    "Raykar",
    "Reader",
    "Report",
    "Responses",
    "SharedMistakes",
    "Together",
    "Truths",
    "TwoPL",
    "Words",
    "Yan",
    "acquisition",
    "agreement",
    "alignment",
    "audit",
    "calibrate",
    "check",
    "checking",
    "choice_shares",
    "cite",
    "datasets",
    "dependence",
    "describe",
    "drop",
    "errors",
    "families",
    "fit",
    "imitation",
    "log_likelihood",
    "model_of",
    "numpyro_model",
    "part",
    "predict",
    "register",
    "report",
    "simulate",
    "suggest",
    "testing",
    "with_groups",
]

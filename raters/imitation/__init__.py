"""Imitation on tables: what policies are worth, and how they are learned from demonstrations.

All functions are of an `raters.MDP`, and take and give arrays of NumPy in double precision: a
policy (state, action) of probabilities, a reward (state, action) or the weights (feature,) of the
features, and a demonstrator as a policy, as counts (state, action), or as an occupancy
(state, action), from `occupancy` or `empirical_occupancy`. They give points; the posterior of a
reward, and of the rationality of each demonstrator, is that of a model.

References
----------
- Abbeel and Ng (2004). Apprenticeship learning via inverse reinforcement learning. ICML.
- Ho and Ermon (2016). Generative adversarial imitation learning. NeurIPS 29.
- Kakade and Langford (2002). Approximately optimal approximate reinforcement learning. ICML.
- Nalisnick (2024). Human-in-the-loop machine learning. Lecture notes, Johns Hopkins University. The
  numbers of equations are of these; where a printed equation is corrected, the notes of the
  function say how.
- Ross, Gordon and Bagnell (2011). A reduction of imitation learning and structured prediction to
  no-regret online learning. AISTATS.
- Syed, Bowling and Schapire (2008). Apprenticeship learning using linear programming. ICML.
- Syed and Schapire (2007). A game-theoretic approach to apprenticeship learning. NeurIPS 20.
- Ziebart, Maas, Bagnell and Dey (2008). Maximum entropy inverse reinforcement learning. AAAI.
- Ziebart (2010). Modeling purposeful adaptive behavior with the principle of maximum causal
  entropy. PhD thesis, Carnegie Mellon University.
"""

from raters.imitation.adversarial import Adversarial, discriminator, gail
from raters.imitation.apprenticeship import (
    Apprentice,
    feature_matching,
    return_gap,
    syed_schapire,
    syed_schapire_programme,
)
from raters.imitation.cloning import Bound, clone, cloning_bound, positive_negative_cloning
from raters.imitation.entropy import Inverse, Objective, maxent_irl, maxent_objective
from raters.imitation.interaction import Rounds, cliff, dagger
from raters.imitation.matching import Match, match_trajectories, trajectory_divergence
from raters.imitation.occupancies import feature_expectations, occupancy
from raters.imitation.planning import Plan, optimal_policy, soft_policy
from raters.imitation.rollouts import Rollout, action_counts, empirical_occupancy, rollout
from raters.imitation.trajectories import Tilted, kl_regularised
from raters.imitation.values import (
    action_values,
    advantage,
    performance_difference,
    returns,
    state_values,
    uniform_policy,
)

__all__ = [
    "Adversarial",
    "Apprentice",
    "Bound",
    "Inverse",
    "Match",
    "Objective",
    "Plan",
    "Rollout",
    "Rounds",
    "Tilted",
    "action_counts",
    "action_values",
    "advantage",
    "cliff",
    "clone",
    "cloning_bound",
    "dagger",
    "discriminator",
    "empirical_occupancy",
    "feature_expectations",
    "feature_matching",
    "gail",
    "kl_regularised",
    "match_trajectories",
    "maxent_irl",
    "maxent_objective",
    "occupancy",
    "optimal_policy",
    "performance_difference",
    "positive_negative_cloning",
    "return_gap",
    "returns",
    "rollout",
    "soft_policy",
    "state_values",
    "syed_schapire",
    "syed_schapire_programme",
    "trajectory_divergence",
    "uniform_policy",
]

"""Imitation on tables: what policies are worth, and how they are learned from demonstrations.

All functions are of an `raters.MDP`, and take and give arrays of NumPy in double precision: a
policy (state, action) of probabilities, a reward (state, action) or the weights (feature,) of the
features, and a demonstrator as a policy, as a `Rollout` or counts (state, action), or as an
`occupancy` (state, action). They give points; the posterior of a reward, and of the rationality of
each demonstrator, is that of a model.

References
----------
- Abbeel and Ng (2004). Apprenticeship learning via inverse reinforcement learning. ICML.
- Ho and Ermon (2016). Generative adversarial imitation learning. NeurIPS 29.
- Nalisnick (2024). Human-in-the-loop machine learning. Lecture notes, Johns Hopkins University. The
  numbers of equations are of these.
- Ross, Gordon and Bagnell (2011). A reduction of imitation learning and structured prediction to
  no-regret online learning. AISTATS.
- Syed, Bowling and Schapire (2008). Apprenticeship learning using linear programming. ICML.
- Syed and Schapire (2007). A game-theoretic approach to apprenticeship learning. NeurIPS 20.
- Ziebart, Maas, Bagnell and Dey (2008). Maximum entropy inverse reinforcement learning. AAAI.
- Ziebart (2010). Modeling purposeful adaptive behavior with the principle of maximum causal
  entropy. PhD thesis, Carnegie Mellon University.
"""

from raters.imitation.adversarial import gail as gail
from raters.imitation.apprenticeship import feature_matching as feature_matching
from raters.imitation.apprenticeship import syed_schapire as syed_schapire
from raters.imitation.cloning import clone, cloning_bound
from raters.imitation.cloning import dagger as dagger
from raters.imitation.entropy import maxent_irl
from raters.imitation.planning import optimal_policy
from raters.imitation.rollouts import occupancy, rollout

__all__ = ["clone", "cloning_bound", "maxent_irl", "occupancy", "optimal_policy", "rollout"]

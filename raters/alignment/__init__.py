"""Policies for several types of people, and one policy for all of them whose worst regret is least:
a mixture of theirs (MinMax-DPO), or any.

A policy gives each response to a prompt a probability. It has an implicit reward: the one that it
maximises when leaving a reference policy has a price, as in direct preference optimisation (DPO).

The last axis of an array is the response, the one before it the prompt, and the one before that the
type; with one prompt its axis may be left out. Posterior draws come before the type. All
functions compute with NumPy in double precision, except `dpo_loss`, which is JAX and
differentiable, and `policy_gradient`, whose logits are JAX.

References
----------
- Agarwal, Kakade, Lee and Mahajan (2021). On the theory of policy gradient methods. Journal of
  Machine Learning Research 22.
- Chidambaram, Seetharaman and Syrgkanis (2024). Direct preference optimization with unobserved
  preference heterogeneity. arXiv:2405.15065.
- Rafailov et al. (2023). Direct preference optimization: your language model is secretly a reward
  model. NeurIPS 36.
- Syrgkanis, Agarwal, Luo and Schapire (2015). Fast convergence of regularized learning in games.
  NeurIPS 28.
"""

from raters.alignment.policies import dpo_loss as dpo_loss
from raters.alignment.policies import policy
from raters.alignment.policy_gradient import policy_gradient as policy_gradient
from raters.alignment.regret import hedge, linear_programme, regret_matrix, regrets
from raters.alignment.rewards import type_rewards
from raters.alignment.saddle import minmax_policy

__all__ = [
    "hedge",
    "linear_programme",
    "minmax_policy",
    "policy",
    "regret_matrix",
    "regrets",
    "type_rewards",
]

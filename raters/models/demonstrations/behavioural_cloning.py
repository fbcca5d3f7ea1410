"""Behavioural cloning: a policy that all demonstrators share, and how reliably each follows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from raters.distributions import ConfusedLabel, RowMixture
from raters.judgements.demonstrations import Demonstrations
from raters.model import Model, Values

# Probability of an action that is not allowed: above 0, so that its logarithm has a slope.
_NEVER = 1e-30


@dataclass(frozen=True)
class BehaviouralCloning(Model[Demonstrations]):
    r"""Behavioural cloning with a competence of each demonstrator.

    .. math::

        P(a \mid s, k) = \kappa_k \, \pi(a \mid s) + (1 - \kappa_k) \frac{1}{|A(s)|}, \qquad
        \pi(\cdot \mid s) \sim \mathrm{Dirichlet}(1, \dots, 1), \qquad
        \kappa_k \sim \mathrm{Beta}(2, 1)

    A demonstrator acts by the policy with probability κ, their competence, and otherwise at random
    among the actions that are allowed. The policy of a state that nobody demonstrated is that of
    the prior, where `MaxEntIRL` draws conclusions from other states. Whoever knows a better way
    than the policy of all looks incompetent, and so does an adversary.

    Where a state has some but not all of the actions, the policy is that among them, which is not
    counted: the Pólya-Gamma back-ends then refuse, and NUTS and SVI run.

    Examples
    --------
    >>> import raters as rt
    >>> demonstrations, truth = rt.datasets.demonstration_crowd(3, 3, num_annotators=4, seed=0)
    >>> result = rt.fit(rt.models.BehaviouralCloning(), demonstrations, rt.PGEM(draws=0), seed=0,
    ...                 progress=False)
    >>> result["mode"]["policy"].dims
    ('state', 'action')
    """

    reference: ClassVar[str] = "pomerleau1991efficient"

    def generate(self, data: Demonstrations) -> None:
        with numpyro.plate("annotator", data.num_annotators):
            competence = numpyro.sample("competence", dist.Beta(2.0, 1.0))
        prior = dist.Dirichlet(jnp.full(data.num_actions, 1.0))
        with numpyro.plate("state", data.num_states):
            policy = numpyro.sample("policy", prior, infer={"event_dims": ["action"]})
        allowed = jnp.asarray(data.allowed, bool)
        uniform = jnp.where(allowed, 1 / allowed.sum(1, keepdims=True), _NEVER)
        among = jnp.where(allowed, policy, 0.0).sum(1, keepdims=True)
        few = jnp.where(allowed, policy / among, _NEVER)
        # As it is where there are all actions, so that what is counted is seen to be.
        policy = jnp.where(allowed.all(1, keepdims=True), policy, few)
        by_manner = ConfusedLabel(jnp.stack([uniform, policy], 1), data.state)
        chance = jnp.stack([1 - competence, competence], -1)[data.annotator]
        manner = dist.Categorical(probs=chance)
        steps = RowMixture(manner, by_manner, data.num_rows, data.count)
        with numpyro.plate("step", data.num_rows):
            numpyro.sample("action", steps, obs=data.action)

    def start(self, data: Demonstrations) -> Values:
        taken = data.answers_by("state") + 1.0
        return {
            "competence": np.full(data.num_annotators, 2 / 3),
            "policy": taken / taken.sum(1, keepdims=True),
        }

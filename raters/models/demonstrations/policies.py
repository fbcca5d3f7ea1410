"""Models of the policies of demonstrators: of a reward that they share, or a policy that they
share."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.distributions import ConfusedLabel, Repeated, RowMixture
from raters.judgements.demonstrations import Demonstrations
from raters.judgements.names import shorten
from raters.model import Fit, Model, Scale, Sign, Values
from raters.models.base import CheckedModel, open_reward, worded
from raters.models.demonstrations.soft_policy import Dynamics, log_soft_policy, unidentified
from raters.terms.base import sampled

# Probability of an action that is not allowed: above 0, so that its logarithm has a slope.
_NEVER = 1e-30
# A feature of which so much lies in directions that no demonstration tells is said to be open.
_OPEN = 0.5
# Of a feature that differs by so little, per standard deviation of the prior and in logits, the
# prior says that it does not matter.
_LEAST_LOGITS = 0.2


@dataclass(frozen=True)
class MaxEntIRL(CheckedModel[Demonstrations]):
    r"""Maximum causal entropy inverse reinforcement learning with a rationality of each
    demonstrator.

    .. math::

        \pi_k(a \mid s) = \exp(Q_k(s, a) - V_k(s)), \qquad
        Q_k(s, a) = \beta_k \theta^\top \phi(s, a) + \gamma \sum_{s'} P(s' \mid s, a) V_k(s'), \\
        V_k(s) = \log \frac{1}{|A(s)|} \sum_{a \in A(s)} \exp Q_k(s, a), \qquad
        \theta_f \sim \mathrm{Normal}(0, c), \qquad \beta_k \sim \mathrm{Normal}(1, 1)

    Demonstrator k acts by the soft-optimal policy of the reward :math:`\beta_k \theta^\top \phi`.
    A rationality of 0 acts at random, a large one optimally, and one below 0 against the goal, as
    an adversary does; 1 is where the prior has the crowd. A demonstration is a choice of actions as
    a vote is a choice of items, and :math:`\beta` is the competence of `ExtendedBTL`
    (reward-rational choice, Jeon, Milli and Dragan 2020).

    The policy has the largest entropy of the actions given the states among those with its expected
    features. Entropy is measured against acting at random, so that a rationality of 0 does so also
    where states differ in their number of actions or a process has ends; Ziebart et al. (2010)
    leave :math:`1 / |A(s)|` out.

    Identification: the likelihood is invariant to

    - the scale, (θ, β) → (c·θ, β/c), and the sign: the prior, with the crowd about β = 1,
      determines them, so report ratios of rationalities, and :math:`\beta_k \theta`, where the unit
      matters;
    - shaping: a reward :math:`h(s) - \gamma \sum_{s'} P(s' \mid s, a) h(s')` for any h, such as a
      constant, changes no policy (Ng, Harada and Russell 1999). Where combinations of features are
      of this form, as is the sum of an indicator of each state, the prior alone says how large they
      are; `raters.fit` warns, and the report gives the coefficients without them.

    Parameters
    ----------
    coefficient_scale : float
        Standard deviation c of the coefficients, in logits for one unit of a feature.

    Examples
    --------
    >>> import raters as rt
    >>> demonstrations, truth = rt.datasets.demonstration_crowd(3, 3, num_annotators=4, seed=0)
    >>> nuts = rt.NUTS(draws=400, warmup=300, chains=2)
    >>> result = rt.fit(rt.MaxEntIRL(), demonstrations, nuts, seed=0, progress=False)
    >>> result.posterior["rationality"].dims
    ('chain', 'draw', 'annotator')
    """

    coefficient_scale: float = 1.0

    reference = "ziebart2010modeling jeon2020reward"

    symmetries = (Scale(("coefficient",), ("rationality",)), Sign(("coefficient", "rationality")))

    def generate(self, data: Demonstrations) -> None:
        prior, people = dist.Normal(0.0, self.coefficient_scale), data.num_annotators
        coefficient = sampled("coefficient", prior, feature=data.num_features)
        rationality = sampled("rationality", dist.Normal(1.0, 1.0), annotator=people)
        log_policy = self.log_policies(data, coefficient, rationality)
        chosen = dist.Categorical(logits=log_policy[data.annotator, data.state])
        # As it is without counts, so that back-ends can say why there is nothing to augment.
        each = chosen if data.count is None else Repeated(chosen, data.count)
        sampled("action", each, obs=data.action, step=data.num_rows)

    def log_policies(
        self, data: Demonstrations, coefficient: Array, rationality: Array
    ) -> Float[Array, "annotator state action"]:
        """Log-probabilities of the actions of each demonstrator in each state."""
        reward = jnp.asarray(data.features, float) @ coefficient
        return log_soft_policy(rationality[:, None, None] * reward, Dynamics.of(data))

    def start(self, data: Demonstrations) -> Values:
        return {
            "coefficient": np.zeros(data.num_features),
            "rationality": np.ones(data.num_annotators),
        }

    def data_warnings(self, data: Demonstrations) -> tuple[str, ...]:
        sentences = []
        if len(set(np.asarray(data.annotator).tolist())) < 2:
            sentences.append(worded("one_demonstrator"))
        sentences += self._warnings_of_size(data)
        directions = unidentified(data.mdp)
        if len(directions):
            share = (directions**2).sum(0)
            names = [data.feature_names[code] for code in np.flatnonzero(share > _OPEN)]
            numbers = {"number": len(directions), "features": data.num_features}
            sentences.append(worded("unidentified", names=names and shorten(names), **numbers))
        return tuple(sentences)

    def _warnings_of_size(self, data: Demonstrations) -> list[str]:
        """Warn of features that differ so little that the prior rules out any preference."""
        mdp = data.mdp
        steps = np.asarray(mdp.features)[np.asarray(mdp.allowed) & ~mdp.ends[:, None]]
        size = np.ptp(steps, axis=0) if len(steps) else np.zeros(data.num_features)
        small = (size > 0) & (size * self.coefficient_scale < _LEAST_LOGITS)
        if not small.any():
            return []
        names = shorten([data.feature_names[code] for code in np.flatnonzero(small)])
        scale, largest = self.coefficient_scale, size[small].max()
        return [worded("small_features", names=names, largest=largest, scale=scale)]

    def fit_warnings(self, data: Demonstrations, fit: Fit) -> tuple[str, ...]:
        remedy = (
            "where some are known to act for the goal, a fit of their demonstrations alone would"
            " decide it"
        )
        return open_reward(fit.draws["rationality"], "demonstrations", remedy)


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
    counted: the Pólya-Gamma back-ends then refuse, and HMC, NUTS and SVI run.

    Examples
    --------
    >>> import raters as rt
    >>> demonstrations, truth = rt.datasets.demonstration_crowd(3, 3, num_annotators=4, seed=0)
    >>> result = rt.fit(rt.models.BehaviouralCloning(), demonstrations, rt.PGEM(draws=0), seed=0,
    ...                 progress=False)
    >>> result["mode"]["policy"].dims
    ('state', 'action')
    """

    reference = "pomerleau1991efficient"

    def generate(self, data: Demonstrations) -> None:
        competence = sampled("competence", dist.Beta(2.0, 1.0), annotator=data.num_annotators)
        prior = dist.Dirichlet(jnp.full(data.num_actions, 1.0))
        policy = sampled("policy", prior, "action", state=data.num_states)
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
        sampled("action", steps, obs=data.action, step=data.num_rows)

    def start(self, data: Demonstrations) -> Values:
        taken = data.answers_by("state") + 1.0
        return {
            "competence": np.full(data.num_annotators, 2 / 3),
            "policy": taken / taken.sum(1, keepdims=True),
        }

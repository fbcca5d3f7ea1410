"""Maximum-entropy inverse reinforcement learning: the reward that demonstrations are soft-optimal
for."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from raters.alignment.checks import warn_unconverged
from raters.errors import DataError, refuse, refuse_data
from raters.errors.validation import checked, is_number
from raters.imitation._checks import as_features, features_of
from raters.imitation.planning import Plan, soft_plan
from raters.imitation.values import PerFeature, visits_of, walk
from raters.judgements import MDP

# Steps of Newton's method, and error of the feature expectations, relative to the largest.
_STEPS, _TOLERANCE = 100, 1e-8
# Curvature, relative to the largest, below which a direction changes no policy.
_FLAT = 1e-10
# Curvature, relative to the largest at first, below which weights are on their way to infinity.
_GROWN = 1e-6


class Inverse(NamedTuple):
    """A reward, the policy that is soft-optimal for it, its log-likelihood, and how far feature
    expectations are from a match."""

    weights: Float[np.ndarray, " feature"]
    policy: Float[np.ndarray, "state action"]
    value: float
    gap: float


class Objective(NamedTuple):
    """Log-likelihood of weights in nats per episode, its gradient, and the soft-optimal policy."""

    value: float
    gradient: Float[np.ndarray, " feature"]
    plan: Plan


def maxent_objective(mdp: MDP, theta: PerFeature, target: PerFeature) -> Objective:
    """Log-likelihood that `maxent_irl` maximises."""
    plan = soft_plan(mdp, mdp.features @ theta)
    value = float(theta @ target - mdp.start @ plan.state_values)
    return Objective(value, target - features_of(mdp, visits_of(mdp, plan.policy)), plan)


@checked
def maxent_irl(mdp: MDP, demonstrator: ArrayLike, *, penalty: float = 0.0) -> Inverse:
    r"""Find the reward for which a demonstrator is soft-optimal (Ziebart et al. 2008; 2010).

    It maximises, by Newton's method in trust regions, the concave

    .. math:: \ell(\theta) = \theta^\top \mu_E - \sum_s p_0(s) V_\theta(s)
              - \frac{\kappa}{2} \lVert \theta \rVert^2, \qquad
              \nabla \ell = \mu_E - \mu_{\pi_\theta} - \kappa \theta

    with the soft value :math:`V_\theta` and the soft-optimal policy :math:`\pi_\theta(a \mid s)
    \propto \exp Q_\theta(s, a)`, as of `optimal_policy`: without a penalty the expected
    log-likelihood :math:`\sum_t \gamma^t \log \pi_\theta(a_t \mid s_t)` of an episode.

    Parameters
    ----------
    mdp : MDP
    demonstrator : array (feature,) or (state, action)
        Feature expectations, or an `occupancy`. Episodes that are cut before they end lack a part.
    penalty : float
        :math:`\kappa`, at least 0: the precision of a normal prior, per episode.

    Returns
    -------
    Inverse
        ``weights`` (feature,) in units of the demonstrator's temperature; ``policy``; ``value``,
        the log-likelihood in nats per episode, without the penalty; and ``gap``, the largest entry
        of the gradient, along what is identified.

    Warns
    -----
    ConvergenceWarning
        When feature expectations do not match, or weights grow without end, as for a demonstrator
        who never errs. Give a penalty.

    Notes
    -----
    Rewards are identified only up to what leaves all policies as good as they are: of two whose
    difference is :math:`f(s) - \gamma \mathbb{E}[f(s')]` for some :math:`f` of the states, such as
    a constant where episodes do not end. Of equal ones this is the nearest to 0.

    Equations 65 to 67 of Nalisnick (2024) weigh the walks of a deterministic process, without the
    probabilities of its transitions, and imply a policy in proportion to :math:`Q`; the causal form
    is right for transitions at random too.

    Examples
    --------
    >>> import raters as rt
    >>> from raters.imitation import occupancy, optimal_policy
    >>> mdp = rt.MDP.grid(3, 3, features={"mud": [[0, 1, 0], [0, 1, 0], [0, 0, 0]],
    ...                                   "goal": [[0, 0, 1], [0, 0, 0], [0, 0, 0]]})
    >>> shown = occupancy(mdp, optimal_policy(mdp, [-2.0, 1.0], temperature=1.0).policy)
    >>> print(maxent_irl(mdp, shown).weights.round(3))
    [-2.  1.]
    """
    if not is_number(penalty) or penalty < 0:
        refuse("penalty", penalty, expected="it must be at least 0")
    target = as_features(mdp, demonstrator)
    near = _TOLERANCE * max(float(np.abs(target).max()), 1e-300)
    begin, at = _begin(mdp, target)
    first, axes = np.linalg.eigh(_curvature(mdp, at.plan))
    axes = axes[:, first > _FLAT * first[-1]]

    def loss(along: PerFeature) -> tuple[float, PerFeature]:
        theta = begin + axes @ along
        try:
            at = maxent_objective(mdp, theta, target)
        except DataError:  # beyond where soft values are finite
            return np.inf, along
        return penalty / 2 * theta @ theta - at.value, axes.T @ (penalty * theta - at.gradient)

    def curvature(along: PerFeature) -> Float[np.ndarray, "axis axis"]:
        plan = soft_plan(mdp, mdp.features @ (begin + axes @ along))
        return np.asarray(axes.T @ _curvature(mdp, plan) @ axes + penalty * np.eye(len(along)))

    along = np.zeros(axes.shape[1])
    if len(along):
        options = {"gtol": near, "maxiter": _STEPS}
        settings: Any = {"jac": True, "hess": curvature, "options": options}
        along = minimize(loss, along, method="trust-exact", **settings).x
    theta = begin + axes @ along
    at, gap = maxent_objective(mdp, theta, target), float(np.abs(axes @ loss(along)[1]).max())
    least = np.linalg.eigvalsh(curvature(along)).min(initial=np.inf)
    grows = least <= _GROWN * float(first[-1])
    if gap > near or grows:
        why = "weights grow without end" if grows else "no policy may have these features"
        problem = f"feature expectations differ by {gap:.3g} from the demonstrator's: {why}"
        warn_unconverged(f"{problem}; give a penalty, such as penalty=0.01")
    return Inverse(theta, at.plan.policy, at.value, gap)


def _begin(mdp: MDP, target: PerFeature) -> tuple[PerFeature, Objective]:
    """Weights of 0, or, without a soft-optimal policy, those where steps cost above entropy."""
    zero = np.zeros(mdp.num_features)
    if mdp.discount < 1:
        return zero, maxent_objective(mdp, zero, target)
    steps = mdp.features[mdp.allowed & ~mdp.ends[:, None]]
    cost = np.full(len(steps), -1 - np.log(mdp.num_actions))
    for theta in (zero, np.linalg.lstsq(steps, cost)[0]):
        try:
            return theta, maxent_objective(mdp, theta, target)
        except DataError:
            continue
    expected = "some weights must make each step cost more than its entropy"
    such = "dataclasses.replace(mdp, discount=0.95)"
    return refuse_data("discount", 1.0, "lets entropy grow for ever", expected, instead=such)


def _curvature(mdp: MDP, plan: Plan) -> Float[np.ndarray, "feature feature"]:
    """Negative Hessian: second moments of the gradients of the log-probabilities of actions."""
    mean = np.einsum("sa,saf->sf", plan.policy, mdp.features)
    of_states = np.linalg.solve(walk(mdp, plan.policy), mean)
    of_actions = mdp.features + mdp.discount * mdp.transition @ of_states
    slopes = np.sqrt(visits_of(mdp, plan.policy))[..., None] * (of_actions - of_states[:, None])
    flat = slopes.reshape(-1, mdp.num_features)
    return np.asarray(flat.T @ flat)

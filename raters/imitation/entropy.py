"""Maximum-entropy inverse reinforcement learning: the reward that demonstrations are soft-optimal
for."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from raters.errors import PACKAGE, ConvergenceWarning, DataError, SettingError
from raters.errors.validation import checked, is_number, positive, whole
from raters.imitation._checks import as_features, as_weights
from raters.imitation.occupancies import occupancy_of
from raters.imitation.planning import Plan, soft_plan
from raters.imitation.values import walk
from raters.judgements import MDP

# Curvature, relative to the largest, below which a direction changes no policy.
_FLAT = 1e-10
# Curvature, relative to the largest at first, below which weights are on their way to infinity.
_GROWN = 1e-6
# Rounding of the objective, relative to its size.
_ROUNDING = 1e-11
_HALVINGS = 40


class Objective(NamedTuple):
    """Log-likelihood of weights, and its gradient.

    Attributes
    ----------
    value : float
        In nats per episode.
    gradient : numpy.ndarray (feature,)
    """

    value: float
    gradient: Float[np.ndarray, " feature"]


class Inverse(NamedTuple):
    """A reward, and the policy that is soft-optimal for it.

    Attributes
    ----------
    weights : numpy.ndarray (feature,)
        In units of the demonstrator's temperature.
    policy : numpy.ndarray (state, action)
    value : float
        Log-likelihood in nats per episode, without the penalty.
    gap : float
        Largest entry of the gradient, along what is identified: how far feature expectations are
        from a match.
    """

    weights: Float[np.ndarray, " feature"]
    policy: Float[np.ndarray, "state action"]
    value: float
    gap: float


@checked
def maxent_objective(mdp: MDP, weights: ArrayLike, demonstrator: ArrayLike) -> Objective:
    r"""Return the log-likelihood that `maxent_irl` maximises, and its gradient.

    .. math:: \ell(\theta) = \theta^\top \mu_E - \sum_s p_0(s) V_\theta(s), \qquad
              \nabla \ell = \mu_E - \mu_{\pi_\theta}

    with the soft value :math:`V_\theta` and the soft-optimal policy :math:`\pi_\theta`. It is the
    expected sum :math:`\sum_t \gamma^t \log \pi_\theta(a_t \mid s_t)` for a demonstrator with
    these feature expectations, and concave.

    Parameters
    ----------
    mdp : MDP
    weights : array (feature,)
    demonstrator : array (feature,) or (state, action)
        Feature expectations, or an occupancy, as from `empirical_occupancy`.

    Returns
    -------
    Objective

    Raises
    ------
    DataError
        When shapes disagree; or as `soft_policy`.

    Examples
    --------
    >>> import numpy as np
    >>> import raters as rt
    >>> one = rt.MDP.from_arrays([[[1], [1]]], features=[[[1], [0]]], discount=0.5)
    >>> maxent_objective(one, [0.0], [1.5])  # two steps on average, three quarters the first
    Objective(value=-1.3863, gradient=array([0.5]))
    """
    theta = as_weights(mdp, weights)
    return _objective(mdp, theta, as_features(mdp, demonstrator))[0]


@checked
def maxent_irl(
    mdp: MDP,
    demonstrator: ArrayLike,
    *,
    penalty: float = 0.0,
    tolerance: float = 1e-8,
    steps: int = 100,
    initial: ArrayLike | None = None,
) -> Inverse:
    r"""Find the reward for which a demonstrator is soft-optimal (Ziebart et al. 2008; 2010).

    It maximises the log-likelihood of `maxent_objective` less :math:`\kappa \lVert \theta
    \rVert^2 / 2`, by Newton's method. The policy is :math:`\pi(a \mid s) \propto
    \exp Q_\theta(s, a)` with the soft value, and at the optimum its feature expectations are those
    of the demonstrator.

    Parameters
    ----------
    mdp : MDP
    demonstrator : array (feature,) or (state, action)
        Feature expectations, or an occupancy, as from `empirical_occupancy`. Episodes that are cut
        before they end lack a part.
    penalty : float
        :math:`\kappa`, at least 0: the precision of a normal prior, per episode.
    tolerance : float
        Of the feature expectations, relative to the largest.
    steps : int
        At most.
    initial : array (feature,), optional
        Weights to begin with; 0 unless given, or where that has no soft-optimal policy, weights
        with which each step costs more than its entropy, if there are some.

    Returns
    -------
    Inverse

    Raises
    ------
    DataError, SettingError
        When shapes disagree, or a setting is not possible; or as `soft_policy` of the initial
        weights.

    Warns
    -----
    ConvergenceWarning
        When feature expectations do not match, or weights grow without end, as for a demonstrator
        who never errs. Give a penalty.

    Notes
    -----
    Rewards are identified only up to what leaves all policies as good as they are: of two whose
    difference is :math:`f(s) - \gamma \mathbb{E}[f(s')]` for some :math:`f` of the states, such as
    a constant where episodes do not end. Of equal ones this is the nearest to the initial weights.

    Equations 65 to 67 of Nalisnick (2024) weigh the walks of a deterministic process, without the
    probabilities of its transitions, and imply a policy in proportion to :math:`Q`; here it is the
    causal form, with the policy in proportion to :math:`\exp Q`, which is right for transitions at
    random too.

    Examples
    --------
    >>> import raters as rt
    >>> from raters.imitation import feature_expectations, soft_policy
    >>> mdp = rt.MDP.grid(3, 3, features={"mud": [[0, 1, 0], [0, 1, 0], [0, 0, 0]],
    ...                                   "goal": [[0, 0, 1], [0, 0, 0], [0, 0, 0]]})
    >>> shown = feature_expectations(mdp, soft_policy(mdp, [-2.0, 1.0]).policy)
    >>> print(maxent_irl(mdp, shown).weights.round(3))
    [-2.  1.]
    """
    positive("tolerance", tolerance)
    whole("steps", steps)
    if not is_number(penalty) or penalty < 0:
        raise SettingError(parameter="penalty", value=penalty, expected="it must be at least 0")
    target = as_features(mdp, demonstrator)
    near = tolerance * max(float(np.abs(target).max()), 1e-300)
    theta, at, plan = _begun(mdp, initial, target)
    curvature = _curvature(mdp, plan)
    first, axes = np.linalg.eigh(curvature)
    axes = axes[:, first > _FLAT * first[-1]]
    slope = axes.T @ (at.gradient - penalty * theta)
    least = 0.0
    for _ in range(steps):
        within = axes.T @ curvature @ axes + penalty * np.eye(axes.shape[1])
        size, own = np.linalg.eigh(within)
        least = float(size.min(initial=np.inf))
        if np.abs(axes @ slope).max() <= near or least <= 0:
            break
        step = axes @ (own @ (own.T @ slope / size))
        moved = _moved(mdp, theta, step, at, target, penalty, plan)
        if moved is None:
            break
        theta, at, plan = moved
        curvature = _curvature(mdp, plan)
        slope = axes.T @ (at.gradient - penalty * theta)
    gap = float(np.abs(axes @ slope).max())
    _warn_of(gap, near, grows=least <= _GROWN * float(first[-1]))
    return Inverse(theta, plan.policy, at.value, gap)


def _begun(
    mdp: MDP, initial: ArrayLike | None, target: Float[np.ndarray, " feature"]
) -> tuple[Float[np.ndarray, " feature"], Objective, Plan]:
    """Weights that have a soft-optimal policy, where the objective begins."""
    if initial is not None:
        theta = as_weights(mdp, initial, "initial")
        return theta, *_objective(mdp, theta, target)
    theta = np.zeros(mdp.num_features)
    try:
        return theta, *_objective(mdp, theta, target)
    except DataError as error:
        steps = mdp.features[mdp.allowed & ~mdp.ends[:, None]]
        cost = np.full(len(steps), -1 - np.log(mdp.num_actions))
        theta = np.linalg.lstsq(steps, cost)[0]
        try:
            return theta, *_objective(mdp, theta, target)
        except DataError:
            raise DataError(
                parameter="initial",
                problem="is left out, and weights of 0 have no soft-optimal policy, as entropy"
                " grows for ever in circles that cost nothing",
                expected="give weights with which each step costs more than its entropy, or"
                " discount rewards",
                instead="dataclasses.replace(mdp, discount=0.95)",
            ) from error


def _moved(
    mdp: MDP,
    theta: Float[np.ndarray, " feature"],
    step: Float[np.ndarray, " feature"],
    at: Objective,
    target: Float[np.ndarray, " feature"],
    penalty: float,
    plan: Plan,
) -> tuple[Float[np.ndarray, " feature"], Objective, Plan] | None:
    """Weights further along a step with a larger objective, halved until it is."""
    before = at.value - penalty / 2 * theta @ theta
    expected = step @ (at.gradient - penalty * theta)
    values = plan.state_values if mdp.discount < 1 else None
    for halving in range(_HALVINGS):
        share = 0.5**halving
        other = theta + share * step
        try:
            found, after = _objective(mdp, other, target, values)
        except DataError:  # beyond where soft values are finite
            continue
        gain = found.value - penalty / 2 * other @ other - before
        if gain >= 1e-4 * share * expected - _ROUNDING * max(1.0, abs(before)):
            return other, found, after
    return None


def _objective(
    mdp: MDP,
    theta: Float[np.ndarray, " feature"],
    target: Float[np.ndarray, " feature"],
    values: Float[np.ndarray, " state"] | None = None,
) -> tuple[Objective, Plan]:
    """Log-likelihood, gradient and policy, from values that may be near."""
    plan = soft_plan(mdp, mdp.features @ theta, values=values, tolerance=1e-12)
    start = np.asarray(mdp.start)
    visits = occupancy_of(mdp, plan.policy, start)
    value = float(theta @ target - start @ plan.state_values)
    return Objective(value, target - np.einsum("sa,saf->f", visits, mdp.features)), plan


def _curvature(mdp: MDP, plan: Plan) -> Float[np.ndarray, "feature feature"]:
    """Negative Hessian of the log-likelihood: the second moments of the gradients of the
    log-probabilities of the actions on the way."""
    mean = np.einsum("sa,saf->sf", plan.policy, mdp.features)
    of_states = np.linalg.solve(walk(mdp, plan.policy), mean)
    of_actions = mdp.features + mdp.discount * mdp.transition @ of_states
    visits = occupancy_of(mdp, plan.policy, np.asarray(mdp.start))
    slopes = np.sqrt(visits)[..., None] * (of_actions - of_states[:, None])
    flat = slopes.reshape(-1, mdp.num_features)
    return np.asarray(flat.T @ flat)


def _warn_of(gap: float, near: float, *, grows: bool) -> None:
    if gap > near or grows:
        why = (
            "weights grow without end, as for a demonstrator who never errs"
            if grows
            else "no policy may have these features, or steps were too few"
        )
        warnings.warn(
            f"feature expectations differ by {gap:.3g} from the demonstrator's: {why}; give a"
            " penalty, such as penalty=0.01",
            ConvergenceWarning,
            skip_file_prefixes=PACKAGE,
            stacklevel=2,
        )

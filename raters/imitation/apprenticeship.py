"""Apprenticeship: policies as good as a demonstrator for each reward linear in the features."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.optimize import linprog, nnls
from scipy.sparse import csr_array, hstack

from raters.alignment.checks import warn_unconverged
from raters.errors import refuse_data
from raters.errors.validation import checked, whole
from raters.imitation._checks import as_features, features_of
from raters.imitation.cloning import clone
from raters.imitation.planning import optimal_policy
from raters.imitation.values import uniform_policy, visits_of
from raters.judgements import MDP

# Distance from the least possible one at which to stop, relative to the demonstrator's features.
_NEAR = 1e-6


class Apprentice(NamedTuple):
    """A policy, the weights of the reward by which it is worst off beside the demonstrator, its
    value, and a bound on how far this is from the best one."""

    policy: Float[np.ndarray, "state action"]
    weights: Float[np.ndarray, " feature"]
    value: float
    gap: float = 0.0


@checked
def feature_matching(mdp: MDP, demonstrator: ArrayLike, *, rounds: int = 500) -> Apprentice:
    r"""Find a policy with the feature expectations of a demonstrator (Abbeel and Ng 2004).

    Each round takes the reward that separates the demonstrator from the mixtures of the policies so
    far by the largest margin, :math:`\theta \propto \mu_E - \bar\mu`, and adds the policy that is
    optimal for it. Returns for a reward with weights :math:`\theta` then differ by at most
    :math:`\lVert \theta \rVert_1 \lVert \mu_E - \mu_\pi \rVert_\infty` (not by a squared distance,
    as in equation 63 of Nalisnick (2024)).

    Parameters
    ----------
    mdp : MDP
    demonstrator : array (feature,) or (state, action)
        Feature expectations, or an `occupancy`.
    rounds : int
        At most.

    Returns
    -------
    Apprentice
        ``policy``; ``weights``, of norm 1, which mean nothing where the value is near 0; ``value``,
        the Euclidean distance between the feature expectations; and ``gap``.

    Warns
    -----
    ConvergenceWarning
        When the distance may be larger than the least possible.

    Examples
    --------
    >>> import raters as rt
    >>> from raters.imitation import occupancy, optimal_policy
    >>> mdp = rt.MDP.grid(2, 2, start=(0, 0))
    >>> shown = occupancy(mdp, optimal_policy(mdp, [0, 0, 0, 1], temperature=1.0).policy)
    >>> learned = feature_matching(mdp, shown)
    >>> learned.value < 1e-4
    True
    """
    whole("rounds", rounds)
    target = as_features(mdp, demonstrator)
    near = _NEAR * max(float(np.linalg.norm(target)), 1e-300)
    visits = [visits_of(mdp, uniform_policy(mdp))]
    corners = [features_of(mdp, visits[0])]
    mixed, apart, least = np.ones(1), target - corners[0], 0.0
    for _ in range(rounds):
        distance = float(np.linalg.norm(apart))
        if distance - least <= near:
            break
        direction = apart / distance
        visits.append(visits_of(mdp, optimal_policy(mdp, direction).policy))
        corners.append(features_of(mdp, visits[-1]))
        # No mixture of all policies is nearer than this margin.
        least = max(least, float(direction @ (target - corners[-1])))
        # The mixture of corners nearest to the target (Lawson and Hanson 1974, ch. 23).
        away = np.array(corners) - target
        scaled = away.T / max(float(np.abs(away).max()), 1e-300)
        rows = np.vstack([scaled, np.ones(len(away))])
        weights, _ = nnls(rows, np.eye(len(rows))[-1])
        mixed = weights / weights.sum()
        apart = target - mixed @ np.array(corners)
    value = float(np.linalg.norm(apart))
    if value - least > near:
        warn_unconverged(f"it may be {value - least:.3g} above the least; take more rounds")
    policy = clone(mdp, np.tensordot(mixed, np.array(visits), 1), pseudo_counts=0.0)
    return Apprentice(policy, apart / max(value, 1e-300), value, max(value - least, 0.0))


@checked
def syed_schapire(mdp: MDP, demonstrator: ArrayLike) -> Apprentice:
    r"""Find the policy that gains most on a demonstrator by the worst reward (Syed and Schapire
    2007), exactly, by a linear programme over occupancies (Syed, Bowling and Schapire 2008).

    .. math:: \max_\pi \min_{\theta \ge 0,\, \sum_i \theta_i = 1} \theta^\top (\mu_\pi - \mu_E)
              = \max_{v, \rho \ge 0} v \quad \text{with} \quad \sum_{s, a} \rho \phi_i - \mu_{E, i}
              \ge v, \quad \sum_a \rho(s', a) - \gamma \sum_{s, a} P(s' \mid s, a) \rho(s, a) =
              p_0(s')

    (equation 64 of Nalisnick (2024); for weights of both signs, as there, add the negative of each
    feature).

    Parameters
    ----------
    mdp : MDP
    demonstrator : array (feature,) or (state, action)
        Feature expectations, or an `occupancy`.

    Returns
    -------
    Apprentice
        ``policy``; ``weights`` of the worst reward; and ``value``, the least that the policy gains,
        by any reward: at least 0 if some policy has the demonstrator's feature expectations.

    Examples
    --------
    >>> import raters as rt
    >>> mdp = rt.MDP.grid(1, 2, slip=0, start=(0, 0), discount=0.5)
    >>> game = syed_schapire(mdp, [1.5, 0.5])
    >>> print(round(game.value, 3), game.weights)
    0.0 [0.5 0.5]
    """
    target = as_features(mdp, demonstrator)
    # Variables are the value, last, and the occupancies of what is allowed; where nothing is
    # discounted not those of ends.
    inner = ~mdp.ends if mdp.discount == 1 else np.ones(mdp.num_states, bool)
    state, action = np.nonzero(mdp.allowed & inner[:, None])
    flow = np.eye(mdp.num_states)[state].T - mdp.discount * mdp.transition[state, action].T
    equal = hstack([csr_array(flow[inner]), csr_array((int(inner.sum()), 1))])
    gain = mdp.features[state, action].T
    at_most = hstack([csr_array(-gain), csr_array(np.ones((len(target), 1)))])
    objective = np.append(np.zeros(len(state)), -1.0)
    bounds = [(0, None)] * len(state) + [(None, None)]
    solved = linprog(objective, at_most, -target, equal, mdp.start[inner], bounds, method="highs")
    if solved.x is None:
        problem = f"gives a programme without a solution ({solved.message.strip()})"
        expected = "let walks end where nothing is discounted, or discount"
        refuse_data("demonstrator", problem=problem, expected=expected)
    visits = np.zeros(mdp.allowed.shape)
    visits[state, action] = np.maximum(solved.x[:-1], 0.0)
    policy = clone(mdp, visits, pseudo_counts=0.0)
    return Apprentice(policy, -solved.ineqlin.marginals, float(solved.x[-1]))

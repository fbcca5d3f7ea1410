"""Apprenticeship: policies that do as well as a demonstrator for each reward that is linear in the
features."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.optimize import linprog, nnls
from scipy.sparse import csr_array, hstack

from raters.alignment import hedge
from raters.errors import PACKAGE, ConvergenceWarning, DataError
from raters.errors.validation import boolean, checked, positive, whole
from raters.imitation._checks import as_features, as_policy, as_weights
from raters.imitation.cloning import Bound, clone
from raters.imitation.occupancies import occupancy_of
from raters.imitation.planning import optimal_policy
from raters.imitation.values import uniform_policy
from raters.judgements import MDP


class Apprentice(NamedTuple):
    """A policy, and the reward by which it is worst off beside the demonstrator.

    Attributes
    ----------
    policy : numpy.ndarray (state, action)
        One that does what a mixture of optimal policies does.
    weights : numpy.ndarray (feature,)
        Of the features in that reward.
    value : float
        Of `feature_matching` the Euclidean distance between the feature expectations; of
        `syed_schapire` the least that the policy gains on the demonstrator, by any reward allowed.
    gap : float
        Bound on how far `value` is from the best one.
    """

    policy: Float[np.ndarray, "state action"]
    weights: Float[np.ndarray, " feature"]
    value: float
    gap: float


@checked
def return_gap(mdp: MDP, weights: ArrayLike, policy: ArrayLike, demonstrator: ArrayLike) -> Bound:
    r"""Return how far two returns are apart, and the bound of it by the feature expectations.

    .. math:: |J_E - J_\pi| = |\theta^\top (\mu_E - \mu_\pi)| \le \lVert \theta \rVert_1 \,
              \lVert \mu_E - \mu_\pi \rVert_\infty

    Parameters
    ----------
    mdp : MDP
    weights : array (feature,)
        The reward's :math:`\theta`.
    policy : array (state, action)
    demonstrator : array (feature,) or (state, action)
        Feature expectations, or an occupancy, as from `empirical_occupancy`.

    Returns
    -------
    Bound

    Raises
    ------
    DataError
        When an argument has another shape or is no policy.

    Notes
    -----
    With :math:`\lVert \theta \rVert_1 \le 1` the right side is at most the Euclidean distance.
    Equation 63 of Nalisnick (2024) has its square, which is no bound where the distance is below 1.

    Examples
    --------
    >>> import raters as rt
    >>> one = rt.MDP.from_arrays([[[1], [1]]], features=[[[1, 0], [0, 1]]], discount=0.5)
    >>> return_gap(one, [0.5, -0.5], [[0.5, 0.5]], [1.05, 0.95])
    Bound(gap=0.0500, bound=0.0500)
    """
    theta = as_weights(mdp, weights)
    apart = as_features(mdp, demonstrator) - _expected(mdp, as_policy(mdp, policy))
    return Bound(float(abs(theta @ apart)), float(np.abs(theta).sum() * np.abs(apart).max()))


@checked
def feature_matching(
    mdp: MDP, demonstrator: ArrayLike, *, tolerance: float = 1e-6, rounds: int = 500
) -> Apprentice:
    r"""Find a policy with the feature expectations of a demonstrator (Abbeel and Ng 2004).

    Each round takes the reward that separates the demonstrator from the mixtures of the policies so
    far by the largest margin, :math:`\theta \propto \mu_E - \bar\mu`, and adds the policy that is
    optimal for it.

    Parameters
    ----------
    mdp : MDP
    demonstrator : array (feature,) or (state, action)
        Feature expectations, or an occupancy, as from `empirical_occupancy`.
    tolerance : float
        Distance, or excess over the least possible one, at which to stop, relative to the norm of
        the demonstrator's feature expectations.
    rounds : int
        At most.

    Returns
    -------
    Apprentice
        With weights of norm 1, which mean nothing where the value is near 0.

    Raises
    ------
    DataError, SettingError
        When an argument has another shape, or a setting is not above 0.

    Warns
    -----
    ConvergenceWarning
        When the distance may be larger than the least possible by more than that.

    Examples
    --------
    >>> import raters as rt
    >>> from raters.imitation import feature_expectations, soft_policy
    >>> mdp = rt.MDP.grid(2, 2, start=(0, 0))
    >>> shown = feature_expectations(mdp, soft_policy(mdp, [0, 0, 0, 1]).policy)
    >>> learned = feature_matching(mdp, shown)
    >>> learned.value < 1e-4
    True
    """
    positive("tolerance", tolerance)
    whole("rounds", rounds)
    target = as_features(mdp, demonstrator)
    near = tolerance * max(float(np.linalg.norm(target)), 1e-300)
    visits = [occupancy_of(mdp, uniform_policy(mdp), np.asarray(mdp.start))]
    corners = [_features(mdp, visits[0])]
    mixed, apart, least = np.ones(1), target - corners[0], 0.0
    for _ in range(rounds):
        distance = float(np.linalg.norm(apart))
        if distance - least <= near:
            break
        direction = apart / distance
        visits.append(_best(mdp, direction))
        corners.append(_features(mdp, visits[-1]))
        # No mixture of all policies is nearer than this margin.
        least = max(least, float(direction @ (target - corners[-1])))
        mixed = _nearest(np.array(corners) - target)
        apart = target - mixed @ np.array(corners)
    value = float(np.linalg.norm(apart))
    _warn_of(value - least, near, "rounds")
    policy = clone(mdp, np.tensordot(mixed, np.array(visits), 1), pseudo_counts=0.0)
    return Apprentice(policy, apart / max(value, 1e-300), value, max(value - least, 0.0))


@checked
def syed_schapire(
    mdp: MDP,
    demonstrator: ArrayLike,
    *,
    signed: bool = False,
    tolerance: float = 1e-2,
    rounds: int = 200,
    steps: int = 4000,
) -> Apprentice:
    r"""Find the policy that gains most on a demonstrator by the worst reward (Syed and Schapire
    2007).

    .. math:: \max_\pi \min_\theta \; \theta^\top (\mu_\pi - \mu_E),

    a zero-sum game (equation 64 of Nalisnick (2024)). The worst reward is learned by the
    optimistic Hedge of `raters.alignment.hedge`, on the policies so far, and the policy that is
    optimal for it is added.

    Parameters
    ----------
    mdp : MDP
    demonstrator : array (feature,) or (state, action)
        Feature expectations, or an occupancy, as from `empirical_occupancy`.
    signed : bool
        Whether weights may be negative: :math:`\lVert \theta \rVert_1 \le 1`, as in that
        equation, in place of weights that are at least 0 and add up to 1.
    tolerance : float
        Gap at which to stop, relative to the largest feature expectation.
    rounds : int
        Policies that are added at most.
    steps : int
        Of Hedge in a round at most; it begins with 250.

    Returns
    -------
    Apprentice
        The value is at least 0, but for the gap, if some policy has the demonstrator's feature
        expectations, and above 0 where all features can be had more of; with signed weights it is
        0 then.

    Raises
    ------
    DataError, SettingError
        When an argument has another shape, or a setting is not possible.

    Warns
    -----
    ConvergenceWarning
        When the gap stays above the tolerance.

    See Also
    --------
    syed_schapire_programme : The same, exactly.

    Examples
    --------
    >>> import raters as rt
    >>> from raters.imitation import feature_expectations
    >>> mdp = rt.MDP.grid(2, 2, start=(0, 0), features={"right": [[0, 1], [0, 1]]})
    >>> shown = feature_expectations(mdp, uniform_policy(mdp))
    >>> learned, exact = syed_schapire(mdp, shown), syed_schapire_programme(mdp, shown)
    >>> abs(learned.value - exact.value) <= learned.gap + 1e-9
    True
    """
    positive("tolerance", tolerance)
    whole("rounds", rounds)
    boolean("signed", signed)
    target = _sides(as_features(mdp, demonstrator), signed)
    visits = [occupancy_of(mdp, uniform_policy(mdp), np.asarray(mdp.start))]
    corners = [_sides(_features(mdp, visits[0]), signed)]
    mixed, gap, length = np.ones(1), np.inf, min(steps, 250)
    for _ in range(rounds):
        game = np.array(corners).T - target[:, None]  # (feature, policy): what a policy gains
        if len(corners) > 1:
            mixed = _played(-game, length)
        theta = _played(game.T, length)
        value = float((game @ mixed).min())
        near = tolerance * max(float(np.abs(target).max()), float(np.abs(game).max()), 1e-300)
        best = _best(mdp, _merged(theta, signed))
        corner = _sides(_features(mdp, best), signed)
        # No policy gains more than the best one does by this reward.
        gap = float(theta @ (corner - target)) - value
        if gap <= near:
            break
        if (np.abs(np.array(corners) - corner).max(1) > near / 10).all():
            visits.append(best)
            corners.append(corner)
            mixed = np.append(mixed, 0.0)
        elif length < steps:  # The policy is there already, so what is left is Hedge's own gap.
            length = min(2 * length, steps)
        else:
            break
    _warn_of(gap, near, "steps of Hedge")
    policy = clone(mdp, np.tensordot(mixed[: len(visits)], np.array(visits), 1), pseudo_counts=0.0)
    return Apprentice(policy, _merged(theta, signed), value, max(gap, 0.0))


@checked
def syed_schapire_programme(
    mdp: MDP, demonstrator: ArrayLike, *, signed: bool = False
) -> Apprentice:
    r"""Solve the game of `syed_schapire` as a linear programme over occupancies (Syed, Bowling and
    Schapire 2008).

    .. math:: \max_{v, \rho \ge 0} v \quad \text{with} \quad \sum_{s, a} \rho \phi_i - \mu_{E, i}
              \ge v, \quad \sum_a \rho(s', a) - \gamma \sum_{s, a} P(s' \mid s, a) \rho(s, a) =
              p_0(s')

    Parameters
    ----------
    mdp, demonstrator, signed
        As of `syed_schapire`.

    Returns
    -------
    Apprentice
        With a gap of 0.

    Raises
    ------
    DataError
        When an argument has another shape, or a policy that never ends is best where nothing is
        discounted.

    Examples
    --------
    >>> import raters as rt
    >>> mdp = rt.MDP.grid(1, 2, slip=0, start=(0, 0), discount=0.5)
    >>> game = syed_schapire_programme(mdp, [1.5, 0.5])
    >>> print(round(game.value, 3), game.weights)
    0.0 [0.5 0.5]
    """
    boolean("signed", signed)
    target = _sides(as_features(mdp, demonstrator), signed)
    # Variables are the value, last, and the occupancies of what is allowed; where nothing is
    # discounted not those of ends.
    inner = ~mdp.ends if mdp.discount == 1 else np.ones(mdp.num_states, bool)
    state, action = np.nonzero(mdp.allowed & inner[:, None])
    flow = np.eye(mdp.num_states)[state].T - mdp.discount * mdp.transition[state, action].T
    equal = hstack([csr_array(flow[inner]), csr_array((int(inner.sum()), 1))])
    gain = _sides(mdp.features[state, action], signed).T
    at_most = hstack([csr_array(-gain), csr_array(np.ones((len(target), 1)))])
    objective = np.append(np.zeros(len(state)), -1.0)
    bounds = [(0, None)] * len(state) + [(None, None)]
    solved = linprog(objective, at_most, -target, equal, mdp.start[inner], bounds, method="highs")
    if solved.x is None:
        raise DataError(
            parameter="demonstrator",
            problem=f"gives a programme without a solution ({solved.message.strip()})",
            expected="with a discount of 1 walks for ever must not have more and more features",
            instead="dataclasses.replace(mdp, discount=0.95)",
        )
    visits = np.zeros((mdp.num_states, mdp.num_actions))
    visits[state, action] = np.maximum(solved.x[:-1], 0.0)
    policy = clone(mdp, visits, pseudo_counts=0.0)
    weights = _merged(-solved.ineqlin.marginals, signed)
    return Apprentice(policy, weights, float(solved.x[-1]), 0.0)


# ---------------------------------------------------------------- parts


def _best(mdp: MDP, weights: Float[np.ndarray, " feature"]) -> Float[np.ndarray, "state action"]:
    """Occupancy of the policy that is optimal for a reward."""
    return occupancy_of(mdp, optimal_policy(mdp, weights).policy, np.asarray(mdp.start))


def _features(mdp: MDP, visits: Float[np.ndarray, "state action"]) -> Float[np.ndarray, " feature"]:
    return np.asarray(np.einsum("sa,saf->f", visits, mdp.features))


def _expected(mdp: MDP, policy: Float[np.ndarray, "state action"]) -> Float[np.ndarray, " feature"]:
    return _features(mdp, occupancy_of(mdp, policy, np.asarray(mdp.start)))


def _sides(features: Float[np.ndarray, "*batch feature"], signed: bool) -> np.ndarray:
    """Features, and their opposites where weights may be negative."""
    return np.concatenate([features, -features], -1) if signed else features


def _merged(weights: Float[np.ndarray, " side"], signed: bool) -> Float[np.ndarray, " feature"]:
    return weights if not signed else np.subtract(*np.split(weights, 2))


def _played(regret: Float[np.ndarray, "row column"], steps: int) -> Float[np.ndarray, " column"]:
    """Weights of the columns with the least worst regret, by Hedge; the caller has its own gap."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return hedge(regret, steps=steps).weights


def _nearest(corners: Float[np.ndarray, "corner feature"]) -> Float[np.ndarray, " corner"]:
    """Weights of the mixture of corners that is nearest to the origin, by non-negative least
    squares (Lawson and Hanson 1974, chapter 23)."""
    scale = max(float(np.abs(corners).max()), 1e-300)
    rows = np.vstack([corners.T / scale, np.ones(len(corners))])
    weights, _ = nnls(rows, np.eye(len(rows))[-1])
    return np.asarray(weights / weights.sum())


def _warn_of(excess: float, near: float, what: str) -> None:
    if excess > near:
        warnings.warn(
            f"the value may be {excess:.3g} from the best one; take more {what}, or a larger"
            " tolerance",
            ConvergenceWarning,
            skip_file_prefixes=PACKAGE,
            stacklevel=2,
        )

"""Policies whose walks have the distribution of a demonstrator's."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.special import rel_entr, softmax

from raters.errors import DataError
from raters.errors.validation import checked, whole
from raters.imitation._checks import as_policy, as_start, finite_numbers
from raters.imitation.occupancies import occupancy, occupancy_of
from raters.imitation.values import backed_up, uniform_policy, values_of
from raters.judgements import MDP


class Match(NamedTuple):
    """A policy that is near a demonstrator's.

    Attributes
    ----------
    policy : numpy.ndarray (state, action)
    divergence : float
        Between the distributions of walks, in nats, as of `trajectory_divergence`.
    weights : numpy.ndarray (parameter,), optional
        Of the design; None without one.
    """

    policy: Float[np.ndarray, "state action"]
    divergence: float
    weights: Float[np.ndarray, " parameter"] | None = None


@checked
def trajectory_divergence(
    mdp: MDP,
    policy: ArrayLike,
    other: ArrayLike,
    *,
    start: ArrayLike | None = None,
    steps: int | None = None,
) -> float:
    r"""Return the Kullback–Leibler divergence between the walks of two policies.

    .. math:: \operatorname{KL}[p_\pi(\tau) \parallel p_{\pi'}(\tau)] = \sum_s \rho^\pi(s)
              \operatorname{KL}[\pi(\cdot \mid s) \parallel \pi'(\cdot \mid s)]

    since start and transitions (equation 53 of Nalisnick (2024)) are in both and cancel. With a
    discount the length of a walk is random: after each step it goes on with probability
    :math:`\gamma`.

    Parameters
    ----------
    mdp : MDP
    policy, other : array (state, action)
        The demonstrator's and the learner's for the forward divergence (equation 54), which is that
        of cloning; the learner's and the demonstrator's for the reverse one (equation 56).
    start : int or array (state,), optional
        Code of the first state, or probabilities of it; by default those of the process.
    steps : int, optional
        Number of steps after which a walk stops at the latest; by default it may go on for ever.

    Returns
    -------
    float
        In nats; infinite if `other` never does what `policy` does.

    Raises
    ------
    DataError, SettingError
        When an argument is no policy, or as `occupancy`.

    Examples
    --------
    >>> import raters as rt
    >>> mdp = rt.MDP.grid(1, 2, discount=0.5)
    >>> right = [[0, 1, 0, 0], [0, 1, 0, 0]]
    >>> anything = [[0.25] * 4] * 2
    >>> trajectory_divergence(mdp, right, anything)  # two steps on average, of log 4 each
    2.7726
    >>> trajectory_divergence(mdp, anything, right)
    inf
    """
    own, base = as_policy(mdp, policy), as_policy(mdp, other, "other")
    visits = occupancy(mdp, own, start=start, steps=steps).sum(1)
    return _weighted(visits, rel_entr(own, base).sum(1))


@checked
def match_trajectories(
    mdp: MDP,
    demonstrator: ArrayLike,
    *,
    direction: Literal["forward", "reverse"] = "forward",
    design: ArrayLike | None = None,
    base: ArrayLike | None = None,
    restarts: int = 10,
    seed: int = 0,
) -> Match:
    r"""Find the policy of a family whose walks are nearest to a demonstrator's.

    The family is :math:`\pi_w(a \mid s) \propto \pi_0(a \mid s) \exp\{w^\top \psi(s, a)\}`. The
    forward divergence :math:`\operatorname{KL}[p_E \parallel p_\pi]` (equations 54 and 55) is
    convex in :math:`w`; a policy that is too simple covers all that is demonstrated. The reverse
    one, :math:`\operatorname{KL}[p_\pi \parallel p_E]` (equation 56), picks some of it.

    Parameters
    ----------
    mdp : MDP
    demonstrator : array (state, action)
        The policy of the demonstrator, such as from `clone`. For the reverse divergence it must do
        whatever the family does now and then.
    direction : {"forward", "reverse"}
    design : array (state, action, parameter), optional
        :math:`\psi`. By default the family is all policies.
    base : array (state, action), optional
        The policy :math:`\pi_0`; by default all allowed actions alike.
    restarts : int
        Number of random starts of the reverse divergence, which has several minima.
    seed : int
        Of these.

    Returns
    -------
    Match

    Raises
    ------
    DataError, SettingError
        When shapes disagree, or the demonstrator never does what the family does.

    Notes
    -----
    The factorisation over steps of equation 55 adds a model of the states,
    :math:`q(s)`, whose best choice is the demonstrator's own distribution of states,
    ``occupancy(mdp, demonstrator, normalised=True).sum(1)``, whatever the policy; so the policy is
    that of cloning. (Equation 54 lacks :math:`1 / N`, which does not move the minimum.)

    Examples
    --------
    >>> import numpy as np
    >>> import raters as rt
    >>> # To pass an obstacle on the left or on the right, with a policy of one bump.
    >>> road = rt.MDP.from_arrays(np.ones((1, 5, 1)), discount=0.5)
    >>> twice = np.array([[0.48, 0.01, 0.02, 0.01, 0.48]])
    >>> place = np.arange(-2, 3)
    >>> bump = softmax(-place[None] ** 2 / 2.0, 1)
    >>> family = {"design": place[None, :, None], "base": bump}
    >>> print(match_trajectories(road, twice, **family).policy.round(2))
    [[0.05 0.24 0.4  0.24 0.05]]
    >>> print(match_trajectories(road, twice, **family, direction="reverse").policy.argmax())
    4
    """
    whole("restarts", restarts)
    good = as_policy(mdp, demonstrator, "demonstrator")
    start = as_start(mdp, None)
    if design is None and base is None:
        return Match(good, 0.0)
    offset = uniform_policy(mdp) if base is None else as_policy(mdp, base, "base")
    psi = finite_numbers("design", np.zeros((*good.shape, 1)) if design is None else design)
    if psi.ndim != 3 or psi.shape[:2] != good.shape:
        raise DataError(
            parameter="design",
            problem=f"has shape {psi.shape}",
            expected=f"it must be (state, action, parameter), here {(*good.shape, 'parameter')}",
        )
    family = _Family(mdp, good, offset, psi, start)
    if direction == "forward":
        _check_support(mdp, good, offset, "base", "the demonstrator")
        objective, starts = _forward, np.zeros((1, psi.shape[-1]))
    else:
        _check_support(mdp, offset, good, "demonstrator", "the family")
        objective, rng = _reverse, np.random.default_rng(seed)
        starts = rng.normal(size=(restarts, psi.shape[-1])) / max(np.abs(psi).max(), 1e-300)
    options = {"gtol": 1e-9, "ftol": 1e-14, "maxiter": 5000}
    tries = [
        minimize(objective, at, (family,), jac=True, method="L-BFGS-B", options=options)
        for at in starts
    ]
    best = min(tries, key=lambda one: float(one.fun))
    return Match(_policy(best.x, family), float(best.fun), best.x)


class _Family(NamedTuple):
    """Policies of a family, and the demonstrator."""

    mdp: MDP
    demonstrator: Float[np.ndarray, "state action"]
    base: Float[np.ndarray, "state action"]
    design: Float[np.ndarray, "state action parameter"]
    start: Float[np.ndarray, " state"]


def _policy(
    weights: Float[np.ndarray, " parameter"], family: _Family
) -> Float[np.ndarray, "state action"]:
    """The policy with these weights."""
    with np.errstate(divide="ignore"):
        return np.asarray(softmax(np.log(family.base) + family.design @ weights, 1))


def _slope(
    policy: Float[np.ndarray, "state action"],
    gain: Float[np.ndarray, "state action"],
    family: _Family,
) -> Float[np.ndarray, " parameter"]:
    """Sum of what an action gains, times the gradient of its log-probability."""
    mean = np.einsum("sa,sap->sp", policy, family.design)
    return np.asarray(np.einsum("sa,sap->p", gain, family.design - mean[:, None]))


def _forward(
    weights: Float[np.ndarray, " parameter"], family: _Family
) -> tuple[float, Float[np.ndarray, " parameter"]]:
    """Divergence from the demonstrator to the policy, and its gradient."""
    visits = occupancy_of(family.mdp, family.demonstrator, family.start)
    policy = _policy(weights, family)
    value = _weighted(visits.sum(1), rel_entr(family.demonstrator, policy).sum(1))
    return value, -_slope(policy, visits, family)


def _reverse(
    weights: Float[np.ndarray, " parameter"], family: _Family
) -> tuple[float, Float[np.ndarray, " parameter"]]:
    """Divergence from the policy to the demonstrator, and its gradient: that of a policy whose cost
    is the log-ratio, since the mean of the gradient of a log-probability is 0."""
    policy = _policy(weights, family)
    done = policy > 0
    cost = np.log(np.where(done, policy, 1)) - np.log(np.where(done, family.demonstrator, 1))
    values = values_of(family.mdp, cost, policy)
    to_come = backed_up(family.mdp, cost, values)
    visits = occupancy_of(family.mdp, policy, family.start)
    return float(family.start @ values), _slope(policy, visits * to_come, family)


def _check_support(
    mdp: MDP,
    policy: Float[np.ndarray, "state action"],
    other: Float[np.ndarray, "state action"],
    name: str,
    who: str,
) -> None:
    """Raise where a policy does what the other never does, so that the divergence is infinite."""
    if (wrong := (policy > 0) & (other == 0)).any():
        state, action = np.argwhere(wrong)[0]
        raise DataError(
            parameter=name,
            problem=f"never does {mdp.actions[action]!r} in state {mdp.states[state]!r}, which"
            f" {who} does",
            expected="the divergence is infinite; smooth it first",
            instead="clone(mdp, counts, pseudo_counts=1.0)",
        )


def _weighted(weights: Float[np.ndarray, " state"], values: Float[np.ndarray, " state"]) -> float:
    """Weighted sum, in which a weight of 0 leaves out what is infinite."""
    return float(np.sum(weights[weights > 0] * values[weights > 0]))

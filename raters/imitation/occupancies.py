"""Occupancies of policies and demonstrators, and their feature expectations."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from raters.errors.validation import boolean, checked, whole
from raters.imitation._checks import as_policy, as_start
from raters.imitation.values import walk
from raters.judgements import MDP


@checked
def occupancy(
    mdp: MDP,
    policy: ArrayLike,
    *,
    start: ArrayLike | None = None,
    steps: int | None = None,
    normalised: bool = False,
) -> Float[np.ndarray, "state action"]:
    r"""Return the expected discounted number of times that each action is done in each state.

    .. math:: \rho^\pi(s, a) = \sum_{t \ge 0} \gamma^t P(s_t = s, a_t = a)

    Parameters
    ----------
    mdp : MDP
    policy : array (state, action)
    start : int or array (state,), optional
        Code of the first state, or probabilities of it; by default those of the process.
    steps : int, optional
        Number of steps; by default a walk goes on for ever, or to an end where nothing is
        discounted, whose own occupancy is then 0.
    normalised : bool
        Whether to divide by the sum, which is :math:`1 / (1 - \gamma)` where walks go on for ever,
        for the discounted distribution :math:`d^\pi(s) \pi(a \mid s)`.

    Returns
    -------
    numpy.ndarray (state, action)

    Raises
    ------
    DataError, SettingError
        When `policy` is none, `start` is no state and no probabilities, or a walk never ends where
        nothing is discounted.

    Examples
    --------
    >>> import raters as rt
    >>> mdp = rt.MDP.grid(1, 3, slip=0, ends=[(0, 2)], discount=0.5)
    >>> right = [[0, 1, 0, 0]] * 3 + [[1, 0, 0, 0]]
    >>> print(occupancy(mdp, right, start=0).sum(1))
    [1.   0.5  0.25 0.25]
    """
    boolean("normalised", normalised)
    probs, first = as_policy(mdp, policy), as_start(mdp, start)
    table = (
        occupancy_of(mdp, probs, first) if steps is None else _of_steps(mdp, probs, first, steps)
    )
    return np.asarray(table / table.sum()) if normalised and table.any() else table


@checked
def feature_expectations(
    mdp: MDP, policy: ArrayLike, *, start: ArrayLike | None = None
) -> Float[np.ndarray, " feature"]:
    r"""Return the expected discounted sums of the features under a policy,
    :math:`\mu^\pi = \sum_{s, a} \rho^\pi(s, a) \phi(s, a)`.

    The expected return for a reward with weights :math:`\theta` is :math:`\theta^\top \mu^\pi`.

    Parameters
    ----------
    mdp, policy, start
        As of `occupancy`.

    Returns
    -------
    numpy.ndarray (feature,)

    Raises
    ------
    DataError
        As `occupancy`.

    Examples
    --------
    >>> import raters as rt
    >>> mdp = rt.MDP.grid(1, 3, slip=0, ends=[(0, 2)], discount=0.5)
    >>> print(feature_expectations(mdp, [[0, 1, 0, 0]] * 3 + [[1, 0, 0, 0]], start=0))
    [1.   0.5  0.25]
    """
    table = occupancy(mdp, policy, start=start)
    return np.asarray(np.einsum("sa,saf->f", table, mdp.features))


def occupancy_of(
    mdp: MDP, policy: Float[np.ndarray, "state action"], start: Float[np.ndarray, " state"]
) -> Float[np.ndarray, "state action"]:
    """Occupancy of a walk that goes on for ever, or to an end where nothing is discounted."""
    visits = np.linalg.solve(walk(mdp, policy).T, start)
    if mdp.discount == 1:
        visits = np.where(mdp.ends, 0.0, visits)
    # Rounding leaves states that are not reached at tiny numbers of either sign.
    return np.asarray(np.maximum(visits, 0.0)[:, None] * policy)


def _of_steps(
    mdp: MDP,
    policy: Float[np.ndarray, "state action"],
    start: Float[np.ndarray, " state"],
    steps: int,
) -> Float[np.ndarray, "state action"]:
    """Occupancy of so many steps."""
    whole("steps", steps)
    after = np.einsum("sa,sat->st", policy, mdp.transition)
    visits, here = np.zeros(mdp.num_states), start
    for step in range(steps):
        visits = visits + mdp.discount**step * here
        here = here @ after
    if mdp.discount == 1:
        visits = np.where(mdp.ends, 0.0, visits)
    return np.asarray(visits[:, None] * policy)

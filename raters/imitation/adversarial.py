"""Generative adversarial imitation on tables: a classifier that tells a policy from a demonstrator,
and a policy that is not told from them."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.special import rel_entr

from raters.errors import PACKAGE, ConvergenceWarning, DataError
from raters.errors.validation import checked, positive, whole
from raters.imitation._checks import as_table
from raters.imitation.occupancies import occupancy_of
from raters.imitation.values import backed_up, uniform_policy, values_of
from raters.judgements import MDP

# Halvings of a step after which none is found.
_HALVINGS = 30


class Adversarial(NamedTuple):
    """A policy that is hardly told from a demonstrator.

    Attributes
    ----------
    policy : numpy.ndarray (state, action)
    logits : numpy.ndarray (state, action)
        Of the best classifier, for the demonstrator; NaN where neither is.
    divergence : float
        Jensen–Shannon divergence between the normalised occupancies, in nats, from 0 to log 2.
    history : numpy.ndarray (step,)
        It before each step.
    """

    policy: Float[np.ndarray, "state action"]
    logits: Float[np.ndarray, "state action"]
    divergence: float
    history: Float[np.ndarray, " step"]


@checked
def discriminator(
    mdp: MDP, demonstrator: ArrayLike, learner: ArrayLike
) -> Float[np.ndarray, "state action"]:
    r"""Return the log-odds of the classifier that tells two occupancies best.

    .. math:: \log \frac{h(s, a)}{1 - h(s, a)} = \log \frac{\rho_E(s, a)}{\rho_\pi(s, a)}

    with normalised occupancies (equation 60 of Nalisnick (2024), for equation 58).

    Parameters
    ----------
    mdp : MDP
    demonstrator, learner : array (state, action)
        Occupancies, as from `occupancy` or `empirical_occupancy`, or counts.

    Returns
    -------
    numpy.ndarray (state, action)
        Infinite where only one of the two is, NaN where neither is.

    Raises
    ------
    DataError
        When a table has another shape, no positive entry, or one that is negative or not allowed.

    Examples
    --------
    >>> import raters as rt
    >>> one = rt.MDP.from_arrays([[[1], [1], [1]]])
    >>> print(discriminator(one, [[3, 1, 0]], [[1, 1, 2]]).round(2))
    [[ 1.1  0.  -inf]]
    """
    good = _distribution(mdp, "demonstrator", demonstrator)
    own = _distribution(mdp, "learner", learner)
    return _logits(good, own)


@checked
def gail(
    mdp: MDP, demonstrator: ArrayLike, *, steps: int = 500, tolerance: float = 1e-6
) -> Adversarial:
    r"""Imitate an occupancy by generative adversarial imitation (Ho and Ermon 2016), on tables.

    It solves equation 59 of Nalisnick (2024),

    .. math:: \max_\pi \min_h \; \mathbb{E}_{\rho_E}[-\log h(s, a)] + \mathbb{E}_{\rho_\pi}
              [-\log(1 - h(s, a))],

    which is the policy with the least Jensen–Shannon divergence between the occupancies. Each step
    takes the best classifier, and moves the policy by :math:`\pi(a \mid s) \leftarrow \pi(a \mid s)
    \exp\{\eta A(s, a)\}`, normalised, with the advantage for the reward :math:`-\log(1 - h)`:
    the soft policy with a price of leaving the last one. A step that does not lower the divergence
    is halved.

    Parameters
    ----------
    mdp : MDP
    demonstrator : array (state, action)
        Occupancy, as from `occupancy` or `empirical_occupancy`, or counts.
    steps : int
        At most.
    tolerance : float
        Divergence, in nats, or decrease of it in ten steps, at which to stop.

    Returns
    -------
    Adversarial

    Raises
    ------
    DataError, SettingError
        When `demonstrator` has another shape, no positive entry, or one that is negative or not
        allowed, or a setting is not above 0.

    Warns
    -----
    ConvergenceWarning
        When the divergence still falls after the last step.

    Examples
    --------
    >>> import raters as rt
    >>> from raters.imitation import optimal_policy, occupancy
    >>> mdp = rt.MDP.grid(2, 2, start=(0, 0))
    >>> best = optimal_policy(mdp, [0, 0, 0, 1]).policy
    >>> learned = gail(mdp, occupancy(mdp, best))
    >>> learned.divergence < 1e-4
    True
    """
    whole("steps", steps)
    positive("tolerance", tolerance)
    good = _distribution(mdp, "demonstrator", demonstrator)
    policy, step_size = uniform_policy(mdp), 1.0
    own = _occupied(mdp, policy)
    history = [_divergence(good, own)]
    while len(history) <= steps and history[-1] > tolerance:
        found = _better(mdp, good, policy, own, history[-1], step_size)
        if found is None:
            break
        policy, own, step_size = found
        history.append(_divergence(good, own))
        if len(history) > 10 and history[-11] - history[-1] < tolerance / 10:
            break
    else:
        if history[-1] > tolerance:
            warnings.warn(
                f"the divergence from the demonstrator is {history[-1]:.3g} nats after {steps}"
                " steps, and still falls; take more steps",
                ConvergenceWarning,
                skip_file_prefixes=PACKAGE,
                stacklevel=2,
            )
    return Adversarial(policy, _logits(good, own), history[-1], np.array(history))


def _better(
    mdp: MDP,
    good: Float[np.ndarray, "state action"],
    policy: Float[np.ndarray, "state action"],
    own: Float[np.ndarray, "state action"],
    divergence: float,
    step_size: float,
) -> tuple[Float[np.ndarray, "state action"], Float[np.ndarray, "state action"], float] | None:
    """A policy of less divergence, its occupancy, and the size of the next step."""
    # -log(1 - h) = log(1 + rho_E / rho_pi), the same where the learner has never been.
    ratio = good / np.maximum(own, 1e-300)
    reward = np.log1p(ratio)
    # Less its mean: where nothing is discounted a longer walk has a larger share of what is divided
    # by the sum of the occupancy. Elsewhere that sum is the same for all policies.
    reward = reward - (own * reward).sum()
    gain = backed_up(mdp, reward, values_of(mdp, reward, policy))
    for _ in range(_HALVINGS):
        with np.errstate(divide="ignore"):
            logits = np.log(policy) + step_size * gain
        moved = np.exp(logits - logits.max(1, keepdims=True))
        moved /= moved.sum(1, keepdims=True)
        after = _occupied(mdp, moved)
        if _divergence(good, after) < divergence:
            return moved, after, 2 * step_size
        step_size /= 2
    return None


def _occupied(
    mdp: MDP, policy: Float[np.ndarray, "state action"]
) -> Float[np.ndarray, "state action"]:
    """Normalised occupancy of a policy."""
    visits = occupancy_of(mdp, policy, np.asarray(mdp.start))
    return np.asarray(visits / visits.sum())


def _distribution(mdp: MDP, name: str, value: ArrayLike) -> Float[np.ndarray, "state action"]:
    """An occupancy as probabilities."""
    table = as_table(mdp, name, value)
    if not table.any():
        raise DataError(
            parameter=name,
            problem="is all 0",
            expected="it must have a positive entry",
            instead=f"{name}=occupancy(mdp, policy)",
        )
    return np.asarray(table / table.sum())


def _logits(
    good: Float[np.ndarray, "state action"], own: Float[np.ndarray, "state action"]
) -> Float[np.ndarray, "state action"]:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(good) - np.log(own))


def _divergence(
    good: Float[np.ndarray, "state action"], own: Float[np.ndarray, "state action"]
) -> float:
    """Jensen–Shannon divergence in nats."""
    middle = (good + own) / 2
    return float(max((rel_entr(good, middle) + rel_entr(own, middle)).sum() / 2, 0.0))

"""Generative adversarial imitation on tables: a policy no classifier tells from a demonstrator."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.special import rel_entr, softmax

from raters.alignment.checks import warn_unconverged
from raters.errors import refuse_data
from raters.errors.validation import checked, positive, whole
from raters.imitation._checks import as_table
from raters.imitation.values import PerAction, backed_up, uniform_policy, values_of, visits_of
from raters.judgements import MDP

# Halvings of a step after which none is found.
_HALVINGS = 30


class Adversarial(NamedTuple):
    """A policy that is hardly told from a demonstrator, and the best classifier of the two."""

    policy: Float[np.ndarray, "state action"]
    logits: Float[np.ndarray, "state action"]
    divergence: float
    history: Float[np.ndarray, " step"]


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
        An `occupancy`, or counts.
    steps : int
        At most.
    tolerance : float
        Divergence, in nats, or decrease of it in ten steps, at which to stop.

    Returns
    -------
    Adversarial
        ``policy``; ``logits`` of the best classifier, for the demonstrator (NaN where neither is);
        ``divergence``, the Jensen–Shannon divergence between the normalised occupancies, in nats,
        from 0 to log 2; and its ``history``, before each step.

    Warns
    -----
    ConvergenceWarning
        When the divergence still falls after the last step.

    Examples
    --------
    >>> import raters as rt
    >>> from raters.imitation import occupancy, optimal_policy
    >>> mdp = rt.MDP.grid(2, 2, start=(0, 0))
    >>> best = optimal_policy(mdp, [0, 0, 0, 1]).policy
    >>> learned = gail(mdp, occupancy(mdp, best))
    >>> learned.divergence < 1e-4
    True
    """
    whole("steps", steps)
    positive("tolerance", tolerance)
    good = as_table(mdp, "demonstrator", demonstrator)
    if not good.any():
        refuse_data("demonstrator", problem="is all 0", expected="it must have a positive entry")
    good = good / good.sum()
    policy, size = uniform_policy(mdp), 1.0
    learned = _occupied(mdp, policy)
    history = [_divergence(good, learned)]
    while len(history) <= steps and history[-1] > tolerance:
        # -log(1 - h) = log(1 + rho_E / rho_pi), the same where the learner has never been.
        reward = np.log1p(good / np.maximum(learned, 1e-300))
        # Less its mean: where nothing is discounted a longer walk has a larger share of what is
        # divided by the sum of the occupancy. Elsewhere that sum is the same for all policies.
        reward = reward - (learned * reward).sum()
        gain = backed_up(mdp, reward, values_of(mdp, reward, policy))
        for _ in range(_HALVINGS):
            with np.errstate(divide="ignore"):
                moved = softmax(np.log(policy) + size * gain, axis=1)
            after = _occupied(mdp, moved)
            if _divergence(good, after) < history[-1]:
                break
            size /= 2
        else:
            break
        policy, learned, size = moved, after, 2 * size
        history.append(_divergence(good, learned))
        if len(history) > 10 and history[-11] - history[-1] < tolerance / 10:
            break
    else:
        if history[-1] > tolerance:
            warn_unconverged(f"the divergence, {history[-1]:.3g} nats, falls; take more steps")
    with np.errstate(divide="ignore", invalid="ignore"):
        logits = np.log(good) - np.log(learned)
    return Adversarial(policy, logits, history[-1], np.array(history))


def _occupied(mdp: MDP, policy: PerAction) -> PerAction:
    """Normalised occupancy of a policy."""
    visits = visits_of(mdp, policy)
    return np.asarray(visits / visits.sum())


def _divergence(good: PerAction, learned: PerAction) -> float:
    """Jensen–Shannon divergence in nats."""
    middle = (good + learned) / 2
    return float(max((rel_entr(good, middle) + rel_entr(learned, middle)).sum() / 2, 0.0))

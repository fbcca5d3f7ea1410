"""Walks weighed by their return: the optimum with a price of leaving a reference policy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from raters.errors.validation import checked, positive, whole
from raters.imitation._checks import as_policy, as_reward
from raters.imitation.values import uniform_policy
from raters.judgements import MDP


class Tilted(NamedTuple):
    """Policies of the steps of a walk, and what they are worth.

    Attributes
    ----------
    policies : numpy.ndarray (step, state, action)
    values : numpy.ndarray (1 + step, state)
        Return that is still to come less the price of leaving the reference, before each step; 0
        after the last.
    log_partition : float
        :math:`\\log \\mathcal{Z} = \\log \\mathbb{E}_{p_0}[e^{R(\\tau) / \\beta}]`, over the walks
        of the reference.
    """

    policies: Float[np.ndarray, "step state action"]
    values: Float[np.ndarray, "step state"]
    log_partition: float


@checked
def kl_regularised(
    mdp: MDP,
    reward: ArrayLike,
    *,
    steps: int,
    reference: ArrayLike | None = None,
    beta: float = 1.0,
) -> Tilted:
    r"""Find the policies that maximise the return less a price of leaving a reference policy.

    .. math:: \max_\pi \mathbb{E}_\pi \Big[ R(\tau) - \beta \sum_t \log
              \frac{\pi_t(a_t \mid s_t)}{\pi_0(a_t \mid s_t)} \Big], \qquad
              R(\tau) = \sum_{t < T} \gamma^t r(s_t, a_t)

    Where transitions are deterministic, the walks of the optimum are those of the reference, tilted
    by their return:

    .. math:: p^*(\tau) = \frac{1}{\mathcal{Z}} e^{R(\tau) / \beta} \, p(s_0) \prod_t
              \pi_0(a_t \mid s_t), \qquad
              \mathcal{Z} = \sum_\tau e^{R(\tau) / \beta} \, p(s_0) \prod_t \pi_0(a_t \mid s_t)

    for each first state, and :math:`z = e^{V / \beta}` is a linear recursion backwards,
    :math:`z_t(s) = \sum_a \pi_0(a \mid s) e^{\gamma^t r(s, a) / \beta} z_{t + 1}(s')`. Where
    they are at random, no policy has that distribution, which would change them, and
    :math:`\beta \log \mathcal{Z}` is above the value of the optimum.

    Parameters
    ----------
    mdp : MDP
    reward : array (state, action) or (feature,)
        A table, or weights of the features.
    steps : int
        Length :math:`T` of a walk.
    reference : array (state, action), optional
        The policy :math:`\pi_0`; by default all allowed actions alike.
    beta : float
        Price :math:`\beta` of leaving it, in units of reward per nat.

    Returns
    -------
    Tilted

    Raises
    ------
    DataError, SettingError
        When shapes disagree, `reference` is no policy, or a setting is not possible.

    Notes
    -----
    The display before equation 70 of Nalisnick (2024) has the sum of :math:`\pi_0` over a walk
    in :math:`\mathcal{Z}` where its product is needed, a policy of one step in proportion to the
    exponential of the return of a whole walk, and no :math:`\beta`.

    Examples
    --------
    >>> import raters as rt
    >>> mdp = rt.MDP.grid(1, 2, slip=0, start=(0, 0), discount=1.0, ends=[(0, 1)])
    >>> tilted = kl_regularised(mdp, [0, 1], steps=2, beta=0.5)
    >>> print(tilted.policies[0, 0].round(2), round(tilted.log_partition, 3))
    [0.1  0.71 0.1  0.1 ] 0.954
    """
    whole("steps", steps)
    positive("beta", beta)
    table = as_reward(mdp, reward)
    base = uniform_policy(mdp) if reference is None else as_policy(mdp, reference, "reference")
    with np.errstate(divide="ignore"):
        log_base, log_start = np.log(base), np.log(mdp.start)
        log_next = np.log(mdp.transition)
    values, policies = [np.zeros(mdp.num_states)], []
    desirability = np.zeros(mdp.num_states)
    for step in reversed(range(steps)):
        gain = mdp.discount**step * table
        logits = log_base + (gain + mdp.transition @ values[-1]) / beta
        total = logsumexp(logits, 1)
        policies.append(np.exp(logits - total[:, None]))
        values.append(beta * total)
        after = logsumexp(log_next + desirability, 2)
        desirability = logsumexp(log_base + gain / beta + after, 1)
    log_partition = float(logsumexp(log_start + desirability))
    return Tilted(np.stack(policies[::-1]), np.stack(values[::-1]), log_partition)

"""One policy for all types: least worst regret over all policies, exactly and for posterior
draws."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from raters.alignment._checks import (
    as_policy,
    as_reward,
    check_shape,
    has_draws,
    prompt_probs,
    uniform,
    with_prompts,
)
from raters.alignment._programme import least_worst, warn_of_gap
from raters.errors import DataError
from raters.errors.validation import checked


class FairPolicy(NamedTuple):
    """Policy for all types, and the worst regret under it.

    Attributes
    ----------
    policy : numpy.ndarray (prompt, response) or (response,)
        Probabilities.
    type_weights : numpy.ndarray (type,) or (draw, type)
        The types that the policy is to serve: the worst mixture of types for any policy, for each
        draw where the rewards are draws.
    value : float
        Worst regret under `policy`, in units of reward; of draws its mean over them.
    gap : float
        Bound on how far `value` is above the least of any policy, in the same units.
    history : numpy.ndarray (step, 2), optional
        From `policy_gradient`: `value` and `gap` after each step.
    parameters : optional
        From `policy_gradient` with a class of policies: parameters of `policy`.
    """

    policy: Float[np.ndarray, "*prompt response"]
    type_weights: Float[np.ndarray, "*draw type"]
    value: float
    gap: float = 0.0
    history: Float[np.ndarray, "step 2"] | None = None
    parameters: Any = None


class Costs(NamedTuple):
    """Regret of each type for each response to each prompt, per largest entry."""

    table: Float[np.ndarray, "draw type prompt response"]
    probs: Float[np.ndarray, " prompt"]
    scale: float
    one_prompt: bool
    one_draw: bool

    def regrets(
        self, policy: Float[np.ndarray, "prompt response"]
    ) -> Float[np.ndarray, "draw type"]:
        """Regret of each type under a policy, per `scale`."""
        return np.asarray(np.einsum("skxy,xy,x->sk", self.table, policy, self.probs))

    def least(self, type_weights: Float[np.ndarray, "draw type"]) -> float:
        """Least mean regret that any policy has for given weights of the types, per `scale`."""
        cost = np.einsum("skxy,sk->xy", self.table, type_weights) / len(self.table)
        return float(self.probs @ cost.min(-1))

    def fair(
        self,
        policy: Float[np.ndarray, "prompt response"],
        type_weights: Float[np.ndarray, "draw type"],
        **more: Any,
    ) -> FairPolicy:
        """Policy with its value and its gap, in the shape of the rewards."""
        value = float(self.regrets(policy).max(-1).mean())
        gap = max(value - self.least(type_weights), 0.0)
        return FairPolicy(
            policy[0] if self.one_prompt else policy,
            type_weights[0] if self.one_draw else type_weights,
            self.scale * value,
            self.scale * gap,
            **more,
        )


@checked
def minmax_policy(
    reward: ArrayLike, own: ArrayLike | None = None, prompt_weights: ArrayLike | None = None
) -> FairPolicy:
    r"""Find the policy with the smallest worst regret of all policies, exactly.

    .. math:: \min_\pi \max_z L_z(\pi), \qquad
              L_z(\pi) = R_z(\pi_z) - R_z(\pi), \qquad
              R_z(\pi) = \mathbb{E}_x \sum_y \pi(y \mid x) \, r_z(x, y)

    (Chidambaram et al. 2024, section 5.2, "optimize a new policy"). It solves the linear programme
    for the least :math:`v` with :math:`L_z(\pi) \le v` for each type. An ensemble of the types'
    policies, as of `linear_programme`, is a policy too, so its worst regret is never smaller.

    Parameters
    ----------
    reward : array (type, prompt, response) or (type, response)
        Finite; from `type_rewards` or `implicit_reward`.
    own : array (type, prompt, response) or (type, response), optional
        Policies :math:`\pi_z` with which the types compare; the best response to each prompt unless
        given.
    prompt_weights : array (prompt,), optional
        Relative frequency of each prompt; all alike unless given.

    Returns
    -------
    FairPolicy

    Raises
    ------
    DataError
        When `reward` is not finite, `own` are not policies, or shapes do not match.

    Warns
    -----
    ConvergenceWarning
        When regrets differ so much in size that rounding leaves a gap of more than a thousandth of
        the worst regret.

    Notes
    -----
    The paper prints :math:`L_z(\pi) = R_z(\pi) - R_z(\pi_z)`, which is the regret with its sign
    reversed: its smallest maximum would serve every type as badly as possible. Without the type
    :math:`z_0` of no preferences the worst regret against `own` may be negative, when one policy
    serves all types better than their own do.

    Examples
    --------
    >>> fair = minmax_policy([[4, 0, 3], [0, 4, 3]])
    >>> print(fair.policy, round(fair.value, 2))
    [0. 0. 1.] 1.0
    """
    return _solved(costs_of(_one_draw(reward), own, prompt_weights, one_draw=True))


@checked
def bayes_policy(
    reward_draws: ArrayLike, own: ArrayLike | None = None, prompt_weights: ArrayLike | None = None
) -> FairPolicy:
    r"""Find the policy with the smallest expected worst regret under posterior draws of the
    rewards.

    .. math:: \min_\pi \frac{1}{S} \sum_s \max_z L_z(\pi; r^{(s)})

    The loss of a decision is the worst regret, so that this is the Bayes decision. The worst
    expected regret, :math:`\max_z \frac{1}{S} \sum_s L_z(\pi; r^{(s)})`, is smaller for each
    policy: it lets the bad luck of one type in some draws pay for its good luck in others, hides
    that somebody is badly served in every draw, and changes with the numbering of the types from
    draw to draw, which means nothing.

    Parameters
    ----------
    reward_draws : array (draw, type, prompt, response) or (draw, type, response)
        Posterior draws, such as 200 from `type_rewards`. The time grows faster than their number;
        for many draws and prompts see `policy_gradient`.
    own : array (type, prompt, response) or (type, response), optional
        Policies with which the types compare, in every draw; the best response of the draw unless
        given.
    prompt_weights : array (prompt,), optional
        Relative frequency of each prompt; all alike unless given.

    Returns
    -------
    FairPolicy
        With `type_weights` for each draw.

    Raises
    ------
    DataError
        When `reward_draws` is not finite, `own` are not policies, or shapes do not match.

    Warns
    -----
    ConvergenceWarning
        As of `minmax_policy`.

    Examples
    --------
    >>> import numpy as np
    >>> reward = np.random.default_rng(0).normal([[4, 0, 3], [0, 4, 3]], 1, size=(100, 2, 3))
    >>> fair = bayes_policy(reward)
    >>> print(fair.policy.round(2), round(fair.value, 2))
    [0.03 0.   0.97] 1.8
    """
    return _solved(costs_of(_draws("reward_draws", reward_draws), own, prompt_weights))


@checked
def regret_draws(
    policy: ArrayLike,
    reward_draws: ArrayLike,
    prompt_weights: ArrayLike | None = None,
    own: ArrayLike | None = None,
) -> Float[np.ndarray, "draw type"]:
    r"""Return the regret of each type under a policy, for each posterior draw of the rewards.

    Parameters
    ----------
    policy : array (prompt, response) or (response,)
        Probabilities.
    reward_draws : array (draw, type, prompt, response) or (draw, type, response)
        Posterior draws, from `type_rewards`.
    prompt_weights : array (prompt,), optional
        Relative frequency of each prompt; all alike unless given.
    own : array (type, prompt, response) or (type, response), optional
        Policies with which the types compare; the best response of each draw unless given, as in
        `regrets`.

    Returns
    -------
    numpy.ndarray (draw, type)
        In units of reward. ``.max(-1)`` are draws of the worst regret.

    Raises
    ------
    DataError
        When `policy` is not a policy, `reward_draws` is not finite, or shapes do not match.

    Examples
    --------
    >>> draws = [[[4, 0, 0], [0, 8, 4]], [[2, 0, 0], [0, 4, 4]]]
    >>> print(regret_draws([0.5, 0.25, 0.25], draws))
    [[2. 5.]
     [1. 2.]]
    """
    costs = costs_of(_draws("reward_draws", reward_draws), own, prompt_weights)
    probs = as_policy("policy", policy, uniform(costs.table.shape[-1:]))
    check_shape("policy", probs, costs.table.shape[2:])
    if not costs.one_prompt:
        probs = np.broadcast_to(probs, costs.table.shape[2:])
    return costs.scale * costs.regrets(probs.reshape(costs.table.shape[2:]))


# ---------------------------------------------------------------- the programme


def costs_of(
    reward: Float[np.ndarray, "draw type *prompt response"],
    own: ArrayLike | None,
    prompt_weights: ArrayLike | None,
    *,
    one_draw: bool = False,
) -> Costs:
    """Regrets of the types by response, from their rewards."""
    one_prompt = reward.ndim == 3
    value = reward[:, :, None] if one_prompt else reward
    if own is None:
        best = value.max(-1, keepdims=True)
    else:
        shape = reward.shape[1:]
        given = as_policy("own", own, uniform(shape))
        policies = given[:, None] if given.ndim == 2 else given
        if policies.shape != value.shape[1:]:
            of_one = given.shape in (shape[1:], shape[-1:])
            raise DataError(
                parameter="own",
                problem=f"has shape {given.shape}",
                expected=f"it must be {shape}, as the rewards",
                instead=f"own=np.broadcast_to(own, {shape}) for one policy" if of_one else None,
            )
        best = np.sum(value * policies, -1, keepdims=True)
    table = best - value
    scale = float(np.abs(table).max()) or 1.0
    probs = prompt_probs(prompt_weights, value.shape[2])
    return Costs(table / scale, probs, scale, one_prompt, one_draw)


def _one_draw(reward: ArrayLike) -> Float[np.ndarray, "1 type *prompt response"]:
    value = as_reward("reward", reward)
    if has_draws(reward) or value.ndim == 4:
        raise DataError(
            parameter="reward",
            problem="has an axis of draws",
            expected="it must be of one draw, or of their mean; all of them are for bayes_policy",
            instead="rt.alignment.bayes_policy(reward)",
        )
    with_prompts("reward", value)
    return value[None]


def _draws(name: str, reward: ArrayLike) -> Float[np.ndarray, "draw type *prompt response"]:
    """Draws of rewards, checked."""
    value = as_reward(name, reward, "np.array([[[0.5, 0.5]]])")
    if value.ndim not in (3, 4):
        raise DataError(
            parameter=name,
            problem=f"has shape {value.shape}",
            expected="it must be (draw, type, prompt, response) or (draw, type, response)",
            instead=f"{name}=[{name}] for one draw" if value.ndim == 2 else None,
        )
    return value


def _solved(costs: Costs) -> FairPolicy:
    """The policy of the linear programme."""
    fair = costs.fair(*least_worst(costs.table, costs.probs))
    warn_of_gap(fair.value / costs.scale, fair.gap / costs.scale, costs.scale)
    return fair

"""The policy for all types whose worst regret is least, exactly, and for posterior draws."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.optimize import linprog

from raters.alignment.checks import as_reward, refuse_shape, warn_unconverged
from raters.errors.validation import checked

# Costs above this many times what a type may lose are cut: beside them the solver takes the others
# for rounding, and responses with such costs are given more rarely than one in as many times.
_MOST = 1e6
# Gap that is warned of: per worst regret, unless it is rounding of the largest.
_WIDE, _ROUNDING = 1e-3, 1e-12


Table = Float[np.ndarray, "draw type prompt response"]
Responses = Float[np.ndarray, "prompt response"]
Types = Float[np.ndarray, "draw type"]


def least_worst(table: Table) -> tuple[Responses, Types]:
    """Solve the linear programme of the least mean worst regret."""
    draws, types, prompts, responses = table.shape
    probs = np.full(prompts, 1 / prompts)
    # The least that each type can lose, and how much less it is than that of the worst off.
    best = table.min(-1, keepdims=True)
    floor = best[..., 0] @ probs
    slack = floor.max(-1, keepdims=True) - floor
    costs = probs[:, None] * (table - best)
    # A policy of one response to each prompt bounds what is lost beyond that, and gives the unit.
    over = costs - probs[:, None] * slack[:, :, None, None]
    safe = over.max(1).mean(0).argmin(-1)
    worst = over[:, :, np.arange(prompts), safe].sum(-1).max(-1)
    unit = max(np.maximum(worst, 0).mean(), np.finfo(float).tiny)
    # Each row is in units of what its type may lose, so that all are of like sizes.
    size = slack + unit
    most = _MOST * size[:, :, None, None]
    # The variables are the policy, and the worst regret of each draw beyond the largest floor.
    objective = np.append(np.zeros(prompts * responses), np.full(draws, 1 / draws))
    rows = np.minimum(costs, most) / size[:, :, None, None]
    of_draw = sparse.kron(sparse.eye_array(draws), np.ones((types, 1)))
    of_worst = sparse.diags_array(-unit / size.ravel()) @ of_draw
    excess = sparse.hstack([sparse.csr_array(rows.reshape(draws * types, -1)), of_worst], "csr")
    of_prompt = sparse.kron(sparse.eye_array(prompts), np.ones((1, responses)))
    total = sparse.hstack([of_prompt, sparse.csr_array((prompts, draws))], "csr")
    upper = (slack / size).ravel()
    result = linprog(objective, excess, upper, total, np.ones(prompts), (0, None), "highs")
    policy = np.maximum(result.x[: prompts * responses].reshape(prompts, responses), 0)
    # Given as much more rarely, what was cut costs no more than in the programme.
    policy *= (most / np.maximum(costs, most)).min((0, 1))
    dual = np.maximum(-result.ineqlin.marginals.reshape(draws, types), 0) * (unit / size)
    # The rest of the weight of a draw is of the type with the largest floor, the bound of 0.
    dual[np.arange(draws), slack.argmin(-1)] += np.maximum(1 / draws - dual.sum(-1), 0)
    return policy / policy.sum(-1, keepdims=True), dual / dual.sum(-1, keepdims=True)


def warn_of_gap(value: float, gap: float, scale: float) -> None:
    """Warn where the worst regret may be well above the least."""
    if gap > max(_WIDE * abs(value), _ROUNDING):
        bound = f"the worst regret {scale * value:.3g} may be {scale * gap:.3g} above the least"
        why = f"regrets as large as {scale:.3g} hide it in rounding"
        warn_unconverged(f"{bound}: {why}; leave out what has them, or rescale rewards")


class FairPolicy(NamedTuple):
    """Policy for all types, the types that it is to serve, its worst regret, a bound on how far
    this is above the least of any policy, and from `policy_gradient` the history of the two, and
    the parameters of the policy."""

    policy: Float[np.ndarray, "*prompt response"]
    type_weights: Float[np.ndarray, "*draw type"]
    value: float
    gap: float = 0.0
    history: Float[np.ndarray, "step 2"] | None = None
    parameters: Any = None


class Costs(NamedTuple):
    """Regret of each type for each response to each prompt, per largest entry."""

    table: Table
    scale: float
    one_prompt: bool
    one_draw: bool

    @classmethod
    def of(cls, reward: ArrayLike) -> Costs:
        """Regrets by rewards, of draws where an axis has this name or there are four."""
        value = as_reward(reward)
        of_draws = value.ndim == 4 or "draw" in getattr(reward, "dims", ())
        value = value if of_draws else value[None]
        if value.ndim not in (3, 4):
            instead = "reward=[reward] for one type" if value.ndim == 2 else None
            expected = "it must be (type, prompt, response), (type, response) or (draw, type,"
            refuse_shape("reward", value, f"{expected} prompt, response)", instead)
        one_prompt = value.ndim == 3
        value = value[:, :, None] if one_prompt else value
        table = value.max(-1, keepdims=True) - value
        scale = float(np.abs(table).max()) or 1.0
        return cls(table / scale, scale, one_prompt, not of_draws)

    def least(self, type_weights: Types) -> float:
        """Least mean regret that any policy has for given weights of the types, per `scale`."""
        cost = np.einsum("skxy,sk->xy", self.table, type_weights) / len(self.table)
        return float(cost.min(-1).mean())

    def fair(self, policy: Responses, type_weights: Types, **more: Any) -> FairPolicy:
        """Policy with its value and its gap, in the shape of the rewards."""
        regret = np.einsum("skxy,xy->sk", self.table, policy) / len(policy)
        value = float(regret.max(-1).mean())
        gap = max(value - self.least(type_weights), 0.0)
        policy = policy[0] if self.one_prompt else policy
        type_weights = type_weights[0] if self.one_draw else type_weights
        return FairPolicy(policy, type_weights, self.scale * value, self.scale * gap, **more)


@checked
def minmax_policy(reward: ArrayLike) -> FairPolicy:
    r"""Find the policy with the smallest worst regret of all policies, exactly.

    .. math:: \min_\pi \frac{1}{S} \sum_s \max_z L_z(\pi; r^{(s)}), \qquad
              L_z(\pi; r) = \mathbb{E}_x \Bigl[\max_y r_z(x, y) - \sum_y \pi(y \mid x) \, r_z(x, y)
              \Bigr]

    (Chidambaram et al. 2024, section 5.2, "optimize a new policy", which prints the regret with its
    sign reversed), by a linear programme. An ensemble of the types' policies, as of
    `linear_programme`, is a policy too, so its worst regret is never smaller.

    With posterior draws the loss of a decision is the worst regret, so that this is the Bayes
    decision. The worst *expected* regret is smaller for each policy: it hides that somebody is
    badly served in every draw, and changes with the numbering of the types from draw to draw.

    Parameters
    ----------
    reward : array (type, prompt, response), (type, response) or (draw, type, prompt, response)
        Finite; or the draws of `type_rewards`, such as 200, since the time grows faster than their
        number.

    Returns
    -------
    FairPolicy
        ``policy`` (prompt, response) or (response,); ``type_weights``, the worst mixture of types
        for any policy, for each draw; ``value``, the worst regret in units of reward, of draws its
        mean over them; and ``gap``.

    Warns
    -----
    ConvergenceWarning
        When regrets differ so much in size that rounding leaves a gap of more than a thousandth of
        the worst regret.

    Examples
    --------
    >>> import numpy as np
    >>> fair = minmax_policy([[4, 0, 3], [0, 4, 3]])
    >>> print(fair.policy, round(fair.value, 2))
    [0. 0. 1.] 1.0
    >>> draws = np.random.default_rng(0).normal([[[4, 0, 3]], [[0, 4, 3]]], 1, size=(100, 2, 1, 3))
    >>> print(minmax_policy(draws).policy.round(2))
    [[0.03 0.   0.97]]
    """
    costs = Costs.of(reward)
    fair = costs.fair(*least_worst(costs.table))
    warn_of_gap(fair.value / costs.scale, fair.gap / costs.scale, costs.scale)
    return fair

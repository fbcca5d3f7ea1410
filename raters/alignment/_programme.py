"""The linear programme of the least worst regret."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy import sparse
from scipy.optimize import linprog

from raters.alignment.checks import warn_unconverged

# Costs above this many times what a type may lose are cut: beside them the solver takes the others
# for rounding, and responses with such costs are given more rarely than one in as many times.
_MOST = 1e6
# Gap that is warned of: per worst regret, unless it is rounding of the largest.
_WIDE, _ROUNDING = 1e-3, 1e-12


def least_worst(
    table: Float[np.ndarray, "draw type prompt response"],
) -> tuple[Float[np.ndarray, "prompt response"], Float[np.ndarray, "draw type"]]:
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
        bound = f"{scale * value:.3g} may be above the least possible by {scale * gap:.3g}"
        why = f"since regrets as large as {scale:.3g} hide it in rounding"
        such = "leave out the types or responses that have them, or divide rewards by their range"
        warn_unconverged(f"the worst regret {bound}, {why}; {such}")

"""Sites, starts and refusals that the models of pairwise votes share."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.distributions import Votes
from raters.errors import Reason
from raters.judgements.comparisons import Comparisons
from raters.model import Values


def observe(logits: Float[Array, " comparison"], data: Comparisons) -> None:
    """Sample the observed site: votes for the first item, out of `count`."""
    votes = (
        dist.Bernoulli(logits=logits)
        if data.count is None
        else Votes(logits=logits, total_count=data.count)
    )
    numpyro.sample("outcome", votes, obs=data.wins)


def reward_scale_site(fixed: float | None) -> Any:
    """Sample the standard deviation of the rewards from LogNormal(0, 1), unless it is fixed."""
    return numpyro.sample("reward_scale", dist.LogNormal(0.0, 1.0)) if fixed is None else fixed


def win_rate_rewards(data: Comparisons) -> Float[np.ndarray, " item"]:
    """Return the centred log-odds of each item's win rate, with one win and one loss added.

    Optimisers start from these. The majority of votes decides their sign, so that they are on the
    side of the mode where the average annotator is right.
    """
    won, played = np.zeros(data.num_items), np.zeros(data.num_items)
    for piece in data.chunks(1 << 18):
        count = (
            np.ones(piece.num_comparisons)
            if piece.count is None
            else np.asarray(piece.count, np.float64)
        )
        wins = count / 2 if piece.wins is None else np.asarray(piece.wins, np.float64)
        for side, votes in ((piece.first, wins), (piece.second, count - wins)):
            won += np.bincount(np.asarray(side), votes, data.num_items)
            played += np.bincount(np.asarray(side), count, data.num_items)
    reward = np.log((won + 1) / (played - won + 1))
    return reward - reward.mean()


def why_not_ordered(data: Comparisons) -> str | None:
    """Explain why a position bias cannot be learned from these votes, or return None."""
    if data.ordered:
        return None
    return Reason(
        "position_bias=True needs to know which item was shown first, and these votes have no"
        " order of presentation; read them with Comparisons.from_frame(table, first=...,"
        " second=..., outcome=...), or write position_bias=False",
        parameter="position_bias",
        value=True,
        problem="needs to know which item was shown first, and these votes do not say",
        expected="name the columns by `first`, `second` and `outcome`, or leave it out",
    )


def standardised(
    reward: Float[np.ndarray, " item"] | Float[np.ndarray, "item type"], reward_scale: float | None
) -> Values:
    """Return start values for the reward sites, with a scale above 0."""
    start: Values = {"reward": jnp.asarray(reward)}
    if reward_scale is None:
        start["reward_scale"] = jnp.asarray(max(float(np.std(reward)), 0.1))
    return start

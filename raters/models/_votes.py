"""What the models of pairwise votes share: the observed site, and a start from the win rates."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from raters.data import Comparisons
from raters.distributions import Votes


def observe(logits, data: Comparisons) -> None:
    """The observed site: votes for the first item, out of `count`."""
    votes = dist.Bernoulli(logits=logits) if data.count is None else Votes(logits=logits, total_count=data.count)
    numpyro.sample("outcome", votes, obs=data.wins)


def reward_scale_site(fixed: float | None):
    """The standard deviation of the rewards: learned under LogNormal(0, 1), or the number given."""
    return numpyro.sample("reward_scale", dist.LogNormal(0.0, 1.0)) if fixed is None else fixed


def win_rate_rewards(data: Comparisons) -> np.ndarray:
    """Rewards to start from: the log-odds of each item's win rate with one win and one loss added, centred.

    The majority of votes decides the sign, so optimisers start on the side where the average annotator is right.
    """
    won, played = np.zeros(data.num_items), np.zeros(data.num_items)
    for piece in data.chunks(1 << 18):
        count = np.ones(piece.num_comparisons) if piece.count is None else np.asarray(piece.count, np.float64)
        wins = count / 2 if piece.wins is None else np.asarray(piece.wins, np.float64)
        for side, own in ((piece.first, wins), (piece.second, count - wins)):
            won += np.bincount(np.asarray(side), own, data.num_items)
            played += np.bincount(np.asarray(side), count, data.num_items)
    reward = np.log((won + 1) / (played - won + 1))
    return reward - reward.mean()


def why_not_ordered(data: Comparisons) -> str | None:
    """Why a position bias cannot be learned from these votes, or None."""
    if data.ordered:
        return None
    return (
        "position_bias=True needs to know which item was shown first, and these votes have no order of presentation; "
        "read them with Comparisons.from_frame(table, first=..., second=..., outcome=...), or write position_bias=False"
    )


def standardised(reward: np.ndarray, reward_scale: float | None) -> dict[str, object]:
    """Start values for the reward sites; never a scale of 0, whatever the data."""
    start: dict[str, object] = {"reward": jnp.asarray(reward)}
    if reward_scale is None:
        start["reward_scale"] = jnp.asarray(max(float(np.std(reward)), 0.1))
    return start

"""Sites, starts and refusals that the models of pairwise votes share."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.distributions.rows import votes_of
from raters.errors import Reason
from raters.judgements.comparisons import Comparisons
from raters.judgements.separation import MIXED_ORDER, order_share
from raters.model import Values


def observe(logits: Float[Array, " comparison"], data: Comparisons) -> None:
    """Sample the observed site: votes for the first item, out of `count`."""
    numpyro.sample("outcome", votes_of(logits, data.count), obs=data.wins)


def reward_scale_site(fixed: float | None) -> Any:
    """Sample the standard deviation of the rewards from LogNormal(0, 1), unless it is fixed."""
    return numpyro.sample("reward_scale", dist.LogNormal(0.0, 1.0)) if fixed is None else fixed


def competence_start(data: Comparisons, fixed: float | None) -> Values:
    """Return start values of the competences, near that of the reference annotator."""
    start: Values = {"competence": jnp.full(data.num_annotators, 0.8)}
    return start | ({"competence_spread": jnp.asarray(0.5)} if fixed is None else {})


def position_bias_site(num_annotators: int) -> Float[Array, " annotator"]:
    """Sample by how many logits each annotator favours the item shown first."""
    mean = numpyro.sample("position_bias_mean", dist.Normal(0.0, 1.0))
    spread = numpyro.sample("position_bias_spread", dist.LogNormal(jnp.log(0.5), 1.0))
    with numpyro.plate("annotator", num_annotators):
        bias: Array = numpyro.sample("position_bias", dist.Normal(mean, spread))
        return bias


def position_bias_start(data: Comparisons) -> Values:
    """Return start values of the position biases."""
    return {
        "position_bias": jnp.zeros(data.num_annotators),
        "position_bias_mean": jnp.asarray(0.0),
        "position_bias_spread": jnp.asarray(0.5),
    }


def of_one_annotator(data: Comparisons) -> tuple[str, ...]:
    """Warn of a single annotator, whose competence is confounded with the reward scale."""
    if len(set(data.annotator.tolist())) > 1:
        return ()
    return (
        "all votes are by one annotator, whose competence cannot be told from the scale of"
        " the rewards; name the column that says who voted, or fit a model without"
        " competences",
    )


def of_no_tastes(data: Comparisons) -> tuple[str, ...]:
    """Warn of a single annotator, and of annotators with one vote each."""
    votes = np.asarray(data.judgements_by("annotator"))
    if (votes > 0).sum() < 2:
        return (
            "all votes are by one annotator, whose taste cannot be told from the rewards of"
            " the crowd; name the column that says who voted, or fit rt.BTL()",
        )
    if votes.max() < 2:
        return ("no annotator voted twice, so tastes cannot be told from chance; fit rt.BTL()",)
    return ()


def win_rate_rewards(data: Comparisons) -> Float[np.ndarray, " item"]:
    """Return the centred log-odds of each item's win rate, with one win and one loss added."""
    won, played = np.zeros(data.num_items), np.zeros(data.num_items)
    for piece in data.halved().chunks(1 << 18):
        count = np.asarray(piece.weight, np.float64)
        wins = count / 2 if piece.wins is None else np.asarray(piece.wins, np.float64)
        for side, votes in ((piece.first, wins), (piece.second, count - wins)):
            won += np.bincount(np.asarray(side), votes, data.num_items)
            played += np.bincount(np.asarray(side), count, data.num_items)
    reward = np.log((won + 1) / (played - won + 1))
    return reward - reward.mean()


def why_not_ordered(model: Any, data: Comparisons) -> str | None:
    """Explain why a position bias cannot be learned from these votes, or return None."""
    if data.ordered or not model.position_bias:
        return None
    problem = "needs the order of presentation, and these votes have none"
    expected = "name the columns by `first`, `second` and `outcome`, or leave it out"
    return Reason("position_bias", True, problem, expected)


def of_one_order(model: Any, data: Comparisons) -> tuple[str, ...]:
    """Warn of pairs that were shown in one order, whose bias rewards can imitate."""
    if not model.position_bias or order_share(data) >= MIXED_ORDER:
        return ()
    return (
        "nearly all pairs were shown in one order, so that a position bias cannot be told from"
        " the rewards, and the prior divides what is chosen between them; show pairs in random"
        " order, or fit with position_bias=False",
    )


def standardised(
    reward: Float[np.ndarray, " item"] | Float[np.ndarray, "item type"], reward_scale: float | None
) -> Values:
    """Return start values for the reward sites, with a scale above 0."""
    start: Values = {"reward": jnp.asarray(reward)}
    if reward_scale is None:
        start["reward_scale"] = jnp.asarray(max(float(np.std(reward)), 0.1))
    return start

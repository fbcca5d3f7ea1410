"""Rewards by stratum, such as a category of prompts: deviations from an item's common reward."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.errors import Reason
from raters.judgements.comparisons import Comparisons
from raters.model import Shift, Spread, Symmetry, Transfer, Values


def block(model: Any) -> tuple[str, ...]:
    """Return the deviations, for the block of the rewards, where there are any."""
    return ("deviation",) if model.strata else ()


def symmetries(model: Any) -> tuple[Symmetry, ...]:
    """Return a shift of each stratum's deviations, and the transfer from those to rewards."""
    if not model.strata:
        return ()
    return (Shift("deviation", axis=1), Transfer("reward", "deviation"))


def scaled(model: Any) -> tuple[str, ...]:
    """Return the sites that are scaled with the rewards."""
    return ("deviation", "deviation_spread") if model.strata else ()


def spreads(model: Any) -> tuple[Spread, ...]:
    """Return the spread of the deviations, where there are any."""
    return (Spread("deviation", "deviation_spread"),) if model.strata else ()


def sample_gap(
    model: Any, reward: Float[Array, " item"], data: Comparisons
) -> Float[Array, " comparison"]:
    """Return the reward of the first item less that of the second, in the stratum of each row."""
    gap: Array = reward[data.first] - reward[data.second]
    if not model.strata:
        return gap
    spread = numpyro.sample("deviation_spread", dist.LogNormal(jnp.log(0.5), 1.0))
    # Items are an axis of the event: a plate has one place among the axes in all sites, and that of
    # the items is the last one in `reward`.
    shape = (len(data.strata), data.num_items)
    deviations = dist.Normal(0.0, spread).expand(shape).to_event(1)
    with numpyro.plate("stratum", len(data.strata)):
        own = numpyro.sample("deviation", deviations, infer={"event_dims": ["item"]})
    if data.stratum is None:
        return gap
    of_stratum: Array = own[data.stratum, data.first] - own[data.stratum, data.second]
    return gap + of_stratum


def start(model: Any, data: Comparisons) -> Values:
    """Return start values: the same rewards in all strata."""
    if not model.strata:
        return {}
    deviation = jnp.zeros((len(data.strata), data.num_items))
    return {"deviation": deviation, "deviation_spread": 0.5}


def why_not(model: Any, data: Comparisons) -> str | None:
    """Explain why these votes have no strata, or return None."""
    if not model.strata or (data.stratum is not None and data.strata):
        return None
    problem = "needs to know the stratum of each vote, and these votes have none"
    return Reason("strata", True, problem, "name the column of the `stratum`, or leave it out")


def data_warnings(model: Any, data: Comparisons) -> tuple[str, ...]:
    """Warn of a single stratum; `raters.fit` warns of strata that are not used."""
    if data.stratum is None or not model.strata:
        return ()
    if len(np.unique(np.asarray(data.stratum))) > 1:
        return ()
    return (
        "all votes are of one stratum, in which deviations cannot be told from the common rewards;"
        " fit with strata=False",
    )

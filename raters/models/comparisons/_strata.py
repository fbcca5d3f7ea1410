"""Rewards by stratum, such as a category of prompts: deviations of each item from its common
reward."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.errors import Reason, refuse
from raters.errors.validation import boolean, plain_positive
from raters.judgements.comparisons import Comparisons
from raters.model import Shift, Spread, Symmetry, Transfer, Values


def check_settings(model: Any) -> None:
    """Raise for settings of strata that are none."""
    boolean("strata", model.strata)
    plain_positive(model, "deviation_spread", optional=True)
    if model.deviation_spread is not None and not model.strata:
        refuse(
            "deviation_spread",
            model.deviation_spread,
            "is of no use without strata",
            "add `strata`",
            instead=f"rt.{type(model).__name__}(strata=True, deviation_spread=...)",
        )


def block(model: Any) -> tuple[str, ...]:
    """Return the deviations, for the block of the rewards, where there are any."""
    return ("deviation",) if model.strata else ()


def symmetries(model: Any) -> tuple[Symmetry, ...]:
    """Return a shift of each stratum's deviations, and the transfer from all strata's deviations of
    an item to its reward."""
    if not model.strata:
        return ()
    return (Shift("deviation", axis=1), Transfer("reward", "deviation"))


def scaled(model: Any) -> tuple[str, ...]:
    """Return the sites that are scaled with the rewards."""
    if not model.strata:
        return ()
    return ("deviation", *(() if model.deviation_spread is not None else ("deviation_spread",)))


def spreads(model: Any) -> tuple[Spread, ...]:
    """Return the spread of the deviations, where it is learned."""
    is_learned = model.strata and model.deviation_spread is None
    return (Spread("deviation", "deviation_spread"),) if is_learned else ()


def sample_gap(
    model: Any, reward: Float[Array, " item"], data: Comparisons
) -> Float[Array, " comparison"]:
    """Return the reward of the first item less that of the second, in the stratum of each row; the
    common ones where rows, as questions, have none."""
    gap: Array = reward[data.first] - reward[data.second]
    if not model.strata:
        return gap
    spread = model.deviation_spread
    if spread is None:
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
    start: Values = {"deviation": jnp.zeros((len(data.strata), data.num_items))}
    return start | ({} if model.deviation_spread is not None else {"deviation_spread": 0.5})


def why_not(model: Any, data: Comparisons) -> str | None:
    """Explain why these votes have no strata, or return None."""
    if not model.strata or (data.stratum is not None and data.strata):
        return None
    return Reason(
        "strata",
        True,
        "needs to know the stratum of each vote, and these votes have none",
        "name the column of the `stratum`, or leave it out",
    )


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

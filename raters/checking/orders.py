"""Orders of items under posterior draws, observed and replicated, and their choices in stages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int, Key

from raters.distributions import GroupedMixture
from raters.distributions.choices import NOT_OFFERED, Orders
from raters.errors import SettingError
from raters.judgements.counts import numbers_tied, standing
from raters.model import Model, Values
from raters.program import Program
from raters.program.traces import trace

Positions = Float[np.ndarray, "ranking position"]
# Utilities, and places.
Drawn = tuple[Float[Array, "ranking position"], Int[Array, "ranking position"]]
PerRanking = Float[np.ndarray, " ranking"]

# Numbers that are computed at a time.
_PIECE = 20_000_000


class Stages(NamedTuple):
    """Choices of the best of the items left, place by place, and last of the worst of the rest,
    each beside its probabilities given the choices before."""

    residual: Float[np.ndarray, "stage ranking position"]
    variance: Float[np.ndarray, "stage ranking position"]
    surprise: Float[np.ndarray, "stage ranking"]
    surprise_variance: Float[np.ndarray, "stage ranking"]

    @property
    def total(self) -> tuple[Positions, Positions]:
        """Residuals summed over choices in which an item was left, and their variance; the worst
        counts as lower."""
        return self.residual[:-1].sum(0) - self.residual[-1], self.variance.sum(0)


@dataclass(frozen=True)
class OrderDraw:
    """Orders, observed or replicated, beside the utilities of one draw."""

    place: Int[np.ndarray, "ranking position"]
    utility: Float[np.ndarray, "ranking position"]

    @cached_property
    def stages(self) -> Stages:
        """Choices place by place, and of the worst."""
        there = self.utility > NOT_OFFERED
        # Each of the items that tie is chosen in part.
        number, part = standing(self.place), 1 / numbers_tied(self.place)
        stage = np.arange(1, max(int(self.place.max(initial=0)), 1) + 1)[:, None, None]
        chosen = part * np.concatenate([self.place == stage, self.place[None] < 0])
        left = there & np.concatenate([number >= stage, self.place[None] <= 0])
        left &= chosen.any(2, keepdims=True)
        utility = np.where(np.arange(len(left))[:, None, None] < len(stage), 1, -1) * self.utility
        highest = np.where(left, utility, -np.inf).max(2, keepdims=True)
        log_weight = np.where(left, utility - np.where(np.isfinite(highest), highest, 0.0), 0.0)
        weight = np.where(left, np.exp(log_weight), 0.0)
        total = np.maximum(weight.sum(2, keepdims=True), 1e-300)
        probs, log_probs = weight / total, log_weight - np.log(total)
        mean = (probs * log_probs).sum(2)
        return Stages(
            chosen - probs,
            probs * (1 - probs),
            (chosen * log_probs).sum(2) - mean * chosen.any(2),
            (probs * log_probs**2).sum(2) - mean**2,
        )

    def surprise(self, number: PerRanking) -> tuple[PerRanking, PerRanking]:
        """Log-probability of each ranking less its expectation, by choices, and its variance."""
        return self.stages.surprise.sum(0), self.stages.surprise_variance.sum(0)


def order_draws(
    program: Program[Any], draws: Values, seed: int
) -> Iterator[tuple[OrderDraw, OrderDraw]]:
    """Observed orders, and replicated ones, one draw after the other."""
    data = program.data
    observed = np.asarray(data.place)
    num_draws = len(next(iter(draws.values())))
    keys = jax.random.split(jax.random.key(seed), num_draws)
    size = max(1, _PIECE // max(1, observed.size))
    known = jax.tree.map(jnp.asarray, data)
    for start in range(0, num_draws, size):
        part = {name: value[start : start + size] for name, value in draws.items()}
        utilities, places = _drawn(program.model, known, part, keys[start : start + size])
        for utility, place in zip(np.asarray(utilities), np.asarray(places), strict=True):
            own = utility.astype(np.float64)
            yield OrderDraw(observed, own), OrderDraw(place, own)


@partial(jax.jit, static_argnums=0)
def _drawn(
    model: Model[Any], data: Any, draws: Values, keys: Key[Array, " draw"]
) -> tuple[Float[Array, "draw ranking position"], Int[Array, "draw ranking position"]]:
    def one(part: tuple[Values, Key[Array, ""]]) -> tuple[Array, Array]:
        values, key = part
        site = trace(model, data, values)[model.observed]
        return utility_and_places(site["fn"], site["value"], key)

    return jax.lax.map(one, (draws, keys))


def utility_and_places(fn: dist.Distribution, value: Array, key: Key[Array, ""]) -> Drawn:
    """Utility of each item offered, and places drawn anew."""
    if isinstance(fn, Orders):
        return fn.utility, fn.sample(key)
    orders = getattr(fn, "component_distribution", fn)
    if not isinstance(fn, GroupedMixture) or not isinstance(orders, Orders):
        raise SettingError(
            f"checks of orders are written for PlackettLuce, and the model draws them from"
            f" {type(orders).__name__}; draw orders with rt.simulate and compare them yourself"
        )
    # Observed orders and those drawn anew are by annotators of the same types.
    class_key, place_key = jax.random.split(key)
    own = jax.random.categorical(class_key, fn.log_joint(value))[fn.group]
    row, place = jnp.arange(len(own)), orders.sample(place_key)
    return orders.utility[row, own], place[row, own]

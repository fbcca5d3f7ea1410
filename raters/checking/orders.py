"""Orders of items under posterior draws, observed and replicated, and their choices in stages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial, singledispatch
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int, Key

from raters.distributions import PlackettLuce
from raters.errors import SettingError
from raters.model import Model, Values
from raters.program import Program
from raters.program.traces import trace

# Numbers that are computed at a time.
_PIECE = 20_000_000
# Utilities below are those of positions without an item.
_NONE = -1e8


class Stages(NamedTuple):
    """Choices of the best of the items that are left, place by place, beside their probabilities.

    Attributes
    ----------
    first, residual : array, shape (ranking, position)
        1 for the item chosen less the probability of each, at the first stage, and summed over the
        stages at which the item was left.
    first_variance, variance : array, shape (ranking, position)
        Variance of both, given the choices before.
    surprise, surprise_variance : array, shape (ranking, stage)
        Log-probability of the choice less its expectation, given the choices before, and its
        variance: 0 where one item was left, or no place was to be given.
    """

    first: Float[np.ndarray, "ranking position"]
    residual: Float[np.ndarray, "ranking position"]
    first_variance: Float[np.ndarray, "ranking position"]
    variance: Float[np.ndarray, "ranking position"]
    surprise: Float[np.ndarray, "ranking stage"]
    surprise_variance: Float[np.ndarray, "ranking stage"]


@dataclass(frozen=True)
class OrderDraw:
    """Orders, observed or replicated, beside the utilities of one draw.

    Given the choices before, each stage is a choice by a softmax of the utilities, so that the
    residuals of all stages are uncorrelated under the model.

    Parameters
    ----------
    place : int array, shape (ranking, position)
        From 1; 0 for an item without a place.
    utility : array, shape (ranking, position)
        Very low where there is no item.
    """

    place: Int[np.ndarray, "ranking position"]
    utility: Float[np.ndarray, "ranking position"]

    @cached_property
    def stages(self) -> Stages:
        """Choices place by place."""
        there = self.utility > _NONE
        highest = self.utility.max(1, keepdims=True)
        weight = np.where(there, np.exp(self.utility - highest), 0.0)
        log_weight = np.where(there, self.utility - highest, 0.0)
        depth = int(self.place.max(initial=0))
        residual, variance = np.zeros((2, *self.place.shape))
        surprise = np.zeros((2, len(self.place), depth))
        firsts = residual, variance
        for stage in range(depth):
            chosen = self.place == stage + 1
            left = chosen | (self.place > stage) | (self.place == 0)
            open_weight = np.where(left & chosen.any(1, keepdims=True), weight, 0.0)
            total = np.maximum(open_weight.sum(1, keepdims=True), 1e-300)
            probs = open_weight / total
            log_probs = log_weight - np.log(total)
            residual = residual + chosen - probs
            variance = variance + probs * (1 - probs)
            mean = (probs * log_probs).sum(1)
            surprise[0, :, stage] = (chosen * log_probs).sum(1) - mean * chosen.any(1)
            surprise[1, :, stage] = (probs * log_probs**2).sum(1) - mean**2
            if stage == 0:
                firsts = residual, variance
        return Stages(firsts[0], residual, firsts[1], variance, surprise[0], surprise[1])

    def surprise(
        self, number: Float[np.ndarray, " ranking"]
    ) -> tuple[Float[np.ndarray, " ranking"], Float[np.ndarray, " ranking"]]:
        """Log-probability of each ranking less its expectation, stage by stage, and the variance of
        it.

        Parameters
        ----------
        number : array, shape (ranking,)
            Not used: each row is one ranking.

        Returns
        -------
        surprise, variance : array, shape (ranking,)
        """
        return self.stages.surprise.sum(1), self.stages.surprise_variance.sum(1)


def order_draws(
    program: Program[Any], draws: Values, seed: int
) -> Iterator[tuple[OrderDraw, OrderDraw]]:
    """Observed orders, and replicated ones, one draw after the other.

    Parameters
    ----------
    program : Program
        Of the model on judgements with one row each.
    draws : dict of str to array, shape (draw, ...)
    seed : int

    Yields
    ------
    observed, replicated : OrderDraw
    """
    data = program.data
    observed, shape = np.asarray(data.place), np.shape(data.offered)
    num_draws = len(next(iter(draws.values())))
    keys = jax.random.split(jax.random.key(seed), num_draws)
    size = max(1, _PIECE // max(1, observed.size))
    known = jax.tree.map(jnp.asarray, data)
    for start in range(0, num_draws, size):
        part = {name: value[start : start + size] for name, value in draws.items()}
        utilities, places = _drawn(program.model, known, part, keys[start : start + size])
        for utility, place in zip(np.asarray(utilities), np.asarray(places), strict=True):
            own = utility.reshape(shape).astype(np.float64)
            yield OrderDraw(observed, own), OrderDraw(place.reshape(shape), own)


@partial(jax.jit, static_argnums=0)
def _drawn(
    model: Model[Any], data: Any, draws: Values, keys: Key[Array, " draw"]
) -> tuple[Float[Array, "draw row"], Int[Array, "draw row"]]:
    def one(part: tuple[Values, Key[Array, ""]]) -> tuple[Array, Array]:
        values, key = part
        site = trace(model, data, values)[model.observed]
        return utility_and_places(site["fn"], site["value"], key)

    drawn: tuple[Array, Array] = jax.lax.map(one, (draws, keys))
    return drawn


@singledispatch
def utility_and_places(
    fn: dist.Distribution, value: Array, key: Key[Array, ""]
) -> tuple[Float[Array, " row"], Int[Array, " row"]]:
    """Utility of each item offered, and places drawn anew.

    Parameters
    ----------
    fn : numpyro distribution
        Distribution of the observed site.
    value : array, shape (row,)
        Observed places.
    key : jax.Array

    Returns
    -------
    utility : array, shape (row,)
    place : int array, shape (row,)
    """
    raise SettingError(
        f"checks of orders are written for PlackettLuce, and the model draws them from"
        f" {type(fn).__name__}; draw orders with rt.simulate and compare them yourself"
    )


@utility_and_places.register
def _(
    fn: PlackettLuce, value: Array, key: Key[Array, ""]
) -> tuple[Float[Array, " row"], Int[Array, " row"]]:
    return fn.utility, fn.sample(key)

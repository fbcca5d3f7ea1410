"""Shares of modes that are images of one another among the draws around one of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.special import logsumexp

from raters.inference import importance, modes
from raters.inference.arrays import PerDraw, Rng
from raters.inference.base import Draws
from raters.inference.modes import Images, Within
from raters.model import Model, Values
from raters.program import Program
from raters.program.densities import log_joint, log_prior

# So many draws look at all images; those below these log odds are left out.
_FIRST, _HOPELESS = 20, -25.0
# Places of draws, and orders of classes.
Some = Int[np.ndarray, " some"]
Orders = Int[np.ndarray, "order true_class"]


def weighed(program: Program[Any], draws: Draws, rng: Rng) -> Draws:
    """Draws from an approximation around one mode, with each mirrored mode in its share."""
    every = [(move, part) for move in modes.images(program) for part in range(move.num_parts)]
    for move, part in every:
        flat = {name: value.reshape(-1, *value.shape[2:]) for name, value in draws.values.items()}
        number = len(next(iter(flat.values())))
        if number < 2 or not all(map(importance.all_finite, flat.values())):
            return draws
        with jax.enable_x64(True):
            others = _Images(program, move, flat, move.within(part))
            draws = _with_images(others, np.array(move.orders, int), draws, flat, rng)
    return draws


def _with_images(others: _Images, orders: Orders, draws: Draws, flat: Values, rng: Rng) -> Draws:
    """Draws with the mirrored modes under one symmetry in their shares."""
    number = len(next(iter(flat.values())))
    likely = others.log_ratios(np.arange(min(number, _FIRST)), orders).max(1)
    orders = orders[likely > _HOPELESS]
    if not len(orders):
        return draws
    log_ratio = others.log_ratios(np.arange(number), orders)
    log_weight = importance.log_weights(draws)
    log_share = log_ratio + log_weight
    log_odds = np.append(0.0, logsumexp(log_share, axis=1) - np.log(number))
    log_total = float(logsumexp(log_odds))
    mode = rng.choice(len(log_odds), number, p=np.exp(log_odds - log_total))
    source, moves = np.arange(number), mode > 0
    if not moves.any():
        return draws
    for place in np.unique(mode[moves]):
        here, share = np.flatnonzero(mode == place), log_share[place - 1]
        source[here] = rng.choice(number, len(here), p=np.exp(share - logsumexp(share)))
    image = others.images(source, orders[np.maximum(mode - 1, 0)])
    values = {}
    for name, value in draws.values.items():
        chosen = np.expand_dims(moves, tuple(range(1, flat[name].ndim)))
        mixed = np.asarray(np.where(chosen, image[name], flat[name]))
        values[name] = mixed.reshape(np.shape(value))
    own = np.where(moves, log_ratio[mode - 1, source], 0.0)
    more = np.where(moves, log_weight[source], 0.0)
    stats = _densities(draws.stats, source, own, more - log_total)
    return draws._replace(values=values, stats=stats)


def _densities(
    stats: dict[str, Any], source: Int[np.ndarray, " draw"], own: PerDraw, more: PerDraw
) -> dict[str, Any]:
    """Log densities of the draws under the posterior and under the mixture of all modes."""
    if "log_q" not in stats:
        return stats
    shape = np.shape(stats["log_q"])
    log_p, log_q = (np.asarray(stats[name]).ravel()[source] + own for name in ("log_p", "log_q"))
    return stats | {"log_p": log_p.reshape(shape), "log_q": (log_q + more).reshape(shape)}


class _Images:
    """Images of draws, weighed by their density."""

    def __init__(self, program: Program[Any], move: Images, draws: Values, within: Within) -> None:
        self.within = within
        part = program.data if move.broken else program.data.first_unit()
        self.model, self.move, self.draws = program.model, move, draws
        self.data = jax.tree.map(jnp.asarray, part)

    def log_ratios(self, places: Some, orders: Orders) -> Float[np.ndarray, "order some"]:
        here = self._log_density({name: value[places] for name, value in self.draws.items()})
        each = (np.broadcast_to(order, (len(places), len(order))) for order in orders)
        there = [self._log_density(self.images(places, order)) for order in each]
        # A probability that is rounded to 0 or 1 has an image without density, or none itself.
        with np.errstate(invalid="ignore"):
            ratios = np.array(there) - here
        return np.where(np.isfinite(ratios), ratios, -np.inf)

    def images(self, places: Some, orders: Orders) -> Values:
        draws = {name: value[places] for name, value in self.draws.items()}
        mirrored = partial(modes.mirrored, self.move.symmetry, within=self.within)
        return jax.tree.map(np.asarray, jax.vmap(mirrored)(draws, orders))

    def _log_density(self, draws: Values) -> PerDraw:
        each = _log_density_of_draws(self.model, self.move.broken, self.data, draws)
        return np.asarray(each, np.float64)


@partial(jax.jit, static_argnums=(0, 1))
def _log_density_of_draws(
    model: Model[Any], broken: bool, data: Any, draws: Values
) -> Float[Array, " draw"]:
    density = log_joint if broken else log_prior
    return jax.lax.map(lambda values: density(model, data, values), draws)

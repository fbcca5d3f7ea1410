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
from raters.inference.arrays import PerDraw, Rng, Sites
from raters.inference.base import Draws, jax_keys
from raters.inference.modes import Images, Within
from raters.inference.polya_gamma import label_switching, latent_classes
from raters.model import Exchange, Model, Values
from raters.program import Program
from raters.program.densities import log_joint, log_prior

# Draws at a time, of many rows no more than so many rows of all of them, but two. The first of them
# look at all images; those below these log odds are left out.
_PIECE, _ROWS, _HOPELESS = 20, 2_000_000, -25.0


def weighed(program: Program[Any], draws: Draws, rng: Rng) -> Draws:
    """Draws from an approximation around one mode, with each mirrored mode in its share."""
    every = [(move, part) for move in modes.images(program) for part in range(move.num_parts)]
    for move, part in every:
        flat = {name: value.reshape(-1, *value.shape[2:]) for name, value in draws.values.items()}
        number = len(next(iter(flat.values())))
        if number < 2 or not all(map(importance.all_finite, flat.values())):
            return draws
        sites = None
        if isinstance(move.symmetry, Exchange) and not move.broken:
            first = {name: value[0] for name, value in flat.items()}
            sites = label_switching.counted_sites(program, program.data, first)
        if sites is None:
            draws = _with_images(
                _Reflections(program, move, flat, move.within(part)), move, draws, flat, rng
            )
        else:
            with jax.enable_x64(True):
                own = _LabelSwitches(program, move, sites, flat, rng)
                draws = _with_images(own, move, draws, flat, rng)
    return draws


def _with_images(
    others: _Reflections | _LabelSwitches, move: Images, draws: Draws, flat: Values, rng: Rng
) -> Draws:
    """Draws with the mirrored modes under one symmetry in their shares."""
    number = len(next(iter(flat.values())))
    orders = [np.array(order, int) for order in move.orders]
    likely = others.log_ratios(np.arange(min(number, others.piece)), orders).max(1)
    orders = [order for order, most in zip(orders, likely, strict=True) if most > _HOPELESS]
    if not orders:
        return draws
    log_ratio = others.log_ratios(np.arange(number), orders)
    log_weight = importance.log_weights(draws)
    log_share = log_ratio + log_weight
    log_odds = np.append(0.0, logsumexp(log_share, axis=1) - np.log(number))
    log_total = float(logsumexp(log_odds))
    mode = rng.choice(len(log_odds), number, p=np.exp(log_odds - log_total))
    if not mode.any():
        return draws
    source, own, more = np.arange(number), np.zeros(number), np.zeros(number)
    mixed = {name: value.copy() for name, value in flat.items()}
    for place in np.unique(mode[mode > 0]):
        here, share = np.flatnonzero(mode == place), log_share[place - 1]
        source[here] = rng.choice(number, len(here), p=np.exp(share - logsumexp(share)))
        own[here] = log_ratio[place - 1][source[here]]
        more[here] = log_weight[source[here]]
        for name, value in others.images(source[here], orders[place - 1]).items():
            mixed[name][here] = value
    values = {name: value.reshape(draws.values[name].shape) for name, value in mixed.items()}
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


class _Reflections:
    """Images of points, weighed by the density of the points."""

    def __init__(self, program: Program[Any], move: Images, draws: Values, within: Within) -> None:
        self.within, self.piece = within, _PIECE
        part = program.data if move.broken else program.data.first_unit()
        self.model, self.move, self.draws = program.model, move, draws
        self.data = jax.tree.map(jnp.asarray, part)

    def log_ratios(
        self, places: Int[np.ndarray, " some"], orders: list[np.ndarray]
    ) -> Float[np.ndarray, "order some"]:
        draws = {name: value[places] for name, value in self.draws.items()}
        here = self._log_density(draws)
        there = [self._log_density(self.images(places, order)) for order in orders]
        # A probability that is rounded to 0 or 1 has an image without density, or none itself.
        with np.errstate(invalid="ignore"):
            ratios = np.array(there) - here
        return np.where(np.isfinite(ratios), ratios, -np.inf)

    def images(self, places: Int[np.ndarray, " some"], order: np.ndarray) -> Values:
        draws = {name: value[places] for name, value in self.draws.items()}
        return modes.mirrored(self.move.symmetry, draws, order, self.within)

    def _log_density(self, draws: Values) -> PerDraw:
        each = _log_density_of_draws(self.model, self.move.broken, self.data, draws)
        return np.asarray(each, np.float64)


@partial(jax.jit, static_argnums=(0, 1))
def _log_density_of_draws(
    model: Model[Any], broken: bool, data: Any, draws: Values
) -> Float[Array, " draw"]:
    density = log_joint if broken else log_prior
    return jax.lax.map(lambda values: density(model, data, values), draws)


class _LabelSwitches:
    """Images of drawn classes, with the counted probabilities drawn anew."""

    def __init__(
        self, program: Program[Any], move: Images, sites: Sites, draws: Values, rng: Rng
    ) -> None:
        self.model, self.symmetry, self.draws = program.model, move.symmetry, draws
        self.data, self.rng = jax.tree.map(jnp.asarray, program.data), rng
        self.row = self.data.take(slice(0, 1))
        self.sites = sites
        self.piece = int(np.clip(_ROWS // max(program.data.num_rows, 1), 2, _PIECE))
        self.keys = jax_keys(rng, len(next(iter(draws.values()))))

    def log_ratios(
        self, places: Int[np.ndarray, " some"], orders: list[np.ndarray]
    ) -> Float[np.ndarray, "order some"]:
        ratios = np.empty((len(orders), len(places)))
        for begin in range(0, len(places), self.piece):
            piece = slice(begin, begin + self.piece)
            draws, counted = self._counted(places[piece])
            for ratio, order in zip(ratios, orders, strict=True):
                log_odds = self._exchanged(draws, counted, order)[1]
                ratio[piece] = log_odds[: len(places[piece])]
        return np.where(np.isfinite(ratios), ratios, -np.inf)

    def images(self, places: Int[np.ndarray, " some"], order: np.ndarray) -> Values:
        parts = []
        for begin in range(0, len(places), self.piece):
            draws, counted = self._counted(places[begin : begin + self.piece])
            image = modes.mirrored(self.symmetry, draws, order)
            for site, parameters in self._exchanged(draws, counted, order)[0].items():
                given = image, parameters, jax_keys(self.rng, self.piece)
                image[site] = np.asarray(_drawn(self.model, site, self.row, *given))
            parts.append(image)
        return {
            name: np.concatenate([part[name] for part in parts])[: len(places)]
            for name in self.draws
        }

    def _counted(self, places: Int[np.ndarray, " some"]) -> tuple[Values, Any]:
        """These draws, the last one repeated so that all pieces have one size."""
        places = np.pad(places, (0, self.piece - len(places)), mode="edge")
        draws = {name: np.asarray(value[places], np.float64) for name, value in self.draws.items()}
        counted = label_switching.counted(
            self.model, self.sites, self.data, draws, self.keys[places]
        )
        return draws, jax.tree.map(np.asarray, counted)

    def _exchanged(self, draws: Values, counted: Any, order: np.ndarray) -> tuple[Any, np.ndarray]:
        change = label_switching.changes(
            self.model, self.symmetry, self.sites, self.row, draws, order
        )
        exchanged = label_switching.exchanged(self.symmetry, counted, change, order)
        return jax.tree.map(np.asarray, exchanged)


@partial(jax.jit, static_argnums=(0, 1))
def _drawn(
    model: Model[Any], site: str, row: Any, draws: Values, parameters: Any, keys: Array
) -> Array:
    """Draw a counted site under each draw from its full conditional."""

    def one(entry: tuple[Values, Any, Array]) -> Array:
        values, given, key = entry
        prior = latent_classes.site_prior(model, row, values, site)
        return latent_classes.sampled(prior, given, key)

    return jax.lax.map(one, (draws, parameters, keys))

"""Mirrored worlds: what a model declares by `raters.model.Sign` or `raters.model.Exchange` leaves
the likelihood as it is, so that the prior alone says how probable a point and its image are."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import expit, logsumexp

from raters.inference.base import Draws
from raters.judgements.base import Judgements
from raters.model import Exchange, Mirror, Model, Sign, Values
from raters.program import Program
from raters.program.densities import log_joint, log_prior

# Of more than so many pairs of classes (20 classes have 190), approximations keep the names that
# they found; pairs are looked at by so many draws first, and left out below these log odds.
_MOST_PAIRS, _LOOK, _HOPELESS = 200, 20, -25.0


class Images(NamedTuple):
    """Mirror images of a point under one symmetry.

    Attributes
    ----------
    symmetry : Sign or Exchange
    pairs : tuple of (int, int)
        Pairs of classes that may change places; one pair without a meaning for a change of sign.
    broken : bool
        True where known classes break the symmetry, so that the likelihood has a say too.
    """

    symmetry: Mirror
    pairs: tuple[tuple[int, int], ...] = ((0, 0),)
    broken: bool = False


def images(model: Model[Any], data: Judgements) -> tuple[Images, ...]:
    """Mirror images that leave the likelihood of these data as it is, but for known classes.

    Parameters
    ----------
    model : Model
    data : Judgements

    Returns
    -------
    tuple of Images
    """
    found = []
    for symmetry in model.symmetries:
        if isinstance(symmetry, Sign):
            found.append(Images(symmetry))
        elif isinstance(symmetry, Exchange):
            number = len(data.coords[data.axes[str(data.known)]])
            if number == 2 or not (symmetry.negated or symmetry.complemented):
                pairs = tuple(combinations(range(number), 2))
                found.append(Images(symmetry, pairs, _has_known(data)))
    return tuple(found)


def _has_known(data: Judgements) -> bool:
    """True if the class of some unit is known."""
    known = None if data.known is None else getattr(data, data.known)
    return known is not None and bool((np.asarray(known) >= 0).any())


def mirrored(symmetry: Mirror, values: Values, pair: Any = (0, 1)) -> Values:
    """The mirror image of a point, or of draws.

    Parameters
    ----------
    symmetry : Sign or Exchange
    values : dict of str to array
    pair : pair of int
        The classes that change places.

    Returns
    -------
    dict of str to array
    """
    if isinstance(symmetry, Sign):
        return values | {name: -values[name] for name in symmetry.sites}
    one, other = pair
    moved = {}
    for name, axis in symmetry.sites:
        along = jnp.arange(np.shape(values[name])[axis])
        order = jnp.where(along == one, other, jnp.where(along == other, one, along))
        moved[name] = jnp.take(values[name], order, axis=axis)
    moved = values | moved
    moved |= {name: -moved[name] for name in symmetry.negated}
    return moved | {name: 1 - moved[name] for name in symmetry.complemented}


def log_odds(
    model: Model[Any], move: Images, data: Any, values: Values, pair: Any = (0, 1)
) -> Float[Array, ""]:
    r"""Log odds of the mirror image of a point against the point itself.

    .. math:: \log p(g\theta \mid y) - \log p(\theta \mid y) = \log p(g\theta) - \log p(\theta)

    Parameters
    ----------
    model : Model
    move : Images
    data : Judgements
        Any part of the data, since the prior does not depend on them; all where known classes
        break the symmetry.
    values : dict of str to array
    pair : pair of int

    Returns
    -------
    array, shape ()
    """
    density = log_joint if move.broken else log_prior
    there = density(model, data, mirrored(move.symmetry, values, pair))
    return there - density(model, data, values)


@partial(jax.jit, static_argnums=(0, 1))
def _log_odds_of_draws(
    model: Model[Any], move: Images, data: Any, draws: Values, pair: Array
) -> Float[Array, " draw"]:
    odds: Array = jax.lax.map(lambda values: log_odds(model, move, data, values, pair), draws)
    return odds


@partial(jax.jit, static_argnums=(0, 1))
def _image(
    model: Model[Any], move: Images, data: Any, values: Values, pair: Array
) -> tuple[Values, Float[Array, ""]]:
    """The mirror image, and its log odds."""
    return mirrored(move.symmetry, values, pair), log_odds(model, move, data, values, pair)


def step(
    model: Model[Any],
    moves: tuple[Images, ...],
    row: Any,
    data: Any,
    values: Values,
    rng: np.random.Generator,
) -> Values:
    """Metropolis step to a mirror image, which leaves the posterior invariant.

    Parameters
    ----------
    model : Model
    moves : tuple of Images
        Of each, one image is tried, at random.
    row : Judgements
        Any part of the data, for images that leave the likelihood as it is.
    data : Judgements
    values : dict of str to array
    rng : numpy.random.Generator

    Returns
    -------
    dict of str to array
        The point, or its mirror image; without images, no random number is drawn.
    """
    for move in moves:
        pair = move.pairs[rng.integers(len(move.pairs)) if len(move.pairs) > 1 else 0]
        part = data if move.broken else row
        image, odds = _image(model, move, part, values, jnp.asarray(pair))
        if np.log(rng.random()) < float(odds):
            values = image
    return values


def weighed(program: Program[Any], draws: Draws, rng: np.random.Generator) -> Draws:
    r"""Draws from an approximation around one mode, with the mirrored mode in its share.

    With :math:`q` for the approximation, the odds of the two modes are

    .. math:: \frac{\int_{gA} p(\theta \mid y)}{\int_A p(\theta \mid y)}
        = \operatorname{E}_{\theta \sim q}\left[\frac{p(g\theta)}{p(\theta)}\right].

    So many draws are exchanged for mirror images of draws taken with weights in proportion to that
    ratio. A single draw, which is the mode, and draws that are not finite stay as they are, and so
    does the mode.

    Parameters
    ----------
    program : Program
    draws : Draws
        Of one chain.
    rng : numpy.random.Generator

    Returns
    -------
    Draws
    """
    for move in images(program.model, program.data):
        part = program.data if move.broken else program.data.first_unit()
        part = jax.tree.map(jnp.asarray, part)
        for pair in _possible(program, move, part, draws):
            draws = _with_image(program, move, pair, part, draws, rng)
    return draws


def _possible(
    program: Program[Any], move: Images, data: Any, draws: Draws
) -> tuple[tuple[int, int], ...]:
    """Pairs of classes whose exchange has a share that draws can show."""
    if len(move.pairs) == 1:
        return move.pairs
    if len(move.pairs) > _MOST_PAIRS:
        return ()
    few = {
        name: np.asarray(value).reshape(-1, *np.shape(value)[2:])[:_LOOK]
        for name, value in draws.values.items()
    }
    odds = [
        np.asarray(_log_odds_of_draws(program.model, move, data, few, jnp.asarray(pair)))
        for pair in move.pairs
    ]
    likely = [np.max(one, initial=-np.inf, where=np.isfinite(one)) for one in odds]
    return tuple(pair for pair, most in zip(move.pairs, likely, strict=True) if most > _HOPELESS)


def _with_image(
    program: Program[Any],
    move: Images,
    pair: tuple[int, int],
    data: Any,
    draws: Draws,
    rng: np.random.Generator,
) -> Draws:
    """Draws with one mirrored mode in its share."""
    flat = {
        name: np.asarray(value).reshape(-1, *np.shape(value)[2:])
        for name, value in draws.values.items()
    }
    number = len(next(iter(flat.values())))
    if number < 2 or not all(np.isfinite(value).all() for value in flat.values()):
        return draws
    odds = _log_odds_of_draws(program.model, move, data, flat, jnp.asarray(pair))
    # A probability that is rounded to 0 or 1 has an image without density.
    log_ratio = np.where(np.isfinite(odds), np.asarray(odds, np.float64), -np.inf)
    if not np.isfinite(log_ratio).any():
        return draws
    log_of_modes = float(logsumexp(log_ratio)) - np.log(number)
    other = rng.random(number) < expit(log_of_modes)
    if not other.any():
        return draws
    weight = np.exp(log_ratio - logsumexp(log_ratio))
    source = np.where(other, rng.choice(number, number, p=weight), np.arange(number))
    values = {name: value[source] for name, value in flat.items()}
    image = mirrored(move.symmetry, values, pair)
    mixed = {
        name: np.where(
            other.reshape(-1, *(1,) * (value.ndim - 1)), np.asarray(image[name]), value
        ).reshape(draws.values[name].shape)
        for name, value in values.items()
    }
    return draws._replace(
        values=mixed, stats=_densities(draws.stats, source, other, log_ratio, log_of_modes)
    )


def _densities(
    stats: dict[str, Any],
    source: np.ndarray,
    other: np.ndarray,
    log_ratio: np.ndarray,
    log_of_modes: float,
) -> dict[str, Any]:
    """Log densities of the draws under the posterior and under the mixture of both modes."""
    if "log_q" not in stats:
        return stats
    own, shape = log_ratio[source], np.shape(stats["log_q"])
    log_p, log_q = (np.asarray(stats[name]).ravel()[source] for name in ("log_p", "log_q"))
    share = np.where(other, expit(log_of_modes), expit(-log_of_modes))
    moved = np.where(other, own - log_of_modes, 0.0)
    return stats | {
        "log_p": (log_p + np.where(other, own, 0.0)).reshape(shape),
        "log_q": (log_q + moved + np.log(share)).reshape(shape),
    }

"""Mirrored worlds: what a model declares by `raters.model.Sign` leaves the likelihood as it is, so
that the prior alone says how probable a point and its mirror image are."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import expit, logsumexp

from raters.inference.base import Draws
from raters.model import Model, Sign, Values
from raters.program import Program
from raters.program.densities import log_prior


def signs(model: Model[Any]) -> tuple[Sign, ...]:
    """Changes of sign that leave the likelihood of a model as it is.

    Parameters
    ----------
    model : Model

    Returns
    -------
    tuple of Sign
    """
    return tuple(symmetry for symmetry in model.symmetries if isinstance(symmetry, Sign))


def mirrored(sign: Sign, values: Values) -> Values:
    """The mirror image of a point, or of draws.

    Parameters
    ----------
    sign : Sign
    values : dict of str to array

    Returns
    -------
    dict of str to array
    """
    return values | {name: -values[name] for name in sign.sites}


def log_odds(model: Model[Any], sign: Sign, row: Any, values: Values) -> Float[Array, ""]:
    r"""Log odds of the mirror image of a point against the point itself.

    .. math:: \log p(g\theta \mid y) - \log p(\theta \mid y) = \log p(g\theta) - \log p(\theta)

    Parameters
    ----------
    model : Model
    sign : Sign
    row : Judgements
        Any part of the data: the prior does not depend on it.
    values : dict of str to array

    Returns
    -------
    array, shape ()
    """
    there = log_prior(model, row, mirrored(sign, values))
    return there - log_prior(model, row, values)


@partial(jax.jit, static_argnums=(0, 1))
def _log_odds_of_draws(
    model: Model[Any], sign: Sign, row: Any, draws: Values
) -> Float[Array, " draw"]:
    odds: Array = jax.lax.map(lambda values: log_odds(model, sign, row, values), draws)
    return odds


@partial(jax.jit, static_argnums=(0, 1))
def _log_odds(model: Model[Any], sign: Sign, row: Any, values: Values) -> Float[Array, ""]:
    return log_odds(model, sign, row, values)


def step(model: Model[Any], row: Any, values: Values, rng: np.random.Generator) -> Values:
    """Metropolis step to the mirror image, which leaves the posterior invariant.

    Parameters
    ----------
    model : Model
    row : Judgements
        Any part of the data.
    values : dict of str to array
    rng : numpy.random.Generator

    Returns
    -------
    dict of str to array
        The point, or its mirror image; a model without such symmetries draws no random number.
    """
    for sign in signs(model):
        if np.log(rng.random()) < float(_log_odds(model, sign, row, values)):
            values = mirrored(sign, values)
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
    if not signs(program.model):
        return draws
    row = jax.tree.map(jnp.asarray, program.data.first_unit())
    for sign in signs(program.model):
        flat = {
            name: np.asarray(value).reshape(-1, *np.shape(value)[2:])
            for name, value in draws.values.items()
        }
        log_ratio = np.asarray(_log_odds_of_draws(program.model, sign, row, flat), np.float64)
        number = len(log_ratio)
        if number < 2 or not np.isfinite(log_ratio).all():
            continue
        log_of_modes = float(logsumexp(log_ratio)) - np.log(number)
        other = rng.random(number) < expit(log_of_modes)
        weight = np.exp(log_ratio - logsumexp(log_ratio))
        source = np.where(other, rng.choice(number, number, p=weight), np.arange(number))
        values = {
            name: np.where(
                other.reshape(-1, *(1,) * (value.ndim - 1)) & (name in sign.sites),
                -value[source],
                value[source],
            ).reshape(draws.values[name].shape)
            for name, value in flat.items()
        }
        draws = draws._replace(
            values=values, stats=_densities(draws.stats, source, other, log_ratio, log_of_modes)
        )
    return draws


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

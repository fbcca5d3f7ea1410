r"""Moves of entries between two bounds along the spread of their prior.

Entries :math:`\beta_k` of a truncated normal prior keep their quantiles while its spread changes,
and what they scale moves so that the products stay about the same:

.. math:: \tau' = e^u \tau, \qquad \beta_k' = F_{\tau'}^{-1}(F_\tau(\beta_k)), \qquad
    r' = r \, \lVert\beta\rVert / \lVert\beta'\rVert

The orbit of the scale, (r, β) → (c·r, β/c), ends where the largest entry meets its bound; these
moves do not (interweaving of Yu and Meng 2011, along an orbit).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr, ndtri
from jaxtyping import Array
from numpyro.distributions import constraints

from raters.inference.arrays import EntryArray, Scalar, Sites
from raters.inference.polya_gamma import detection
from raters.inference.polya_gamma.conditionals import Gaussian
from raters.inference.polya_gamma.plans import Plan
from raters.inference.polya_gamma.rows import block_prior
from raters.model import Model, Scale, Values
from raters.program import log_joint

# Standard deviation of a proposed move of the log of a spread.
_WIDTH = 2.0


class Level(NamedTuple):
    """A site between two bounds, the spreads of its prior, and the scale symmetry that it is in."""

    site: str
    spreads: Sites
    scale: Scale


def levels_of(plan: Plan, row: Any, values: Values) -> tuple[Level, ...]:
    """Return the sites of scale symmetries that have two bounds and a learned spread."""
    positive = type(constraints.positive)
    learned = [name for name in plan.hyper if isinstance(plan.supports[name], positive)]
    levels = []
    for scale in plan.scales:
        for site in scale.down:
            given = partial(_parameters, site), plan.model, row, values
            # A prior that moves with what the entries scale would be another one on the way back.
            if not isinstance(plan.supports[site], constraints.interval) or detection.depends(
                *given, scale.up
            ):
                continue
            spreads = tuple(name for name in learned if detection.depends(*given, (name,)))
            levels += [Level(site, spreads, scale)] if spreads else []
    return tuple(levels)


def _parameters(site: str, model: Model[Any], data: Any, values: Values) -> Array:
    """Return the parameters of the prior of a site."""
    return jnp.stack(block_prior(model, data, values, (site,))[:4])


def level_step(plan: Plan, level: Level, data: Any, row: Any, values: Values, key: Array) -> Values:
    """Propose a move of the spreads, the entries and what these scale, and take it or not."""
    propose, accept = jax.random.split(key)
    move = _WIDTH * jax.random.normal(propose)
    spreads = {name: values[name] * jnp.exp(move) for name in level.spreads}
    prior = partial(block_prior, plan.model, row, block=(level.site,))
    before, after = prior(values=values), prior(values=values | spreads)
    entries = jnp.ravel(values[level.site])
    moved = _quantiles(after, _shares(before, entries))
    factor = jnp.sqrt((entries**2).sum() / (moved**2).sum())
    up = {name: values[name] * factor for name in level.scale.up}
    proposed = values | spreads | up | {level.site: moved.reshape(values[level.site].shape)}
    both = jax.tree.map(lambda *points: jnp.stack(points), values, proposed)
    here, there = jax.lax.map(partial(log_joint, plan.model, data), both)
    numbers = [sum(map(jnp.size, sites.values())) for sites in (spreads, up)]
    volume = numbers[0] * move + numbers[1] * jnp.log(factor)
    odds = there - here + volume + _log_density(before, entries) - _log_density(after, moved)
    inside = ((moved > after.low) & (moved < after.high)).all()
    taken = inside & (jnp.log(jax.random.uniform(accept)) < odds)
    return jax.tree.map(partial(jnp.where, taken), proposed, values)


def _tails(prior: Gaussian) -> tuple[EntryArray, EntryArray, EntryArray]:
    """Return the probabilities of normals below their two bounds, of those whose mean is nearer to
    the lower one turned round, since upper tails are rounded; and −1 for these, else 1."""
    low, high = (_score(prior, end) for end in (prior.low, prior.high))
    sign = jnp.where(low + high > 0, -1.0, 1.0)
    return (
        ndtr(jnp.minimum(sign * low, sign * high)),
        ndtr(jnp.maximum(sign * low, sign * high)),
        sign,
    )


def _score(prior: Gaussian, entries: EntryArray) -> EntryArray:
    return (entries - prior.mean) * jnp.sqrt(prior.precision)


def _shares(prior: Gaussian, entries: EntryArray) -> EntryArray:
    """Return the probability of each entry's prior between a bound and the entry."""
    low, high, sign = _tails(prior)
    return (ndtr(sign * _score(prior, entries)) - low) / (high - low)


def _quantiles(prior: Gaussian, shares: EntryArray) -> EntryArray:
    """Return the entries with these shares."""
    low, high, sign = _tails(prior)
    return prior.mean + sign * ndtri(low + shares * (high - low)) / jnp.sqrt(prior.precision)


def _log_density(prior: Gaussian, entries: EntryArray) -> Scalar:
    low, high, _ = _tails(prior)
    each = (jnp.log(prior.precision) - _score(prior, entries) ** 2) / 2 - jnp.log(high - low)
    return each.sum()

r"""Moves of entries between two bounds along the spread of their prior.

Entries :math:`\beta_k` of a truncated normal prior keep their quantiles while its spread changes,
and what they scale moves so that the products stay about the same:

.. math:: \tau' = e^u \tau, \qquad \beta_k' = F_{\tau'}^{-1}(F_\tau(\beta_k)), \qquad
    r' = r \, \lVert\beta\rVert / \lVert\beta'\rVert

The orbit of the scale, (r, β) → (c·r, β/c), ends where the largest entry meets its bound; these
moves do not (interweaving of Yu and Meng 2011, along an orbit).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array
from numpyro.distributions import constraints

from raters.inference.arrays import Sites
from raters.inference.polya_gamma import detection
from raters.inference.polya_gamma.plans import Plan
from raters.inference.polya_gamma.rows import Block, block_prior
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
            given = _parameters(site), plan.model, row, values
            # A prior that moves with what the entries scale would be another one on the way back.
            if not isinstance(plan.supports[site], constraints.interval) or detection.depends(
                *given, scale.up
            ):
                continue
            spreads = tuple(name for name in learned if detection.depends(*given, (name,)))
            levels += [Level(site, spreads, scale)] if spreads else []
    return tuple(levels)


@cache
def _parameters(site: str) -> Callable[[Model[Any], Any, Values], Array]:
    """Return a function that gives the parameters of the prior of a site, the same for each fit,
    since it is compiled."""
    return lambda model, data, values: jnp.stack(
        block_prior(model, data, values, Block((site,)))[:4]
    )


def level_step(plan: Plan, level: Level, data: Any, row: Any, values: Values, key: Array) -> Values:
    """Propose a move of the spreads, the entries and what these scale, and take it or not."""
    propose, accept = jax.random.split(key)
    move = _WIDTH * jax.random.normal(propose)
    spreads = {name: values[name] * jnp.exp(move) for name in level.spreads}
    before, after = (_prior(plan, level, row, at) for at in (values, values | spreads))
    entries = jnp.ravel(values[level.site])
    moved = after.icdf(before.cdf(entries))
    factor = jnp.sqrt((entries**2).sum() / (moved**2).sum())
    up = {name: values[name] * factor for name in level.scale.up}
    proposed = values | spreads | up | {level.site: moved.reshape(values[level.site].shape)}
    both = jax.tree.map(lambda *points: jnp.stack(points), values, proposed)
    here, there = jax.lax.map(partial(log_joint, plan.model, data), both)
    numbers = [sum(map(jnp.size, sites.values())) for sites in (spreads, up)]
    volume = numbers[0] * move + numbers[1] * jnp.log(factor)
    odds = there - here + volume + (before.log_prob(entries) - after.log_prob(moved)).sum()
    inside = ((moved > after.low) & (moved < after.high)).all()
    taken = inside & (jnp.log(jax.random.uniform(accept)) < odds)
    return jax.tree.map(partial(jnp.where, taken), proposed, values)


def _prior(plan: Plan, level: Level, row: Any, values: Values) -> dist.Distribution:
    mean, precision, low, high, _ = block_prior(plan.model, row, values, Block((level.site,)))
    return dist.TruncatedNormal(mean, precision**-0.5, low=low, high=high)

"""Draws of a site that was integrated out of the likelihood, given the other sites."""

from __future__ import annotations

import dataclasses
import warnings
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from raters.errors import ConvergenceWarning
from raters.inference.arrays import Rng
from raters.inference.base import Draws
from raters.inference.polya_gamma.tables import Tables
from raters.model import Marginal, Model, Values
from raters.program import Program, likelihood_of, trace

# Steps to the mode of each entry, from 0 and from the mode under other values of the other sites.
_FROM_AFAR, _FROM_NEARBY = 30, 6
# Proposals to each entry, and the scale of their logistic distribution in standard deviations. Its
# density is at least nine tenths of a normal one everywhere, so that of ten proposals nine are
# accepted, and hardly an entry stays where it began.
_PROPOSALS, _SCALE = 8, 0.6
# Draws times rows up to which the entries are drawn given each draw of the other sites.
_MOST = 2e7
# Largest error of the log-likelihood at the mode, in nats, that needs no warning: in all, or for
# each unit.
_TOLERANCE, _OF_UNIT = 0.01, 1e-4


def added(program: Program[Any], marginal: Marginal, draws: Draws, rng: Rng) -> Draws:
    """Draws of all sites, from those of a model with one site integrated out."""
    (axis,) = program.sites[marginal.site].dims
    with jax.enable_x64(True):
        data = jax.tree.map(jnp.asarray, program.data)
        how = _How(program.model, marginal.site, axis, len(program.data.coords[axis]))
        mode = {name: jnp.asarray(value) for name, value in draws.mode.items()}
        centre = np.asarray(_mode_from_zero(how, data, mode))
        first = next(iter(draws.values.values()))
        number = first.shape[0] * first.shape[1]
        if not draws.stats and number == 1:
            site = np.broadcast_to(centre, (*first.shape[:2], len(centre)))
        elif number * program.data.num_rows > _MOST:
            spread = np.asarray(_spread_at(how, data, mode, jnp.asarray(centre)))
            noise = rng.standard_normal((*first.shape[:2], len(centre)))
            site = centre + spread * noise
        else:
            flat = {
                name: value.reshape(-1, *value.shape[2:]) for name, value in draws.values.items()
            }
            keys = jax.random.split(
                jax.random.key(rng.integers(2**32, dtype=np.uint64)), len(first) * first.shape[1]
            )
            drawn = np.asarray(_drawn(how, data, flat, jnp.asarray(centre), keys))
            site = drawn.reshape(*first.shape[:2], -1)
        likelihood = _likelihood(marginal, mode)
    return draws._replace(
        values=draws.values | {marginal.site: site},
        mode=draws.mode | {marginal.site: centre},
        facts=draws.facts | {"marginal_log_likelihood": likelihood},
    )


def _likelihood(marginal: Marginal, mode: Values) -> float:
    """Log-likelihood at the mode."""
    others = {name: value for name, value in mode.items() if name != marginal.site}
    likelihood = _at_mode(marginal.model, marginal.data, others)
    if marginal.finer is not None:
        error = abs(_at_mode(marginal.finer, marginal.data, others) - likelihood)
        most = max(_TOLERANCE, _OF_UNIT * marginal.data.num_units)
        if not error < most:
            warnings.warn(
                f"the log-likelihood at the mode is off by {error:.2g} (at most {most:.2g}),"
                f" since {marginal.site} is integrated out on too few nodes for so steep a"
                " likelihood; use NUTS, or PGGibbs where the model has blocks",
                ConvergenceWarning,
                stacklevel=5,
            )
    return likelihood


def _at_mode(model: Model[Any], data: Any, values: Values) -> float:
    """Log-likelihood of a model in which the site is integrated out."""
    if (shared := Tables.of(Program(model, data), values)) is not None:
        return shared.log_likelihood(values)
    return float(likelihood_of(model, jax.tree.map(jnp.asarray, data), values))


@dataclasses.dataclass(frozen=True)
class _How:
    """A site of a model with an entry for each of so many names of an axis, given the other
    sites."""

    model: Model[Any]
    site: str
    axis: str
    size: int

    def log_density(
        self, data: Any, others: Values, entries: Float[Array, " entry"]
    ) -> Float[Array, " entry"]:
        """Log density of each entry given the other sites, less a constant."""
        sites = trace(self.model, data, others | {self.site: entries})
        rows = sites[self.model.observed]
        likelihood = rows["fn"].log_prob(rows["value"])
        own = jax.ops.segment_sum(likelihood, data.codes(self.axis), self.size)
        log_prior: Array = sites[self.site]["fn"].log_prob(entries)
        return log_prior + own

    def slopes(
        self, data: Any, others: Values, entries: Float[Array, " entry"]
    ) -> tuple[Float[Array, " entry"], Float[Array, " entry"]]:
        """First and second derivative of each entry's log density, which has no other entry."""
        gradient = jax.grad(lambda entries: self.log_density(data, others, entries).sum())
        first, second = jax.jvp(gradient, (entries,), (jnp.ones_like(entries),))
        return first, second

    def mode(
        self, data: Any, others: Values, start: Float[Array, " entry"], steps: int
    ) -> Float[Array, " entry"]:
        """Mode of each entry by Newton's method."""

        def step(_: Any, entries: Array) -> Array:
            first, second = self.slopes(data, others, entries)
            # Far from the mode the curvature may be that of the prior alone.
            return entries + jnp.clip(first / -second, -1.0, 1.0)

        return jax.lax.fori_loop(0, steps, step, start)


@partial(jax.jit, static_argnums=0)
def _mode_from_zero(how: _How, data: Any, others: Values) -> Float[Array, " entry"]:
    return how.mode(data, others, jnp.zeros(how.size), _FROM_AFAR)


@partial(jax.jit, static_argnums=0)
def _spread_at(
    how: _How, data: Any, others: Values, mode: Float[Array, " entry"]
) -> Float[Array, " entry"]:
    """Standard deviation of each entry by the curvature at its mode."""
    return 1 / jnp.sqrt(-how.slopes(data, others, mode)[1])


@partial(jax.jit, static_argnums=0)
def _drawn(
    how: _How, data: Any, draws: Values, centre: Float[Array, " entry"], keys: Array
) -> Float[Array, "draw entry"]:
    """A draw of each entry under each draw of the other sites."""

    def one(entry: tuple[Values, Array]) -> Array:
        others, key = entry
        mode = how.mode(data, others, centre, _FROM_NEARBY)
        scale = 1 / jnp.sqrt(-how.slopes(data, others, mode)[1])

        def log_ratio(score: Array) -> Array:
            density = how.log_density(data, others, mode + scale * score)
            return density - jax.scipy.stats.logistic.logpdf(score, scale=_SCALE)

        def step(_: Any, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            score, ratio, key = state
            key, propose, accept = jax.random.split(key, 3)
            proposed = _SCALE * jax.random.logistic(propose, (how.size,))
            own = log_ratio(proposed)
            moves = jnp.log(jax.random.uniform(accept, (how.size,))) < own - ratio
            return jnp.where(moves, proposed, score), jnp.where(moves, own, ratio), key

        key, begin = jax.random.split(key)
        score = _SCALE * jax.random.logistic(begin, (how.size,))
        score, *_ = jax.lax.fori_loop(0, _PROPOSALS, step, (score, log_ratio(score), key))
        return mode + scale * score

    return jax.lax.map(one, (draws, keys))

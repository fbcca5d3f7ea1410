"""Ties: correlations, by a Gaussian copula, of entries of several kinds of judgement."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array
from numpyro.distributions import biject_to, constraints

from raters.distributions.correlated import given_scores, normal_score
from raters.inference.arrays import PerJudge, Rng
from raters.inference.polya_gamma.conditionals import Conditional, Diagonal
from raters.inference.polya_gamma.latent_classes import Counts
from raters.model import Values
from raters.program import trace

# Reach of a step of EM in unconstrained coordinates, and number of narrowings of it.
_REACH, _NARROWINGS = 2.0, 40
_RATIO = (5**0.5 - 1) / 2


class Tie(NamedTuple):
    """A site and those that it is tied to."""

    group: tuple[tuple[str, str], ...]
    place: int


def _score(plan: Any, tie: Tie, row: Any, values: Values, entries: Array) -> tuple[Array, ...]:
    """Return the score of entries, its mean and deviation given those tied to it, and log f."""
    scores, own = [], None
    for place, (name, site) in enumerate(tie.group):
        part = next(one for one in plan.parts if one.name == name)
        given = part.values(values)
        if place == tie.place:
            given = given | {site: entries.reshape(jnp.shape(given[site]))}
        fn = trace(part.model, row.part(name), given)[site]["fn"]
        score = normal_score(fn, given[site]).ravel()
        if place == tie.place:
            own = score, jnp.ravel(fn.log_prob(given[site]))
        else:
            scores.append(score)
    assert own is not None
    correlation = values[plan.model.correlation_of(tie.group)]
    return own[0], *given_scores(scores, correlation), own[1]


@partial(jax.jit, static_argnums=(0, 1))
def log_copula(plan: Any, tie: Tie, row: Any, values: Values, entries: Array) -> PerJudge:
    """Return the log density of each entry given those tied to it, less that by itself."""
    score, mean, spread, _ = _score(plan, tie, row, values, entries)
    return dist.Normal(mean, spread).log_prob(score) - dist.Normal().log_prob(score)


@partial(jax.jit, static_argnums=(0, 1))
def to_scores(plan: Any, tie: Tie, row: Any, values: Values, entries: Array) -> PerJudge:
    r"""Return the logarithm of dx/du of each entry x with the score u."""
    score, _, _, log_prob = _score(plan, tie, row, values, entries)
    return dist.Normal().log_prob(score) - log_prob


@partial(jax.jit, static_argnums=(0, 1))
def _log_score(plan: Any, tie: Tie, row: Any, values: Values, entries: Array) -> PerJudge:
    """Return the log density of each score given those tied to it, less that of the entry."""
    at = plan, tie, row, values, entries
    return log_copula(*at) + to_scores(*at)


@partial(jax.jit, static_argnums=(0, 1))
def log_ratio(
    plan: Any, tie: Tie, row: Any, values: Values, proposed: Array, current: Array
) -> PerJudge:
    """Return the logarithm of the ratio of the copula's densities at two values of each entry."""
    at = partial(log_copula, plan, tie, row, values)
    return at(proposed) - at(current)


class Tied(NamedTuple):
    """Full conditional of independent entries, each tied to others."""

    own: Conditional | Counts
    given: tuple[Any, Tie, Any, Values]
    support: constraints.Constraint

    def copula_slope(self, entries: np.ndarray) -> np.ndarray:
        """Return the derivative of the copula's log density along each entry."""
        slope = jax.grad(lambda entries: log_copula(*self.given, entries).sum())
        return np.asarray(slope(jnp.asarray(entries)))

    def draw(self, rng: Rng, current: np.ndarray) -> np.ndarray:
        """Return a draw, or the current value, of each entry."""
        proposed = self.own.draw(rng, current)
        gain = np.asarray(log_ratio(*self.given, proposed, current))
        return np.where(np.log(rng.random(len(gain))) < gain, proposed, current)

    def _density(self, entries: np.ndarray) -> np.ndarray:
        """Return the log density of each entry in normal scores, but for a constant."""
        return log_density(self.own, entries) + np.asarray(_log_score(*self.given, entries))

    def mode(self, current: np.ndarray) -> np.ndarray:
        """Return a likelier point of each entry by golden-section search, or the current one."""
        transform = biject_to(self.support)
        start = np.asarray(transform.inv(jnp.asarray(current)))

        def at(move: np.ndarray) -> np.ndarray:
            return np.asarray(transform(jnp.asarray(start + move)))

        def density(move: np.ndarray) -> np.ndarray:
            each = self._density(at(move))
            return np.where(np.isnan(each), -np.inf, each)

        low, high = np.full(len(start), -_REACH), np.full(len(start), _REACH)
        for _ in range(_NARROWINGS):
            left, right = high - _RATIO * (high - low), low + _RATIO * (high - low)
            falls = density(left) > density(right)
            low, high = np.where(falls, low, left), np.where(falls, right, high)
        middle = (low + high) / 2
        higher = density(middle) > density(np.zeros(len(start)))
        return np.where(higher, at(middle), current)


def log_density(own: Conditional | Counts, entries: np.ndarray) -> np.ndarray:
    """Return the log density of each entry of independent ones, but for a constant."""
    if isinstance(own, Counts):
        first, second = own.parameters
        return np.asarray((first - 1) * np.log(entries) + (second - 1) * np.log1p(-entries))
    assert isinstance(own, Diagonal)
    return np.asarray(own.shift * entries - own.diagonal * entries**2 / 2)
